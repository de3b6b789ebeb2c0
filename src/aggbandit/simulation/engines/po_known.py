"""Algorithm 1 played inside compiled code.

All engines do the same operations in the same order for every replica, so their numbers agree bit for bit, and a state
saved by one is continued by any other.
"""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock

TINY = 2.0**-900  # as in kernels.po_known: below it a probability's logarithm counts


class PoKnownEngine(Engine):
    """What all engines of this learner share: constants, compensated costs, and one form of saved state."""

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
        if not isinstance(learner, PolicyOptimizationKnown):
            raise InvalidInputError(f"{type(self).__name__} plays 'po-known', but was given {learner!r}.")
        used = learner.constants(problem)
        self._numbers = used.step_size, used.exploration, used.bonus
        self._costs = np.zeros((replicas, 2))  # (sum, rest) of a compensated sum
        self._pseudo_costs = np.zeros((replicas, 2))
        self._has_mean = False

    def _means(self, block: LossBlock) -> FloatArray:
        """The mean table as (1, H, S, A), or (0, H, S, A) where there is none."""
        self._has_mean = block.mean_hsa is not None
        if block.mean_hsa is None:
            return np.empty((0, *self.problem.shape))
        return np.ascontiguousarray(block.mean_hsa, dtype=np.float64)[None]

    def cost(self) -> FloatArray:
        total: FloatArray = self._costs.sum(axis=1)
        return total

    def pseudo_cost(self) -> FloatArray | None:
        return self._pseudo_costs.sum(axis=1) if self._has_mean else None

    def log_policies(self) -> FloatArray:
        """(replicas, H, S, A): their logarithms, meaningful where the policy is below TINY."""
        raise NotImplementedError

    def set_policies(self, policies: FloatArray, log_policies: FloatArray) -> None:
        """Continue from these."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        policies = self.policies()
        tiny: IntArray = np.flatnonzero(policies < TINY)
        return {
            "policies": policies,
            "tiny": tiny,
            "log_policies": self.log_policies().reshape(-1)[tiny],
            "costs": self._costs.copy(),
            "pseudo_costs": self._pseudo_costs.copy(),
            "has_mean": self._has_mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        policies = np.array(state["policies"])
        log_policies = np.zeros(policies.size)
        log_policies[state["tiny"]] = state["log_policies"]
        self.set_policies(policies, log_policies.reshape(policies.shape))
        self._costs = np.array(state["costs"])
        self._pseudo_costs = np.array(state["pseudo_costs"])
        self._has_mean = bool(state["has_mean"])


class SoloEngine(PoKnownEngine):
    """One replica after the other; dense or sparse dynamics."""

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
        H, S, A = problem.shape
        self._policies = np.full((replicas, H, S, A), 1.0 / A)
        self._log_policies = np.zeros((replicas, H, S, A))
        self._scratch = (
            np.empty((H, S)),
            np.empty(S),
            np.empty((S, A)),
            np.empty(A),
            np.empty(S),
            np.empty(H, np.int64),
            np.empty(H, np.int64),
        )

    def play(self, block: LossBlock) -> None:
        from aggbandit.kernels import po_known_solo as kernel

        mdp = self.mdp
        play: Any = kernel.play_sparse if mdp.is_sparse else kernel.play_dense
        dynamics = (mdp.next_states, mdp.probabilities) if mdp.is_sparse else (mdp.stored,)
        world = *dynamics, mdp.cumulative, mdp.initial, mdp.initial_cumulative
        losses = block.tables_mhsa, block.row_n, self._means(block), block.first
        for r in range(self.replicas):
            play(
                *world, *losses, self.first_replica + r, np.uint64(self.seed), *self._numbers, self._policies[r],
                self._log_policies[r], self._costs[r], self._pseudo_costs[r], *self._scratch,
            )  # fmt: skip

    def policies(self) -> FloatArray:
        return self._policies.copy()

    def log_policies(self) -> FloatArray:
        return self._log_policies

    def set_policies(self, policies: FloatArray, log_policies: FloatArray) -> None:
        self._policies, self._log_policies = policies, log_policies


def choose(mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int) -> tuple[type[Engine], int]:
    """The engine for these sizes, and how many replicas one of them plays."""
    return SoloEngine, 1
