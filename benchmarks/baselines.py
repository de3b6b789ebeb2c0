"""The learners that the paper compares with or builds on: how fast they play, and whether they learn.

    python -m benchmarks.baselines speed     # the table of docs/coverage.md: episodes a second, one replica, one core
    python -m benchmarks.baselines shares    # its tables of regret as a share of the uniform policy's at K = 20 000
    python -m benchmarks.baselines shares --learner dlb --learner repo --episodes 200_000 --size 2 2 2

Speed is that of `ab.run`'s own loop, sampling, update and exact cost together, in processor time of this thread: a busy
machine changes it little.  What a learner compiles is left out.
"""

import argparse
import time
from contextlib import suppress
from typing import Any, NamedTuple

import aggbandit as ab
from aggbandit.learners.base import Problem
from aggbandit.simulation.losses import LossReader
from aggbandit.simulation.run import Progress, Simulation, checkpoint_episodes, single_threaded_blas

EPISODES = 20_000
SIZE = {"horizon": 4, "states": 4, "actions": 2}  # of the speed table
SMALL = {"horizon": 3, "states": 2, "actions": 2}  # small enough for the slowest learner of totals
SECONDS = 2.0  # of play, for each rate
UNKNOWN = {"dynamics": "unknown"}


class Row(NamedTuple):
    """A learner as it is by default, the rate that is asked of it, and arguments with which it learns at this scale."""

    learner: str
    form: dict[str, Any] = {}
    wanted: int | None = None
    tuned: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """As the tables have it."""
        return ", ".join([f"`{self.learner}`", *map(str, self.form.values())])


TOTALS = (
    Row("exp2"),
    Row("scrible"),
    Row("volumetric", tuned={"step_scale": 100.0, "exploration": 0.2}),
    Row("dlb", wanted=1_000, tuned={"step_scale": 23.0}),
    Row("dlb", UNKNOWN, 100, {"step_scale": 200.0, "boost_scale": 0.0, "radius_scale": 0.001, "growth": 30.0}),
    Row("oful-trajectory"),
    Row("ts-trajectory"),
    Row("ucbvi-ts", wanted=2_000, tuned={"v_scale": 0.1, "bonus_scale": 0.1}),
    Row("rs-ucbvi-ts"),
    Row("re-lsvi", tuned={"v_scale": 0.1, "bonus_scale": 0.1}),
    Row("repo", wanted=500, tuned={"v_scale": 0.1, "bonus_scale": 0.1, "value_bound": 3.0, "step_scale": 10.0}),
    Row("ftrl-tsallis", wanted=500),
    Row("ftrl-logbarrier", wanted=500),
    Row("ftrl-tsallis", UNKNOWN, tuned={"beta_scale": 0.001, "radius_scale": 0.03, "bonus_scale": 0.1}),
    Row("ftrl-logbarrier", UNKNOWN, tuned={"beta_scale": 0.001, "radius_scale": 0.03, "bonus_scale": 0.1}),
)
STEPS = (
    Row("po-known"),
    Row("po-unknown", tuned={"radius_scale": 0.01}),
    Row("po-dilated"),
    Row("po-dilated", UNKNOWN, tuned={"step_scale": 20.0, "bonus_scale": 0.02, "radius_scale": 0.05}),
    Row("dapo"),
    Row("dapo", UNKNOWN, tuned={"bonus_scale": 0.05, "radius_scale": 0.05}),
    Row("dapo", {"feedback": "aggregate"}),
    Row("dapo", {"feedback": "aggregate", **UNKNOWN}, tuned={"bonus_scale": 0.05, "radius_scale": 0.05}),
    Row("o-reps", {"feedback": "full"}, 300),
    Row("o-reps", {"feedback": "semi-bandit"}, 300),
    Row("uob-reps", wanted=300, tuned={"radius_scale": 0.1}),
    Row("uc-o-reps", tuned={"radius_scale": 0.1}),
    Row("bandit-uc-o-reps", tuned={"radius_scale": 0.1}),
    Row("mdp-e"),
    Row("pomd", {"losses": "stochastic"}, tuned={"bonus_scale": 0.02}),
    Row("pomd", {"losses": "adversarial"}, tuned={"step_scale": 30.0, "radius_scale": 0.1}),
    Row("oppo", tuned={"bonus_scale": 0.01}),
    Row("ucbvi", {"bonus": "ch"}, 20_000, {"bonus_scale": 0.01}),
    Row("ucbvi", {"bonus": "bf"}, 20_000, {"bonus_scale": 0.02}),
    Row("ucb-h", tuned={"bonus_scale": 0.02}),
    Row("ucrl2", tuned={"bonus_scale": 0.1, "radius_scale": 0.1}),
    Row("reinforce"),
    Row("natural-pg"),
    Row("ppo-tabular"),
    Row("mc-control"),
    Row("q-learning-shared"),
    Row("doubling", tuned={"learner": "po-practical"}),
)


