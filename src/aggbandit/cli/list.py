"""`aggbandit list`: every learner, instance and adversary in one line each."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from aggbandit.cli import explain, output

KINDS = {"learners": "learner", "instances": "instance", "adversaries": "adversary"}


def add_parser(commands: Any) -> None:
    """`list` and its options."""
    command = commands.add_parser(
        "list",
        help="name the learners, instances and adversaries there are",
        formatter_class=output.HelpFormatter,
        description="Names every learner with what it sees (feedback), what it is told (dynamics) and for which losses "
        "its guarantee is stated; every instance; every adversary. `aggbandit show ID` tells more.",
    )
    command.add_argument("kind", nargs="?", choices=list(KINDS), help="only these (default: all)")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Print the tables."""
    kinds = [arguments.kind] if arguments.kind else list(KINDS)
    for position, plural in enumerate(kinds):
        names, get = explain.everything()[KINDS[plural]]
        if len(kinds) > 1:
            print(("\n" if position else "") + plural.capitalize())
        output.print_table(_learners(names(), get) if plural == "learners" else _others(names(), get))
    if "learners" in kinds:
        print("* reconstructed without the paper's full text at hand\n" if _any_reconstructed() else "", end="")
    print("Arguments and more: aggbandit show ID")
    return 0


def _any_reconstructed() -> bool:
    names, get = explain.everything()["learner"]
    return any(get(name).reconstructed for name in names())


def _learners(names: list[str], get: Callable[[str], Any]) -> Any:
    table = output.table("id", "feedback", "dynamics", "losses", "what it does")
    for name in names:
        kind = get(name)
        seen = [" or\n".join(explain.choices(kind, what)) or "–" for what in ("feedback", "dynamics", "losses")]
        output.add_row(table, name + ("*" if kind.reconstructed else ""), *seen, explain.summary(kind))
    return table


def _others(names: list[str], get: Callable[[str], Any]) -> Any:
    table = output.table("id", "what it is")
    for name in names:
        output.add_row(table, name, explain.summary(get(name)))
    return table
