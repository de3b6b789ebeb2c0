"""Monte-Carlo control: the mean total of the episodes that met a place and took an action there."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem
from aggbandit.learners.parts.ties import epsilon_greedy


class State(NamedTuple):
    value_hsa: FloatArray  # mean total of the episodes that met (h, s, a); 0 where none did
    visits_hsa: FloatArray
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class McControl(Learner[State]):
    """ε-greedy on the mean total of the episodes that met (h, s, a).

    Û_h(s, a) = mean of L over the episodes with s_h = s, a_h = a, 0 where there are none      [eq:SB18-mc-control]
    π_h(·|s) = (1 − ε) · uniform on the least of Û_h(s, ·) + ε · uniform

    The mean of all episodes, also those of policies long gone; 0 where nothing was seen makes it try everything once.

    Paper    Sutton and Barto 2018, *Reinforcement Learning*, Section 5.4, every-visit (the same as first-visit, since
             time is part of the place).  What people do with one score; no regret bound: ε greedy choices at every
             place meet all of a long chain of rare choices with probability (ε / A)^length only.
    Departs  in the return: the total of the whole episode stands for what came after (h, s), for it alone is told.
    Cost     O(H A) time an episode, O(H S A) memory.
    """

    id = "mc-control"
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    exploration: float = 0.1  # ε

    def __post_init__(self) -> None:
        require_number("exploration", self.exploration, low=0.0, high=1.0)

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(np.zeros(problem.shape), np.zeros(problem.shape), np.full(problem.shape, 1.0 / problem.A))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        places = np.arange(problem.H), episode.states
        met = *places, episode.actions
        state.visits_hsa[met] += 1.0
        state.value_hsa[met] += (episode.total - state.value_hsa[met]) / state.visits_hsa[met]
        state.policy_hsa[places] = epsilon_greedy(state.value_hsa[places], self.exploration)
        return state
