"""`aggbandit report`: draw the page and the figure again from what is stored; plays nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from aggbandit.cli import output
from aggbandit.errors import DamagedFileError

INCOMPLETE = 1


def add_parser(commands: Any) -> None:
    """`report` and its options."""
    command = commands.add_parser(
        "report",
        help="draw report.html and regret.pdf again from stored results",
        formatter_class=output.HelpFormatter,
        description="Reads the results in DIR, prints their table and writes report.html and regret.pdf there, "
        "without playing anything. DIR is what `aggbandit run --out DIR` wrote to, finished or not, or any folder "
        "with results saved by RunResult.save as NAME.result.",
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="folder of results")
    command.add_argument("--out", type=Path, metavar="DIR", help="write the files there instead")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Read, print, write; 1 where a file was damaged and left out."""
    from aggbandit.experiments.store import MARKER, Store

    if (arguments.folder / MARKER).exists():
        from aggbandit.cli import sweep

        target: Path = arguments.out or arguments.folder
        target.mkdir(parents=True, exist_ok=True)
        return sweep.draw(Store.open(arguments.folder), target)
    from aggbandit.experiments.first_look import stored
    from aggbandit.reporting.curves import Curves
    from aggbandit.simulation.result import RunResult

    plan, found = stored(arguments.folder)
    curves, damaged = [], []
    for label, path in found:
        try:
            result = RunResult.load(path)
        except DamagedFileError as error:
            damaged.append(f"Left out: {error}")
            print(f"aggbandit: {error}", file=sys.stderr)
            continue
        curves.append(Curves.of(result, setting="" if plan is None else plan.setting, label=label))
    if not curves:
        raise DamagedFileError(f"no result in {str(arguments.folder)!r} can be read.")
    missing = [] if plan is None else [label for label in plan.labels if label not in {one[0] for one in found}]
    warnings = damaged + ([f"Not finished: {', '.join(missing)}."] if missing else [])
    out: Path = arguments.out or arguments.folder
    out.mkdir(parents=True, exist_ok=True)
    output.present(plan, curves, out, warnings)
    return INCOMPLETE if damaged else 0
