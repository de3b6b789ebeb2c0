"""OPPO: optimistic proximal policy optimisation by value-targeted regression, losses shown; [CYJW20], tabular."""

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
    UNKNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts.softmax import exponential_weights


class State(NamedTuple):
    log_weights_hsa: FloatArray  # α Σ_k Q^k, the greatest of each (h, s) moved to 0
    policy_hsa: FloatArray
    inverse_hsaij: FloatArray  # (H - 1, S, A, S, S): Λ^{-1}, one block for each (h, s, a)
    target_hsai: FloatArray  # (H - 1, S, A, S): Σ V V(s')
    fit_hsai: FloatArray  # (H - 1, S, A, S): w = Λ^{-1} target, what stands for p̄


@final
@dataclass(frozen=True, kw_only=True)
class Oppo(Learner[State]):
    """Exponential weights on optimistic action values, the model fitted to the values that it must predict.

    π^{k+1} ∝ π^k exp(α Q^k),   rewards r = 1 − ℓ                                              [eq:CYJW20-update]
    Q^k_h(s, a) = clip(r + V·w + β √(V^T Λ^{-1} V), 0, H − h + 1),   V = V^k_{h+1}             [eq:CYJW20-Q]
    Λ_h(s, a) = I + Σ V^j V^{jT},   w = Λ^{-1} Σ V^j V^j(s^j_{h+1})                             [eq:CYJW20-regression]
                over the earlier episodes j that met (h, s, a), V^j their V^j_{h+1}
    α = √(2 ln A / (H² K)),   β = √(d H² ln(d H K / δ)),   d = S² A                            [eq:CYJW20-alpha]

    The features of a linear mixture model are indicators of (s, a, s') here, so that Λ falls apart into one S × S block
    for each (h, s, a): regression on the values V, not counts.

    Paper    Cai, Yang, Jin, Wang 2020, *Provably efficient exploration in policy optimization*, Theorem 3.1 with
             d = S² A: regret Õ(S² A √(H⁴ K)).
    Departs  in the constant of β, which the paper leaves open: 1, times `bonus_scale`.
    Cost     O(H S³ A) time an episode, O(H S³ A) memory.
    """

    id = "oppo"
    update_by = CLOSED_FORM
    needs = Needs(feedback=FULL, dynamics=UNKNOWN, losses=ADVERSARIAL)

    confidence: float = 0.05  # δ
    step_scale: float = 1.0  # multiplies α
    bonus_scale: float = 1.0  # multiplies β

    def __post_init__(self) -> None:
        require_number("confidence", self.confidence, low=0.0, high=1.0, low_open=True, high_open=True)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        step_size, beta = self._numbers(problem)
        return {"step_size": step_size, "beta": beta}

    def init(self, problem: Problem, draws: Draws) -> State:
        H, S, A = problem.shape
        blocks = np.broadcast_to(np.eye(S), (H - 1, S, A, S, S)).copy()
        nothing = np.zeros((H - 1, S, A, S))
        return State(np.zeros((H, S, A)), np.full((H, S, A), 1.0 / A), blocks, nothing, nothing.copy())

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.table is not None
        step_size, beta = self._numbers(problem)
        q_hsa, v_hs = optimistic_values(state, 1.0 - episode.table, beta)
        for h in range(problem.H - 1):
            met = h, episode.states[h], episode.actions[h]
            add_value(state.inverse_hsaij[met], v_hs[h + 1])
            state.target_hsai[met] += v_hs[h + 1] * v_hs[h + 1, episode.states[h + 1]]
            state.fit_hsai[met] = state.inverse_hsaij[met] @ state.target_hsai[met]
        state.policy_hsa[:] = exponential_weights(state.log_weights_hsa, -q_hsa, step_size)  # [eq:CYJW20-update]
        return state

    def _numbers(self, problem: Problem) -> tuple[float, float]:
        """α and β.  [eq:CYJW20-alpha]"""
        H, S, A = problem.shape
        T, d = H * problem.require_episodes(self.name), S * S * A
        step_size = self.step_scale * sqrt(2.0 * log(A) / (H * T))
        return step_size, self.bonus_scale * sqrt(d * H * H * log(d * T / self.confidence))


def optimistic_values(state: State, reward_hsa: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
    """Q and V: Q = clip(r + V·w + β √(V^T Λ^{-1} V), 0, rewards still to come), V = Σ_a π Q.  [eq:CYJW20-Q]"""
    H, S, _ = reward_hsa.shape
    q_hsa, v_hs = np.empty(reward_hsa.shape), np.empty((H, S))
    for h in range(H - 1, -1, -1):
        guess_sa = reward_hsa[h]
        if h + 1 < H:
            v_s = v_hs[h + 1]
            spread_sa = (state.inverse_hsaij[h] @ v_s) @ v_s
            guess_sa = guess_sa + state.fit_hsai[h] @ v_s + beta * np.sqrt(np.maximum(spread_sa, 0.0))
        np.clip(guess_sa, 0.0, H - h, out=q_hsa[h])
        v_hs[h] = (state.policy_hsa[h] * q_hsa[h]).sum(axis=-1)
    return q_hsa, v_hs


def add_value(inverse_ij: FloatArray, v_i: FloatArray) -> None:
    """(Λ + v v^T)^{-1} in place of Λ^{-1}, by Sherman and Morrison.  [eq:CYJW20-regression]"""
    along_i = inverse_ij @ v_i
    inverse_ij -= np.outer(along_i, along_i / (1.0 + along_i @ v_i))
