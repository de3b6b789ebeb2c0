"""What the practical learners share on a GPU: a few lanes of a warp for a replica, a block of episodes in one kernel.

In float64 a replica follows the CPU's operations one by one, so that its numbers do not depend on the layout; only the
device's own logarithms and exponentials, and sums of exact costs, may round otherwise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.cuda.base import (
    WARP,
    CudaEngine,
    padded,
    require_countable,
    require_memory,
    spread_over,
    up_to,
)
from aggbandit.simulation.engines.cuda.device import Device

MOST_WARPS = 16  # of a block
FEWEST_WARPS = 8  # with fewer in shared memory, what is kept of a replica stays in the device's memory
INTEGER = np.dtype(np.int32)


class CudaPracticalEngine(CudaEngine):
    """Policies, scores and ℓ̂ of all replicas on the device, each (replicas, H, S, A)."""

    exact_every: ClassVar[bool] = False
    file: ClassVar[str]
    marks: ClassVar[int]  # further numbers at each (h, s)
    kept: ClassVar[int]  # tables that an episode reads whole: the policy, and ℓ̂

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
        H, S, A = problem.shape
        if self._counts_next:
            require_countable(problem, learner.name)
        counts = (replicas, max(1, H - 1), S, A, up_to(S + 1, 4)) if self._counts_next else (1,)
        numbers = (3 * A + self.marks) * H * S * replicas
        require_memory(device, numbers * dtype.itemsize + math.prod(counts) * 4, replicas, learner.name)
        transitions = self._dynamics.transitions
        turned = padded(transitions.transpose(0, 3, 2, 1), dtype) if self._sweeps else None
        self._world = (
            device.upload(padded(transitions, dtype)),
            None if turned is None else device.upload(turned),
            *self._drawn(),
            self._upload(problem.initial),
            self._upload(mdp.initial_cumulative),
        )
        shape = (replicas, H, S, A)
        self._kept: dict[str, Any] = {  # all that an episode changes, besides the sums
            "policies": device.upload(np.full(shape, 1.0 / A, dtype)),
            "losses": device.zeros(shape, dtype),
            "scores": device.zeros(shape, dtype),
            "marks": device.zeros((replicas, H, S, self.marks), dtype),
            "counts": device.zeros(counts, INTEGER),
            "held": device.zeros((replicas, 2), np.dtype(np.float64)),
        }

    @property
    def _sweeps(self) -> bool:
        """Whether learning goes through the known transitions."""
        return False

    @property
    def _counts_next(self) -> bool:
        """Whether transitions are counted."""
        return False

    @property
    @abstractmethod
    def _numbers(self) -> tuple[float, float, float]:
        """Step scale, γ and the share kept."""

    def _launch(self) -> tuple[Any, int, int, int]:
        """(kernel, blocks, threads of a block, bytes of shared memory)"""
        H, S, A = self.problem.shape
        group = min(S, WARP)
        members, own = WARP // group, -(-S // group)
        size = self.dtype.itemsize
        vector = 16 // size
        of_state = self.kept * H * own * A * WARP
        of_others = (
            members * S * up_to(A, vector) + members * 2 * up_to(S + 1, 4) + up_to(members * (H + 1) * 2, vector)
            + up_to(members * H * 2, vector) + up_to(members * H, vector)
        )  # fmt: skip
        rows = (1 if self.mdp.is_stationary else max(1, H - 1)) * S * A
        dynamics = (rows * (1 + self._sweeps) * up_to(S, vector) + self._drawn_numbers) * size
        room = self.device.shared_bytes
        if of_others * size > room:
            raise InvalidInputError(
                f"{self.learner.name} at H, S, A = {H}, {S}, {A} needs {of_others * size} bytes of a GPU's shared "
                f"memory for a replica's weights, but this one has {room}. Leave device out to play it on the CPU."
            )
        shared_dynamics = room - dynamics >= FEWEST_WARPS * of_others * size
        if shared_dynamics:
            room -= dynamics
        shared_state = room >= FEWEST_WARPS * (of_state + of_others) * size
        of_warp = (of_others + (of_state if shared_state else 0)) * size
        warps = -(-self.replicas // members)
        at_once = spread_over(warps, min(MOST_WARPS, room // of_warp), self.device.multiprocessors)
        constants = self._constants | {
            "GROUP": group, "BLOCK": at_once * WARP, "SHARED_DYNAMICS": int(shared_dynamics),
            "SHARED_STATE": int(shared_state), "SWEEPS": int(self._sweeps),
            "UNKNOWN": int(self._counts_next), "KEPT": self.kept, "MARKS": self.marks,
        }  # fmt: skip
        kernel = self.device.kernel(self.file, "play", constants)
        return kernel, -(-warps // at_once), at_once * WARP, at_once * of_warp + (dynamics if shared_dynamics else 0)

    def _compile(self) -> None:
        self._launch()

    def _play(self, tables: Any, row_n: IntArray, first: int) -> None:
        kernel, grid, block, shared = self._launch()
        rows = self.device.upload(row_n.astype(INTEGER))
        arguments = self.device.packed(
            *self._world, tables, self._means, rows, *self._kept.values(), self._sums,
            self.replicas, row_n.size, first, self.first_replica, self.evaluate_every, self.seed,
            *self._numbers, math.log(self.problem.A),
        )  # fmt: skip
        kernel(grid, block, self.device.prepared(arguments), shared)
        self.device.synchronize()

    def policies(self) -> FloatArray:
        return self.device.download(self._kept["policies"]).astype(np.float64)

    def state(self) -> dict[str, Any]:
        kept: dict[str, AnyArray] = {name: self.device.download(buffer) for name, buffer in self._kept.items()}
        return super().state() | kept

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        for name, buffer in self._kept.items():
            self.device.write(buffer, np.array(state[name]))
