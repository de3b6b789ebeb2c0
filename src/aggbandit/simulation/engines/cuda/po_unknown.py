"""Algorithm 2 on a GPU: a block of threads plays one replica, whose boxes are its own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.cuda.base import WARP, CudaEngine, padded, require_countable, require_memory, up_to
from aggbandit.simulation.engines.cuda.device import Device

MOST_STATES = 64  # a column is sorted in registers
RESTORE_BLOCK = 64
COLUMNS_OF_A_THREAD = 2  # about, in the longest step: more threads leave too many idle in the short ones
MOST_THREADS = 256
VECTOR_BYTES = 16


class CudaPoUnknownEngine(CudaEngine):
    """Counts, boxes, weights and policies of all replicas on the device; a kernel plays a block of episodes."""

    plays: ClassVar[type[Learner[Any]]] = PolicyOptimizationUnknown
    learner: PolicyOptimizationUnknown

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
        if S > MOST_STATES:
            raise InvalidInputError(
                f"{learner.name} on a GPU takes up to {MOST_STATES} states, but this instance has {S}. "
                "Leave device out to play it on the CPU."
            )
        require_countable(problem, learner.name)
        moves = max(1, H - 1)
        entries = moves * S * A * S
        needed = replicas * (entries * (4 + 2 * dtype.itemsize) + (H + moves) * S * A * 2 * dtype.itemsize)
        require_memory(device, needed, replicas, learner.name)
        self._settings = self.learner.settings(problem)
        self._world = (
            device.upload(padded(self._dynamics.transitions, dtype)),
            *self._drawn(),
            self._upload(problem.initial),
            self._upload(mdp.initial_cumulative),
        )
        integer = np.dtype(np.int32)
        self._counts = device.zeros((replicas, moves, S, A, S), integer)
        self._boxes = (
            device.zeros((replicas, moves, S, A, S), dtype),  # lower ends
            device.filled((replicas, moves, S, A, S), 1.0, dtype),  # slacks
            device.filled((replicas, moves, S, A), 1.0, dtype),  # rests
            device.filled((replicas, moves, S, A), 1, integer),  # depths
            device.zeros((replicas, moves, 2), integer),  # how many rows are smaller than the simplex, and raised
        )
        self._log_weights = device.zeros((replicas, H, S, A), dtype)
        self._policy = device.filled((replicas, H, S, A), 1.0 / A, dtype)
        self._bounds = device.zeros((replicas, 3, H, S), dtype)

    @property
    def _block(self) -> int:
        """Threads for one replica: a function of the sizes alone, so that sums do not depend on the replicas."""
        H, S, _ = self.problem.shape
        columns = 2 * S * max(1, H - 1)
        return min(MOST_THREADS, max(up_to(S, WARP), up_to(columns // COLUMNS_OF_A_THREAD, WARP)))

    def _kernel(self, name: str) -> tuple[Any, int]:
        """The kernel, and the shared memory of its blocks."""
        from aggbandit.kernels.eights import merge_exchange

        H, S, A = self.problem.shape
        moves, block = max(1, H - 1), self._block
        slots, stride = 2 * S * moves, S | 1
        lengths = {
            "POLICY": H * S * A, "LOG_WEIGHTS": H * S * A, "LEAST": H * S, "MOST": H * S, "VALUE": H * S,
            "COLUMNS": S * slots, "SLACK": S * A * stride, "LOW": S * S, "REST": S * A, "ALL_SLACK": S * A,
            "WORK": S * A, "TERM": S * A, "REACH": S, "PARTIAL": max(block // S * S, 2 * (block // WARP)),
            "DRAWS": 2 * (H + 1), "TOTAL": 1,
            # integers, no wider than a number
            "DEPTH": S * A, "ACTIVE": slots, "BOXES": 2 * moves, "VISITED": H, "NONZERO": 2 * S, "COUNT": 1,
        }  # fmt: skip
        constants = self._constants | {
            "BLOCK": block,
            "MASK": (1 << max(1, (S - 1).bit_length())) - 1,
            "NETWORK": " ".join(f"COMPARE({i}, {j})" for i, j in merge_exchange(S)),
        }
        place = 0
        for key, length in lengths.items():
            constants[f"AT_{key}"] = place
            place += up_to(length, VECTOR_BYTES // self.dtype.itemsize)
        shared = place * self.dtype.itemsize
        if shared > self.device.shared_bytes:
            half = ", or try dtype='float32', which takes half" if self.dtype.itemsize == 8 else ""
            raise InvalidInputError(
                f"{self.learner.name} at H, S, A = {H}, {S}, {A} needs {shared} bytes of a GPU's shared memory for a "
                f"replica's columns, but this one has {self.device.shared_bytes}. Leave device out to play it on the "
                f"CPU{half}."
            )
        return self.device.kernel("po_unknown", name, constants), shared

    def _compile(self) -> None:
        self._kernel("play")

    def _arguments(self, tables: Any, rows: Any, episodes: int, first: int) -> bytes:
        used = self._settings
        return self.device.packed(
            *self._world, tables, self._means, rows, self._counts, *self._boxes, self._log_weights, self._policy,
            self._bounds, self._sums, self.replicas, episodes, first, self.first_replica, self.seed,
            used.step, used.exploration, used.bonus_scale, used.log_term, used.radius_scale,
        )  # fmt: skip

    def _play(self, tables: Any, row_n: IntArray, first: int) -> None:
        kernel, shared = self._kernel("play")
        rows = self.device.upload(row_n.astype(np.int32))
        arguments = self.device.prepared(self._arguments(tables, rows, row_n.size, first))
        kernel(self.replicas, self._block, arguments, shared)
        self.device.synchronize()

    def policies(self) -> FloatArray:
        return self.device.download(self._policy).astype(np.float64)

    def bounds(self) -> FloatArray:
        """(replicas, 3, H, S): least and greatest occupancies and Σ_a π B̂ of the latest update, for tests."""
        return self.device.download(self._bounds).astype(np.float64)

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "counts": self.device.download(self._counts),
            "log_weights": self.device.download(self._log_weights),
            "policies": self.device.download(self._policy),
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.device.write(self._counts, state["counts"])
        self.device.write(self._log_weights, state["log_weights"])
        self.device.write(self._policy, state["policies"])
        kernel, _ = self._kernel("restore")
        threads = self.replicas * max(1, self.problem.H - 1)
        kernel(-(-threads // RESTORE_BLOCK), RESTORE_BLOCK, self.device.prepared(self._arguments(None, None, 0, 0)))
        self.device.synchronize()


def choose(
    mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int, device: Device
) -> type[CudaPoUnknownEngine]:
    """One layout for all sizes."""
    return CudaPoUnknownEngine
