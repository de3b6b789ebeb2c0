"""UCBVI: upper confidence bounds for value iteration, from the losses met; [AOM17]."""

from dataclasses import dataclass
from math import log
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
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
from aggbandit.learners.parts import loss_counts, transition_counts
from aggbandit.learners.parts.loss_counts import LossCounts
from aggbandit.learners.parts.ties import ROUNDING

BONUSES = ("ch", "bf")


class State(NamedTuple):
    q_hsa: FloatArray  # optimistic rewards to come; they only fall
    policy_hsa: FloatArray
    counts_hsas: FloatArray
    losses: LossCounts


@final
@dataclass(frozen=True, kw_only=True)
class Ucbvi(Learner[State]):
    """Greedy on optimistic action values of the empirical model.

    Q_h(s, a) = min(Q of before, H − h + 1, r̄ + Σ_{s'} p̄(s') V_{h+1}(s') + b)         [eq:AOM17-Q]
    V_h(s) = max_a Q_h(s, a)
    bonus="ch"   b = 7 H L / √n                                          [eq:AOM17-CH]
    bonus="bf"   b = √(8 L Var_p̄(V) / n) + 14 H L / (3 n)
                     + √(8 Σ_{s'} p̄(s') min(100² H³ S² A L² / n_{h+1}(s'), H²) / n)      [eq:AOM17-BF]

    Rewards are r = 1 − ℓ, n = n_h(s, a), L = ln(5 H² S A K / δ); Q = H − h + 1 where nothing was seen.  b moreover has
    √(ln(4 H S A K / δ) / (2 n)) for the mean reward r̄, which the paper takes as known.

    Paper    Azar, Osband, Munos 2017, *Minimax regret bounds for reinforcement learning*, Theorems 1 and 2; with
             dynamics that depend on the step Õ(H² √(S A K)) with "ch" and Õ(H^{3/2} √(S A K)) with "bf".
    Departs  in counts by step, H S for S in L, unknown rewards, and H − h + 1 for H as the cap.
    Scale    the theory's b exceeds H until n is about 49 L², ten thousand visits of every place: at laptop scale
             nothing is learned with bonus_scale=1.  0.01 is a good start for "ch", 0.02 for "bf".
    Cost     O(H S² A) time an episode, O(H S² A) memory.
    """

    id = "ucbvi"
    needs = Needs(feedback=SEMI_BANDIT, dynamics=UNKNOWN, losses=STOCHASTIC)

    bonus: str = "ch"  # or "bf"
    confidence: float = 0.05  # δ
    bonus_scale: float = 1.0  # multiplies all of b

    def __post_init__(self) -> None:
        if self.bonus not in BONUSES:
            raise InvalidInputError(f"bonus must be one of {', '.join(map(repr, BONUSES))}, but is {self.bonus!r}.")
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {"log": self._logs(problem)[0]}

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        q_hsa = np.broadcast_to((H - np.arange(H, dtype=np.float64))[:, None, None], (H, S, A)).copy()
        counts = transition_counts.none_yet(H, S, A), loss_counts.none_yet((H, S, A))
        return State(q_hsa, np.full((H, S, A), 1.0 / A), *counts)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        from aggbandit.kernels import optimistic_greedy as kernel

        assert episode.losses is not None
        q_hsa, policy_hsa, counts_hsas, losses = state
        transition_counts.add_trajectory(counts_hsas, episode.states, episode.actions)
        loss_counts.add_trajectory(losses, episode.states, episode.actions, episode.losses)
        numbers = self.bonus == "bf", *self._logs(problem), float(self.bonus_scale), ROUNDING
        kernel.ucbvi(counts_hsas, *losses, *numbers, q_hsa, policy_hsa)
        return state

    def _logs(self, problem: Problem) -> tuple[float, float]:
        """L, and the logarithm for mean rewards."""
        H, S, A = problem.shape
        T = H * problem.require_episodes(self.name)
        return log(5.0 * H * S * A * T / self.confidence), log(4.0 * S * A * T / self.confidence)
