"""U and W through the public door, and what a total at the end of an episode says about them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggbandit import planning
from aggbandit.mdp.tabular import TabularMDP
from naive import planning as naive

SHAPES = [(1, 1, 1), (1, 3, 2), (2, 2, 2), (3, 3, 1), (3, 2, 3), (4, 3, 2), (6, 1, 2)]

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
small_problems = st.builds(
    naive.random_problem,
    seed=seeds,
    H=st.integers(1, 3),
    S=st.integers(1, 3),
    A=st.integers(1, 3),
    zeros=st.sampled_from([0.0, 0.5]),
    start=st.sampled_from([None, 0]),
)


def mdp_of(problem):
    return TabularMDP(problem.transition, initial_state=problem.initial)


@pytest.mark.equation("LM25-U")
@pytest.mark.equation("LM25-W")
@pytest.mark.parametrize("H, S, A", SHAPES)
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_u_and_w_are_means_over_trajectories(H, S, A, zeros):
    problem = naive.random_problem(1, H, S, A, zeros=zeros)
    for mdp in (mdp_of(problem), TabularMDP.sparse(*naive.as_sparse(0, problem.transition), None, problem.initial)):
        u = planning.trajectory_values(mdp, problem.policy, problem.loss)
        w = planning.prefix_values(mdp, problem.policy, problem.loss)
        np.testing.assert_allclose(u, naive.trajectory_values(*problem), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(w, naive.prefix_values(*problem), rtol=1e-12, atol=1e-14)


@pytest.mark.equation("LM25-U")
@pytest.mark.equation("LM25-W")
def test_by_hand():
    # In state 0, action 0 stays and action 1 tosses a coin for state 1, which is never left; actions are even odds.
    mdp = TabularMDP([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]], horizon=2)
    policy = np.full((2, 2, 2), 0.5)
    loss = [[[0.25, 0.5], [1.0, 1.0]], [[0.0, 1.0], [0.25, 0.75]]]
    # To state 0: by action 0 with 1/2, by action 1 with 1/4, so W_2(0) = (1/2 · 1/4 + 1/4 · 1/2) / (3/4) = 1/3.
    # To state 1: only by action 1, so W_2(1) = 1/2.
    np.testing.assert_allclose(planning.prefix_values(mdp, policy, loss), [[0.0, 0.0], [1 / 3, 0.5]], rtol=1e-15)
    # Step 1 has no past: U = Q with V_2 = (1/2, 1/2).  State 1 is not reached at step 1: W counts as 0 there.
    u = [[[0.75, 1.0], [1.5, 1.5]], [[1 / 3, 4 / 3], [0.75, 1.25]]]
    np.testing.assert_allclose(planning.trajectory_values(mdp, policy, loss), u, rtol=1e-15)


@pytest.mark.equation("LM25-U-minus-Q")
@settings(max_examples=40)
@given(problem=small_problems)
def test_u_minus_q_does_not_depend_on_the_action(problem):
    mdp = mdp_of(problem)
    u = naive.trajectory_values(*problem)  # the definition: the package's own U is Q + W to begin with
    q = planning.action_values(mdp, problem.policy, problem.loss)
    w = planning.prefix_values(mdp, problem.policy, problem.loss)
    np.testing.assert_allclose(u - q, np.broadcast_to(w[:, :, None], u.shape), rtol=1e-10, atol=1e-12)


@pytest.mark.equation("LM25-value-difference-U")
@given(problem=problems, seed=seeds, zeros=st.sampled_from([0.0, 0.6]))
def test_value_difference_with_u(problem, seed, zeros):
    H, S, A = problem.policy.shape
    mdp, other = mdp_of(problem), naive.random_rows(np.random.default_rng(seed), (H, S, A), zeros)
    values = [problem.initial @ planning.values(mdp, policy, problem.loss)[0] for policy in (problem.policy, other)]
    u = planning.trajectory_values(mdp, problem.policy, problem.loss)
    difference = np.einsum("hs,hsa,hsa->", planning.occupancy(mdp, other), problem.policy - other, u)
    assert difference == pytest.approx(values[0] - values[1], rel=1e-10, abs=1e-12)


@pytest.mark.equation("LM25-value-difference-U")
def test_value_difference_with_u_where_the_other_policy_goes_elsewhere():
    # π stays in state 0, π' goes to state 1 and there does what π would not
    mdp = TabularMDP([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], horizon=2)
    policy, other = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    policy[:, :, 0] = other[:, :, 1] = 1.0
    loss = np.array([[[0.5, 0.25], [0.0, 0.0]], [[0.5, 0.5], [0.75, 0.125]]])
    u = planning.trajectory_values(mdp, policy, loss)
    assert planning.occupancy(mdp, policy)[1, 1] == 0.0

    def difference(u):
        return np.einsum("hs,hsa,hsa->", planning.occupancy(mdp, other), policy - other, u)

    assert difference(u) == pytest.approx(1.0 - 0.375, rel=1e-15)
    u[1, 1] = 0.0  # U := 0 at the unreachable state is no answer (ERRATA B6)
    assert difference(u) == pytest.approx(0.0, abs=1e-15)


@given(problem=problems)
def test_the_mean_of_u_is_the_value_at_every_step(problem):
    mdp = mdp_of(problem)
    u = planning.trajectory_values(mdp, problem.policy, problem.loss)
    reach = planning.occupancy(mdp, problem.policy)
    value = problem.initial @ planning.values(mdp, problem.policy, problem.loss)[0]
    means = np.einsum("hs,hsa,hsa->h", reach, problem.policy, u)
    np.testing.assert_allclose(means, value, rtol=1e-11, atol=1e-13)


@given(problem=problems, seed=seeds)
def test_relabelled_states_have_the_same_u(problem, seed):
    old = np.random.default_rng(seed).permutation(problem.initial.size)
    relabelled = TabularMDP(problem.transition[:, old][..., old], initial_state=problem.initial[old])
    u = planning.trajectory_values(mdp_of(problem), problem.policy, problem.loss)
    found = planning.trajectory_values(relabelled, problem.policy[:, old], problem.loss[:, old])
    np.testing.assert_allclose(found, u[:, old], rtol=1e-10, atol=1e-12)


@given(problem=problems)
def test_unreachable_states_have_no_past(problem):
    mdp = mdp_of(problem)
    w = planning.prefix_values(mdp, problem.policy, problem.loss)
    np.testing.assert_array_equal(w[planning.occupancy(mdp, problem.policy) == 0.0], 0.0)
    np.testing.assert_array_equal(w[0], 0.0)
    assert (w >= 0.0).all()
    assert (w <= np.arange(len(w))[:, None] * (1.0 + 1e-12)).all()


def test_a_state_hardly_ever_reached_has_its_own_past():
    # W conditions on where one is: it is no smaller because one hardly gets there
    mdp = TabularMDP([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], horizon=3)
    policy = np.tile([1.0 - 1e-150, 1e-150], (3, 2, 1))
    loss = np.zeros((3, 2, 2))
    loss[0, 0], loss[1, 0], loss[1, 1] = [0.25, 0.75], [0.125, 0.5], 0.0625
    w = planning.prefix_values(mdp, policy, loss)
    # to (3, 1): 0.25 + 0.5 by leaving at the second step, 0.75 + 0.0625 by leaving at the first, as likely each
    np.testing.assert_allclose(w, [[0.0, 0.0], [0.25, 0.75], [0.375, 0.78125]], rtol=1e-14)


@pytest.mark.equation("LM25-unbiased")
@settings(max_examples=40)
@given(problem=small_problems, gamma=st.sampled_from([1e-6, 0.05, 1.0]))
def test_the_estimate_of_u_is_unbiased_up_to_gamma(problem, gamma):
    H = problem.loss.shape[0]
    mdp = mdp_of(problem)
    mu = planning.occupancy(mdp, problem.policy)[:, :, None] * problem.policy
    u = planning.trajectory_values(mdp, problem.policy, problem.loss)
    mean, second_moment = naive.estimate_moments(*problem, denominator=mu + gamma)
    np.testing.assert_allclose(mean, mu / (mu + gamma) * u, rtol=1e-11, atol=1e-13)
    assert (mean <= u + 1e-12).all()  # optimism: losses look smaller than they are
    rounding = 1.0 + 1e-12
    assert (second_moment <= H * u * mu / (mu + gamma) ** 2 * rounding).all()
    assert (second_moment <= H**2 / (mu + gamma) * rounding).all()


@pytest.mark.equation("LM25-unbiased")
@settings(max_examples=30)
@given(problem=small_problems, seed=seeds)
def test_the_estimate_stays_optimistic_with_the_greatest_occupancy(problem, seed):
    mdp, gamma = mdp_of(problem), 0.05
    boxes = naive.random_boxes(np.random.default_rng(seed), problem.transition, width=0.5)
    greatest = planning.occupancy_bounds(*boxes, problem.policy, problem.initial)[1][:, :, None] * problem.policy
    mu = planning.occupancy(mdp, problem.policy)[:, :, None] * problem.policy
    u = planning.trajectory_values(mdp, problem.policy, problem.loss)
    mean, second_moment = naive.estimate_moments(*problem, denominator=greatest + gamma)
    np.testing.assert_allclose(mean, mu / (greatest + gamma) * u, rtol=1e-11, atol=1e-13)
    assert (mean <= u + 1e-12).all()
    assert (second_moment <= problem.loss.shape[0] ** 2 / (greatest + gamma) * (1.0 + 1e-12)).all()
