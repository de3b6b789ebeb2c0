"""The plain engine: any learner, through its contract alone, one episode after the other."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit.learners.base import INIT_STREAM, UPDATE_STREAM, Draws, Episode, Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock
from aggbandit.simulation.protocol import observed, played, updated


class PlainEngine(Engine):
    """Drives one replica after the other by `policy`, a sampled episode and `update`.

    `delays` (K,): the feedback of episode k arrives after episode k + delays[k] was played, and never when that is
    beyond the last; only for learners whose needs allow late feedback.
    """

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
        delays: IntArray | None = None,
    ) -> None:
        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        self._delays = delays
        self._key = np.uint64(seed)
        self._sample = sampler(mdp)
        self._evaluate = evaluator(mdp)
        self._states = [learner.init(problem, Draws(seed, first_replica + r, 0, INIT_STREAM)) for r in range(replicas)]
        self._costs = np.zeros((replicas, 2))
        self._pseudo_costs = np.zeros((replicas, 2))
        self._held = np.zeros((replicas, 2))  # the latest evaluation: expected loss, and against the mean table
        self._late: list[dict[int, list[Episode]]] = [{} for _ in range(replicas)]  # by the episode they arrive after
        self._has_mean = False

    def play(self, block: LossBlock) -> None:
        self._has_mean = block.mean_hsa is not None
        if not block.row_n.size:
            self._compile()
        for r in range(self.replicas):
            self._play_one(r, block)

    def _compile(self) -> None:
        policy = np.full(self.problem.shape, 1.0 / self.problem.A)
        self._sample(policy, 0, 0, self._key)
        self._evaluate(policy, policy)

    def _play_one(self, r: int, block: LossBlock) -> None:
        from aggbandit.kernels import episode as kernel

        problem, learner = self.problem, self.learner
        replica = self.first_replica + r
        state, cost, pseudo, held = self._states[r], self._costs[r], self._pseudo_costs[r], self._held[r]
        for i, row in enumerate(block.row_n):
            k = block.first + i
            table = block.tables_mhsa[row]
            policy = played(learner, problem, state)
            if k % self.evaluate_every == 0:
                held[0] = self._evaluate(policy, table)
                if block.mean_hsa is not None:
                    held[1] = self._evaluate(policy, block.mean_hsa)
            kernel.add_compensated(held[0], cost)
            kernel.add_compensated(held[1], pseudo)
            states, actions = self._sample(policy, replica, k, self._key)
            shown = frozen(policy.copy()) if learner.needs.late_feedback else None
            seen = observed(learner.needs, k, states, actions, table, shown)
            for arrived in self._arriving(r, k, seen):
                draws = Draws(self.seed, replica, arrived.index, UPDATE_STREAM)
                state = updated(learner, problem, state, arrived, draws)
        self._states[r] = state

    def _arriving(self, r: int, k: int, seen: Episode) -> list[Episode]:
        """The episodes whose feedback arrives at the end of episode k, oldest first."""
        if self._delays is None:
            return [seen]
        self._wait(r, seen)
        return self._late[r].pop(k, [])

    def _wait(self, r: int, episode: Episode) -> None:
        """Keep an episode until its feedback is due; not at all where that is never."""
        assert self._delays is not None
        due = episode.index + int(self._delays[episode.index])
        if due < self._delays.size:
            self._late[r].setdefault(due, []).append(episode)

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
            "costs": self._costs,
            "pseudo_costs": self._pseudo_costs,
            "held": self._held,
            "late": [
                [dataclasses.asdict(episode) for episodes in late.values() for episode in episodes]
                for late in self._late
            ],
            "has_mean": self._has_mean,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._states = list(state["states"])
        self._costs = np.array(state["costs"])
        self._pseudo_costs = np.array(state["pseudo_costs"])
        self._held = np.array(state["held"])
        self._late = [{} for _ in state["late"]]
        for r, late in enumerate(state["late"]):
            for episode in late:
                self._wait(r, Episode(**episode))
        self._has_mean = state["has_mean"]


def sampler(mdp: TabularMDP) -> Callable[[FloatArray, int, int, Any], tuple[IntArray, IntArray]]:
    """A function (policy, replica, episode, key) -> (states, actions) of a sampled episode."""
    from aggbandit.kernels import episode as kernel

    def sample(policy: FloatArray, replica: int, k: int, key: Any) -> tuple[IntArray, IntArray]:
        states = np.empty(mdp.H, np.int64)
        actions = np.empty(mdp.H, np.int64)
        if mdp.is_sparse:
            kernel.sample_sparse(
                mdp.next_states, mdp.cumulative, mdp.initial_cumulative, policy, replica, k, key, states, actions
            )
        else:
            kernel.sample_dense(mdp.cumulative, mdp.initial_cumulative, policy, replica, k, key, states, actions)
        return states, actions

    return sample


def evaluator(mdp: TabularMDP) -> Callable[[FloatArray, FloatArray], float]:
    """A function (policy, loss table) -> exact expected loss of an episode."""
    from aggbandit.kernels import occupancy as kernel

    reach_hs = np.empty((mdp.H, mdp.S))

    def evaluate(policy: FloatArray, table: FloatArray) -> float:
        if mdp.is_sparse:
            return float(
                kernel.expected_cost_sparse(mdp.next_states, mdp.probabilities, policy, table, mdp.initial, reach_hs)
            )
        return float(kernel.expected_cost(mdp.stored, policy, table, mdp.initial, reach_hs))

    return evaluate
