"""How far measured regret lies below each bound."""

from __future__ import annotations

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
    fixed,
    played,
    small_random,
)
from aggbandit.mdp import instances


def play(full: bool, tell: Tell) -> Outcome:
    H, S, A = 3, 4, 2
    Ks = [10**4, 10**5, 10**6, 10**7] if full else [10**4, 10**5, 10**6]
    mdp = small_random(1, H=H, S=S, A=A)
    ratios = []
    for K in Ks:
        tell(f"Theorem 1, K = {K:,}")
        regret = float(played(mdp, fixed(mdp, 1), "po-known", K, 8).regret[:, -1].max())
        ratios.append(regret / theory.known_regret_bound(H=H, S=S, A=A, K=K))
    trivial = [K * H / theory.known_regret_bound(H=H, S=S, A=A, K=K) for K in Ks]
    findings = [
        Finding("Theorem 1: worst of 8 replicas over the bound", f"{max(ratios):.4f}", "at most 1",
                HOLDS if max(ratios) <= 1 else FAILS),
        Finding("Theorem 1: the trivial bound H K over it", ", ".join(f"{value:.2g}" for value in trivial),
                "the theorem says something where this exceeds 1", HOLDS),
    ]  # fmt: skip
    K = 10**5 if full else 10**4
    tell(f"Theorem 2, K = {K:,}")
    regret = float(played(mdp, fixed(mdp, 1), "po-unknown", K, 2).regret[:, -1].max())
    ratio = regret / theory.unknown_regret_order(H=H, S=S, A=A, K=K)
    findings.append(
        Finding(
            f"Theorem 2 at K = {K:,}: regret over H³S√(AK) ι + H⁴S³A ι²", f"{ratio:.2e}", "no constant is stated", HOLDS
        )
    )
    K = 4000
    tell(f"Theorem 3, K = {K:,}")
    hard = instances.make("lower-bound", states=S, actions=A, horizon=H)
    total = sum(
        float(played(hard, adversaries.make("lower-bound", hard, seed=seed), "po-known", K, 1).regret[0, -1])
        for seed in range(32)
    )
    ratio = total / 32 / theory.lower_bound(H=H, S=S, A=A, K=K)
    findings.append(
        Finding("Theorem 3: mean regret over the bound", f"{ratio:.2f}", "at least 1", HOLDS if ratio >= 1 else FAILS)
    )
    series = [
        Series("worst measured regret over Theorem 1's bound", Ks, ratios),
        Series("the trivial bound H K over it", Ks, trivial, guide=True),
    ]
    return Outcome(findings, Chart(x="episodes K", y="share of the bound", series=series))


CLAIM = Claim(
    id="looseness",
    title="How loose the bounds are",
    statement="Theorems 1, 2 and 3, with the constants of their proofs where the paper gives them.",
    test="Measured regret divided by the bound, on the instance of Theorem 1's claim and on the hard instance.",
    false_if="Measured regret exceeds an upper bound, or stays below the lower one in the mean.",
    look_at="Where the trivial bound H K is the smaller one, a theorem says nothing yet: that is so up to K of about "
    "10⁶ and beyond.",
    play=play,
)
