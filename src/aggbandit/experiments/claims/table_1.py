"""Table 1: every row on the same instances, whether or not the bounds' ranking shows."""

from __future__ import annotations

import time

import numpy as np

from aggbandit import learners, theory
from aggbandit.errors import AggbanditError
from aggbandit.experiments.claims.base import (
    HOLDS,
    OPEN,
    Chart,
    Claim,
    Finding,
    Outcome,
    Series,
    Tell,
    fixed,
    played,
    small_random,
)


def play(full: bool, tell: Tell) -> Outcome:
    H, S, A = 3, 3, 2
    K = 20_000 if full else 500
    replicas = 8 if full else 2
    findings: list[Finding] = []
    measured: dict[str, float] = {}
    uniform = []
    for seed in range(replicas):
        mdp = small_random(seed, H=H, S=S, A=A)
        uniform.append(played(mdp, fixed(mdp, seed), "uniform", K, 1).regret[0, -1])
    reference = float(np.mean(uniform))
    for row in theory.TABLE_1:
        if not row.learner:
            continue
        if row.learner not in learners.names():
            findings.append(Finding(row.algorithm, "not available here", "–", OPEN))
            continue
        tell(f"{row.algorithm} ({row.learner}), K = {K:,}")
        arguments = {"dynamics": row.dynamics} if row.learner == "dlb" else {}
        began = time.perf_counter()
        try:
            finals = []
            for seed in range(replicas):
                mdp = small_random(seed, H=H, S=S, A=A)
                finals.append(played(mdp, fixed(mdp, seed), row.learner, K, 1, **arguments).regret[0, -1])
        except AggbanditError as error:
            findings.append(Finding(row.algorithm, f"refuses: {error}", "–", OPEN))
            continue
        took = (time.perf_counter() - began) / (replicas * K)
        measured[row.learner] = float(np.mean(finals))
        share = measured[row.learner] / reference
        findings.append(
            Finding(
                f"{row.algorithm} ({row.learner}, {row.dynamics})",
                f"{100 * share:.0f} % of uniform's, {1e6 * took:,.0f} µs an episode",
                "below uniform's",
                HOLDS if share < 0.995 else OPEN,
            )
        )
    bounds = {row.learner: row.regret(H=H, S=S, A=A, K=K) for row in theory.TABLE_1 if row.learner in measured}
    ranked = sorted(bounds, key=lambda name: bounds[name])
    seen = sorted(measured, key=lambda name: measured[name])
    findings.append(
        Finding("ranking, best first", ", ".join(seen), "by the bounds: " + ", ".join(ranked),
                HOLDS if seen == ranked else OPEN)
    )  # fmt: skip
    bars = [Series(name, [0], [measured[name] / reference]) for name in seen]
    return Outcome(
        findings, Chart(x="", y="regret as a share of the uniform policy's", series=bars, bars=True, log=False)
    )


CLAIM = Claim(
    id="table-1",
    title="Table 1: the algorithms compared",
    statement="The regret bounds of the algorithms for aggregate feedback, and their order.",
    test="Each row's learner with its theory's constants on the same random instances (H, S, A = 3, 3, 2) with fixed "
    "losses, as a share of the uniform policy's regret.",
    false_if="Nothing here can show a bound false: constants differ. What can be seen is whether the ranking appears.",
    look_at="Constants: most rows hardly move at a K that a laptop reaches. That is a finding about them, too.",
    play=play,
)
