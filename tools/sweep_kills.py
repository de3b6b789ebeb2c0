"""Sweeps under kill -9: `python -m tools.sweep_kills [--kills N] [--kind driver|worker|scheduler|...]`.

One undisturbed sweep is the measure.  Then sweeps are begun and killed at random moments, the driver, one of its
workers or a Dask scheduler in turn, and taken up again, until all is done; each time the store must hold the same
curves bit for bit, no cell lost, none twice in a frame, no damaged file.  Fifty kills take some minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from aggbandit.experiments.store import Store

ROOT = Path(__file__).resolve().parent.parent
SPEC = """
name = "kills"
episodes = 150
replicas = 1
seed = { first = 0, count = 4 }
checkpoints = 10
instance = "random:states=3,actions=2,horizon=2"
adversary = "switching:blocks=3"
learner = ["uniform", "po-known", "slow_learners:Slow:seconds=0.004"]
"""
KINDS = ("driver-threads", "driver-processes", "driver-dask", "worker", "dask-worker", "scheduler")


def main() -> int:
    """1 where anything was lost, damaged or different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these; repeat for several")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    kinds = arguments.kind or list(KINDS)
    done = dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "kills.toml").write_text(SPEC)
        calm = place / "calm"
        code = driver(place, calm).wait()
        if code:
            raise SystemExit(f"the undisturbed sweep ended with {code}")
        wanted = Store.open(calm)
        sweep = 0
        while sum(done.values()) < arguments.kills:
            kind = kinds[sweep % len(kinds)]
            folder = place / f"sweep-{sweep}"
            done[kind] += disturbed(place, folder, kind, chance, arguments.kills - sum(done.values()))
            compare(folder, wanted)
            told = ", ".join(f"{count} {key}" for key, count in done.items())
            print(f"{sum(done.values())} kills ({told}): all curves the same", flush=True)
            shutil.rmtree(folder)
            sweep += 1
    return 0


def environment() -> dict[str, str]:
    """With the package, and the slow learner of the tests."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    return {**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def driver(place: Path, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """`aggbandit run` in a session of its own."""
    command = [sys.executable, "-m", "aggbandit.cli", "run", str(place / "kills.toml"), "--out", str(folder)]
    return subprocess.Popen(
        [*command, "--no-report", "--save-every", "0.05", *more], env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """Living worker processes of a driver."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process.pid and state != "Z":
                found.append(int(path.parent.name))
    return found


class Cluster:
    """A scheduler and two workers on the loopback address."""

    def __init__(self, place: Path) -> None:
        file = place / f"scheduler-{time.monotonic_ns()}.json"
        self.processes = [
            self._start(place, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        ]
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.05)
        self.address = str(json.loads(file.read_text())["address"])
        for _ in range(2):
            self.processes.append(
                self._start(place, "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny")
            )

    @staticmethod
    def _start(place: Path, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", kind, *arguments, "--no-dashboard"], env=environment(), cwd=place,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def close(self) -> None:
        """Kill what is left of it."""
        for process in self.processes:
            process.kill()
            process.wait()


def disturbed(place: Path, folder: Path, kind: str, chance: random.Random, most: int) -> int:
    """One sweep, killed at up to three random moments of its life and then finished; how often it was killed."""
    dask = kind in ("driver-dask", "dask-worker", "scheduler")
    kills = 0
    while kills < min(3, most):
        cluster = Cluster(place) if dask else None
        more = ["--dask", cluster.address] if cluster else [] if kind == "driver-threads" else ["--workers", "2"]
        process = driver(place, folder, *more)
        try:
            before = len(finished(folder))
            wait_for_progress(process, folder, before)
            time.sleep(chance.random() * 0.5)
            if process.poll() is not None:  # it was through before its moment came
                break
            if kind.startswith("driver"):
                victims = [process.pid]
            elif kind == "worker":
                victims = children(process)[:1]
            else:
                assert cluster is not None
                victims = [cluster.processes[0 if kind == "scheduler" else 1].pid]
            for victim in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    kills += 1
            if kind in ("worker", "dask-worker"):
                code = process.wait(timeout=300)
                if code:
                    raise SystemExit(f"{kind}: the sweep did not survive; exit code {code}")
                break
            process.wait(timeout=300)
        finally:
            process.kill()
            process.wait()
            if cluster is not None:
                cluster.close()
    code = driver(place, folder).wait(timeout=300)
    if code:
        raise SystemExit(f"{kind}: taken up again, the sweep ended with {code}")
    return kills


def finished(folder: Path) -> list[Path]:
    """Result files and states: what shows that cells are being played."""
    return [*folder.glob("*.parquet"), *folder.glob("states/*.state")]


def wait_for_progress(process: subprocess.Popen[bytes], folder: Path, before: int) -> None:
    """Until a file has been added, the driver is through, or long enough has passed."""
    until = time.monotonic() + 60.0
    while process.poll() is None and len(finished(folder)) <= before and time.monotonic() < until:
        time.sleep(0.01)


def compare(folder: Path, wanted: Store) -> None:
    """Same cells, same bits, nothing damaged, nothing twice."""
    store = Store.open(folder)
    if store.finished != wanted.finished:
        raise SystemExit(f"cells differ: {len(store)} instead of {len(wanted)}")
    if damage := store.damage():
        raise SystemExit(f"damaged: {damage[0].message}")
    if store.failed:
        raise SystemExit(f"failed: {store.failures()[0].error}")
    for cell in wanted.finished:
        mine, theirs = store.read(cell), wanted.read(cell)
        for name in ("episodes", "regret", "cost", "comparator"):
            if not np.array_equal(getattr(mine, name), getattr(theirs, name)):
                raise SystemExit(f"{mine.cell.name}: {name} differs")
    frame = store.frame()
    if frame.duplicated(["cell", "replica", "episodes"]).any():
        raise SystemExit("a frame has a cell twice")


if __name__ == "__main__":
    sys.exit(main())
