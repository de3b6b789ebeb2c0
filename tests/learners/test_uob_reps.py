from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.parts import relative_entropy
from aggbandit.learners.uob_reps import UobReps, plausible_set
from naive import kl_projections, planning, po_dilated, po_unknown

H, S, A = 3, 2, 2


def played(rng, initial):
    states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
    states[0] = rng.choice(S, p=initial)
    return states, actions, rng.random(H)


@pytest.mark.equation("JJLSY20-step")
@pytest.mark.equation("JJLSY20-set")
@pytest.mark.equation("JJLSY20-eta")
def test_it_plays_what_a_conic_solver_finds():
    rng, K, scale = np.random.default_rng(0), 30, 0.05
    initial = np.array([0.3, 0.7])
    problem = Problem(H=H, S=S, A=A, episodes=K, initial_state=initial)
    learner = UobReps(radius_scale=scale)
    eta = sqrt(log(H * H * S * A / 0.05) / (S * A * K))
    state = learner.init(problem, Draws(0, 0, 0, 1))
    mass, kernel = state.q.reach_hs[:, :, None] * state.policy_hsa, state.q.kernel_hsat
    np.testing.assert_allclose(mass[1:], 1 / (S * A))  # q_1 = 1 / (S A S)
    counts, begun = np.zeros((H, S, A, S)), np.zeros((H, S, A))
    box = np.zeros(counts.shape), np.ones(counts.shape)
    sets = 0
    for k in range(K):
        mass, kernel = state.q.reach_hs[:, :, None] * state.policy_hsa, state.q.kernel_hsat.copy()
        states, actions, losses = played(rng, initial)
        met = np.arange(H), states, actions
        _, greatest = po_unknown.occupancy_bounds(*box, state.policy_hsa, initial)
        cost = np.zeros((H, S, A))
        cost[met] = eta * losses / (greatest[met[:2]] * state.policy_hsa[met] + eta)
        for h in range(H - 1):
            counts[h, states[h], actions[h], states[h + 1]] += 1
        if any(counts[m].sum() >= max(1, 2 * begun[m]) for m in list(zip(*met, strict=True))[:-1]):
            begun, sets = counts.sum(axis=-1), sets + 1
            box = po_dilated.corners(counts, log(K * H * S * A / 0.05), 2.0, 14 / 3, 1.0, scale)
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        np.testing.assert_allclose(state.lower_hsas, box[0], atol=1e-14)
        np.testing.assert_allclose(state.upper_hsas, box[1], atol=1e-14)
        if k % 5 == 0:
            _, full, last = kl_projections.in_set(initial, mass, kernel, cost, lower=box[0], upper=box[1])
            now = state.q.reach_hs[:, :, None] * state.policy_hsa
            np.testing.assert_allclose(now[:-1, :, :, None] * state.q.kernel_hsat[:-1], full, atol=2e-5)
            np.testing.assert_allclose(now[-1], last, atol=2e-5)
    assert sets >= 6


@pytest.mark.equation("JJLSY20-estimate")
@pytest.mark.parametrize("scale", [0.0, 0.05])
def test_the_estimate_is_optimistic_when_the_set_holds_the_truth(monkeypatch, scale):
    made = planning.random_problem(3, H, S, A)
    problem = Problem(H=H, S=S, A=A, episodes=50, initial_state=made.initial)
    learner = UobReps(exploration=0.1)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    lower, upper = np.maximum(0, made.transition - scale), np.minimum(1, made.transition + scale)
    state = state._replace(lower_hsas=lower, upper_hsas=upper)
    costs = []
    monkeypatch.setattr(relative_entropy, "step", lambda q, initial, kernels, cost: costs.append(cost))
    mean = np.zeros((H, S, A))
    for trajectory in planning.trajectories(H, S, A):
        states, actions = np.array(trajectory).T
        losses = made.loss[np.arange(H), states, actions]
        learner.update(problem, state, Episode(0, states, actions, losses=losses), Draws(0, 0, 0, 2))
        weight = planning.probability(trajectory, made.transition, state.policy_hsa, made.initial)
        mean += weight * costs.pop() / learner.resolved(problem)["step_size"]
    mu = planning.occupancy(made.transition, state.policy_hsa, made.initial)[:, :, None] * state.policy_hsa
    _, greatest = po_unknown.occupancy_bounds(lower, upper, state.policy_hsa, made.initial)
    u = greatest[:, :, None] * state.policy_hsa
    np.testing.assert_allclose(mean, mu / (u + 0.1) * made.loss, rtol=1e-10)
    assert (mean <= made.loss).all()


def test_nothing_seen_is_the_whole_simplex():
    lower, upper = plausible_set(np.zeros((2, 2, 2, 2)), 0.0)
    assert (lower == 0).all()
    assert (upper == 1).all()


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="confidence must be a finite number, greater than 0 and less than 1"):
        UobReps(confidence=1.0)
    with pytest.raises(InvalidInputError, match="uob-reps needs the number of episodes"):
        UobReps().check(Problem(H=1, S=1, A=1, episodes=None))
