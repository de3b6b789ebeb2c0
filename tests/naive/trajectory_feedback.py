"""Learning from totals of trajectories, from the definitions: full matrices, all policies."""

from math import log, sqrt

import numpy as np

from naive import planning
from naive.planning import Floats


class Ridge:
    """A = λ I + Σ φ φ^T and ℓ̂ = A^{-1} Σ φ L with the whole history, H S A dimensions."""

    def __init__(self, H: int, S: int, A: int, ridge: float):
        self.shape, self.ridge = (H, S, A), ridge
        self.features: list[Floats] = []
        self.totals: list[float] = []

    def add(self, states: Floats, actions: Floats, total: float) -> None:
        feature = np.zeros(self.shape)
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            feature[h, s, a] = 1.0
        self.features.append(feature.ravel())
        self.totals.append(total)

    @property
    def matrix(self) -> Floats:
        d = int(np.prod(self.shape))
        return np.asarray(self.ridge * np.eye(d) + sum((np.outer(f, f) for f in self.features), np.zeros((d, d))))

    def solution(self) -> Floats:
        right = sum(
            (f * L for f, L in zip(self.features, self.totals, strict=True)), np.zeros(int(np.prod(self.shape)))
        )
        return np.linalg.solve(self.matrix, right)

    def radius(self, sigma: float, confidence: float) -> float:
        d = int(np.prod(self.shape))
        _, log_det = np.linalg.slogdet(self.matrix / self.ridge)
        return sigma * sqrt(log_det + 2 * log(1 / confidence)) + sqrt(self.ridge * d)

    def spread(self, normal: Floats) -> Floats:
        """L^{-T} z with A = L L^T: covariance A^{-1}."""
        return np.linalg.solve(np.linalg.cholesky(self.matrix).T, normal)


def empirical(history: list[tuple[Floats, Floats]], H: int, S: int, A: int) -> tuple[Floats, Floats]:
    """Frequencies of successors, uniform where none was seen, and the numbers of visits before the last step."""
    counts = np.zeros((H, S, A, S))
    for states, actions in history:
        for h in range(H - 1):
            counts[h, states[h], actions[h], states[h + 1]] += 1
    visits = counts.sum(axis=-1)
    mean = np.full((H, S, A, S), 1 / S)
    for place in np.argwhere(visits > 0):
        mean[tuple(place)] = counts[tuple(place)] / visits[tuple(place)]
    return mean, visits


def bonus(visits: Floats, K: int, confidence: float) -> Floats:
    H, S, A = visits.shape
    answer = np.zeros((H, S, A))
    for h, s, a in np.ndindex(H - 1, S, A):
        n = visits[h, s, a]
        answer[h, s, a] = H if n == 0 else H * min(1.0, sqrt(log(4 * H * S * A * K / confidence) / (2 * n)))
    return answer


def suboptimality(model: Floats, policy: Floats, loss: Floats) -> float:
    """How much one other action would gain anywhere: 0 for an optimal policy, by the principle of optimality."""
    values = planning.action_values(model, policy, loss)
    return float(((values * policy).sum(axis=-1) - values.min(axis=-1)).max())
