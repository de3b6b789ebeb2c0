"""Algorithm 2, whole loop on one core: episodes/s at frozen sizes, beside another loop timed in the same run.

    python benchmarks/unknown.py [path/to/loop.py]

The other loop is a Python file with `rate(H, S, A, K, radius) -> episodes/s`; both are timed in turn, best of three, as
the clock of a shared machine drifts.  Both play one replica of a random instance with η of the main text, γ = 2 η H,
δ = 0.1 and one loss table; ours also evaluates every policy exactly.
"""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numpy as np
from numba import njit

from aggbandit.kernels import po_unknown as kernel
from aggbandit.learners.base import Problem
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import LossBlock
from aggbandit.simulation.engines.po_unknown import UnknownEngine

Rate = Callable[[int, int, int, int, float], float]


class Workload(NamedTuple):
    """Sizes, episodes, and what multiplies the Bernstein radius."""

    H: int
    S: int
    A: int
    K: int
    radius: float


WORKLOADS = (
    Workload(5, 5, 3, 20_000, 1.0),
    Workload(10, 10, 4, 3_000, 1.0),
    Workload(10, 10, 4, 30_000, 1.0),
    Workload(10, 10, 4, 3_000, 0.01),
    Workload(20, 20, 5, 1_000, 0.001),
)


def engine(H: int, S: int, A: int, K: int, radius: float, replica: int = 0) -> tuple[UnknownEngine, np.ndarray]:
    """An engine before its first episode, and the loss table (1, H, S, A)."""
    rng = np.random.default_rng(0)
    mdp = TabularMDP(rng.dirichlet(np.ones(S), size=(H, S, A)), None, 0)
    learner = PolicyOptimizationUnknown(step_size="main", confidence=0.1, radius_scale=radius)
    return UnknownEngine(mdp, Problem.of(mdp, K, learner.needs), learner, 0, replica, 1), rng.random((1, H, S, A))


def play(player: UnknownEngine, table: np.ndarray, K: int, chunk: int = 1_000) -> None:
    """K episodes in chunks."""
    for first in range(0, K, chunk):
        player.play(LossBlock(first, table, np.zeros(min(chunk, K - first), np.int64), None))


def rate(H: int, S: int, A: int, K: int, radius: float = 1.0) -> float:
    """Episodes/s of one replica on one core, compilation left out."""
    warm, table = engine(H, S, A, K, radius)
    play(warm, table, 3)
    player, table = engine(H, S, A, K, radius)
    start = time.perf_counter()
    play(player, table, K)
    return K / (time.perf_counter() - start)


def share_of_cost(H: int, S: int, A: int, K: int, radius: float = 1.0) -> float:
    """Which part of an episode's time its exact cost takes, on average."""
    player, table = engine(H, S, A, K, radius)
    start = time.perf_counter()
    play(player, table, K)
    played = time.perf_counter() - start
    (next_states, probabilities, _, initial, *_), scratch = player._world, player._scratch[0]
    world = next_states, probabilities, initial, player._states[0].tables, scratch, player._places
    evaluations(1, *world)  # compiles
    start = time.perf_counter()
    evaluations(K, *world)
    return (time.perf_counter() - start) / played


@njit
def evaluations(n, next_tsan, probability_tsan, initial_s, tables, scratch, p):  # type: ignore[no-untyped-def]
    """The policy's exact cost, n times."""
    total = 0.0
    for _ in range(n):
        total += kernel.expected(next_tsan, probability_tsan, initial_s, tables, scratch, p, False)[0]
    return total


def rate_on_two_threads(H: int, S: int, A: int, K: int, radius: float = 1.0) -> float:
    """Episodes/s of two replicas on two threads, together."""
    players = [engine(H, S, A, K, radius, replica) for replica in range(2)]
    threads = [Thread(target=play, args=(player, table, K)) for player, table in players]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * K / (time.perf_counter() - start)


def load_rate(path: Path) -> Rate:
    """The `rate` of another file."""
    spec = importlib.util.spec_from_file_location("other_loop", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Rate = module.rate
    return found


def compare(
    other: Rate | None, workloads: tuple[Workload, ...] = WORKLOADS, rounds: int = 3
) -> Iterator[dict[str, object]]:
    """A row for each workload: best rates, their ratio, the least ratio of the rounds, and what exact costs take."""
    for workload in workloads:
        ours, theirs = [], []
        for _ in range(rounds):
            if other is not None:
                theirs.append(other(*workload))
            ours.append(rate(*workload))
        row: dict[str, object] = {**workload._asdict(), "episodes_per_s": max(ours)}
        if other is not None:
            row["other_per_s"] = max(theirs)
            row["ratio"] = max(ours) / max(theirs)
            row["least_ratio"] = min(a / b for a, b in zip(ours, theirs, strict=True))
        yield {**row, "cost_share": min(share_of_cost(*workload) for _ in range(rounds))}


def main() -> None:
    other = load_rate(Path(sys.argv[1])) if len(sys.argv) > 1 else None
    for row in compare(other):
        print("  ".join(f"{name} {value:,.4g}" for name, value in row.items()), flush=True)
    one = max(rate(*WORKLOADS[3]) for _ in range(3))
    two = max(rate_on_two_threads(*WORKLOADS[3]) for _ in range(3))
    print(f"two threads {two / one:.2f} x one")


if __name__ == "__main__":
    main()
