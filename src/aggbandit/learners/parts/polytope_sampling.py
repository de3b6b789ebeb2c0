"""Random points and spanners of an occupancy polytope, for small problems: everything dense."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.base import Draws, Problem
from aggbandit.learners.parts import occupancy_polytope as polytope
from aggbandit.learners.parts.greedy import greedy_policy

FLAT = 1e-8  # |rate · length| under which an exponential density on a chord is taken for uniform


class Geometry(NamedTuple):
    """y = x / scale, n = H S A entries: y = centre + W v describes the polytope, z = span^T y its linear span.

    The scale is the occupancy of the uniform policy: places of tiny occupancy are then as well conditioned as others.
    """

    scale_n: FloatArray
    centre_n: FloatArray  # that occupancy itself: 1, and 0 where nobody comes
    tangent_nm: FloatArray  # W, orthonormal
    span_nd: FloatArray  # orthonormal, d = m + 1: W and the part of the centre across it


def geometry(problem: Problem) -> Geometry:
    """Coordinates of the polytope of this problem's occupancies."""
    transition_tsas = polytope.dense_transition(problem)
    open_hs = polytope.reachable(transition_tsas, problem.initial, problem.H)
    scale_hsa = polytope.uniform_occupancy(transition_tsas, problem.initial, problem.H, problem.A)
    tangent_nm = polytope.tangent_basis(transition_tsas, open_hs, problem.A, scale_hsa)
    centre_n = np.repeat(open_hs.ravel(), problem.A).astype(np.float64)
    across_n = centre_n - tangent_nm @ (tangent_nm.T @ centre_n)
    span_nd = np.concatenate([tangent_nm, across_n[:, None] / np.linalg.norm(across_n)], axis=1)
    return Geometry(scale_hsa.ravel(), centre_n, tangent_nm, span_nd)


def extreme_point(problem: Problem, shape: Geometry, cost_n: FloatArray) -> FloatArray:
    """The y of a deterministic policy that minimises ⟨cost, y⟩, by dynamic programming."""
    scale_n = np.where(shape.scale_n > 0.0, shape.scale_n, np.inf)
    transition_tsas = polytope.dense_transition(problem)
    policy_hsa = greedy_policy(transition_tsas, np.ascontiguousarray(cost_n / scale_n).reshape(problem.shape))
    point_n: FloatArray = polytope.of_policy(transition_tsas, problem.initial, policy_hsa).ravel() / scale_n
    return point_n


def barycentric_spanner(problem: Problem, shape: Geometry, ratio: float = 2.0) -> FloatArray:
    """The y (d, H S A) of d deterministic policies, such that all others are Σ a_i y_i, |a_i| <= ratio.

    Awerbuch and Kleinberg 2004: exchange the i-th vector for one that makes the determinant greater, found by
    linear optimisation over the polytope, until none makes it greater by more than the ratio.
    """
    span_nd = shape.span_nd
    d = span_nd.shape[1]
    chosen_dd = np.eye(d)  # columns z; at first the axes, each of which the first pass replaces
    spanner_dn = np.zeros((d, span_nd.shape[0]))

    def replace(i: int, least_gain: float) -> bool:
        functional_n = span_nd @ np.linalg.inv(chosen_dd)[i]  # det with z in place of column i = det · functional
        candidates = [extreme_point(problem, shape, sign * functional_n) for sign in (1.0, -1.0)]
        gains = [abs(float(functional_n @ y_n)) for y_n in candidates]
        best = int(gains[1] > gains[0])
        if gains[best] <= least_gain:
            return False
        spanner_dn[i] = candidates[best]
        chosen_dd[:, i] = span_nd.T @ candidates[best]
        return True

    for i in range(d):
        replace(i, 0.0)
    while any(replace(i, ratio) for i in range(d)):
        pass
    return spanner_dn


def chords(x_cn: FloatArray, direction_cn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends t_- <= 0 <= t_+ of {t: x + t direction >= 0}, one chord a row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing_cn = -np.maximum(x_cn, 0.0) / direction_cn
    first_c = np.where(direction_cn > 0.0, crossing_cn, -np.inf).max(axis=1, initial=-np.inf)
    last_c = np.where(direction_cn < 0.0, crossing_cn, np.inf).min(axis=1, initial=np.inf)
    return first_c, last_c


def truncated_exponential(rate_c: FloatArray, length_c: FloatArray, uniform_c: FloatArray) -> FloatArray:
    """The point of [0, length] at which the law of density ∝ exp(−rate t) has the given cumulative probability.

    t = −ln(1 − u (1 − e^{−rate length})) / rate for rate > 0; mirrored for rate < 0, so that nothing overflows.
    """
    steep_c = np.abs(rate_c * length_c)
    flat_c = steep_c < FLAT
    mirrored_c = rate_c < 0.0
    u_c = np.where(mirrored_c, 1.0 - uniform_c, uniform_c)
    safe_c = np.where(flat_c, 1.0, np.abs(rate_c))
    with np.errstate(divide="ignore"):  # u = 1 and e^{−rate length} lost to rounding: infinitely far, so the other end
        t_c = np.minimum(-np.log1p(u_c * np.expm1(-steep_c)) / safe_c, length_c)
    return np.where(flat_c, uniform_c * length_c, np.where(mirrored_c, length_c - t_c, t_c))


def hit_and_run(
    shape: Geometry, cost_n: FloatArray, pool_cm: FloatArray, root_mm: FloatArray, draws: Draws
) -> FloatArray:
    """One step of each chain v, which leaves the density ∝ exp(−⟨cost, centre + W v⟩) on the polytope as it is.

    Along a direction W root u, u normal, the chain moves to a point of the chord drawn from the density on it.
    """
    c, m = pool_cm.shape
    if m == 0:
        return pool_cm
    step_cm = draws.normal((c, m)) @ root_mm.T
    direction_cn = step_cm @ shape.tangent_nm.T
    first_c, last_c = chords(shape.centre_n + pool_cm @ shape.tangent_nm.T, direction_cn)
    t_c = first_c + truncated_exponential(direction_cn @ cost_n, last_c - first_c, draws.uniform(c))
    moved_cm: FloatArray = pool_cm + t_c[:, None] * step_cm
    return moved_cm


def spread(pool_cm: FloatArray) -> FloatArray:
    """A root of the pool's covariance, to give the directions of `hit_and_run` the polytope's proportions."""
    m = pool_cm.shape[1]
    if m == 0:
        return np.zeros((0, 0))
    covariance_mm = np.asarray(np.cov(pool_cm, rowvar=False), dtype=np.float64).reshape(m, m)
    floor = 1e-12 * max(float(np.trace(covariance_mm)), 1e-300)
    return np.asarray(np.linalg.cholesky(covariance_mm + floor * np.eye(m)), dtype=np.float64)
