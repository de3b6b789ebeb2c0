"""`po-practical` played inside compiled code."""

from typing import Any, ClassVar

import numpy as np

from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_practical import PolicyOptimizationPractical
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine
from aggbandit.simulation.engines.evaluated import EvaluatedEngine


class PoPracticalEngine(EvaluatedEngine):
    """Sampling, learning and, where due, exact evaluation without returning to Python."""

    plays: ClassVar[type[Learner[Any]]] = PolicyOptimizationPractical
    learner: PolicyOptimizationPractical

    def play_one(self, r: int, world_and_losses: tuple[Any, ...]) -> None:
        from aggbandit.kernels import po_practical as kernel

        H, S, A = self.problem.shape
        kernel.play(
            *world_and_losses, self.evaluate_every, self.first_replica + r, np.uint64(self.seed),
            *self.learner.numbers, *self._states[r],
            np.empty((H, S)), self._held[r], self._costs[r], self._pseudo_costs[r],
            np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H), np.empty(S), np.empty((S, A)),
        )  # fmt: skip


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """One engine a replica, so that threads share them out."""
    return PoPracticalEngine, 1