class _Enough(Exception):
    """Enough has been timed."""


def rate(learner: ab.Learner[Any], mdp: ab.TabularMDP, losses: Any, seconds: float) -> float:
    """Episodes a second of processor time: of a run of 20 000 episodes, as many as fit, the first two left out."""
    problem = Problem.of(mdp, EPISODES, learner.needs)
    marks = checkpoint_episodes(1, EPISODES)
    simulation = Simulation(
        mdp, LossReader(losses, mdp, EPISODES), learner.bound(problem), problem, replicas=1, seed=0, checkpoints=marks
    )
    noted: list[tuple[int, float]] = []

    def watch(progress: Progress) -> None:
        if progress.done > 1:  # the first episode compiles what the learner needs
            noted.append((progress.done, time.process_time()))
            if noted[-1][1] - noted[0][1] > seconds:
                raise _Enough

    with single_threaded_blas(), suppress(_Enough):
        simulation.play(report=watch)
    (first, began), (last, ended) = noted[0], noted[-1]
    return (last - first) / (ended - began)


def speed(rows: list[Row], seconds: float) -> None:
    """The speed table."""
    mdp = ab.instances.make("random", seed=0, **SIZE)
    losses = ab.adversaries.make("bernoulli", mdp, seed=1)
    print("| learner | episodes/s | asked |\n| --- | ---: | ---: |")
    for row in rows:
        found = rate(ab.learners.make(row.learner, **row.form), mdp, losses, seconds)
        asked = "" if row.wanted is None else f"{row.wanted:,}".replace(",", " ")
        print(f"| {row.name} | {f'{rounded(found):,}'.replace(',', ' ')} | {asked} |", flush=True)


def rounded(value: float) -> int:
    """To two digits: more would be noise."""
    digits = len(str(int(value)))
    return int(round(value, 2 - digits))


def share(
    learner: str, arguments: dict[str, Any], size: dict[str, int], loss_seed: int, replicas: int, episodes: int
) -> float:
    """Regret over that of the uniform policy, the mean of the replicas."""
    mdp = ab.instances.make("random", seed=0, **size)
    losses = ab.adversaries.make("bernoulli", mdp, table="random", seed=loss_seed)
    settings: dict[str, Any] = {"episodes": episodes, "checkpoints": 1, "threads": 1, "keep_policy": False}
    uniform = ab.run(mdp, losses, "uniform", **settings).regret[0, -1]
    made = ab.learners.make(learner, **arguments)
    return float(ab.run(mdp, losses, made, replicas=replicas, seed=0, **settings).regret[:, -1].mean() / uniform)


def shares(rows: list[Row], size: dict[str, int], loss_seed: int, replicas: int, episodes: int) -> None:
    """A table of shares."""
    if not rows:
        return
    H, S, A = size["horizon"], size["states"], size["actions"]
    runs = f"{replicas} runs" if replicas > 1 else "1 run"
    print(f"\nH, S, A = {H}, {S}, {A}; K = {episodes}; mean of {runs}\n")
    print("| learner | defaults | tuned | with |\n| --- | --- | --- | --- |")
    for row in rows:
        setting = size, loss_seed, replicas, episodes
        found = f"{share(row.learner, row.form, *setting):.2f}"
        tuned = given = ""
        if row.tuned is not None:
            tuned = f"{share(row.learner, {**row.form, **row.tuned}, *setting):.2f}"
            given = f"`{', '.join(f'{name}={shown(value)}' for name, value in row.tuned.items())}`"
        print(f"| {row.name} | {found} | {tuned} | {given} |", flush=True)


def shown(value: Any) -> str:
    """An argument as a person writes it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "shares"])
    parser.add_argument("--learner", action="append", help="only this one; repeat for several")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of play, for each rate")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="K, for shares")
    parser.add_argument("--size", type=int, nargs=3, metavar=("H", "S", "A"), help="for shares, instead of the tables'")
    arguments = parser.parse_args()
    totals, steps = (
        [row for row in rows if arguments.learner is None or row.learner in arguments.learner]
        for rows in (TOTALS, STEPS)
    )
    if arguments.what == "speed":
        speed([*totals, *steps], arguments.seconds)
        return
    other = dict(zip(SIZE, arguments.size, strict=True)) if arguments.size else None
    shares(totals, other or SMALL, 0, 2, arguments.episodes)
    shares(steps, other or SIZE, 1, 1, arguments.episodes)


if __name__ == "__main__":
    main()
