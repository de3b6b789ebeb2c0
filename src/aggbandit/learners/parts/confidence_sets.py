"""The empirical Bernstein box around the observed transition frequencies."""

from math import log

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.parts.transition_counts import empirical


def logarithm(H: int, S: int, A: int, K: int, confidence: float) -> float:
    """ln(10 H S A K / δ), the logarithm of the confidence sets.  [eq:LM25-confidence-log]"""
    return log(10.0 * H * S * A * K / confidence)


def bernstein_radius(counts_hsas: FloatArray, log_term: float) -> FloatArray:
    """How far each p'(s'|s, a) may be from p̄(s'|s, a).  [eq:LM25-radius]

    ε(s'|s, a) = 4 √(p̄(s'|s, a) ln(10HSAK/δ) / (n(s, a) ∨ 1)) + 10 ln(10HSAK/δ) / (n(s, a) ∨ 1)
    """
    ratio = log_term / np.maximum(counts_hsas.sum(axis=-1, keepdims=True), 1.0)
    radius: FloatArray = 4.0 * np.sqrt(empirical(counts_hsas) * ratio) + 10.0 * ratio
    return radius


def bernstein_box(counts_hsas: FloatArray, log_term: float, radius_scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of the set, whose members also sum to 1.  [eq:LM25-confidence-set]

    max(0, p̄ - c ε) <= p'(s'|s, a) <= min(1, p̄ + c ε);  n(s, a) = 0: 0 and 1 whatever c is, the whole simplex.
    """
    mean = empirical(counts_hsas)
    radius = radius_scale * bernstein_radius(counts_hsas, log_term)
    unseen = counts_hsas.sum(axis=-1, keepdims=True) == 0.0
    lower = np.where(unseen, 0.0, np.maximum(0.0, mean - radius))
    upper = np.where(unseen, 1.0, np.minimum(1.0, mean + radius))
    return lower, upper
