from math import log, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.ucb_h import UcbH
from aggbandit.testing.learner_contract import walk
from naive import planning


@pytest.mark.equation("JABJ18-update")
@pytest.mark.equation("JABJ18-bonus")
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_it_plays_as_the_pseudo_code_reads(scale):
    H, S, A, K = 3, 2, 2, 200
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner, rng = UcbH(constant=2.0, bonus_scale=scale), np.random.default_rng(0)
    iota = log(S * A * H * K / 0.05)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    Q, V, N = np.full((H, S, A), float(H)), np.full((H + 1, S), float(H)), np.zeros((H, S, A))
    V[H] = 0
    for k in range(K):
        states, actions, losses = rng.integers(S, size=H), rng.integers(A, size=H), rng.random(H)
        for h in range(H):  # as printed: step by step, in the order of the episode
            s, a = states[h], actions[h]
            N[h, s, a] += 1
            t = N[h, s, a]
            alpha, b = (H + 1) / (H + t), scale * 2.0 * sqrt(H**3 * iota / t)
            ahead = V[h + 1, states[h + 1]] if h + 1 < H else 0.0
            Q[h, s, a] = (1 - alpha) * Q[h, s, a] + alpha * (1 - losses[h] + ahead + b)
            V[h, s] = min(H, Q[h, s].max())
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        np.testing.assert_allclose(state.q_hsa, Q, rtol=1e-12)
    met = N.sum(axis=-1) > 0
    np.testing.assert_array_equal((state.policy_hsa > 0)[met], (Q.max(axis=-1, keepdims=True) - 1e-9 <= Q)[met])


def test_the_weights_of_past_targets_sum_to_1():
    # α_t^i = α_i Π_{j > i} (1 − α_j), and α_1 = 1: nothing is left of the first value
    H = 5
    alpha = [(H + 1) / (H + t) for t in range(1, 101)]
    weights = [a * np.prod([1 - later for later in alpha[i + 1 :]]) for i, a in enumerate(alpha)]
    assert sum(weights) == pytest.approx(1.0, rel=1e-12)
    problem = Problem(H=H, S=1, A=1, episodes=100)
    state = UcbH(bonus_scale=0.0).init(problem, Draws(0, 0, 0, 1))
    losses = np.random.default_rng(0).random((100, H))
    for k in range(100):
        seen = Episode(k, np.zeros(H, int), np.zeros(H, int), losses=losses[k])
        state = UcbH(bonus_scale=0.0).update(problem, state, seen, Draws(0, 0, k, 2))
    np.testing.assert_allclose(state.q_hsa[-1, 0, 0], np.dot(weights, 1 - losses[:, -1]), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.05])  # the theory's; one that brings values down
def test_it_is_optimistic(scale):
    H, S, A, K = 3, 2, 2, 800
    lowered = 0
    for seed in range(3):
        made = planning.random_problem(seed, H, S, A)
        mdp = ab.TabularMDP(made.transition, initial_state=made.initial)
        session = ab.start(
            UcbH(bonus_scale=scale), Problem(H=H, S=S, A=A, episodes=K, initial_state=made.initial), seed=seed
        )
        rng = np.random.default_rng(seed)
        for _ in range(K):
            states, actions = walk(mdp, session.policy, rng)
            means = made.loss[np.arange(H), states, actions]
            session.update(states, actions, (rng.random(H) < means).astype(float))
        best, _ = ab.planning.best_policy(mdp, made.loss)
        optimal = (H - np.arange(H))[:, None, None] - planning.action_values(
            made.transition, np.eye(A)[best], made.loss
        )
        found = session._state.q_hsa
        assert (found >= optimal).all()
        lowered += (found < H).sum()
    assert lowered > 0 or scale == 1.0


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="constant must be a finite number, at least 0"):
        UcbH(constant=-1.0)
