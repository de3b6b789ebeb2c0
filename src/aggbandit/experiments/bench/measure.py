"""Measure workloads: episodes a second, beside a plain NumPy loop and a matrix product of the same run."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from aggbandit._version import __version__
from aggbandit.errors import AggbanditError
from aggbandit.experiments.bench import numpy_loops
from aggbandit.experiments.bench.workloads import WORKLOADS, Workload
from aggbandit.learners.parts.step_sizes import named_step
from aggbandit.simulation.run import run, single_threaded_blas

NUMPY_SECONDS = 0.5  # of the plain loop, timed between the repeats


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one workload came to."""

    name: str
    episodes_per_second: float  # all replicas together, best of the repeats
    gflops: float | None  # of the recursions' matrix products
    share_of_product: float | None  # of this machine's matrix product at the same shape
    product_gflops: float | None
    numpy_episodes_per_second: float  # the plain loop's best
    peak_mib: float  # of the process that ran it
    repeats: int

    @property
    def ratio_to_numpy(self) -> float:
        """How many times the plain NumPy loop's speed."""
        return self.episodes_per_second / self.numpy_episodes_per_second


def measure(workload: Workload, repeats: int = 3) -> Measurement:
    """Time the workload, the plain loop and the matrix product in turn, so that a busy machine slows all alike."""
    mdp = workload.mdp()
    losses, table = workload.losses(mdp), workload.table(mdp)
    learner = workload.configured()
    best = plain = product = 0.0
    run(mdp, losses, learner, episodes=2, replicas=workload.replicas, threads=workload.threads)
    numpy_episodes = 1
    for _ in range(repeats):
        result = run(
            mdp, losses, learner, episodes=workload.episodes, replicas=workload.replicas, threads=workload.threads,
            checkpoints=2, keep_policy=False,
        )  # fmt: skip
        best = max(best, result.episodes_per_second)
        if workload.successors is None:
            rate, numpy_episodes = _numpy_rate(workload, mdp, table, numpy_episodes)
            plain = max(plain, rate)
        if workload.flops is not None and workload.replicas > 1:
            product = max(product, product_gflops(workload.S, workload.S * workload.A, workload.replicas))
    gflops = None if workload.flops is None or workload.replicas == 1 else best * workload.flops / 1e9
    return Measurement(
        name=workload.name,
        episodes_per_second=best,
        gflops=gflops,
        share_of_product=None if gflops is None else gflops / (product * workload.threads),
        product_gflops=product or None,
        numpy_episodes_per_second=plain or float("nan"),
        peak_mib=peak_mib(),
        repeats=repeats,
    )


def _numpy_rate(workload: Workload, mdp: Any, table: Any, episodes: int) -> tuple[float, int]:
    """The plain loop's episodes a second, and how many fill NUMPY_SECONDS."""
    step = named_step("main", workload.H, workload.S, workload.A, workload.episodes, 0.05)
    while True:
        began = time.perf_counter()
        if workload.learner == "po-known":
            numpy_loops.known(mdp, table, episodes, step)
        else:
            scale = 1.0 if workload.radius_scale is None else workload.radius_scale
            numpy_loops.unknown(mdp, table, episodes, step, 0.05, scale)
        took = time.perf_counter() - began
        if took > NUMPY_SECONDS / 2:
            return episodes / took, episodes
        episodes *= 4


def product_gflops(rows: int, inner: int, columns: int, seconds: float = 0.2) -> float:
    """This machine's speed at (rows × inner) @ (inner × columns) float64, one thread, best of several."""
    rng = np.random.default_rng(0)
    left, right = rng.random((rows, inner)), rng.random((inner, columns))
    out = np.empty((rows, columns))
    best, ends = float("inf"), time.perf_counter() + seconds
    with single_threaded_blas():
        while time.perf_counter() < ends:
            began = time.perf_counter()
            np.dot(left, right, out=out)
            best = min(best, time.perf_counter() - began)
    return 2e-9 * rows * inner * columns / best


def peak_mib() -> float:
    """The most memory this process has held so far, in MiB; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / 1024 if sys.platform != "darwin" else kib / 2**20


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import numba

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "aggbandit": __version__,
        "measured": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def measured_apart(names: list[str], repeats: int) -> Iterator[Measurement]:
    """Each workload in a process of its own, so that its peak memory is its own."""
    for name in names:
        command = [sys.executable, "-m", "aggbandit.experiments.bench.measure", name, str(repeats)]
        environment = os.environ | {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            raise AggbanditError(f"The workload {name} failed:\n{done.stderr.strip()}")
        yield Measurement(**json.loads(done.stdout.splitlines()[-1]))


def by_name(name: str) -> Workload:
    """The workload of that name."""
    return next(workload for workload in WORKLOADS if workload.name == name)


if __name__ == "__main__":
    print(json.dumps(asdict(measure(by_name(sys.argv[1]), int(sys.argv[2])))))
