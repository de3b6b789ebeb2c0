"""Delay-adapted policy optimisation: [LRS23], tabular."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    ADVERSARIAL,
    AGGREGATE,
    CLOSED_FORM,
    DYNAMICS,
    KNOWN,
    SEMI_BANDIT,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import confidence_sets, occupancy_polytope, plausible_kernels, transition_counts
from aggbandit.learners.parts.softmax import exponential_weights

LEVELS = (SEMI_BANDIT, AGGREGATE)


class State(NamedTuple):
    log_weights_hsa: FloatArray  # -η Σ (Q̂ - B), the greatest of each (h, s) moved to 0
    policy_hsa: FloatArray  # π^k
    counts_hsas: FloatArray  # of the episodes whose feedback has arrived; empty where the dynamics are known


@final
@dataclass(frozen=True, kw_only=True)
class Dapo(Learner[State]):
    """Policy optimisation whose feedback may come late: estimates weigh an old episode by how much it is still played.

    When the feedback of episode j arrives, π^j being the policy that played it and π^k today's:
    r_h(s, a) = π^j / max(π^j, π^k)                                                          [eq:LRS23-ratio]
    Q̂_h(s, a) = r 1{s_h = s, a_h = a} L_h / (μ̄^j_h(s) π^j + γ)                               [eq:LRS23-Q-hat]
    b_h(s) = Σ_a π^k r H (3 γ + 2 (μ̄^j − μ̲^j)(s, a)) / (μ̄^j_h(s) π^j + γ)                     [eq:LRS23-b]
    B_h(s, a) = b_h(s) + max_q Σ_{s'} q(s') Σ_a' π^j_{h+1}(a'|s') B_{h+1}(s', a')
    π^{k+1} ∝ π^k exp(−η (Q̂ − B))
    η = (H² S A K + H⁴ (K + D))^{−1/2}, H times that with unknown dynamics;   γ = 2 η H      [eq:LRS23-eta]

    L_h is the loss from h on, or with feedback="aggregate" the total.  With known dynamics μ̄ = μ̲ = μ and q = p; with
    unknown ones they are extremes over the boxes of [LM25] around the frequencies of the episodes that have arrived.
    Without delays and with totals this is Algorithms 1 and 2 of [LM25], but for η and for the 2 in b, where [LM25] has
    1 (`width_scale=0.5`).

    Paper    Lancewicki, Rosenberg, Sotnikov 2023, *Delay-adapted policy optimization and improved regret for
             adversarial MDP with delayed bandit feedback*, Algorithms 3 and 4: with probability 1 − δ regret
             Õ(H² √(S A K) + H³ √(K + D) + H⁴ d_max) with known and Õ(H³ S √(A K) + H³ √(K + D) + ...) with unknown
             dynamics, D the sum of the delays.
    Departs  where several feedbacks arrive at once: they are taken in turn, so that for the second π^k is the policy
             after the first.  With unknown dynamics the set is that of the feedback's arrival instead of that of the
             episode's beginning: smaller, as independent of episode j, and nothing needs to be remembered.  Feedback
             "aggregate" is not in the paper.  `total_delay` (D) must be told where delays are expected.  For very small
             K (below 9, or 25 H² with unknown dynamics) η is lowered to what the analysis takes for granted,
             η B <= 1: `step_lowered` tells.
    Cost     O(H S² A) time a feedback with known dynamics, O(H² S³ A) with unknown ones; O(H S² A) memory, beside the
             policies of pending episodes, which whoever drives it keeps.
    """

    id = "dapo"
    version = 2
    update_by = CLOSED_FORM

    feedback: str = SEMI_BANDIT  # or "aggregate"
    dynamics: str = KNOWN  # or "unknown"
    total_delay: float = 0.0  # D; enters through η alone
    confidence: float = 0.05  # δ; enters through the boxes alone
    step_scale: float = 1.0  # multiplies η
    exploration: float | None = None  # γ; None: 2 η H
    bonus_scale: float = 1.0  # multiplies all of b
    width_scale: float = 1.0  # multiplies the part of b that pays for μ̄ − μ̲
    radius_scale: float = 1.0  # multiplies the radius of the boxes

    def __post_init__(self) -> None:
        if self.feedback not in LEVELS:
            raise InvalidInputError(f"feedback must be one of {', '.join(LEVELS)}, but is {self.feedback!r}.")
        if self.dynamics not in DYNAMICS:
            raise InvalidInputError(f"dynamics must be one of {', '.join(DYNAMICS)}, but is {self.dynamics!r}.")
        require_number("total_delay", self.total_delay, low=0.0)
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        if self.exploration is not None:
            require_number("exploration", self.exploration, low=0.0, low_open=True)
        for name in ("bonus_scale", "width_scale", "radius_scale"):
            require_number(name, getattr(self, name), low=0.0)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=self.feedback, dynamics=self.dynamics, losses=ADVERSARIAL, late_feedback=True)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        step_size, exploration, lowered = self._steps(problem)
        return {"step_size": step_size, "exploration": exploration, "step_lowered": lowered}

    def init(self, problem: Problem, draws: Draws) -> State:
        counts_hsas = transition_counts.none_yet(*(problem.shape if self.dynamics != KNOWN else (0, 0, 0)))
        return State(np.zeros(problem.shape), np.full(problem.shape, 1.0 / problem.A), counts_hsas)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        H, S, A = problem.shape
        step_size, exploration, _ = self._steps(problem)
        played_hsa = state.policy_hsa if episode.policy is None else np.ascontiguousarray(episode.policy)
        if self.dynamics == KNOWN:
            lower = upper = occupancy_polytope.dense_transition(problem)
            least_hsa = greatest_hsa = occupancy_polytope.of_policy(lower, problem.initial, played_hsa)
        else:
            log_term = confidence_sets.logarithm(H, S, A, problem.require_episodes(self.name), self.confidence)
            lower, upper = confidence_sets.bernstein_box(state.counts_hsas, log_term, self.radius_scale)
            least_hs, greatest_hs = plausible_kernels.occupancy_bounds(lower, upper, played_hsa, problem.initial)
            least_hsa, greatest_hsa = least_hs[:, :, None] * played_hsa, greatest_hs[:, :, None] * played_hsa
        ratio_hsa = delay_ratio(played_hsa, state.policy_hsa)
        local_hs = self.bonus_scale * local_bonus(
            state.policy_hsa * ratio_hsa, least_hsa, greatest_hsa, exploration, 2.0 * self.width_scale
        )
        loss_hsa = np.ascontiguousarray(np.broadcast_to(local_hs[:, :, None], (H, S, A)))
        estimate_hsa = -plausible_kernels.extreme_action_values(lower, upper, played_hsa, loss_hsa, greatest=True)
        met = np.arange(H), episode.states, episode.actions
        if self.feedback == AGGREGATE:
            assert episode.total is not None
            told_h = np.full(H, episode.total)
        else:
            assert episode.losses is not None
            told_h = episode.losses[::-1].cumsum()[::-1]
        estimate_hsa[met] += ratio_hsa[met] * told_h / (greatest_hsa[met] + exploration)  # [eq:LRS23-Q-hat]
        state.policy_hsa[:] = exponential_weights(state.log_weights_hsa, estimate_hsa, step_size)
        if self.dynamics != KNOWN:
            transition_counts.add_trajectory(state.counts_hsas, episode.states, episode.actions)
        return state

    def _steps(self, problem: Problem) -> tuple[float, float, bool]:
        """η and γ, and whether η had to be lowered.  [eq:LRS23-eta]

        b <= H (3 + 2 width_scale) bonus_scale, or 3 H bonus_scale with known dynamics, so that B is at most H times as
        much, and the analysis needs η B <= 1.
        """
        H, S, A = problem.shape
        K = problem.require_episodes(self.name)
        paper = 1.0 / sqrt(H * H * S * A * K + H**4 * (K + self.total_delay))
        width = 0.0
        if self.dynamics != KNOWN:
            paper, width = paper * H, 2.0 * self.width_scale
        greatest_bonus = H * H * (3.0 + width) * self.bonus_scale
        lowered = paper * greatest_bonus > 1.0
        step_size = self.step_scale * (1.0 / greatest_bonus if lowered else paper)
        exploration = 2.0 * step_size * H if self.exploration is None else self.exploration
        return step_size, exploration, lowered


def delay_ratio(played_hsa: FloatArray, policy_hsa: FloatArray) -> FloatArray:
    """r = π^j / max(π^j, π^k); 1 where both are 0.  [eq:LRS23-ratio]"""
    greatest_hsa = np.maximum(played_hsa, policy_hsa)
    ratio_hsa = np.ones(played_hsa.shape)
    np.divide(played_hsa, greatest_hsa, out=ratio_hsa, where=greatest_hsa > 0.0)
    return ratio_hsa


def local_bonus(
    weight_hsa: FloatArray, least_hsa: FloatArray, greatest_hsa: FloatArray, exploration: float, width: float
) -> FloatArray:
    """b_h(s) = Σ_a weight H (3 γ + width (μ̄ − μ̲)(s, a)) / (μ̄(s, a) + γ), (H, S), weight = π^k r.  [eq:LRS23-b]"""
    H = weight_hsa.shape[0]
    paid_hsa = H * (3.0 * exploration + width * (greatest_hsa - least_hsa)) / (greatest_hsa + exploration)
    local_hs: FloatArray = (weight_hsa * paid_hsa).sum(axis=-1)
    return local_hs
