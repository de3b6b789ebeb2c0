"""Bandit UC-O-REPS: UC-O-REPS from the losses met, each divided by the optimist's own occupancy; [RM19b]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import (
    ADVERSARIAL,
    CONVEX_PROBLEM,
    SEMI_BANDIT,
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


class State(NamedTuple):
    q: Occupancy  # under the kernel that the optimist chose
    policy_hsa: FloatArray
    seen: Epochs
    mean_hsas: FloatArray  # the epoch's set of kernels: L1 balls
    radius_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class BanditUcOReps(Learner[State]):
    """UC-O-REPS on estimates that trust the optimistic occupancy to be the true one.

    q_{k+1} = argmin_q η ⟨q, ℓ̂_k⟩ + KL(q ‖ q_k)
    ℓ̂_k(s, a) = 1{s_h = s, a_h = a} ℓ / max(q_k(s, a), floor)                                [eq:RM19b-estimate]
    η = √(ln(H² S² A) / (S A K))                                                             [eq:RM19b-eta]

    where q_h(s, a, s') runs over the occupancies of all policies under all kernels of UC-O-REPS's L1 balls.
    The optimist's occupancy may be too small or too great, which is why the regret bound is weaker than √K: UOB-REPS
    (`uob-reps`) divides by an upper bound instead.

    Paper    Rosenberg and Mansour 2019, *Online stochastic shortest path with bandit feedback and unknown transition
             function* (NeurIPS): Õ(H^{3/2} S A^{1/4} K^{3/4}), or Õ(H S √(A K) / α) where every state is reached with
             probability α by every policy.
    Departs  in the floor, which bounds estimates instead of restricting occupancies to be >= α.  Reconstructed from
             what others tell of it: step size and constants are ours, those of UC-O-REPS with the variance S A of the
             estimates.
    Cost     O(H S³ A) time a Newton step, 3 to 8 of them an episode; O(H S² A) memory.
    """

    id = "bandit-uc-o-reps"
    version = 2
    reconstructed = True
    update_by = CONVEX_PROBLEM
    needs = Needs(feedback=SEMI_BANDIT, dynamics=UNKNOWN, losses=ADVERSARIAL)

    confidence: float = 0.05  # δ
    step_scale: float = 1.0  # multiplies η
    floor: float = 1e-6  # the least occupancy that a loss is divided by
    radius_scale: float = 1.0  # multiplies the radius of the balls

    def __post_init__(self) -> None:
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("floor", self.floor, low=0.0, high=1.0, low_open=True)
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
        assert episode.losses is not None
        q, policy_hsa, seen, mean_hsas, radius_hsa = state
        met = np.arange(problem.H), episode.states, episode.actions
        cost_hsa = np.zeros(problem.shape)
        played_h = q.reach_hs[met[:2]] * policy_hsa[met]
        cost_hsa[met] = self._step(problem) * episode.losses / np.maximum(played_h, self.floor)  # [eq:RM19b-estimate]
        if epochs.add_trajectory(seen, episode.states, episode.actions):
            log_term = kernel_balls.logarithm(problem, self.name, self.confidence)
            mean_hsas, radius_hsa = kernel_balls.around(seen.counts_hsas, log_term, self.radius_scale)
        relative_entropy.step(q, problem.initial, relative_entropy.balls(mean_hsas, radius_hsa), cost_hsa)
        return State(q, relative_entropy.policy(q), seen, mean_hsas, radius_hsa)

    def _step(self, problem: Problem) -> float:
        """η.  [eq:RM19b-eta]"""
        H, S, A = problem.shape
        return self.step_scale * sqrt(log((H * S) ** 2 * A) / (S * A * problem.require_episodes(self.name)))
