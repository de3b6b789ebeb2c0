"""Policy optimisation with dilated bonuses: [LWL21], tabular."""

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
from aggbandit.learners.parts import epochs, occupancy_polytope, plausible_kernels
from aggbandit.learners.parts.epochs import Epochs
from aggbandit.learners.parts.softmax import exponential_weights


class State(NamedTuple):
    log_weights_hsa: FloatArray  # -η Σ_k (Q̂_k - B_k), the greatest of each (h, s) moved to 0
    policy_hsa: FloatArray
    seen: Epochs  # of no transitions where the dynamics are known
    lower_hsas: FloatArray  # the epoch's set of kernels, empty where the dynamics are known
    upper_hsas: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class PoDilated(Learner[State]):
    """Exponential weights at every (h, s) on importance-weighted losses to come, minus a dilated bonus.

    π^{k+1} ∝ π^k exp(−η (Q̂ − B))
    Q̂_h(s, a) = 1{s_h = s, a_h = a} Σ_{i>=h} ℓ_i / (μ̄_h(s) π_h(a|s) + γ)                     [eq:LWL21-Q-hat]
    b_h(s) = Σ_a π_h(a|s) H (3 γ + (μ̄_h(s) − μ̲_h(s)) π_h(a|s)) / (μ̄_h(s) π_h(a|s) + γ)         [eq:LWL21-b]
    B_h(s, a) = b_h(s) + (1 + 1/H) max_q Σ_{s'} q(s') Σ_a' π_{h+1}(a'|s') B_{h+1}(s', a')    [eq:LWL21-dilated]
    η = min(1 / (24 H³), 1 / √(H² S A K)),   γ = 2 η H                                       [eq:LWL21-eta]

    With known dynamics μ̄ = μ̲ = μ and q = p.  With unknown ones they are extremes over the set
    |q − p̄| <= 4 √(p̄ ln(KHSA/δ) / n) + 28 ln(KHSA/δ) / (3 n), rebuilt when some count has doubled.
    Algorithms 1 and 2 of [LM25] are this with the total instead of the losses to come, and without the dilation.

    Paper    Luo, Wei, Lee 2021, *Policy optimization in adversarial MDPs: improved exploration via dilated bonuses*,
             tabular: regret with probability 1 − O(δ) of Õ(H² √(S A K) + H⁴) with known and Õ(H³ S √(A K) + H⁴)
             with unknown dynamics.
    Departs  in nothing known to us.  Reconstructed: the pseudo-code is recalled and checked against three papers that
             restate it; the constants 4 and 28/3 are recalled.  Written for dynamics that depend on the step.
    Cost     O(H S² A) time an episode with known dynamics, O(H² S³ A) with unknown ones; O(H S² A) memory.
    """

    id = "po-dilated"
    reconstructed = True
    update_by = CLOSED_FORM

    dynamics: str = KNOWN  # or "unknown"
    confidence: float = 0.05  # δ; enters through the set of kernels alone
    step_scale: float = 1.0  # multiplies η
    exploration: float | None = None  # γ; None: 2 η H
    bonus_scale: float = 1.0  # multiplies all of b
    radius_scale: float = 1.0  # multiplies the radius of the set
    dilation: float | None = None  # what B grows by, step by step; None: 1 + 1/H

    def __post_init__(self) -> None:
        if self.dynamics not in DYNAMICS:
            raise InvalidInputError(f"dynamics must be one of {', '.join(DYNAMICS)}, but is {self.dynamics!r}.")
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        if self.exploration is not None:
            require_number("exploration", self.exploration, low=0.0, low_open=True)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        require_number("radius_scale", self.radius_scale, low=0.0)
        if self.dilation is not None:
            require_number("dilation", self.dilation, low=1.0)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=SEMI_BANDIT, dynamics=self.dynamics, losses=ADVERSARIAL)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        step_size, exploration = self._steps(problem)
        return {"step_size": step_size, "exploration": exploration}

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        unknown = (H, S, A, S) if self.dynamics != KNOWN else (0, 0, 0, 0)
        return State(
            np.zeros((H, S, A)),
            np.full((H, S, A), 1.0 / A),
            Epochs(np.zeros(unknown), np.zeros(unknown[:3])),
            np.zeros(unknown),
            np.ones(unknown),
        )

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.losses is not None
        H = problem.H
        step_size, exploration = self._steps(problem)
        policy_hsa = state.policy_hsa
        if self.dynamics == KNOWN:
            lower = upper = occupancy_polytope.dense_transition(problem)
            greatest_hsa = occupancy_polytope.of_policy(lower, problem.initial, policy_hsa)
            least_hsa = greatest_hsa
        else:
            lower, upper = state.lower_hsas, state.upper_hsas
            least_hs, greatest_hs = plausible_kernels.occupancy_bounds(lower, upper, policy_hsa, problem.initial)
            least_hsa, greatest_hsa = least_hs[:, :, None] * policy_hsa, greatest_hs[:, :, None] * policy_hsa
        local_hs = self.bonus_scale * local_bonus(policy_hsa, least_hsa, greatest_hsa, exploration)
        bonus_hsa = dilated_bonus(
            lower, upper, policy_hsa, local_hs, 1.0 + 1.0 / H if self.dilation is None else self.dilation
        )
        met = np.arange(H), episode.states, episode.actions
        to_come_h = episode.losses[::-1].cumsum()[::-1]
        estimate_hsa = -bonus_hsa
        estimate_hsa[met] += to_come_h / (greatest_hsa[met] + exploration)  # [eq:LWL21-Q-hat]
        policy_hsa[:] = exponential_weights(state.log_weights_hsa, estimate_hsa, step_size)
        if self.dynamics == KNOWN or not epochs.add_trajectory(state.seen, episode.states, episode.actions):
            return state
        H, S, A = problem.shape
        lower, upper = plausible_kernels.bernstein_corners(
            state.seen.counts_hsas,
            log(problem.require_episodes(self.name) * H * S * A / self.confidence),
            root=4.0,
            linear=28.0 / 3.0,
            radius_scale=self.radius_scale,
        )
        return state._replace(lower_hsas=lower, upper_hsas=upper)

    def _steps(self, problem: Problem) -> tuple[float, float]:
        """η and γ.  [eq:LWL21-eta]"""
        H, S, A = problem.shape
        K = problem.require_episodes(self.name)
        step_size = self.step_scale * min(1.0 / (24.0 * H**3), 1.0 / sqrt(H * H * S * A * K))
        return step_size, 2.0 * step_size * H if self.exploration is None else self.exploration


