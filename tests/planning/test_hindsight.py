"""The best fixed policy in hindsight."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import planning
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


def value_of(mdp, policy, loss):
    return mdp.initial @ planning.values(mdp, policy, loss)[0]


@pytest.mark.equation("LM25-regret")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("H, S, A", [(1, 3, 2), (2, 2, 2), (3, 1, 3), (2, 3, 2), (3, 2, 2)])
def test_the_best_of_all_policies(H, S, A, seed):
    problem = naive.random_problem(seed, H, S, A, zeros=0.3)
    best = min(
        naive.value(problem.transition, policy, problem.loss, problem.initial)
        for policy in naive.deterministic_policies(H, S, A)
    )
    for mdp in (mdp_of(problem), TabularMDP.sparse(*naive.as_sparse(0, problem.transition), None, problem.initial)):
        actions, value = planning.best_policy(mdp, problem.loss)
        assert isinstance(value, float)
        assert value == pytest.approx(best, rel=1e-12, abs=1e-14)
        assert actions.shape == (H, S)
        assert actions.dtype == np.int64
        policy = np.eye(A)[actions]
        assert naive.value(problem.transition, policy, problem.loss, problem.initial) == pytest.approx(best, rel=1e-12)


@pytest.mark.equation("LM25-regret")
def test_by_hand():
    # From state 0 action 1 leads to state 1 for good.  Staying costs 0 + 1; going 1/2 + 1/4.
    mdp = TabularMDP([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], horizon=2)
    actions, value = planning.best_policy(mdp, [[[0.0, 0.5], [0.0, 0.0]], [[1.0, 1.0], [0.5, 0.25]]])
    assert value == 0.75
    np.testing.assert_array_equal(actions, [[1, 0], [0, 1]])  # equals are broken in favour of the smaller action


@pytest.mark.equation("LM25-regret")
@given(problem=problems, seed=seeds, K=st.integers(1, 5))
def test_the_regret_of_the_best_is_zero_and_of_any_other_no_less(problem, seed, K):
    rng = np.random.default_rng(seed)
    mdp = mdp_of(problem)
    tables = rng.random((K, *problem.loss.shape))
    actions, comparator = planning.best_policy(mdp, tables.sum(axis=0))
    best = np.eye(problem.policy.shape[2])[actions]
    played = sum(value_of(mdp, best, table) for table in tables)
    assert played - comparator == pytest.approx(0.0, abs=1e-12)
    for policy in (problem.policy, naive.random_rows(rng, problem.policy.shape, 0.3)):
        assert sum(value_of(mdp, policy, table) for table in tables) - comparator >= -1e-12
    # it is best from every state at every step, reached or not
    v = planning.values(mdp, problem.policy, tables.sum(axis=0))
    assert (planning.values(mdp, best, tables.sum(axis=0)) <= v + 1e-12).all()


@given(problem=problems, power=st.sampled_from([-20, 0, 30]), shift=st.sampled_from([0.0, -3.0]))
def test_sums_of_losses_have_any_scale(problem, power, shift):
    H = problem.loss.shape[0]
    mdp, scale = mdp_of(problem), 2.0**power
    coarse = np.round(problem.loss * 64) / 64  # few digits, and scaling by a power of 2 is exact
    actions, value = planning.best_policy(mdp, coarse)
    scaled_actions, scaled_value = planning.best_policy(mdp, scale * (coarse + shift))
    assert scaled_value == pytest.approx(scale * (value + shift * H), rel=1e-9, abs=1e-12 * scale)
    if shift == 0.0:
        np.testing.assert_array_equal(scaled_actions, actions)


@given(problem=problems, seed=seeds)
def test_relabelled_states_take_the_relabelled_actions(problem, seed):
    old = np.random.default_rng(seed).permutation(problem.initial.size)
    relabelled = TabularMDP(problem.transition[:, old][..., old], initial_state=problem.initial[old])
    actions, value = planning.best_policy(mdp_of(problem), problem.loss)
    found, found_value = planning.best_policy(relabelled, problem.loss[:, old])
    assert found_value == pytest.approx(value, rel=1e-12, abs=1e-14)
    # where two actions are equal but for rounding the answers may differ: compare what they cost
    policy, found_policy = (np.eye(problem.policy.shape[2])[each] for each in (actions, found))
    v = planning.values(mdp_of(problem), policy, problem.loss)
    found_v = planning.values(relabelled, found_policy, problem.loss[:, old])
    np.testing.assert_allclose(found_v, v[:, old], rtol=1e-12, atol=1e-14)


def test_all_equal_takes_the_first_action_everywhere():
    mdp = TabularMDP(np.full((3, 2, 4, 2), 0.5), initial_state=[0.25, 0.75])
    actions, value = planning.best_policy(mdp, np.full((3, 2, 4), 0.125))
    np.testing.assert_array_equal(actions, 0)
    assert value == 0.375
