"""`aggbandit run SPEC`: many cells into a store, and how it goes meanwhile."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggbandit._checks import require_integer, require_number
from aggbandit.cli import output
from aggbandit.errors import DamagedFileError, InvalidInputError, StorageError
from aggbandit.reporting import numbers

if TYPE_CHECKING:
    from aggbandit.experiments.executors import Executor
    from aggbandit.experiments.spec import Spec
    from aggbandit.experiments.store import Store
    from aggbandit.experiments.sweep import Work
    from aggbandit.experiments.task import Outcome

FAILED = 1
STOPPED = 130
TERMINATED = 143  # what a shell reports for SIGTERM
QUIET_SECONDS = 10.0  # between two lines where there is no terminal; later a twentieth of the time so far
LONGEST_QUIET_SECONDS = 300.0
NOT_WITH_SPEC = ("learner", "instance", "adversary", "episodes", "replicas", "seed")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `run` takes with a spec."""
    command.add_argument("spec", nargs="?", metavar="SPEC", help="a TOML file, or the name of a built-in spec; "
                         "then the options above that say what to play are not taken")  # fmt: skip
    options = command.add_argument_group("with a SPEC")
    options.add_argument("--dry-run", action="store_true", help="print the cells with the time and memory that they "
                         "will take, and play nothing")  # fmt: skip
    options.add_argument("--workers", type=int, metavar="N", help="play in N processes instead of threads")
    options.add_argument("--dask", metavar="ADDRESS", help="play on a Dask cluster, such as tcp://10.0.0.5:8786")
    options.add_argument("--shard", metavar="I/N", help="play part I of N only, for job arrays; all parts may write "
                         "to one folder")  # fmt: skip
    options.add_argument("--retry", action="store_true", help="play cells again that failed earlier")
    options.add_argument("--repair", action="store_true", help="read every result that is there, and play those again "
                         "whose file is damaged")  # fmt: skip
    options.add_argument("--add", action="store_true", help="let the folder hold this spec's results beside another's")
    options.add_argument("--no-report", action="store_true", help="print and draw nothing at the end; `aggbandit "
                         "report DIR` does it at any time")  # fmt: skip
    options.add_argument("--save-every", type=float, default=60.0, metavar="S", help="seconds between two saved states "
                         "of a long cell (default: 60)")  # fmt: skip


def execute(arguments: argparse.Namespace) -> int:
    """Play the spec."""
    from aggbandit.experiments.spec import WHERE, Spec
    from aggbandit.experiments.store import Store
    from aggbandit.experiments.sweep import Shard, planned, play
    from aggbandit.simulation.engines.places import Places

    _check_options(arguments)
    spec = Spec.load(arguments.spec)
    if arguments.device != "cpu" or arguments.dtype != "float64":
        if arguments.device not in WHERE["device"]:
            raise InvalidInputError(
                f"--device must be cpu or cuda with a SPEC, but is {arguments.device!r}; which GPU a process sees is "
                "set outside, with CUDA_VISIBLE_DEVICES."
            )
        spec = spec.on(arguments.device, arguments.dtype)
    shard = Shard.parse(arguments.shard) if arguments.shard else Shard()
    out: Path = arguments.out or Path("results/sweeps") / spec.name
    if arguments.dry_run:
        store = Store.open(out) if (out / "aggbandit-store.json").exists() else None
        at_once = arguments.workers or arguments.threads
        in_threads = arguments.workers is None and arguments.dask is None
        return _dry_run(spec, planned(spec, store, shard=shard, retry=arguments.retry), out, at_once, in_threads)
    if arguments.dask is None:  # before anything is written
        for device, dtype in {(cell.device, cell.dtype) for cell in spec.cells}:
            Places.parse(device, dtype)
    store = Store.create(out)
    said = store.keep_spec(spec, add=arguments.add)
    watch = Watch(spec)
    with watch:
        if said:
            watch.say(said)
        if arguments.repair:
            watch.say(f"reading {numbers.counted(len(store), 'result')}")
        work = planned(spec, store, shard=shard, retry=arguments.retry, repair=arguments.repair)
        for one in work.damage:
            watch.say(f"damaged: {one.message}" if not one.replaced else f"damaged, but there is another: {one.file}")
        executor = _executor(arguments, store, len(work.todo))
        watch.begin(work, store, executor.slots)
        trouble: KeyboardInterrupt | StorageError | InvalidInputError | None = None
        try:
            with terminated_as_by_ctrl_c():
                play(work, store, executor, deliver=watch.delivered, tell=watch.tell)
        except (KeyboardInterrupt, StorageError, InvalidInputError) as error:
            trouble = error
    return _finish(work, store, out, trouble, report=shard.count == 1 and not arguments.no_report)


