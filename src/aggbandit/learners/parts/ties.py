"""Greedy choices that treat equal actions alike, so that no action is preferred for its number."""

from aggbandit._arrays import FloatArray

ROUNDING = 1e-9  # values closer than this are equal


def uniform_over_least(value_xa: FloatArray) -> FloatArray:
    """The uniform law on the actions of least value, along the last axis."""
    least_xa = value_xa <= value_xa.min(axis=-1, keepdims=True) + ROUNDING
    law_xa: FloatArray = least_xa / least_xa.sum(axis=-1, keepdims=True)
    return law_xa


def epsilon_greedy(value_xa: FloatArray, exploration: float) -> FloatArray:
    """(1 − ε) of an action of least value, ε of any."""
    law_xa: FloatArray = (1.0 - exploration) * uniform_over_least(value_xa) + exploration / value_xa.shape[-1]
    return law_xa
