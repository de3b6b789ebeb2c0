"""Q-learning with a Hoeffding bonus (UCB-H), from the losses met; [JABJ18]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import (
    SEMI_BANDIT,
    STOCHASTIC,
    UNKNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts.ties import uniform_over_least


class State(NamedTuple):
    q_hsa: FloatArray  # optimistic rewards to come
    visits_hsa: FloatArray
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class UcbH(Learner[State]):
    """Greedy Q-learning on optimistic values: no model, one row changed at every step.

    Q_h(s, a) += α_t (r + V_{h+1}(s') + b_t − Q_h(s, a)),   Q = H at first          [eq:JABJ18-update]
    V_h(s) = min(H, max_a Q_h(s, a)),   V_{H+1} = 0
    α_t = (H + 1) / (H + t),   b_t = c √(H³ ι / t),   ι = ln(H S A K / δ)            [eq:JABJ18-bonus]

    at the t-th visit of (h, s, a); rewards are r = 1 − ℓ.

    Paper    Jin, Allen-Zhu, Bubeck, Jordan 2018, *Is Q-learning provably efficient?*, Theorem 1: regret Õ(√(H⁵ S A K)).
    Departs  in nothing known to us; recalled, the text was not at hand.  c is an absolute constant that the paper
             leaves open: 4 is about what its proof comes to.
    Scale    with c = 4 the bonus exceeds H for t < 16 H ι, hundreds to thousands of visits of every place;
             bonus_scale=0.02 is a good start.
    Cost     O(H A) time an episode, O(H S A) memory.
    """

    id = "ucb-h"
    reconstructed = True
    needs = Needs(feedback=SEMI_BANDIT, dynamics=UNKNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    constant: float = 4.0  # c
    bonus_scale: float = 1.0  # multiplies b

    def __post_init__(self) -> None:
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("constant", self.constant, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {"first_bonus": self._first_bonus(problem)}

    def init(self, problem: Problem, draws: Draws) -> State:
        shape = problem.shape
        return State(np.full(shape, float(problem.H)), np.zeros(shape), np.full(shape, 1.0 / problem.A))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.losses is not None
        H = problem.H
        places = np.arange(H), episode.states
        met = *places, episode.actions
        state.visits_hsa[met] += 1.0
        t_h = state.visits_hsa[met]
        rate_h = (H + 1.0) / (H + t_h)
        # the values of the steps ahead are those before this episode's updates: each step is another row
        ahead_h = np.append(np.minimum(state.q_hsa[places][1:].max(axis=-1), H), 0.0)
        target_h = 1.0 - episode.losses + ahead_h + self._first_bonus(problem) / np.sqrt(t_h)
        state.q_hsa[met] += rate_h * (target_h - state.q_hsa[met])
        state.policy_hsa[places] = uniform_over_least(-state.q_hsa[places])
        return state

    def _first_bonus(self, problem: Problem) -> float:
        """b_1 = c √(H³ ι).  [eq:JABJ18-bonus]"""
        H, S, A = problem.shape
        iota = log(H * S * A * problem.require_episodes(self.name) / self.confidence)
        return self.bonus_scale * self.constant * sqrt(H**3 * iota)
