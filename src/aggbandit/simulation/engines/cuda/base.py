"""What all engines on a GPU share: how they are made, how losses reach the device, and their sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine, LossBlock
from aggbandit.simulation.engines.cuda.device import WARP, Device

KEPT_FREE = 2**28  # bytes of a GPU's memory that are left to others
MOST_ACTIONS = 256  # a row of a policy is a thread's: with more, a kernel takes minutes to compile and spills all of it


class CudaEngine(Engine):
    """Replicas that live on one GPU.  `dtype` is the number type of policies; sums are float64 always."""

    plays: ClassVar[type[Learner[Any]]]

    def __init__(
        self,
        mdp: TabularMDP,
        problem: Problem,
        learner: Learner[Any],
        seed: int,
        first_replica: int,
        replicas: int,
        evaluate_every: int = 1,
        *,
        device: Device,
        dtype: np.dtype[Any],
    ) -> None:
        super().__init__(mdp, problem, learner, seed, first_replica, replicas, evaluate_every)
        if type(learner) is not self.plays:
            raise InvalidInputError(f"{type(self).__name__} plays {self.plays.id!r}, but was given {learner!r}.")
        if problem.A > MOST_ACTIONS:
            raise InvalidInputError(
                f"{learner.name} on a GPU takes up to {MOST_ACTIONS} actions, but this instance has {problem.A}. "
                "Leave device out to play it on the CPU."
            )
        self.device = device
        self.dtype = dtype
        self._dynamics = dense_dynamics(mdp)
        self._has_mean = False
        self._held: tuple[AnyArray, Any] | None = None  # the latest loss tables, and where they are on the device
        self._means: Any = None
        self._sums = device.zeros((replicas, 4), np.dtype(np.float64))  # cost and pseudo-cost, each (sum, rest)

    def play(self, block: LossBlock) -> None:
        self._has_mean = block.mean_hsa is not None
        if block.mean_hsa is not None and self._means is None:
            self._means = self._upload(block.mean_hsa)
        if block.row_n.size:
            tables = self._tables(block.tables_mhsa)
            self._play(tables, block.row_n, block.first)
            self.device.synchronize()
        else:
            self._compile()

    @abstractmethod
    def _compile(self) -> None:
        """Compile what playing needs."""

    @abstractmethod
    def _play(self, tables: Any, row_n: IntArray, first: int) -> None:
        """Play the episodes from `first` on; `tables` are on the device."""

    def cost(self) -> FloatArray:
        sums = self.device.download(self._sums)
        total: FloatArray = sums[:, 0] + sums[:, 1]
        return total

    def pseudo_cost(self) -> FloatArray | None:
        if not self._has_mean:
            return None
        sums = self.device.download(self._sums)
        total: FloatArray = sums[:, 2] + sums[:, 3]
        return total

    def state(self) -> dict[str, Any]:
        return {"sums": self.device.download(self._sums), "has_mean": self._has_mean}

    def restore(self, state: dict[str, Any]) -> None:
        self.device.write(self._sums, np.array(state["sums"]))
        self._has_mean = bool(state["has_mean"])

    @property
    def _constants(self) -> dict[str, int | str]:
        """Sizes that every kernel is compiled for."""
        H, S, A = self.problem.shape
        return {
            "H": H, "S": S, "A": A, "T": 1 if self.mdp.is_stationary else H,
            "FLOAT64": int(self.dtype == np.float64), "MEANS": int(self._has_mean), "SUCCESSORS": self._dynamics.ways,
        }  # fmt: skip

    def _drawn(self) -> tuple[Any, Any]:
        """On the device: what next states are drawn from, and which they are."""
        _, cumulative, successors = self._dynamics
        named = None if successors is None else self.device.upload(successors.astype(np.int32))
        return self.device.upload(padded(cumulative, self.dtype, np.inf)), named

    @property
    def _drawn_numbers(self) -> int:
        """How many numbers the former has."""
        cumulative = self._dynamics.cumulative
        return math.prod(cumulative.shape[:-1]) * up_to(cumulative.shape[-1], 16 // self.dtype.itemsize)

    def _upload(self, array: AnyArray) -> Any:
        return self.device.upload(np.ascontiguousarray(array, dtype=self.dtype))

    def _tables(self, tables_mhsa: FloatArray) -> Any:
        """The block's tables on the device; not sent again while they are the same."""
        if self._held is None or not np.array_equal(self._held[0], tables_mhsa):
            self._held = np.array(tables_mhsa), self._upload(tables_mhsa)
        return self._held[1]


def padded(array: AnyArray, dtype: np.dtype[Any], filling: float = 0.0) -> AnyArray:
    """The last axis filled up to whole vectors of 16 bytes."""
    width = up_to(array.shape[-1], 16 // dtype.itemsize)
    out = np.full((*array.shape[:-1], width), filling, dtype)
    out[..., : array.shape[-1]] = array
    return out


def up_to(n: int, multiple: int) -> int:
    """n rounded up."""
    return -(-n // multiple) * multiple


class Dynamics(NamedTuple):
    """Of the steps that have any, T or H - 1 of them."""

    transitions: FloatArray  # (steps, S, A, S)
    cumulative: FloatArray  # (steps, S, A, n or S), in the order of `successors`
    successors: IntArray | None  # (steps, S, A, n) where a model names them: draws go through them as on the CPU

    @property
    def ways(self) -> int:
        """n, and 0 where all states come in their order."""
        return 0 if self.successors is None else self.successors.shape[-1]


def dense_dynamics(mdp: TabularMDP) -> Dynamics:
    """The dynamics for kernels that sum over all states, whatever the model is made of."""
    stop = None if mdp.is_stationary else max(1, mdp.H - 1)
    if not mdp.is_sparse:
        return Dynamics(mdp.stored[:stop], mdp.cumulative[:stop], None)
    rows = mdp.transition[:1] if mdp.is_stationary else mdp.transition  # raises where it would be too large
    return Dynamics(rows[:stop], mdp.cumulative[:stop], mdp.next_states[:stop])


def spread_over(units: int, most: int, multiprocessors: int) -> int:
    """How many of `units` a block takes, at most `most`: the fewest with which all blocks need no more turns."""
    of_each = max(1, -(-units // multiprocessors))
    return -(-of_each // -(-of_each // most))


def require_countable(problem: Problem, name: str) -> None:
    """Refuse more episodes than a count of visits on a GPU can hold."""
    most = np.iinfo(np.int32).max
    if problem.episodes is not None and problem.episodes > most:
        raise InvalidInputError(
            f"{name} on a GPU counts visits up to {most}, but episodes is {problem.episodes}. Leave device out to "
            "play it on the CPU."
        )


def require_memory(device: Device, wanted: int, replicas: int, name: str) -> None:
    """Refuse a run that the GPU cannot hold."""
    free = device.free_bytes() - KEPT_FREE
    if wanted > free:
        raise InvalidInputError(
            f"{replicas} replicas of {name} need {wanted / 1e9:.3g} GB of this GPU's memory, of which "
            f"{max(0, free) / 1e9:.3g} GB are free. Play at most {max(0, free) * replicas // wanted} at a time, or "
            "split them over several GPUs with device='cuda:0,1'."
        )


__all__ = ["WARP", "CudaEngine", "padded", "require_countable", "require_memory", "spread_over", "up_to"]
