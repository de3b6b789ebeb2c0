"""The fused engine of Algorithm 2: sampling, exact cost and update of a block of episodes in one compiled call."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.base import INIT_STREAM, Draws, Learner, Problem
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown, State
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock

_NO_SUCCESSORS = np.empty((0, 0, 0, 0), np.int64)  # every state is a successor, in order
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
        self._settings = learner.settings(problem)
        self._states = [learner.init(problem, Draws(seed, first_replica + r, 0, INIT_STREAM)) for r in range(replicas)]
        self._sums = np.zeros((replicas, 2, 2))  # cost and pseudo-cost, each a compensated sum
        self._has_mean = False
        successors, probabilities = (
            (mdp.next_states, mdp.probabilities) if mdp.is_sparse else (_NO_SUCCESSORS, mdp.stored)
        )
        self._world = (successors, probabilities, mdp.cumulative, mdp.initial_cumulative)

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import po_unknown as kernel

        self._has_mean = block.mean_hsa is not None
        mean = _NO_MEAN if block.mean_hsa is None else np.ascontiguousarray(block.mean_hsa)
        for r in range(self.replicas):
            kernel.play(
                self._world,
                self.problem.initial,
                np.uint64(self.seed),
                self.first_replica + r,
                block.first,
                block.tables_mhsa,
                block.row_n,
                mean,
                tuple(self._states[r]),
                *self._settings,
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
        return {"states": list(self._states), "sums": self._sums, "has_mean": self._has_mean}

    def restore(self, state: dict[str, Any]) -> None:
        self._states = [State(*(np.array(array) for array in each)) for each in state["states"]]
        self._sums = np.array(state["sums"])
        self._has_mean = state["has_mean"]


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """One replica an engine: they share nothing, and threads take what is left."""
    return UnknownEngine, 1
