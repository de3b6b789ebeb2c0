"""Theorem 2: with unknown dynamics regret grows as H³ S √(A K), and what not knowing costs."""

from __future__ import annotations

from math import sqrt

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.experiments.claims.base import (
    WORLDS,
    Chart,
    Claim,
    Finding,
    Outcome,
    Series,
    Tell,
    at_most,
    exponent,
    final_regrets,
    growth_findings,
    mean_series,
    named,
    played,
    power,
    ratio_of_means,
    world,
)

SIZE = 3, 3, 2  # H, S, A
STATES, STEPS = (2, 3, 4), (2, 3, 4)


def play(full: bool, tell: Tell) -> Outcome:
    H, S, A = SIZE
    replicas = 16 if full else 4
    findings: list[Finding] = []
    series: list[Series] = []
    order = "(H³ S √(A K))"
    prices = []
    for kind in WORLDS:
        top = (7 if full else 6) if kind == WORLDS[0] else (6.5 if full else 5.5)
        Ks = [round(10 ** (top - back)) for back in ((3, 2, 1, 0) if full else (2, 1, 0))]
        finals: dict[str, list[FloatArray]] = {"po-known": [], "po-unknown": []}
        for learner in finals if kind == WORLDS[0] else ("po-unknown",):
            for K in Ks:
                tell(f"{learner}, {kind}, K = {K:,}")
                result = played(*world(kind, 1, H, S, A), learner, K, replicas, step_size="main")
                finals[learner].append(result.regret[:, -1])
        share = float(finals["po-unknown"][-1].mean())
        share /= float(played(*world(kind, 1, H, S, A), "uniform", Ks[-1], 1).regret[0, -1])
        label = f"po-unknown, {kind}"
        findings += growth_findings(label, finals["po-unknown"], Ks, share, lambda K: H**3 * S * sqrt(A * K), order)
        if kind == WORLDS[0]:
            prices = [
                ratio_of_means(np.stack([u, k], axis=1))
                for u, k in zip(finals["po-unknown"], finals["po-known"], strict=True)
            ]
            series = [mean_series(f"{named(learner)}, {kind}", Ks, finals[learner]) for learner in finals]
            start = float(series[1].y[0])
            guide = Series("slope 1/2", Ks, [start * sqrt(K / Ks[0]) for K in Ks], guide=True)
        else:
            series.append(mean_series(label, Ks, finals["po-unknown"]))
    told = ", ".join(price.told("{:.2f}") for price in prices)
    allowed = H * sqrt(S)  # H³ S √(A K) over H² √(S A K)
    last = at_most("", prices[-1], allowed, "{:.2f}")
    findings.append(
        Finding("price of not knowing, R(Alg. 2) / R(Alg. 1) at each K", told,
                f"the last at most H √S = {allowed:.1f}, the ratio of the bounds", last.verdict)
    )  # fmt: skip
    K, replicas, seeds = (10**6, 8, range(2, 6)) if full else (10**5, 4, range(2, 4))
    # the next exponents are those of the lower order, H⁴ S³ A ι²
    for what, sizes, values, limits in (
        ("S", [(H, s, A) for s in STATES], STATES, (1.0, 3.0, 1.2)),
        ("H", [(h, S, A) for h in STEPS], STEPS, (3.0, 4.0, 3.2)),
    ):
        by_size = []
        for size in sizes:
            tell(f"po-unknown, H, S, A = {', '.join(map(str, size))}, K = {K:,}")
            by_size.append(final_regrets(WORLDS[0], seeds, size, "po-unknown", K, replicas, step_size="main"))
        findings.append(power(f"exponent in {what}, {WORLDS[0]}, K = {K:,}", exponent(values, by_size), *limits))
    return Outcome(
        findings,
        Chart(x="episodes K, each with its own step size", y="regret after K episodes", series=[*series, guide]),
    )


CLAIM = Claim(
    id="theorem-2",
    title="Theorem 2: regret H³ S √(A K) with unknown dynamics",
    statement="Algorithm 2 with its step size for K has regret Õ(H³ S √(A K) + H⁴ S³ A) with high probability.",
    test="po-unknown (aggregate, dynamics unknown) and po-known with the main text's step on one random instance (H, "
    "S, A = 3, 3, 2) with fixed and with switching losses, and on the hard instance with 8 times its gap; then S and "
    "H from 2 to 4.",
    false_if="The slope stays above 1/2 where the learner has learnt, an exponent exceeds that of the "
    "lower order, or the price exceeds the ratio of the bounds.",
    look_at="How long the confidence sets are whole simplices (about 10 ln(10HSAK/δ) visits a row): until then the "
    "algorithm hardly learns, and the slope is that of a linear regret. At these K the lower order H⁴ S³ A ι² is the "
    "larger one.",
    minutes=40.0,
    play=play,
)
