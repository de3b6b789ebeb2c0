"""What a sweep costs beyond playing: `python -m tools.sweep_overhead [threads] [dask] [open]`.

threads   2 000 cells of about 1 ms: wall-clock time a cell, less the time of play.  That is measured beforehand, one
          cell after the other: a cell that waits for the interpreter, which others hold, is not playing
dask      40 cells of 1 s on a cluster of two workers: the share of the time in which both were playing
open      a store of 10 000 cells: opening it, and reading all of it
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from aggbandit._files import digest
from aggbandit.experiments.executors import DaskCluster, Executor, Threads, available_cores
from aggbandit.experiments.spec import Spec
from aggbandit.experiments.store import Store
from aggbandit.experiments.sweep import planned, play
from aggbandit.experiments.task import blas_held, play_cell
from tools.sweep_kills import ROOT, Cluster

SMALL = """
episodes = {episodes}
seed = {{ first = 0, count = {count} }}
checkpoints = 10
instance = "random:states=3,horizon=2,seed=0"
adversary = "switching"
learner = "{learner}"
"""


def main() -> int:
    """Measure what is named, or everything."""
    wanted = sys.argv[1:] or ["threads", "dask", "open"]
    sys.path.append(str(ROOT / "tests"))  # the slow learner of the tests
    with tempfile.TemporaryDirectory() as name:
        for one in wanted:
            {"threads": threads, "dask": dask, "open": opened}[one](Path(name))
    return 0


def swept(place: Path, text: str, executor: type[Threads] | None = None, address: str = "") -> tuple[Store, float]:
    """The store, and the seconds that playing it took."""
    shutil.rmtree(place, ignore_errors=True)
    spec = Spec.parse(text)
    store = Store.create(place)
    store.keep_spec(spec)
    work = planned(spec, store)
    made: Executor = Threads(place, len(work.todo)) if executor else DaskCluster(place, address)
    began = time.perf_counter()
    play(work, store, made)
    took = time.perf_counter() - began
    if work.done != len(work.todo):
        raise SystemExit(f"{work.done} of {len(work.todo)} cells were played: {list(work.failed.values())[:1]}")
    return store, took


def threads(place: Path) -> None:
    """Cells of 1 ms on threads."""
    text = SMALL.format(episodes=100, count=2_000, learner="po-known")
    cells = Spec.parse(text).cells
    with blas_held():
        alone = [play_cell(cell)[0].seconds for cell in cells[:400]]
    each = sum(alone[100:]) / len(alone[100:])  # the first ones compile and warm up
    store, took = swept(place / "many", text, Threads)
    cores = min(available_cores(), len(store))
    print(
        f"threads: {len(store)} cells of {1e3 * each:.2f} ms on {cores} threads: {1e3 * took / len(store):.2f} ms "
        f"a cell, {1e3 * (took / len(store) - each / cores):.2f} ms of it overhead"
    )


def dask(place: Path) -> None:
    """Cells of 1 s on two workers."""
    cluster = Cluster(place)
    try:
        text = SMALL.format(episodes=100, count=4, learner="slow_learners:Slow:seconds=0.01")
        swept(place / "warm", text, address=cluster.address)
        text = SMALL.format(episodes=100, count=40, learner="slow_learners:Slow:seconds=0.01")
        store, took = swept(place / "dask", text, address=cluster.address)
    finally:
        cluster.close()
    cells = [one.metadata for one in store.read_all()]
    begun = [datetime.fromisoformat(one["started"]).timestamp() for one in cells]
    ended = [datetime.fromisoformat(one["finished"]).timestamp() for one in cells]
    played = sum(one["seconds"] for one in cells)
    span = max(ended) - min(begun)
    print(
        f"dask: {len(cells)} cells of {played / len(cells):.2f} s in {took:.1f} s; from the first start to the last "
        f"end two workers played {100 * played / (2 * span):.1f} % of the time"
    )


def opened(place: Path) -> None:
    """10 000 files."""
    store, _ = swept(place / "one", SMALL.format(episodes=100, count=1, learner="uniform"), Threads)
    (path,) = store.files(store.finished[0])
    folder = Store.create(place / "big").folder
    for i in range(10_000):
        shutil.copyfile(path, folder / f"{digest(str(i).encode())}.{path.name.split('.')[1]}.parquet")
    began = time.perf_counter()
    found = Store.open(folder)
    print(f"open: {len(found)} cells in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    sys.exit(main())
