"""The workloads of a GPU, and the ceilings of the card that they are compared with."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggbandit import learners
from aggbandit.experiments.bench.workloads import Workload
from aggbandit.learners.base import Learner
from aggbandit.simulation.engines.cuda.device import cupy
from aggbandit.simulation.run import run

PRODUCT_SIZE = 8192
COPY_BYTES = 2**32


@dataclass(frozen=True, kw_only=True)
class GpuWorkload(Workload):
    """A workload with as many replicas as fill a GPU."""

    dtype: str = "float64"
    own: bool = False  # the learner's own arguments, not `Workload`'s
    arguments: tuple[tuple[str, Any], ...] = ()

    def configured(self) -> Learner[Any]:
        """The learner."""
        return learners.make(self.learner, **dict(self.arguments)) if self.own else super().configured()


@dataclass(frozen=True, kw_only=True)
class GpuMeasurement:
    """What one workload came to."""

    name: str
    dtype: str
    replicas: int
    episodes: int
    episodes_per_second: float  # all replicas together, best of the repeats
    tflops: float | None  # of the two recursions, 4 (H-1) S² A an episode
    share_of_product: float | None  # of this card's own matrix product in the same number type
    seconds: float  # of the best
    repeats: int


def known(H: int, S: int, A: int, replicas: int, episodes: int, dtype: str) -> GpuWorkload:
    """Algorithm 1."""
    name = f"known-{H}-{S}-{A}-{dtype}"
    return GpuWorkload(name=name, learner="po-known", H=H, S=S, A=A, episodes=episodes, replicas=replicas, dtype=dtype)


def unknown(name: str, replicas: int, episodes: int, radius_scale: float = 1.0) -> GpuWorkload:
    """Algorithm 2 at 10, 10, 4."""
    return GpuWorkload(
        name=name, learner="po-unknown", H=10, S=10, A=4, episodes=episodes, replicas=replicas,
        radius_scale=radius_scale,
    )  # fmt: skip


def practical(name: str, learner: str, **arguments: str) -> GpuWorkload:
    """A practical learner at 10, 10, 4, every policy evaluated."""
    return GpuWorkload(
        name=name, learner=learner, H=10, S=10, A=4, episodes=5_000, replicas=25_344,
        arguments=tuple(arguments.items()), own=True,
    )  # fmt: skip


WORKLOADS = [
    known(5, 5, 3, 270_336, 10_000, "float32"),
    known(5, 5, 3, 65_536, 20_000, "float64"),
    known(10, 10, 4, 65_536, 6_000, "float32"),
    known(10, 10, 4, 65_536, 3_000, "float64"),
    known(20, 100, 10, 32_768, 100, "float64"),
    unknown("unknown-10-10-4", 8_448, 3_000),
    unknown("unknown-10-10-4-long", 1_056, 30_000),
    unknown("unknown-10-10-4-narrow", 8_448, 3_000, 0.01),
    practical("practical-10-10-4", "po-practical", dynamics="known"),
    practical("practical-10-10-4-unknown", "po-practical", dynamics="unknown"),
    practical("model-free-10-10-4", "po-model-free"),
]


def measured(names: list[str], repeats: int) -> Iterator[GpuMeasurement]:
    """Each workload, best of the repeats."""
    products = {dtype: product_tflops(dtype) for dtype in ("float64", "float32")}
    for workload in WORKLOADS:
        if workload.name in names:
            yield measure(workload, products[workload.dtype], repeats)


def measure(workload: GpuWorkload, product: float, repeats: int) -> GpuMeasurement:
    """Time the whole loop, exact cost included, what is sent to the card too."""
    mdp = workload.mdp()
    losses, learner = workload.losses(mdp), workload.configured()
    best = None
    for _ in range(repeats):
        result = run(
            mdp, losses, learner, episodes=workload.episodes, replicas=workload.replicas, checkpoints=1,
            keep_policy=False, device="cuda", dtype=workload.dtype,
        )  # fmt: skip
        if best is None or result.seconds < best.seconds:
            best = result
    assert best is not None
    tflops = None if workload.flops is None else 1e-12 * workload.flops * best.episodes_per_second
    return GpuMeasurement(
        name=workload.name,
        dtype=workload.dtype,
        replicas=workload.replicas,
        episodes=workload.episodes,
        episodes_per_second=best.episodes_per_second,
        tflops=tflops,
        share_of_product=None if tflops is None else tflops / product,
        seconds=best.seconds,
        repeats=repeats,
    )


def product_tflops(dtype: str) -> float:
    """The card's own matrix product, square and large, on random numbers."""
    cp = cupy()
    n = PRODUCT_SIZE
    left, right = cp.random.random((n, n)).astype(dtype), cp.random.random((n, n)).astype(dtype)
    out = cp.empty((n, n), dtype)
    return 2e-12 * n**3 / _best_seconds(lambda: cp.matmul(left, right, out=out))


def copy_tb_per_second() -> float:
    """From the card's memory to itself, bytes read plus bytes written."""
    cp = cupy()
    source, target = cp.ones(COPY_BYTES, np.uint8), cp.empty(COPY_BYTES, np.uint8)
    return 2e-12 * COPY_BYTES / _best_seconds(lambda: cp.copyto(target, source))


def _best_seconds(work: Any, repeats: int = 5) -> float:
    stream = cupy().cuda.get_current_stream()
    times = []
    for _ in range(repeats + 1):  # the first loads the library
        stream.synchronize()
        began = time.perf_counter()
        work()
        stream.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def card() -> dict[str, Any]:
    """The GPU and its ceilings, measured now."""
    cp = cupy()
    about = cp.cuda.runtime.getDeviceProperties(0)
    return {
        "gpu": about["name"].decode(),
        "multiprocessors": int(about["multiProcessorCount"]),
        "memory_gb": round(about["totalGlobalMem"] / 1e9, 1),
        "cuda": ".".join(map(str, divmod(cp.cuda.runtime.runtimeGetVersion() // 10, 100))),
        "cupy": cp.__version__,
        "product_float64_tflops": round(product_tflops("float64"), 1),
        "product_float32_tflops": round(product_tflops("float32"), 1),
        "copy_tb_per_second": round(copy_tb_per_second(), 2),
    }
