"""The sweep of Algorithm 2: against linear programs and against each target by itself, on every kind of box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from aggbandit.kernels import po_unknown as kernel
from naive import po_unknown as naive

LARGE = st.tuples(st.integers(2, 5), st.integers(1, 20), st.integers(1, 5))
KINDS = ("narrow", "wide", "whole", "mixed", "points", "ties", "dice")


def boxes(rng, shape, kind):
    """Lower and upper ends (H, S, A, S) around random distributions."""
    H, S, A = shape
    mean = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
    if kind == "points":
        return mean, mean
    if kind == "whole":
        return np.zeros_like(mean), np.ones_like(mean)
    if kind == "ties":  # all boxes alike, slacks that add up to the rest exactly
        return np.full_like(mean, 0.5 / S), np.full_like(mean, min(1.0, 1.5 / S))
    if kind == "dice":  # deterministic rows with a little room
        mean = np.eye(S)[rng.integers(0, S, size=(H, S, A))]
    radius = rng.random(mean.shape) * (0.02 if kind in ("narrow", "dice") else 1.2)
    lower, upper = np.maximum(mean - radius, 0.0), np.minimum(mean + radius, 1.0)
    if kind == "mixed":  # any of the above in one step, whole steps of the simplex between them
        simplex = rng.random((H, S, A, 1)) < 0.4
        simplex[rng.random(H) < 0.3] = True
        point = rng.random((H, S, A, 1)) < 0.2
        lower = np.where(simplex, 0.0, np.where(point, mean, lower))
        upper = np.where(simplex, 1.0, np.where(point, mean, upper))
    return lower, upper


def policies(rng, shape):
    """Some actions never, some nearly never."""
    H, S, A = shape
    policy = rng.dirichlet(np.ones(A), size=(H, S)) * 10.0 ** -rng.choice([0, 0, 3, 200, 300], size=shape)
    policy[..., 0] += 1e-30
    policy[rng.random(shape) < 0.1] = 0.0
    policy[..., 0] += policy.sum(axis=-1) == 0.0
    return policy / policy.sum(axis=-1, keepdims=True)


def first_states(rng, S):
    """One state, or some of them."""
    if rng.random() < 0.5:
        return np.eye(S)[rng.integers(S)]
    initial = rng.dirichlet(np.ones(S)) * (rng.random(S) < 0.6)
    return initial / initial.sum() if initial.sum() > 0 else np.eye(S)[0]


class Sweep:
    """The kernel's arrays, filled through `place_box`."""

    def __init__(self, lower, upper, policy):
        self.shape = H, S, A = policy.shape
        self.places, _, _ = kernel.layout(H, S, A)
        self.tables, self.numbers = kernel.new_state(H, S, A)
        self.scratch, self.indices = kernel.new_scratch(H, S, A)
        self.put(lower, upper)
        kernel.table(self.tables, self.places.policy, (H, A, self.places.S8))[:, :, :S] = policy.transpose(0, 2, 1)

    def put(self, lower, upper):
        H, S, A = self.shape
        for h, s, a in np.ndindex(H - 1, S, A):
            low, slack = lower[h, s, a].copy(), upper[h, s, a] - lower[h, s, a]
            rest = max(0.0, 1.0 - low.sum())
            kernel.place_box(low, slack, rest, self.tables, self.numbers, self.places, h, a * S + s)

    def bounds(self, initial):
        H, S, _ = self.shape
        p = self.places
        live = np.flatnonzero(initial)
        kernel.occupancy_bounds(self.tables, self.numbers, self.scratch, self.indices, p, initial, live)
        return (kernel.table(self.tables, first, (H, p.S8))[:, :S].copy() for first in (p.least, p.most))


