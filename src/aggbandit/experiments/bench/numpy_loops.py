"""The two algorithms as anyone would write them in NumPy: what a bench compares with, timed in the same run.

One replica, one episode after the other, each step an array expression.  Sampling uses NumPy's own generator, so the
episodes differ from the package's; the work is the same.
"""

from math import log

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.mdp.tabular import TabularMDP


def known(mdp: TabularMDP, loss: FloatArray, episodes: int, step: float) -> float:
    """Play Algorithm 1; the summed expected loss."""
    p, (H, S, A) = mdp.transition, (mdp.H, mdp.S, mdp.A)
    gamma = 2 * step * H
    rng = np.random.default_rng(0)
    policy = np.full((H, S, A), 1 / A)
    cost = 0.0
    for _ in range(episodes):
        reach = np.zeros((H, S))
        reach[0] = mdp.initial
        for h in range(H - 1):
            reach[h + 1] = np.einsum("sa,sat->t", reach[h][:, None] * policy[h], p[h])
        cost += float((reach[:, :, None] * policy * loss).sum())
        states, actions, total = _episode(rng, p, mdp.initial, policy, loss)
        bonus = (3 * gamma * H * policy / (reach[:, :, None] * policy + gamma)).sum(axis=2)
        B = np.zeros((H, S, A))
        following = np.zeros(S)
        for h in range(H - 1, -1, -1):
            B[h] = bonus[h][:, None] + (p[h] @ following if h + 1 < H else 0.0)
            following = (policy[h] * B[h]).sum(axis=1)
        exponent = step * B
        steps = np.arange(H)
        visited = reach[steps, states] * policy[steps, states, actions]
        exponent[steps, states, actions] -= step * total / (visited + gamma)
        policy = _reweighted(policy, exponent)
    return cost


def unknown(
    mdp: TabularMDP, loss: FloatArray, episodes: int, step: float, confidence: float, radius_scale: float
) -> float:
    """Play Algorithm 2, the bounds of all targets of a step together; the summed expected loss."""
    p, (H, S, A) = mdp.transition, (mdp.H, mdp.S, mdp.A)
    gamma = 2 * step * H
    width = log(10 * H * S * A * episodes / confidence)
    rng = np.random.default_rng(0)
    policy = np.full((H, S, A), 1 / A)
    counts = np.zeros((H, S, A, S))
    cost = 0.0
    for _ in range(episodes):
        reach = np.zeros((H, S))
        reach[0] = mdp.initial
        for h in range(H - 1):
            reach[h + 1] = np.einsum("sa,sat->t", reach[h][:, None] * policy[h], p[h])
        cost += float((reach[:, :, None] * policy * loss).sum())
        states, actions, total = _episode(rng, p, mdp.initial, policy, loss)

        visits = counts.sum(axis=3, keepdims=True)
        seen = np.maximum(visits, 1)
        mean = counts / seen
        radius = radius_scale * (4 * np.sqrt(mean * width / seen) + 10 * width / seen)
        low = np.where(visits > 0, np.maximum(mean - radius, 0), 0.0)
        high = np.where(visits > 0, np.minimum(mean + radius, 1), 1.0)
        upper = _all_targets(low, high, policy, mdp.initial, 1.0)
        lower = _all_targets(low, high, policy, mdp.initial, -1.0)

        weights = upper[:, :, None] * policy + gamma
        local = (3 * gamma * H * policy + H * policy * (upper - lower)[:, :, None] * policy) / weights
        bonus = local.sum(axis=2)
        B = np.zeros((H, S, A))
        following = np.zeros(S)
        for h in range(H - 1, -1, -1):
            B[h] = bonus[h][:, None]
            if h + 1 < H:
                B[h] += _extreme(low[h], high[h], following[None], 1.0)[0]
            following = (policy[h] * B[h]).sum(axis=1)
        exponent = step * B
        steps = np.arange(H)
        exponent[steps, states, actions] -= step * total / weights[steps, states, actions]
        policy = _reweighted(policy, exponent)
        counts[steps[:-1], states[:-1], actions[:-1], states[1:]] += 1  # one entry a step: no index twice
    return cost


def _all_targets(low: FloatArray, high: FloatArray, policy: FloatArray, initial: FloatArray, sign: float) -> FloatArray:
    H, S, _ = policy.shape
    targets = np.eye(S)  # one row a target, its value at each state of the current step
    bounds = np.empty((H, S))
    rows = [np.eye(S)]
    for h in range(H - 2, -1, -1):
        values = _extreme(low[h], high[h], targets, sign)
        targets = np.concatenate([np.eye(S), np.einsum("ksa,sa->ks", values, policy[h])])
    rows = np.split(targets @ initial, H) if H > 1 else [initial]
    for h in range(H):
        bounds[h] = rows[h]
    return bounds


def _extreme(low: FloatArray, high: FloatArray, f: FloatArray, sign: float) -> FloatArray:
    """(k, S, A): the greatest (sign 1) or least (-1) mean of each row of f (k, S) over box and simplex."""
    order = np.argsort(-sign * f, axis=1)
    room = (high - low)[:, :, order]  # (S, A, k, S)
    rest = (1 - low.sum(axis=2))[:, :, None, None]
    given = np.clip(rest - (np.cumsum(room, axis=3) - room), 0, room)
    value: FloatArray = low @ f.T + (given * np.take_along_axis(f, order, axis=1)).sum(axis=3)
    return np.moveaxis(value, 2, 0)


def _episode(
    rng: np.random.Generator, p: FloatArray, initial: FloatArray, policy: FloatArray, loss: FloatArray
) -> tuple[IntArray, IntArray, float]:
    H, S, A = loss.shape
    states, actions, total = np.empty(H, np.int64), np.empty(H, np.int64), 0.0
    s = min(int(np.searchsorted(initial.cumsum(), rng.random(), side="right")), S - 1)
    for h in range(H):
        a = min(int(np.searchsorted(policy[h, s].cumsum(), rng.random(), side="right")), A - 1)
        states[h], actions[h], total = s, a, total + loss[h, s, a]
        s = min(int(np.searchsorted(p[h, s, a].cumsum(), rng.random(), side="right")), S - 1)
    return states, actions, total


def _reweighted(policy: FloatArray, exponent: FloatArray) -> FloatArray:
    weights = policy * np.exp(exponent - exponent.max(axis=2, keepdims=True))
    normalized: FloatArray = weights / weights.sum(axis=2, keepdims=True)
    return normalized
