"""FTRL with the Tsallis entropy and a log barrier: [IJLMT25], for adversarial and stochastic losses at once."""

from dataclasses import dataclass
from math import sqrt
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


class KnownState(NamedTuple):
    x_hsa: FloatArray  # q_t, the occupancy played
    cost_hsa: FloatArray  # Σ_{j<t} ℓ̂_j
    episodes: int  # t, from 1
    policy_hsa: FloatArray


class UnknownState(NamedTuple):
    known: Plausible
    x_hsa: FloatArray  # q̂_t, the occupancy that the policy would have under P̄
    cost_hsa: FloatArray  # Σ ℓ̂_j over the episodes of this epoch
    episodes: int  # t − t_i + 1, from 1 in every epoch
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class FtrlTsallis(Learner[Any]):
    """Plays the occupancy that minimises Σ_{j<t} ⟨ℓ̂_j, q⟩ + ψ_t(q); ℓ̂ estimates Q − V, on totals scaled to [0, 1].

    dynamics="known": over the occupancies of p,
    ℓ̂ = c (1{s, a} / q(s, a) − 1{s} / q(s)),  c = L / H
    ψ_t(q) = −2 √t Σ √q − 2 Σ ln q                                                        [eq:IJLMT25-tsallis]

    dynamics="unknown": in epochs, each over the occupancies of the frequencies P̄ at its start,
    ℓ̂ = c (1{s, a} / u(s, a) − 1{s} / u(s)) − (1 − π) (1 − 1{s} / u(s)) − B(s, a)
    ψ_t(q) = −√(t − t_i + 1) Σ √q − 1024 H Σ ln q                                         [eq:IJLMT25-tsallis-epochs]
    u the greatest occupancy over P̄ ± B(s, a, s').  An epoch ends when some (h, s, a) was met in it as often as ever
    before, or once where never before.

    Paper    Ito, Jamieson, Luo, Maiti, Tsuchiya 2025 (arXiv 2510.17103): known dynamics H (√(H · HS · A K) + ...)
             against adversaries and O(log K) for stochastic losses; unknown dynamics Theorem 3.
    Departs  in nothing that we know of, but parts of it are reconstructed: the copy at hand had lost most displayed
             equations.  ψ and ℓ^u are derived from the sentences around them and have every property that the text
             states.  At the last step, which leads nowhere, B = 0.
    Cost     2 to 6 Newton steps of O(H S³ + H S² A) an episode; unknown dynamics O(H² S² A) more.

    With unknown dynamics and 1024 H nothing is learned at laptop scale, docs/coverage.md has the numbers: for
    experiments lower `beta_scale`, `radius_scale` and `bonus_scale`.
    """

    id = "ftrl-tsallis"
    reconstructed = True
    update_by = CONVEX_PROBLEM

    dynamics: str = KNOWN
    step_scale: float = 1.0  # divides the factor of Σ √q
    beta_scale: float = 1.0  # multiplies the factor of Σ ln q, 2 or 1024 H
    radius_scale: float = 1.0  # multiplies B(s, a, s'); unknown dynamics
    bonus_scale: float = 1.0  # multiplies B(s, a) in ℓ̂; unknown dynamics

    def __post_init__(self) -> None:
        require_known("dynamics", self.dynamics, DYNAMICS)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("beta_scale", self.beta_scale, low=0.0, low_open=True)
        require_number("radius_scale", self.radius_scale, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=AGGREGATE, dynamics=self.dynamics, losses=BOTH)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.dynamics != KNOWN:
            problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        root, barrier = self._factors(problem, 1)
        return {"first_root_factor": root, "barrier_factor": barrier}

    def init(self, problem: Problem, draws: Draws) -> KnownState | UnknownState:
        if self.dynamics != KNOWN:
            return self._new_epoch(problem, transition_counts.none_yet(*problem.shape))
        transition_tsas = occupancy_polytope.dense_transition(problem)
        x_hsa = occupancy_polytope.uniform_occupancy(transition_tsas, problem.initial, problem.H, problem.A)
        cost_hsa = np.zeros(problem.shape)
        x_hsa = self._minimise(problem, transition_tsas, x_hsa, cost_hsa, 1)
        return KnownState(x_hsa, cost_hsa, 1, occupancy_polytope.policy_of(x_hsa))

    def policy(self, problem: Problem, state: KnownState | UnknownState) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(
        self, problem: Problem, state: KnownState | UnknownState, episode: Episode, draws: Draws
    ) -> KnownState | UnknownState:
        assert episode.total is not None
        c, states, actions = episode.total / problem.H, episode.states, episode.actions
        episodes = state.episodes + 1
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
        x_hsa = self._minimise(problem, transition_tsas, state.x_hsa, state.cost_hsa, episodes)
        policy_hsa = occupancy_polytope.policy_of(x_hsa)
        return state._replace(x_hsa=x_hsa, episodes=episodes, policy_hsa=policy_hsa)

    def _new_epoch(self, problem: Problem, counts_hsas: FloatArray) -> UnknownState:
        known = centred_estimates.plausible(counts_hsas, problem.require_episodes(self.name), self.radius_scale)
        x_hsa = occupancy_polytope.uniform_occupancy(known.mean_hsas, problem.initial, problem.H, problem.A)
        cost_hsa = np.zeros(problem.shape)
        x_hsa = self._minimise(problem, known.mean_hsas, x_hsa, cost_hsa, 1)
        return UnknownState(known, x_hsa, cost_hsa, 1, occupancy_polytope.policy_of(x_hsa))

    def _minimise(
        self, problem: Problem, transition_tsas: FloatArray, near_hsa: FloatArray, cost_hsa: FloatArray, episodes: int
    ) -> FloatArray:
        root, barrier = self._factors(problem, episodes)
        open_hs = near_hsa[:, :, 0] > 0.0
        return occupancy_polytope.minimise(
            transition_tsas, problem.initial, open_hs, cost_hsa, near_hsa, log=barrier, root=root
        )

    def _factors(self, problem: Problem, episodes: int) -> tuple[float, float]:
        """The factors of −Σ √q and −Σ ln q in ψ_t.  [eq:IJLMT25-tsallis] [eq:IJLMT25-tsallis-epochs]"""
        if self.dynamics == KNOWN:
            return 2.0 * sqrt(episodes) / self.step_scale, 2.0 * self.beta_scale
        return sqrt(episodes) / self.step_scale, 1024.0 * problem.H * self.beta_scale
