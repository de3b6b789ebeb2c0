"""`aggbandit run`: play learners against the same losses, print a table, write a page and a figure."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from math import nan
from pathlib import Path
from typing import Any

from aggbandit.cli import output, sweep
from aggbandit.errors import InvalidInputError
from aggbandit.experiments.first_look import FIRST_LOOK, Plan, begun, play, set_aside
from aggbandit.experiments.named import Named

STOPPED = 130
EPILOG = """\
examples:
  aggbandit run
  aggbandit run --learner po-known --learner po-known:step_size=main --episodes 1e5
  aggbandit run --instance random:states=5,horizon=4 --adversary switching:blocks=3
  aggbandit run --learner mine.learners:Greedy --replicas 8
  aggbandit run scaling --dry-run
  aggbandit run study.toml --out results/study --workers 8

A learner, instance or adversary is written id:argument=value,...; `aggbandit list` names them and
`aggbandit show ID` explains their arguments. A learner of your own is written module:Class; the
current folder is searched for the module. The uniform policy is always played along: the others'
regret is compared with its.

Stopped by Ctrl-C, the same command continues where it was.
"""


def add_parser(commands: Any) -> None:
    """`run` and its options."""
    first = FIRST_LOOK
    command = commands.add_parser(
        "run",
        help="play learners on an instance; without arguments a first look",
        description="Plays learners on one instance against the same losses, prints a table of their regret and "
        "writes report.html and regret.pdf. Without options it is a first look that takes less than a minute.",
        epilog=EPILOG,
        formatter_class=output.HelpFormatter,
    )
    command.add_argument("--out", type=Path, metavar="DIR",
                         help="where results, report.html and regret.pdf go (default: results/first-look, or "
                              "results/sweeps/NAME for a SPEC)")  # fmt: skip
    command.add_argument("--learner", action="append", type=_named, metavar="ID[:ARGS]",
                         help=f"who plays; repeat for several (default: {', '.join(first.labels)})")  # fmt: skip
    command.add_argument("--instance", type=_named, default=first.instance, metavar="ID[:ARGS]",
                         help="the process they play in (default: %(default)s)")  # fmt: skip
    command.add_argument("--adversary", type=_named, default=first.adversary, metavar="ID[:ARGS]",
                         help="who sets the losses (default: %(default)s)")  # fmt: skip
    command.add_argument("--episodes", type=_count, default=first.episodes, metavar="K",
                         help="how many episodes each learner plays (default: %(default)s)")  # fmt: skip
    command.add_argument("--replicas", type=_count, default=first.replicas, metavar="R",
                         help="how many independent times (default: %(default)s)")  # fmt: skip
    command.add_argument("--seed", type=_count, default=first.seed, metavar="N",
                         help="of everything random (default: %(default)s)")  # fmt: skip
    command.add_argument("--threads", type=_count, default=None, metavar="N",
                         help="over which replicas are spread (default: all cores)")  # fmt: skip
    command.add_argument("--device", default="cpu", metavar="WHERE",
                         help="cpu, cuda (the first GPU), cuda:1, or cuda:0,1 to split replicas over two; with a SPEC "
                              "cpu or cuda (default: %(default)s)")  # fmt: skip
    command.add_argument("--dtype", default="float64", choices=("float64", "float32"),
                         help="what policies are held in on a GPU (default: %(default)s)")  # fmt: skip
    sweep.add_arguments(command)
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Play, print, write."""
    if arguments.spec is not None:
        _nothing_else(arguments)
        return sweep.execute(arguments)
    from aggbandit.reporting.curves import Curves

    plan = Plan(
        instance=arguments.instance,
        adversary=arguments.adversary,
        learners=tuple(arguments.learner or FIRST_LOOK.learners),
        episodes=arguments.episodes,
        replicas=arguments.replicas,
        seed=arguments.seed,
        device=arguments.device,
        dtype=arguments.dtype,
    ).with_reference()
    out: Path = arguments.out or Path("results/first-look")
    curves: list[Curves] = []
    stopped = ""
    with output.Watch() as watch:
        watch.say(f"{plan.setting}: {output.times(plan)}")
        if begun(plan, out):
            watch.say(f"continuing what was stopped in {out}")
        elif aside := set_aside(plan, out):
            watch.say(f"another play was stopped in {out}; its command continues it with --out {aside}")
        try:
            for index, result in play(plan, out, threads=arguments.threads, progress=watch.progress):
                curves.append(Curves.of(result, setting=plan.setting, label=plan.labels[index]))
                watch.finished(curves[-1])
        except KeyboardInterrupt:
            missing = plan.labels[len(curves) :]
            stopped = f"Stopped before the end; not finished: {', '.join(missing)}. The same command continues there."
    if curves:
        output.present(plan, curves, out, [stopped] if stopped else [])
    elif stopped:
        print(f"aggbandit: {stopped}", file=sys.stderr)
    return STOPPED if stopped else 0


def _nothing_else(arguments: argparse.Namespace) -> None:
    """With a spec, what to play is in the spec."""
    usual = {"learner": None, **{name: getattr(FIRST_LOOK, name) for name in sweep.NOT_WITH_SPEC if name != "learner"}}
    given = [name for name in sweep.NOT_WITH_SPEC if getattr(arguments, name) != usual[name]]
    if given:
        raise InvalidInputError(f"--{given[0]} is not taken with a SPEC: write {given[0]} = ... into the spec.")


def _named(text: str) -> Named:
    try:
        return Named.parse(text)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    """A whole number, also as 1e5 or 100_000."""
    with suppress(ValueError):
        return int(text)  # exact, however large
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not value.is_integer():  # nor are nan and inf
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(value)
