"""FTRL with a log barrier of adaptive weights: [IJLMT25], for adversarial and stochastic losses at once."""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_known, require_number
from aggbandit.learners.base import (
    AGGREGATE,
    BOTH,
    CONVEX_PROBLEM,
    DYNAMICS,
    KNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import centred_estimates, occupancy_polytope, transition_counts
from aggbandit.learners.parts.centred_estimates import Plausible

CHARGES = ("chosen", "all")


class KnownState(NamedTuple):
    x_hsa: FloatArray  # q_t, the occupancy played
    cost_hsa: FloatArray  # Σ_{j<t} ℓ̂_j
    charged_hsa: FloatArray  # Σ_{j<t} ρ_j
    policy_hsa: FloatArray


class UnknownState(NamedTuple):
    known: Plausible
    x_hsa: FloatArray  # q̂_t, the occupancy that the policy would have under P̄
    cost_hsa: FloatArray  # Σ ℓ̂_j over the episodes of this epoch
    charged_hsa: FloatArray  # Σ ρ_j over them
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class FtrlLogBarrier(Learner[Any]):
    """Plays the occupancy that minimises Σ_{j<t} ⟨ℓ̂_j, q⟩ − Σ (1/η_t(s, a)) ln q(s, a); ℓ̂ estimates Q − V.

    dynamics="known": over the occupancies of p,
    ℓ̂ = c (1{s, a} / q(s, a) − 1{s} / q(s)),  c = L / H
    1/η_t(s, a) = √(4 + Σ_{j<t} ρ_j(s, a) / ln K)                                       [eq:IJLMT25-log-barrier]
    ρ_t(s, a) = c² 1{s, a} (1 − π(a|s))²;  charge="all": c² (1{s, a} − 1{s} π(a|s))², the other actions too

    dynamics="unknown": in epochs, each over the occupancies of the frequencies P̄ at its start, with the optimistic ℓ̂
    and the epochs of `ftrl-tsallis`, and 1/η_t(s, a) = √((1024 H)² + Σ ρ_j(s, a) / ln K) over the epoch's episodes.

    Paper    Ito, Jamieson, Luo, Maiti, Tsuchiya 2025 (arXiv 2510.17103): H √(HS · A H K log K) against adversaries with
             known dynamics, and Σ_{s, a ≠ π*(s)} log K / Δ(s, a) for stochastic losses.
    Departs  The copy at hand had lost most displayed equations: ρ is the paper's, the constants 4 and 1 / ln K are
             reconstructed (any η <= 1/2 is admissible).  For unknown dynamics the paper has the Tsallis entropy only:
             this form is ours, by analogy, without a theorem.
    Cost     2 to 6 Newton steps of O(H S³ + H S² A) an episode; unknown dynamics O(H² S² A) more.
    """

    id = "ftrl-logbarrier"
    reconstructed = True
    update_by = CONVEX_PROBLEM

    dynamics: str = KNOWN
    charge: str = "chosen"  # or "all"
    step_scale: float = 1.0  # multiplies η
    beta_scale: float = 1.0  # multiplies the first 1/η, 2 or 1024 H
    radius_scale: float = 1.0  # multiplies B(s, a, s'); unknown dynamics
    bonus_scale: float = 1.0  # multiplies B(s, a) in ℓ̂; unknown dynamics

    def __post_init__(self) -> None:
        require_known("dynamics", self.dynamics, DYNAMICS)
        require_known("charge", self.charge, CHARGES)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("beta_scale", self.beta_scale, low=0.0, low_open=True)
        require_number("radius_scale", self.radius_scale, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=AGGREGATE, dynamics=self.dynamics, losses=BOTH)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {"first_step_size": 1.0 / float(self._weights(problem, np.zeros(1))[0])}

    def init(self, problem: Problem, draws: Draws) -> KnownState | UnknownState:
        if self.dynamics != KNOWN:
            return self._new_epoch(problem, transition_counts.none_yet(*problem.shape))
        transition_tsas = occupancy_polytope.dense_transition(problem)
        x_hsa = occupancy_polytope.uniform_occupancy(transition_tsas, problem.initial, problem.H, problem.A)
        cost_hsa, charged_hsa = np.zeros(problem.shape), np.zeros(problem.shape)
        x_hsa = self._minimise(problem, transition_tsas, x_hsa, cost_hsa, charged_hsa)
        return KnownState(x_hsa, cost_hsa, charged_hsa, occupancy_polytope.policy_of(x_hsa))

    def policy(self, problem: Problem, state: KnownState | UnknownState) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(
        self, problem: Problem, state: KnownState | UnknownState, episode: Episode, draws: Draws
    ) -> KnownState | UnknownState:
        assert episode.total is not None
        c, states, actions = episode.total / problem.H, episode.states, episode.actions
        if isinstance(state, KnownState):
            centred_estimates.add_estimate(state.cost_hsa, state.x_hsa, c, states, actions)
            transition_tsas = occupancy_polytope.dense_transition(problem)
        else:
            if centred_estimates.ended(state.known, states, actions):
                return self._new_epoch(problem, state.known.counts_hsas + state.known.epoch_counts_hsas)
            reach_h = centred_estimates.greatest_reach(state.known, state.policy_hsa, problem.initial, states)
            centred_estimates.add_optimistic_estimate(
                state.cost_hsa,
                state.policy_hsa,
                reach_h,
                self.bonus_scale * state.known.width_hsa,
                c,
                states,
                actions,
            )
            transition_tsas = state.known.mean_hsas
        centred_estimates.charge(state.policy_hsa, c, states, actions, state.charged_hsa, self.charge == "all")
        x_hsa = self._minimise(problem, transition_tsas, state.x_hsa, state.cost_hsa, state.charged_hsa)
        return state._replace(x_hsa=x_hsa, policy_hsa=occupancy_polytope.policy_of(x_hsa))

    def _new_epoch(self, problem: Problem, counts_hsas: FloatArray) -> UnknownState:
        known = centred_estimates.plausible(counts_hsas, problem.require_episodes(self.name), self.radius_scale)
        x_hsa = occupancy_polytope.uniform_occupancy(known.mean_hsas, problem.initial, problem.H, problem.A)
        cost_hsa, charged_hsa = np.zeros(problem.shape), np.zeros(problem.shape)
        x_hsa = self._minimise(problem, known.mean_hsas, x_hsa, cost_hsa, charged_hsa)
        return UnknownState(known, x_hsa, cost_hsa, charged_hsa, occupancy_polytope.policy_of(x_hsa))

    def _minimise(
        self,
        problem: Problem,
        transition_tsas: FloatArray,
        near_hsa: FloatArray,
        cost_hsa: FloatArray,
        charged_hsa: FloatArray,
    ) -> FloatArray:
        weights_hsa = self._weights(problem, charged_hsa)
        open_hs = near_hsa[:, :, 0] > 0.0
        return occupancy_polytope.minimise(
            transition_tsas, problem.initial, open_hs, cost_hsa, near_hsa, log=weights_hsa
        )

    def _weights(self, problem: Problem, charged: FloatArray) -> FloatArray:
        """1/η_t.  [eq:IJLMT25-log-barrier]"""
        first = self.beta_scale * (2.0 if self.dynamics == KNOWN else 1024.0 * problem.H)
        K = max(problem.require_episodes(self.name), 2)  # ln 1 = 0 would leave no weight to a single episode
        weights: FloatArray = np.sqrt(first * first + charged / log(K)) / self.step_scale
        return weights
