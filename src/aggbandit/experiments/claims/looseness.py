"""How far measured regret lies below each bound."""

from __future__ import annotations

import numpy as np

from aggbandit import adversaries, theory
from aggbandit.experiments.claims.base import (
    FAILS,
    HOLDS,
    OPEN,
    Chart,
    Claim,
    Finding,
    Outcome,
    Series,
    Tell,
    at_least,
    at_most,
    fixed,
    mean_over,
    played,
    small_random,
)
from aggbandit.experiments.diagnosis import LABELS, Diagnosis, diagnose
from aggbandit.mdp import instances

H, S, A = 3, 4, 2
REPLICAS = 16


def play(full: bool, tell: Tell) -> Outcome:
    Ks = [10**4, 10**5, 10**6, 10**7] if full else [10**4, 10**5, 10**6]
    mdp = small_random(1, H=H, S=S, A=A)
    ratios = []
    for K in Ks:
        tell(f"Theorem 1, K = {K:,}")
        regret = float(played(mdp, fixed(mdp, 1), "po-known", K, REPLICAS).regret[:, -1].max())
        ratios.append(regret / theory.known_regret_bound(H=H, S=S, A=A, K=K))
    trivial = [K * H / theory.known_regret_bound(H=H, S=S, A=A, K=K) for K in Ks]
    findings = [
        at_most(f"Theorem 1: worst of {REPLICAS} replicas over the bound, at the worst K", max(ratios), 1.0, "{:.4f}"),
        Finding("Theorem 1: the trivial bound H K over it, at each K", ", ".join(f"{value:.2g}" for value in trivial),
                "above 1: the theorem says something", HOLDS if trivial[-1] > 1.0 else OPEN),
    ]  # fmt: skip
    K = 10**5 if full else 3000
    for learner, number in (("po-known", 1), ("po-unknown", 2)):
        tell(f"the proof of Theorem {number}, K = {K:,}")
        findings += parts_over_bounds(number, K, diagnose(mdp, fixed(mdp, 1), learner, episodes=K, checkpoints=10))
    K = 4000
    tell(f"Theorem 3, K = {K:,}")
    hard = instances.make("lower-bound", states=S, actions=A, horizon=H)
    finals = np.array(
        [played(hard, adversaries.make("lower-bound", hard, seed=seed), "po-known", K, 1).regret[0, -1]
         for seed in range(32)]
    )  # fmt: skip
    ratio = mean_over(finals, theory.lower_bound(H=H, S=S, A=A, K=K))
    findings.append(at_least("Theorem 3: mean regret over the bound, 32 seeds", ratio, 1.0, "{:.2f}"))
    series = [
        Series("worst measured regret over Theorem 1's bound", Ks, ratios),
        Series("the trivial bound H K over it", Ks, trivial, guide=True),
    ]
    return Outcome(findings, Chart(x="episodes K", y="share of the bound", series=series))


def parts_over_bounds(number: int, K: int, found: Diagnosis) -> list[Finding]:
    """A run of Algorithm 1 or 2 taken apart: each part over its lemma's bound, the good events, and the whole."""
    ratios = {name: found.parts[name] / found.bounds[name] for name in LABELS}
    told = ", ".join(f"{LABELS[name]} {float(ratio.max()):.2g}" for name, ratio in ratios.items())
    within = all((found.parts[name] <= found.bounds[name]).all() for name in LABELS)  # a bound may be negative
    failed = [event.name for event in found.good_events if not event.holds]
    findings = [
        Finding(f"Theorem {number}, K = {K:,}: each part over its lemma's bound", told, "at most 1, on the good events",
                HOLDS if within else OPEN if failed else FAILS),
        Finding(f"Theorem {number}, K = {K:,}: good events in one run",
                "all hold" if not failed else ", ".join(failed) + " failed", "all, with probability 95 %",
                HOLDS if not failed else OPEN),
        at_most(f"Theorem {number}, K = {K:,}: the parts' sum against the regret, relative", found.gap, 1e-8, "{:.1g}"),
    ]  # fmt: skip
    if found.widths is not None:
        bound = theory.unknown_regret_bound(H=H, S=S, A=A, K=K, widths=float(found.widths[-1]))
        ratio = float(found.regret[-1]) / bound
        findings.append(
            at_most(f"Theorem 2, K = {K:,}: regret over its bound, Σ (μ̄ - μ̲) as measured", ratio, 1.0, "{:.4f}")
        )
    return findings


CLAIM = Claim(
    id="looseness",
    title="How loose the bounds are",
    statement="Theorems 1, 2 and 3, with the constants of their proofs where the paper gives them.",
    test="Measured regret divided by the bound, on the instance of Theorem 1's claim and on the hard instance; and "
    "one run of each algorithm taken apart as its proof does.",
    false_if="Measured regret exceeds an upper bound, or stays below the lower one in the mean; a part exceeds its "
    "lemma's bound although the good events hold; or the parts do not add up.",
    look_at="Where the trivial bound H K is the smaller one, a theorem says nothing yet: on this instance that is so "
    "up to K of about 10⁵.",
    minutes=2.0,
    play=play,
)
