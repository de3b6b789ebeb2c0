"""Epochs by doubling: what is computed from counts is computed again only when some count has doubled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.learners.parts import transition_counts


class Epochs(NamedTuple):
    counts_hsas: FloatArray  # n_h(s, a, s') of all episodes so far; none out of the last step
    begun_hsa: FloatArray  # n_h(s, a) when the epoch began


def first(H: int, S: int, A: int) -> Epochs:
    """Before the first episode."""
    return Epochs(transition_counts.none_yet(H, S, A), np.zeros((H, S, A)))


def add_trajectory(epochs: Epochs, states: IntArray, actions: IntArray) -> bool:
    """Count one episode in place; whether a new epoch begins: some n(s, a) >= max(1, 2 n at the epoch's beginning).

    Only the places just met can have come that far.  When it does, the counts now are those at its beginning.
    """
    transition_counts.add_trajectory(epochs.counts_hsas, states, actions)
    met = np.arange(states.size - 1), states[:-1], actions[:-1]
    doubled = epochs.counts_hsas[met].sum(axis=-1) >= np.maximum(1.0, 2.0 * epochs.begun_hsa[met])
    if not doubled.any():
        return False
    epochs.counts_hsas.sum(axis=-1, out=epochs.begun_hsa)
    return True
