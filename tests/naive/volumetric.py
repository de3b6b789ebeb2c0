"""Laws on a polytope from their densities, for the checks of volumetric."""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from naive.planning import Floats


def chord(x: Floats, direction: Floats) -> tuple[float, float]:
    """The interval of t with x + t direction >= 0, entry by entry."""
    first, last = -np.inf, np.inf
    for value, speed in zip(x, direction, strict=True):
        if speed > 0:
            first = max(first, -value / speed)
        elif speed < 0:
            last = min(last, -value / speed)
    return first, last


def cumulative(t: float, rate: float, length: float) -> float:
    """Pr[T <= t] for the density ∝ exp(−rate t) on [0, length], integrated numerically, at its greatest scaled to 1."""
    top = max(0.0, -rate * length)

    def density(s: float) -> float:
        return float(np.exp(-rate * s - top))

    # where the density has its mass lies at one end: cut there
    ends = [0.0, length]
    for n in (0.1, 1.0, 3.0, 10.0, 40.0):
        if rate and n / abs(rate) < length:
            ends.append(n / abs(rate) if rate > 0 else length - n / abs(rate))

    def mass(stop: float) -> float:
        cuts = sorted([e for e in ends if e < stop] + [stop])
        return float(sum(quad(density, a, b)[0] for a, b in pairwise(cuts)))

    return mass(t) / mass(length)


def tilted_simplex_mean(cost: Floats) -> Floats:
    """E[x] for the density ∝ exp(−cost · x) on the simplex of three points, by a grid of midpoints."""
    n = 1500
    a = (np.arange(n) + 0.5) / n
    first, second = np.meshgrid(a, a, indexing="ij")
    inside = first + second < 1.0
    points = np.stack([first[inside], second[inside], 1.0 - first[inside] - second[inside]], axis=1)
    weights = np.exp(-points @ cost)
    return np.asarray(weights @ points / weights.sum())
