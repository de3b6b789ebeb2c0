"""Playing a spec into a store: what is missing is played, what is there is not."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from aggbandit.errors import InvalidInputError, StorageError
from aggbandit.experiments.cells import Cell
from aggbandit.experiments.executors import Executor
from aggbandit.experiments.spec import Spec
from aggbandit.experiments.store import Damage, Store
from aggbandit.experiments.task import DONE, FAILED, NO_ROOM, STOPPED, Outcome, Tell

LOOK_SECONDS = 5.0  # how old our picture of the folder may be before a cell is handed out


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count` of a spec: every count-th cell, so that parts are alike."""

    index: int = 1  # from 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`i/n`.

        >>> Shard.parse("2/8")
        Shard(index=2, count=8)
        """
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InvalidInputError(f"--shard must be i/n with 1 <= i <= n, such as 2/8, but is {text!r}.")
        return cls(int(found[1]), int(found[2]))

    def of(self, spec: Spec) -> list[Cell]:
        """Its cells."""
        return list(spec.cells[self.index - 1 :: self.count])


@dataclass
class Work:
    """What there is to do, and afterwards what was done."""

    cells: list[Cell]  # of this shard
    todo: list[Cell]
    there: int  # cells that have a result already
    damage: list[Damage] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # cell: error, of this run and, unless retried, earlier ones
    done: int = 0  # in this run
    stopped: int = 0

    @property
    def missing(self) -> int:
        """Cells without a result."""
        return len(self.cells) - self.there - self.done


def planned(
    spec: Spec, store: Store | None, *, shard: Shard | None = None, retry: bool = False, repair: bool = False
) -> Work:
    """What is to be played: cells without a result, but those that failed only on `retry`.

    `repair` reads every file that is there; cells of which none is valid are played again.
    """
    cells = (shard or Shard()).of(spec)
    if store is None:
        return Work(cells, cells, 0)
    damage = store.damage([cell.id for cell in cells if store.has(cell.id)]) if repair else []
    lost = {one.cell for one in damage if not one.replaced}
    failed = set(store.failed)
    todo, earlier = [], {}
    there = 0
    for cell in cells:
        if store.has(cell.id) and cell.id not in lost:
            there += 1
        elif cell.id in failed and not retry and cell.id not in lost:
            earlier[cell.id] = "failed earlier; --retry plays it again"
        else:
            todo.append(cell)
    return Work(cells, todo, there, damage, earlier)


def play(
    work: Work,
    store: Store,
    executor: Executor,
    *,
    deliver: Callable[[Outcome], None] | None = None,
    tell: Tell | None = None,
) -> Work:
    """Play what is to be played.  On KeyboardInterrupt `work` says how far it came.

    Another process may be at work in the same folder: a cell that has a result by the time it would be handed out is
    not played.
    """
    lost = {one.cell for one in work.damage if not one.replaced}
    done: set[str] = set()
    trouble: list[str] = []

    def cells() -> Iterator[Cell]:
        for cell in work.todo:
            store.refresh(older_than=LOOK_SECONDS)
            if store.has(cell.id) and cell.id not in lost:
                got(Outcome(cell.id, DONE))
            else:
                yield cell

    lock = threading.Lock()  # cells are drawn in whatever thread has room for one

    def got(outcome: Outcome) -> None:
        with lock:
            note(outcome)
            if deliver is not None:
                deliver(outcome)

    def note(outcome: Outcome) -> None:
        if outcome.kind == DONE:
            work.done += 1
            done.add(outcome.cell)
            store.note(outcome.cell, finished=True)
        elif outcome.kind == FAILED:
            work.failed[outcome.cell] = outcome.message
        elif outcome.kind == STOPPED:
            work.stopped += 1
        elif outcome.kind == NO_ROOM:
            trouble.append(outcome.message)

    try:
        executor.run(cells(), got, tell or (lambda cell, share: None))
    finally:
        store.refresh()
    if trouble:
        raise StorageError(trouble[0])
    store.remove(one.file for one in work.damage if one.replaced or one.cell in done)
    store.tidy()
    return work
