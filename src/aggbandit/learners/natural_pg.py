"""Natural policy gradient with a tabular softmax, on totals."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_integer, require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem
from aggbandit.learners.parts.softmax import exponential_weights


class State(NamedTuple):
    theta_hsa: FloatArray
    policy_hsa: FloatArray  # softmax of theta
    totals_hsa: FloatArray  # of this batch: the sum of the totals of the episodes that met (h, s, a) ...
    visits_hsa: FloatArray  # ... and their number
    batch: FloatArray  # (2,): the sum of this batch's totals, and how many


@final
@dataclass(frozen=True, kw_only=True)
class NaturalPg(Learner[State]):
    """The policy gradient of a batch of totals, times the inverse of the batch's Fisher information.

    θ −= η w,   F w = g
    g = Σ_{batch, h} (L − b) ∇ ln π_h(a_h|s_h),   F = Σ_{batch, h} E_a[∇ ln π ∇ ln π^T | s_h]
    w_h(s, a) = Σ_{batch} 1{s_h = s, a_h = a} (L − b) / (n_h(s) (π_h(a|s) + damping))       [eq:K01-natural-gradient]
    b = the batch's mean total (H / 2 for batches of one),   n_h(s) = how often the batch met (h, s)

    F falls apart into one block for each (h, s), n_h(s) (diag π − π π^T), which is why nothing needs to be inverted.

    Paper    Kakade 2001, *A natural policy gradient*; with a tabular softmax the step is exponential weights on
             estimated advantages (Agarwal, Kakade, Lee, Mahajan 2021).  What the paper calls a practical relative: the
             regret bounds of policy optimisation need exploration and a bonus on top, which this has not.
    Departs  in damping, which keeps weights of rare actions bounded; 0 is the exact solution of F w = g.
    Cost     O(H) time an episode and O(H S A) a batch; O(H S A) memory.
    """

    id = "natural-pg"
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    step_size: float = 0.3  # η, in units of 1 / H: a log weight moves by η w / H
    batch: int = 10  # episodes between two steps
    damping: float = 0.03

    def __post_init__(self) -> None:
        require_number("step_size", self.step_size, low=0.0, low_open=True)
        require_integer("batch", self.batch, low=1)
        require_number("damping", self.damping, low=0.0)

    def init(self, problem: Problem, draws: Draws) -> State:
        shape = problem.shape
        return State(np.zeros(shape), np.full(shape, 1.0 / problem.A), np.zeros(shape), np.zeros(shape), np.zeros(2))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        met = np.arange(problem.H), episode.states, episode.actions
        state.totals_hsa[met] += episode.total
        state.visits_hsa[met] += 1.0
        state.batch[:] += (episode.total, 1.0)
        if state.batch[1] < self.batch:
            return state
        # a batch of one would be its own baseline
        baseline = state.batch[0] / state.batch[1] if self.batch > 1 else problem.H / 2.0
        w_hsa = natural_gradient(state.policy_hsa, state.totals_hsa, state.visits_hsa, baseline, self.damping)
        state.policy_hsa[:] = exponential_weights(state.theta_hsa, w_hsa, self.step_size / problem.H)
        for used in state[2:]:
            used[:] = 0.0
        return state


def natural_gradient(
    policy_hsa: FloatArray, totals_hsa: FloatArray, visits_hsa: FloatArray, baseline: float, damping: float
) -> FloatArray:
    """w_h(s, a) = (Σ L − b n_h(s, a)) / (n_h(s) (π_h(a|s) + damping)), 0 where (h, s) was not met.

    [eq:K01-natural-gradient]  With damping 0 a solution of F w = g, where (F w)(a) = n (π(a) w(a) − π(a) Σ π w).
    """
    met_hs = visits_hsa.sum(axis=-1, keepdims=True)
    below_hsa = np.maximum(met_hs, 1.0) * (policy_hsa + damping)
    w_hsa = np.zeros(policy_hsa.shape)  # so too where damping is 0 and the policy has come down to 0
    np.divide(totals_hsa - baseline * visits_hsa, below_hsa, out=w_hsa, where=below_hsa > 0.0)
    return w_hsa
