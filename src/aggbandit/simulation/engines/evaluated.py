"""What the engines of the practical learners share: they evaluate every n-th policy inside their kernel."""

from typing import Any, ClassVar

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import INIT_STREAM, Draws, Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock


class EvaluatedEngine(Engine):
    """Replicas one after the other; the sums, and the expected losses of the latest policy evaluated."""

    plays: ClassVar[type[Learner[Any]]]
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
        if not isinstance(learner, self.plays):
            raise InvalidInputError(f"{type(self).__name__} plays {self.plays.id!r}, but was given {learner!r}.")
        self._states = [learner.init(problem, Draws(seed, first_replica + r, 0, INIT_STREAM)) for r in range(replicas)]
        self._costs = np.zeros((replicas, 2))  # (sum, rest) of a compensated sum
        self._pseudo_costs = np.zeros((replicas, 2))
        self._held = np.zeros((replicas, 2))  # the latest evaluation: expected loss, and against the mean table
        self._has_mean = False

    def play(self, block: LossBlock) -> None:
        mdp = self.mdp
        self._has_mean = block.mean_hsa is not None
        mean: FloatArray = np.empty((0, *self.problem.shape))
        if block.mean_hsa is not None:
            mean = np.ascontiguousarray(block.mean_hsa, dtype=np.float64)[None]
        dynamics: tuple[AnyArray, FloatArray]
        if mdp.is_sparse:
            dynamics = mdp.next_states, mdp.probabilities
        else:
            dynamics = np.empty((0, 0, 0, 0), np.int64), mdp.stored
        world = *dynamics, mdp.cumulative, mdp.initial, mdp.initial_cumulative
        losses = block.tables_mhsa, block.row_n, mean, block.first
        for r in range(self.replicas):
            self.play_one(r, (*world, *losses))

    def play_one(self, r: int, world_and_losses: tuple[Any, ...]) -> None:
        """Play the block for one replica."""
        raise NotImplementedError

    def cost(self) -> FloatArray:
        total: FloatArray = self._costs.sum(axis=1)
        return total

    def pseudo_cost(self) -> FloatArray | None:
        return self._pseudo_costs.sum(axis=1) if self._has_mean else None

    def policies(self) -> FloatArray:
        return np.stack([np.array(self.learner.policy(self.problem, state)) for state in self._states])

    def state(self) -> dict[str, Any]:
        return {
            "states": list(self._states),
            "costs": self._costs.copy(),
            "pseudo_costs": self._pseudo_costs.copy(),
            "held": self._held.copy(),
            "has_mean": self._has_mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._states = list(state["states"])
        self._costs = np.array(state["costs"])
        self._pseudo_costs = np.array(state["pseudo_costs"])
        self._held = np.array(state["held"])
        self._has_mean = bool(state["has_mean"])
