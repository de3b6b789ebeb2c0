"""Theorem 1: with known dynamics regret grows as H² √(S A K)."""

from __future__ import annotations

from math import sqrt

from aggbandit import adversaries
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
    exponent,
    fixed,
    mean_series,
    near_half,
    played,
    slope_between,
    small_random,
)
from aggbandit.mdp import instances


def play(full: bool, tell: Tell) -> Outcome:
    Ks = [10**4, 10**5, 10**6, 10**7] if full else [10**4, 10**5, 10**6]
    replicas = 64 if full else 16
    findings: list[Finding] = []
    series: list[Series] = []
    mdp = small_random(1)
    hard = instances.make("lower-bound", states=4, actions=2, horizon=3)
    for label, world, losses in (
        ("fixed losses", mdp, fixed(mdp, 1)),
        ("switching losses", mdp, adversaries.make("switching", mdp, blocks=8, seed=1)),
        ("hard instance", hard, adversaries.make("lower-bound", hard, scale=8.0, seed=1)),
    ):
        finals = []
        for K in Ks:
            tell(f"{label}, K = {K:,}")
            finals.append(played(world, losses, "po-known", K, replicas, step_size="main").regret[:, -1])
        findings.append(near_half(f"slope in K, {label}, last decade", slope_between(finals, Ks)))
        series.append(mean_series(label, Ks, finals))
        scaled = [float(f.mean()) / (3**2 * sqrt(4 * 2 * K)) for f, K in zip(finals, Ks, strict=True)]
        if label == "fixed losses":
            change = scaled[-1] / scaled[-2]
            verdict = HOLDS if change < 10 ** (1 / 6) else OPEN
            told = ", ".join(f"{value:.3f}" for value in scaled)
            findings.append(Finding("R / (H² √(S A K)) over the K", told, "flattens", verdict))
    start = series[0].y[0]
    series.append(Series("slope 1/2", Ks, [start * sqrt(K / Ks[0]) for K in Ks], guide=True))

    K = 10**7 if full else 10**6
    sizes, regrets = [], []
    for S in (2, 4, 8):
        tell(f"S A = {2 * S}")
        world = small_random(2, S=S)
        sizes.append(2 * S)
        regrets.append(
            float(played(world, fixed(world, 2), "po-known", K, replicas, step_size="main").regret[:, -1].mean())
        )
    found = exponent(sizes, regrets)
    findings.append(
        Finding(f"exponent in S A at K = {K:,}", f"{found:.2f}", "at most 1/2", HOLDS if found <= 0.6 else FAILS)
    )
    steps, regrets = (2, 3, 4, 6), []
    for H in steps:
        tell(f"H = {H}")
        world = small_random(3, H=H)
        regrets.append(
            float(played(world, fixed(world, 3), "po-known", K, replicas, step_size="main").regret[:, -1].mean())
        )
    found = exponent(steps, regrets)
    findings.append(
        Finding(f"exponent in H at K = {K:,}", f"{found:.2f}", "at most 3 (H² √(SAK) + H³ √K)",
                HOLDS if found <= 3.2 else FAILS)
    )  # fmt: skip
    return Outcome(
        findings, Chart(x="episodes K, each with its own step size", y="regret after K episodes", series=series)
    )


CLAIM = Claim(
    id="theorem-1",
    title="Theorem 1: regret H² √(S A K) with known dynamics",
    statement="Algorithm 1 with its step size for K has regret Õ(H² √(S A K) + H³ √K) with high probability.",
    test="po-known with the main text's step on a random instance (H, S, A = 3, 4, 2) with fixed and with switching "
    "losses, and on the hard instance with 8 times its gap; then S A from 4 to 16 and H from 2 to 6.",
    false_if="The slope of log regret against log K stays above 1/2 as K grows, or the exponents exceed the theorem's.",
    look_at="The slope over the last decade and its interval: 1/2 and 2/3 must be told apart. Bounds are upper bounds: "
    "smaller exponents in S A and H do not speak against them.",
    play=play,
)
