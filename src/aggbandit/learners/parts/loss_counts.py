"""How often each (h, s, a) was met, the last step too, and the mean of the losses met there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray


class LossCounts(NamedTuple):
    visits_hsa: FloatArray
    mean_hsa: FloatArray  # 0 where nothing was met


def none_yet(shape: tuple[int, int, int]) -> LossCounts:
    """Before the first episode."""
    return LossCounts(np.zeros(shape), np.zeros(shape))


def add_trajectory(seen: LossCounts, states: IntArray, actions: IntArray, losses: FloatArray) -> None:
    """Count one episode, in place."""
    met = np.arange(states.size), states, actions
    seen.visits_hsa[met] += 1.0
    seen.mean_hsa[met] += (losses - seen.mean_hsa[met]) / seen.visits_hsa[met]
