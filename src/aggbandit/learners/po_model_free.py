"""Policy optimisation from total losses without any model: numbers are kept for the (h, s) met, and no others."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, CLOSED_FORM, UNKNOWN, Draws, Episode, Learner, Needs, Problem

FIRST_CAPACITY = 64
INDEX_PER_ROW = 2  # the hash table has at least twice as many places as there can be rows


class State(NamedTuple):
    """Rows as in kernels.po_model_free, all arrays grown by doubling."""

    places: IntArray  # hash table: row + 1, or 0
    key_r: IntArray  # h S + s of every row
    rows_rw: FloatArray  # (capacity, 3 A + 4)
    used: IntArray  # (1,): rows in use
    common: FloatArray  # (2,): the ℓ̂ of a new row, and the number of episodes learned from


@final
@dataclass(frozen=True, kw_only=True)
class PolicyOptimizationModelFree(Learner[State]):
    """Exponential weights at every (h, s) met, on the total minus what is expected there.  Outside the theorems.

    Paper    the update of [LM25] Algorithm 1 at the visited (h, s), without occupancies:
             score(a_h) += (g_h - baseline_h(s_h)) / (π_h(a_h|s_h) + γ),   π_h(.|s) ∝ exp(-η_h(s) score)
             g_h is the total minus what earlier steps account for (a running split of totals into steps, ℓ̂), which
             does not depend on a_h given s_h; η_h(s) = √(ln A / Σ π x²), the accumulated second moment, so that
             neither K nor the scale of the losses need be known, and it may stop or go on at any time.
    Loses    the regret bound.  Updates weigh a state by how often the *learner* comes there, while the regret weighs
             it by how often the *best policy* would: the bonus of Algorithm 1 pays for that mismatch, and nothing
             does here.  Where a good state is reached only by a chain of rare choices, it may never be found.  γ stays
             fixed, so that the bias it brings does not vanish.
    Cost     O(H A) an episode whatever S is; memory for the (h, s) met.
    """

    id = "po-model-free"
    update_by = CLOSED_FORM
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, late_feedback=True)

    step_scale: float = 1.0  # multiplies η
    exploration: float = 0.03  # γ, against the noise of rare actions
    forget: float = 0.0  # share of what is known at (h, s) that every visit there erases, for drifting processes

    def __post_init__(self) -> None:
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("exploration", self.exploration, low=0.0)
        require_number("forget", self.forget, low=0.0, high=1.0, high_open=True)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Step scale, γ and the share kept, as the kernel takes them."""
        return float(self.step_scale), float(self.exploration), 1.0 - float(self.forget)

    def init(self, problem: Problem, draws: Draws) -> State:
        return empty(problem.A, FIRST_CAPACITY)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        from aggbandit.kernels import po_model_free as kernel

        policy = np.full(problem.shape, 1.0 / problem.A)
        kernel.fill_policy(problem.S, state.key_r, state.rows_rw, state.used[0], policy)
        return policy

    def policy_at(self, problem: Problem, state: State, step: int, s: int) -> FloatArray:
        from aggbandit.kernels import po_model_free as kernel

        A = problem.A
        row = kernel.find(step * problem.S + s, state.places, state.key_r)
        return np.full(A, 1.0 / A) if row < 0 else state.rows_rw[row, 2 * A : 3 * A].copy()

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        from aggbandit.kernels import po_model_free as kernel

        H = problem.H
        state = with_space(state, H)
        played = np.full(H, -1.0)
        if episode.policy is not None:
            played = episode.policy[np.arange(H), episode.states, episode.actions]
        rows = np.empty(H, np.int64)
        kernel.update(
            episode.states, episode.actions, played, float(episode.total or 0.0), problem.S, *self.numbers, *state, rows
        )
        return state


def empty(A: int, capacity: int) -> State:
    """A state without rows, with space for `capacity`."""
    return State(
        np.zeros(_index_size(capacity), np.int64),
        np.zeros(capacity, np.int64),
        np.zeros((capacity, 3 * A + 4)),
        np.zeros(1, np.int64),
        np.zeros(2),
    )


def with_space(state: State, rows: int) -> State:
    """The same state with space for so many more rows; arrays double when they must grow."""
    count, capacity = int(state.used[0]), len(state.key_r)
    if count + rows <= capacity:
        return state
    return resized(state, max(2 * capacity, count + rows))


def resized(state: State, capacity: int) -> State:
    """The same rows in arrays of another capacity, with a fresh index."""
    from aggbandit.kernels import po_model_free as kernel

    count = int(state.used[0])
    grown = State(
        np.zeros(_index_size(capacity), np.int64),
        np.zeros(capacity, np.int64),
        np.zeros((capacity, state.rows_rw.shape[1])),
        state.used,
        state.common,
    )
    grown.key_r[:count] = state.key_r[:count]
    grown.rows_rw[:count] = state.rows_rw[:count]
    kernel.rebuild(grown.key_r, count, grown.places)
    return grown


def _index_size(capacity: int) -> int:
    return 1 << (INDEX_PER_ROW * capacity - 1).bit_length()
