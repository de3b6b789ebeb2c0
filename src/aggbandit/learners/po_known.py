"""Policy optimisation from total losses, transitions known: [LM25] Algorithm 1."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import AGGREGATE, CLOSED_FORM, KNOWN, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts.step_sizes import (
    check_step_arguments,
    policy_optimization_exploration,
    policy_optimization_step,
)


class State(NamedTuple):
    policy_hsa: FloatArray  # the policy to be played next
    log_policy_hsa: FloatArray  # its logarithm where a probability is too small for a double, elsewhere unused


class Constants(NamedTuple):
    """The numbers that an update needs."""

    step_size: float  # η
    step_lowered: bool  # whether ERRATA A3 made it smaller than its name says
    exploration: float  # γ
    bonus: float  # 3 γ H, times the bonus scale


@final
@dataclass(frozen=True, kw_only=True)
class PolicyOptimizationKnown(Learner[State]):
    """Exponential weights at every (h, s), fed importance-weighted total losses minus a bonus.  [eq:LM25-alg-1]

    Paper    [LM25] Algorithm 1, Theorem 1: regret Õ(H² √(S A K) + H³ √K) with probability 1 - δ.
    Departs  in nothing by default.  `bonus_scale`, `exploration` or a numeric `step_size` leave the theorem.  A named
             step size is lowered for very small K, where the proof needs it (ERRATA A3): `step_lowered` tells.
    Cost     O(H S² A) time an episode (O(H S A n) with n successors a row), O(H S A) memory.
    """

    id = "po-known"
    update_by = CLOSED_FORM
    needs = Needs(feedback=AGGREGATE, dynamics=KNOWN)

    confidence: float = 0.05  # δ; enters through ι alone (ERRATA B10)
    step_size: float | str = "appendix"  # η: a number, "appendix" or, without its √ι, "main"
    exploration: float | None = None  # γ; None: 2 η H of the step actually used
    bonus_scale: float = 1.0  # multiplies all of b

    def __post_init__(self) -> None:
        check_step_arguments(self.step_size, self.exploration, self.confidence)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    def constants(self, problem: Problem) -> Constants:
        """η, γ and 3 γ H as used on this problem."""
        H, S, A = problem.shape
        # K enters nothing but the named step sizes
        K = problem.require_episodes(self.name) if isinstance(self.step_size, str) else 1
        greatest_bonus = 3.0 * H * H * self.bonus_scale
        step, lowered = policy_optimization_step(self.step_size, H, S, A, K, self.confidence, greatest_bonus)
        exploration = policy_optimization_exploration(self.exploration, step, H)
        return Constants(step, lowered, exploration, 3.0 * exploration * H * self.bonus_scale)

    def resolved(self, problem: Problem) -> Resolved:
        used = self.constants(problem)
        return {"step_size": used.step_size, "exploration": used.exploration, "step_lowered": used.step_lowered}

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(np.full(problem.shape, 1.0 / problem.A), np.zeros(problem.shape))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        from aggbandit.kernels import po_known as kernel

        H, S, A = problem.shape
        used = self.constants(problem)
        mdp = problem.dynamics
        if mdp is None:
            raise InvalidInputError(f"{self.name} needs known dynamics, but the problem has transition=None.")
        scratch = np.empty((H, S)), np.empty(S), np.empty((S, A)), np.empty(A)
        played = problem.initial, *state, episode.states, episode.actions, episode.total
        numbers = used.step_size, used.exploration, used.bonus
        if mdp.is_sparse:
            kernel.update_sparse(mdp.next_states, mdp.probabilities, *played, *numbers, *scratch)
        else:
            kernel.update_dense(mdp.stored, *played, *numbers, *scratch)
        return state
