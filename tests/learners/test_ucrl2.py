from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.ucrl2 import Ucrl2, optimistic_values
from naive import optimistic_values as naive
from naive.optimistic_values import Seen


@pytest.mark.equation("JOA10-rewards")
@pytest.mark.equation("JOA10-balls")
@pytest.mark.equation("JOA10-epochs")
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_it_plays_as_the_pseudo_code_reads(scale):
    H, S, A, K = 3, 3, 2, 100
    problem = Problem(H=H, S=S, A=A, episodes=None)
    learner, rng, seen = Ucrl2(bonus_scale=scale, radius_scale=scale), np.random.default_rng(0), Seen(H, S, A)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    begun = dict.fromkeys(np.ndindex(H, S, A), 0)
    policies = 0
    for k in range(K):
        before = state.policy_hsa.copy()
        states, actions, losses = rng.integers(S, size=H), rng.integers(A, size=H), rng.random(H)
        seen.add(states, actions, losses)
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        if all(seen.visits(*place) < max(1, 2 * begun[place]) for place in begun):
            np.testing.assert_array_equal(state.policy_hsa, before)
            continue
        policies += 1
        begun = {place: seen.visits(*place) for place in begun}
        Q, V, t = np.zeros((H, S, A)), np.zeros(S), H * (k + 1)
        for h in reversed(range(H)):
            for s, a in np.ndindex(S, A):
                n = seen.visits(h, s, a)
                width = scale * sqrt(7 * log(2 * H * S * A * t / 0.05) / (2 * max(1, n)))
                Q[h, s, a] = min(1.0, 1 - seen.mean_loss(h, s, a) + width) if n else 1.0
                if h + 1 < H:
                    mean, radius = np.full(S, 1 / S), 2.0
                    if n:
                        mean = np.bincount(seen.following[h, s, a], minlength=S) / n
                        radius = scale * sqrt(14 * S * log(2 * H * A * t / 0.05) / n)
                    Q[h, s, a] += naive.best_in_ball(mean, radius, V)
            V = Q[h].max(axis=-1)
        np.testing.assert_array_equal(state.policy_hsa > 0, Q.max(axis=-1, keepdims=True) - 1e-8 <= Q)
    assert 5 < policies < 60


@pytest.mark.parametrize("seed", range(5))
def test_the_best_model_of_the_balls_is_that_of_a_linear_programme(seed):
    rng = np.random.default_rng(seed)
    H, S, A = 3, 4, 2
    mean = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
    radius, reward = 2.5 * rng.random((H, S, A)) * (rng.random((H, S, A)) < 0.8), rng.random((H, S, A))
    Q = optimistic_values(mean, radius, reward)
    V = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s, a in np.ndindex(S, A):
            ahead = naive.best_in_ball(mean[h, s, a], radius[h, s, a], V[h + 1]) if h + 1 < H else 0.0
            assert Q[h, s, a] == pytest.approx(reward[h, s, a] + ahead, abs=1e-9)
        V[h] = Q[h].max(axis=-1)


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="radius_scale must be a finite number, at least 0"):
        Ucrl2(radius_scale=-1.0)
