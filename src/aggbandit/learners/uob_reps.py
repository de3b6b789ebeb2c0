"""UOB-REPS: mirror descent by relative entropy over occupancies, dynamics unknown, from the losses met; [JJLSY20]."""

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
from aggbandit.learners.parts import epochs, plausible_kernels, relative_entropy
from aggbandit.learners.parts.epochs import Epochs
from aggbandit.learners.parts.relative_entropy import Occupancy


class State(NamedTuple):
    q: Occupancy  # q̂, under the kernel that the optimist chose
    policy_hsa: FloatArray
    seen: Epochs
    lower_hsas: FloatArray  # the epoch's set of kernels
    upper_hsas: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class UobReps(Learner[State]):
    """O-REPS where the transition probabilities are variables too, with an upper occupancy bound in the estimates.

    q̂_{k+1} = argmin_q η ⟨q, ℓ̂_k⟩ + KL(q ‖ q̂_k)                                             [eq:JJLSY20-step]
    ℓ̂_k(s, a) = 1{s_h = s, a_h = a} ℓ / (u_k(s, a) + γ)                                      [eq:JJLSY20-estimate]
    |p'(s') − p̄(s')| <= 2 √(p̄(s') l / m) + 14 l / (3 m),   m = max(1, n − 1)                 [eq:JJLSY20-set]
    η = γ = √(ln(H² S A / δ) / (S A K)),   l = ln(H S A K / δ)                               [eq:JJLSY20-eta]

    where q_h(s, a, s') runs over the occupancies of all policies under all kernels of the set, u_k is the greatest
    occupancy of the policy played over the set, and the set is made anew when some count has doubled.

    Paper    Jin, Jin, Luo, Sra, Yu 2020, *Learning adversarial Markov decision processes with bandit feedback and
             unknown transition*, Theorem 3 with H S for the states of all layers: regret Õ(H² S √(A K)) with
             probability 1 − 9 δ.
    Departs  in nothing.  Where nothing was seen the set is the whole simplex whatever `radius_scale` is.
    Cost     O(H S³ A) time a Newton step, 3 to 8 of them an episode, and O(H² S² A) for u; O(H S² A) memory.
    """

    id = "uob-reps"
    version = 2
    update_by = CONVEX_PROBLEM
    needs = Needs(feedback=SEMI_BANDIT, dynamics=UNKNOWN, losses=ADVERSARIAL)

    confidence: float = 0.05  # δ
    step_scale: float = 1.0  # multiplies η
    exploration: float | None = None  # γ; None: η of the paper
    radius_scale: float = 1.0  # multiplies the radius of the set

    def __post_init__(self) -> None:
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        if self.exploration is not None:
            require_number("exploration", self.exploration, low=0.0, low_open=True)
        require_number("radius_scale", self.radius_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        step_size, exploration = self._steps(problem)
        return {"step_size": step_size, "exploration": exploration}

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        q = relative_entropy.of_unknown_dynamics(H, S, A, problem.initial)
        corner = np.zeros((H, S, A, S)), np.ones((H, S, A, S))
        return State(q, relative_entropy.policy(q), epochs.first(H, S, A), *corner)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.losses is not None
        H, S, A = problem.shape
        step_size, exploration = self._steps(problem)
        q, policy_hsa, seen, lower, upper = state
        met = np.arange(H), episode.states, episode.actions
        greatest_h = plausible_kernels.greatest_reach(lower, upper, policy_hsa, problem.initial, episode.states)
        cost_hsa = np.zeros((H, S, A))
        cost_hsa[met] = (
            step_size * episode.losses / (greatest_h * policy_hsa[met] + exploration)
        )  # [eq:JJLSY20-estimate]
        if epochs.add_trajectory(seen, episode.states, episode.actions):
            log_term = log(problem.require_episodes(self.name) * H * S * A / self.confidence)
            lower, upper = plausible_set(seen.counts_hsas, log_term, self.radius_scale)
        relative_entropy.step(q, problem.initial, relative_entropy.boxes(lower, upper), cost_hsa)  # [eq:JJLSY20-step]
        return State(q, relative_entropy.policy(q), seen, lower, upper)

    def _steps(self, problem: Problem) -> tuple[float, float]:
        """η and γ.  [eq:JJLSY20-eta]"""
        H, S, A = problem.shape
        paper = sqrt(log(H * H * S * A / self.confidence) / (S * A * problem.require_episodes(self.name)))
        return self.step_scale * paper, paper if self.exploration is None else self.exploration


def plausible_set(counts_hsas: FloatArray, log_term: float, radius_scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Corners of the boxes 2 √(p̄ l / max(1, n − 1)) + 14 l / (3 max(1, n − 1)).  [eq:JJLSY20-set]"""
    return plausible_kernels.bernstein_corners(
        counts_hsas, log_term, root=2.0, linear=14.0 / 3.0, less=1.0, radius_scale=radius_scale
    )
