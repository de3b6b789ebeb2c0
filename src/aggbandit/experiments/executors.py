"""Where cells are played: threads of this process, worker processes, or a Dask cluster.

All play the same cells by the same code into the same kind of file, so curves are the same bits whoever played them.
An executor is handed cells one by one, as it has room for them, and delivers an outcome for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggbandit._checks import require_integer
from aggbandit._version import __version__
from aggbandit.errors import InvalidInputError, MissingExtraError, StorageError
from aggbandit.experiments import store as stores
from aggbandit.experiments.cells import Cell
from aggbandit.experiments.task import (
    DONE,
    FAILED,
    NO_ROOM,
    SAVE_SECONDS,
    STOPPED,
    Outcome,
    Tell,
    blas_held,
    carry_out,
    keep,
    on_cluster,
)

WRITERS = 8  # a disk syncs several files in the time of one
TRIES = 3  # a cell whose worker has died so often has failed
WAIT_SECONDS = 0.2
CONNECT_SECONDS = 20.0
LOST_SECONDS = 5.0
COUNT_SECONDS = 5.0

Deliver = Callable[[Outcome], None]


class ClusterLostError(InvalidInputError):
    """The cluster cannot be reached, or went away.  What is finished stays in the store."""


class WorkersLostError(InvalidInputError):
    """Worker processes end before they have begun.  What is finished stays in the store."""


class Executor(ABC):
    """Plays cells."""

    def __init__(self, folder: Path, *, save_seconds: float = SAVE_SECONDS) -> None:
        self.folder = folder
        self.save_seconds = save_seconds

    @abstractmethod
    def run(self, cells: Iterator[Cell], deliver: Deliver, tell: Tell) -> None:
        """Play all cells; `deliver` is called in this thread.

        After an outcome NO_ROOM, or on KeyboardInterrupt, whatever plays is stopped, its state saved where it can be;
        outcomes that are ready are delivered before this returns or raises.
        """

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many cells are played at once."""


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads(Executor):
    """Threads of this process: kernels release the interpreter's lock.

    With fewer cells than threads, the threads left over share the replicas of those that are played.
    """

    def __init__(self, folder: Path, count: int, *, threads: int | None = None, save_seconds: float = SAVE_SECONDS):
        super().__init__(folder, save_seconds=save_seconds)
        total = available_cores() if threads is None else require_integer("threads", threads, low=1)
        self._slots = max(1, min(total, count))
        self._threads_each = max(1, total // self._slots)

    @property
    def slots(self) -> int:
        return self._slots

    def run(self, cells: Iterator[Cell], deliver: Deliver, tell: Tell) -> None:
        stop = threading.Event()
        lock = threading.Lock()
        ready: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        room = threading.Semaphore(4 * WRITERS)  # results waiting to be written

        def write(outcome: Outcome) -> None:
            try:
                ready.put(keep(outcome, self.folder))
            except BaseException as error:  # noqa: BLE001  a thread would end with it, and nobody would hear of it
                ready.put(Outcome(outcome.cell, NO_ROOM, stores.in_words(error)))
            finally:
                room.release()

        def play() -> None:
            while not stop.is_set():
                with lock:
                    cell = next(cells, None)
                if cell is None:
                    return
                outcome = carry_out(
                    cell, self.folder, save_seconds=self.save_seconds, threads=self._threads_each, stop=stop.is_set,
                    tell=tell,
                )  # fmt: skip
                room.acquire()
                writers.submit(write, outcome)

        with blas_held(), ThreadPoolExecutor(WRITERS) as writers, ThreadPoolExecutor(self.slots) as players:
            playing = [players.submit(play) for _ in range(self.slots)]
            try:
                while not all(one.done() for one in playing):
                    self._hand_on(ready, deliver, stop)
                for one in playing:
                    one.result()
            except BaseException:
                stop.set()
                raise
            finally:
                stop.set()
                players.shutdown()
                writers.shutdown()
                while not ready.empty():
                    deliver(ready.get())

    @staticmethod
    def _hand_on(ready: queue.SimpleQueue[Outcome], deliver: Deliver, stop: threading.Event) -> None:
        try:
            outcome = ready.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            return
        if outcome.kind == NO_ROOM:
            stop.set()
        deliver(outcome)


@dataclass
class _Process:
    """A worker process and what it is at."""

    popen: subprocess.Popen[bytes]
    cell: Cell | None = None
    buffer: bytes = b""
    ready: bool = False  # it has said so


class Processes(Executor):
    """Worker processes on this machine, one thread each; one that dies costs the cell it was at, which is retried."""

    def __init__(self, folder: Path, workers: int, *, save_seconds: float = SAVE_SECONDS) -> None:
        super().__init__(folder, save_seconds=save_seconds)
        self._slots = require_integer("workers", workers, low=1)

    @property
    def slots(self) -> int:
        return self._slots

    def run(self, cells: Iterator[Cell], deliver: Deliver, tell: Tell) -> None:
        again: deque[Cell] = deque()
        tries: dict[str, int] = {}
        workers: list[_Process] = []
        selector = selectors.DefaultSelector()
        stopping = False
        stillborn = 0  # workers in a row that ended before they were ready

        def following() -> Cell | None:
            if stopping:
                return None
            return again.popleft() if again else next(cells, None)

        def start() -> None:
            worker = _Process(self._start())
            workers.append(worker)
            assert worker.popen.stdout is not None
            os.set_blocking(worker.popen.stdout.fileno(), False)
            selector.register(worker.popen.stdout, selectors.EVENT_READ, worker)

        def hand_out(worker: _Process) -> None:
            worker.cell = following()
            if worker.cell is None:
                _close(worker.popen.stdin)
                return
            cell = worker.cell
            task = {
                "cell": [cell.text, cell.instance, cell.adversary, cell.learner],
                "folder": str(self.folder.resolve()), "save_seconds": self.save_seconds,
            }  # fmt: skip
            with contextlib.suppress(BrokenPipeError):  # its end is noticed when its output ends
                assert worker.popen.stdin is not None
                worker.popen.stdin.write(json.dumps(task).encode() + b"\n")
                worker.popen.stdin.flush()

        def lost(worker: _Process) -> None:
            nonlocal stillborn
            code = worker.popen.wait()
            selector.unregister(worker.popen.stdout)  # type: ignore[arg-type]
            _close(worker.popen.stdout)
            _close(worker.popen.stdin)
            workers.remove(worker)
            cell = worker.cell
            if cell is None:
                stillborn += not worker.ready
                if stillborn >= TRIES and not stopping:
                    raise WorkersLostError(
                        f"{stillborn} worker processes in a row ended before they could begin, the last one "
                        f"{_manner(code)}; what they said is above. What is finished stays."
                    )
                return
            tries[cell.id] = tries.get(cell.id, 0) + 1
            if stores.has_valid_result(self.folder, cell.id):  # it died between writing and saying so
                deliver(Outcome(cell.id, DONE))
            elif stopping:
                deliver(Outcome(cell.id, STOPPED))
            elif tries[cell.id] < TRIES:
                again.append(cell)
            else:
                message = f"its worker process died {TRIES} times, the last time {_manner(code)}"
                record = stores.failure_record(cell, message)
                deliver(keep(Outcome(cell.id, FAILED, message, error=record), self.folder))

        def heard(worker: _Process) -> None:
            nonlocal stopping, stillborn
            assert worker.popen.stdout is not None
            try:
                chunk = os.read(worker.popen.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                lost(worker)
                return
            *lines, worker.buffer = (worker.buffer + chunk).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "share" in message:
                    tell(message["cell"], message["share"])
                    continue
                worker.ready, stillborn = True, 0
                if "kind" in message:
                    worker.cell = None
                    outcome = Outcome(**message)
                    stopping = stopping or outcome.kind == NO_ROOM
                    deliver(outcome)
                hand_out(worker)

        def step(timeout: float) -> None:
            for key, _ in selector.select(timeout):
                heard(key.data)

        first = following()
        if first is None:
            return
        again.append(first)
        try:
            while True:
                busy = sum(worker.cell is not None for worker in workers)
                while not stopping and len(workers) < self.slots and (again or busy == len(workers)):
                    if not again:
                        more = next(cells, None)
                        if more is None:
                            break
                        again.append(more)
                    start()
                    busy += 1
                if not workers:
                    break
                step(WAIT_SECONDS)
        finally:
            stopping = True
            for worker in workers:
                _close(worker.popen.stdin)
            with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C: do not wait for states to be saved
                while workers:
                    step(WAIT_SECONDS)
            for worker in workers:
                worker.popen.kill()
                worker.popen.wait()
            selector.close()

    def _start(self) -> subprocess.Popen[bytes]:
        single = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        path = os.pathsep.join(entry for entry in sys.path if entry)
        return subprocess.Popen(
            [sys.executable, "-m", "aggbandit.experiments.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **single, "PYTHONPATH": path},
        )


def _close(pipe: Any) -> None:
    with contextlib.suppress(OSError):
        pipe.close()


def _manner(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    hint = "; perhaps memory ran out" if name == "SIGKILL" else ""
    return f"of {name}{hint}"


class DaskCluster(Executor):
    """Workers of a Dask cluster.  Where a worker sees the store's folder it writes there, else it sends the result."""

    def __init__(self, folder: Path, address: str, *, save_seconds: float = SAVE_SECONDS) -> None:
        super().__init__(folder, save_seconds=save_seconds)
        try:
            from distributed import Client
            from distributed.comm.addressing import resolve_address
        except ImportError:
            raise MissingExtraError("--dask needs the package distributed: pip install 'aggbandit[dask]'") from None
        self.address = address
        client: Any = Client  # its methods are not typed
        try:
            resolve_address(address)  # a client that cannot even begin would take 40 s to end
            self._client: Any = client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterLostError(
                f"there is no Dask scheduler at {address!r} ({error}). Start one with `dask scheduler`, and give the "
                "address that it prints, such as tcp://10.0.0.5:8786."
            ) from None
        self._slots = 0
        self._seen = self._counted = time.monotonic()
        self._check()

    def _check(self) -> None:
        with contextlib.suppress(TimeoutError):  # they may have been started just now
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        threads = self._client.nthreads()
        if not threads:
            self.close()
            raise ClusterLostError(
                f"the Dask scheduler at {self.address!r} has no workers. Start some: `dask worker {self.address}`."
            )
        self._slots = sum(threads.values())
        for worker, found in self._client.run(_version, on_error="return").items():
            if found != __version__:
                self.close()
                has = f"has aggbandit {found}" if isinstance(found, str) else f"cannot load aggbandit ({found})"
                raise ClusterLostError(
                    f"the worker {worker} of the cluster {has}, but here it is {__version__}. Install the same "
                    "everywhere."
                )

    @property
    def slots(self) -> int:
        return self._slots

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close(timeout=2)

    def run(self, cells: Iterator[Cell], deliver: Deliver, tell: Tell) -> None:
        probe = f".probe.{secrets.token_hex(6)}.tmp"  # tidied like any temporary file, if this process is killed
        self._probe_file = self.folder / stores.STATES / probe
        with stores.cannot_write(self._probe_file):
            self._probe_file.touch()
        self._client.subscribe_topic(probe, lambda event: tell(*event[1]))
        try:
            self._run(cells, deliver, probe)
        finally:
            self._probe_file.unlink(missing_ok=True)
            with contextlib.suppress(Exception):
                self.close()

    def _run(self, cells: Iterator[Cell], deliver: Deliver, probe: str) -> None:
        token = secrets.token_hex(4)  # a new run never takes up the scheduler's memory of an old one
        folder = str(self.folder.resolve())
        waiting: dict[str, tuple[Any, Cell]] = {}
        ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        kept: deque[Future[Outcome]] = deque()
        writers = ThreadPoolExecutor(WRITERS)
        stopping = False

        def submit_some() -> None:
            # enough in hand that no worker waits for us, few enough that little is lost with the scheduler
            while not stopping and len(waiting) < 4 * self._slots + 8:
                cell = next(cells, None)
                if cell is None:
                    return
                future = self._client.submit(
                    on_cluster, (cell.text, cell.instance, cell.adversary, cell.learner), folder, probe,
                    self.save_seconds, key=f"aggbandit-{cell.id}-{token}", pure=False,
                )  # fmt: skip
                waiting[future.key] = future, cell
                future.add_done_callback(ready.put)

        def collect(everything: bool = False) -> None:
            nonlocal stopping
            while kept and (everything or kept[0].done()):
                outcome = kept.popleft().result()
                stopping = stopping or outcome.kind == NO_ROOM
                deliver(outcome)

        try:
            submit_some()
            while waiting and not stopping:
                with contextlib.suppress(queue.Empty):
                    future = ready.get(timeout=WAIT_SECONDS)
                    _, cell = waiting.pop(future.key)
                    outcome = self._outcome(cell, future)
                    if outcome is None:
                        waiting[future.key] = future, cell
                        future.add_done_callback(ready.put)
                    else:
                        kept.append(writers.submit(keep, outcome, self.folder))
                    submit_some()
                self._still_there()
                collect()
        except (StorageError, ClusterLostError):
            raise
        except (OSError, TimeoutError, CancelledError, asyncio.CancelledError) as error:  # of its connections
            raise self._gone() from error
        finally:
            stopping = True
            if self._client.status == "running":
                with contextlib.suppress(Exception):
                    self._client.cancel([future for future, _ in waiting.values()])
            writers.shutdown()
            collect(everything=True)

    def _outcome(self, cell: Cell, future: Any) -> Outcome | None:
        """None where the worker died after it was through and before we had its word: another one plays the cell."""
        if future.status == "error":
            error = future.exception(timeout=CONNECT_SECONDS)
            if type(error).__name__ == "KilledWorker":
                error = f"its worker died {error.allowed_failures + 1} times; perhaps memory ran out"
            message = error if isinstance(error, str) else stores.in_words(error)
            return Outcome(cell.id, FAILED, message, error=stores.failure_record(cell, error))
        if future.status == "finished":
            with contextlib.suppress(TimeoutError):
                return Outcome(**future.result(timeout=CONNECT_SECONDS))
        if stores.has_valid_result(self.folder, cell.id):  # it had written it
            return Outcome(cell.id, DONE)
        if future.status == "cancelled" or self._client.status != "running":
            raise self._gone()
        return None

    def _still_there(self) -> None:
        now = time.monotonic()
        if self._client.status == "running":
            self._seen = now
            if now - self._counted > COUNT_SECONDS:  # workers come and go
                self._slots, self._counted = sum(self._client.nthreads().values()), now
                with contextlib.suppress(OSError):
                    self._probe_file.touch()  # lest it look like a left-over
        elif now - self._seen > LOST_SECONDS:
            raise self._gone()

    def _gone(self) -> ClusterLostError:
        return ClusterLostError(
            f"the Dask scheduler at {self.address!r} is gone. What is finished stays; start a scheduler and the same "
            "command continues."
        )


def _version() -> str:
    return __version__
