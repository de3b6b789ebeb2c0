"""O-REPS: mirror descent by relative entropy over occupancies, dynamics known; [ZN13]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    ADVERSARIAL,
    CONVEX_PROBLEM,
    FULL,
    KNOWN,
    SEMI_BANDIT,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import occupancy_polytope, relative_entropy
from aggbandit.learners.parts.relative_entropy import Occupancy

LEVELS = (FULL, SEMI_BANDIT)


class State(NamedTuple):
    q: Occupancy
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class OReps(Learner[State]):
    """Relative entropy policy search, online: the occupancy nearest to the last one that pays for the losses.

    q_{k+1} = argmin_q η ⟨q, ℓ̂_k⟩ + KL(q ‖ q_k),   q_1 = argmin_q Σ q ln q                  [eq:ZN13-step]
    ℓ̂_k = ℓ_k with full information, else 1{s_h = s, a_h = a} ℓ / (q_k(s, a) + γ)            [eq:ZN13-estimate]
    η = √(ln(S A) / K) with full information, else √(ln(S A) / (S A K));   γ = 0             [eq:ZN13-eta]

    where q runs over the occupancies q_h(s, a) of all policies.

    Paper    Zimin and Neu 2013, *Online learning in episodic Markovian decision processes by relative entropy policy
             search*: expected regret at most 2 H √(K ln(S A)) with full information and 2 H √(S A K ln(S A)) from the
             losses met, with H S for the states of all layers.
    Departs  in nothing; the constant in η is derived from the bounds again.  `exploration` (γ = η / 2: O-REPS-IX, Neu
             2015) trades a bias for less variance, for bounds that hold with high probability.
    Cost     O(H S³ + H S² A) time a Newton step, 2 to 5 of them an episode; O(H S A) memory.
    """

    id = "o-reps"
    update_by = CONVEX_PROBLEM

    feedback: str = FULL  # or "semi-bandit"
    step_scale: float = 1.0  # multiplies η
    exploration: float = 0.0  # γ, with feedback="semi-bandit"

    def __post_init__(self) -> None:
        if self.feedback not in LEVELS:
            raise InvalidInputError(f"feedback must be one of {', '.join(LEVELS)}, but is {self.feedback!r}.")
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("exploration", self.exploration, low=0.0)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=self.feedback, dynamics=KNOWN, losses=ADVERSARIAL)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {"step_size": self._step(problem)}

    def init(self, problem: Problem, draws: Draws) -> State:
        transition_tsas = occupancy_polytope.dense_transition(problem)
        q = relative_entropy.of_known_dynamics(transition_tsas, problem.initial, problem.H)
        return State(q, relative_entropy.policy(q))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        step_size = self._step(problem)
        if self.feedback == FULL:
            assert episode.table is not None
            cost_hsa = step_size * episode.table
        else:
            assert episode.losses is not None
            met = np.arange(problem.H), episode.states, episode.actions
            weight_h = state.q.reach_hs[met[:2]] * state.policy_hsa[met] + self.exploration
            cost_hsa = np.zeros(problem.shape)
            # what the model excludes is left out
            cost_hsa[met] = step_size * np.divide(  # [eq:ZN13-estimate]
                episode.losses, weight_h, out=np.zeros(problem.H), where=weight_h > 0.0
            )
        kernels = relative_entropy.known(occupancy_polytope.dense_transition(problem))
        relative_entropy.step(state.q, problem.initial, kernels, cost_hsa)  # [eq:ZN13-step]
        return State(state.q, relative_entropy.policy(state.q))

    def _step(self, problem: Problem) -> float:
        """η.  [eq:ZN13-eta]"""
        _, S, A = problem.shape
        variance = 1 if self.feedback == FULL else S * A
        return self.step_scale * sqrt(log(S * A) / (variance * problem.require_episodes(self.name)))
