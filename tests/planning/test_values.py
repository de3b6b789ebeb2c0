"""V and Q through the public door."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import planning
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP
from naive import planning as naive

seeds = st.integers(0, 2**32 - 1)
problems = st.builds(
    naive.random_problem,
    seed=seeds,
    H=st.integers(1, 6),
    S=st.integers(1, 6),
    A=st.integers(1, 4),
    zeros=st.sampled_from([0.0, 0.3, 0.7]),
    start=st.sampled_from([None, 0]),
)


def mdp_of(problem):
    return TabularMDP(problem.transition, initial_state=problem.initial)


def all_storages(problem):
    """The same stationary model four times."""
    H = problem.transition.shape[0]
    successors = naive.as_sparse(0, problem.transition)
    yield TabularMDP(problem.transition, initial_state=problem.initial)
    yield TabularMDP(problem.transition[0], horizon=H, initial_state=problem.initial)
    yield TabularMDP.sparse(*successors, initial_state=problem.initial)
    yield TabularMDP.sparse(*(array[0] for array in successors), horizon=H, initial_state=problem.initial)


@pytest.mark.equation("LM25-V")
@pytest.mark.equation("LM25-Q")
def test_all_storages_give_the_means_over_what_follows():
    problem = naive.random_problem(0, 4, 3, 2, zeros=0.3, stationary=True)
    table = problem.transition, problem.policy, problem.loss
    v, q = naive.values(*table), naive.action_values(*table)
    for mdp in all_storages(problem):
        np.testing.assert_allclose(planning.values(mdp, problem.policy, problem.loss), v, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(planning.action_values(mdp, problem.policy, problem.loss), q, rtol=1e-12, atol=1e-14)


@pytest.mark.equation("LM25-V")
@pytest.mark.equation("LM25-Q")
def test_by_hand():
    # In state 0, action 0 stays and action 1 tosses a coin for state 1, which is never left.
    mdp = TabularMDP([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]], horizon=2)
    policy = [[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]]
    loss = [[[0.25, 0.5], [1.0, 0.5]], [[0.0, 1.0], [0.25, 0.75]]]
    # V_2 = (3/4 · 1, (1/4 + 3/4) / 2) = (3/4, 1/2)
    # Q_1(0, ·) = (1/4 + 3/4, 1/2 + (3/4 + 1/2) / 2) = (1, 9/8);  Q_1(1, ·) = (1 + 1/2, 1/2 + 1/2)
    # V_1 is the mean of 1 and 9/8, and Q_1(1, 0) = 3/2
    q = [[[1.0, 1.125], [1.5, 1.0]], [[0.0, 1.0], [0.25, 0.75]]]
    np.testing.assert_array_equal(planning.action_values(mdp, policy, loss), q)
    np.testing.assert_array_equal(planning.values(mdp, policy, loss), [[1.0625, 1.5], [0.75, 0.5]])


@given(problem=problems)
def test_forward_and_backward_agree(problem):
    mdp = mdp_of(problem)
    cost = np.einsum("hs,hsa,hsa->", planning.occupancy(mdp, problem.policy), problem.policy, problem.loss)
    value = problem.initial @ planning.values(mdp, problem.policy, problem.loss)[0]
    assert value == pytest.approx(cost, rel=1e-12, abs=1e-14)


@given(problem=problems)
def test_v_is_the_mean_of_q(problem):
    q = planning.action_values(mdp_of(problem), problem.policy, problem.loss)
    v = planning.values(mdp_of(problem), problem.policy, problem.loss)
    np.testing.assert_allclose((problem.policy * q).sum(axis=2), v, rtol=1e-12, atol=1e-14)


@pytest.mark.equation("LM25-value-difference")
@given(problem=problems, seed=seeds)
def test_value_difference(problem, seed):
    H, S, A = problem.policy.shape
    mdp, other = mdp_of(problem), naive.random_rows(np.random.default_rng(seed), (H, S, A), 0.3)
    values = [problem.initial @ planning.values(mdp, policy, problem.loss)[0] for policy in (problem.policy, other)]
    q = planning.action_values(mdp, problem.policy, problem.loss)
    difference = np.einsum("hs,hsa,hsa->", planning.occupancy(mdp, other), problem.policy - other, q)
    assert difference == pytest.approx(values[0] - values[1], rel=1e-10, abs=1e-12)


@given(problem=problems, seed=seeds)
def test_relabelled_states_have_the_same_values(problem, seed):
    old = np.random.default_rng(seed).permutation(problem.initial.size)
    relabelled = TabularMDP(problem.transition[:, old][..., old], initial_state=problem.initial[old])
    q = planning.action_values(mdp_of(problem), problem.policy, problem.loss)
    q_relabelled = planning.action_values(relabelled, problem.policy[:, old], problem.loss[:, old])
    np.testing.assert_allclose(q_relabelled, q[:, old], rtol=1e-12, atol=1e-14)


@given(problem=problems, scale=st.sampled_from([-1.0, 1e-3, 1e9]), shift=st.sampled_from([0.0, -7.0]))
def test_losses_may_be_any_finite_numbers(problem, scale, shift):
    H = problem.loss.shape[0]
    mdp = mdp_of(problem)
    still_to_come = np.arange(H, 0, -1.0)[:, None]
    expected = scale * planning.values(mdp, problem.policy, problem.loss) + shift * still_to_come
    found = planning.values(mdp, problem.policy, scale * problem.loss + shift)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def wrong(loss, where, value):
    loss = loss.copy()
    loss[where] = value
    return loss


@pytest.mark.parametrize(
    "loss, message",
    [
        (np.zeros((2, 3, 1)), r"loss must have shape \(H, S, A\) = \(2, 3, 2\), but has \(2, 3, 1\)"),
        (np.zeros(()), r"loss must have shape \(H, S, A\) = \(2, 3, 2\), but has \(\)"),
        (wrong(np.zeros((2, 3, 2)), (1, 0, 1), np.inf), r"loss\[1, 0, 1\] is inf, but every entry must be finite"),
        (wrong(np.zeros((2, 3, 2)), (0, 2, 1), np.nan), r"loss\[0, 2, 1\] is nan, but every entry must be finite"),
    ],
)
def test_a_loss_that_is_none_is_refused(loss, message):
    mdp, uniform = TabularMDP(np.full((2, 3, 2, 3), 1 / 3)), np.full((2, 3, 2), 0.5)
    for function in (planning.values, planning.action_values, planning.prefix_values, planning.trajectory_values):
        with pytest.raises(InvalidInputError, match=message):
            function(mdp, uniform, loss)
    with pytest.raises(InvalidInputError, match=message):
        planning.best_policy(mdp, loss)
