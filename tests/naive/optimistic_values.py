"""Means, bonuses and value recursions of the optimistic learners, place by place, from lists of what was seen."""

from itertools import product
from math import log, sqrt

import numpy as np


class Seen:
    """Every visit of every place, kept."""

    def __init__(self, H, S, A):
        self.shape = H, S, A
        self.losses = {place: [] for place in product(range(H), range(S), range(A))}
        self.following = {place: [] for place in product(range(H), range(S), range(A))}

    def add(self, states, actions, losses):
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            self.losses[h, s, a].append(losses[h])
            if h + 1 < len(states):
                self.following[h, s, a].append(states[h + 1])

    def visits(self, *place):
        return len(self.losses[place])

    def mean_loss(self, *place):
        return float(np.mean(self.losses[place])) if self.losses[place] else 0.0

    def mean_next(self, h, s, a, values):
        """Σ p̄ V; 0 where nothing was seen."""
        met = self.following[h, s, a]
        return sum(values[t] for t in met) / len(met) if met else 0.0


def pomd_q(seen, policy, K, confidence, bonus_scale=1.0):
    """Q of [SERM20] Algorithm 2."""
    H, S, A = seen.shape
    Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                n = max(1, seen.visits(h, s, a))
                b = sqrt(2 * log(6 * S * A * H * K / confidence) / n)
                if h + 1 < H:
                    b += H * sqrt(4 * S * log(9 * S * A * H * K / confidence) / n)
                ahead = seen.mean_next(h, s, a, V[h + 1]) if h + 1 < H else 0.0
                Q[h, s, a] = max(0.0, seen.mean_loss(h, s, a) - bonus_scale * b + ahead)
            V[h, s] = sum(policy[h, s, a] * Q[h, s, a] for a in range(A))
    return Q


def regression(pairs, S):
    """Λ = I + Σ V V^T and w = Λ^{-1} Σ V y of a list of (V, y)."""
    gram, target = np.eye(S), np.zeros(S)
    for v, y in pairs:
        gram += np.outer(v, v)
        target += v * y
    return gram, np.linalg.solve(gram, target)


def ucbvi_q(seen, before, K, confidence, bonus, bonus_scale=1.0):
    """Q of [AOM17] after what was seen, from the Q of before."""
    H, S, A = seen.shape
    L = log(5 * H * S * A * H * K / confidence)
    Q, V = before.copy(), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                n = seen.visits(h, s, a)
                if n == 0:
                    continue
                b = sqrt(log(4 * H * S * A * K / confidence) / (2 * n))
                value = 1 - seen.mean_loss(h, s, a)
                if h + 1 < H:
                    ahead = [V[h + 1][t] for t in seen.following[h, s, a]]
                    value += np.mean(ahead)
                    if bonus == "ch":
                        b += 7 * H * L * sqrt(1 / n)
                    else:
                        rare = []
                        for t in seen.following[h, s, a]:
                            visits = sum(seen.visits(h + 1, t, c) for c in range(A))
                            rare.append(min(100**2 * H**3 * S**2 * A * L**2 / max(visits, 1), H**2))
                        b += sqrt(8 * L * np.var(ahead) / n) + 14 * H * L / (3 * n) + sqrt(8 * np.mean(rare) / n)
                Q[h, s, a] = min(before[h, s, a], value + bonus_scale * b)
            V[h, s] = max(Q[h, s])
    return Q


def best_in_ball(mean, radius, values):
    """max q·values over distributions with ‖q − mean‖₁ <= radius, by a linear programme in (q, |q − mean|)."""
    from scipy.optimize import linprog

    S = len(mean)
    eye = np.eye(S)
    rows = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, S)), np.ones((1, S))]])
    found = linprog(
        np.concatenate([-np.asarray(values), np.zeros(S)]),
        A_ub=rows,
        b_ub=np.concatenate([mean, -np.asarray(mean), [radius]]),
        A_eq=np.concatenate([np.ones(S), np.zeros(S)])[None],
        b_eq=[1.0],
        bounds=(0.0, None),
    )
    assert found.status == 0, found.message
    return -found.fun
