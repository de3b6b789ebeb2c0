from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.oppo import Oppo, add_value
from aggbandit.learners.oppo import optimistic_values as optimistic
from naive import optimistic_values


@pytest.mark.equation("CYJW20-update")
@pytest.mark.equation("CYJW20-Q")
@pytest.mark.equation("CYJW20-alpha")
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_it_plays_as_the_pseudo_code_reads(scale):
    H, S, A, K = 3, 2, 2, 40
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner, rng = Oppo(bonus_scale=scale), np.random.default_rng(0)
    d = S * S * A
    alpha, beta = sqrt(2 * log(A) / (H * H * K)), scale * sqrt(d * H * H * log(d * H * K / 0.05))
    state = learner.init(problem, Draws(0, 0, 0, 1))
    pairs = {place: [] for place in np.ndindex(H, S, A)}
    unclipped = 0
    for k in range(K):
        policy = state.policy_hsa.copy()
        states, actions, table = rng.integers(S, size=H), rng.integers(A, size=H), rng.random((H, S, A))
        states[0] = 0
        Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
        for h in reversed(range(H)):
            for s, a in np.ndindex(S, A):
                value = 1 - table[h, s, a]
                if h + 1 < H:
                    gram, w = optimistic_values.regression(pairs[h, s, a], S)
                    value += V[h + 1] @ w + beta * sqrt(V[h + 1] @ np.linalg.solve(gram, V[h + 1]))
                Q[h, s, a] = min(max(value, 0.0), H - h)
                unclipped += h + 1 < H and Q[h, s, a] == value
            V[h] = (policy[h] * Q[h]).sum(axis=-1)
        for h in range(H - 1):
            pairs[h, states[h], actions[h]].append((V[h + 1].copy(), V[h + 1][states[h + 1]]))
        state = learner.update(problem, state, Episode(k, states, actions, table=table), Draws(0, 0, k, 2))
        weights = policy * np.exp(alpha * Q)
        np.testing.assert_allclose(state.policy_hsa, weights / weights.sum(axis=-1, keepdims=True), rtol=1e-10)
    assert (unclipped > 100) == (scale < 1.0)


def test_values_lie_between_nothing_and_what_is_still_to_come():
    H, S, A = 4, 2, 2
    problem, rng = Problem(H=H, S=S, A=A, episodes=9), np.random.default_rng(1)
    state = Oppo().init(problem, Draws(0, 0, 0, 1))
    for beta in (0.0, 0.3, 100.0):
        q, v = optimistic(state, rng.random((H, S, A)), beta)
        most = (H - np.arange(H))[:, None, None]
        assert (q >= 0).all()
        assert (q <= most).all()
        np.testing.assert_allclose(v, q.mean(axis=-1), rtol=1e-14)
        if beta > 1.0:  # nothing is known: all but the last step, whose rewards are shown, promise everything
            np.testing.assert_array_equal(q[:-1], np.broadcast_to(most[:-1], (H - 1, S, A)))


@pytest.mark.equation("CYJW20-Q")
def test_it_is_optimistic_where_the_model_lies_within_beta():
    """Q >= min(r + p V, rewards to come) with β = max ‖w − p‖_Λ, by Cauchy and Schwarz, whatever was seen."""
    H, S, A = 4, 3, 2
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(S), size=(H, S, A))
    learner, problem = Oppo(bonus_scale=0.01), Problem(H=H, S=S, A=A, episodes=60)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    below = 0
    for k in range(60):
        states, actions = np.zeros(H, int), rng.integers(A, size=H)
        for h in range(H - 1):
            states[h + 1] = rng.choice(S, p=p[h, states[h], actions[h]])
        off = state.fit_hsai - p[:-1]
        gram = np.linalg.inv(state.inverse_hsaij)
        beta = np.sqrt(np.einsum("hsai,hsaij,hsaj->hsa", off, gram, off).max())
        reward = rng.random((H, S, A))
        Q, V = optimistic(state, reward, beta)
        for h in range(H):
            right = reward[h] + (p[h] @ V[h + 1] if h + 1 < H else 0.0)
            assert (Q[h] >= np.minimum(right, H - h) - 1e-12).all()
            below += h + 1 < H and (Q[h] < H - h).sum()
        state = learner.update(problem, state, Episode(k, states, actions, table=1 - reward), Draws(0, 0, k, 2))
    assert below > 100  # not all of it is the cap


@pytest.mark.equation("CYJW20-regression")
def test_inverses_are_kept_by_rank_one_updates():
    rng = np.random.default_rng(0)
    inverse, pairs = np.eye(3), []
    for _ in range(500):
        v = 5 * rng.random(3)
        add_value(inverse, v)
        pairs.append((v, 0.0))
    np.testing.assert_allclose(inverse @ optimistic_values.regression(pairs, 3)[0], np.eye(3), atol=1e-9)


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="bonus_scale must be a finite number, at least 0"):
        Oppo(bonus_scale=-1.0)
