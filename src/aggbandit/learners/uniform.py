"""The uniform policy, whatever happens: the yardstick that every table divides by."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.base import AGGREGATE, BOTH, UNKNOWN, Draws, Episode, Learner, Needs, Problem


class State(NamedTuple):
    policy_hsa: FloatArray  # 1 / A everywhere


@final
@dataclass(frozen=True, kw_only=True)
class Uniform(Learner[State]):
    """Every action with probability 1/A, always; learns nothing.

    Cost     O(1) an episode.
    """

    id = "uniform"
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=BOTH, late_feedback=True)

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(np.broadcast_to(np.float64(1.0 / problem.A), problem.shape))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return state.policy_hsa

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        return state
