"""Q-learning with the total shared equally over the steps."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem
from aggbandit.learners.parts.ties import epsilon_greedy


class State(NamedTuple):
    q_hsa: FloatArray
    visits_hsa: FloatArray
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class QLearningShared(Learner[State]):
    """ε-greedy Q-learning that takes L / H for the loss of every step.

    Q_h(s_h, a_h) += α_n (L / H + min_a Q_{h+1}(s_{h+1}, a) − Q_h(s_h, a_h)),   Q = 0 at first    [eq:WD92-shared]
    α_n = (H + 1) / (H + n) at the n-th visit of (h, s, a)

    What a step is credited with depends on the rest of the episode, so that Q does not estimate any value: with
    ε-greedy play it may settle on a wrong action, for ever (its test has a two-step example).  It is here because it
    is what a practitioner reaches for first.

    Paper    Watkins and Dayan 1992, *Q-learning*; step sizes of Jin, Allen-Zhu, Bubeck, Jordan 2018.
    Departs  in the shared total.  No regret bound, and none possible: see above.
    Cost     O(H A) time an episode, O(H S A) memory.
    """

    id = "q-learning-shared"
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
        H = problem.H
        places = np.arange(H), episode.states
        met = *places, episode.actions
        state.visits_hsa[met] += 1.0
        rate_h = (H + 1.0) / (H + state.visits_hsa[met])
        ahead_h = np.append(state.q_hsa[places][1:].min(axis=-1), 0.0)
        state.q_hsa[met] += rate_h * (episode.total / H + ahead_h - state.q_hsa[met])
        state.policy_hsa[places] = epsilon_greedy(state.q_hsa[places], self.exploration)
        return state
