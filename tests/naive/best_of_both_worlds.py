"""Centred estimates by enumeration of all trajectories, and FTRL on the simplex by bisection."""

from collections.abc import Callable

import numpy as np

from naive import planning
from naive.planning import Floats


def moments(
    transition: Floats, policy: Floats, loss: Floats, initial: Floats, estimate: Callable[..., Floats]
) -> tuple[Floats, Floats]:
    """E and E of the square of estimate(states, actions, total) over all trajectories."""
    H, S, A = loss.shape
    first, second = np.zeros((H, S, A)), np.zeros((H, S, A))
    for trajectory in planning.trajectories(H, S, A):
        weight = planning.probability(trajectory, transition, policy, initial)
        if weight > 0.0:
            states, actions = np.array(trajectory).T
            found = estimate(states, actions, planning.total(trajectory, loss))
            first += weight * found
            second += weight * found**2
    return first, second


def estimate(reach: Floats, policy: Floats, c: float, states: Floats, actions: Floats) -> Floats:
    """c (1{s, a} / q(s, a) − 1{s} / q(s)), entry by entry."""
    H, S, A = policy.shape
    found = np.zeros((H, S, A))
    for h, s, a in np.ndindex(H, S, A):
        if states[h] == s:
            found[h, s, a] = c * (float(actions[h] == a) / (reach[h, s] * policy[h, s, a]) - 1.0 / reach[h, s])
    return found


def optimistic(greatest: Floats, policy: Floats, c: float, states: Floats, actions: Floats) -> Floats:
    """c (1{s, a} / u(s, a) − 1{s} / u(s)) − (1 − π) (1 − 1{s} / u(s)), entry by entry."""
    H, S, A = policy.shape
    found = np.zeros((H, S, A))
    for h, s, a in np.ndindex(H, S, A):
        here = float(states[h] == s) / greatest[h, s]
        taken = here * float(actions[h] == a) / policy[h, s, a]
        found[h, s, a] = c * (taken - here) - (1.0 - policy[h, s, a]) * (1.0 - here)
    return found


def simplex_ftrl(cost: Floats, root: float, log: Floats) -> Floats:
    """argmin over the simplex of cost · q − root Σ √q − Σ log ln q.

    With y = q^{-1/2} and v the multiplier of Σ q = 1:  log y² + root y / 2 = cost − v, so that
    y = (−root / 2 + √(root² / 4 + 4 log (cost − v))) / (2 log); v by bisection.
    """

    def shares(v: float) -> Floats:
        y = (-root / 2 + np.sqrt(root**2 / 4 + 4 * log * (cost - v))) / (2 * log)
        return np.asarray(y**-2.0)

    low, high = cost.min() - 1e7, cost.min() - 1e-12
    for _ in range(400):
        middle = (low + high) / 2
        low, high = (middle, high) if shares(middle).sum() < 1.0 else (low, middle)
    return shares(high)


def widths(counts: Floats, K: int) -> tuple[Floats, Floats]:
    """Frequencies (uniform where nothing was seen) and B(s, a, s'), one number at a time."""
    H, S, A, _ = counts.shape
    mean, radius = np.zeros(counts.shape), np.zeros(counts.shape)
    logarithm = np.log(H * S * A * K * float(K) ** 3)
    for h, s, a, i in np.ndindex(H, S, A, S):
        n = counts[h, s, a].sum()
        mean[h, s, a, i] = counts[h, s, a, i] / n if n else 1 / S
        radius[h, s, a, i] = (
            min(1.0, 2 * np.sqrt(mean[h, s, a, i] * logarithm / n) + 14 * logarithm / (3 * n)) if n else 1.0
        )
    return mean, radius
