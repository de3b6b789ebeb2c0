"""Playing one cell, wherever that is: in a thread, another process or on a cluster."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggbandit.errors import StorageError
from aggbandit.experiments import store as stores
from aggbandit.experiments.cells import Cell
from aggbandit.simulation.result import RunResult
from aggbandit.simulation.run import Progress, single_threaded_blas

DONE, FAILED, STOPPED, NO_ROOM = "done", "failed", "stopped", "no room"
SAVE_SECONDS = 60.0
CLUSTER_TELL_SECONDS = 2.0  # a scheduler has better things to do than to hear of every cell at every moment

Tell = Callable[[str, float], None]  # (cell, share of its episodes played)


@dataclass(frozen=True)
class Outcome:
    """What became of a cell."""

    cell: str
    kind: str  # DONE, FAILED, STOPPED or NO_ROOM
    message: str = ""
    data: bytes | None = None  # the result's file, where whoever asked must write it
    error: str = ""  # the failure's record, likewise
    seconds: float = 0.0


class Stopped(Exception):
    """Raised within a run that is to stop."""

    def __init__(self) -> None:
        super().__init__("stopped between two blocks of episodes")


def play_cell(
    cell: Cell,
    *,
    state_file: Path | None = None,
    save_seconds: float = SAVE_SECONDS,
    threads: int = 1,
    stop: Callable[[], bool] | None = None,
    tell: Tell | None = None,
) -> tuple[RunResult, bool]:
    """The cell's result, and whether it was continued from a saved state.

    BLAS must be held to one thread by the caller.  The state is saved every `save_seconds` and when `stop()` becomes
    true; then Stopped is raised.
    """
    simulation = cell.simulation()
    resumed = False
    if state_file is not None and state_file.exists():
        try:
            simulation.load(state_file)
            resumed = True
        except Exception:  # noqa: BLE001  a state is a convenience: what cannot be continued for certain, or has just
            # gone because another process is through with the cell, is played from the start
            with contextlib.suppress(OSError):
                state_file.unlink()
            simulation = cell.simulation()
    saved = time.monotonic()

    def report(progress: Progress) -> None:
        nonlocal saved
        stopping = stop is not None and stop()
        begun = not progress.compiling and 0 < progress.done < progress.episodes
        if state_file is not None and begun and (stopping or time.monotonic() - saved >= save_seconds):
            with stores.cannot_write(state_file):
                simulation.save(state_file)
            saved = time.monotonic()
        if stopping and progress.done < progress.episodes:
            raise Stopped
        if tell is not None and not progress.compiling:
            tell(cell.id, progress.done / progress.episodes)

    simulation.play(threads=threads, report=report)
    return simulation.result(keep_policy=False), resumed


def carry_out(
    cell: Cell,
    folder: Path | None,
    *,
    save_seconds: float = SAVE_SECONDS,
    threads: int = 1,
    stop: Callable[[], bool] | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Play the cell; with no folder, or one whose results somebody else writes, its bytes are in the outcome.

    Whatever goes wrong with the cell itself ends up in the outcome, not as an exception.
    """
    began = time.perf_counter()
    started = stores.now()
    state_file = None if folder is None else folder / stores.STATES / f"{cell.id}.state"
    try:
        result, resumed = play_cell(
            cell, state_file=state_file, save_seconds=save_seconds, threads=threads, stop=stop, tell=tell
        )
        data = stores.encoded(cell, result, started=started, resumed=resumed)
    except (Stopped, KeyboardInterrupt):
        return Outcome(cell.id, STOPPED)
    except StorageError as error:
        return Outcome(cell.id, NO_ROOM, str(error))
    except BaseException as error:  # noqa: BLE001  a learner may raise anything; the others go on
        return Outcome(cell.id, FAILED, stores.in_words(error), error=stores.failure_record(cell, error))
    return Outcome(cell.id, DONE, data=data, seconds=time.perf_counter() - began)


def keep(outcome: Outcome, folder: Path) -> Outcome:
    """Write what the outcome holds into the folder; the outcome without it, or NO_ROOM."""
    try:
        if outcome.kind == DONE and outcome.data is not None:
            stores.write_result(folder, outcome.cell, outcome.data)
            with contextlib.suppress(OSError):
                (folder / stores.STATES / f"{outcome.cell}.state").unlink()
        elif outcome.kind == FAILED and outcome.error:
            stores.write_failure_record(folder, outcome.cell, outcome.error)
    except StorageError as error:
        return Outcome(outcome.cell, NO_ROOM, str(error))
    return Outcome(outcome.cell, outcome.kind, outcome.message, seconds=outcome.seconds)


class _Held:
    """BLAS held to one thread for as long as anybody here plays.

    The limit belongs to the whole process: whoever comes first sets it, whoever leaves last lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._players = 0
        self._stack = ExitStack()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._players == 0:
                self._stack.enter_context(single_threaded_blas())
            self._players += 1
        try:
            yield
        finally:
            with self._lock:
                self._players -= 1
                if self._players == 0:
                    self._stack.close()


blas_held = _Held()


def on_cluster(task: tuple[str, str, str, str], folder: str, probe: str, save_seconds: float) -> dict[str, Any]:
    """A Dask worker's share: the result is written here where `folder` is the driver's, else returned.

    A driver that stops or dies takes its tasks back; then the cell stops, saving its state where it sees the folder,
    instead of holding the worker to the end.
    """
    from distributed import get_worker

    cell = Cell(*task)
    shared = shares_folder(folder, probe)
    place = Path(folder) if shared else None
    worker: Any = get_worker()
    key = worker.get_current_task()
    said = time.monotonic()

    def taken_back() -> bool:
        found = worker.state.tasks.get(key)
        return found is None or found.state == "cancelled"

    def tell(cell: str, share: float) -> None:
        nonlocal said
        if time.monotonic() - said >= CLUSTER_TELL_SECONDS:
            said = time.monotonic()
            worker.log_event(probe, [cell, share])

    with blas_held():
        outcome = carry_out(cell, place, save_seconds=save_seconds, stop=taken_back, tell=tell)
    if place is not None:
        outcome = keep(outcome, place)
    return {
        "cell": outcome.cell, "kind": outcome.kind, "message": outcome.message, "data": outcome.data,
        "error": outcome.error, "seconds": outcome.seconds,
    }  # fmt: skip


def shares_folder(folder: str, probe: str) -> bool:
    """Whether the driver's folder is here too: its probe, a file with a random name, is seen."""
    return os.path.exists(os.path.join(folder, stores.STATES, probe))
