"""How often each transition was seen: n_h(s, a, s').

Counts are float64, so that means need no conversion; they are exact up to 2^53.  The transition out of the last
step is never counted: nothing uses it.
"""

import numpy as np

from aggbandit._arrays import FloatArray, IntArray


def none_yet(H: int, S: int, A: int) -> FloatArray:
    """Counts before the first episode, (H, S, A, S)."""
    return np.zeros((H, S, A, S))


def add_trajectory(counts_hsas: FloatArray, states: IntArray, actions: IntArray) -> None:
    """Count the H - 1 transitions of one episode, in place.  [eq:LM25-counts]

    n_h(s, a, s') += 1{s_h = s, a_h = a, s_{h+1} = s'}
    """
    H = states.shape[0]
    counts_hsas[np.arange(H - 1), states[:-1], actions[:-1], states[1:]] += 1.0


def empirical(counts_hsas: FloatArray) -> FloatArray:
    """p̄_h(s'|s, a) = n_h(s, a, s') / max(n_h(s, a), 1); all zero where nothing was seen.  [eq:LM25-p-bar]"""
    mean: FloatArray = counts_hsas / np.maximum(counts_hsas.sum(axis=-1, keepdims=True), 1.0)
    return mean
