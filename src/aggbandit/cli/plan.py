"""`aggbandit plan`: how long a run would take here and how much memory it would hold, and how much would be learned."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from aggbandit.cli import output
from aggbandit.reporting import numbers

TOLD = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)  # episodes that have a row of their own
MARKS = (0.5, 0.2, 0.1, 0.05)  # shares of regret left whose episodes are told


def add_parser(commands: Any) -> None:
    """`plan` and its options."""
    command = commands.add_parser(
        "plan",
        help="predict the time and memory of a run, and how much it would learn",
        formatter_class=output.HelpFormatter,
        description="Plays a second or two of a run of that size on a random instance, and says how long the whole "
        "would take on this machine and how much memory it would hold, within a factor of two.  With --learning it "
        "says instead how much regret a practical learner is expected to have left after so many episodes.",
        epilog="examples:\n  aggbandit plan --H 10 --S 10 --A 4 --episodes 1000000 --replicas 64\n"
        "  aggbandit plan --H 6 --S 10 --A 3 --episodes 10000 --learning --spread 0.2",
    )
    for name, meaning in (("--H", "steps of an episode"), ("--S", "states"), ("--A", "actions")):
        command.add_argument(name, type=int, required=True, metavar="N", help=meaning)
    command.add_argument("--episodes", type=int, required=True, metavar="K", help="episodes of each replica")
    command.add_argument("--replicas", type=int, default=1, metavar="R", help="independent replicas (default: 1)")
    command.add_argument("--threads", type=int, default=None, metavar="N", help="threads (default: all there are)")
    command.add_argument(
        "--learner", metavar="ID[:ARGS]", help="the learner (default: po-known; with --learning po-model-free)"
    )
    command.add_argument("--stationary", action="store_true", help="transitions are the same at every step")
    command.add_argument("--successors", type=int, metavar="N", help="a sparse model with N successors per row")
    command.add_argument(
        "--learning", action="store_true", help="how many episodes are needed: regret left after so many, by curves"
    )
    command.add_argument(
        "--spread",
        type=float,
        metavar="X",
        help="with --learning: standard deviation of the scores of random play, as a share of their range (up to 0.5; "
        "default: that of losses of 0 or 1 at every step)",
    )
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Try and print."""
    from aggbandit import learners
    from aggbandit.errors import InvalidInputError
    from aggbandit.experiments.named import Named
    from aggbandit.experiments.planner import MIB, forecast
    from aggbandit.simulation.run import thread_count

    if arguments.learning:
        return tell_learning(arguments)
    if arguments.spread is not None:
        raise InvalidInputError("--spread is for --learning; time and memory do not depend on it.")
    named = Named.parse(arguments.learner or "po-known")
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


def tell_learning(arguments: argparse.Namespace) -> int:
    """What is left after so many episodes, when how much of it is gone, and what that rests on."""
    from aggbandit._checks import require_integer
    from aggbandit.errors import InvalidInputError
    from aggbandit.experiments import learning

    for name in ("stationary", "successors"):
        if getattr(arguments, name):
            raise InvalidInputError(f"--{name} is not for --learning: what its curves are of is told below them.")
    H, S, A = arguments.H, arguments.S, arguments.A
    learner = arguments.learner or "po-model-free"
    K = require_integer("--episodes", arguments.episodes, low=1)
    noise = learning.NOISE if arguments.spread is None else learning.noise_of(arguments.spread, H)
    size = {"H": H, "S": S, "A": A, "noise": noise}
    end = learning.longest(learner, **size)
    rows = learning.forecast(learner, episodes=sorted({n for n in TOLD if n < min(K, end)} | {min(K, end)}), **size)
    print(f"regret that {learner} has left, as a share of a random player's (the range holds four lives in five)\n")
    print(f"{'episodes':>12}{'by then':>12}{'range':>20}{'all so far':>14}")
    for row in rows:
        band = f"{_percent(row.low)} to {_percent(row.high)}"
        line = f"{numbers.grouped(row.episodes):>12}{_percent(row.left):>12}{band:>20}"
        print(numbers.simple(f"{line}{_percent(row.so_far):>14}"))
    print()
    for share in MARKS:
        print(
            numbers.simple(f"{_percent(share):>5} left after {_span(learning.reaching(learner, share, **size), end)}")
        )
    spread = (noise / (12.0 * H)) ** 0.5 if arguments.spread is None else arguments.spread
    told = [
        "Stored curves of random instances (Dirichlet rows, half of them sparse; losses that do not change), smoothed "
        "between sizes.",
        f"Scores of random play spread by {_percent(spread)} of their range"
        f"{', as losses of 0 or 1 do' if arguments.spread is None else ''}: {numbers.plain(noise, 2)} times the "
        "variance that actions and transitions alone would give.",
        "A process that drifts, one good way behind a chain of rare choices, or one step that decides everything may "
        "be far from these.",
    ]
    if not learning.is_inside(learner, **size):
        told.append(
            "This size lies outside of the stored ones; episodes needed are taken to grow in proportion to H, S, A and "
            "the noise from there on. Read it as an order of magnitude."
        )
    if end < K:
        told.append(f"The curves end at {_rounded(end)} episodes; less is left after that.")
    print("\nassumes")
    for line in told:
        print(textwrap.fill(numbers.simple(line), 100, initial_indent="  ", subsequent_indent="  "))
    return 0


def _span(found: list[int | None], end: int) -> str:
    expected, early, late = ("more than " + _rounded(end) if n is None else _rounded(n) for n in found)
    return f"{expected} episodes" if early == late else f"{expected} episodes ({early} to {late})"


def _percent(share: float) -> str:
    """Two significant digits."""
    return f"{numbers.plain(100 * share, 2)} %"


def _rounded(n: int) -> str:
    """Two significant digits."""
    return numbers.grouped(float(f"{n:.1e}"))
