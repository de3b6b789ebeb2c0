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
