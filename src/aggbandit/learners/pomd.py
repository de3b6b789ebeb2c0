"""Optimistic policy optimisation (POMD), dynamics unknown, for stochastic or adversarial losses; [SERM20]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    ADVERSARIAL,
    CLOSED_FORM,
    SEMI_BANDIT,
    STOCHASTIC,
    UNKNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import loss_counts, plausible_kernels, transition_counts
from aggbandit.learners.parts.loss_counts import LossCounts
from aggbandit.learners.parts.softmax import exponential_weights
from aggbandit.learners.uob_reps import plausible_set

KINDS = (STOCHASTIC, ADVERSARIAL)


class State(NamedTuple):
    log_weights_hsa: FloatArray  # -η Σ_k Q^k, the greatest of each (h, s) moved to 0
    policy_hsa: FloatArray
    counts_hsas: FloatArray  # n_h(s, a, s') of all episodes so far
    losses: LossCounts  # what was met at (h, s, a); unused with losses="adversarial"


@final
@dataclass(frozen=True, kw_only=True)
class Pomd(Learner[State]):
    """Exponential weights on action values that are optimistic for the policy played.

    π^{k+1} ∝ π^k exp(−η Q^k),   V_{H+1} = 0,   V_h(s) = Σ_a π^k_h(a|s) Q_h(s, a)
    losses="stochastic"     Q_h(s, a) = max(0, c̄ − b^c − b^p + Σ_{s'} p̄(s') V_{h+1}(s'))         [eq:SERM20-stochastic]
                            b^c = √(2 ln(6 S A H K / δ) / n),   b^p = H √(4 S ln(9 S A H K / δ) / n)   [eq:SERM20-bonus]
                            η = √(2 ln A / (H² K))                                               [eq:SERM20-eta]
    losses="adversarial"    Q_h(s, a) = ĉ + min_q Σ_{s'} q(s') V_{h+1}(s')      [eq:SERM20-adversarial]
                            ĉ = 1{s_h = s, a_h = a} ℓ / (u_h(s) π_h(a|s) + γ)
                            γ = A^{−1/2} K^{−1/3},   η = H^{−1} K^{−2/3}

    where n = max(1, visits), u is the greatest occupancy, q and u range over the set of `uob-reps`, and means and sets
    are those of the episodes before.

    Paper    Shani, Efroni, Rosenberg, Mannor 2020, *Optimistic policy optimization with bandit feedback*: regret
             Õ(√(S² A H⁴ K)) for stochastic and Õ(H² S √A (K^{2/3} + S A K^{1/3})) for adversarial losses.
    Departs  in b^p, where the main text's display omits a factor H without which it would not be optimistic.
             Reconstructed: the constants stand in an appendix that was not at hand; the set is that of Jin et al. 2020.
    Cost     stochastic O(H S² A) time an episode, adversarial O(H² S³ A); O(H S² A) memory.
    """

    id = "pomd"
    reconstructed = True
    update_by = CLOSED_FORM

    losses: str = STOCHASTIC  # or "adversarial"
    confidence: float = 0.05  # δ
    step_scale: float = 1.0  # multiplies η
    bonus_scale: float = 1.0  # multiplies b^c + b^p; with losses="stochastic"
    exploration: float | None = None  # γ; None: that of the paper; with losses="adversarial"
    radius_scale: float = 1.0  # multiplies the radius of the set; with losses="adversarial"

    def __post_init__(self) -> None:
        if self.losses not in KINDS:
            raise InvalidInputError(f"losses must be one of {', '.join(KINDS)}, but is {self.losses!r}.")
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        if self.exploration is not None:
            require_number("exploration", self.exploration, low=0.0, low_open=True)
        require_number("radius_scale", self.radius_scale, low=0.0)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=SEMI_BANDIT, dynamics=UNKNOWN, losses=self.losses)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        told: dict[str, float | int | str | bool] = {"step_size": self._step(problem)}
        return told | ({"exploration": self._exploration(problem)} if self.losses == ADVERSARIAL else {})

    def init(self, problem: Problem, draws: Draws) -> State:
        shape = problem.shape
        return State(
            np.zeros(shape),
            np.full(shape, 1.0 / problem.A),
            transition_counts.none_yet(*shape),
            loss_counts.none_yet(shape),
        )

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.losses is not None
        H, S, A = problem.shape
        K = problem.require_episodes(self.name)
        if self.losses == STOCHASTIC:
            b_hsa = self.bonus_scale * optimism(state.losses.visits_hsa, K, self.confidence)
            mean_hsas = transition_counts.empirical(state.counts_hsas)
            q_hsa = truncated_action_values(mean_hsas, state.policy_hsa, state.losses.mean_hsa - b_hsa)
        else:
            lower, upper = plausible_set(state.counts_hsas, log(K * H * S * A / self.confidence), self.radius_scale)
            greatest_h = plausible_kernels.greatest_reach(
                lower, upper, state.policy_hsa, problem.initial, episode.states
            )
            met = np.arange(H), episode.states, episode.actions
            estimate_hsa = np.zeros((H, S, A))
            estimate_hsa[met] = episode.losses / (greatest_h * state.policy_hsa[met] + self._exploration(problem))
            q_hsa = plausible_kernels.extreme_action_values(
                lower, upper, state.policy_hsa, estimate_hsa, greatest=False
            )  # [eq:SERM20-adversarial]
        state.policy_hsa[:] = exponential_weights(state.log_weights_hsa, q_hsa, self._step(problem))
        transition_counts.add_trajectory(state.counts_hsas, episode.states, episode.actions)
        loss_counts.add_trajectory(state.losses, episode.states, episode.actions, episode.losses)
        return state

    def _step(self, problem: Problem) -> float:
        """η.  [eq:SERM20-eta]"""
        H, _, A = problem.shape
        K = problem.require_episodes(self.name)
        if self.losses == STOCHASTIC:
            return self.step_scale * sqrt(2.0 * log(A) / (H * H * K))
        return float(self.step_scale / (H * K ** (2.0 / 3.0)))

    def _exploration(self, problem: Problem) -> float:
        if self.exploration is not None:
            return self.exploration
        return float(problem.A**-0.5 * problem.require_episodes(self.name) ** (-1.0 / 3.0))


def optimism(visits_hsa: FloatArray, K: int, confidence: float) -> FloatArray:
    """b^c + b^p.  [eq:SERM20-bonus]

    √(2 ln(6 S A H K / δ) / n) + H √(4 S ln(9 S A H K / δ) / n), n = max(1, visits); b^p = 0 at the last step.
    """
    H, S, A = visits_hsa.shape
    n_hsa = np.maximum(visits_hsa, 1.0)
    bonus_hsa: FloatArray = np.sqrt(2.0 * log(6.0 * S * A * H * K / confidence) / n_hsa)
    bonus_hsa[:-1] += H * np.sqrt(4.0 * S * log(9.0 * S * A * H * K / confidence) / n_hsa[:-1])
    return bonus_hsa


def truncated_action_values(model_hsas: FloatArray, policy_hsa: FloatArray, loss_hsa: FloatArray) -> FloatArray:
    """Q_h(s, a) = max(0, loss + Σ_{s'} model(s') Σ_a' π Q_{h+1}(s', a')).  [eq:SERM20-stochastic]"""
    q_hsa = np.empty(loss_hsa.shape)
    v_s = np.zeros(policy_hsa.shape[1])
    for h in range(len(q_hsa) - 1, -1, -1):
        ahead_sa = model_hsas[h] @ v_s if h + 1 < len(q_hsa) else 0.0
        np.maximum(loss_hsa[h] + ahead_sa, 0.0, out=q_hsa[h])
        v_s = (policy_hsa[h] * q_hsa[h]).sum(axis=-1)
    return q_hsa
