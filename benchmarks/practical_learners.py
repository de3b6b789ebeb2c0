"""Regret of the practical learners as a share of the uniform policy's, and whether they ever collapse.

    python -m benchmarks.practical_learners                     # the table of docs/decisions/008-practical-learners.md
    python -m benchmarks.practical_learners --collapse          # 200 awkward instances
    python -m benchmarks.practical_learners --collapse --tiny --instances 100    # whose differences the noise hides
    python -m benchmarks.practical_learners --learner po-known:step_size=main --learner uniform
    python -m benchmarks.practical_learners --tune              # ucbvi's bonus for that table, on instances of its own

Instances: random transitions (Dirichlet(1) rows, half of them with few successors), losses a uniformly random table;
mean over 12 instances of 8 replicas each, no learner is told anything of the instance.
"""

import argparse
import time
from typing import Any, NamedTuple

import numpy as np

import aggbandit as ab
from aggbandit._arrays import FloatArray
from aggbandit.experiments.named import Named

SIZES = ((5, 5, 3), (10, 10, 4))
KINDS = ("fixed", "bernoulli", "switching")
INSTANCES = 12
REPLICAS = 8
EPISODES = 10_000
TUNING = 500  # the number of the first instance that a bonus is tuned on; the table's have lower numbers

PRACTICAL = {
    "po-practical": Named("po-practical"),
    "po-practical, unknown": Named("po-practical", {"dynamics": "unknown"}),
    "po-model-free": Named("po-model-free"),
}
BESIDE = {
    "po-known": Named("po-known"),
    "reinforce": Named("reinforce"),
    "ucbvi, tuned": Named("ucbvi", {"bonus": "bf", "bonus_scale": 0.001}),  # it sees every step
}
BONUSES = [
    Named("ucbvi", {"bonus": b, "bonus_scale": x}) for b in ("ch", "bf") for x in (0.0003, 0.001, 0.003, 0.01, 0.03)
]


class Share(NamedTuple):
    """Regret over the uniform policy's, in percent: the mean of instances, and the worst of them."""

    mean: float
    worst: float


