"""How much regret learners have left after n episodes, by size and noise: what `aggbandit plan --learning` looks up.

    python -m benchmarks.learning_curves --learner po-model-free                 # writes the package's curves, minutes
    python -m benchmarks.learning_curves --learner po-model-free --check         # forecasts against runs of other sizes

A curve is the regret between two checkpoints over the uniform policy's there, one replica on one random instance: four
instances of each size and noise (half of them with sparse rows), two replicas each.  Noise is the variance of a total
under the uniform policy over what it would be if the losses were the mean table: 1 (the table itself), 3 (Bernoulli
losses) and 12 (Bernoulli losses with means in [1/4, 3/4]).
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import aggbandit as ab
from aggbandit._files import write_atomically
from aggbandit.experiments import learning
from aggbandit.experiments.named import Named

CHECKPOINTS = [round(10 ** (i / 4)) for i in range(6, 21)]  # 32 to 100 000
INSTANCES, REPLICAS = 4, 2
LARGEST = 20_000  # H S² A, where a learner's episode takes as long
NOISES = (1.0, 3.0, 12.0)
OTHERS = ((3, 4, 3, 1.0), (7, 6, 5, 3.0), (15, 12, 3, 1.0), (5, 5, 3, 1.0), (10, 10, 4, 3.0), (4, 20, 2, 12.0))


class Place(NamedTuple):
    """Where a curve was made."""

    H: int
    S: int
    A: int
    noise: float


def sizes(learner: str) -> list[Place]:
    """The grid."""
    grid = (Place(*place) for place in itertools.product((2, 5, 10, 20), (2, 10, 40), (2, 4, 8), NOISES))
    model_free = learner == "po-model-free"
    return [place for place in grid if model_free or place.H * place.S**2 * place.A <= LARGEST]


def instance(place: Place, number: int) -> tuple[ab.TabularMDP, Any]:
    """A random instance and its losses; every second one has sparse rows."""
    H, S, A, noise = place
    sparsity = None if number % 2 == 0 else max(2, S // 4)
    mdp: ab.TabularMDP = ab.instances.make(
        "random", states=S, actions=A, horizon=H, sparsity=sparsity, seed=70_000 + number
    )
    table = np.random.default_rng(number).random(mdp.shape)
    if noise == 1.0:
        return mdp, ab.adversaries.make("fixed", mdp, table=table)
    width = (3.0 / noise) ** 0.5
    return mdp, ab.adversaries.make("bernoulli", mdp, table=0.5 + width * (table - 0.5), seed=number)


def curves(learner: str, place: Place, first: int = 0) -> list[list[float]]:
    """One curve for each instance and replica."""
    named = Named.parse(learner)
    made = ab.learners.make(named.name, **named.arguments)
    found = []
    for number in range(first, first + INSTANCES):
        mdp, losses = instance(place, number)
        result = ab.run(
            mdp, losses, made, episodes=CHECKPOINTS[-1], replicas=REPLICAS, seed=number, checkpoints=CHECKPOINTS,
            evaluate_every=1 if place.noise > 1.0 and mdp.H * mdp.S**2 * mdp.A < 1000 else 8, threads=1,
        )  # fmt: skip
        assert result.pseudo_regret is not None
        even = np.full(mdp.shape, 1.0 / mdp.A)
        uniform = ab.planning.values(mdp, even, losses.mean_table)[0] @ mdp.initial
        gap = float(uniform - ab.planning.best_policy(mdp, losses.mean_table)[1])
        regret = np.diff(result.pseudo_regret, prepend=0.0, axis=1) / np.diff(CHECKPOINTS, prepend=0) / gap
        found += [[round(float(share), 4) for share in replica] for replica in regret]
    return found


def check(learner: str) -> None:
    """Forecasts beside what runs on sizes between those of the grid, and instances of their own, have left."""
    inside = asked = 0
    for place in map(Place._make, OTHERS):
        seen = np.array(curves(learner, place, first=100))
        told = learning.forecast(learner, H=place.H, S=place.S, A=place.A, episodes=CHECKPOINTS, noise=place.noise)
        print(f"H, S, A = {place.H}, {place.S}, {place.A}, noise {place.noise:g}")
        for column in range(2, len(CHECKPOINTS), 4):
            row, shares = told[column], seen[:, column]
            inside += int(((shares >= row.low) & (shares <= row.high)).sum())
            asked += len(shares)
            print(
                f"{row.episodes:>10} forecast {row.left:7.1%} ({row.low:.1%} to {row.high:.1%}), "
                f"seen {shares.mean():7.1%} ({shares.min():.1%} to {shares.max():.1%})",
                flush=True,
            )
    print(f"{inside / asked:.0%} of what was seen lies within the forecast's range")


def main() -> None:
    """Make the curves of some learners, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learner", action="append", choices=learning.NAMES)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    for learner in given.learner or learning.NAMES:
        if given.check:
            check(learner)
            continue
        made = []
        for place in sizes(learner):
            made.append([*place, curves(learner, place)])
            print(learner, *place, np.mean(made[-1][-1], axis=0).round(3)[2::4], flush=True)
        path = Path(learning.__file__).with_name("learning_curves") / f"{learning.file_of(learner)}.json"
        text = ",\n".join(json.dumps(one, separators=(",", ":")) for one in made)
        write_atomically(path, f'{{"episodes":{CHECKPOINTS},\n"curves":[\n{text}\n]}}\n'.encode())


if __name__ == "__main__":
    main()
