"""Clipped PPO with a tabular softmax, on totals."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import require_integer, require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem
from aggbandit.learners.parts.softmax import softmax

FLAT = 1e-8  # a batch whose totals spread less than this tells nothing


class State(NamedTuple):
    theta_hsa: FloatArray
    policy_hsa: FloatArray  # softmax of theta
    states_nh: IntArray  # the batch so far
    actions_nh: IntArray
    totals_n: FloatArray
    filled: IntArray  # (1,)


@final
@dataclass(frozen=True, kw_only=True)
class PpoTabular(Learner[State]):
    """A few gradient steps on the clipped surrogate of each batch, every step of an episode credited with its total.

    J(θ) = (1/n) Σ_{batch, h} min(ρ_h Â, clip(ρ_h, 1 − ε, 1 + ε) Â)                       [eq:SWDRK17-clip]
    ρ_h = π_h(a_h|s_h; θ) / π_h(a_h|s_h; θ_old),   Â = −(L − mean of the batch) / its standard deviation
    θ += α ∇J(θ), `epochs` times, all of the batch each time

    Paper    Schulman, Wolski, Dhariwal, Radford, Klimov 2017, *Proximal policy optimization algorithms*.  What the
             paper calls a practical relative, and what is run today on a single score (RLHF).  No regret bound.
    Departs  in having no critic (one number an episode is all there is: its mean is the baseline, as in group-relative
             variants), no entropy bonus, and whole-batch gradient steps instead of Adam on minibatches.
    Cost     O(epochs · H A) time an episode, O(H S A + batch · H) memory.
    """

    id = "ppo-tabular"
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    batch: int = 32  # episodes between two policies
    epochs: int = 10  # gradient steps on each batch
    step_size: float = 0.3  # α
    clip: float = 0.2  # ε

    def __post_init__(self) -> None:
        require_integer("batch", self.batch, low=2)
        require_integer("epochs", self.epochs, low=1)
        require_number("step_size", self.step_size, low=0.0, low_open=True)
        require_number("clip", self.clip, low=0.0, low_open=True)

    def init(self, problem: Problem, draws: Draws) -> State:
        trail = np.zeros((self.batch, problem.H), dtype=np.int64)
        return State(
            np.zeros(problem.shape),
            np.full(problem.shape, 1.0 / problem.A),
            trail,
            trail.copy(),
            np.zeros(self.batch),
            np.zeros(1, dtype=np.int64),
        )

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        n = int(state.filled[0])
        state.states_nh[n], state.actions_nh[n], state.totals_n[n] = episode.states, episode.actions, episode.total
        state.filled[0] = n + 1
        if n + 1 < self.batch:
            return state
        state.filled[0] = 0
        spread = float(state.totals_n.std())
        if spread < FLAT:
            return state
        advantage_n = (state.totals_n.mean() - state.totals_n) / spread
        old_hsa = state.policy_hsa.copy()
        for _ in range(self.epochs):
            gradient_hsa = surrogate_gradient(
                state.policy_hsa, old_hsa, state.states_nh, state.actions_nh, advantage_n, self.clip
            )
            state.theta_hsa[:] += self.step_size * gradient_hsa
            state.policy_hsa[:] = softmax(state.theta_hsa)
        return state


def surrogate_gradient(
    policy_hsa: FloatArray,
    old_hsa: FloatArray,
    states_nh: IntArray,
    actions_nh: IntArray,
    advantage_n: FloatArray,
    clip: float,
) -> FloatArray:
    """∇_θ of the clipped surrogate, (H, S, A).  [eq:SWDRK17-clip]

    A step contributes ρ Â (1{· = a} − π), or nothing where its ratio already lies beyond the clip on the side that its
    advantage asks for: there the minimum is the constant.
    """
    n, H = states_nh.shape
    met = np.broadcast_to(np.arange(H), (n, H)), states_nh, actions_nh
    ratio_nh = policy_hsa[met] / old_hsa[met]
    beyond_nh = np.where(advantage_n[:, None] > 0.0, ratio_nh > 1.0 + clip, ratio_nh < 1.0 - clip)
    weight_nh = np.where(beyond_nh, 0.0, ratio_nh * advantage_n[:, None]) / n
    gradient_hsa = np.zeros(policy_hsa.shape)
    np.add.at(gradient_hsa, met, weight_nh)
    gradient_hsa -= policy_hsa * gradient_hsa.sum(axis=-1, keepdims=True)
    return gradient_hsa
