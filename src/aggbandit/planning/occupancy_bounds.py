"""μ̲ and μ̄: where a policy goes at least and at most, when the transitions are known only to lie in a set."""

from typing import Any

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit._checks import (
    ROW_SUM_TOLERANCE,
    as_floats,
    as_numbers,
    place,
    require_distributions,
    require_finite,
    require_shape,
)
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import as_initial_distribution
from aggbandit.planning._inputs import ready


def occupancy_bounds(lower: Any, upper: Any, policy: Any, initial_state: Any = 0) -> tuple[FloatArray, FloatArray]:
    """The least and the greatest probability of every state at every step, over a set of transitions: two (H, S).

    The set holds every p' whose rows p'_h(·|s, a) are distributions with lower ≤ p' ≤ upper, entry by entry:

    μ̲_h(s) = min_{p'} μ_h^{π,p'}(s),   μ̄_h(s) = max_{p'} μ_h^{π,p'}(s)

    Exact, each (h, s) on its own: with f_h* = 1{s*}, f_h(s) = Σ_a π_h(a|s) ext_{q in the row's set} q · f_{h+1},
    where the extreme row starts at the lower corner and gives what is left to the states in the order of f, each up
    to its upper corner.  Since every (h, s) has a kernel of its own, Σ_s μ̄_h(s) may exceed 1.  From an initial
    distribution the answer is the mean over the first state: one kernel is extreme for all of them.

    `lower` and `upper` are (H, S, A, S); the last step leads nowhere and is not looked at.  Corners outside [0, 1]
    are allowed and cut by the simplex.  A row is refused unless its lower sums are ≤ 1 ≤ its upper sums (of
    max(lower, 0) and min(upper, 1), within 1e-9; inside that margin the corner nearest to the simplex is the row).
    [LM25] Algorithm 2, after Jin et al. (2020), Algorithm 3.  O(H² S³ A) time.

    >>> import numpy as np
    >>> lower, upper = np.zeros((2, 2, 1, 2)), np.ones((2, 2, 1, 2))
    >>> lower[0, 0, 0], upper[0, 0, 0] = [0.2, 0.1], [0.6, 0.9]
    >>> least, greatest = occupancy_bounds(lower, upper, np.ones((2, 2, 1)))
    >>> print(least[1], greatest[1])
    [0.2 0.4] [0.6 0.8]
    """
    from aggbandit.kernels import occupancy_bounds as kernels

    policy_hsa = as_floats("policy", policy)
    if policy_hsa.ndim != 3 or 0 in policy_hsa.shape:
        raise InvalidInputError(f"policy must have shape (H, S, A), but has {policy_hsa.shape}.")
    require_distributions("policy", policy_hsa)
    H, S, A = policy_hsa.shape
    initial_s = as_initial_distribution(initial_state, S)
    lower_hsas = _corner("lower", lower, (H, S, A, S))
    upper_hsas = _corner("upper", upper, (H, S, A, S))
    _require_boxes(lower_hsas, upper_hsas)
    lower_hsas = np.maximum(lower_hsas, 0.0)
    upper_hsas = np.minimum(upper_hsas, 1.0)
    _require_distribution_inside(lower_hsas, upper_hsas)

    least_hs, greatest_hs = np.empty((H, S)), np.empty((H, S))
    scratch = np.empty(S), np.empty(S), np.empty(S, dtype=np.int64)
    kernels.occupancy_bounds(
        ready(lower_hsas), ready(upper_hsas), ready(policy_hsa), ready(initial_s), least_hs, greatest_hs, *scratch
    )
    return least_hs, greatest_hs


def _corner(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    """One corner of the boxes without the last step, (H - 1, S, A, S), every entry finite."""
    corner_hsas = as_numbers(name, values)
    require_shape(name, corner_hsas, shape, "(H, S, A, S)")
    corner_hsas = corner_hsas[:-1]
    require_finite(name, corner_hsas)
    return corner_hsas


def _require_boxes(lower_hsas: FloatArray, upper_hsas: FloatArray) -> None:
    crossed = lower_hsas > upper_hsas
    if crossed.any():
        first = np.argwhere(crossed)[0]
        raise InvalidInputError(
            f"{place('lower', first)} is {float(lower_hsas[tuple(first)])!r}, but must be at most "
            f"{place('upper', first)} = {float(upper_hsas[tuple(first)])!r}. Are lower and upper in this order?"
        )
    negative = upper_hsas < 0.0
    if negative.any():
        first = np.argwhere(negative)[0]
        raise InvalidInputError(
            f"{place('upper', first)} is {float(upper_hsas[tuple(first)])!r}, but must be at least 0: "
            "no distribution lies in this box. Widen it."
        )


def _require_distribution_inside(lower_hsas: FloatArray, upper_hsas: FloatArray) -> None:
    """Every row's box, cut to [0, 1], holds a distribution: Σ lower ≤ 1 ≤ Σ upper."""
    least, greatest = lower_hsas.sum(axis=-1), upper_hsas.sum(axis=-1)
    _refuse("lower", least, least > 1.0 + ROW_SUM_TOLERANCE, "at most")
    _refuse("upper", greatest, greatest < 1.0 - ROW_SUM_TOLERANCE, "at least")


def _refuse(name: str, sums_hsa: FloatArray, off_hsa: AnyArray, rule: str) -> None:
    if off_hsa.any():
        first = np.argwhere(off_hsa)[0]
        raise InvalidInputError(
            f"{place(name, first)} sums to {sums_hsa[tuple(first)]:.12g} within [0, 1], but must sum to {rule} 1: "
            "no distribution lies in this box. Widen it."
        )
