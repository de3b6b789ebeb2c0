"""Policy optimisation from total losses for use: Algorithm 1's update, its estimate with far less variance."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    AGGREGATE,
    CLOSED_FORM,
    DYNAMICS,
    KNOWN,
    UNKNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
)


class State(NamedTuple):
    policy_hsa: FloatArray  # the policy to be played next
    score_hsa: FloatArray  # Σ x
    loss_hsa: FloatArray  # ℓ̂, the running split of totals into steps
    second_hs: FloatArray  # Σ π x²
    largest_hs: FloatArray  # the largest |residual| so far
    counts_hsas: FloatArray  # visits with their next state; empty where the dynamics are known
    visits_hsa: FloatArray  # the same summed over next states; empty where the dynamics are known
    common: FloatArray  # (2,): where ℓ̂ started, and the number of episodes learned from


@final
@dataclass(frozen=True, kw_only=True)
class PolicyOptimizationPractical(Learner[State]):
    """Algorithm 1's update with a variance-reduced Û and steps that set themselves.  Outside the theorems.

    Paper    exponential weights at (h, s) as in [LM25] Algorithm 1, with the estimate
             x(a_h) = (Q̂_h(s_h, a_h) - V̂_h(s_h) + e) / (π_h(a_h|s_h) + γ),   e = L - Σ_h ℓ̂_h(s_h, a_h)
             where ℓ̂ is a running split of the totals into steps and Q̂, V̂ are its values under the policy played.
             With known dynamics and γ = 0 its mean is U up to a constant of (h, s), whatever ℓ̂ is: a poor ℓ̂ costs
             variance, not truth.  Steps are √(ln A / Σ π x²) at each (h, s), from what was seen, so that neither K
             nor the scale of the losses need be known.
    Loses    the regret bound.  There is no bonus B, which pays for the mismatch between where the learner goes and
             where the best policy goes, and the estimate counts visits instead of dividing by μ: a good state behind
             a chain of rare choices may never be found.  γ is fixed and small, so its bias does not vanish.  With
             `dynamics="unknown"` p is replaced by its estimate without a confidence set, so Q̂ is biased too.
    Cost     O(H S² A) time an episode (O(H S A n) with n successors a row); memory O(H S A), with unknown dynamics
             O(H S² A).
    """

    id = "po-practical"
    update_by = CLOSED_FORM

    dynamics: str = KNOWN  # or "unknown": estimated on the way from counts
    step_scale: float = 1.0  # multiplies η
    exploration: float = 0.03  # γ, against the noise of rare actions
    forget: float = 0.0  # share of what is known at (h, s) that every visit there erases, for drifting processes

    def __post_init__(self) -> None:
        if self.dynamics not in DYNAMICS:
            raise InvalidInputError(f"dynamics must be one of {', '.join(DYNAMICS)}, but is {self.dynamics!r}.")
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("exploration", self.exploration, low=0.0)
        require_number("forget", self.forget, low=0.0, high=1.0, high_open=True)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=AGGREGATE, dynamics=self.dynamics, late_feedback=True)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Step scale, γ and the share kept, as the kernel takes them."""
        return float(self.step_scale), float(self.exploration), 1.0 - float(self.forget)

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        unknown = (H, S, A, S) if self.dynamics == UNKNOWN else (0, 0, 0, 0)
        return State(
            np.full((H, S, A), 1.0 / A),
            np.zeros((H, S, A)),
            np.zeros((H, S, A)),
            np.zeros((H, S)),
            np.zeros((H, S)),
            np.zeros(unknown),
            np.zeros(unknown[:3]),
            np.zeros(2),
        )

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        from aggbandit.kernels import po_practical as kernel

        played = state.policy_hsa if episode.policy is None else np.ascontiguousarray(episode.policy)
        kernel.learn(
            *self.world(problem), episode.states, episode.actions, float(episode.total or 0.0), played, *self.numbers,
            *state, np.empty(problem.H), np.empty(problem.S), np.empty(problem.shape[1:]),
        )  # fmt: skip
        return state

    def world(self, problem: Problem) -> tuple[Any, FloatArray]:
        """The dynamics as the kernel takes them: next states (empty when dense) and probabilities."""
        dense = np.empty((0, 0, 0, 0), np.int64)
        if self.dynamics == UNKNOWN:
            return dense, np.empty((0, 0, 0, 0))
        mdp = problem.dynamics
        if mdp is None:
            raise InvalidInputError(f"{self.name} needs known dynamics, but the problem has transition=None.")
        return (mdp.next_states, mdp.probabilities) if mdp.is_sparse else (dense, mdp.stored)
