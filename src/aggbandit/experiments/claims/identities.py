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
    worst = dict.fromkeys(("U - Q", "value difference", "mean of Û", "mean of Û, μ̄", "moment", "second moment"), 0.0)

    def note(what: str, value: float) -> None:
        worst[what] = max(worst[what], value)

    trials = 200 if full else 40
    for trial in range(trials):
        H, S, A = (int(n) for n in rng.integers([2, 2, 2], [6, 6, 4]))
        mdp = small_random(trial, H=H, S=S, A=A)
        policy, other = (rng.dirichlet(np.ones(A), (H, S)) for _ in range(2))
        loss = rng.random((H, S, A))
        gamma = float(rng.uniform(0.01, 0.2))
        # U from its definition, by pushing the total along the chain; Q from the last step backwards
        visited, paid, squared = totals_on_visits(mdp, policy, loss)
        Q = planning.action_values(mdp, policy, loss)
        U = np.divide(paid, visited, out=Q.copy(), where=visited > 0)  # what nobody visits has no U
        note("U - Q", float(np.ptp(U - Q, axis=2).max()))
        gap = planning.values(mdp, policy, loss)[0] @ mdp.initial - planning.values(mdp, other, loss)[0] @ mdp.initial
        summed = (planning.occupancy(mdp, other)[:, :, None] * (policy - other) * U).sum()
        note("value difference", abs(float(gap - summed)))
        # Û is L / (μ + γ) on a visit and 0 otherwise; the formulas use what the learners compute
        mu = planning.occupancy(mdp, policy)[:, :, None] * policy
        formula = planning.trajectory_values(mdp, policy, loss)
        note("mean of Û", float(np.abs(paid / (mu + gamma) - mu / (mu + gamma) * formula).max()))
        upper = np.minimum(1.0, mu + rng.random((H, S, 1)) * policy)  # any μ̄ >= μ that was settled before
        note("mean of Û, μ̄", float(np.abs(paid / (upper + gamma) - mu / (upper + gamma) * formula).max()))
        second = squared / (mu + gamma) ** 2
        by_formula = mu * second_moment_of_totals(mdp, policy, loss) / (mu + gamma) ** 2
        note("second moment", float(np.abs(second - by_formula).max()))
        note("moment", float((second * (mu + gamma) / H**2).max()))
    tell(f"{trials} random instances")
    findings = [
        at_most(what, worst[key], ROUNDING, "{:.1e}")
        for what, key in (
            ("U - Q: greatest spread over the actions", "U - Q"),
            ("value difference with U: greatest error", "value difference"),
            ("E[Û] - μ/(μ+γ) U: greatest error", "mean of Û"),
            ("E[Û] - μ/(μ̄+γ) U, dynamics unknown: greatest error", "mean of Û, μ̄"),
            ("E[Û²] against its formula: greatest error", "second moment"),
        )
    ]
    findings.append(at_most("E[Û²] (μ+γ) / H²: greatest", worst["moment"], 1.0))
    errors = [Series(name, [0], [max(value, 1e-17)]) for name, value in worst.items() if name != "moment"]
    bars = [*errors, Series("rounding allowed", [0], [ROUNDING])]
    return Outcome(findings, Chart(x="", y="greatest error over all instances", series=bars, bars=True))


def totals_on_visits(
    mdp: TabularMDP, policy: FloatArray, loss: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E[I], E[I L] and E[I L²] with I = 1{s_h = s, a_h = a}, all (H, S, A), by following the paths that pass there."""
    H, S, A = loss.shape
    found = np.empty((3, H, S, A))
    for h, s, a in np.ndindex(H, S, A):
        sums = np.zeros((3, S))  # of 1, L so far and L² so far, over the paths, by the state they are in
        sums[0] = mdp.initial
        for i in range(H):
            weight = policy[i]
            if i == h:
                weight = np.zeros((S, A))
                weight[s, a] = policy[h, s, a]
            mass, total, square = (row[:, None] * weight for row in sums)
            now = loss[i]
            paid = np.stack([mass, total + mass * now, square + 2.0 * total * now + mass * now**2])
            sums = np.einsum("nsa,sat->nt", paid, mdp.transition[i])
        found[:, h, s, a] = sums.sum(axis=1)
    return found[0], found[1], found[2]


CLAIM = Claim(
    id="identities",
    title="U - Q, the value difference, and the estimator's moments",
    statement="U - Q does not depend on the action (Lemma 2); the value difference lemma holds with U (Corollary 1); "
    "E[Û] = μ/(μ+γ) U (Lemmas 3 and 16); E[Û²] <= H²/(μ+γ).",
    test="Random instances, policies and losses; U and both moments from their definition, by pushing the total "
    "along the chain through each (h, s, a), against Q and the formulas, which come from recursions over the steps.",
    false_if="A difference is larger than rounding, or the second moment exceeds its bound.",
    look_at="The errors are those of double precision; the second moment shows how much room the lemma leaves.",
    minutes=0.1,
    play=play,
)
