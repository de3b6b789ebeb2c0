from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.parts import kernel_balls
from aggbandit.learners.uc_o_reps import UcOReps
from naive import kl_projections

H, S, A = 3, 2, 2


@pytest.mark.equation("RM19-step")
@pytest.mark.equation("RM19-set")
@pytest.mark.equation("RM19-eta")
def test_it_plays_what_a_conic_solver_finds():
    rng, K, scale = np.random.default_rng(0), 30, 0.1
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner = UcOReps(radius_scale=scale)
    eta = sqrt(log((H * S) ** 2 * A) / (H**2 * K))
    assert learner.resolved(problem)["step_size"] == pytest.approx(eta, rel=1e-14)
    assert UcOReps(step_size="balanced").resolved(problem)["step_size"] == pytest.approx(H * eta, rel=1e-14)
    assert UcOReps(step_size=0.2).resolved(problem)["step_size"] == 0.2
    state = learner.init(problem, Draws(0, 0, 0, 1))
    counts, begun = np.zeros((H, S, A, S)), np.zeros((H, S, A))
    mean, radius = np.full((H, S, A, S), 0.5), np.full((H, S, A), 2.0)
    for k in range(K):
        mass, kernel = state.q.reach_hs[:, :, None] * state.policy_hsa, state.q.kernel_hsat.copy()
        states, actions, table = rng.integers(S, size=H), rng.integers(A, size=H), rng.random((H, S, A))
        states[0] = 0
        doubled = False
        for h in range(H - 1):
            place = h, states[h], actions[h]
            counts[(*place, states[h + 1])] += 1
            doubled = doubled or counts[place].sum() >= max(1, 2 * begun[place])
        if doubled:
            begun = counts.sum(axis=-1)
            for place in np.ndindex(H, S, A):
                n = counts[place].sum()
                if n > 0:
                    mean[place] = counts[place] / n
                    radius[place] = scale * sqrt(2 * S * log(K * H * S * A / 0.05) / n)
        state = learner.update(problem, state, Episode(k, states, actions, table=table), Draws(0, 0, k, 2))
        np.testing.assert_allclose(state.mean_hsas, mean, atol=1e-14)
        np.testing.assert_allclose(state.radius_hsa, radius, rtol=1e-14)
        if k % 5 == 0:
            _, full, last = kl_projections.in_set(np.eye(S)[0], mass, kernel, eta * table, mean=mean, radius=radius)
            now = state.q.reach_hs[:, :, None] * state.policy_hsa
            np.testing.assert_allclose(now[:-1, :, :, None] * state.q.kernel_hsat[:-1], full, atol=5e-5)
            np.testing.assert_allclose(now[-1], last, atol=5e-5)


def test_nothing_seen_is_the_whole_simplex_whatever_the_scale():
    mean, radius = kernel_balls.around(np.zeros((1, 2, 2, 2)), 1.0, 0.0)
    assert (mean == 0.5).all()
    assert (radius == 2.0).all()


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="step_size must be a positive number or one of 'paper', 'balanced'"):
        UcOReps(step_size="main")
    with pytest.raises(InvalidInputError, match="step_size must be a finite number, greater than 0"):
        UcOReps(step_size=0.0)
