"""With less to see, Algorithm 2 matches policy optimisation with semi-bandit feedback."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.experiments.claims.base import (
    HOLDS,
    LEARNT,
    OPEN,
    WORLDS,
    Chart,
    Claim,
    Estimate,
    Finding,
    Outcome,
    Tell,
    bootstrap,
    compared,
    final_regrets,
    mean_series,
    named,
    ratio_of_means,
)

H, S, A = 3, 3, 2
SEEDS = range(4)
NAMES = {"po-unknown": {}, "po-dilated": {"dynamics": "unknown"}}
FLAT = 0.1  # an exponent of the ratio in K that counts as none: bounds of √K and K^(2/3) are 1/6 apart


def play(full: bool, tell: Tell) -> Outcome:
    Ks = [10**3, 10**4, 10**5, 3 * 10**5] if full else [10**3, 5 * 10**3, 25 * 10**3]
    replicas = 8 if full else 4
    finals: dict[str, list[FloatArray]] = {name: [] for name in NAMES}
    for K in Ks:
        for name, arguments in NAMES.items():
            tell(f"{name}, K = {K:,}")
            finals[name].append(final_regrets(WORLDS[0], SEEDS, (H, S, A), name, K, replicas, **arguments))
    uniform = [float(final_regrets(WORLDS[0], SEEDS, (H, S, A), "uniform", K, 1)[0]) for K in Ks]
    ours, theirs = finals.values()
    ratios = [ratio_of_means(np.stack(pair, axis=1)) for pair in zip(ours, theirs, strict=True)]
    shares = [
        [float(found.mean()) / alone for alone, found in zip(uniform, one, strict=True)] for one in (ours, theirs)
    ]
    learnt = [max(pair) <= LEARNT for pair in zip(*shares, strict=True)]
    first = min(learnt.index(True) if any(learnt) else 0, len(Ks) - 2)
    trend = trend_of(ours, theirs, Ks, first)
    verdict = matches(trend, all(learnt[first:]))
    findings = [
        Finding("R(po-unknown) / R(po-dilated) at each K", ", ".join(ratio.told("{:.2f}") for ratio in ratios),
                "bounded as K grows", verdict),
        Finding(f"exponent of that ratio in K, from {Ks[first]:,} on", trend.told(), f"at most {FLAT}, for none",
                verdict),
        Finding(f"share of the uniform policy's regret, K = {Ks[-1]:,}", " and ".join(f"{s[-1]:.2f}" for s in shares),
                f"at most {LEARNT}: both have learnt", HOLDS if learnt[-1] else OPEN),
    ]  # fmt: skip
    series = [mean_series(named(name, **NAMES[name]), Ks, finals[name]) for name in NAMES]
    return Outcome(
        findings, Chart(x="episodes K, each with its own step size", y="regret after K episodes", series=series)
    )


def trend_of(ours: Sequence[FloatArray], theirs: Sequence[FloatArray], Ks: Sequence[int], first: int) -> Estimate:
    """The exponent in K of the ratio of the regrets, from `Ks[first]` to the last."""
    return bootstrap(
        np.stack([ours[first], theirs[first], ours[-1], theirs[-1]], axis=1),
        lambda m: np.log(m[:, 2] / m[:, 3] / (m[:, 0] / m[:, 1])) / np.log(Ks[-1] / Ks[first]),
    )


def matches(trend: Estimate, learnt: bool) -> str:
    """Whether the ratio stays bounded: its exponent in K, where both have learnt at either end."""
    return compared(trend, FLAT) if learnt else OPEN


CLAIM = Claim(
    id="semi-bandit",
    title="Matches semi-bandit policy optimisation",
    statement="Algorithm 2's bound equals the best known one for policy optimisation that sees every step's loss "
    "(Luo et al. 2021), up to logarithms.",
    test="po-unknown (aggregate) against po-dilated (semi-bandit), both with unknown dynamics and the steps of their "
    "theorems, in the mean over four random instances (H, S, A = 3, 3, 2) with fixed losses.",
    false_if="The ratio of the regrets grows with K after both have learnt.",
    look_at="The two do not run the same race: po-dilated sees the loss of each step, po-unknown only their sum. "
    "Which is ahead at one K is a matter of constants.",
    minutes=15.0,
    play=play,
)
