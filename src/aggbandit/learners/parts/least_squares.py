"""Ridge regression of totals on what was met: losses of each (h, s, a) from the totals of whole trajectories.

    A_k = λ I + Σ_{j<=k} φ^j φ^jT,   ℓ̂_k = A_k^{-1} Σ_{j<=k} φ^j L^j          [eq:EMM21-least-squares]

For trajectories φ is the indicator of the H places (h, s_h, a_h).  Such φ span fewer than H S A dimensions: at every
step their entries sum to 1, so that ℓ̂ tells only what policies cost in total, not what a single step does.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_known, require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Problem

NOISES = ("independent", "joint", "none")
MOST_DIMENSIONS = 3000  # the factor then takes 72 MB and an update some 10 ms


class LeastSquares(NamedTuple):
    """R with A = R^T R, and Σ φ L.  A state that grows with d only."""

    root_dd: FloatArray
    target_d: FloatArray


def nothing_seen(d: int, ridge: float) -> LeastSquares:
    """A = λ I."""
    return LeastSquares(np.eye(d) * sqrt(ridge), np.zeros(d))


def add(seen: LeastSquares, feature_d: FloatArray, total: float) -> None:
    """One more (φ, L), in place.  O(d²)."""
    from aggbandit.kernels import cholesky

    seen.target_d[:] += total * feature_d
    cholesky.rank_one_update(seen.root_dd, feature_d.copy())


def solution(seen: LeastSquares) -> FloatArray:
    """ℓ̂ = A^{-1} Σ φ L."""
    return applied(seen, seen.target_d)


def applied(seen: LeastSquares, right_d: FloatArray) -> FloatArray:
    """A^{-1} b."""
    from aggbandit.kernels import cholesky

    answer_d = right_d.copy()
    cholesky.solve(seen.root_dd, answer_d)
    return answer_d


def spread(seen: LeastSquares, normal_md: FloatArray) -> FloatArray:
    """Rows with covariance A^{-1} from rows of independent standard normal numbers (which are overwritten)."""
    from aggbandit.kernels import cholesky

    cholesky.spread(seen.root_dd, normal_md)
    return normal_md


def squared_norms(seen: LeastSquares, rows_nd: FloatArray) -> FloatArray:
    """x^T A^{-1} x for every row x."""
    from aggbandit.kernels import cholesky

    norms_n = np.empty(len(rows_nd))
    cholesky.inverse_norms(seen.root_dd, rows_nd, norms_n)
    return norms_n


def log_determinant(seen: LeastSquares, ridge: float) -> float:
    """ln det(A / λ)."""
    diagonal_d = np.diagonal(seen.root_dd)
    return 2.0 * float(np.log(diagonal_d).sum()) - diagonal_d.size * log(ridge)


def radius(log_det: float, d: int, ridge: float, sigma: float, confidence: float) -> float:
    """β with ‖ℓ̂_k − ℓ‖_{A_k} <= β for all k at once with probability 1 − δ, for ℓ in [0, 1]^d.  [eq:EMM21-radius]

    β = σ √(ln det(A / λ) + 2 ln(1/δ)) + √(λ d)

    σ: the noise of a total given its trajectory is σ-sub-Gaussian (see `noise_level`).
    """
    return sigma * sqrt(max(log_det, 0.0) + 2.0 * log(1.0 / confidence)) + sqrt(ridge * d)


def trajectory_radius(
    seen: LeastSquares, problem: Problem, ridge: float | None, noise: str, confidence: float
) -> float:
    """`radius` for features of trajectories, d = H S A."""
    used = ridge_of(ridge, problem)
    sigma = noise_level(noise, problem.H)
    return radius(log_determinant(seen, used), seen.target_d.size, used, sigma, confidence)


def ridge_of(ridge: float | None, problem: Problem) -> float:
    """λ: as given, or H."""
    return float(problem.H) if ridge is None else ridge


def check_arguments(confidence: float, noise: str, ridge: float | None) -> None:
    """The arguments that learners from trajectories share, checked once when the learner is configured."""
    require_number("confidence", confidence, low=0.0, high=1.0, low_open=True, high_open=True)
    require_known("noise", noise, NOISES)
    if ridge is not None:
        require_number("ridge", ridge, low=0.0, low_open=True)


def noise_level(noise: str, H: int) -> float:
    """σ: √H / 2 where the H losses are independent given the trajectory, H / 2 whatever they are, 0 without noise."""
    return {"independent": sqrt(H) / 2.0, "joint": H / 2.0, "none": 0.0}[noise]


def trajectory_feature(states: IntArray, actions: IntArray, S: int, A: int) -> FloatArray:
    """φ, the indicator (H S A,) of the places met."""
    H = states.size
    feature_hsa = np.zeros((H, S, A))
    feature_hsa[np.arange(H), states, actions] = 1.0
    return feature_hsa.reshape(-1)


def require_size(who: str, d: int) -> None:
    """Refuse what would take too much memory and time."""
    if d > MOST_DIMENSIONS:
        raise InvalidInputError(
            f"{who} keeps a d × d matrix and updates it every episode, up to d = {MOST_DIMENSIONS}, but here d = {d}. "
            f"Take a smaller instance, or po-known or po-unknown, which need no matrix."
        )
