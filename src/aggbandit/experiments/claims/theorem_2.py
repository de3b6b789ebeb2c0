"""Theorem 2: with unknown dynamics regret grows as H³ S √(A K), and what not knowing costs."""

from __future__ import annotations

from math import sqrt

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
    mean_series,
    near_half,
    played,
    slope_between,
    small_random,
)


def play(full: bool, tell: Tell) -> Outcome:
    Ks = [10**4, 10**5, 10**6, 10**7] if full else [10**4, 10**5, 10**6]
    replicas = 32 if full else 4
    mdp = small_random(1, S=3)
    findings, series, finals_by = [], [], {}
    for learner in ("po-known", "po-unknown"):
        finals = []
        for K in Ks:
            tell(f"{learner}, K = {K:,}")
            finals.append(played(mdp, fixed(mdp, 1), learner, K, replicas, step_size="main").regret[:, -1])
        finals_by[learner] = finals
        series.append(mean_series(learner, Ks, finals))
    findings.append(near_half("slope in K, po-unknown, last decade", slope_between(finals_by["po-unknown"], Ks)))
    prices = [float(u.mean() / k.mean()) for u, k in zip(finals_by["po-unknown"], finals_by["po-known"], strict=True)]
    bound = 3 * sqrt(3)  # H³ S √(A K) over H² √(S A K)
    findings.append(
        Finding(
            "price of not knowing, R(Alg. 2) / R(Alg. 1) over the K",
            ", ".join(f"{price:.2f}" for price in prices),
            f"the bounds allow H √S = {bound:.1f}",
            HOLDS if prices[-1] <= bound else OPEN,
        )
    )
    start = float(series[1].y[0])
    series.append(Series("slope 1/2", Ks, [start * sqrt(K / Ks[0]) for K in Ks], guide=True))
    return Outcome(
        findings, Chart(x="episodes K, each with its own step size", y="regret after K episodes", series=series)
    )


CLAIM = Claim(
    id="theorem-2",
    title="Theorem 2: regret H³ S √(A K) with unknown dynamics",
    statement="Algorithm 2 with its step size for K has regret Õ(H³ S √(A K) + H⁴ S³ A) with high probability.",
    test="po-unknown and po-known with the main text's step on one random instance (H, S, A = 3, 3, 2), fixed losses.",
    false_if="The slope stays above 1/2 where K is far beyond H² S⁴ A, or the price exceeds the ratio of the bounds.",
    look_at="How long the confidence sets are whole simplices (about 10 ln(10HSAK/δ) visits a row): until then the "
    "algorithm hardly learns, and the slope is that of a linear regret.",
    play=play,
)
