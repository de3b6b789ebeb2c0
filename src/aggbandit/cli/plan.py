"""`aggbandit plan`: how long a run would take here, and how much memory it would hold."""

from __future__ import annotations

import argparse
from typing import Any

from aggbandit.cli import output
from aggbandit.reporting import numbers


def add_parser(commands: Any) -> None:
    """`plan` and its options."""
    command = commands.add_parser(
        "plan",
        help="predict the time and memory of a run",
        formatter_class=output.HelpFormatter,
        description="Plays a second or two of a run of that size on a random instance, and says how long the whole "
        "would take on this machine and how much memory it would hold, within a factor of two.",
        epilog="example:\n  aggbandit plan --H 10 --S 10 --A 4 --episodes 1000000 --replicas 64",
    )
    for name, meaning in (("--H", "steps of an episode"), ("--S", "states"), ("--A", "actions")):
        command.add_argument(name, type=int, required=True, metavar="N", help=meaning)
    command.add_argument("--episodes", type=int, required=True, metavar="K", help="episodes of each replica")
    command.add_argument("--replicas", type=int, default=1, metavar="R", help="independent replicas (default: 1)")
    command.add_argument("--threads", type=int, default=None, metavar="N", help="threads (default: all there are)")
    command.add_argument("--learner", default="po-known", metavar="ID[:ARGS]", help="the learner (default: po-known)")
    command.add_argument("--stationary", action="store_true", help="transitions are the same at every step")
    command.add_argument("--successors", type=int, metavar="N", help="a sparse model with N successors per row")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Try and print."""
    from aggbandit import learners
    from aggbandit.experiments.named import Named
    from aggbandit.experiments.planner import MIB, forecast
    from aggbandit.simulation.run import thread_count

    named = Named.parse(arguments.learner)
    threads = thread_count(arguments.threads)
    told = forecast(
        learners.make(named.name, **named.arguments),
        H=arguments.H,
        S=arguments.S,
        A=arguments.A,
        episodes=arguments.episodes,
        replicas=arguments.replicas,
        threads=threads,
        stationary=arguments.stationary,
        successors=arguments.successors,
    )
    rows = [
        ("time", numbers.duration(told.seconds)),
        ("speed", f"{numbers.rate(told.episodes_per_second)} episodes/s, all replicas together"),
        ("memory", f"{told.peak_bytes / MIB:,.0f} MiB at the most"),
        ("starting", f"{told.started:.1f} s to compile or load the kernels, once a process"),
        ("from", "; ".join(told.notes)),
    ]
    for name, text in rows:
        print(numbers.simple(f"{name:10}{text}"))
    return 0
