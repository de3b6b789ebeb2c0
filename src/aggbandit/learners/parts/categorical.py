"""One draw from a finite law."""

import numpy as np

from aggbandit._arrays import FloatArray


def sample(law_n: FloatArray, u: float) -> int:
    """The index at which the cumulative law passes u in [0, 1); never one of probability 0, rounding or not."""
    cumulative_n = np.cumsum(law_n)
    return int(min(np.searchsorted(cumulative_n, u, side="right"), np.flatnonzero(law_n > 0.0)[-1]))
