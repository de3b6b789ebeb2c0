"""Theorem 3: on the hard instance nobody's mean regret is lower than the bound."""

from __future__ import annotations

import numpy as np

from aggbandit import adversaries, theory
from aggbandit.experiments.claims.base import (
    FAILS,
    HOLDS,
    Chart,
    Claim,
    Finding,
    Outcome,
    Series,
    Tell,
    mean_series,
    played,
)
from aggbandit.mdp import instances

LEARNERS = ("uniform", "po-known", "po-unknown", "reinforce")


def play(full: bool, tell: Tell) -> Outcome:
    H, S, A = 4, 3, 2
    Ks = [1000, 4000, 16_000] if full else [500, 2000]
    seeds = 64 if full else 32
    mdp = instances.make("lower-bound", states=S, actions=A, horizon=H)
    bounds = [theory.lower_bound(H=H, S=S, A=A, K=K) for K in Ks]
    findings, series = [], []
    for learner in LEARNERS:
        finals = []
        for K in Ks:
            tell(f"{learner}, K = {K:,}, {seeds} seeds")
            runs = [
                played(mdp, adversaries.make("lower-bound", mdp, seed=seed), learner, K, 1).regret[0, -1]
                for seed in range(seeds)
            ]
            finals.append(np.array(runs))
        series.append(mean_series(learner, Ks, finals))
        ratio = min(float(f.mean()) / b for f, b in zip(finals, bounds, strict=True))
        findings.append(
            Finding(f"least regret over bound, {learner}", f"{ratio:.2f}", "at least 1", HOLDS if ratio >= 1 else FAILS)
        )
    series.append(Series("lower bound", Ks, bounds, guide=True))
    return Outcome(
        findings, Chart(x="episodes K, the instance tuned to each", y="regret, mean over seeds", series=series)
    )


CLAIM = Claim(
    id="theorem-3",
    title="Theorem 3: no learner beats H² √(S A K)",
    statement="For every learner there is an instance with expected regret Ω̃(H² √(S A K)), known dynamics or not.",
    test="The instance of the proof (H, S, A = 4, 3, 2), its gap tuned to K, with the constant "
    "(σ / 10) (H-1)² √(S A K); the mean over its hidden actions, one seed each.",
    false_if="Some learner's mean regret over seeds lies below the bound by more than chance.",
    look_at="Also the uniform policy is only 5 (1 - 1/A) times above the bound: at this gap nothing can be learned, "
    "by design.",
    play=play,
)
