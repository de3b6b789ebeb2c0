"""Algorithm 1 on a GPU: a thread, a few lanes of a warp, or a row of matrix products for each replica.

Which one depends on the sizes and on how many replicas there are.  In float64 the first two follow the CPU's bits, so
that a replica's numbers do not depend on the choice; matrix products sum in an order of their own, which is the same
for however many replicas.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.cuda import tiles
from aggbandit.simulation.engines.cuda.base import (
    WARP,
    CudaEngine,
    padded,
    require_memory,
    spread_over,
    up_to,
)
from aggbandit.simulation.engines.cuda.device import Device

THREADS_FROM = 250  # replicas for each multiprocessor; fewer answer sooner in groups of lanes
THREAD_BLOCK = 256
PRODUCTS_BLOCK = 256
MOST_STATES_OF_A_GROUP = 48
MOST_STATES_OF_A_THREAD = 24  # more do not fit into its registers
MOST_ACTIONS_OF_A_THREAD = 16
MOST_STEPS_OF_A_THREAD = 4096  # its trajectory: for all threads that a large GPU holds at once, 11 GB
MOST_WARPS = 16  # of a block of groups
MOST_STEPS_AT_ONCE = 4  # loops over so few steps are unrolled
FEWEST_WARPS = 4  # with fewer in shared memory policies stay in the device's memory
TINY = {8: 2.0**-900, 4: 2.0**-100}  # as in common.cuh: below it a probability's logarithm counts


class CudaPoKnownEngine(CudaEngine):
    """What the layouts share; policies and their logarithms are on the device in a shape of the layout's own."""

    plays: ClassVar[type[Learner[Any]]] = PolicyOptimizationKnown
    learner: PolicyOptimizationKnown

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
        super().__init__(
            mdp, problem, learner, seed, first_replica, replicas, evaluate_every, device=device, dtype=dtype
        )
        require_memory(device, self._bytes(), replicas, learner.name)
        self._numbers = self.learner.constants(problem)
        self._make_world(self._dynamics.transitions)
        shape = self._policy_shape()
        self._policy = device.filled(shape, 1.0 / problem.A, dtype)
        self._log_policy = device.zeros(shape, dtype)

    @abstractmethod
    def _policy_shape(self) -> tuple[int, ...]: ...

    @abstractmethod
    def _make_world(self, transitions: FloatArray) -> None:
        """Put the dynamics on the device."""

    @abstractmethod
    def _replicas_first(self, policies: Any) -> FloatArray:
        """(replicas, H, S, A) of what is on the device."""

    @abstractmethod
    def _as_kept(self, policies: FloatArray) -> FloatArray:
        """The other way round."""

    def _bytes(self) -> int:
        return int(3 * np.prod(self._policy_shape())) * self.dtype.itemsize

    def policies(self) -> FloatArray:
        return self._replicas_first(self._policy).astype(np.float64)

    def state(self) -> dict[str, Any]:
        policies = self._replicas_first(self._policy)
        tiny: IntArray = np.flatnonzero(policies < TINY[self.dtype.itemsize])
        logs = self._replicas_first(self._log_policy).reshape(-1)[tiny] if tiny.size else np.empty(0, self.dtype)
        return super().state() | {"policies": policies, "tiny": tiny, "log_policies": logs}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        policies = np.array(state["policies"])
        self.device.write(self._policy, self._as_kept(policies))
        if state["tiny"].size:
            logs = np.zeros(policies.shape, self.dtype)
            logs.reshape(-1)[state["tiny"]] = state["log_policies"]
            self.device.write(self._log_policy, self._as_kept(logs))


