import numpy as np
import pytest
from numba import njit

from aggbandit.kernels import po_known_lanes as lanes
from aggbandit.kernels import po_known_solo as solo
from aggbandit.kernels import po_known_sparse as sparse
from aggbandit.kernels import simd
from aggbandit.kernels.simd import LANES, ROWS


@pytest.mark.parametrize("total", [1, 7, 28])
@pytest.mark.parametrize("parts", [1, 3, 7])
def test_even_parts_cover_everything_once(total, parts):
    cut = [lanes.even_part(total, parts, i) for i in range(parts)]
    assert [i for first, n in cut for i in range(first, first + n)] == list(range(total))
    assert max(n for _, n in cut) - min(n for _, n in cut) <= 1


@pytest.mark.parametrize("T, S, A", [(1, 3, 2), (2, 10, 4), (1, 2, ROWS + 3), (3, 33, 1)])
def test_the_backward_arrangement_holds_every_probability_in_its_group(T, S, A):
    transition = np.random.default_rng(0).random((T, S, A, S))
    found = lanes.arranged(transition)
    assert found.shape == (T, S * A * S)
    rows = transition.reshape(T, S * A, S)
    blocks = -(-S // lanes.states_at_once(A))
    seen = 0
    for block in range(blocks):
        first_state, states = lanes.even_part(S, blocks, block)
        parts = -(-states * A // ROWS)
        for part in range(parts):
            row, n = lanes.even_part(states * A, parts, part)
            first = first_state * A + row
            assert n <= ROWS
            group = found[:, first * S : (first + n) * S].reshape(T, S, n)
            np.testing.assert_array_equal(group, rows[:, first : first + n].transpose(0, 2, 1))
            seen += n
    assert seen == S * A


@pytest.mark.parametrize("S", [1, LANES, LANES + 1])
def test_states_in_lanes_hold_every_probability_and_zeros(S):
    T, A = 2, 3
    transition = np.random.default_rng(1).random((T, S, A, S))
    forward, backward = solo.dense_matrices(transition)
    packs = -(-S // LANES)
    rows = forward.reshape(T, S, A, packs * LANES)
    np.testing.assert_array_equal(rows[..., :S], transition)
    assert not rows[..., S:].any()
    columns = backward.reshape(T, packs, S, A, LANES).transpose(0, 1, 4, 3, 2).reshape(T, packs * LANES, A, S)
    np.testing.assert_array_equal(columns[:, :S], transition)
    assert not columns[:, S:].any()


def test_padding_never_draws_what_is_added():
    cumulative = np.array([[0.25, np.inf, np.inf], [0.5, 0.75, np.inf]])
    found = lanes.padded(cumulative)
    assert found.shape == (2, lanes.GROUP)
    np.testing.assert_array_equal(found[:, :3], cumulative)
    assert np.isinf(found[:, 3:]).all()


def test_successors_are_the_nonzeros_by_ascending_state():
    transition = np.zeros((1, 4, 1, 4))
    transition[0, 0, 0] = 0.0, 0.5, 0.0, 0.5
    transition[0, 1, 0] = 0.0, 0.0, 0.0, 1.0
    transition[0, 2, 0] = 0.25, 0.0, 0.75, 0.0
    transition[0, 3, 0] = 1.0, 0.0, 0.0, 0.0
    states, probabilities = sparse.successors_of(transition)
    assert states.shape == (1, 4, 1, 2)
    np.testing.assert_array_equal(probabilities[0, :, 0], [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_array_equal(states[0, :, 0, 0], [1, 3, 0, 0])
    np.testing.assert_array_equal(states[0, [0, 2], 0, 1], [3, 2])


def test_aligned_arrays_start_on_a_cache_line():
    for size in (1, 5, 1000):
        found = lanes.aligned(size)
        assert found.shape == (size,)
        assert found.ctypes.data % 64 == 0
        assert not found.any()


@njit
def drawn_in_lanes(sizes, world, losses, policy, scratch):
    lanes.play_out(
        sizes, simd.pointers(world), simd.pointers(losses), 0, 0, 0.1, simd.pointers(policy).policy,
        simd.pointers(scratch),
    )  # fmt: skip


@njit
def drawn_alone(sizes, world, losses, policy, scratch):
    return solo.play_out(
        sizes, simd.pointers(world), simd.pointers(losses).tables, 0, simd.pointers(policy).policy,
        simd.pointers(scratch),
    )  # fmt: skip


@pytest.mark.parametrize("probabilities, action", [([0.3, 0.7 - 2e-16, 0.0], 1), ([0.3, 0.6, 0.1 - 2e-16], 2)])
@pytest.mark.parametrize("alone", [True, False])
def test_a_draw_beyond_the_rounded_sum_takes_the_last_possible_action(probabilities, action, alone):
    u = 1.0 - 2.0**-53
    assert ((0.0 + probabilities[0]) + probabilities[1]) + probabilities[2] <= u
    sizes = lanes.Sizes(packs=1, H=1, S=1, A=3, T=1, successors=0, groups=1, first_groups=1, means=0)
    rows, one, none = np.array([np.inf] * lanes.GROUP), np.ones(1), np.empty(0)
    no_states = np.empty(0, np.int64)
    losses = lanes.Losses(np.array([0.25, 0.5, 0.75]), np.zeros(1, np.int64), none)
    policy = np.repeat(np.array(probabilities), LANES)
    changing = lanes.Replicas(policy, np.zeros(policy.size), none, none)
    if alone:
        world = solo.World(none, none, no_states, none, rows, one, rows, np.arange(1.0 * LANES))
        scratch = solo.scratch(sizes)
        scratch.u_action[:] = u
        total = drawn_alone(sizes, world, losses, changing, scratch)
        assert scratch.actions[0] == action
    else:
        scratch = lanes.scratch(sizes)
        scratch.uniforms[:] = u
        scratch.occupancy[:] = 1.0
        drawn_in_lanes(sizes, lanes.World(none, none, rows, no_states, one, rows), losses, changing, scratch)
        np.testing.assert_array_equal(scratch.visited, action)
        np.testing.assert_array_equal(scratch.reached, np.float64(probabilities[action]) + 0.1)
        total = scratch.total[LANES - 1]
    assert total == (action + 1) / 4
