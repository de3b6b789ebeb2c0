"""The identities that the proofs rest on, computed: zero to rounding."""

from __future__ import annotations

import numpy as np

from aggbandit import planning
from aggbandit._arrays import FloatArray
from aggbandit.experiments.claims.base import Chart, Claim, Outcome, Series, Tell, at_most, small_random
from aggbandit.experiments.diagnosis import second_moment_of_totals
from aggbandit.mdp.tabular import TabularMDP

ROUNDING = 1e-12


def play(full: bool, tell: Tell) -> Outcome:
    rng = np.random.default_rng(0)
    worst = {"U - Q": 0.0, "value difference": 0.0, "mean of Û": 0.0, "moment": 0.0}
    trials = 200 if full else 40
    for trial in range(trials):
        H, S, A = (int(n) for n in rng.integers([2, 2, 2], [6, 6, 4]))
        mdp = small_random(trial, H=H, S=S, A=A)
        policy, other = (rng.dirichlet(np.ones(A), (H, S)) for _ in range(2))
        loss = rng.random((H, S, A))
        gamma = float(rng.uniform(0.01, 0.2))
        Q, U = planning.action_values(mdp, policy, loss), planning.trajectory_values(mdp, policy, loss)
        worst["U - Q"] = max(worst["U - Q"], float(np.ptp(U - Q, axis=2).max()))
        gap = planning.values(mdp, policy, loss)[0] @ mdp.initial - planning.values(mdp, other, loss)[0] @ mdp.initial
        reach_other = planning.occupancy(mdp, other)
        summed = (reach_other[:, :, None] * (policy - other) * U).sum()
        worst["value difference"] = max(worst["value difference"], abs(float(gap - summed)))
        reach = planning.occupancy(mdp, policy)
        mu = reach[:, :, None] * policy
        # Û pays L / (μ + γ) on a visit; the mean of L on visits is that of μ weighted by U
        estimate = mu * U / (mu + gamma)
        direct = _mean_estimate(mdp, policy, loss, gamma)
        worst["mean of Û"] = max(worst["mean of Û"], float(np.abs(estimate - direct).max()))
        second = mu * second_moment_of_totals(mdp, policy, loss) / (mu + gamma) ** 2
        worst["moment"] = max(worst["moment"], float((second * (mu + gamma) / H**2).max()))
    tell(f"{trials} random instances")
    findings = [
        at_most("U - Q: greatest spread over the actions", worst["U - Q"], ROUNDING, "{:.1e}"),
        at_most("value difference with U: greatest error", worst["value difference"], ROUNDING, "{:.1e}"),
        at_most("E[Û] - μ/(μ+γ) U: greatest error", worst["mean of Û"], ROUNDING, "{:.1e}"),
        at_most("E[Û²] (μ+γ) / H²: greatest", worst["moment"], 1.0),
    ]
    bars = [Series(name, [0], [value]) for name, value in worst.items()]
    return Outcome(findings, Chart(x="", y="greatest over all instances", series=bars, bars=True))


def _mean_estimate(mdp: TabularMDP, policy: FloatArray, loss: FloatArray, gamma: float) -> FloatArray:
    """E[Û_h(s, a)] by following the total along with the chain: the joint law of (visit, mean of L)."""
    p, pi, ell = mdp.transition, policy, loss
    H, S, A = ell.shape
    found = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                # mass and expected loss of the paths that pass (h, s, a), pushed forward to the end
                mass, paid = np.array(mdp.initial), np.zeros(S)
                for i in range(H):
                    weight = pi[i].copy()
                    if i == h:
                        weight = np.zeros((S, A))
                        weight[s, a] = pi[h, s, a]
                    flow = mass[:, None] * weight
                    carried = paid[:, None] * weight + flow * ell[i]
                    mass, paid = np.einsum("sa,sat->t", flow, p[i]), np.einsum("sa,sat->t", carried, p[i])
                visited = float(mass.sum())
                found[h, s, a] = paid.sum() / (visited + gamma)
    return found


CLAIM = Claim(
    id="identities",
    title="U - Q, the value difference, and the estimator's moments",
    statement="U - Q does not depend on the action (Lemma 2); the value difference lemma holds with U (Corollary 1); "
    "E[Û] = μ/(μ+γ) U (Lemma 3); E[Û²] <= H²/(μ+γ).",
    test="Random instances, policies and losses; everything by dynamic programming, the mean of Û also by pushing the "
    "total along the chain for each (h, s, a).",
    false_if="A difference is larger than rounding, or the second moment exceeds its bound.",
    look_at="The errors are those of double precision; the second moment shows how much room the lemma leaves.",
    play=play,
)
