"""One run taken apart as the proof does: BIAS₁, BIAS₂, REG, BONUS, the good events, and the bounds on each.

Everything is exact, given the trajectories: expectations by dynamic programming, nothing by sampling.  The quantities
are recomputed here from their definitions, episode by episode, for the policies that the learner plays; what the
learner holds inside is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit import planning, theory
from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_integer
from aggbandit.errors import InvalidInputError
from aggbandit.learners import as_learner
from aggbandit.learners.base import INIT_STREAM, KNOWN, UPDATE_STREAM, Draws, Problem
from aggbandit.learners.parts.confidence_sets import bernstein_box, bernstein_radius, logarithm
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.plain import sampler
from aggbandit.simulation.losses import LossReader, LossSum
from aggbandit.simulation.protocol import observed
from aggbandit.simulation.run import MAX_REPLICAS, checkpoint_episodes
from aggbandit.simulation.session import MAX_SEED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = ("bias_1", "bias_2", "reg", "bonus")
LABELS = {"bias_1": "BIAS₁", "bias_2": "BIAS₂", "reg": "REG", "bonus": "BONUS"}


@dataclass(frozen=True, kw_only=True, eq=False)
class GoodEvent:
    """An event of the proof: it holds while `value` stays at most `bound`."""

    name: str
    meaning: str
    value: FloatArray  # (C,)
    bound: FloatArray  # (C,)

    @property
    def holds(self) -> bool:
        """At every checkpoint."""
        return bool((self.value <= self.bound).all())

    @property
    def margin(self) -> float:
        """The least room, as a share of the bound: negative where the event failed."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(self.bound > 0, (self.bound - self.value) / self.bound, self.bound - self.value)
        return float(room.min())


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What `diagnose` found.  Sums up to each of C checkpoints, against the best fixed policy of all K episodes."""

    episodes: IntArray  # (C,)
    regret: FloatArray  # (C,) Σ V^{π^k}(ℓ^k) - V^{π*}(ℓ^k), by the occupancies; the four parts add up to it
    parts: dict[str, FloatArray]  # bias_1, bias_2, reg, bonus: (C,) each
    bounds: dict[str, FloatArray]  # the lemma's bound on each part, with γ, η and the measured Σ μ* b
    bonus_optimism: FloatArray  # (C,) Σ μ̄ b - Σ μ* b: BONUS itself with known dynamics, else at least BONUS
    good_events: list[GoodEvent]
    widths: FloatArray | None  # (C,) Σ_k Σ_{h,s,a} (μ̄ - μ̲); None where dynamics are known
    coverage: FloatArray | None  # (C,) share of episodes whose confidence set held the true transitions
    first_moment: FloatArray  # (C,) greatest E[Û] / U over (h, s, a) at the checkpoint; the lemmas say μ / (μ̄ + γ) <= 1
    second_moment: FloatArray  # (C,) greatest E[Û²] (μ̄ + γ) / H² over (h, s, a) at the checkpoint; a lemma says <= 1
    learner: str
    caveats: list[str]  # conditions of the lemmas that the learner's arguments break: the bounds then promise nothing

    @property
    def gap(self) -> float:
        """How far the parts are from adding up to the regret, relative to the largest of them.

        The regret is computed from losses and occupancies, without U, Û or B: this is Corollary 1 put to the test, too.
        """
        total = np.sum([self.parts[name] for name in PARTS], axis=0)
        scale = np.maximum(np.abs([self.parts[name] for name in PARTS]).max(axis=0), 1e-300)
        return float((np.abs(total - self.regret) / scale).max())

    def table(self) -> str:
        """The last checkpoint in words: each part beside its bound, each event with its margin."""
        lines = [f"{self.learner}, after {int(self.episodes[-1])} episodes", ""]
        lines.append(f"{'':8}{'measured':>14}  {'bound':>12}")
        for name in PARTS:
            lines.append(f"{LABELS[name]:8}{self.parts[name][-1]:>14.6g}  {self.bounds[name][-1]:>12.4g}")
        lines.append(f"{'regret':8}{self.regret[-1]:>14.6g}  {sum(self.bounds[name][-1] for name in PARTS):>12.4g}")
        lines.append("")
        for event in self.good_events:
            verdict = "holds" if event.holds else "FAILS"
            margin = f", margin {100 * event.margin:.1f} %" if event.bound.any() else ""
            lines.append(f"{event.name:4}{verdict}{margin}: {event.meaning}")
        if self.coverage is not None and self.widths is not None:
            lines.append(f"the set held the true transitions in {100 * self.coverage[-1]:.1f} % of the episodes")
            lines.append(f"Σ (μ̄ - μ̲) = {self.widths[-1]:.6g}")
        lines.append(f"greatest E[Û] / U = {self.first_moment.max():.4g} (the lemma: at most 1)")
        mean = "μ" if self.widths is None else "μ̄"
        lines.append(f"greatest E[Û²] ({mean} + γ) / H² = {self.second_moment.max():.4g} (the lemma: at most 1)")
        lines += [f"the bounds promise nothing here: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Figure:
        """The four parts and the regret over episodes; written to `path` if given."""
        from matplotlib.figure import Figure

        styles = {
            "bias_1": ("#D55E00", "-"),
            "bias_2": ("#CC79A7", "--"),
            "reg": ("#0072B2", ":"),
            "bonus": ("#009E73", "-."),
        }
        figure = Figure(figsize=(5.0, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for name, (color, line) in styles.items():
            axes.plot(self.episodes, self.parts[name], line, color=color, linewidth=1.5, label=LABELS[name])
        axes.plot(self.episodes, self.regret, color="black", linewidth=2.0, label="regret, their sum")
        axes.axhline(0.0, color="0.6", linewidth=0.6)
        axes.set_xlabel("episodes")
        axes.set_ylabel("summed up to here")
        axes.set_title(self.learner.split("(")[0] + ": the regret as the proof splits it", fontsize="medium")
        axes.legend(fontsize="small", frameon=False)
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        parts = ", ".join(f"{LABELS[name]} {self.parts[name][-1]:.6g}" for name in PARTS)
        return f"Diagnosis(regret {self.regret[-1]:.6g} = {parts})"


def diagnose(
    mdp: TabularMDP,
    losses: Any,
    learner: Any = "po-known",
    *,
    episodes: int,
    seed: int = 0,
    replica: int = 0,
    checkpoints: Any = None,
) -> Diagnosis:
    """Play one replica of `po-known` or `po-unknown` and split its regret as the paper's proof does.

    The replica is the one of that number in `aggbandit.run` with the same arguments.  The comparator is the best fixed
    policy for all K episodes, at every checkpoint.  O(K) times the cost of planning: made for K up to about 10⁵.
    [eq:LM25-decomposition] [eq:LM25-good-events-known] [eq:LM25-good-events-unknown] [eq:LM25-sum-of-widths]
    [eq:LM25-bonus-optimism]

        R = Σ_k Σ_{h,s} μ*_h(s) ⟨π^k - π*, U^k⟩ = BIAS₁ + BIAS₂ + REG + BONUS
        BIAS₁ = Σ μ* ⟨π^k, U - Û⟩       BIAS₂ = Σ μ* ⟨π*, Û - U⟩
        REG   = Σ μ* ⟨π^k - π*, Û - B⟩  BONUS = Σ μ* ⟨π^k - π*, B⟩

    >>> import aggbandit as ab
    >>> mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=0)
    >>> found = ab.diagnose(mdp, ab.adversaries.make("switching", mdp, blocks=4), "po-known", episodes=50)
    >>> found.gap < 1e-8
    True
    """
    if getattr(mdp, "is_sparse", True):
        raise InvalidInputError("mdp must be a dense aggbandit.TabularMDP; a small sparse one has .transition.")
    chosen = as_learner(learner)
    if not isinstance(chosen, (PolicyOptimizationKnown, PolicyOptimizationUnknown)):
        raise InvalidInputError(f"The proof is that of po-known and po-unknown; {chosen.name} has no such parts.")
    K = require_integer("episodes", episodes, low=1)
    seed = require_integer("seed", seed, low=0, high=MAX_SEED)
    replica = require_integer("replica", replica, low=0, high=MAX_REPLICAS - 1)
    problem = Problem.of(mdp, K, chosen.needs)
    reader = LossReader(losses, mdp, K)
    proof = _Proof(mdp, problem, chosen.bound(problem), reader, seed, replica)
    return proof.followed(checkpoint_episodes(checkpoints, K))


class _Proof:
    """Runs the learner and adds up what the proof adds up."""

    def __init__(
        self, mdp: TabularMDP, problem: Problem, learner: Any, reader: LossReader, seed: int, replica: int
    ) -> None:
        self.mdp, self.problem, self.learner, self.reader = mdp, problem, learner, reader
        self.seed, self.replica = seed, replica
        self.known = learner.needs.dynamics == KNOWN
        told = learner.resolved(problem)
        self.step, self.gamma = float(told["step_size"]), float(told["exploration"])
        self.scale = learner.bonus_scale
        H, S, A = problem.shape
        total = LossSum(reader.shape)
        for block in _blocks(reader, problem.episodes or 0):
            total.add(block)
        best, _ = planning.best_policy(mdp, total.total())
        self.star = np.eye(A)[np.asarray(best)]
        self.reach_star = planning.occupancy(mdp, self.star)
        if not self.known:
            self.counts = np.zeros((H, S, A, S))
            self.log_term = logarithm(H, S, A, problem.episodes or 1, learner.confidence)
            self.log_proof = log(6.0 * H * S * A * (problem.episodes or 1) / learner.confidence)
            self.lower, self.upper = bernstein_box(self.counts, self.log_term, learner.radius_scale)
            self.outside_set = np.zeros((H, S, A), dtype=bool)
            self.outside_proof = np.zeros((H, S, A), dtype=bool)

    def followed(self, marks: IntArray) -> Diagnosis:
        learner, problem = self.learner, self.problem
        sample = sampler(self.mdp)
        state = learner.init(problem, Draws(self.seed, self.replica, 0, INIT_STREAM))
        sums = np.zeros(14)
        rest = np.zeros(14)
        noted = np.zeros((marks.size, 14))
        moments = np.zeros((marks.size, 2))
        c = 0
        for block in _blocks(self.reader, problem.episodes or 0):
            for i, row in enumerate(block.row_n):
                k = block.first + i
                table = block.tables_mhsa[row]
                policy = np.ascontiguousarray(learner.policy(problem, state))
                states, actions = sample(policy, self.replica, k, np.uint64(self.seed))
                seen = observed(learner.needs, k, states, actions, table, None)
                terms = self._terms(policy, table, states, actions, float(seen.total or 0.0))
                adjusted = terms - rest  # Kahan: K terms, each rounded, must still add up to 1e-8
                after = sums + adjusted
                rest = (after - sums) - adjusted
                sums = after
                if k + 1 == marks[c]:
                    noted[c] = sums
                    moments[c] = self._greatest_moments(policy, table)
                    c += 1
                state = learner.update(problem, state, seen, Draws(self.seed, self.replica, k, UPDATE_STREAM))
                if not self.known:
                    self._count(states, actions)
        return self._diagnosis(marks, noted, moments)

    def _terms(
        self, policy: FloatArray, table: FloatArray, states: IntArray, actions: IntArray, total: float
    ) -> FloatArray:
        """This episode's share of every sum, in the order that `_diagnosis` reads."""
        mdp, gamma, H = self.mdp, self.gamma, self.problem.H
        reach = planning.occupancy(mdp, policy)
        U = planning.trajectory_values(mdp, policy, table)
        upper, lower, _, B = bonus_and_reach(mdp, policy, gamma, self.scale, self._box())
        weight = upper[:, :, None] * policy + gamma
        estimate = np.zeros_like(U)
        steps = np.arange(H)
        visited = np.zeros_like(U)
        visited[steps, states, actions] = 1.0
        estimate[steps, states, actions] = total / weight[steps, states, actions]
        expected = reach[:, :, None] * policy / weight * U
        b_tilde = self.scale * (3.0 * gamma * H * policy / weight).sum(axis=2)
        width = (upper - lower)[:, :, None] * policy
        b_bar = self.scale * (H * policy * width / weight).sum(axis=2)
        star, mu = self.star, self.reach_star[:, :, None]
        difference = policy - star
        tilted = mu * policy / weight
        covered = True if self.known else not (self.outside_set[:-1].any())
        proof_covered = True if self.known else not (self.outside_proof[:-1].any())
        return np.array(
            [
                (mu * policy * (U - estimate)).sum(),
                (mu * star * (estimate - U)).sum(),
                (mu * difference * (estimate - B)).sum(),
                (mu * difference * B).sum(),
                ((reach[:, :, None] * policy - mu * star) * table).sum(),
                (self.reach_star * b_tilde).sum(),
                (self.reach_star * b_bar).sum(),
                (upper * b_bar).sum(),
                (mu * policy * (expected - estimate)).sum(),
                (tilted * (visited / weight - 1.0)).sum(),
                width.sum(),
                float(covered),
                float(not proof_covered),
                (upper * b_tilde).sum(),
            ]
        )

    def _box(self) -> tuple[FloatArray, FloatArray] | None:
        return None if self.known else (self.lower, self.upper)

    def _count(self, states: IntArray, actions: IntArray) -> None:
        """Count the transitions of an episode, and look at the visited rows' sets anew."""
        for h in range(self.problem.H - 1):
            at = h, states[h], actions[h]
            self.counts[(*at, states[h + 1])] += 1.0
            row = self.counts[at]
            self.lower[at], self.upper[at] = bernstein_box(row, self.log_term, self.learner.radius_scale)
            p = self.mdp.transition[at]
            self.outside_set[at] = ((p < self.lower[at]) | (p > self.upper[at])).any()
            off = np.abs(p - row / row.sum())
            self.outside_proof[at] = (off > bernstein_radius(row, self.log_proof)).any()

    def _greatest_moments(self, policy: FloatArray, table: FloatArray) -> tuple[float, float]:
        """max E[Û] / U and max E[Û²] (μ̄ + γ) / H², with E[Ûⁿ] = μ E[Lⁿ | s_h = s, a_h = a] / (μ̄ + γ)ⁿ."""
        reach = planning.occupancy(self.mdp, policy)
        upper, _, _, _ = bonus_and_reach(self.mdp, policy, self.gamma, self.scale, self._box())
        weight = upper[:, :, None] * policy + self.gamma
        visited = reach[:, :, None] * policy / weight
        second = visited * second_moment_of_totals(self.mdp, policy, table) / self.problem.H**2
        return float(visited.max()), float(second.max())

    def _diagnosis(self, marks: IntArray, noted: FloatArray, moments: FloatArray) -> Diagnosis:
        H, S, A = self.problem.shape
        K = self.problem.episodes or 1
        delta, gamma = self.learner.confidence, self.gamma
        bias_1, bias_2, reg, bonus, regret, star_tilde, star_bar, bar, g1, g2, widths, covered, uncovered, tilde = (
            noted.T
        )
        bounds = [
            theory.lemma_bounds(
                H=H, S=S, A=A, K=int(n), confidence=delta, step=self.step, exploration=gamma,
                comparator_bonus=float(star_tilde[c]), comparator_width=float(star_bar[c]), width=float(bar[c]),
                dynamics=self.learner.needs.dynamics,
            )
            for c, n in enumerate(marks)
        ]  # fmt: skip
        log_events, log_steps = log(6.0 / delta), log(6.0 * H / delta)
        full = np.full(marks.size, 1.0)
        events = [
            GoodEvent(
                name="G₁" if self.known else "G₃",
                meaning="the estimates do not fall far below their means where π* goes",
                value=g1,
                bound=star_tilde / 3.0 + H * H * log_events / gamma,
            ),
            GoodEvent(
                name="G₂" if self.known else "G₄",
                meaning="visits do not exceed their expectation where they weigh most",
                value=g2,
                bound=full * H * log_steps / (2.0 * gamma**2),
            ),
            GoodEvent(
                name="G₃" if self.known else "G₅",
                meaning="π*'s own actions are not overestimated",
                value=bias_2,
                bound=full * H * H * log_steps / (2.0 * gamma),
            ),
        ]
        if not self.known:
            sum_of_widths = theory.sum_of_widths_order(H=H, S=S, A=A, K=K, confidence=delta)
            events[:0] = [
                GoodEvent(
                    name="G₁",
                    meaning="the true transitions lie within the proof's radius in every episode",
                    value=uncovered,
                    bound=np.zeros(marks.size),
                ),
                GoodEvent(
                    name="G₂",
                    meaning="Σ (μ̄ - μ̲) stays of its order (compared with constant 1; the paper leaves it open)",
                    value=widths,
                    bound=full * sum_of_widths,
                ),
            ]
        return Diagnosis(
            episodes=marks,
            regret=regret,
            parts={"bias_1": bias_1, "bias_2": bias_2, "reg": reg, "bonus": bonus},
            bounds={name: np.array([getattr(bound, name) for bound in bounds]) for name in PARTS},
            bonus_optimism=tilde + bar - star_tilde - star_bar,
            good_events=events,
            widths=None if self.known else widths,
            coverage=None if self.known else covered / marks,
            first_moment=moments[:, 0],
            second_moment=moments[:, 1],
            learner=repr(self.learner),
            caveats=theory.lemmas_do_not_apply(
                H=H,
                step=self.step,
                exploration=gamma,
                dynamics=self.learner.needs.dynamics,
                bonus_scale=self.scale,
                radius_scale=1.0 if self.known else self.learner.radius_scale,
            ),
        )


