"""Policy optimisation from total losses, transitions unknown: [LM25] Algorithm 2."""

from dataclasses import dataclass
from typing import NamedTuple, cast, final

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_number
from aggbandit.learners.base import (
    ADVERSARIAL,
    AGGREGATE,
    CLOSED_FORM,
    UNKNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import confidence_sets, step_sizes, transition_counts


class State(NamedTuple):
    """Counts, and two flat arrays that `kernels.po_unknown.layout` divides; the properties are views of them."""

    counts_hsas: FloatArray  # n_h(s, a, s') of the episodes before the next
    tables: FloatArray  # boxes, log weights, policy, and the last update's bounds and bonus
    numbers: IntArray  # what the sweep knows about the boxes

    @property
    def policy_hsa(self) -> FloatArray:
        """The policy to be played next."""
        return self._by_action("policy")

    @property
    def log_weights_hsa(self) -> FloatArray:
        """-η Σ_k (Û_k - B̂_k), the greatest of each (h, s) moved to 0; the policy is its softmax."""
        return self._by_action("log_weights")

    @property
    def least_hs(self) -> FloatArray:
        """The least probability of every (h, s) under the policy of the last update, over its sets."""
        return self._by_state("least")

    @property
    def most_hs(self) -> FloatArray:
        """The greatest."""
        return self._by_state("most")

    @property
    def bonus_hs(self) -> FloatArray:
        """Σ_a π B̂ of the last update."""
        return self._by_state("value")

    def _by_action(self, name: str) -> FloatArray:
        from aggbandit.kernels import po_unknown as kernel

        H, S, A, _ = self.counts_hsas.shape
        p, _, _ = kernel.layout(H, S, A)
        padded: FloatArray = kernel.table(self.tables, getattr(p, name), (H, A, p.S8))
        return padded[:, :, :S].transpose(0, 2, 1)

    def _by_state(self, name: str) -> FloatArray:
        from aggbandit.kernels import po_unknown as kernel

        H, S, A, _ = self.counts_hsas.shape
        p, _, _ = kernel.layout(H, S, A)
        padded: FloatArray = kernel.table(self.tables, getattr(p, name), (H, p.S8))
        return padded[:, :S]


class Settings(NamedTuple):
    """The numbers that a configuration comes to on a problem, in the kernel's order."""

    step: float  # η
    exploration: float  # γ
    bonus_scale: float
    log_term: float  # ln(10 H S A K / δ)
    radius_scale: float


@final
@dataclass(frozen=True, kw_only=True)
class PolicyOptimizationUnknown(Learner[State]):
    """Exponential weights at every (h, s), fed importance-weighted totals, against the greatest occupancy of a set.

    Paper    [LM25] Algorithm 2 (the detailed version), Theorem 2: regret Õ(H³ S √(A K) + H⁴ S³ A) with
             probability 1 - δ.  [eq:LM25-alg-2]
    Departs  in nothing by default.  `bonus_scale` multiplies all of b, `radius_scale` the Bernstein radius (where
             nothing was seen the set is the whole simplex whatever it is).
    """

    id = "po-unknown"
    update_by = CLOSED_FORM
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=ADVERSARIAL)

    confidence: float = 0.05  # δ
    step_size: float | str = "appendix"  # η: a number, "appendix" or, without its √ι, "main"
    exploration: float | None = None  # γ; None: 2 η H of the step actually used
    bonus_scale: float = 1.0
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        step_sizes.check_step_arguments(self.step_size, self.exploration, self.confidence)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        require_number("radius_scale", self.radius_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        step, lowered = self._step(problem)
        exploration = step_sizes.policy_optimization_exploration(self.exploration, step, problem.H)
        return {"step_size": step, "exploration": exploration, "step_lowered": lowered}

    def settings(self, problem: Problem) -> Settings:
        """η, γ, the scales and the logarithm of the confidence sets on this problem."""
        step, _ = self._step(problem)
        return Settings(
            step,
            step_sizes.policy_optimization_exploration(self.exploration, step, problem.H),
            float(self.bonus_scale),
            confidence_sets.logarithm(*problem.shape, problem.require_episodes(self.name), self.confidence),
            float(self.radius_scale),
        )

    def init(self, problem: Problem, draws: Draws) -> State:
        from aggbandit.kernels import po_unknown as kernel

        return State(transition_counts.none_yet(*problem.shape), *kernel.new_state(*problem.shape))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return state.policy_hsa

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        from aggbandit.kernels import po_unknown as kernel

        places, _, _ = kernel.layout(*problem.shape)
        kernel.update(
            *state,
            *kernel.new_scratch(*problem.shape),
            places,
            problem.initial,
            np.flatnonzero(problem.initial),
            np.array(episode.states, dtype=np.int64),
            np.array(episode.actions, dtype=np.int64),
            float(cast(float, episode.total)),
            *self.settings(problem),
            np.empty(problem.S),
            np.empty(problem.S),
        )
        return state

    def _step(self, problem: Problem) -> tuple[float, bool]:
        H, S, A = problem.shape
        episodes = problem.require_episodes(self.name)
        greatest = 4.0 * H * H * self.bonus_scale  # B̂ <= 4 H² · bonus_scale
        return step_sizes.policy_optimization_step(self.step_size, H, S, A, episodes, self.confidence, greatest)
