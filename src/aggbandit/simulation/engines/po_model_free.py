"""`po-model-free` played inside compiled code, one replica after the other; memory for the (h, s) met."""

from typing import Any, ClassVar

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import INIT_STREAM, Draws, Learner, Problem
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree, State, resized, with_space
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock


class PoModelFreeEngine(Engine):
    """Sampling, learning and, where due, exact evaluation without returning to Python."""

    exact_every: ClassVar[bool] = False

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
        if not isinstance(learner, PolicyOptimizationModelFree):
            raise InvalidInputError(f"{type(self).__name__} plays 'po-model-free', but was given {learner!r}.")
        self._numbers = learner.numbers
        self._states: list[State] = [
            learner.init(problem, Draws(seed, first_replica + r, 0, INIT_STREAM)) for r in range(replicas)
        ]
        self._costs = np.zeros((replicas, 2))
        self._pseudo_costs = np.zeros((replicas, 2))
        self._held = np.zeros((replicas, 2))
        self._has_mean = False

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import po_model_free as kernel

        mdp, problem = self.mdp, self.problem
        H, S, A = problem.shape
        self._has_mean = block.mean_hsa is not None
        mean = np.empty((0, H, S, A))
        if block.mean_hsa is not None:
            mean = np.ascontiguousarray(block.mean_hsa, dtype=np.float64)[None]
        if mdp.is_sparse:
            dynamics = mdp.next_states, mdp.probabilities
        else:
            dynamics = np.empty((0, 0, 0, 0), np.int64), mdp.stored
        world = *dynamics, mdp.cumulative, mdp.initial, mdp.initial_cumulative
        losses = block.tables_mhsa, block.row_n, mean, block.first
        reach = np.empty((H, S))
        trajectory = np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H)
        for r in range(self.replicas):
            policy = np.full(problem.shape, 1.0 / A)  # the kernel writes the rows met, the rest stays
            start = 0
            while True:
                self._states[r] = with_space(self._states[r], H)
                start = kernel.play(
                    *world, *losses, start, self.evaluate_every, self.first_replica + r, np.uint64(self.seed),
                    *self._numbers, *self._states[r], policy, reach, self._held[r], self._costs[r],
                    self._pseudo_costs[r], *trajectory,
                )  # fmt: skip
                if start == len(block.row_n):
                    break

    def cost(self) -> FloatArray:
        total: FloatArray = self._costs.sum(axis=1)
        return total

    def pseudo_cost(self) -> FloatArray | None:
        return self._pseudo_costs.sum(axis=1) if self._has_mean else None

    def policies(self) -> FloatArray:
        return np.stack([self.learner.policy(self.problem, state) for state in self._states])

    def state(self) -> dict[str, Any]:
        counts = [int(state.count[0]) for state in self._states]
        return {
            "keys": [state.key_r[:n].copy() for state, n in zip(self._states, counts, strict=True)],
            "rows": [state.rows_rw[:n].copy() for state, n in zip(self._states, counts, strict=True)],
            "common": [state.common.copy() for state in self._states],
            "costs": self._costs.copy(),
            "pseudo_costs": self._pseudo_costs.copy(),
            "held": self._held.copy(),
            "has_mean": self._has_mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._states = [
            resized(State(np.empty(0, np.int64), keys, rows, np.array([len(keys)]), np.array(common)), 2 * len(keys) + 1)
            for keys, rows, common in zip(state["keys"], state["rows"], state["common"], strict=True)
        ]
        self._costs = np.array(state["costs"])
        self._pseudo_costs = np.array(state["pseudo_costs"])
        self._held = np.array(state["held"])
        self._has_mean = bool(state["has_mean"])


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """One engine a replica, so that threads share them out."""
    return PoModelFreeEngine, 1
