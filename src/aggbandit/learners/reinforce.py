"""REINFORCE with a tabular softmax: the policy gradient as people use it when there is one score."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem
from aggbandit.learners.parts.softmax import softmax


class State(NamedTuple):
    theta_hsa: FloatArray
    policy_hsa: FloatArray  # softmax of theta
    totals: FloatArray  # (2,): the sum of the totals so far, and how many


@final
@dataclass(frozen=True, kw_only=True)
class Reinforce(Learner[State]):
    """Stochastic gradient descent on the expected total, with the mean of the earlier totals for a baseline.

    π_h(a|s) ∝ exp θ_h(s, a)
    θ_h(s_h, ·) −= α (L − b) / H · (1{· = a_h} − π_h(·|s_h))     for all h         [eq:W92-gradient]
    b = mean of the totals before this episode; the first episode only sets it

    The mean step is −α/H times the gradient of E[L], whatever b is: b costs or saves variance only.

    Paper    Williams 1992, *Simple statistical gradient-following algorithms for connectionist reinforcement learning*;
             what the paper calls a practical relative.  No regret bound: gradients at (h, s) shrink with the chance
             of coming there and with every action's own chance, so that a good state behind rare choices, or an
             action once given up, may never be found (again).
    Departs  in dividing by H, so that α does not depend on how long an episode is.
    Cost     O(H A) time an episode, O(H S A) memory.
    """

    id = "reinforce"
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    step_size: float = 0.5  # α

    def __post_init__(self) -> None:
        require_number("step_size", self.step_size, low=0.0, low_open=True)

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(np.zeros(problem.shape), np.full(problem.shape, 1.0 / problem.A), np.zeros(2))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        theta_hsa, policy_hsa, totals = state
        if totals[1] > 0.0:
            gradient_ha = total_gradient(
                policy_hsa, episode.states, episode.actions, episode.total, totals[0] / totals[1]
            )
            places = np.arange(problem.H), episode.states
            theta_hsa[places] -= self.step_size / problem.H * gradient_ha
            policy_hsa[places] = softmax(theta_hsa[places])
        totals += (episode.total, 1.0)
        return state


def total_gradient(
    policy_hsa: FloatArray, states: IntArray, actions: IntArray, total: float, baseline: float
) -> FloatArray:
    """(H, A): (L − b) ∇ ln π_h(a_h|s_h) in the logits of the places met.  [eq:W92-gradient]

    Added up at (h, s_h), its mean is the gradient of E[L]: μ_h(s) π_h(a|s) (Q_h(s, a) − V_h(s)).
    """
    H, _, A = policy_hsa.shape
    score_ha = np.eye(A)[actions] - policy_hsa[np.arange(H), states]
    gradient_ha: FloatArray = (total - baseline) * score_ha
    return gradient_ha
