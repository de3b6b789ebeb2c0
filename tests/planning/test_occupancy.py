"""μ through the public door."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import planning
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP
from naive import planning as naive

problems = st.builds(
    naive.random_problem,
    seed=st.integers(0, 2**32 - 1),
    H=st.integers(1, 6),
    S=st.integers(1, 6),
    A=st.integers(1, 4),
    zeros=st.sampled_from([0.0, 0.3, 0.7]),
    stationary=st.booleans(),
)


def mdp_of(problem):
    return TabularMDP(problem.transition, initial_state=problem.initial)


@pytest.mark.equation("LM25-occupancy")
@pytest.mark.parametrize("start", [None, 1])
def test_all_storages_give_the_share_of_trajectories(start):
    problem = naive.random_problem(0, 4, 3, 2, zeros=0.3, start=start, stationary=True)
    initial = problem.initial if start is None else start
    expected = naive.occupancy(problem.transition, problem.policy, problem.initial)
    successors = naive.as_sparse(0, problem.transition)
    for mdp in (
        TabularMDP(problem.transition, initial_state=initial),
        TabularMDP(problem.transition[0], horizon=4, initial_state=initial),
        TabularMDP.sparse(*successors, initial_state=initial),
        TabularMDP.sparse(*(array[0] for array in successors), horizon=4, initial_state=initial),
    ):
        np.testing.assert_allclose(planning.occupancy(mdp, problem.policy), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.equation("LM25-occupancy")
def test_by_hand():
    # In state 0, action 0 stays and action 1 tosses a coin for state 1, which is never left.
    transition = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]]
    policy = [[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
    # step 2: 1 - 1/2 · 1/2 = 3/4 still in state 0; step 3: half of that
    expected = [[1.0, 0.0], [0.75, 0.25], [0.375, 0.625]]
    np.testing.assert_array_equal(planning.occupancy(TabularMDP(transition, horizon=3), policy), expected)


@given(problem=problems)
def test_every_step_is_somewhere(problem):
    reach = planning.occupancy(mdp_of(problem), problem.policy)
    np.testing.assert_allclose(reach.sum(axis=1), 1.0, rtol=1e-12)
    assert (reach >= 0.0).all()


@given(problem=problems, seed=st.integers(0, 2**32 - 1))
def test_relabelled_states_are_reached_as_often(problem, seed):
    new = np.random.default_rng(seed).permutation(problem.initial.size)  # state s of the old problem is new[s]
    old = np.argsort(new)
    relabelled = TabularMDP(problem.transition[:, old][..., old], initial_state=problem.initial[old])
    reach = planning.occupancy(mdp_of(problem), problem.policy)
    np.testing.assert_allclose(planning.occupancy(relabelled, problem.policy[:, old]), reach[:, old], atol=1e-15)


def test_mass_that_rounding_takes_is_neither_put_back_nor_multiplied():
    # rows that sum to 1 - 4e-10 pass as distributions; the occupancy then sums to that, once a step
    off = 1.0 - 4e-10
    mdp = TabularMDP(np.full((3, 1, 1, 1), off))
    reach = planning.occupancy(mdp, np.ones((3, 1, 1)))
    np.testing.assert_allclose(reach[:, 0], [1.0, off, off**2], rtol=1e-15)


def test_arguments_are_not_changed_and_may_have_any_layout():
    problem = naive.random_problem(1, 3, 4, 2)
    before = problem.policy.copy()
    expected = planning.occupancy(mdp_of(problem), problem.policy)
    np.testing.assert_array_equal(problem.policy, before)
    assert problem.policy.flags.writeable
    for policy in (np.asfortranarray(problem.policy), problem.policy.tolist()):
        np.testing.assert_array_equal(planning.occupancy(mdp_of(problem), policy), expected)


def test_the_same_everywhere_however_many_states():
    # 10 000 states, 4 successors a row: the dense form would take 3.2 GB
    rng = np.random.default_rng(0)
    H, S, A, n = 50, 10_000, 4, 4
    mdp = TabularMDP.sparse(rng.integers(S, size=(S, A, n)), naive.random_rows(rng, (S, A, n), 0.2), horizon=H)
    policy, loss = naive.random_rows(rng, (H, S, A), 0.2), rng.random((H, S, A))
    reach = planning.occupancy(mdp, policy)
    np.testing.assert_allclose(reach.sum(axis=1), 1.0, rtol=1e-11)
    value = planning.values(mdp, policy, loss)[0, 0]
    u = planning.trajectory_values(mdp, policy, loss)
    np.testing.assert_allclose(np.einsum("hs,hsa,hsa->h", reach, policy, u), value, rtol=1e-11)
    assert planning.best_policy(mdp, loss)[1] < value


def wrong(policy, where, value):
    policy = policy.copy()
    policy[where] = value
    return policy


UNIFORM = np.full((2, 3, 2), 0.5)


@pytest.mark.parametrize(
    "policy, message",
    [
        (UNIFORM[:1], r"policy must have shape \(H, S, A\) = \(2, 3, 2\), but has \(1, 3, 2\)"),
        (wrong(UNIFORM, (1, 2, 0), np.nan), r"policy\[1, 2, 0\] is nan"),
        (wrong(UNIFORM, (1, 2), [1.25, -0.25]), r"policy\[1, 2, 1\] is -0.25"),
        (wrong(UNIFORM, (0, 1, 1), 0.4), r"policy\[0, 1\] sums to 0.9, but every row must sum to 1 .* Divide"),
        ("uniform", "policy must be an array of real numbers, but its dtype is <U7"),
    ],
)
def test_a_policy_that_is_none_is_refused(policy, message):
    mdp = TabularMDP(np.full((2, 3, 2, 3), 1 / 3))
    loss = np.zeros((2, 3, 2))
    for function in (planning.values, planning.action_values, planning.prefix_values, planning.trajectory_values):
        with pytest.raises(InvalidInputError, match=message):
            function(mdp, policy, loss)
    with pytest.raises(InvalidInputError, match=message):
        planning.occupancy(mdp, policy)


def test_bare_transitions_are_refused():
    bare = np.full((2, 3, 2, 3), 1 / 3)
    with pytest.raises(InvalidInputError, match=r"mdp must be a TabularMDP, but is ndarray"):
        planning.occupancy(bare, UNIFORM)
    with pytest.raises(InvalidInputError, match=r"mdp must be a TabularMDP, but is ndarray"):
        planning.best_policy(bare, UNIFORM)
