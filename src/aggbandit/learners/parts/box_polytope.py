"""The occupancies that policies may have when each transition probability is known only to lie in an interval.

    y_h(s, a, s') >= 0 for h < H, x_H(s, a) >= 0, the flow equations, and
    lower_h(s'|s, a) Σ y_h(s, a, ·) <= y_h(s, a, s') <= upper_h(s'|s, a) Σ y_h(s, a, ·)

Kept as m_h(s, a, i), the mass that leaves (h, s, a) by the extreme kernel lower + rest · 1{i}, rest = 1 − Σ lower:
y(s') = lower(s') Σ m + rest · m(s').  This is one to one, the lower ends become m >= 0, and nothing cancels where an
interval is short.  An upper end that the lower ones of the others imply is no constraint.  Nothing is known to lead
out of the last step, where the variables are x_H(s, a).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, frozen
from aggbandit.learners.base import Draws
from aggbandit.learners.parts.occupancy_polytope import MOST_NEWTON_STEPS, require_converged

IMPLIED = 1e-12  # share >= 1 − this: the upper end follows from the lower ones


class Boxes(NamedTuple):
    """The set; H - 1 steps lead somewhere."""

    lower_hsai: FloatArray  # (H - 1, S, A, S)
    share_hsai: FloatArray  # (upper − lower) / rest, 1 where the upper end is implied
    open_hs: AnyArray  # (H, S) whether the place may be reached: all but the impossible first states


class Point(NamedTuple):
    """A point of the polytope, a direction, or a vector of coefficients on it."""

    m_hsai: FloatArray  # (H - 1, S, A, S)
    x_sa: FloatArray  # (S, A), the last step


def boxes(lower_hsas: FloatArray, upper_hsas: FloatArray, initial_s: FloatArray) -> Boxes:
    """The set between the corners (H, S, A, S), the last step of which is ignored.

    Every row needs Σ lower < 1 < Σ upper, which any box around frequencies has, or lower = 0 and upper = 1.
    """
    lower_hsai = np.ascontiguousarray(lower_hsas[:-1])
    rest_hsa = 1.0 - lower_hsai.sum(axis=-1, keepdims=True)
    share_hsai = (upper_hsas[:-1] - lower_hsai) / rest_hsa
    share_hsai[share_hsai >= 1.0 - IMPLIED] = 1.0
    open_hs = np.ones(lower_hsas.shape[:2], dtype=np.bool_)
    open_hs[0] = initial_s > 0.0
    return Boxes(lower_hsai, share_hsai, open_hs)


def dimension(body: Boxes, A: int) -> int:
    """That of the polytope, variables less equations: (A S − 1)(1 + (H − 2) S) + (A − 1) S from one first state."""
    open_h = body.open_hs.sum(axis=1)
    S = body.open_hs.shape[1]
    return int(A * S * open_h[:-1].sum() + A * open_h[-1] - open_h.sum())


def barrier_parameter(body: Boxes, A: int) -> int:
    """θ, the number of inequalities."""
    inner = body.open_hs[:-1]
    upper_ends = (body.share_hsai < 1.0)[inner].sum()
    return int(A * inner.shape[1] * inner.sum() + upper_ends + A * body.open_hs[-1].sum())


def interior_point(body: Boxes, initial_s: FloatArray, A: int) -> Point:
    """A point at which every inequality is strict: the uniform policy under a kernel inside all boxes."""
    S = initial_s.size
    m_hsai = np.zeros(body.share_hsai.shape)
    inflow_s: FloatArray = initial_s
    for h in range(len(m_hsai)):
        fraction_sai = body.share_hsai[h] / body.share_hsai[h].sum(axis=-1, keepdims=True)
        m_hsai[h] = inflow_s[:, None, None] / A * fraction_sai
        inflow_s = next_states(body, m_hsai[h], h).sum(axis=(0, 1))
    return Point(m_hsai, np.broadcast_to(inflow_s[:, None] / A, (S, A)).copy())


def next_states(body: Boxes, m_sai: FloatArray, h: int) -> FloatArray:
    """y_h(s, a, s') = lower(s') Σ m + rest · m(s')."""
    rest_sa = 1.0 - body.lower_hsai[h].sum(axis=-1, keepdims=True)
    y_sai: FloatArray = body.lower_hsai[h] * m_sai.sum(axis=-1, keepdims=True) + rest_sa * m_sai
    return y_sai


def occupancy(point: Point) -> FloatArray:
    """x_h(s, a), (H, S, A)."""
    return np.concatenate([point.m_hsai.sum(axis=-1), point.x_sa[None]])


def nothing(body: Boxes, A: int) -> Point:
    """All zeros."""
    return Point(np.zeros(body.share_hsai.shape), np.zeros((body.open_hs.shape[1], A)))


def minimise(body: Boxes, initial_s: FloatArray, cost: Point, start: Point) -> Point:
    """argmin ⟨cost, point⟩ + R(point) over the polytope, R the sum of −ln over its inequalities, from `start`.

    Newton's method to a decrement of 1e-10; `start` must be strictly inside, and nearer is quicker.
    """
    from aggbandit.kernels import barrier_newton

    m_hsai, x_sa = start.m_hsai.copy(), start.x_sa.copy()
    body = Boxes(*map(frozen, body))
    decrement, _ = barrier_newton.minimise_boxes(*body, *map(frozen, cost), m_hsai, x_sa, MOST_NEWTON_STEPS)
    require_converged(decrement)
    barrier_newton.restore_boxes(body.lower_hsai, frozen(initial_s), body.open_hs, m_hsai, x_sa)
    return Point(m_hsai, x_sa)


def dikin_step(body: Boxes, point: Point, draws: Draws) -> tuple[Point, Point]:
    """A step to a uniform point of the Dikin ellipsoid's surface around `point`, and ∇²R · step.

    As `occupancy_polytope.dikin_step`; it takes one standard normal number for each inequality.
    """
    from aggbandit.kernels import barrier_newton

    step, pull = Point(*map(np.empty_like, point)), Point(*map(np.empty_like, point))
    normal = frozen(draws.normal((2, *point.m_hsai.shape)))
    last_sa = frozen(draws.normal(point.x_sa.shape))
    barrier_newton.dikin_boxes(*map(frozen, (*body, *point, normal[0], normal[1], last_sa)), *step, *pull)
    return step, pull
