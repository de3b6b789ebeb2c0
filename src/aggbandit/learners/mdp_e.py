"""MDP-E: an expert algorithm at every (h, s), fed action values; dynamics and losses known."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import (
    ADVERSARIAL,
    CLOSED_FORM,
    FULL,
    KNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import occupancy_polytope
from aggbandit.learners.parts.softmax import exponential_weights


class State(NamedTuple):
    log_weights_hsa: FloatArray  # -η Σ_k Q^k, the greatest of each (h, s) moved to 0
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class MdpE(Learner[State]):
    """Exponential weights on the exact action values of the policy played.

    π^{k+1}_h(a|s) ∝ π^k_h(a|s) exp(−η Q^k_h(s, a))              [eq:EKM09-update]
    η = √(2 ln A / (H² K))                                       [eq:EKM09-eta]

    where Q^k are the action values of π^k for the losses shown.
    Where all is known this is all of policy optimisation; what the other algorithms add pays for what they do not see.

    Paper    Even-Dar, Kakade, Mansour 2009, *Online Markov decision processes*, in its episodic form (Shani, Efroni,
             Rosenberg, Mannor 2020): regret at most H² √(2 K ln A), for every sequence of losses.
    Departs  from the original in episodes instead of average losses.  Reconstructed: the constant is derived again.
    Cost     O(H S² A) time an episode, O(H S A) memory.
    """

    id = "mdp-e"
    reconstructed = True
    update_by = CLOSED_FORM
    needs = Needs(feedback=FULL, dynamics=KNOWN, losses=ADVERSARIAL)

    step_scale: float = 1.0  # multiplies η

    def __post_init__(self) -> None:
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {"step_size": self._step(problem)}

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(np.zeros(problem.shape), np.full(problem.shape, 1.0 / problem.A))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        from aggbandit.kernels import values

        assert episode.table is not None
        H, S, A = problem.shape
        q_hsa, v_hs = np.empty((H, S, A)), np.empty((H, S))
        table_hsa = np.ascontiguousarray(episode.table, dtype=np.float64)
        values.action_values(occupancy_polytope.dense_transition(problem), state.policy_hsa, table_hsa, q_hsa, v_hs)
        state.policy_hsa[:] = exponential_weights(
            state.log_weights_hsa, q_hsa, self._step(problem)
        )  # [eq:EKM09-update]
        return state

    def _step(self, problem: Problem) -> float:
        """η.  [eq:EKM09-eta]"""
        H, _, A = problem.shape
        return self.step_scale * sqrt(2.0 * log(A) / (H * H * problem.require_episodes(self.name)))
