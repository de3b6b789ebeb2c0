"""`aggbandit run SPEC`: many cells into a store, and how it goes meanwhile."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
QUIET_SECONDS = 10.0
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
    from aggbandit.experiments.spec import Spec
    from aggbandit.experiments.store import Store
    from aggbandit.experiments.sweep import Shard, planned, play

    _only_one(arguments)
    spec = Spec.load(arguments.spec)
    shard = Shard.parse(arguments.shard) if arguments.shard else Shard()
    out: Path = arguments.out or Path("results/sweeps") / spec.name
    if arguments.dry_run:
        store = Store.open(out) if (out / "aggbandit-store.json").exists() else None
        return _dry_run(spec, planned(spec, store, shard=shard, retry=arguments.retry), out)
    store = Store.create(out)
    said = store.keep_spec(spec, add=arguments.add)
    watch = Watch(spec)
    with watch:
        if said:
            watch.say(said)
        if arguments.repair:
            watch.say(f"reading {len(store)} results")
        work = planned(spec, store, shard=shard, retry=arguments.retry, repair=arguments.repair)
        for one in work.damage:
            watch.say(f"damaged: {one.message}" if not one.replaced else f"damaged, but there is another: {one.file}")
        executor = _executor(arguments, store, len(work.todo))
        watch.begin(work, store, executor.slots)
        trouble: KeyboardInterrupt | StorageError | InvalidInputError | None = None
        try:
            play(work, store, executor, deliver=watch.delivered, tell=watch.tell)
        except (KeyboardInterrupt, StorageError, InvalidInputError) as error:
            trouble = error
    return _finish(work, store, out, trouble, report=shard.count == 1 and not arguments.no_report)


def _only_one(arguments: argparse.Namespace) -> None:
    if arguments.workers is not None and arguments.dask is not None:
        raise InvalidInputError("--workers and --dask are two ways to play; give one of them.")
    if arguments.workers is not None and arguments.threads is not None:
        raise InvalidInputError("--threads belongs to threads, --workers to processes of one thread; give one of them.")


def _executor(arguments: argparse.Namespace, store: Store, count: int) -> Executor:
    from aggbandit.experiments.executors import DaskCluster, Processes, Threads

    every = arguments.save_every
    if arguments.dask is not None:
        import logging

        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told in one line of ours
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
    kept = f"{work.there + work.done} of {len(work.cells)} cells are finished and kept in {out}"
    if isinstance(trouble, KeyboardInterrupt):
        print(f"aggbandit: stopped; {kept}. The same command continues.", file=sys.stderr)
        return STOPPED
    if trouble is not None:
        print(f"aggbandit: {trouble}\naggbandit: {kept}.", file=sys.stderr)
        return 2
    if report and len(store):
        draw(store, out)
    else:
        print(kept)
    return FAILED if work.failed else 0


def draw(store: Store, out: Path) -> int:
    """The tables, `report.html` and `regret.pdf` of what is there; 1 where a file was damaged and left out."""
    from aggbandit.cli.stored import report_of

    curves, warnings = report_of(store)
    if not curves:
        raise DamagedFileError(f"no result in {str(store.folder)!r} can be read. {' '.join(warnings)}")
    output.present(None, curves, out, warnings)
    return 1 if any(text.startswith("Left out") for text in warnings) else 0


def _dry_run(spec: Spec, work: Work, out: Path) -> int:
    from aggbandit.experiments.executors import available_cores
    from aggbandit.experiments.forecast import expected

    todo = {cell.id for cell in work.todo}
    told = expected(work.todo)
    rows = [("cell", "learner", "instance", "losses", "K", "replicas", "seed", "time", "memory")]
    for cell in work.cells:
        one = told.get(cell.id)
        state = "failed" if cell.id in work.failed else "there"
        rows.append(
            (
                cell.id[:12], cell.learner, cell.instance, cell.adversary, numbers.grouped(cell.episodes),
                str(cell.replicas), str(cell.seed), numbers.duration(one.seconds) if one else state,
                f"{numbers.plain(one.bytes / 2**20, 3)} MiB" if one else "",
            )
        )  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:  # never folded: a line is a cell, whatever the width
        print(numbers.simple("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()))
    cores = available_cores()
    total = sum(one.seconds for one in told.values())
    longest = max((one.seconds for one in told.values()), default=0.0)
    print()
    for group in spec.groups:
        mine = [told[cell.id].seconds for cell in group.cells if cell.id in told]
        if len(spec.groups) > 1:
            print(numbers.simple(f"{group.name}: {len(group.cells)} cells, {numbers.duration(sum(mine))} on one core"))
    print(
        numbers.simple(
            f"{len(work.cells)} cells, {len(todo)} to play: about {numbers.duration(max(total / cores, longest))} on "
            f"the {cores} cores here, {numbers.duration(total)} on one. Results would go to {out}."
        )
    )
    return 0


class Watch(output.Watch):
    """Progress with rate and time left, by group: bars on a terminal, a line now and then elsewhere."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self._spec = spec
        self._groups: dict[str, list[str]] = {}  # cell: the groups it counts for
        self._total: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._new: dict[str, int] = {}  # finished in this run
        self._failed = 0
        self._shares: dict[str, float] = {}
        self._tasks: dict[str, Any] = {}
        self._began = time.monotonic()
        self._next_line = 0.0

    def begin(self, work: Work, store: Store, slots: int) -> None:
        """What there is to do, said once."""
        mine = {cell.id for cell in work.cells}
        for group in self._spec.groups:
            cells = [cell.id for cell in group.cells if cell.id in mine]
            for cell in cells:
                self._groups.setdefault(cell, []).append(group.name)
            self._total[group.name] = len(cells)
            self._done[group.name] = 0
            self._new[group.name] = 0
        waiting = {cell.id for cell in work.todo} | set(work.failed)
        for cell in mine - waiting:
            for name in self._groups[cell]:
                self._done[name] += 1
        there = f", {work.there} are there already" if work.there else ""
        self.say(f"{self._spec.name}: {len(work.cells)} cells{there}; {len(work.todo)} to play, {slots} at a time")
        self._began = time.monotonic()
        self._next_line = self._began + QUIET_SECONDS
        if self._bars is not None:
            for name, total in self._total.items():
                self._tasks[name] = self._bars.add_task(name, total=total, completed=self._done[name], told="")

    def tell(self, cell: str, share: float) -> None:
        """A cell is under way."""
        self._shares[cell] = share
        self._show()

    def delivered(self, outcome: Outcome) -> None:
        """A cell is through, in whatever way."""
        self._shares.pop(outcome.cell, None)
        if outcome.kind == "done":
            for group in self._groups.get(outcome.cell, ()):
                self._done[group] += 1
                self._new[group] += 1
        elif outcome.kind == "failed":
            self._failed += 1
            self.say(f"failed: {outcome.cell[:12]}: {outcome.message}")
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if self._bars is None and now < self._next_line:
            return
        self._next_line = now + QUIET_SECONDS
        parts: dict[str, float] = dict.fromkeys(self._total, 0.0)
        for cell, share in list(self._shares.items()):
            for group in self._groups.get(cell, ()):
                parts[group] += share
        for name, total in self._total.items():
            played = self._new[name] + parts[name]
            told = self._pace(played, total - self._done[name] - parts[name], now - self._began)
            if self._bars is not None:
                self._bars.update(self._tasks[name], completed=self._done[name] + parts[name], told=told)
            elif self._done[name] < total:
                self.say(f"{name}: {self._done[name]} of {total} cells{', ' if told else ''}{told}")

    @staticmethod
    def _pace(played: float, left: float, seconds: float) -> str:
        if played < 0.1 or seconds <= 0 or left <= 0:  # from less, no pace can be told
            return ""
        rate = played / seconds
        each = f"{numbers.plain(rate, 2)} cells/s" if rate >= 1 else f"{numbers.duration(1 / rate)} a cell"
        return numbers.simple(f"{each}, {numbers.duration(max(1, round(left / rate)))} left")
