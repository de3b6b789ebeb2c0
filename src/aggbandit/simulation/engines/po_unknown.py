"""The fused engine of Algorithm 2: sampling, exact cost and update of a block of episodes in one compiled call."""

import math
from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit.learners.base import INIT_STREAM, Draws, Learner, Problem
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown, State
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock

_EVERY_STATE = frozen(np.empty((0, 0, 0, 0), np.int64))  # dense: the successors are all states, in order
_NO_MEAN = np.empty((0, 0, 0))


class UnknownEngine(Engine):
    """Plays one replica after the other: its boxes are its own, nothing is shared between replicas."""

    def __init__(
        self,
        mdp: TabularMDP,
        problem: Problem,
        learner: Learner[Any],
        seed: int,
        first_replica: int,
        replicas: int,
        evaluate_every: int = 1,
    ) -> None:
        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        if not isinstance(learner, PolicyOptimizationUnknown):
            raise TypeError(f"This engine plays po-unknown only, not {learner!r}.")
        from aggbandit.kernels import po_unknown as kernel

        self._settings = learner.settings(problem)
        self._states = [learner.init(problem, Draws(seed, first_replica + r, 0, INIT_STREAM)) for r in range(replicas)]
        self._sums = np.zeros((replicas, 2, 2))  # cost and pseudo-cost, each a compensated sum
        self._has_mean = False
        self._places, _, _ = kernel.layout(*problem.shape)
        self._scratch = kernel.new_scratch(*problem.shape)
        # what a block needs and every replica may overwrite: a trajectory and a box
        self._rows = np.empty(mdp.H, np.int64), np.empty(mdp.H, np.int64), np.empty(mdp.S), np.empty(mdp.S)
        dynamics = (mdp.next_states, mdp.probabilities) if mdp.is_sparse else (_EVERY_STATE, _padded(mdp))
        self._world = (
            *dynamics,
            mdp.cumulative,
            problem.initial,
            mdp.initial_cumulative,
            np.flatnonzero(problem.initial),
            np.uint64(seed),
        )

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import po_unknown as kernel

        self._has_mean = block.mean_hsa is not None
        mean = _NO_MEAN if block.mean_hsa is None else np.array(block.mean_hsa, dtype=np.float64)
        for r in range(self.replicas):
            kernel.play(
                *self._world,
                self.first_replica + r,
                block.first,
                frozen(block.tables_mhsa),
                block.row_n,
                mean,
                *self._states[r],
                *self._scratch,
                self._places,
                *self._settings,
                *self._rows,
                self._sums[r],
            )

    def cost(self) -> FloatArray:
        total: FloatArray = self._sums[:, 0].sum(axis=1)
        return total

    def pseudo_cost(self) -> FloatArray | None:
        return self._sums[:, 1].sum(axis=1) if self._has_mean else None

    def policies(self) -> FloatArray:
        return np.stack([state.policy_hsa for state in self._states])

    def state(self) -> dict[str, Any]:
        states = [State(each.counts_hsas.copy(), each.tables.copy(), each.numbers.copy()) for each in self._states]
        return {"states": states, "sums": self._sums.copy(), "has_mean": self._has_mean}

    def restore(self, state: dict[str, Any]) -> None:
        for mine, saved in zip(self._states, state["states"], strict=True):
            for array, values in zip(mine, saved, strict=True):
                array[...] = values  # where it is: aligned
        self._sums = np.array(state["sums"])
        self._has_mean = state["has_mean"]


def _padded(mdp: TabularMDP) -> FloatArray:
    """The transitions as (T, A, S, S'), rows padded with zeros to a multiple of eight: the kernel's own copy."""
    from aggbandit.kernels import po_unknown as kernel

    T, S, A, _ = mdp.stored.shape
    shape = T, A, S, kernel.eights(S)
    padded: FloatArray = kernel.table(kernel.aligned(math.prod(shape) + 8, np.float64), 0, shape)
    padded[..., :S] = mdp.stored.transpose(0, 2, 1, 3)
    return frozen(padded)


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """One replica an engine: they share nothing, and threads take what is left."""
    return UnknownEngine, 1
