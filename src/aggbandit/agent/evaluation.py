"""Off-policy evaluation: what one policy would have cost, from episodes that others decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

ENOUGH = 30.0  # effective episodes below which no claim is made


@dataclass(frozen=True)
class Evaluation:
    """An expected total loss per episode, and how far to trust it."""

    loss: float  # the weighted mean; the middle of the bounds where nothing is known
    low: float  # the interval
    high: float
    episodes: int  # scored episodes looked at
    effective: float  # how many episodes of the policy itself they are worth
    mean_weight: float  # 1 if the episodes cover what the policy does; far below 1 where it goes where they never went
    confidence: float
    reliable: bool

    def __str__(self) -> str:
        told = f"expected loss {self.loss:.4g}, {self.confidence:.0%} interval [{self.low:.4g}, {self.high:.4g}]"
        told += f", from {self.episodes} episodes worth {self.effective:.0f} of this policy's own"
        return told if self.reliable else told + ": too few to rely on"


def weighted_mean(
    weighted: Sequence[tuple[float, float]], bounds: tuple[float, float], confidence: float
) -> Evaluation:
    """Σ w y / Σ w over (weight, loss) pairs, with an interval.

    The interval is the delta method's, by Student's t with as many degrees of freedom as there are effective episodes
    (Σ w)² / Σ w², widened by what a loss not met yet could add: (high - low) ln(2/α) / (3 effective).  Below `ENOUGH`
    effective episodes, or where the weights average far from 1, it is the bounds themselves.
    """
    from scipy.stats import t as student

    low, high = bounds
    n = len(weighted)
    w, y = np.array(weighted, dtype=np.float64).reshape(-1, 2).T
    total = float(w.sum())
    if total <= 0.0:
        return Evaluation((low + high) / 2.0, low, high, n, 0.0, 0.0, confidence, False)
    share = w / total
    mean = float(share @ y)
    effective = 1.0 / float(share @ share)
    mean_weight = total / n
    error_of_weight = float(w.std()) / sqrt(n)
    covered = abs(mean_weight - 1.0) <= 4.0 * error_of_weight + 0.02
    reliable = bool(effective >= ENOUGH and covered)
    if not reliable:
        return Evaluation(mean, low, high, n, effective, mean_weight, confidence, False)
    error = sqrt(float(share**2 @ (y - mean) ** 2))
    margin = float(student.ppf(0.5 + confidence / 2.0, effective - 1.0)) * error
    margin += (high - low) * log(2.0 / (1.0 - confidence)) / (3.0 * effective)
    return Evaluation(
        mean, max(low, mean - margin), min(high, mean + margin), n, effective, mean_weight, confidence, True
    )
