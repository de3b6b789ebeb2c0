"""What `aggbandit plan` predicts beside what the run then took: `python -m benchmarks.planned`.

Each forecast and each run has a process of its own, one thread; both play the same random instance.  Seconds are those
of playing, memory is the most that the process held.
"""

import json
import subprocess
import sys
from typing import Any, NamedTuple

import aggbandit as ab
from aggbandit.experiments import planner
from aggbandit.experiments.bench.measure import peak_mib


class Planned(NamedTuple):
    """A run to be predicted."""

    learner: str
    H: int
    S: int
    A: int
    episodes: int
    replicas: int = 1
    arguments: dict[str, Any] = {}
    successors: int | None = None


RUNS = (
    Planned("po-known", 5, 5, 3, 2_000_000, 32),
    Planned("po-known", 10, 10, 4, 200_000, 64),
    Planned("po-known", 10, 10, 4, 5_000_000),
    Planned("po-known", 20, 100, 10, 500, 256),
    Planned("po-known", 50, 1_000, 4, 1_000, 4, {}, 4),
    Planned("po-unknown", 10, 10, 4, 30_000, 8),
    Planned("po-unknown", 20, 20, 5, 20_000, 1, {"radius_scale": 0.001}),
    Planned("po-unknown", 5, 5, 3, 1_000_000),
    Planned("po-practical", 10, 10, 4, 100_000, 4),
    Planned("po-model-free", 10, 10, 4, 100_000, 4),
    Planned("uob-reps", 4, 4, 2, 20_000),
    Planned("ucbvi", 10, 10, 4, 20_000),
)


def predicted(planned: Planned) -> tuple[float, float]:
    """Seconds and MiB that the planner tells."""
    told = planner.forecast(
        ab.learners.make(planned.learner, **planned.arguments),
        H=planned.H, S=planned.S, A=planned.A, episodes=planned.episodes, replicas=planned.replicas,
        successors=planned.successors,
    )  # fmt: skip
    return told.seconds, told.peak_bytes / planner.MIB


def taken(planned: Planned) -> tuple[float, float]:
    """Seconds and MiB of the run."""
    mdp = planner.random_mdp(planned.H, planned.S, planned.A, successors=planned.successors)
    losses = ab.adversaries.make("fixed", mdp, table="random", seed=0)
    learner = ab.learners.make(planned.learner, **planned.arguments)
    result = ab.run(mdp, losses, learner, episodes=planned.episodes, replicas=planned.replicas, seed=0, threads=1)
    return result.seconds, peak_mib()


def apart(what: str, index: int) -> tuple[float, float]:
    """`what` of a run, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.planned", what, str(index)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, mib = json.loads(done.stdout.splitlines()[-1])
    return seconds, mib


def main() -> None:
    """Print the table, a line a run as it comes; with two arguments, one figure of it."""
    if len(sys.argv) == 3:
        print(json.dumps({"predicted": predicted, "taken": taken}[sys.argv[1]](RUNS[int(sys.argv[2])])))
        return
    print(
        f"{'run':52s} {'seconds: told':>13s} {'taken':>8s} {'ratio':>6s} {'MiB: told':>10s} {'taken':>8s} {'ratio':>6s}"
    )
    for index, run in enumerate(RUNS):
        (told, told_mib), (took, took_mib) = apart("predicted", index), apart("taken", index)
        name = f"{run.learner} {run.H}, {run.S}, {run.A}, K = {run.episodes:,}, R = {run.replicas}"
        times, memory = f"{told:13.2f} {took:8.2f} {told / took:6.2f}", f"{told_mib:10.0f} {took_mib:8.0f}"
        print(f"{name:52s} {times} {memory} {told_mib / took_mib:6.2f}", flush=True)


if __name__ == "__main__":
    main()
