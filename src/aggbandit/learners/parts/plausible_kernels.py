"""What a policy may do and meet under any of the transition kernels that are still plausible."""

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.learners.parts.transition_counts import empirical


def bernstein_corners(
    counts_hsas: FloatArray,
    log_term: float,
    *,
    root: float,
    linear: float,
    less: float = 0.0,
    radius_scale: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of |q(s') − p̄(s')| <= c (root √(p̄(s') ln / m) + linear ln / m), m = max(1, n − less).

    n(s, a) = 0: 0 and 1 whatever c is, the whole simplex.
    """
    visits_hsa = counts_hsas.sum(axis=-1, keepdims=True)
    ratio = log_term / np.maximum(visits_hsa - less, 1.0)
    mean = empirical(counts_hsas)
    radius = radius_scale * (root * np.sqrt(mean * ratio) + linear * ratio)
    lower = np.maximum(0.0, mean - radius)  # 0 where nothing was seen, as the mean is
    upper = np.where(visits_hsa == 0.0, 1.0, np.minimum(1.0, mean + radius))
    return lower, upper


def occupancy_bounds(
    lower_hsas: FloatArray, upper_hsas: FloatArray, policy_hsa: FloatArray, initial_s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and greatest Pr[s_h = s] over the boxes, (H, S) each."""
    from aggbandit.kernels import occupancy_bounds as kernel

    H, S, _ = policy_hsa.shape
    least_hs, greatest_hs = np.empty((H, S)), np.empty((H, S))
    scratch = np.empty(S), np.empty(S), np.empty(S, np.int64)
    kernel.occupancy_bounds(lower_hsas, upper_hsas, policy_hsa, initial_s, least_hs, greatest_hs, *scratch)
    return least_hs, greatest_hs


def greatest_reach(
    lower_hsas: FloatArray, upper_hsas: FloatArray, policy_hsa: FloatArray, initial_s: FloatArray, states: IntArray
) -> FloatArray:
    """(H,): the greatest Pr[s_h = states[h]] over the boxes, for these H places only."""
    from aggbandit.kernels import occupancy_bounds as kernel

    S = initial_s.size
    scratch = np.empty(S), np.empty(S), np.empty(S, np.int64)
    return np.array(
        [
            kernel.extreme_reach(lower_hsas, upper_hsas, policy_hsa, initial_s, h, s, 1.0, *scratch)
            for h, s in enumerate(states)
        ]
    )


def extreme_action_values(
    lower_tsas: FloatArray,
    upper_tsas: FloatArray,
    policy_hsa: FloatArray,
    loss_hsa: FloatArray,
    *,
    greatest: bool,
    factor: float = 1.0,
) -> FloatArray:
    """(H, S, A): the greatest or least expected loss from there on over the boxes, see the kernel."""
    from aggbandit.kernels import extreme_values as kernel

    S = policy_hsa.shape[1]
    q_hsa = np.empty(policy_hsa.shape)
    scratch = np.empty(S), np.empty(S), np.empty(S, np.int64)
    sign = 1.0 if greatest else -1.0
    kernel.extreme_action_values(lower_tsas, upper_tsas, policy_hsa, loss_hsa, factor, sign, q_hsa, *scratch)
    return q_hsa