@pytest.mark.equation("LM25-mu-bar")
@given(seed=st.integers(0, 10**6), shape=LARGE, kind=st.sampled_from(KINDS))
def test_bounds_equal_those_of_each_target_by_itself(seed, shape, kind):
    rng = np.random.default_rng(seed)
    lower, upper = boxes(rng, shape, kind)
    policy, initial = policies(rng, shape), first_states(rng, shape[1])
    least, most = Sweep(lower, upper, policy).bounds(initial)
    expected = each_target(lower, upper, policy, initial)
    np.testing.assert_allclose(least, expected[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(most, expected[1], rtol=0, atol=1e-13)
    assert least.min() >= 0.0
    assert most.max() <= 1.0


def each_target(lower, upper, policy, initial):
    """`naive.occupancy_bounds` with the filling vectorised over rows: states in order, each as far as it goes."""
    H, S, _ = policy.shape
    slack, rest = upper - lower, 1.0 - lower.sum(axis=-1)
    bounds = np.empty((2, H, S))
    for index, sign in ((0, -1.0), (1, 1.0)):
        for target_h in range(H):
            f = np.eye(S)  # a row a target
            for h in range(target_h - 1, -1, -1):
                g = np.empty((S, S))
                for target in range(S):
                    order = np.argsort(-sign * f[target], kind="stable")
                    spent = np.minimum(slack[h][..., order].cumsum(axis=-1), rest[h][..., None])
                    given = np.diff(spent, axis=-1, prepend=0.0)
                    means = lower[h] @ f[target] + given @ f[target][order]
                    g[target] = (policy[h] * means).sum(axis=-1)
                f = g
            bounds[index, target_h] = f @ initial
    return bounds


@pytest.mark.parametrize("kind", KINDS)
def test_the_vectorised_reference_is_the_naive_one(kind):
    rng = np.random.default_rng(3)
    lower, upper = boxes(rng, (3, 4, 2), kind)
    policy, initial = policies(rng, (3, 4, 2)), first_states(rng, 4)
    found = each_target(lower, upper, policy, initial)
    np.testing.assert_allclose(found, naive.occupancy_bounds(lower, upper, policy, initial), rtol=0, atol=1e-14)


@pytest.mark.equation("LM25-mu-bar")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3, 2), (4, 2, 2)])
def test_bounds_equal_linear_programs(kind, shape):
    """One program a target, over the laws of whole episodes: it knows nothing of going backwards."""
    rng = np.random.default_rng(sum(shape))
    lower, upper = boxes(rng, shape, kind)
    policy, initial = rng.dirichlet(np.ones(shape[2]), size=shape[:2]), first_states(rng, shape[1])
    least, most = Sweep(lower, upper, policy).bounds(initial)
    for h, s in np.ndindex(*shape[:2]):
        low = naive.occupancy_bound_by_lp(lower, upper, policy, initial, h, s, sense=-1.0)
        high = naive.occupancy_bound_by_lp(lower, upper, policy, initial, h, s)
        assert least[h, s] == pytest.approx(low, abs=1e-7)  # the solver's tolerance
        assert most[h, s] == pytest.approx(high, abs=1e-7)


def test_bounds_hold_every_member_of_the_set():
    rng = np.random.default_rng(5)
    shape = H, S, A = 4, 6, 3
    counts = rng.multinomial(40, rng.dirichlet(np.ones(S)), size=shape).astype(float)
    lower, upper = naive.confidence_box(counts, 1000, 0.05, 0.02)
    policy, initial = policies(rng, shape), first_states(rng, S)
    least, most = Sweep(lower, upper, policy).bounds(initial)
    for _ in range(50):
        vertices = [
            naive.greatest_mean(lower[place], upper[place], rng.normal(size=S))[1] for place in np.ndindex(shape)
        ]
        mix = rng.random((H, S, A, 1))
        member = mix * np.reshape(vertices, (*shape, S)) + (1 - mix) * counts / 40
        reach = initial
        for h in range(H):
            assert (reach >= least[h] - 1e-12).all()
            assert (reach <= most[h] + 1e-12).all()
            reach = np.einsum("s,sa,sat->t", reach, policy[h], member[h])


