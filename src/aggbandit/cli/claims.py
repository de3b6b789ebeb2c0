"""`aggbandit claims`: put the paper's claims to the test on this machine."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggbandit import _files
from aggbandit._version import __version__
from aggbandit.cli import output
from aggbandit.errors import InvalidInputError
from aggbandit.reporting import numbers

if TYPE_CHECKING:
    from aggbandit.experiments.claims.base import Claim, Outcome


def add_parser(commands: Any) -> None:
    """`claims` and its options."""
    command = commands.add_parser(
        "claims",
        help="put the paper's claims to the test",
        formatter_class=output.HelpFormatter,
        description="Re-runs the paper's claims and prints what was measured, what was expected and the verdict; "
        "writes claims.html, each claim with its figure and what would show it false. A claim that does not hold is a "
        "result, not an error.",
    )
    command.add_argument("names", nargs="*", metavar="CLAIM", help="only these (default: all)")
    effort = command.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="under five minutes on two cores (the default)")
    effort.add_argument(
        "--full", action="store_true", help="larger K and more replicas: about an hour and a half on two cores"
    )
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: the claims whose K only a "
                         "GPU reaches (default: cpu)")  # fmt: skip
    command.add_argument("--list", action="store_true", help="name the claims and stop")
    command.add_argument("--out", type=Path, default=Path("results/claims"), metavar="DIR",
                         help="where claims.html goes (default: results/claims)")  # fmt: skip
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Test, print, write."""
    from aggbandit.experiments import claims

    chosen = [claims.get(name) for name in dict.fromkeys(arguments.names or claims.names(arguments.device))]
    if arguments.device == "cuda":
        here = [claim.id for claim in chosen if claim.id not in claims.ON_GPU]
        if here:
            raise InvalidInputError(
                f"claim {here[0]!r} is played on the CPU; --device cuda is for {', '.join(claims.ON_GPU)}. Leave "
                "--device out."
            )
    if arguments.list:
        chosen = [claims.get(name) for name in claims.MODULES]
        table = output.table("id", "claim")
        for claim in chosen:
            output.add_row(table, claim.id, claim.title)
        output.print_table(table)
        return 0
    from aggbandit.reporting.claims_page import claims_page

    began = time.perf_counter()
    effort = "full" if arguments.full else "quick"
    if arguments.full:
        told = numbers.duration(60.0 * sum(claim.minutes for claim in chosen))
        count = numbers.counted(len(chosen), "claim")
        print(f"about {told} for {count} on two cores; Ctrl-C keeps the claims that are through", file=sys.stderr)
    tested: list[tuple[Claim, Outcome, float]] = []
    try:
        for claim in chosen:
            before = time.perf_counter()
            outcome = claim.play(arguments.full, partial(_tell_of, claim.id))
            tested.append((claim, outcome, time.perf_counter() - before))
            _tell("")
            _print(*tested[-1])
    finally:  # also of a run that was stopped
        if tested:
            about = {"effort": effort, "seconds": f"{time.perf_counter() - began:.0f}", "version": __version__}
            arguments.out.mkdir(parents=True, exist_ok=True)
            target = arguments.out / "claims.html"
            _files.write_atomically(target, claims_page(tested, about).encode())
            _print_summary(tested)
            print(f"\n{target}  opens in any browser, offline")
    return 0


def _tell(text: str) -> None:
    """What is played now: one line that is rewritten on a terminal, a line each elsewhere."""
    if sys.stderr.isatty():
        print(f"\r{text:<78}\r", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _tell_of(claim: str, text: str) -> None:
    _tell(f"{claim}: {text}")


def _print(claim: Claim, outcome: Outcome, seconds: float) -> None:
    """One claim: what was measured and expected, the verdict, and the time for all of it."""
    from rich.text import Text

    from aggbandit.reporting.claims_page import MARKS

    table = output.table("", "measured", "expected", "verdict")
    table.title = Text(numbers.simple(f"{claim.title} · {numbers.duration(round(seconds, 1))}"), style="bold")
    table.title_justify = "left"
    for column, ratio in zip(table.columns[:3], (4, 4, 3), strict=True):
        column.no_wrap, column.ratio, column.overflow = False, ratio, "fold"
    table.columns[3].no_wrap = True
    table.expand = True
    for one in outcome.findings:
        mark = MARKS.get(one.verdict, "–")
        output.add_row(table, *(numbers.simple(cell) for cell in (one.what, one.measured, one.expected)),
                       f"{mark} {one.verdict}")  # fmt: skip
    output.print_table(table)
    print()


def _print_summary(tested: Sequence[tuple[Claim, Outcome, float]]) -> None:
    """All claims, a line each."""
    from aggbandit.experiments.claims.base import VERDICTS

    table = output.table("claim", *VERDICTS, "time")
    for claim, outcome, seconds in tested:
        counts = [sum(one.verdict == verdict for one in outcome.findings) for verdict in VERDICTS]
        cells = [str(count) if count else "–" for count in counts]
        output.add_row(table, claim.id, *cells, numbers.simple(numbers.duration(round(seconds, 1))))
    output.print_table(table)
