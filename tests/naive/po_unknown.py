"""Algorithm 2 of [LM25] as its detailed pseudo-code reads, and its pieces from their definitions.

Slow, plain, independent of the package.  Indices count from 0; `boxes` are pairs (lower, upper) of (H, S, A, S).
"""

from math import log, sqrt

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array


def greatest_mean(lower, upper, values):
    """max q·values over distributions q with lower <= q <= upper, and a q that attains it."""
    q = lower.astype(float).copy()
    left = 1.0 - q.sum()
    for i in sorted(range(len(values)), key=lambda j: -values[j]):
        added = min(upper[i] - lower[i], left)
        q[i] += added
        left -= added
    return float(q @ values), q


def least_mean(lower, upper, values):
    value, q = greatest_mean(lower, upper, -np.asarray(values))
    return -value, q


def greatest_mean_by_lp(lower, upper, values, sense=1.0):
    """The same by linear programming; `sense=-1.0` for the least."""
    found = linprog(
        -sense * np.asarray(values), A_eq=np.ones((1, len(values))), b_eq=[1.0], bounds=np.stack([lower, upper], axis=1)
    )
    assert found.status == 0, found.message
    return -sense * found.fun


def confidence_box(counts, episodes, confidence, radius_scale=1.0):
    """The set of ERRATA A6 and A7 as a box, from counts n(h, s, a, s') of shape (H, S, A, S)."""
    H, S, A, _ = counts.shape
    logarithm = log(10 * H * S * A * episodes / confidence)
    lower, upper = np.zeros(counts.shape), np.ones(counts.shape)
    for h in range(H):
        for s in range(S):
            for a in range(A):
                n = counts[h, s, a].sum()
                if n == 0:
                    continue  # the whole simplex, whatever the scale
                for t in range(S):
                    mean = counts[h, s, a, t] / max(n, 1)
                    radius = 4 * sqrt(mean * logarithm / max(n, 1)) + 10 * logarithm / max(n, 1)
                    lower[h, s, a, t] = max(0.0, mean - radius_scale * radius)
                    upper[h, s, a, t] = min(1.0, mean + radius_scale * radius)
    return lower, upper


def occupancy_bounds(lower, upper, policy, initial):
    """Least and greatest probability of every (h, s): target by target, backwards from the target."""
    H, S, A = policy.shape
    bounds = np.empty((2, H, S))
    for sign, mean in ((0, least_mean), (1, greatest_mean)):
        for target_h in range(H):
            for target_s in range(S):
                f = np.zeros(S)
                f[target_s] = 1.0
                for h in range(target_h - 1, -1, -1):
                    f = np.array(
                        [
                            sum(policy[h, s, a] * mean(lower[h, s, a], upper[h, s, a], f)[0] for a in range(A))
                            for s in range(S)
                        ]
                    )
                bounds[sign, target_h, target_s] = initial @ f
    return bounds[0], bounds[1]


def occupancy_bound_by_lp(lower, upper, policy, initial, target_h, target_s, sense=1.0):
    """The greatest (least) probability of one (h, s), without any backward argument.

    A linear program over the joint law x_h(s, a, s') of step h under some kernel of the set:
    Σ_{s'} x_h(s, a, s') = π_h(a|s) Pr[s_h = s]  and  lower · Σ_{s'} x <= x <= upper · Σ_{s'} x.
    """
    _, S, A = policy.shape
    if target_h == 0:
        return float(initial[target_s])
    count = target_h * S * A * S

    def at(h, s, a, t):
        return ((h * S + s) * A + a) * S + t

    equal, equal_to, below = [], [], []
    for h in range(target_h):
        for s in range(S):
            for a in range(A):
                mass = np.zeros(count)
                mass[[at(h, s, a, t) for t in range(S)]] = 1.0
                row = mass.copy()
                if h > 0:
                    for before in range(S):
                        for b in range(A):
                            row[at(h - 1, before, b, s)] -= policy[h, s, a]
                equal.append(row)
                equal_to.append(policy[h, s, a] * initial[s] if h == 0 else 0.0)
                for t in range(S):
                    one = np.zeros(count)
                    one[at(h, s, a, t)] = 1.0
                    below.append(lower[h, s, a, t] * mass - one)
                    below.append(one - upper[h, s, a, t] * mass)
    objective = np.zeros(count)
    for s in range(S):
        for a in range(A):
            objective[at(target_h - 1, s, a, target_s)] = -sense
    found = linprog(
        objective,
        A_ub=csr_array(np.array(below)),
        b_ub=np.zeros(len(below)),
        A_eq=csr_array(np.array(equal)),
        b_eq=equal_to,
        bounds=(0.0, None),
    )
    assert found.status == 0, found.message
    return -sense * found.fun


def local_bonus(policy, greatest, least, exploration):
    """b̃ and b̄, each (H, S)."""
    H, S, A = policy.shape
    tilde, bar = np.zeros((H, S)), np.zeros((H, S))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                pi = policy[h, s, a]
                below = greatest[h, s] * pi + exploration
                tilde[h, s] += 3 * exploration * H * pi / below
                bar[h, s] += H * pi * (greatest[h, s] * pi - least[h, s] * pi) / below
    return tilde, bar


def bonus(lower, upper, policy, local):
    """B̂: the local bonus backed up through the kernel of the set that makes it greatest."""
    H, S, A = policy.shape
    B = np.zeros((H, S, A))
    following = np.zeros(S)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                ahead = greatest_mean(lower[h, s, a], upper[h, s, a], following)[0] if h + 1 < H else 0.0
                B[h, s, a] = local[h, s] + ahead
        following = (policy[h] * B[h]).sum(axis=1)
    return B


class NaiveUnknown:
    """Algorithm 2: `policy` is to be played next, `update` takes the trajectory and the total."""

    def __init__(
        self, H, S, A, episodes, initial, step_size, exploration, confidence=0.05, bonus_scale=1.0, radius_scale=1.0
    ):
        self.policy = np.full((H, S, A), 1.0 / A)
        self.counts = np.zeros((H, S, A, S))
        self.initial = np.asarray(initial, dtype=float)
        self.episodes, self.confidence = episodes, confidence
        self.step_size, self.exploration = step_size, exploration
        self.bonus_scale, self.radius_scale = bonus_scale, radius_scale

    def update(self, states, actions, total):
        H, S, A = self.policy.shape
        # counts hold the episodes before this one
        self.lower, self.upper = confidence_box(self.counts, self.episodes, self.confidence, self.radius_scale)
        self.least, self.greatest = occupancy_bounds(self.lower, self.upper, self.policy, self.initial)
        estimate = np.zeros((H, S, A))
        for h in range(H):
            s, a = states[h], actions[h]
            estimate[h, s, a] = total / (self.greatest[h, s] * self.policy[h, s, a] + self.exploration)
        tilde, bar = local_bonus(self.policy, self.greatest, self.least, self.exploration)
        self.B = bonus(self.lower, self.upper, self.policy, self.bonus_scale * (tilde + bar))
        weights = self.policy * np.exp(-self.step_size * (estimate - self.B))
        self.policy = weights / weights.sum(axis=-1, keepdims=True)
        for h in range(H - 1):  # nothing follows the last step
            self.counts[h, states[h], actions[h], states[h + 1]] += 1
