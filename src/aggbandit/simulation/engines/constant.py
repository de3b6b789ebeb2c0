"""The engine of learners that never learn: one occupancy, then a dot product per loss table."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.base import INIT_STREAM, Draws, Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.planning import occupancy
from aggbandit.simulation.engines.base import Engine, LossBlock


class ConstantEngine(Engine):
    """Trajectories do not matter to a policy that stays: every replica's cost is the same sum."""

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
        self._policy = learner.policy(problem, learner.init(problem, Draws(seed, first_replica, 0, INIT_STREAM)))
        reach = occupancy(mdp, self._policy)
        self._occupancy = (reach[:, :, None] * self._policy).reshape(-1)
        self._costs = np.zeros(2)
        self._pseudo_costs = np.zeros(2)
        self._has_mean = False

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import episode as kernel

        # row by row: a matrix product's sums may depend on how many rows there are
        values = [np.einsum("x,x->", table.reshape(-1), self._occupancy) for table in block.tables_mhsa]
        kernel.add_rows(np.array(values, dtype=np.float64), block.row_n, self._costs)
        self._has_mean = block.mean_hsa is not None
        if block.mean_hsa is not None:
            mean = np.einsum("x,x->", block.mean_hsa.reshape(-1), self._occupancy)
            kernel.add_rows(np.array([mean]), np.zeros_like(block.row_n), self._pseudo_costs)

    def cost(self) -> FloatArray:
        return np.full(self.replicas, self._costs.sum())

    def pseudo_cost(self) -> FloatArray | None:
        return np.full(self.replicas, self._pseudo_costs.sum()) if self._has_mean else None

    def policies(self) -> FloatArray:
        return np.broadcast_to(self._policy, (self.replicas, *self.problem.shape))

    def state(self) -> dict[str, Any]:
        return {"costs": self._costs, "pseudo_costs": self._pseudo_costs, "has_mean": self._has_mean}

    def restore(self, state: dict[str, Any]) -> None:
        self._costs = np.array(state["costs"])
        self._pseudo_costs = np.array(state["pseudo_costs"])
        self._has_mean = state["has_mean"]


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """One engine for all replicas."""
    return ConstantEngine, replicas
