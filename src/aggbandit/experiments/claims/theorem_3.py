"""Theorem 3: on the hard instance nobody's mean regret is lower than the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aggbandit import adversaries, learners, theory
from aggbandit._arrays import FloatArray
from aggbandit.experiments.claims.base import (
    Chart,
    Claim,
    Estimate,
    Finding,
    Outcome,
    Series,
    Tell,
    at_least,
    at_most,
    mean_over,
    mean_series,
    named,
    played,
    ratio_of_means,
)
from aggbandit.mdp import instances
from aggbandit.mdp.tabular import TabularMDP

LEARNERS = ("uniform", "po-known", "po-unknown", "po-practical", "po-model-free", "reinforce")
H, S, A = 4, 3, 2
OPEN_GAP = 16.0  # at which the instance can be learned


def regrets(mdp: TabularMDP, kind: str, learner: Any, K: int, seeds: int, scale: float = 1.0) -> FloatArray:
    """Final regrets, one a seed of the instance: hidden actions, noise and draws all differ."""
    found = np.empty(seeds)
    for seed in range(seeds):
        losses: Any = adversaries.make(kind, mdp, scale=scale, seed=seed)
        chosen = learner
        if learner == "told":
            chosen = learners.make("fixed-policy", given=losses.best_actions)
        found[seed] = played(mdp, losses, chosen, K, 1).regret[0, -1]
    return found


def least(ratios: Sequence[Estimate], bound: float) -> Estimate:
    """The one that speaks most against "at least `bound`": whole below it, or else with the lowest end."""
    return min(ratios, key=lambda ratio: (ratio.high >= bound, ratio.low))


def play(full: bool, tell: Tell) -> Outcome:
    Ks = [1000, 4000, 16_000] if full else [500, 2000]
    seeds = 64 if full else 32
    findings: list[Finding] = []
    series: list[Series] = []
    scattered = instances.make("lower-bound", states=S, actions=A, horizon=H)
    bandit = instances.make("multitask", tasks=H, actions=A)
    bounds = [theory.lower_bound(H=H, S=S, A=A, K=K) for K in Ks]
    for kind, mdp, floors in (
        ("lower-bound", scattered, bounds),
        ("multitask", bandit, [theory.multitask_lower_bound(tasks=H, A=A, K=K) for K in Ks]),
    ):
        for learner in LEARNERS:
            tell(f"{learner}, {kind}, {seeds} seeds")
            finals = [regrets(mdp, kind, learner, K, seeds) for K in Ks]
            ratios = [mean_over(values, floor) for values, floor in zip(finals, floors, strict=True)]
            what = f"least regret over bound, {kind}: {named(learner)}"
            findings.append(at_least(what, least(ratios, 1.0), 1.0, "{:.2f}"))
            if kind == "lower-bound":
                series.append(mean_series(named(learner), Ks, finals))
    series.append(Series("lower bound", Ks, bounds, guide=True))
    K = Ks[-1]
    told = mean_over(regrets(scattered, "lower-bound", "told", K, seeds), bounds[-1])
    findings.append(
        at_most("control: regret over bound of one who is told the hidden actions", told, 0.5, "{:.2f}",
                ": knowing, not luck, gets below the bound")
    )  # fmt: skip
    pair = [regrets(scattered, "lower-bound", name, K, seeds, scale=OPEN_GAP) for name in ("po-model-free", "uniform")]
    share = ratio_of_means(np.stack(pair, axis=1))
    findings.append(
        at_most(f"control: {named('po-model-free')} at {OPEN_GAP:g} times the gap, share of uniform's", share, 0.9,
                "{:.2f}", ": there something can be learned")
    )  # fmt: skip
    return Outcome(
        findings, Chart(x="episodes K, the instance tuned to each", y="regret, mean over seeds", series=series)
    )


CLAIM = Claim(
    id="theorem-3",
    title="Theorem 3: no learner beats H² √(S A K)",
    statement="For every learner there is an instance with expected regret Ω̃(H² √(S A K)), known dynamics or not.",
    test="The instance of the proof (H, S, A = 4, 3, 2), its gap tuned to K, with the constant (σ / 10) (H-1)² √(S A "
    "K), and the multi-task bandit inside it (4 tasks, 2 arms) with σ k² √(A K) / 16; the mean over the hidden "
    "actions, one seed each, at the K where it is least.",
    false_if="Some learner's mean regret over seeds lies below the bound, its whole interval included.",
    look_at="Also the uniform policy is only 5 (1 - 1/A) times above the bound: at this gap nothing can be learned, "
    "by design. The two controls show that the measurement could come out below.",
    minutes=4.0,
    play=play,
)
