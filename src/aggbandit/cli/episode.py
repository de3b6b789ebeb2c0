"""`aggbandit episode`: one episode of Algorithm 1 or 2, step by step, formula beside number."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aggbandit import _files
from aggbandit.cli import output


def add_parser(commands: Any) -> None:
    """`episode` and its options."""
    command = commands.add_parser(
        "episode",
        help="watch one episode of the paper's algorithms",
        formatter_class=output.HelpFormatter,
        description="Plays one episode of Algorithm 1 (po-known) or 2 (po-unknown) and tells, step by step, the "
        "trajectory, the total, Û, b, B and the policy before and after, each beside the paper's formula.",
        epilog="examples:\n  aggbandit episode\n"
        "  aggbandit episode --learner po-unknown --number 500 --html episode.html",
    )
    command.add_argument("--learner", default="po-known", metavar="ID[:ARGS]", help="po-known (default) or po-unknown")
    command.add_argument("--instance", default="dialogue", metavar="ID[:ARGS]", help="the world (default: dialogue)")
    command.add_argument("--number", type=int, default=1, metavar="N", help="which episode (default: 1, the first)")
    command.add_argument("--episodes", type=int, default=1000, metavar="K",
                         help="how many are planned, for the step size (default: 1000)")  # fmt: skip
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws (default: 0)")
    command.add_argument("--html", type=Path, metavar="FILE", help="write it as a page too")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Play and tell."""
    from aggbandit import learners
    from aggbandit.experiments.named import Named
    from aggbandit.experiments.one_episode import one_episode
    from aggbandit.mdp import instances
    from aggbandit.reporting import episode_text

    learner, instance = Named.parse(arguments.learner), Named.parse(arguments.instance)
    told = one_episode(
        instances.make(instance.name, **instance.arguments),
        learners.make(learner.name, **learner.arguments),
        number=arguments.number,
        episodes=arguments.episodes,
        seed=arguments.seed,
    )
    print(episode_text.terminal(told))
    if arguments.html is not None:
        arguments.html.parent.mkdir(parents=True, exist_ok=True)
        _files.write_atomically(arguments.html, episode_text.page(told).encode())
        print(f"\n{arguments.html}  opens in any browser, offline")
    return 0
