"""Table 1: every row on the same instances, whether or not the bounds' ranking shows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from aggbandit import theory
from aggbandit._arrays import FloatArray
from aggbandit.errors import AggbanditError
from aggbandit.experiments.claims.base import (
    FAILS,
    HOLDS,
    OPEN,
    WORLDS,
    Chart,
    Claim,
    Estimate,
    Finding,
    Outcome,
    Series,
    Tell,
    bootstrap,
    named,
    played,
    ratio_of_means,
    world,
)

H, S, A = 3, 3, 2
SOMETHING = 0.95  # of the uniform policy's regret
WARM_UP = 30  # episodes before the clock starts: the first ones compile


def play(full: bool, tell: Tell) -> Outcome:
    K, instances = (20_000, 12) if full else (4000, 5)
    worlds = [world(WORLDS[0], seed, H, S, A) for seed in range(instances)]
    uniform = np.array([played(*one, "uniform", K, 1).regret[0, -1] for one in worlds])
    findings: list[Finding] = []
    measured: dict[str, FloatArray] = {}
    shares: dict[str, Estimate] = {}
    for row in theory.TABLE_1:
        if not row.learner:
            continue
        tell(f"{row.algorithm} ({row.learner}), K = {K:,}")
        arguments: Any = {"dynamics": row.dynamics} if row.learner == "dlb" else {}
        try:
            played(*worlds[0], row.learner, WARM_UP, 1, **arguments)
            results = [played(*one, row.learner, K, 1, **arguments) for one in worlds]
        except AggbanditError as error:
            findings.append(Finding(row.algorithm, f"refuses: {error}", "below uniform's", OPEN))
            continue
        measured[row.learner] = np.array([result.regret[0, -1] for result in results])
        share = shares[row.learner] = ratio_of_means(np.stack([measured[row.learner], uniform], axis=1))
        took = 1e6 * sum(result.seconds for result in results) / (instances * K)
        time = f"{took:,.0f}" if took >= 10.0 else f"{took:.1f}"
        told = f"{share.told('{:.3f}')} of uniform's regret; {time} µs an episode"
        what = f"{row.algorithm}: {named(row.learner, **arguments)}"
        findings.append(Finding(what, told, f"at most {SOMETHING}: something learnt", learnt(share)))
    bounds = {row.learner: row.regret(H=H, S=S, A=A, K=K) for row in theory.TABLE_1 if row.learner in measured}
    findings.append(ranking(measured, bounds))
    bars = [
        Series(named(name, **({"dynamics": "unknown"} if name == "dlb" else {})), [0], [share.value], [share.low],
               [share.high])
        for name, share in sorted(shares.items(), key=lambda item: item[1].value)
    ]  # fmt: skip
    return Outcome(
        findings, Chart(x="", y="regret as a share of the uniform policy's", series=bars, bars=True, log=False)
    )


def learnt(share: Estimate) -> str:
    """Whether a learner has learnt something; it has not reached that where it is merely no worse than uniform."""
    return HOLDS if share.high <= SOMETHING else FAILS if share.low > 1.0 else OPEN


def ranking(measured: Mapping[str, FloatArray], bounds: Mapping[str, float]) -> Finding:
    """Whether regrets come in the order of the bounds: every pair whose bounds differ, instances resampled together.

    It holds where every such pair is in order for certain, and does not where one is the other way round for certain.
    """
    right = wrong = undecided = 0
    for one, other in combinations(sorted(bounds, key=lambda name: bounds[name]), 2):
        if bounds[one] == bounds[other]:
            continue
        pair = np.stack([measured[one], measured[other]], axis=1)
        ahead = bootstrap(pair, lambda means: means[:, 1] - means[:, 0])  # how much less the better bound's regret is
        right, wrong = right + (ahead.low > 0.0), wrong + (ahead.high < 0.0)
        undecided += ahead.low <= 0.0 <= ahead.high
    seen = ", ".join(sorted(measured, key=lambda name: float(measured[name].mean())))
    expected = "by the bounds: " + ", ".join(sorted(bounds, key=lambda name: bounds[name]))
    told = f"{seen}: of the pairs {right} in the bounds' order, {wrong} in the other, {undecided} undecided"
    return Finding("ranking, best first", told, expected, FAILS if wrong else OPEN if undecided else HOLDS)


CLAIM = Claim(
    id="table-1",
    title="Table 1: the algorithms compared",
    statement="The regret bounds of the algorithms for aggregate feedback, and their order.",
    test="Each row's learner with its theory's constants on the same random instances (H, S, A = 3, 3, 2) with fixed "
    "losses, as a share of the uniform policy's regret; time without the first episodes, which compile.",
    false_if="Nothing here can show a bound false: constants differ. What can be seen is whether the ranking "
    "appears; it does not where two learners come the other way round for certain.",
    look_at="Constants: most rows hardly move at a K that a laptop reaches. That is a finding about them, too. "
    "Intervals are over the instances. Algorithms for stochastic losses meet i.i.d. ones here, their own kind.",
    minutes=9.0,
    play=play,
)
