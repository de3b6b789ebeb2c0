"""A model of unknown dynamics that is a distribution everywhere, and what it may be off by."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray


class Model(NamedTuple):
    """Counts and frequencies.  Nothing is counted out of the last step."""

    counts_hsas: FloatArray  # n_h(s, a, s')
    visits_hsa: FloatArray  # n_h(s, a), 0 at the last step
    mean_hsas: FloatArray  # p̄_h(s'|s, a); uniform where n = 0, so that no probability is lost


def unseen(H: int, S: int, A: int) -> Model:
    """Before the first episode."""
    return Model(np.zeros((H, S, A, S)), np.zeros((H, S, A)), np.full((H, S, A, S), 1.0 / S))


def add_trajectory(model: Model, states: IntArray, actions: IntArray) -> None:
    """Count one episode and renew the rows that it met, in place."""
    places = (np.arange(states.size - 1), states[:-1], actions[:-1])
    model.counts_hsas[(*places, states[1:])] += 1.0
    model.visits_hsa[places] += 1.0
    model.mean_hsas[places] = model.counts_hsas[places] / model.visits_hsa[places][:, None]


def value_bonus(visits_hsa: FloatArray, K: int, confidence: float) -> FloatArray:
    """b with |(p̄ − p) V*| <= b everywhere and always with probability 1 − δ/2, V* in [0, H] fixed.  [eq:EMM21-bonus]

    b_h(s, a) = H √(ln(4 H S A K / δ) / (2 (n ∨ 1))), at most H; n = 0: H;  0 at the last step, which leads nowhere.
    """
    H, S, A = visits_hsa.shape
    spread_hsa = np.sqrt(log(4.0 * H * S * A * K / confidence) / (2.0 * np.maximum(visits_hsa, 1.0)))
    bonus_hsa: FloatArray = H * np.where(visits_hsa == 0.0, 1.0, np.minimum(spread_hsa, 1.0))
    bonus_hsa[-1] = 0.0
    return bonus_hsa
