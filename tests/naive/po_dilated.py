"""[LWL21] and DAPO as their pseudo-code reads, place by place."""

from math import exp, log, sqrt

import numpy as np

from naive.po_unknown import greatest_mean, occupancy_bounds


def corners(counts, log_term, root, linear, less=0.0, radius_scale=1.0):
    """The box around the frequencies; the whole simplex where nothing was seen."""
    lower, upper = np.zeros(counts.shape), np.ones(counts.shape)
    for h, s, a, t in np.ndindex(*counts.shape):
        n = counts[h, s, a].sum()
        if n > 0:
            mean = counts[h, s, a, t] / n
            m = max(1.0, n - less)
            radius = radius_scale * (root * sqrt(mean * log_term / m) + linear * log_term / m)
            lower[h, s, a, t], upper[h, s, a, t] = max(0.0, mean - radius), min(1.0, mean + radius)
    return lower, upper


def backed_up(lower, upper, policy, local, factor):
    """B_h(s, a) = b_h(s) + factor · max_q Σ q π B."""
    H, S, A = policy.shape
    B = np.zeros((H + 1, S, A))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                B[h, s, a] = local[h, s]
                if h + 1 < H:
                    ahead = [sum(policy[h + 1, t, c] * B[h + 1, t, c] for c in range(A)) for t in range(S)]
                    B[h, s, a] += factor * greatest_mean(lower[h, s, a], upper[h, s, a], np.array(ahead))[0]
    return B[:H]


class Dilated:
    """`policy` is to be played next; `update` takes a trajectory and its losses.  `transition` None: unknown."""

    def __init__(self, H, S, A, K, initial, transition=None, confidence=0.05, bonus_scale=1.0, radius_scale=1.0):
        self.shape, self.K, self.initial, self.transition = (H, S, A), K, initial, transition
        self.confidence, self.bonus_scale, self.radius_scale = confidence, bonus_scale, radius_scale
        self.policy = np.full((H, S, A), 1 / A)
        self.score = np.zeros((H, S, A))  # Σ (Q̂ - B)
        self.counts = np.zeros((H, S, A, S))
        self.begun = np.zeros((H, S, A))
        self.box = np.zeros((H, S, A, S)), np.ones((H, S, A, S))
        if transition is not None:
            self.box = transition, transition
        self.step = min(1 / (24 * H**3), 1 / sqrt(H**2 * S * A * K))
        self.epochs = 1

    def update(self, states, actions, losses):
        H, S, A = self.shape
        gamma = 2 * self.step * H
        least, greatest = occupancy_bounds(*self.box, self.policy, self.initial)
        local = np.zeros((H, S))
        for h, s, a in np.ndindex(H, S, A):
            pi = self.policy[h, s, a]
            width = greatest[h, s] * pi - least[h, s] * pi
            local[h, s] += self.bonus_scale * pi * (3 * gamma * H + H * width) / (greatest[h, s] * pi + gamma)
        B = backed_up(*self.box, self.policy, local, 1 + 1 / H)
        self.score -= B
        for h in range(H):
            s, a = states[h], actions[h]
            self.score[h, s, a] += sum(losses[h:]) / (greatest[h, s] * self.policy[h, s, a] + gamma)
        for h, s in np.ndindex(H, S):
            weights = [exp(-self.step * (self.score[h, s, a] - self.score[h, s].min())) for a in range(A)]
            self.policy[h, s] = np.array(weights) / sum(weights)
        if self.transition is not None:
            return
        doubled = False
        for h in range(H - 1):
            s, a = states[h], actions[h]
            self.counts[h, s, a, states[h + 1]] += 1
            doubled = doubled or self.counts[h, s, a].sum() >= max(1, 2 * self.begun[h, s, a])
        if doubled:
            self.epochs += 1
            self.begun = self.counts.sum(axis=-1)
            log_term = log(self.K * H * S * A / self.confidence)
            self.box = corners(self.counts, log_term, 4.0, 28 / 3, 0.0, self.radius_scale)


class Dapo:
    """The same for DAPO; `update` also takes the policy that played."""

    def __init__(
        self, H, S, A, K, initial, transition=None, aggregate=False, delay=0.0, confidence=0.05, radius_scale=1.0
    ):
        self.shape, self.K, self.initial, self.transition, self.aggregate = (H, S, A), K, initial, transition, aggregate
        self.log_term, self.radius_scale = log(10 * H * S * A * K / confidence), radius_scale
        self.policy = np.full((H, S, A), 1 / A)
        self.score = np.zeros((H, S, A))
        self.counts = np.zeros((H, S, A, S))
        self.step = 1 / sqrt(H**2 * S * A * K + H**4 * (K + delay))
        if transition is None:
            self.step *= H
        self.step = min(self.step, 1 / ((5 if transition is None else 3) * H**2))  # η B <= 1, as b <= 3 H + 2 H

    def update(self, states, actions, losses, played):
        H, S, A = self.shape
        gamma = 2 * self.step * H
        if self.transition is None:
            box = corners(self.counts, self.log_term, 4.0, 10.0, 0.0, self.radius_scale)
        else:
            box = self.transition, self.transition
        least, greatest = occupancy_bounds(*box, played, self.initial)
        local, ratio = np.zeros((H, S)), np.zeros((H, S, A))
        for h, s, a in np.ndindex(H, S, A):
            ratio[h, s, a] = played[h, s, a] / max(played[h, s, a], self.policy[h, s, a])
            below = greatest[h, s] * played[h, s, a] + gamma
            weight = self.policy[h, s, a] * ratio[h, s, a]
            local[h, s] += 3 * gamma * H * weight / below
            local[h, s] += 2 * H * weight * (greatest[h, s] - least[h, s]) * played[h, s, a] / below
        self.score -= backed_up(*box, played, local, 1.0)
        for h in range(H):
            s, a = states[h], actions[h]
            told = sum(losses) if self.aggregate else sum(losses[h:])
            self.score[h, s, a] += ratio[h, s, a] * told / (greatest[h, s] * played[h, s, a] + gamma)
        for h, s in np.ndindex(H, S):
            weights = [exp(-self.step * (self.score[h, s, a] - self.score[h, s].min())) for a in range(A)]
            self.policy[h, s] = np.array(weights) / sum(weights)
        for h in range(H - 1):
            self.counts[h, states[h], actions[h], states[h + 1]] += 1
