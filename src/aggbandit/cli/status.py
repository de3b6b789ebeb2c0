"""`aggbandit status`: how far a sweep is, asked from another shell; changes nothing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggbandit.cli import output
from aggbandit.reporting import numbers

if TYPE_CHECKING:
    from aggbandit.experiments.store import Store

INCOMPLETE = 1
RECENT_SECONDS = 600.0  # the rate is that of this long, or of the whole sweep if it is younger
SHOWN = 20


def add_parser(commands: Any) -> None:
    """`status` and its options."""
    command = commands.add_parser(
        "status",
        help="how far a sweep is, what failed, what is damaged",
        formatter_class=output.HelpFormatter,
        description="Tells how many cells of each group are finished, failed or missing in DIR, how fast results "
        "come in, and why cells failed. It only reads, and may be asked while the sweep runs, here or elsewhere. The "
        "exit code is 0 when every cell has a result, 1 otherwise.",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="what `aggbandit run SPEC --out DIR` writes to")
    command.add_argument("--check", action="store_true", help="read every result and name those that are damaged")
    command.add_argument("--tracebacks", action="store_true", help="print what failed cells raised, in full")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Print the counts and the failures."""
    from aggbandit.experiments.store import Store

    store = Store.open(arguments.folder)
    complete = _counts(store)
    _pace(store)
    failures = store.failures()
    for one in failures[: None if arguments.tracebacks else SHOWN]:
        print(f"\nfailed {one.when}: {one.name}\n  {one.error}  ({one.file})")
        if arguments.tracebacks and one.traceback:
            print(one.traceback.rstrip())
    if len(failures) > SHOWN and not arguments.tracebacks:
        print(f"and {len(failures) - SHOWN} more; --tracebacks prints all")
    damage = store.damage() if arguments.check else []
    for file in damage:
        print(f"\ndamaged: {file.message}" + (" Another file has the same cell." if file.replaced else ""))
    if arguments.check:
        print(f"\n{numbers.counted(len(store), 'cell')} read, {numbers.counted(len(damage), 'damaged file')}")
    return 0 if complete and not failures and not damage else INCOMPLETE


def _counts(store: Store) -> bool:
    """The table of groups; whether nothing is missing."""
    failed = set(store.failed)
    table = output.table("spec", "group", "finished", "failed", "missing")
    missing = 0
    known: set[str] = set()
    for spec in store.specs():
        for group, cells in spec.groups.items():
            known.update(cells)
            done = sum(store.has(cell) for cell in cells)
            bad = sum(cell in failed for cell in cells)
            missing += len(cells) - done - bad
            shown = [
                numbers.simple(numbers.grouped(count)) for count in (done, len(cells), bad, len(cells) - done - bad)
            ]
            output.add_row(table, spec.name, group, f"{shown[0]} of {shown[1]}", *shown[2:])
    output.print_table(table)
    rest = len(store) - len(known & set(store.finished))
    if rest:
        print(f"{numbers.counted(rest, 'cell')} more that no spec asks for now")
    states = store.under_way()
    if states:
        print(f"{numbers.counted(len(states), 'unfinished cell')} with a saved state")
    return missing == 0


def _written(paths: Sequence[Path]) -> float:
    """When, by the file's own clock; long ago where it has just gone, replaced by another process."""
    try:
        return max((path.stat().st_mtime for path in paths), default=0.0)
    except FileNotFoundError:
        return 0.0


def _pace(store: Store) -> None:
    times = sorted(_written(store.files(cell)[:1]) for cell in store.finished)
    if not times:
        return
    now = time.time()
    ago = now - times[-1]
    recent = sum(t > now - RECENT_SECONDS for t in times)
    text = f"last result {numbers.duration(max(1, round(ago)))} ago"
    if recent > 1:
        span = min(RECENT_SECONDS, now - times[0])
        text += f"; {numbers.grouped(recent)} in the last {numbers.duration(max(1, round(span)))}"
    print(numbers.simple(text))
