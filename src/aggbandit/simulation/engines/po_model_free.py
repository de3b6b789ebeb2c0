"""`po-model-free` played inside compiled code; memory for the (h, s) met, besides one policy for its evaluation."""

from typing import Any, ClassVar

import numpy as np

from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree, State, resized, with_space
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine
from aggbandit.simulation.engines.evaluated import EvaluatedEngine


class PoModelFreeEngine(EvaluatedEngine):
    """Sampling, learning and, where due, exact evaluation without returning to Python."""

    plays: ClassVar[type[Learner[Any]]] = PolicyOptimizationModelFree
    learner: PolicyOptimizationModelFree

    def play_one(self, r: int, world_and_losses: tuple[Any, ...]) -> None:
        from aggbandit.kernels import po_model_free as kernel

        H, S, A = self.problem.shape
        trajectory = np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H)
        first, episodes = world_and_losses[-1], len(world_and_losses[6])
        # a whole policy only where one is evaluated: for large S it outweighs all else
        size = (H, S, A) if -first % self.evaluate_every < episodes else (0, 0, 0)
        evaluated = np.full(size, 1.0 / A), np.empty(size[:2])  # the kernel writes the rows met, the rest stays
        sums = self._held[r], self._costs[r], self._pseudo_costs[r]
        start = 0
        while True:
            self._states[r] = with_space(self._states[r], H)
            start = kernel.play(
                *world_and_losses, start, self.evaluate_every, self.first_replica + r, np.uint64(self.seed),
                *self.learner.numbers, *self._states[r], *evaluated, *sums, *trajectory,
            )  # fmt: skip
            if start == episodes:
                break

    def state(self) -> dict[str, Any]:
        """Only the rows in use; the index is made anew from them."""
        used = []
        for state in self._states:
            n = int(state.used[0])
            keys, rows = state.key_r[:n].copy(), state.rows_rw[:n].copy()
            used.append({"keys": keys, "rows": rows, "common": state.common.copy()})
        return super().state() | {"states": used}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._states = []
        for used in state["states"]:
            n = len(used["keys"])
            rows = State(np.empty(0, np.int64), used["keys"], used["rows"], np.array([n]), np.array(used["common"]))
            self._states.append(resized(rows, 2 * n + 1))


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """One engine a replica, so that threads share them out."""
    return PoModelFreeEngine, 1
