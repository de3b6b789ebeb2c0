"""UCRL2 in its finite-horizon form: the best policy in the best plausible model, from the losses met; [JOA10]."""

from dataclasses import dataclass
from math import log
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import SEMI_BANDIT, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem
from aggbandit.learners.parts import kernel_balls, loss_counts, transition_counts
from aggbandit.learners.parts.loss_counts import LossCounts
from aggbandit.learners.parts.ties import uniform_over_least


class State(NamedTuple):
    policy_hsa: FloatArray
    counts_hsas: FloatArray
    losses: LossCounts
    begun_hsa: FloatArray  # visits when this policy was chosen


@final
@dataclass(frozen=True, kw_only=True)
class Ucrl2(Learner[State]):
    """Extended value iteration over sets of models, its policy kept until some count has doubled.

    Q_h(s, a) = min(1, r̄ + √(7 ln(2 H S A t / δ) / (2 n))) + max_q Σ_{s'} q(s') V_{h+1}(s')     [eq:JOA10-rewards]
    ‖q − p̄‖₁ <= √(14 S ln(2 H A t / δ) / n)                                                     [eq:JOA10-balls]
    V_h(s) = max_a Q_h(s, a);   a new policy when n_h(s, a) >= max(1, 2 n at its beginning)     [eq:JOA10-epochs]

    Rewards are r = 1 − ℓ, n = max(1, n_h(s, a)), t the steps taken so far.

    Paper    Jaksch, Ortner, Auer 2010, *Near-optimal regret bounds for reinforcement learning*: regret
             Õ(D S √(A T)) in the average-reward setting.
    Departs  in the setting: H steps an episode for one long run, states taken with their step (H S of them, of which
             S can follow), and a new policy after an episode only; regret is then Õ(H² S √(A K)).  Reconstructed: the
             finite-horizon form is ours, its constants are those of the original as recalled.
    Cost     O(H S² A) time for each new policy, O(H S A) beside; O(H S² A) memory.
    """

    id = "ucrl2"
    reconstructed = True
    needs = Needs(feedback=SEMI_BANDIT, dynamics=UNKNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    bonus_scale: float = 1.0  # multiplies the radius of mean rewards
    radius_scale: float = 1.0  # multiplies the radius of the balls

    def __post_init__(self) -> None:
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        require_number("radius_scale", self.radius_scale, low=0.0)

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        counts = transition_counts.none_yet(H, S, A), loss_counts.none_yet((H, S, A))
        return State(np.full((H, S, A), 1.0 / A), *counts, np.zeros((H, S, A)))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.losses is not None
        policy_hsa, counts_hsas, losses, begun_hsa = state
        transition_counts.add_trajectory(counts_hsas, episode.states, episode.actions)
        loss_counts.add_trajectory(losses, episode.states, episode.actions, episode.losses)
        met = np.arange(problem.H), episode.states, episode.actions
        # [eq:JOA10-epochs]: only what was met now can have come that far
        if (losses.visits_hsa[met] < np.maximum(1.0, 2.0 * begun_hsa[met])).all():
            return state
        begun_hsa[:] = losses.visits_hsa
        reward_hsa, mean_hsas, radius_hsa = plausible_models(
            counts_hsas, losses, self.confidence, self.bonus_scale, self.radius_scale
        )
        policy_hsa[:] = uniform_over_least(-optimistic_values(mean_hsas, radius_hsa, reward_hsa))
        return state


def plausible_models(
    counts_hsas: FloatArray, losses: LossCounts, confidence: float, bonus_scale: float, radius_scale: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Optimistic rewards, and centres and radii of the balls.  [eq:JOA10-rewards]  [eq:JOA10-balls]"""
    H, S, A = losses.visits_hsa.shape
    steps = float(losses.visits_hsa.sum())  # t
    n_hsa = np.maximum(losses.visits_hsa, 1.0)
    width_hsa = bonus_scale * np.sqrt(3.5 * log(2.0 * H * S * A * steps / confidence) / n_hsa)
    reward_hsa = np.where(losses.visits_hsa == 0.0, 1.0, np.minimum(1.0 - losses.mean_hsa + width_hsa, 1.0))
    # the balls of kernel_balls are √(2 S log / n): 7 log for log is √(14 S log / n)
    balls = kernel_balls.around(counts_hsas, 7.0 * log(2.0 * H * A * steps / confidence), radius_scale)
    return reward_hsa, *balls


def optimistic_values(mean_hsas: FloatArray, radius_hsa: FloatArray, reward_hsa: FloatArray) -> FloatArray:
    """Q, (H, S, A), by extended value iteration."""
    from aggbandit.kernels import optimistic_greedy as kernel

    q_hsa = np.empty(reward_hsa.shape)
    kernel.extended_value_iteration(mean_hsas, radius_hsa, reward_hsa, q_hsa)
    return q_hsa
