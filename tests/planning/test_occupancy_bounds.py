"""μ̲ and μ̄ through the public door."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggbandit import planning
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP
from naive import planning as naive

seeds = st.integers(0, 2**32 - 1)
problems = st.builds(
    naive.random_problem,
    seed=seeds,
    H=st.integers(1, 5),
    S=st.integers(1, 5),
    A=st.integers(1, 3),
    zeros=st.sampled_from([0.0, 0.3, 0.7]),
    start=st.sampled_from([None, 0]),
)
widths = st.sampled_from([0.01, 0.2, 1.0])


@pytest.mark.equation("LM25-mu-bar")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("start", [None, 0])
@pytest.mark.parametrize("H, S, A", [(1, 3, 2), (2, 3, 2), (3, 3, 2), (4, 2, 2), (3, 4, 1)])
def test_bounds_are_the_linear_programs(H, S, A, start, seed):
    problem = naive.random_problem(seed, H, S, A, zeros=0.3, start=start)
    boxes = naive.random_boxes(np.random.default_rng(seed), problem.transition, width=0.4)
    initial_state = problem.initial if start is None else start
    found = planning.occupancy_bounds(*boxes, problem.policy, initial_state)
    expected = naive.occupancy_bounds(*boxes, problem.policy, problem.initial)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.equation("LM25-mu-bar")
def test_by_hand():
    # One action.  From state 0: to state 1 with 0.2 ... 0.6.  From state 1: to state 1 with 0.5 ... 1.
    lower, upper = np.zeros((3, 2, 1, 2)), np.ones((3, 2, 1, 2))
    lower[:2, 0, 0], upper[:2, 0, 0] = [0.0, 0.2], [1.0, 0.6]
    lower[:2, 1, 0], upper[:2, 1, 0] = [0.0, 0.5], [0.5, 1.0]
    least, greatest = planning.occupancy_bounds(lower, upper, np.ones((3, 2, 1)))
    # step 3, state 1: greatest 0.6 · 1 + 0.4 · 0.6, least 0.2 · 0.5 + 0.8 · 0.2; state 0 is the rest
    np.testing.assert_allclose(greatest, [[1.0, 0.0], [0.8, 0.6], [0.74, 0.84]], rtol=1e-15)
    np.testing.assert_allclose(least, [[1.0, 0.0], [0.4, 0.2], [0.16, 0.26]], rtol=1e-15)
    assert (greatest[1:].sum(axis=1) > 1.3).all()  # no distribution: each state has a kernel of its own


@pytest.mark.equation("LM25-mu-bar")
@settings(max_examples=40)
@given(problem=problems, seed=seeds, width=widths)
def test_every_member_lies_between(problem, seed, width):
    rng = np.random.default_rng(seed)
    boxes = naive.random_boxes(rng, problem.transition, width)
    least, greatest = planning.occupancy_bounds(*boxes, problem.policy, problem.initial)
    for member in (problem.transition, naive.random_member(rng, *boxes)):
        reach = planning.occupancy(TabularMDP(member, initial_state=problem.initial), problem.policy)
        assert (least <= reach + 1e-12).all()
        assert (reach <= greatest + 1e-12).all()


@given(problem=problems)
def test_one_point_gives_its_occupancy(problem):
    least, greatest = planning.occupancy_bounds(problem.transition, problem.transition, problem.policy, problem.initial)
    reach = planning.occupancy(TabularMDP(problem.transition, initial_state=problem.initial), problem.policy)
    np.testing.assert_allclose(least, reach, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(least, greatest)


@given(problem=problems, seed=seeds, width=widths)
def test_wider_boxes_give_wider_bounds(problem, seed, width):
    rng = np.random.default_rng(seed)
    lower, upper = naive.random_boxes(rng, problem.transition, width)
    wider = lower * rng.random(lower.shape), upper + 0.3 * rng.random(upper.shape)
    least, greatest = planning.occupancy_bounds(lower, upper, problem.policy, problem.initial)
    wider_least, wider_greatest = planning.occupancy_bounds(*wider, problem.policy, problem.initial)
    assert (wider_least <= least + 1e-13).all()
    assert (wider_greatest >= greatest - 1e-13).all()


@pytest.mark.parametrize("S", [1, 3])
def test_nothing_known_allows_everything(S):
    # n = 0 everywhere: the whole simplex, where starting from p̄ = 0 would answer 0 (ERRATA A7)
    policy = naive.random_problem(0, 3, S, 2).policy
    least, greatest = planning.occupancy_bounds(np.zeros((3, S, 2, S)), np.ones((3, S, 2, S)), policy)
    np.testing.assert_allclose(greatest[1:], 1.0, rtol=1e-15)
    np.testing.assert_allclose(least[1:], 1.0 if S == 1 else 0.0, rtol=1e-15)
    np.testing.assert_array_equal(greatest[0], np.eye(S)[0])
    np.testing.assert_array_equal(least[0], np.eye(S)[0])


def test_an_initial_distribution_gives_the_mean_over_first_states():
    problem = naive.random_problem(3, 4, 3, 2)
    boxes = naive.random_boxes(np.random.default_rng(3), problem.transition, width=0.3)
    by_state = np.array([planning.occupancy_bounds(*boxes, problem.policy, s) for s in range(3)])
    found = planning.occupancy_bounds(*boxes, problem.policy, initial_state=problem.initial)
    np.testing.assert_allclose(found, np.tensordot(problem.initial, by_state, axes=1), rtol=1e-13)


@given(problem=problems, seed=seeds, width=widths)
def test_relabelled_states_have_the_same_bounds(problem, seed, width):
    rng = np.random.default_rng(seed)
    old = rng.permutation(problem.initial.size)
    lower, upper = naive.random_boxes(rng, problem.transition, width)
    least, greatest = planning.occupancy_bounds(lower, upper, problem.policy, problem.initial)
    relabelled = planning.occupancy_bounds(
        lower[:, old][..., old], upper[:, old][..., old], problem.policy[:, old], problem.initial[old]
    )
    np.testing.assert_allclose(relabelled, (least[:, old], greatest[:, old]), rtol=1e-12, atol=1e-14)


def test_corners_outside_the_simplex_are_cut_by_it():
    # p̄ - r may be negative; a signed "kernel" would give more than 1 (ERRATA A6)
    problem = naive.random_problem(4, 3, 3, 2)
    lower, upper = problem.transition - 0.6, problem.transition + 0.6
    before = lower.copy(), upper.copy()
    found = planning.occupancy_bounds(lower, upper, problem.policy)
    cut = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    np.testing.assert_array_equal(found, planning.occupancy_bounds(*cut, problem.policy))
    np.testing.assert_allclose(found, naive.occupancy_bounds(*cut, problem.policy, np.eye(3)[0]), atol=1e-8)
    np.testing.assert_array_equal((lower, upper), before)


def test_an_upper_corner_may_be_beyond_all_bounds():
    # the sum over a row of such corners used to overflow, with a warning
    policy = np.full((2, 3, 2), 0.5)
    lower, upper = np.zeros((2, 3, 2, 3)), np.full((2, 3, 2, 3), 1e308)
    np.testing.assert_array_equal(planning.occupancy_bounds(lower, upper, policy)[1][1], 1.0)


def test_the_last_step_is_not_looked_at():
    problem = naive.random_problem(5, 3, 3, 2)
    lower, upper = naive.random_boxes(np.random.default_rng(5), problem.transition, width=0.3)
    expected = planning.occupancy_bounds(lower, upper, problem.policy)
    lower[-1], upper[-1] = np.nan, -7.0
    np.testing.assert_array_equal(planning.occupancy_bounds(lower, upper, problem.policy), expected)


def test_rows_that_sum_to_one_up_to_rounding_are_taken_as_they_are():
    problem = naive.random_problem(6, 4, 3, 2)
    for factor in (1.0 - 5e-10, 1.0 + 5e-10):
        row = problem.transition * factor
        least, greatest = planning.occupancy_bounds(row, row, problem.policy)
        reach = planning.occupancy(TabularMDP(row), problem.policy)
        np.testing.assert_allclose(least, reach, rtol=1e-13)
        np.testing.assert_allclose(greatest, reach, rtol=1e-13)


def boxes_with(where, low, high):
    lower, upper = np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2))
    lower[where], upper[where] = low, high
    return lower, upper


@pytest.mark.parametrize(
    "boxes, message",
    [
        (boxes_with((1, 0, 1), [0.6, 0.6], 1.0), r"lower\[1, 0, 1\] sums to 1.2 within \[0, 1\].* at most 1"),
        (boxes_with((1, 0, 1), [1.2, -0.5], 2.0), r"lower\[1, 0, 1\] sums to 1.2 within \[0, 1\].* at most 1"),
        (boxes_with((0, 1, 0), 0.0, [0.4, 0.5]), r"upper\[0, 1, 0\] sums to 0.9 within \[0, 1\].* at least 1.* Widen"),
        (
            boxes_with((0, 1, 0), [0.4, 0.5], [0.3, 1.0]),
            r"lower\[0, 1, 0, 0\] is 0.4.*upper\[0, 1, 0, 0\] = 0\.3\. Are lower and upper in this order",
        ),
        (boxes_with((1, 1, 1), -1.0, [-0.25, 3.0]), r"upper\[1, 1, 1, 0\] is -0.25, but must be at least 0"),
        (boxes_with((1, 1, 1, 0), np.nan, 1.0), r"lower\[1, 1, 1, 0\] is nan, but every entry must be finite"),
        (boxes_with((1, 1, 1, 0), 0.0, np.inf), r"upper\[1, 1, 1, 0\] is inf, but every entry must be finite"),
        ((np.zeros((2, 2, 2)), np.ones((3, 2, 2, 2))), r"lower must have shape \(H, S, A, S\) = \(3, 2, 2, 2\)"),
        ((np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 1))), r"upper must have shape \(H, S, A, S\) = \(3, 2, 2, 2\)"),
        (([[0.0], [0.0, 0.0]], np.ones((3, 2, 2, 2))), r"lower must be an array, but its rows differ"),
    ],
)
def test_boxes_that_hold_no_distribution_are_refused(boxes, message):
    with pytest.raises(InvalidInputError, match=message):
        planning.occupancy_bounds(*boxes, np.full((3, 2, 2), 0.5))


@pytest.mark.parametrize(
    "policy, initial_state, message",
    [
        (np.full((3, 2, 2), 0.4), 0, r"policy\[0, 0\] sums to 0.8"),
        (np.full((2, 2), 0.5), 0, r"policy must have shape \(H, S, A\), but has \(2, 2\)"),
        (np.full((0, 2, 2), 0.5), 0, r"policy must have shape \(H, S, A\), but has \(0, 2, 2\)"),
        (np.full((3, 2, 2), 0.5), 2, r"initial_state must be between 0 and 1, but is 2"),
        (np.full((3, 2, 2), 0.5), [0.5, 0.6], r"initial_state sums to 1.1"),
    ],
)
def test_policies_and_starts_that_are_none_are_refused(policy, initial_state, message):
    with pytest.raises(InvalidInputError, match=message):
        planning.occupancy_bounds(np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2)), policy, initial_state)
