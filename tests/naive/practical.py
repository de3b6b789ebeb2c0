"""The practical learners from their formulas, with dictionaries and plain sums; imports nothing of the package."""

import numpy as np

MODEL_RATE, BASELINE_RATE, CAUTION, NOISE, PRIOR = 0.4, 0.01, 3.0, 1e-9, 1.0


def softmin(score, second, largest, H, step_scale):
    """π ∝ exp(-η score), η = √(ln A / (second + 3 largest²))."""
    eta = step_scale * np.sqrt(np.log(len(score)) / (second + CAUTION * largest**2 + (NOISE * H) ** 2))
    weights = np.exp(-eta * (score - score.min()))
    return weights / weights.sum()


class Base:
    """What both keep: scores, second moments, the split of totals into steps."""

    def __init__(self, H, S, A, step_scale=1.0, exploration=0.03, forget=0.0):
        self.H, self.S, self.A = H, S, A
        self.step_scale, self.exploration, self.forget = step_scale, exploration, forget
        self.score = np.zeros((H, S, A))
        self.second = np.zeros((H, S))
        self.largest = np.zeros((H, S))
        self.split = None
        self.policy = np.full((H, S, A), 1.0 / A)

    def update(self, states, actions, total, played):
        """One episode, played by the policy `played`."""
        if self.split is None:
            self.split = np.full((self.H, self.S, self.A), total / self.H)
        residuals = self.residuals(states, actions, total, played)
        at = [(h, states[h], actions[h]) for h in range(self.H)]
        surprise = total - sum(self.split[place] for place in at)
        for (h, s, a), residual in zip(at, residuals, strict=True):
            p, now = played[h, s, a], self.policy[h, s, a]
            x = p / max(p, now) * residual / (p + self.exploration)
            self.score[h, s] *= 1 - self.forget
            self.score[h, s, a] += x
            self.second[h, s] = (1 - self.forget) * self.second[h, s] + now * x**2
            self.largest[h, s] = max((1 - self.forget) * self.largest[h, s], abs(residual))
            self.policy[h, s] = softmin(
                self.score[h, s], self.second[h, s], self.largest[h, s], self.H, self.step_scale
            )
        for place in at:
            self.split[place] += MODEL_RATE * surprise / self.H


class ModelFree(Base):
    """The baseline is an average of what was left of the total there."""

    def __init__(self, *shape, **arguments):
        super().__init__(*shape, **arguments)
        self.baseline, self.visits = {}, {}

    def residuals(self, states, actions, total, played):
        out = []
        for h in range(self.H):
            rest = total - sum(self.split[i, states[i], actions[i]] for i in range(h))
            place = h, states[h]
            n = self.visits.get(place, 0)
            baseline = self.baseline.get(place, rest)
            out.append(rest - baseline)
            self.baseline[place] = baseline + max(1 / (n + 1), BASELINE_RATE) * (rest - baseline)
            self.visits[place] = n + 1
        return out


class Practical(Base):
    """The baseline is the model's value, and the model's future stands for the one met."""

    def __init__(self, *shape, transition=None, **arguments):
        super().__init__(*shape, **arguments)
        self.transition = transition  # (H, S, A, S); None: estimated
        self.counts = np.zeros((self.H, self.S, self.A, self.S))

    def residuals(self, states, actions, total, played):
        for h in range(self.H - 1):
            self.counts[h, states[h], actions[h], states[h + 1]] += 1
        p = self.transition
        if p is None:
            p = (self.counts + PRIOR / self.S) / (self.counts.sum(-1, keepdims=True) + PRIOR)
        value = np.zeros(self.S)
        advantage = np.zeros(self.H)
        for h in reversed(range(self.H)):
            q = self.split[h] + (p[h] @ value if h + 1 < self.H else 0.0)
            value = (played[h] * q).sum(-1)
            advantage[h] = q[states[h], actions[h]] - value[states[h]]
        surprise = total - sum(self.split[h, states[h], actions[h]] for h in range(self.H))
        return [advantage[h] + surprise for h in range(self.H)]