class Terminated(KeyboardInterrupt):
    """SIGTERM: job schedulers send it some seconds before they kill."""


@contextlib.contextmanager
def terminated_as_by_ctrl_c() -> Iterator[None]:
    """Within, SIGTERM stops the sweep as Ctrl-C does, so that the states of long cells are saved."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _check_options(arguments: argparse.Namespace) -> None:
    """Before anything is made."""
    if arguments.workers is not None and arguments.dask is not None:
        raise InvalidInputError("--workers and --dask are two ways to play; give one of them.")
    if arguments.workers is not None and arguments.threads is not None:
        raise InvalidInputError("--threads belongs to threads, --workers to processes of one thread; give one of them.")
    for name in ("workers", "threads"):
        if (count := getattr(arguments, name)) is not None:
            require_integer(f"--{name}", count, low=1)
    require_number("--save-every", arguments.save_every, low=0.0)


def _executor(arguments: argparse.Namespace, store: Store, count: int) -> Executor:
    from aggbandit.experiments.executors import DaskCluster, Processes, Threads

    every = arguments.save_every
    if arguments.dask is not None:
        import logging

        with contextlib.suppress(ImportError):
            import distributed  # noqa: F401  it sets the levels that are changed here
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is told in one line of ours
        return DaskCluster(store.folder, arguments.dask, save_seconds=every)
    if arguments.workers is not None:
        return Processes(store.folder, arguments.workers, save_seconds=every)
    return Threads(store.folder, count, threads=arguments.threads, save_seconds=every)


def _finish(work: Work, store: Store, out: Path, trouble: BaseException | None, *, report: bool) -> int:
    """The last words and the exit code."""
    names = {cell.id: cell.name for cell in work.cells}
    shown = list(work.failed.items())[:10]
    for cell, message in shown:
        print(f"failed: {names[cell]}: {message}", file=sys.stderr)
    if len(work.failed) > len(shown):
        print(f"and {len(work.failed) - len(shown)} more; `aggbandit status {out}` lists them", file=sys.stderr)
    counts = f"{numbers.grouped(work.there + work.done)} of {numbers.counted(len(work.cells), 'cell')} finished"
    kept = f"{numbers.simple(counts)}, kept in {out}"
    if isinstance(trouble, KeyboardInterrupt):
        print(f"aggbandit: stopped; {kept}. The same command continues.", file=sys.stderr)
        return TERMINATED if isinstance(trouble, Terminated) else STOPPED
    if trouble is not None:
        print(f"aggbandit: {trouble}\naggbandit: {kept}.", file=sys.stderr)
        return 2
    if report and len(store):
        draw(store, out)
    else:
        print(kept)
    return FAILED if work.missing else 0


def draw(store: Store, out: Path) -> int:
    """The tables, `report.html` and `regret.pdf` of what is there; 1 where a file was damaged and left out."""
    from aggbandit.cli.stored import report_of
    from aggbandit.experiments.store import cannot_write

    curves, warnings = report_of(store)
    if not curves and store.finished:
        raise DamagedFileError(f"no result in {str(store.folder)!r} can be read. {' '.join(warnings)}")
    if not curves:
        raise InvalidInputError(f"there is nothing to report yet in {str(store.folder)!r}. {' '.join(warnings)}")
    specs = store.specs()
    title = specs[0].description if len(specs) == 1 else ""
    with cannot_write(out):
        output.present(None, curves, out, warnings, title=title, specs=[spec.name for spec in specs])
    return 1 if any(text.startswith("Left out") for text in warnings) else 0


def _dry_run(spec: Spec, work: Work, out: Path, at_once: int | None, in_threads: bool) -> int:
    """The cells with the time and memory that each will take, and what that makes for all."""
    from aggbandit.experiments.executors import available_cores
    from aggbandit.experiments.forecast import expected

    with Trials() as watch:
        told, process = expected(work.todo, watch.next)
    rows = [("cell", "learner", "instance", "losses", "K", "replicas", "seed", "time", "memory")]
    for cell in work.cells:
        one = told.get(cell.id)
        state = "failed" if cell.id in work.failed else "there"
        rows.append(
            (
                cell.id[:12], cell.learner, cell.instance, cell.adversary, numbers.grouped(cell.episodes),
                numbers.grouped(cell.replicas), str(cell.seed), numbers.duration(one.seconds) if one else state,
                _bytes(one.bytes) if one else "",
            )
        )  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:  # never folded: a line is a cell, whatever the width
        print(numbers.simple("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()))
    print()
    mine = {cell.id for cell in work.cells}
    for group in spec.groups if len(spec.groups) > 1 else ():
        cells = [cell.id for cell in group.cells if cell.id in mine]
        seconds = sum(told[cell].seconds for cell in cells if cell in told)
        print(numbers.simple(f"{group.name}: {numbers.counted(len(cells), 'cell')}, {_about(seconds)} on one core"))
    count = at_once or available_cores()
    total = sum(one.seconds for one in told.values())
    longest = max((one.seconds for one in told.values()), default=0.0)
    largest = sorted((one.bytes for one in told.values()), reverse=True)[:count]
    lines = [
        f"{numbers.counted(len(work.cells), 'cell')}, {numbers.grouped(len(told))} to play: {_about(total)} on one "
        f"core, {_about(max(total / count, longest))} with {count} at once; starting, some seconds, comes on top.",
        f"Memory: {_bytes(process + sum(largest))} with {count} at once in threads, of which a process takes "
        f"{_bytes(process)} before any cell.",
        f"Results would go to {out}.",
    ]
    in_python = sum(one.seconds for one in told.values() if one.in_python)
    if in_threads and in_python > max(total / count, longest):
        lines.insert(1, f"In threads up to {_about(in_python)}: learners without a compiled engine wait for one "
                     "another there, but not in processes (--workers).")  # fmt: skip
    print(numbers.simple("\n".join(lines if told else [lines[0].partition(":")[0] + ".", lines[-1]])))
    return 0


class Trials(output.Watch):
    """What a dry run tries: a bar on a terminal, a line now and then elsewhere."""

    def next(self, done: int, kinds: int, learner: str) -> None:
        """So many kinds of cells have been tried, and this is the next."""
        if not done:
            self.say(f"trying {numbers.counted(kinds, 'kind')} of cells, each for a moment")
        if self._bars is not None:
            if self._task is None:
                self._task = self._bars.add_task("trials", total=kinds, told="")
            self._bars.update(self._task, completed=done, told=numbers.simple(learner))
            return
        now = time.monotonic()
        if not done:
            self._next = now + QUIET_SECONDS
        elif now >= self._next:
            self._next = now + QUIET_SECONDS
            self.say(f"{numbers.grouped(done)} of {numbers.counted(kinds, 'kind')} tried; next {learner}")


def _about(seconds: float) -> str:
    return f"about {numbers.duration(seconds)}" if isfinite(seconds) else "for an unknown time"


def _bytes(count: float) -> str:
    """`34.5 KiB`, `165 MiB`, `2.3 GiB`."""
    if not isfinite(count):
        return "–"
    power = 1 if count < 2**20 else 2 if count < 2**30 else 3
    return f"{numbers.plain(count / 2 ** (10 * power), 3)} {'?KMG'[power]}iB"


@dataclass(eq=False)
class _Group:
    """How far a group is."""

    total: int = 0
    done: int = 0
    failed: int = 0
    shares: dict[str, float] = field(default_factory=dict)  # of the cells that are being played
    played: float = 0.0  # in this run: cells and shares of cells
    began: float = 0.0  # 0: not yet
    task: Any = None  # its bar

    @property
    def under_way(self) -> float:
        """Of the cells that are being played, what is done of them; summed anew, since rounding would stay for good."""
        return sum(self.shares.values())

    @property
    def counts(self) -> str:
        """`3 of 8 cells`, and what failed."""
        failed = f", {numbers.grouped(self.failed)} failed" if self.failed else ""
        return f"{numbers.grouped(self.done)} of {numbers.counted(self.total, 'cell')}{failed}"

    def pace(self, now: float) -> str:
        """Rate and time left, once they can be told: not from less than a tenth of a cell."""
        seconds, left = now - self.began, self.total - self.done - self.failed - self.under_way
        if self.played < 0.1 or seconds <= 0 or left <= 0:
            return ""
        rate = self.played / seconds
        each = f"{numbers.plain(rate, 2)} cells/s" if rate >= 1 else f"{numbers.duration(1 / rate)} a cell"
        return numbers.simple(f"{each}, {numbers.duration(max(1, round(left / rate)))} left")


class Watch(output.Watch):
    """Progress with rate and time left, by group: bars on a terminal, a line now and then elsewhere."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self._spec = spec
        self._groups = {group.name: _Group() for group in spec.groups}
        self._groups_of: dict[str, list[_Group]] = {}  # cell: those it counts for
        self._shares: dict[str, float] = {}  # of the cells that are being played
        self._through: set[str] = set()
        self._lock = threading.Lock()  # threads that play tell for themselves
        self._began = self._heard = self._next_line = 0.0

    def begin(self, work: Work, store: Store, slots: int) -> None:
        """What there is to do, said once."""
        mine = {cell.id for cell in work.cells}
        waiting = {cell.id for cell in work.todo}
        for group in self._spec.groups:
            told = self._groups[group.name]
            for cell in group.cells:
                if cell.id in mine:
                    self._groups_of.setdefault(cell.id, []).append(told)
                    told.total += 1
                    told.failed += cell.id in work.failed
                    told.done += cell.id not in waiting and cell.id not in work.failed
        there = f", {numbers.grouped(work.there)} of them there already" if work.there else ""
        self.say(
            f"{self._spec.name}: {numbers.counted(len(work.cells), 'cell')}{there}; "
            f"{numbers.grouped(len(work.todo))} to play, {slots} at a time"
        )
        self._began = self._heard = time.monotonic()
        self._next_line = self._began + QUIET_SECONDS
        if self._bars is not None:
            for name, told in self._groups.items():
                told.task = self._bars.add_task(name, total=told.total, completed=told.done, told="")

    def tell(self, cell: str, share: float) -> None:
        """A cell is under way.  Word of it may come later than its outcome, from another machine."""
        with self._lock:
            if cell in self._through:
                return
            resumed = cell not in self._shares and share < 1.0  # what was played earlier is not of this run
            more = share - self._shares.get(cell, 0.0)
            for group in self._groups_of.get(cell, ()):
                group.shares[cell] = share
                group.played += 0.0 if resumed else more
            self._shares[cell] = share
            self._show(cell)

    def delivered(self, outcome: Outcome) -> None:
        """A cell is through, in whatever way."""
        with self._lock:
            self._through.add(outcome.cell)
            share = self._shares.pop(outcome.cell, 0.0)
            for group in self._groups_of.get(outcome.cell, ()):
                group.shares.pop(outcome.cell, None)
                if outcome.kind == "done":
                    group.done += 1
                    group.played += 1.0 - share
                elif outcome.kind == "failed":
                    group.failed += 1
            if outcome.kind == "failed":
                self.say(f"failed: {outcome.cell[:12]}: {outcome.message}")
            self._show(outcome.cell)

    def _show(self, cell: str) -> None:
        now = time.monotonic()
        for group in self._groups_of.get(cell, ()):
            group.began = group.began or self._heard  # it began when the cell before it ended, at the latest
            if self._bars is not None:
                self._bars.update(group.task, completed=group.done + group.under_way, told=group.pace(now))
        self._heard = now
        if self._bars is None and now >= self._next_line:
            self._next_line = now + min(LONGEST_QUIET_SECONDS, max(QUIET_SECONDS, (now - self._began) / 20))
            for name, group in self._groups.items():
                if group.began and group.done + group.failed < group.total:
                    told = group.pace(now)
                    self.say(f"{name}: {group.counts}{', ' if told else ''}{told}")