def local_bonus(
    policy_hsa: FloatArray, least_hsa: FloatArray, greatest_hsa: FloatArray, exploration: float
) -> FloatArray:
    """b_h(s) = Σ_a π (3 γ H + H (μ̄ − μ̲)(s, a)) / (μ̄(s, a) + γ), (H, S).  [eq:LWL21-b]"""
    H = policy_hsa.shape[0]
    paid_hsa = H * (3.0 * exploration + greatest_hsa - least_hsa) / (greatest_hsa + exploration)
    local_hs: FloatArray = (policy_hsa * paid_hsa).sum(axis=-1)
    return local_hs


def dilated_bonus(
    lower_tsas: FloatArray, upper_tsas: FloatArray, policy_hsa: FloatArray, local_hs: FloatArray, dilation: float
) -> FloatArray:
    """B_h(s, a) = b_h(s) + dilation · max_q Σ_{s'} q(s') Σ_a' π_{h+1}(a'|s') B_{h+1}(s', a').  [eq:LWL21-dilated]"""
    loss_hsa = np.broadcast_to(local_hs[:, :, None], policy_hsa.shape)
    return plausible_kernels.extreme_action_values(
        lower_tsas, upper_tsas, policy_hsa, np.ascontiguousarray(loss_hsa), greatest=True, factor=dilation
    )
