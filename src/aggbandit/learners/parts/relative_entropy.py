"""Mirror descent by relative entropy over occupancies: O-REPS with known dynamics, its relatives with sets of kernels.

See kernels.kl_projection for the mathematics: the dual has one multiplier for each (h, s), and Newton's method on it is
exact to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.errors import AggbanditError

MOST_STEPS = 200
GOOD_ENOUGH = 1e-6  # of the Newton decrement


class Occupancy(NamedTuple):
    """q_h(s, a, s') = reach_h(s) π_h(a|s) k_h(s'|s, a), kept so that nothing underflows."""

    log_policy_hsa: FloatArray
    kernel_hsat: FloatArray  # k; (0, S, A, S) where the dynamics are known; the last step's is never used
    reach_hs: FloatArray


class Kernels(NamedTuple):
    """A set of transition kernels, row by row."""

    kind: int  # of kernels.kl_projection
    lower_tsas: FloatArray  # or the one kernel, or the balls' centres
    upper_tsas: FloatArray
    radius_hsa: FloatArray  # of balls, in L1


def known(transition_tsas: FloatArray) -> Kernels:
    """One kernel, (T, S, A, S) with T = 1 where it is the same at every step."""
    return Kernels(0, transition_tsas, transition_tsas, np.zeros((0, 0, 0)))


def boxes(lower_hsas: FloatArray, upper_hsas: FloatArray) -> Kernels:
    """lower <= k <= upper."""
    return Kernels(1, lower_hsas, upper_hsas, np.zeros((0, 0, 0)))


def balls(mean_hsas: FloatArray, radius_hsa: FloatArray) -> Kernels:
    """Σ_{s'} |k(s') − mean(s')| <= radius; means are distributions."""
    return Kernels(2, mean_hsas, mean_hsas, radius_hsa)


def policy(q: Occupancy) -> FloatArray:
    """π_h(a|s) = Σ_{s'} q_h(s, a, s') / Σ_{a, s'} q_h(s, a, s')."""
    policy_hsa: FloatArray = np.exp(q.log_policy_hsa)
    policy_hsa /= policy_hsa.sum(axis=-1, keepdims=True)
    return policy_hsa


def step(q: Occupancy, initial_s: FloatArray, within: Kernels, cost_hsa: FloatArray) -> None:
    """q becomes argmin_{q'} ⟨cost, q'⟩ + KL(q' ‖ q) over the occupancies of these kernels, in place."""
    from aggbandit.kernels import kl_projection

    decrement = kl_projection.project(within.kind, initial_s, cost_hsa, *within[1:], *q, MOST_STEPS)
    if not decrement <= GOOD_ENOUGH:
        raise AggbanditError(
            f"The projection onto occupancies stopped at a Newton decrement of {decrement:.3g}, but should come below "
            f"{GOOD_ENOUGH:g}: losses estimated too large for double precision. Lower the step size, or raise "
            "exploration (floor)."
        )


def of_uniform_policy(kernel_hsat: FloatArray, transition_tsas: FloatArray, initial_s: FloatArray, H: int) -> Occupancy:
    """The occupancy of the uniform policy under these transitions; `kernel_hsat` is what is kept as k."""
    from aggbandit.kernels import occupancy

    S, A = transition_tsas.shape[1:3]
    reach_hs = np.empty((H, S))
    occupancy.reach(transition_tsas, np.full((H, S, A), 1.0 / A), initial_s, reach_hs)
    return Occupancy(np.full((H, S, A), -np.log(A)), kernel_hsat, reach_hs)


def of_unknown_dynamics(H: int, S: int, A: int, initial_s: FloatArray) -> Occupancy:
    """q_h(s, a, s') = 1 / (S A S), from the given first states: uniform policy, uniform kernel."""
    uniform_hsat = np.full((H, S, A, S), 1.0 / S)
    return of_uniform_policy(uniform_hsat, uniform_hsat, initial_s, H)


def of_known_dynamics(transition_tsas: FloatArray, initial_s: FloatArray, H: int) -> Occupancy:
    """argmin Σ q ln q over the occupancies that policies have.  [eq:ZN13-first]

    The same step from the uniform policy's occupancy u, at the cost ln u: KL(q ‖ u) + ⟨ln u, q⟩ = Σ q ln q up to a
    constant, since Σ q = H.
    """
    S, A = transition_tsas.shape[1:3]
    q = of_uniform_policy(np.zeros((0, S, A, S)), transition_tsas, initial_s, H)
    cost_hs = np.zeros(q.reach_hs.shape)
    np.log(q.reach_hs / A, out=cost_hs, where=q.reach_hs > 0.0)
    cost_hsa = np.ascontiguousarray(np.broadcast_to(cost_hs[:, :, None], (H, S, A)))
    step(q, initial_s, known(transition_tsas), cost_hsa)
    return q