def bonus_and_reach(
    mdp: TabularMDP, policy: FloatArray, gamma: float, scale: float, box: tuple[FloatArray, FloatArray] | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(μ̄, μ̲, b, B): of Algorithm 1 where `box` is None (then μ̄ = μ̲ = μ), else of Algorithm 2 with this set.

    By their definitions, for one policy; B is B̂ with the kernel of the set that makes it greatest.
    """
    from aggbandit.kernels import occupancy_bounds as kernel

    H, S, A = mdp.shape
    if box is None:
        upper = lower = planning.occupancy(mdp, policy)
    else:
        lower, upper = np.empty((H, S)), np.empty((H, S))
        scratch = np.empty(S), np.empty(S), np.empty(S, np.int64)
        kernel.occupancy_bounds(*box, np.ascontiguousarray(policy), mdp.initial, lower, upper, *scratch)
    weight = upper[:, :, None] * policy + gamma
    width = (upper - lower)[:, :, None] * policy
    local = scale * ((3.0 * gamma * H * policy + H * policy * width) / weight).sum(axis=2)
    B = np.empty((H, S, A))
    following = np.zeros(S)
    for h in range(H - 1, -1, -1):
        B[h] = local[h][:, None]
        if h + 1 < H and box is None:
            B[h] += mdp.transition[h] @ following
        elif h + 1 < H and box is not None:
            order = np.argsort(-following, kind="stable")
            for s in range(S):
                for a in range(A):
                    B[h, s, a] += kernel.extreme_mean(box[0][h, s, a], box[1][h, s, a], following, order)
        following = (policy[h] * B[h]).sum(axis=1)
    return upper, lower, local, B


def second_moment_of_totals(mdp: TabularMDP, policy: FloatArray, table: FloatArray) -> FloatArray:
    """E[L² | s_h = s, a_h = a] of the total L, (H, S, A); 0 for the part before h where (h, s) is unreachable.

    Before and after h are independent given (s, a): with P the sum before and F the sum from h on,
    E[L²] = E[P²|s] + 2 E[P|s] E[F|s, a] + E[F²|s, a], each by its own recursion.
    """
    H, S, A = mdp.H, mdp.S, mdp.A
    p = mdp.transition
    first, second = np.empty((H, S, A)), np.empty((H, S, A))  # of F
    mean, square = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        ahead = p[h] @ mean if h + 1 < H else np.zeros((S, A))
        ahead_square = p[h] @ square if h + 1 < H else np.zeros((S, A))
        first[h] = table[h] + ahead
        second[h] = table[h] ** 2 + 2.0 * table[h] * ahead + ahead_square
        mean, square = (policy[h] * first[h]).sum(axis=1), (policy[h] * second[h]).sum(axis=1)
    reach, before, before_square = mdp.initial.copy(), np.zeros(S), np.zeros(S)  # times the probability of being there
    total = np.empty((H, S, A))
    for h in range(H):
        there = np.where(reach > 0.0, reach, 1.0)
        W, W_square = (before / there)[:, None], (before_square / there)[:, None]
        total[h] = W_square + 2.0 * W * first[h] + second[h]
        flow = policy[h][:, :, None] * p[h]
        loss = table[h]
        before_square = np.einsum(
            "sa,sat->t",
            before_square[:, None] + 2.0 * before[:, None] * loss + reach[:, None] * loss**2,
            flow,
        )
        before = np.einsum("sa,sat->t", before[:, None] + reach[:, None] * loss, flow)
        reach = np.einsum("s,sat->t", reach, flow)
    return total


def _blocks(reader: LossReader, K: int) -> Any:
    """All K episodes, block by block."""
    at = 0
    while at < K:
        block = reader.block(at, K)
        yield block
        at += block.row_n.size
