"""`aggbandit show`: all there is to tell about one learner, instance or adversary."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from aggbandit._checks import require_known
from aggbandit.cli import explain, output

SEES = {
    "aggregate": "the total loss of each episode",
    "semi-bandit": "the loss of every step it took",
    "full": "the whole loss table of each episode",
}
TOLD = {"known": "the dynamics", "unknown": "nothing about the dynamics"}
STATED = {
    "adversarial": "losses chosen by an adversary",
    "stochastic": "losses drawn independently from one distribution",
    "both": "adversarial and stochastic losses",
}
UPDATES = {"closed form": "in closed form", "convex problem": "by solving a convex problem in every episode"}


def add_parser(commands: Any) -> None:
    """`show` and its options."""
    command = commands.add_parser(
        "show",
        help="explain a learner, instance or adversary and its arguments",
        formatter_class=output.HelpFormatter,
        description="Explains a learner, an instance or an adversary: what it is, its arguments with their defaults, "
        "and for a learner what it needs to see, its paper, where it departs from it, and its cost.",
    )
    command.add_argument(
        "id", metavar="ID", help="as `aggbandit list` names it, or module:Class for a learner of yours"
    )
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Print what the id stands for; all of it where a learner and an instance share it."""
    kinds = explain.everything()
    wanted: str = arguments.id
    found = [(kind, get(wanted)) for kind, (names, get) in kinds.items() if wanted in names()]
    if not found and ":" in wanted:
        found = [("learner", kinds["learner"][1](wanted))]
    if not found:
        require_known(
            "learner, instance or adversary", wanted, [name for names, _ in kinds.values() for name in names()]
        )
    for position, (kind, what) in enumerate(found):
        if position:
            print()
        _show(kind, wanted, what)
    return 0


def _show(kind: str, name: str, what: Any) -> None:
    told = explain.explained(what)
    print(f"{name}  ({kind})\n")
    output.paragraph(told.summary)
    if kind == "learner":
        _needs(what)
    for text in told.text:
        print()
        output.paragraph(text)
    if told.sections:
        print()
        table = output.table("", "", header=False)
        for section, text in told.sections:
            output.add_row(table, section, text)
        output.print_table(table)
    if told.arguments:
        print("\nArguments")
        table = output.table("name", "default", "meaning")
        for one in told.arguments:
            output.add_row(table, one.name, one.default, one.meaning)
        output.print_table(table)
    else:
        print("\nIt takes no arguments.")
    example = f"{name}:{told.arguments[0].name}=..." if told.arguments else name
    origin = inspect.unwrap(what)
    print(f"Use    aggbandit run --{kind} {example}")
    print(f"Code   {origin.__module__}:{origin.__qualname__}")


def _needs(kind: Any) -> None:
    from aggbandit.learners.base import Needs

    made = explain.configured(kind)
    needs: Any = getattr(made if made is not None else kind, "needs", None)
    if not isinstance(needs, Needs):  # depends on arguments that have no default
        return
    print()
    table = output.table("", "", header=False)
    for heading, meanings, what in (("Sees", SEES, "feedback"), ("Is told", TOLD, "dynamics")):
        first, *others = explain.choices(kind, what)
        choice = "".join(f"; with {what}={other}: {meanings[other]}" for other in others)
        output.add_row(table, heading, f"{meanings[first]} ({first} {what}){choice}")
    first, *others = explain.choices(kind, "losses")
    choice = "".join(f"; with losses={other}: {STATED[other]}" for other in others)
    output.add_row(table, "Made for", STATED[first] + choice)
    if needs.late_feedback:
        output.add_row(table, "Takes", "late feedback, in any order")
    if kind.update_by:
        output.add_row(table, "Updates", UPDATES[kind.update_by])
    if kind.reconstructed:
        output.add_row(table, "Note", "reconstructed without the paper's full text at hand")
    output.print_table(table)