@given(seed=st.integers(0, 10**6))
def test_boxes_that_come_and_go_leave_no_trace(seed):
    """Scratch and counters after many boxes are as good as new."""
    rng = np.random.default_rng(seed)
    shape = 4, int(rng.integers(1, 12)), 3
    policy, initial = policies(rng, shape), first_states(rng, shape[1])
    used = None
    for kind in rng.permutation(KINDS):
        lower, upper = boxes(rng, shape, kind)
        if used is None:
            used = Sweep(lower, upper, policy)
        else:
            used.put(lower, upper)
        fresh = Sweep(lower, upper, policy)
        for found, expected in zip(used.bounds(initial), fresh.bounds(initial), strict=True):
            np.testing.assert_array_equal(found, expected)


@given(seed=st.integers(0, 10**6), shape=LARGE, kind=st.sampled_from(KINDS))
def test_depth_is_how_many_states_spend_the_rest_in_any_order(seed, shape, kind):
    rng = np.random.default_rng(seed)
    H, S, A = shape
    lower, upper = boxes(rng, shape, kind)
    sweep = Sweep(lower, upper, policies(rng, shape))
    p = sweep.places
    depth = kernel.table(sweep.numbers, p.depth, (H, p.R8))
    blocks = kernel.table(sweep.numbers, p.depth_b, (H, p.R8 // 8))
    np.testing.assert_array_equal(blocks, depth.reshape(H, -1, 8).max(axis=-1))
    for h, s, a in np.ndindex(H - 1, S, A):
        slack, rest = upper[h, s, a] - lower[h, s, a], 1.0 - lower[h, s, a].sum()
        d = depth[h, a * S + s]
        filled = np.sort(slack)
        assert d == S or filled[:d].sum() >= rest - 1e-14
        assert d == 1 or filled[: d - 1].sum() < rest
    whole = ((lower == 0) & (upper == 1)).all(axis=-1)[:-1]
    raised = (lower > 0).any(axis=-1)[:-1]
    np.testing.assert_array_equal(kernel.table(sweep.numbers, p.boxes, (H,))[:-1], (~whole).sum(axis=(1, 2)))
    np.testing.assert_array_equal(kernel.table(sweep.numbers, p.raised, (H,))[:-1], raised.sum(axis=(1, 2)))


@njit
def sum_many(x, n, sums):
    for _ in range(n):
        kernel_add(sums, x)


kernel_add = kernel.add


def test_sums_are_compensated_in_compiled_code():
    """No compiler flag may undo it: ten million times 0.1 is off by 2e-4 when added plainly."""
    sums = np.zeros(2)
    sum_many(0.1, 10_000_000, sums)
    assert sums.sum() == pytest.approx(1e6, rel=1e-15)


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize(
    ("u", "action"), [(0.0, 1), (0.25, 2), (0.2499999, 1), (0.7, 2), (0.9999, 2), (1.0 - 2.0**-53, 2)]
)
def test_a_draw_beyond_the_last_sum_is_the_last_possible_action(u, action, jitted):
    draw = kernel.draw if jitted else kernel.draw.py_func
    places, _, _ = kernel.layout(1, 1, 4)
    tables, _ = kernel.new_state(1, 1, 4)
    kernel.table(tables, places.policy, (4, places.S8))[:, 0] = [0.0, 0.25, 0.75 - 1e-15, 0.0]
    assert draw(u, tables, places, 0, 0) == action


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 3), (7, 20, 5), (3, 33, 2)])
def test_tables_do_not_overlap(shape):
    places, sizes, pairs = kernel.layout(*shape)
    names = [name for name in places._fields if name not in ("H", "S", "A", "S8", "R8", "capacity", "mask", "merges")]
    groups = {"tables": ("lower", "depth"), "numbers": ("depth", "scaled_slack"), "scratch": ("scaled_slack", "turns")}
    for array, (first, last) in groups.items():
        offsets = [getattr(places, name) for name in names[names.index(first) : names.index(last)]]
        assert offsets == sorted(offsets)
        assert offsets[0] == 0
        assert all(offset % 8 == 0 for offset in offsets)
        assert offsets[-1] < getattr(sizes, array)
    assert places.mask >= shape[1] - 1
    assert pairs.size == 2 * places.merges
    for array in (*kernel.new_state(*shape), *kernel.new_scratch(*shape)):
        assert array.ctypes.data % 64 == 0