def instance(number: int, H: int, S: int, A: int) -> ab.TabularMDP:
    """Every second one has rows with a quarter of the states as successors (at least two)."""
    sparsity = None if number % 2 == 0 else max(2, S // 4)
    made: ab.TabularMDP = ab.instances.make(
        "random", states=S, actions=A, horizon=H, sparsity=sparsity, seed=1000 + number
    )
    return made


def losses(kind: str, mdp: ab.TabularMDP, seed: int) -> Any:
    """The loss sequence of one instance."""
    blocks = {"blocks": 8, "period": EPISODES // 8} if kind == "switching" else {}
    return ab.adversaries.make(kind, mdp, seed=seed, **blocks)


def share(named: Named, kind: str, size: tuple[int, int, int], numbers: range, replicas: int = REPLICAS) -> Share:
    """One cell of the table."""
    found = []
    learner = ab.learners.make(named.name, **named.arguments)
    for number in numbers:
        mdp = instance(number, *size)
        sequence = losses(kind, mdp, number)
        settings: dict[str, Any] = {"episodes": EPISODES, "checkpoints": 1}
        uniform = ab.run(mdp, sequence, "uniform", **settings).regret[:, -1].mean()
        result = ab.run(mdp, sequence, learner, replicas=replicas, seed=number, threads=1, **settings)
        found.append(100.0 * result.regret[:, -1].mean() / uniform)
    return Share(float(np.mean(found)), float(np.max(found)))


def awkward(number: int) -> tuple[ab.TabularMDP, Any]:
    """A small instance with stationary losses, of one of eight kinds that trip learners."""
    chance = np.random.default_rng(90_000 + number)
    H, S, A = int(chance.integers(1, 13)), int(chance.integers(1, 13)), int(chance.integers(2, 7))
    transition: FloatArray = chance.dirichlet(np.full(S, chance.choice([1.0, 0.3, 0.05])), size=(H, S, A))
    table: FloatArray = chance.random((H, S, A))
    kind = "bernoulli" if chance.random() < 0.5 else "fixed"
    match number % 8:
        case 1:  # losses within 1 % of each other
            table, kind = 0.5 + 0.01 * table, "fixed"
        case 2:  # deterministic transitions
            transition = np.eye(S)[chance.integers(S, size=(H, S, A))]
        case 3 if S > 1:  # a state met once in a thousand episodes, where alone it matters what is done
            transition[..., -1] = 0.0
            transition[..., 0] += transition.sum(-1) == 0.0
            transition *= 0.999 / transition.sum(-1, keepdims=True)
            transition[..., -1] = 0.001
            table = 0.5 + 0.02 * table
            table[:, -1] = chance.random((H, A)) > 0.5
            kind = "fixed"
        case 4:  # totals 0 or H only: the first action decides, the first loss is drawn with the rest
            H, S = max(H, 2), 3
            transition = np.broadcast_to(np.eye(S)[:, None, :], (H, S, A, S)).copy()
            bad = chance.random(A)
            transition[0, 0] = np.stack([np.zeros(A), bad, 1.0 - bad], axis=-1)
            table = np.zeros((H, S, A))
            table[:, 1] = 1.0
            kind = "fixed"
        case 5:  # a combination lock with a comfortable way out
            good = chance.integers(A, size=(H, S))
            transition = np.zeros((H, S, A, S))
            transition[..., 0] = 1.0
            for h in range(H):
                for s in range(S):
                    transition[h, s, good[h, s]] = np.eye(S)[min(s + 1, S - 1)]
            table = np.full((H, S, A), 0.9)
            table[:, 0] = 0.85
            table[-1, min(S, H) - 1] = 0.0
            kind = "fixed"
        case 6:  # rare spikes
            table, kind = (table < 0.03).astype(np.float64), "fixed"
        case 7:  # a thousandth at the last step, under a constant
            last = 0.3 + 0.001 * table[-1]
            table, kind = np.full((H, S, A), 0.3), "fixed"
            table[-1] = last
    mdp = ab.TabularMDP(transition)
    if kind == "bernoulli":
        return mdp, ab.adversaries.make("bernoulli", mdp, table=table, seed=number)
    return mdp, ab.adversaries.make("fixed", mdp, table=table)


def tiny(number: int) -> tuple[ab.TabularMDP, Any]:
    """Bernoulli losses so near to each other that 20 000 episodes hardly tell them apart."""
    chance = np.random.default_rng(77_000 + number)
    H, S, A = int(chance.integers(1, 4)), int(chance.integers(1, 4)), int(chance.integers(2, 5))
    mdp = ab.TabularMDP(chance.dirichlet(np.full(S, chance.choice([1.0, 0.1])), size=(H, S, A)))
    width = chance.choice([0.003, 0.01, 0.02])
    table = chance.uniform(0.0, 1.0 - width) + width * chance.random((H, S, A))
    return mdp, ab.adversaries.make("bernoulli", mdp, table=table, seed=number)


def collapse(
    learner: Any, make: Any = awkward, instances: int = 200, evaluate_every: int = 10
) -> list[tuple[float, float, int]]:
    """(share in percent, share against the mean table, number) of the instances where the uniform policy has regret."""
    found = []
    for number in range(instances):
        mdp, sequence = make(number)
        settings: dict[str, Any] = {"episodes": 20_000, "checkpoints": 1, "seed": number, "threads": 1}
        uniform = ab.run(mdp, sequence, "uniform", **settings)
        if uniform.regret[:, -1].mean() <= 1e-6:
            continue
        result = ab.run(mdp, sequence, learner, replicas=REPLICAS, evaluate_every=evaluate_every, **settings)
        share, against_mean = (
            100.0 * float(a[:, -1].mean() / b[:, -1].mean())
            for a, b in ((result.regret, uniform.regret), (result.pseudo_regret, uniform.pseudo_regret))
        )
        found.append((share, against_mean, number))
    return sorted(found, reverse=True)


def tune() -> None:
    """How each bonus of ucbvi fares on four instances of each size; the one with the least mean is the table's."""
    columns = [(kind, size) for size in SIZES for kind in ("fixed", "bernoulli")]
    for named in BONUSES:
        cells = [share(named, kind, size, range(TUNING, TUNING + 4), replicas=2).mean for kind, size in columns]
        print(
            f"{named!s:<36}" + "".join(f"{cell:>8.1f}" for cell in cells) + f"   mean {np.mean(cells):.2f}", flush=True
        )


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collapse", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--instances", type=int)
    parser.add_argument(
        "--learner", action="append", metavar="ID[:ARGS]", help="default: the practical ones and others"
    )
    given = parser.parse_args()
    rows = PRACTICAL if given.collapse else PRACTICAL | BESIDE
    if given.learner:
        rows = {text: Named.parse(text) for text in given.learner}
    if given.tune:
        tune()
    elif given.collapse:
        for title, named in rows.items():
            begun = time.perf_counter()
            learner = ab.learners.make(named.name, **named.arguments)
            kind, every = (tiny, 1) if given.tiny else (awkward, 10)
            found = collapse(learner, kind, given.instances or 200, every)
            worst = ", ".join(f"{share:.1f} % (kind {number % 8})" for share, _, number in found[:5])
            above, means = sum(share > 105 for share, *_ in found), [mean for _, mean, _ in found]
            print(
                f"{title:<24}{len(found)} instances, {above} above 105 %, worst: {worst}; against the mean table "
                f"{sum(mean > 105 for mean in means)}, worst: {max(means):.1f} %; {time.perf_counter() - begun:.0f} s",
                flush=True,
            )
    else:
        columns = [(kind, size) for size in SIZES for kind in KINDS]
        print(f"{'':<24}" + "".join(f"{f'{kind} {str(size)[1:-1]}':>22}" for kind, size in columns))
        for title, named in rows.items():
            cells = [share(named, kind, size, range(given.instances or INSTANCES)) for kind, size in columns]
            print(f"{title:<24}" + "".join(f"{cell.mean:>12.1f} (≤{cell.worst:6.1f})" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
