"""Sets of transition kernels that are L1 balls around the observed frequencies."""

from math import log

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.base import Problem


def logarithm(problem: Problem, who: str, confidence: float) -> float:
    """ln(H S A K / δ)."""
    H, S, A = problem.shape
    return log(problem.require_episodes(who) * H * S * A / confidence)


def everything(H: int, S: int, A: int) -> tuple[FloatArray, FloatArray]:
    """Centres and radii before the first episode: whole simplices."""
    return np.full((H, S, A, S), 1.0 / S), np.full((H, S, A), 2.0)


def around(counts_hsas: FloatArray, log_term: float, radius_scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """p̄, uniform where n = 0, and √(2 S ln(H S A K / δ) / max(1, n)), 2 where n = 0: the whole simplex.

    [eq:RM19-set]
    """
    S = counts_hsas.shape[-1]
    visits_hsa = counts_hsas.sum(axis=-1)
    mean_hsas = np.full(counts_hsas.shape, 1.0 / S)
    np.divide(counts_hsas, visits_hsa[..., None], out=mean_hsas, where=visits_hsa[..., None] > 0.0)
    radius_hsa = radius_scale * np.sqrt(2.0 * S * log_term / np.maximum(visits_hsa, 1.0))
    return mean_hsas, np.where(visits_hsa == 0.0, 2.0, radius_hsa)
