"""`aggbandit compare A B`: two learners, or two folders, on the same seeds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggbandit._checks import require_known
from aggbandit.cli import output
from aggbandit.errors import InvalidInputError
from aggbandit.reporting import numbers

if TYPE_CHECKING:
    from aggbandit.experiments.analysis import Comparison
    from aggbandit.experiments.store import StoredCell

EPILOG = """\
examples:
  aggbandit compare po-known po-unknown --in results/sweeps/scaling
  aggbandit compare results/before results/after
"""


def add_parser(commands: Any) -> None:
    """`compare` and its options."""
    command = commands.add_parser(
        "compare",
        help="compare two learners, or two folders, on the same seeds",
        epilog=EPILOG,
        formatter_class=output.HelpFormatter,
        description="Compares final regrets pair by pair: the same instance, losses, episodes, seed and replica. With "
        "--in, A and B are two learners of that folder, as its tables name them. Otherwise they are folders, and every "
        "learner that both have is compared with itself, or the only learner of each with the other.",
    )
    command.add_argument("a", metavar="A", help="a learner or a folder")
    command.add_argument("b", metavar="B", help="another")
    command.add_argument("--in", dest="folder", type=Path, metavar="DIR", help="the folder, if A and B are learners")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Pair, compare, print."""
    from aggbandit.experiments.analysis import compared
    from aggbandit.experiments.store import Store

    found: list[Comparison] = []
    if arguments.folder is not None:
        cells = _by_learner(Store.open(arguments.folder).read_all())
        for name in (arguments.a, arguments.b):
            require_known(f"learner in {arguments.folder}", name, cells)
        found = compared(cells[arguments.a], cells[arguments.b], arguments.a, arguments.b)
    else:
        for name in (arguments.a, arguments.b):
            if not Path(name).is_dir():
                raise InvalidInputError(
                    f"{name!r} is no folder. Give two folders of results, or two learners and their folder: "
                    f"aggbandit compare {arguments.a} {arguments.b} --in DIR"
                )
        first, second = (_by_learner(Store.open(name).read_all()) for name in (arguments.a, arguments.b))
        pairs = [(name, name) for name in first if name in second]
        if not pairs and len(first) == len(second) == 1:
            pairs = [(next(iter(first)), next(iter(second)))]
        for a, b in pairs:
            found += compared(first[a], second[b], f"{arguments.a}: {a}", f"{arguments.b}: {b}")
    if not found:
        raise InvalidInputError(
            f"{arguments.a!r} and {arguments.b!r} have no cell in common: no pair with the same instance, losses, "
            "episodes and seed."
        )
    _print(found)
    return 0


def _by_learner(cells: Sequence[StoredCell]) -> dict[str, list[StoredCell]]:
    out: dict[str, list[StoredCell]] = {}
    for one in cells:
        out.setdefault(one.cell.learner, []).append(one)
    return out


def _print(found: Sequence[Comparison]) -> None:
    for pair in dict.fromkeys((one.a, one.b) for one in found):
        print(f"\nA  {pair[0]}\nB  {pair[1]}")
        table = output.table("regret A", "regret B", "A - B", "95 % interval", "A wins", "seeds", "verdict", "setting")
        for one in found:
            if (one.a, one.b) != pair:
                continue
            cells = (
                numbers.plain(one.mean_a), numbers.plain(one.mean_b), numbers.plain(one.difference),
                f"{numbers.plain(one.low)} ... {numbers.plain(one.high)}", numbers.percent(one.wins), str(one.seeds),
                one.verdict, one.setting,
            )  # fmt: skip
            output.add_row(table, *(numbers.simple(cell) for cell in cells))
        output.print_table(table)
    print("The interval is a bootstrap over pairs (over seeds first, where there are several).")