class FusedEngine(CudaPoKnownEngine):
    """A whole block of episodes in one kernel."""

    file: ClassVar[str] = "po_known"

    def _make_world(self, transitions: FloatArray) -> None:
        upload, dtype = self.device.upload, self.dtype
        self._transitions = upload(padded(transitions, dtype))
        self._turned = upload(padded(transitions.transpose(0, 3, 2, 1), dtype)) if self._wants_turned else None
        self._to_draw_from = self._drawn()
        self._initial = self._upload(self.problem.initial)
        self._initial_cumulative = self._upload(self.mdp.initial_cumulative)
        self._scratch = self._make_scratch()

    _wants_turned: ClassVar[bool] = False

    def _make_scratch(self) -> Any:
        return None

    @abstractmethod
    def _launch(self) -> tuple[Any, int, int, int]:
        """(kernel, blocks, threads of a block, bytes of shared memory)"""

    def _compile(self) -> None:
        self._launch()

    @property
    def _dynamics_bytes(self) -> int:
        """Of one table of transitions as the kernels hold it."""
        H, S, A = self.problem.shape
        steps = 1 if self.mdp.is_stationary else max(1, H - 1)
        return steps * S * A * up_to(S, 16 // self.dtype.itemsize) * self.dtype.itemsize

    def _play(self, tables: Any, row_n: IntArray, first: int) -> None:
        kernel, grid, block, shared = self._launch()
        numbers = self._numbers
        rows = self.device.upload(row_n.astype(np.int32))
        arguments = self.device.packed(
            self._transitions, self._turned, *self._to_draw_from, self._initial, self._initial_cumulative, tables,
            self._means, rows, self._policy, self._log_policy, self._scratch, self._sums,
            self.replicas, self._policy_shape()[-1], row_n.size, first, self.first_replica, self.seed,
            numbers.step_size, numbers.exploration, numbers.bonus,
        )  # fmt: skip
        kernel(grid, block, self.device.prepared(arguments), shared)
        self.device.synchronize()


class ThreadsEngine(FusedEngine):
    """A replica to a thread: for very many."""

    def _policy_shape(self) -> tuple[int, ...]:
        return (*self.problem.shape, up_to(self.replicas, WARP))

    def _make_scratch(self) -> Any:
        H, S, _ = self.problem.shape
        return self.device.zeros((H, S, up_to(self.replicas, WARP)), self.dtype)

    def _replicas_first(self, policies: Any) -> FloatArray:
        kept = self.device.download(policies)
        return np.ascontiguousarray(np.moveaxis(kept, -1, 0)[: self.replicas])

    def _as_kept(self, policies: FloatArray) -> FloatArray:
        full = np.full(self._policy_shape(), 1.0 / self.problem.A, self.dtype)
        full[..., : self.replicas] = np.moveaxis(policies, 0, -1)
        return full

    def _launch(self) -> tuple[Any, int, int, int]:
        _, S, _ = self.problem.shape
        block = THREAD_BLOCK
        slots = (2 + int(self._has_mean)) * S * block * self.dtype.itemsize
        dynamics = self._dynamics_bytes + self._drawn_numbers * self.dtype.itemsize
        shared_dynamics = dynamics + slots <= self.device.shared_bytes // 2
        constants = self._constants | {"THREADS": 1, "BLOCK": block, "SHARED_DYNAMICS": int(shared_dynamics)}
        kernel = self.device.kernel(self.file, "play_threads", constants)
        shared = slots + (dynamics if shared_dynamics else 0)
        return kernel, -(-self.replicas // block), block, shared


class GroupsEngine(FusedEngine):
    """A replica to a few lanes of a warp: for as many as there are, at once."""

    _wants_turned = True

    def _policy_shape(self) -> tuple[int, ...]:
        return (self.replicas, *self.problem.shape)

    def _replicas_first(self, policies: Any) -> FloatArray:
        return self.device.download(policies)

    def _as_kept(self, policies: FloatArray) -> FloatArray:
        return policies

    def _launch(self) -> tuple[Any, int, int, int]:
        H, S, A = self.problem.shape
        group = min(S, WARP)
        members, own = WARP // group, -(-S // group)
        size = self.dtype.itemsize
        vector = 16 // size
        of_policy = H * own * A * WARP
        of_others = numbers_of_a_warp(H, S, A, vector)
        dynamics = 2 * self._dynamics_bytes + self._drawn_numbers * size
        room = self.device.shared_bytes
        if of_others * size > room:
            raise InvalidInputError(
                f"{self.learner.name} at H, S, A = {H}, {S}, {A} needs {of_others * size} bytes of a GPU's shared "
                f"memory for a replica's occupancies, but this one has {room}. Leave device out to play it on the CPU."
            )
        shared_dynamics = room - dynamics >= FEWEST_WARPS * of_others * size
        if shared_dynamics:
            room -= dynamics
        shared_policy = room >= FEWEST_WARPS * (of_policy + of_others) * size
        of_warp = (of_others + (of_policy if shared_policy else 0)) * size
        warps = -(-self.replicas // members)
        at_once = spread_over(warps, min(MOST_WARPS, room // of_warp), self.device.multiprocessors)
        constants = self._constants | {
            "GROUP": group, "BLOCK": at_once * WARP, "SHARED_DYNAMICS": int(shared_dynamics),
            "SHARED_POLICY": int(shared_policy), "STEPS_AT_ONCE": H if H <= MOST_STEPS_AT_ONCE else 1,
        }  # fmt: skip
        kernel = self.device.kernel(self.file, "play_groups", constants)
        shared = at_once * of_warp + (dynamics if shared_dynamics else 0)
        return kernel, -(-warps // at_once), at_once * WARP, shared


class ProductsEngine(CudaPoKnownEngine):
    """A replica to a row of matrix products: for many states."""

    file: ClassVar[str] = "po_known_lanes"

    @cached_property
    def _tiles(self) -> tiles.Tiles:
        _, S, A = self.problem.shape
        return tiles.choose(S, A, self.replicas, self.device.multiprocessors)

    def _stride(self) -> int:
        return up_to(self.replicas, tiles.ROWS * self._tiles.warps)

    def _policy_shape(self) -> tuple[int, ...]:
        return (*self.problem.shape, self._stride())

    def _make_world(self, transitions: FloatArray) -> None:
        H, S, A = self.problem.shape
        R, device, dtype = self._stride(), self.device, self.dtype
        shared = max(self._tiles.reach_bytes(), self._tiles.improve_bytes(A))
        if shared > device.shared_bytes:
            raise InvalidInputError(
                f"{self.learner.name} at S, A = {S}, {A} needs {shared} bytes of a GPU's shared memory for its matrix "
                f"products, but this one has {device.shared_bytes}. Leave device out to play it on the CPU."
            )
        self._reaching = device.upload(tiles.reaching(transitions, self._tiles))
        self._improving = device.upload(tiles.improving(transitions, self._tiles))
        self._to_draw_from = self._drawn()
        self._initial_cumulative = self._upload(self.mdp.initial_cumulative)
        self._now = device.zeros((1,), np.dtype(np.int64))
        self._occupancy = device.zeros((H, S, R), dtype)
        device.write(self._occupancy[0], np.broadcast_to(self.problem.initial[:, None], (S, R)))
        self._value = device.zeros((2, S, R), dtype)
        self._episode_costs = device.zeros((2, R), np.dtype(np.float64))
        self._visited = device.zeros((H, R), np.dtype(np.int32))
        self._factor, self._estimate = device.zeros((H, R), dtype), device.zeros((H, R), dtype)

    def _bytes(self) -> int:
        H, S, A = self.problem.shape
        return (2 * H * A + H + 2) * S * self._stride() * self.dtype.itemsize

    def _replicas_first(self, policies: Any) -> FloatArray:
        return np.ascontiguousarray(np.moveaxis(self.device.download(policies), -1, 0)[: self.replicas])

    def _as_kept(self, policies: FloatArray) -> FloatArray:
        full = np.full(self._policy_shape(), 1.0 / self.problem.A, self.dtype)
        full[..., : self.replicas] = np.moveaxis(policies, 0, -1)
        return full

    def _kernels(self) -> dict[str, Any]:
        constants = self._constants | self._tiles.constants | {"BLOCK": PRODUCTS_BLOCK}
        return {
            name: self.device.kernel(self.file, name, constants) for name in ("reach", "sample", "improve", "advance")
        }

    def _compile(self) -> None:
        self._kernels()

    def _play(self, tables: Any, row_n: IntArray, first: int) -> None:
        H, _, A = self.problem.shape
        device, R, cut, numbers = self.device, self._stride(), self._tiles, self._numbers
        kernels = self._kernels()
        rows = device.upload(row_n.astype(np.int32))
        device.write(self._now, np.zeros(1, np.int64))
        # sent once a block of episodes: what changes from one to the next is on the device
        at_step = [
            device.prepared(
                device.packed(
                    self._reaching, self._improving, *self._to_draw_from, self._initial_cumulative, tables, self._means,
                    rows, self._now, self._policy, self._log_policy, self._occupancy, self._value, self._episode_costs,
                    self._sums, self._visited, self._factor, self._estimate, self.replicas, R, first,
                    self.first_replica, self.seed, numbers.step_size, numbers.exploration, numbers.bonus, h,
                )
            )
            for h in range(H)
        ]  # fmt: skip
        block = cut.warps * WARP
        grid = R // (cut.warps * tiles.ROWS) * cut.splits
        for _ in range(row_n.size):
            for h in range(H):
                kernels["reach"](grid, block, at_step[h], cut.reach_bytes())
            kernels["sample"](-(-R // PRODUCTS_BLOCK), PRODUCTS_BLOCK, at_step[0])
            for h in range(H - 1, -1, -1):
                kernels["improve"](grid, block, at_step[h], cut.improve_bytes(A))
            kernels["advance"](1, WARP, at_step[0])


def numbers_of_a_warp(H: int, S: int, A: int, vector: int) -> int:
    """What a warp of groups keeps in shared memory besides policies: see po_known.cu."""
    group = min(S, WARP)
    members, own = WARP // group, -(-S // group)
    return (
        H * own * WARP + members * S * up_to(A, vector) + up_to(members * S, vector)
        + up_to(members * (H + 1) * 2, vector) + 2 * up_to(members * H, vector)
    )  # fmt: skip


def choose(
    mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int, device: Device
) -> type[CudaPoKnownEngine]:
    """The layout for these sizes."""
    H, S, A = problem.shape
    if S > MOST_STATES_OF_A_GROUP:
        return ProductsEngine
    few = S <= MOST_STATES_OF_A_THREAD and A <= MOST_ACTIONS_OF_A_THREAD and H <= MOST_STEPS_OF_A_THREAD
    beyond_groups = 8 * numbers_of_a_warp(H, S, A, 2) > device.shared_bytes
    if few and (replicas >= THREADS_FROM * device.multiprocessors or beyond_groups):
        return ThreadsEngine
    return GroupsEngine
