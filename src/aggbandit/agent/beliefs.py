"""What an agent has learned: a row of numbers for each (step, state) that a scored episode passed through.

The rows and their arithmetic are those of the learner `po-model-free`, by the same compiled function, so an agent fed
the same episodes in the same order holds the same numbers.  Here a row is found by (step, state), states being
numbered as they come, and beside it stand plain sums for people to read.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree

FIRST_CAPACITY = 64


class Act(NamedTuple):
    """One decision as it was made."""

    state: int  # number of the state
    action: int
    probability: float  # with which the action was drawn
    allowed: bytes | None  # one byte for each action, 1 where it was on offer; None: all were


class Record(NamedTuple):
    """What scored episodes say of one (step, state), action by action."""

    times_a: FloatArray  # how often chosen
    mean_a: FloatArray  # mean total loss of those episodes, NaN where never chosen
    spread_a: FloatArray  # standard error of that mean, NaN below two


class Beliefs:
    """Rows by (step, state), and their arithmetic."""

    def __init__(self, horizon: int, actions: int, learner: PolicyOptimizationModelFree) -> None:
        from aggbandit.kernels import po_model_free as kernel

        self._kernel: Any = kernel
        self._horizon = horizon
        self._actions = actions
        self._numbers = learner.numbers
        self._row_of: dict[tuple[int, int], int] = {}
        self._key_r2: IntArray = np.zeros((FIRST_CAPACITY, 2), np.int64)  # (step, state) of each row
        self._rows_rw: FloatArray = np.zeros((FIRST_CAPACITY, 3 * actions + 4))
        self._sums_rw: FloatArray = np.zeros((FIRST_CAPACITY, 3 * actions))  # times, Σ loss, Σ loss², by action
        self._common: FloatArray = np.zeros(2)
        self._all = np.ones(actions, np.bool_)

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def episodes(self) -> int:
        """How many episodes have been learned from."""
        return int(self._common[1])

    def probabilities(self, step: int, state: int, allowed: bytes | None = None) -> FloatArray:
        """(A,): the policy at one place, among the allowed actions."""
        row = self._row_of.get((step, state), -1)
        A = self._actions
        if row < 0:
            mask = self._all if allowed is None else np.frombuffer(allowed, np.bool_)
            even: FloatArray = mask / mask.sum()
            return even
        if allowed is None:
            return self._rows_rw[row, 2 * A : 3 * A]
        out = np.empty(A)
        mask = np.frombuffer(allowed, np.bool_)
        self._kernel.softmin(self._rows_rw[row], self._horizon, self._numbers[0], mask, out)
        return out

    def learn(self, acts: Sequence[Act], total: float, loss: float) -> None:
        """Take in one scored episode: `total` in [0, horizon] for the arithmetic, `loss` as people count it."""
        n = len(acts)
        if n == 0:
            return
        rows = np.array([self._row(step, act.state) for step, act in enumerate(acts)], np.int64)
        actions = np.array([act.action for act in acts], np.int64)
        played = np.array([act.probability for act in acts])
        offered = self._offered(acts)
        self._kernel.learn(self._rows_rw, rows, actions, played, offered, total, *self._numbers, self._common)
        A = self._actions
        for part, value in enumerate((1.0, loss, loss * loss)):
            self._sums_rw[rows, part * A + actions] += value

    def _offered(self, acts: Sequence[Act]) -> npt.NDArray[np.bool_]:
        """(n, A): what was on offer at each step; empty where everything always was."""
        if all(act.allowed is None for act in acts):
            return np.empty((0, 0), np.bool_)
        return np.array(
            [self._all if act.allowed is None else np.frombuffer(act.allowed, np.bool_) for act in acts], np.bool_
        )

    def record(self, step: int, state: int) -> Record | None:
        """The plain sums at one place; None where no scored episode passed."""
        row = self._row_of.get((step, state))
        if row is None:
            return None
        times, sums, squares = self._sums_rw[row].reshape(3, self._actions)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = sums / times
            variance = np.maximum(squares - times * mean * mean, 0.0) / (times - 1.0)
            spread = np.where(times > 1.0, np.sqrt(variance / times), np.nan)
        return Record(times.copy(), mean, spread)

    def state(self) -> dict[str, AnyArray]:
        """All of it, for a snapshot."""
        n = len(self)
        return {
            "keys": self._key_r2[:n],
            "rows": self._rows_rw[:n],
            "sums": self._sums_rw[:n],
            "common": self._common,
        }

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from `state()`, bit for bit."""
        n = len(state["keys"])
        self._resize(max(FIRST_CAPACITY, 2 * n))
        self._key_r2[:n], self._rows_rw[:n], self._sums_rw[:n] = state["keys"], state["rows"], state["sums"]
        self._common = np.array(state["common"])
        self._row_of = {(step, number): row for row, (step, number) in enumerate(self._key_r2[:n].tolist())}

    def _row(self, step: int, state: int) -> int:
        row = self._row_of.get((step, state))
        if row is None:
            row = len(self._row_of)
            if row == len(self._key_r2):
                self._resize(2 * row)
            self._row_of[step, state] = row
            self._key_r2[row] = step, state
            self._kernel.new_row(self._rows_rw[row], self._common[0])
        return row

    def _resize(self, capacity: int) -> None:
        n = len(self._row_of)
        for name in ("_key_r2", "_rows_rw", "_sums_rw"):
            old: AnyArray = getattr(self, name)
            grown = np.zeros((capacity, old.shape[1]), old.dtype)
            grown[:n] = old[:n]
            setattr(self, name, grown)
