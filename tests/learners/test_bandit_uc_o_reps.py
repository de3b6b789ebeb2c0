from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.bandit_uc_o_reps import BanditUcOReps
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.parts import relative_entropy
from naive import planning


@pytest.mark.equation("RM19b-estimate")
@pytest.mark.equation("RM19b-eta")
def test_losses_are_divided_by_its_own_occupancy(monkeypatch):
    H, S, A, K = 3, 2, 2, 20
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner = BanditUcOReps(floor=0.05)
    rng = np.random.default_rng(0)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    eta = sqrt(log((H * S) ** 2 * A) / (S * A * K))
    costs, real = [], relative_entropy.step

    def spy(q, initial, kernels, cost):
        costs.append(cost)
        real(q, initial, kernels, cost)

    monkeypatch.setattr(relative_entropy, "step", spy)
    floored = 0
    for k in range(K):
        states, actions, losses = rng.integers(S, size=H), rng.integers(A, size=H), rng.random(H)
        states[0] = 0
        mu = planning.occupancy(state.q.kernel_hsat, state.policy_hsa, np.eye(S)[0])[:, :, None] * state.policy_hsa
        expected = np.zeros((H, S, A))
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            expected[h, s, a] = eta * losses[h] / max(mu[h, s, a], 0.05)
            floored += mu[h, s, a] < 0.05
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        np.testing.assert_allclose(costs[-1], expected, rtol=1e-9)
    assert 0 < floored < H * K / 2


def test_a_floor_of_0_is_refused():
    with pytest.raises(InvalidInputError, match="floor must be a finite number, greater than 0"):
        BanditUcOReps(floor=0.0)
