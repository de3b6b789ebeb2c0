"""UC-O-REPS: mirror descent by relative entropy over occupancies, dynamics unknown, losses shown; [RM19]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    ADVERSARIAL,
    CONVEX_PROBLEM,
    FULL,
    UNKNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import epochs, kernel_balls, relative_entropy
from aggbandit.learners.parts.epochs import Epochs
from aggbandit.learners.parts.relative_entropy import Occupancy

NAMED_STEPS = ("paper", "balanced")


class State(NamedTuple):
    q: Occupancy  # under the kernel that the optimist chose
    policy_hsa: FloatArray
    seen: Epochs
    mean_hsas: FloatArray  # the epoch's set of kernels: L1 balls
    radius_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class UcOReps(Learner[State]):
    """O-REPS where the transition probabilities are variables too, within L1 balls around the frequencies.

    q_{k+1} = argmin_q η ⟨q, ℓ_k⟩ + KL(q ‖ q_k)                                              [eq:RM19-step]
    Σ_{s'} |p'(s') − p̄(s')| <= √(2 S ln(H S A K / δ) / max(1, n))                            [eq:RM19-set]
    η = √(ln(H² S² A) / (H² K))                                                              [eq:RM19-eta]

    where q_h(s, a, s') runs over the occupancies of all policies under all kernels of the set, which is made anew when
    some count has doubled.

    Paper    Rosenberg and Mansour 2019, *Online convex optimization in adversarial Markov decision processes* (ICML),
             with linear losses and H S for the states of all layers: regret at most 15 H² S √(K A ln(H S A K / δ)).
    Departs  in solving the projection itself: the paper's dual problem is that of a smaller set (it lets multipliers
             depend on s' that must not).  `step_size="balanced"` leaves out the H² in η, which balances the two terms
             of the bound.
    Cost     O(H S³ A) time a Newton step, 3 to 8 of them an episode; O(H S² A) memory.
    """

    id = "uc-o-reps"
    version = 2
    update_by = CONVEX_PROBLEM
    needs = Needs(feedback=FULL, dynamics=UNKNOWN, losses=ADVERSARIAL)

    confidence: float = 0.05  # δ
    step_size: float | str = "paper"  # η, or which
    radius_scale: float = 1.0  # multiplies the radius of the balls

    def __post_init__(self) -> None:
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        if not isinstance(self.step_size, str):
            require_number("step_size", self.step_size, low=0.0, low_open=True)
        elif self.step_size not in NAMED_STEPS:
            raise InvalidInputError(
                f"step_size must be a positive number or one of {', '.join(map(repr, NAMED_STEPS))}, "
                f"but is {self.step_size!r}."
            )
        require_number("radius_scale", self.radius_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {"step_size": self._step(problem)}

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        q = relative_entropy.of_unknown_dynamics(H, S, A, problem.initial)
        return State(q, relative_entropy.policy(q), epochs.first(H, S, A), *kernel_balls.everything(H, S, A))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.table is not None
        q, _, seen, mean_hsas, radius_hsa = state
        if epochs.add_trajectory(seen, episode.states, episode.actions):
            log_term = kernel_balls.logarithm(problem, self.name, self.confidence)
            mean_hsas, radius_hsa = kernel_balls.around(seen.counts_hsas, log_term, self.radius_scale)
        within = relative_entropy.balls(mean_hsas, radius_hsa)
        relative_entropy.step(q, problem.initial, within, self._step(problem) * episode.table)  # [eq:RM19-step]
        return State(q, relative_entropy.policy(q), seen, mean_hsas, radius_hsa)

    def _step(self, problem: Problem) -> float:
        """η.  [eq:RM19-eta]"""
        if not isinstance(self.step_size, str):
            return float(self.step_size)
        H, S, A = problem.shape
        balanced = sqrt(log((H * S) ** 2 * A) / problem.require_episodes(self.name))
        return balanced if self.step_size == "balanced" else balanced / H
