from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.o_reps import OReps
from aggbandit.learners.parts import relative_entropy
from naive import kl_projections as naive
from naive import planning


def problem_of(made, K):
    H, S, A = made.loss.shape
    return Problem(H=H, S=S, A=A, episodes=K, initial_state=made.initial, transition=made.transition)


@pytest.mark.equation("ZN13-first")
@pytest.mark.equation("ZN13-step")
@pytest.mark.equation("ZN13-eta")
@pytest.mark.parametrize("feedback", ["full", "semi-bandit"])
def test_it_plays_what_a_conic_solver_finds(feedback):
    made = planning.random_problem(1, 3, 3, 2)
    problem = problem_of(made, 40)
    rng = np.random.default_rng(0)
    learner = OReps(feedback=feedback)
    eta = sqrt(log(6) / 40) if feedback == "full" else sqrt(log(6) / (6 * 40))
    assert learner.resolved(problem)["step_size"] == pytest.approx(eta, rel=1e-14)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    uniform = planning.occupancy(made.transition, np.full((3, 3, 2), 0.5), made.initial)
    allowed = np.broadcast_to(uniform[:, :, None] > 0, (3, 3, 2)).astype(float)
    _, x = naive.known(made.transition, made.initial, allowed, np.zeros((3, 3, 2)))  # the greatest entropy
    for k in range(6):
        np.testing.assert_allclose(state.q.reach_hs[:, :, None] * state.policy_hsa, x, atol=2e-5)
        x = state.q.reach_hs[:, :, None] * state.policy_hsa  # the solver's errors shall not add up
        states, actions, table = rng.integers(3, size=3), rng.integers(2, size=3), rng.random((3, 3, 2))
        states[0] = np.argmax(made.initial)
        met = np.arange(3), states, actions
        if feedback == "full":
            seen, cost = Episode(k, states, actions, table=table), eta * table
        else:
            seen, cost = Episode(k, states, actions, losses=table[met]), np.zeros((3, 3, 2))
            cost[met] = eta * table[met] / x[met]
        _, x = naive.known(made.transition, made.initial, x, cost)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))


@pytest.mark.equation("ZN13-estimate")
def test_the_estimate_is_unbiased(monkeypatch):
    made = planning.random_problem(2, 3, 2, 2)
    problem = problem_of(made, 10)
    learner = OReps(feedback="semi-bandit")
    state = learner.init(problem, Draws(0, 0, 0, 1))
    costs = []
    monkeypatch.setattr(relative_entropy, "step", lambda q, initial, kernels, cost: costs.append(cost))
    mean = np.zeros((3, 2, 2))
    for trajectory in planning.trajectories(3, 2, 2):
        states, actions = np.array(trajectory).T
        losses = made.loss[np.arange(3), states, actions]
        weight = planning.probability(trajectory, made.transition, state.policy_hsa, made.initial)
        if weight > 0:
            learner.update(problem, state, Episode(0, states, actions, losses=losses), Draws(0, 0, 0, 2))
            mean += weight * costs.pop() / learner.resolved(problem)["step_size"]
    reached = planning.occupancy(made.transition, state.policy_hsa, made.initial) > 0
    np.testing.assert_allclose(mean[reached], made.loss[reached], rtol=1e-10)


def test_one_step_is_exponential_weights():
    problem = Problem(H=1, S=2, A=3, episodes=30, initial_state=[0.4, 0.6], transition=np.full((1, 2, 3, 2), 0.5))
    learner = OReps()
    eta = learner.resolved(problem)["step_size"]
    state = learner.init(problem, Draws(0, 0, 0, 1))
    rng, total = np.random.default_rng(0), np.zeros((2, 3))
    for k in range(30):
        table = rng.random((1, 2, 3))
        seen = Episode(k, np.array([0]), np.array([0]), table=table)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
        total += table[0]
        weights = np.exp(-eta * total)
        np.testing.assert_allclose(state.policy_hsa[0], weights / weights.sum(axis=1, keepdims=True), rtol=1e-10)


def test_its_regret_keeps_the_bound_exactly():
    # full information: nothing is random, so that the bound 2 H √(K ln(S A)) must hold for every sequence of losses
    made = planning.random_problem(5, 3, 2, 2)
    K, rng = 200, np.random.default_rng(0)
    problem = problem_of(made, K)
    learner = OReps()
    state = learner.init(problem, Draws(0, 0, 0, 1))
    cost, total = 0.0, np.zeros((3, 2, 2))
    for k in range(K):
        table = (rng.random((3, 2, 2)) < 0.3 + 0.4 * (k // 50 % 2)).astype(float)
        cost += float((state.q.reach_hs[:, :, None] * state.policy_hsa * table).sum())
        total += table
        seen = Episode(k, np.zeros(3, int), np.zeros(3, int), table=table)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
    best = min(
        planning.value(made.transition, policy, total, made.initial)
        for policy in planning.deterministic_policies(3, 2, 2)
    )
    assert cost - best <= 2 * 3 * sqrt(K * log(4))


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="feedback must be one of full, semi-bandit, but is 'aggregate'"):
        OReps(feedback="aggregate")
    with pytest.raises(InvalidInputError, match="exploration must be a finite number, at least 0"):
        OReps(exploration=-1.0)
