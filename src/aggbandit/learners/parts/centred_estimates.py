"""Estimates of advantages from totals: [IJLMT25], what follow-the-regularised-leader is fed with.

Known dynamics, c = L / H the scaled total and q the occupancy that was played:

    ℓ̂_h(s, a) = c (1{s_h = s, a_h = a} / q_h(s, a) − 1{s_h = s} / q_h(s))                      [eq:IJLMT25-estimator]

has the mean Q − V, is 0 on places not met, and sums to 0 over a under the policy.

Unknown dynamics, u >= q the greatest occupancy over the confidence set:

    ℓ^u_h(s, a) = c (1{s, a} / u_h(s, a) − 1{s} / u_h(s)) − (1 − π_h(a|s)) (1 − 1{s} / u_h(s))  [eq:IJLMT25-optimistic]

has the mean (q/u) (Q − V + 1 − π) − (1 − π) <= Q − V.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit.learners.parts import transition_counts


def add_estimate(cost_hsa: FloatArray, x_hsa: FloatArray, c: float, states: IntArray, actions: IntArray) -> None:
    """Add ℓ̂ of one episode, in place.  Places that the played occupancy gives nothing are left out."""
    steps = np.arange(states.size)
    reach_h, taken_h = x_hsa[steps, states].sum(axis=-1), x_hsa[steps, states, actions]
    met = taken_h > 0.0
    steps, states, actions = steps[met], states[met], actions[met]
    cost_hsa[steps, states] -= (c / reach_h[met])[:, None]
    cost_hsa[steps, states, actions] += c / taken_h[met]


def charge(
    policy_hsa: FloatArray, c: float, states: IntArray, actions: IntArray, out_hsa: FloatArray, everything: bool
) -> None:
    """Add ρ of one episode: what each place contributes to the adaptive step sizes.  [eq:IJLMT25-charge]

    ρ_h(s, a) = c² 1{s, a} (1 − π_h(a|s))², the paper's; everything: c² (1{s, a} − 1{s} π_h(a|s))².
    """
    steps = np.arange(states.size)
    share_ha = policy_hsa[steps, states]
    missing_h = 1.0 - share_ha[steps, actions]
    if everything:
        out_hsa[steps, states] += c * c * share_ha**2
        out_hsa[steps, states, actions] -= c * c * share_ha[steps, actions] ** 2
    out_hsa[steps, states, actions] += c * c * missing_h**2


class Plausible(NamedTuple):
    """What an epoch knows of the dynamics, from the episodes before it."""

    counts_hsas: FloatArray  # N
    epoch_counts_hsas: FloatArray  # of this epoch so far
    mean_hsas: FloatArray  # P̄; uniform where N = 0
    lower_hsas: FloatArray  # the confidence set: P̄ ± B, within [0, 1]
    upper_hsas: FloatArray
    width_hsa: FloatArray  # B(s, a) = min(2, Σ B(s, a, s')); 0 at the last step, which leads nowhere


def plausible(counts_hsas: FloatArray, K: int, radius_scale: float) -> Plausible:
    """The confidence set of a new epoch.  [eq:IJLMT25-widths]

    B(s, a, s') = min(1, 2 √(P̄ ln ι / (N ∨ 1)) + 14 ln ι / (3 (N ∨ 1))),   ι = H S A K / δ,   δ = 1 / K³
    """
    H, S, A = counts_hsas.shape[:3]
    visits_hsa = counts_hsas.sum(axis=-1, keepdims=True)
    unseen = visits_hsa == 0.0
    mean_hsas = np.where(unseen, 1.0 / S, counts_hsas / np.maximum(visits_hsa, 1.0))
    ratio = log(float(H * S * A) * float(K) ** 4) / np.maximum(visits_hsa, 1.0)
    radius_hsas = np.where(
        unseen, 1.0, radius_scale * np.minimum(1.0, 2.0 * np.sqrt(mean_hsas * ratio) + 14.0 / 3.0 * ratio)
    )
    width_hsa = np.minimum(2.0, radius_hsas.sum(axis=-1))
    width_hsa[-1] = 0.0
    lower_hsas, upper_hsas = np.maximum(0.0, mean_hsas - radius_hsas), np.minimum(1.0, mean_hsas + radius_hsas)
    return Plausible(counts_hsas, transition_counts.none_yet(H, S, A), mean_hsas, lower_hsas, upper_hsas, width_hsa)


def ended(known: Plausible, states: IntArray, actions: IntArray) -> bool:
    """Count one episode, in place; whether some (h, s, a) was now met as often in this epoch as before it."""
    transition_counts.add_trajectory(known.epoch_counts_hsas, states, actions)
    met = (np.arange(states.size - 1), states[:-1], actions[:-1])
    before, now = known.counts_hsas[met].sum(axis=-1), known.epoch_counts_hsas[met].sum(axis=-1)
    return bool((now >= np.maximum(before, 1.0)).any())


def greatest_reach(known: Plausible, policy_hsa: FloatArray, initial_s: FloatArray, states: IntArray) -> FloatArray:
    """u_h(s_h) of the H places met, (H,).  O(H² S² A)."""
    from aggbandit.kernels import occupancy_bounds

    H, S, _ = policy_hsa.shape
    scratch = np.empty(S), np.empty(S), np.empty(S, dtype=np.int64)
    sets = frozen(known.lower_hsas), frozen(known.upper_hsas), frozen(policy_hsa), frozen(initial_s)
    return np.array([occupancy_bounds.extreme_reach(*sets, h, states[h], 1.0, *scratch) for h in range(H)])


def add_optimistic_estimate(
    cost_hsa: FloatArray,
    policy_hsa: FloatArray,
    reach_h: FloatArray,
    bonus_hsa: FloatArray,
    c: float,
    states: IntArray,
    actions: IntArray,
) -> None:
    """Add ℓ^u − bonus of one episode, in place, with u_h(s_h) of the places met in `reach_h`."""
    cost_hsa -= (1.0 - policy_hsa) + bonus_hsa
    steps = np.arange(states.size)
    met = (reach_h > 0.0) & (policy_hsa[steps, states, actions] > 0.0)
    steps, states, actions, weight_h = steps[met], states[met], actions[met], 1.0 / reach_h[met]
    share_ha = policy_hsa[steps, states]
    cost_hsa[steps, states] += weight_h[:, None] * (1.0 - share_ha - c)
    cost_hsa[steps, states, actions] += weight_h * c / share_ha[np.arange(steps.size), actions]
