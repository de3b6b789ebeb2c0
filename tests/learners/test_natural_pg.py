import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.natural_pg import NaturalPg, natural_gradient
from naive import planning
from naive import policy_gradients as naive


def batch_of(rng, H, S, A, n):
    return rng.integers(S, size=(n, H)), rng.integers(A, size=(n, H)), rng.random(n) * H


@pytest.mark.equation("K01-natural-gradient")
@pytest.mark.parametrize("H, S, A, n", [(1, 1, 1, 1), (2, 2, 3, 7), (3, 2, 2, 4)])
def test_it_solves_fisher_times_step_equals_gradient(H, S, A, n):
    rng = np.random.default_rng(3)
    policy = naive.softmax(rng.normal(size=(H, S, A)))
    states, actions, totals = batch_of(rng, H, S, A, n)
    baseline = 0.7
    gradient, fisher = np.zeros(H * S * A), np.zeros((H * S * A, H * S * A))
    sums, visits = np.zeros((H, S, A)), np.zeros((H, S, A))
    for trail, taken, total in zip(states, actions, totals, strict=True):
        for h, (s, a) in enumerate(zip(trail, taken, strict=True)):
            scores = np.zeros((A, H, S, A))  # ∇ ln π(a|s) of every action
            scores[:, h, s] = np.eye(A) - policy[h, s]
            scores = scores.reshape(A, -1)
            gradient += (total - baseline) * scores[a]
            fisher += np.einsum("a,ai,aj->ij", policy[h, s], scores, scores)
            sums[h, s, a] += total
            visits[h, s, a] += 1
    w = natural_gradient(policy, sums, visits, baseline, 0.0)
    np.testing.assert_allclose(fisher @ w.ravel(), gradient, atol=1e-10)
    smaller = natural_gradient(policy, sums, visits, baseline, 0.5)
    np.testing.assert_allclose(smaller * (policy + 0.5), w * policy, atol=1e-12)


def test_over_all_trajectories_it_is_the_value_of_the_whole_episode():
    # with every trajectory in the batch as often as it is played, w(h, s, a) = U_h(s, a) - b
    problem = planning.random_problem(4, 3, 2, 2)
    H, S, A = problem.loss.shape
    sums, visits = np.zeros((H, S, A)), np.zeros((H, S, A))
    for trajectory in planning.trajectories(H, S, A):
        weight = planning.probability(trajectory, problem.transition, problem.policy, problem.initial)
        for h, (s, a) in enumerate(trajectory):
            sums[h, s, a] += 1e6 * weight * planning.total(trajectory, problem.loss)
            visits[h, s, a] += 1e6 * weight
    U = planning.trajectory_values(problem.transition, problem.policy, problem.loss, problem.initial)
    w = natural_gradient(problem.policy, sums, visits, 0.4, 0.0)
    met = visits.sum(axis=-1) > 1.0
    np.testing.assert_allclose(w[met], (U - 0.4)[met], rtol=1e-9)


def test_it_steps_at_the_end_of_a_batch_only():
    rng = np.random.default_rng(0)
    problem = Problem(H=3, S=2, A=2, episodes=None)
    learner = NaturalPg(batch=4)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    states, actions, totals = batch_of(rng, 3, 2, 2, 8)
    for k in range(8):
        before = state.policy_hsa.copy()
        seen = Episode(k, states[k], actions[k], total=float(totals[k]))
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
        assert (state.policy_hsa != before).any() == (k % 4 == 3)
    # by hand: the second batch's step
    sums, visits = np.zeros((3, 2, 2)), np.zeros((3, 2, 2))
    for k in range(4, 8):
        sums[np.arange(3), states[k], actions[k]] += totals[k]
        visits[np.arange(3), states[k], actions[k]] += 1
    w = natural_gradient(before, sums, visits, totals[4:].mean(), learner.damping)
    weights = before * np.exp(-learner.step_size / 3 * w)
    np.testing.assert_allclose(state.policy_hsa, weights / weights.sum(axis=-1, keepdims=True), rtol=1e-12)


def test_an_action_that_has_died_out_needs_no_damping():
    # 0 / 0 otherwise: with damping 0 the policy may come down to 0 by underflow
    policy = np.array([[[1.0, 0.0]]])
    w = natural_gradient(policy, np.array([[[0.6, 0.0]]]), np.array([[[2.0, 0.0]]]), 0.1, 0.0)
    np.testing.assert_allclose(w, [[[0.2, 0.0]]], rtol=1e-14)


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="batch must be at least 1"):
        NaturalPg(batch=0)
    with pytest.raises(InvalidInputError, match="damping must be a finite number, at least 0"):
        NaturalPg(damping=-1.0)
