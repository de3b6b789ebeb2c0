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
    from aggbandit.cli.stored import asked_of
    from aggbandit.experiments.analysis import compared
    from aggbandit.experiments.store import Store

    found: list[Comparison] = []
    if arguments.folder is not None:
        cells = _by_learner(asked_of(Store.open(arguments.folder)))
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
        first, second = (_by_learner(asked_of(Store.open(name))) for name in (arguments.a, arguments.b))
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
    for a, b in dict.fromkeys((one.a, one.b) for one in found):
        same = [one for one in found if (one.a, one.b) == (a, b)]
        settings = [_setting(one) for one in same]
        varying = [name for name in settings[0] if len({setting[name] for setting in settings}) > 1]
        print(f"\nA  {a}\nB  {b}")
        print(numbers.simple(" · ".join(f"{k} {v}" for k, v in settings[0].items() if k not in varying and v)))
        numeric = ("regret A", "regret B", "A - B", "95 % interval", "A wins", "seeds", "pairs", "verdict")
        table = output.table(*varying, *numeric)
        for one, setting in zip(same, settings, strict=True):
            cells = (
                *(setting[name] for name in varying), numbers.plain(one.mean_a), numbers.plain(one.mean_b),
                numbers.plain(one.difference), f"{numbers.plain(one.low)} ... {numbers.plain(one.high)}",
                numbers.percent(one.wins), str(one.seeds), str(one.pairs), one.verdict,
            )  # fmt: skip
            output.add_row(table, *(numbers.simple(cell) for cell in cells))
        output.print_table(table)
    output.paragraph(
        "The interval is Student's t for the mean difference. Where seeds have their own instance or losses, a seed's "
        "mean is one observation, else every pair is. A wins: the share of pairs in which A's regret is smaller."
    )


def _setting(one: Comparison) -> dict[str, str]:
    """What the pairs have in common, in parts of which those that vary get a column."""
    cell, late = one.cell, one.cell.parameters["delays"]
    return {
        "instance": cell.instance,
        "losses": cell.adversary,
        "K": numbers.grouped(cell.episodes),
        "delay": numbers.grouped(late) if late else "",
    }
