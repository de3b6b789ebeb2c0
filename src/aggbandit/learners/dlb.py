"""Distorted linear bandits: [CKKM21], the first algorithm for adversarial losses and aggregate feedback."""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, frozen
from aggbandit._checks import require_known, require_number
from aggbandit.learners.base import (
    ADVERSARIAL,
    AGGREGATE,
    CONVEX_PROBLEM,
    DYNAMICS,
    KNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import box_polytope, occupancy_polytope, transition_counts
from aggbandit.learners.parts.confidence_sets import bernstein_box, logarithm


class KnownState(NamedTuple):
    x_hsa: FloatArray  # x_k, the centre of this episode's draw
    cost_hsa: FloatArray  # Σ_{j<k} η ℓ̃_j
    pull_hsa: FloatArray  # ∇²R(x_k) (y_k − x_k)
    policy_hsa: FloatArray  # that of y_k


class UnknownState(NamedTuple):
    counts_hsas: FloatArray  # N_i, transitions seen before this epoch
    epoch_counts_hsas: FloatArray  # n_i, those of this epoch
    body: box_polytope.Boxes  # the plausible occupancies, S_i
    distortion_hsa: FloatArray  # ε_i, 0 at the last step
    inverse_step: float  # 1/η_k
    least_inverse_step: float  # 1/(2 η_0), or 2 m H where greater
    point: box_polytope.Point  # x_k
    cost: box_polytope.Point  # Σ η_j ℓ̃_j over the epoch's episodes before k
    pull: box_polytope.Point
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class Dlb(Learner[Any]):
    """Online mirror descent with a self-concordant barrier and increasing steps, on plausible occupancies.

    R the log barrier of the polytope, of dimension m, with θ inequalities; u_k uniform on the unit sphere; W a basis
    of the directions inside:
    y_k = x_k + W (W^T ∇²R W)^{-1/2} u_k;   plays π = y_k(s, a) / Σ_a y_k(s, a)
    ℓ̃_k = m L^k W (W^T ∇²R W)^{1/2} u_k                                        [eq:CKKM21-estimator]
    1/η_k = 1/η_{k-1} − 2 m Σ_{h<H} ε(s_h, a_h)                                 [eq:CKKM21-step]
    ∇R(x_{k+1}) = ∇R(x_k) − η_k ℓ̃_k inside the polytope,   x_1 = argmin R       [eq:CKKM21-mirror-descent]
    η_0 = min( √(θ ln(HK) / (m² H² K)), 1 / (4 m √(B K)) )                      [eq:CKKM21-eta]

    dynamics="known": ε = 0 and B = H, so that η stays.
    dynamics="unknown": epochs, each a fresh learner on the occupancies plausible at its start.  An epoch ends when some
    (h, s, a), h < H, was met in it as often as ever before, or once where never before.     [eq:CKKM21-epoch]

    Paper    Cohen, Kaplan, Koren, Mansour 2021, Algorithms 2 and 3, Theorem 7 and Corollary 10: expected regret
             Õ(H⁵ S⁶ A^{5/2} √K) with unknown dynamics.
    Departs  1. Coordinates.  The paper's formulas for a body without interior are not right as printed (its Lemma 21
             takes W^T (∇²R)^{-1/2} W for (W^T ∇²R W)^{-1/2}); these are the ones in reduced coordinates, for which its
             lemmas hold with d = m.
             2. Unknown dynamics: boxes (entry by entry, empirical Bernstein, δ = 1/(HK)) instead of L1 balls, which
             have 2^S facets.  ε_h(s, a) = H min(2, Σ_{s'} (upper − lower)) is at least H times the L1 distance of any
             two kernels in the box, which the reduction needs (its Lemma 14, where the paper's radius is a factor 2
             short).  B = max(H, (H − 1) Σ_{h,s,a} max(N, 1) ε²) is the paper's bound for these ε.
             3. Nothing leads out of the last step, so that it has no successors in the polytope, no ε and no counts:
             m = (A S − 1)(1 + (H − 2) S) + (A − 1) S from one first state.
             4. Should rounding or `boost_scale` take η_k over 2 η_0, which the theorem excludes, it stays there; nor is
             it ever above 1/(2 m H), which mirror descent needs and a greater `step_scale` would break.
    Cost     O(H S³ + H S² A) time a Newton step with known dynamics, O(H S³ A) with unknown, 3 to 8 of them an episode.

    With these constants nothing is learned at laptop scale, docs/coverage.md has the numbers: for experiments raise
    `step_scale`, lower `radius_scale` and `boost_scale`, and raise `growth`, which makes epochs fewer and longer.
    """

    id = "dlb"
    update_by = CONVEX_PROBLEM

    dynamics: str = KNOWN
    step_scale: float = 1.0  # multiplies η_0
    boost_scale: float = 1.0  # multiplies 2 m Σ ε in the growth of η; unknown dynamics
    radius_scale: float = 1.0  # multiplies the radius of the boxes; unknown dynamics
    growth: float = 1.0  # an epoch ends with this many times the earlier visits; unknown dynamics

    def __post_init__(self) -> None:
        require_known("dynamics", self.dynamics, DYNAMICS)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("boost_scale", self.boost_scale, low=0.0)
        require_number("radius_scale", self.radius_scale, low=0.0, low_open=True)
        require_number("growth", self.growth, low=0.0, low_open=True)

    @property
    def needs(self) -> Needs:
        return Needs(feedback=AGGREGATE, dynamics=self.dynamics, losses=ADVERSARIAL)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)

    def resolved(self, problem: Problem) -> Resolved:
        if self.dynamics == KNOWN:
            transition_tsas = occupancy_polytope.dense_transition(problem)
            open_hs = occupancy_polytope.reachable(transition_tsas, problem.initial, problem.H)
            return {"step_size": self._known_step(problem, open_hs)}
        first = self._new_epoch(problem, transition_counts.none_yet(*problem.shape), None)
        return {"first_step_size": 1.0 / first.inverse_step}

    def init(self, problem: Problem, draws: Draws) -> KnownState | UnknownState:
        if self.dynamics != KNOWN:
            return self._new_epoch(problem, transition_counts.none_yet(*problem.shape), draws)
        transition_tsas = occupancy_polytope.dense_transition(problem)
        open_hs = occupancy_polytope.reachable(transition_tsas, problem.initial, problem.H)
        start_hsa = occupancy_polytope.uniform_occupancy(transition_tsas, problem.initial, problem.H, problem.A)
        return _play_known(problem, open_hs, start_hsa, np.zeros(problem.shape), draws)

    def policy(self, problem: Problem, state: KnownState | UnknownState) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(
        self, problem: Problem, state: KnownState | UnknownState, episode: Episode, draws: Draws
    ) -> KnownState | UnknownState:
        assert episode.total is not None
        if isinstance(state, UnknownState):
            return self._update_unknown(problem, state, episode, episode.total, draws)
        open_hs = state.x_hsa[:, :, 0] > 0.0
        m = occupancy_polytope.dimension(open_hs, problem.A)
        weight = self._known_step(problem, open_hs) * m * episode.total
        return _play_known(problem, open_hs, state.x_hsa, state.cost_hsa + weight * state.pull_hsa, draws)

    def _update_unknown(
        self, problem: Problem, state: UnknownState, episode: Episode, total: float, draws: Draws
    ) -> UnknownState:
        states, actions, steps = episode.states, episode.actions, np.arange(problem.H)
        transition_counts.add_trajectory(state.epoch_counts_hsas, states, actions)
        visited = (steps[:-1], states[:-1], actions[:-1])
        now, before = state.epoch_counts_hsas[visited].sum(axis=-1), state.counts_hsas[visited].sum(axis=-1)
        if (now >= np.maximum(self.growth * before, 1.0)).any():  # [eq:CKKM21-epoch]
            return self._new_epoch(problem, state.counts_hsas + state.epoch_counts_hsas, draws)
        m = box_polytope.dimension(state.body, problem.A)
        distortion = float(state.distortion_hsa[steps, states, actions].sum())
        inverse_step = max(state.inverse_step - self.boost_scale * 2.0 * m * distortion, state.least_inverse_step)
        weight = m * total / inverse_step
        cost = box_polytope.Point(
            state.cost.m_hsai + weight * state.pull.m_hsai, state.cost.x_sa + weight * state.pull.x_sa
        )
        return _play_unknown(problem, state._replace(inverse_step=inverse_step, cost=cost), draws)

    def _new_epoch(self, problem: Problem, counts_hsas: FloatArray, draws: Draws | None) -> UnknownState:
        """A fresh learner on what is plausible after these counts; without draws it has no policy yet."""
        H, S, A = problem.shape
        K = problem.require_episodes(self.name)
        lower_hsas, upper_hsas = bernstein_box(counts_hsas, logarithm(H, S, A, K, 1.0 / (H * K)), self.radius_scale)
        body = box_polytope.boxes(lower_hsas, upper_hsas, problem.initial)
        distortion_hsa = distortion(lower_hsas, upper_hsas)
        m, theta = box_polytope.dimension(body, A), box_polytope.barrier_parameter(body, A)
        most_hsa = np.maximum(self.growth * counts_hsas.sum(axis=-1), 1.0)  # visits in this epoch
        bound = max(float(H), (H - 1) * float((most_hsa * distortion_hsa**2).sum()))
        least = 2.0 * max(m, 1) * H
        inverse_step = max(1.0 / (self.step_scale * theory_step(H, K, m, theta, bound)), least)
        start = box_polytope.interior_point(body, problem.initial, A)
        nothing = box_polytope.nothing(body, A)
        epoch_counts_hsas = transition_counts.none_yet(H, S, A)
        state = UnknownState(
            counts_hsas,
            epoch_counts_hsas,
            body,
            distortion_hsa,
            inverse_step,
            max(0.5 * inverse_step, least),
            start,
            nothing,
            nothing,
            np.empty((H, S, A)),
        )
        return state if draws is None else _play_unknown(problem, state, draws)

    def _known_step(self, problem: Problem, open_hs: AnyArray) -> float:
        m = occupancy_polytope.dimension(open_hs, problem.A)
        theta = int(open_hs.sum()) * problem.A
        K = problem.require_episodes(self.name)
        step_size = self.step_scale * theory_step(problem.H, K, m, theta, float(problem.H))
        return min(step_size, 0.5 / (max(m, 1) * problem.H))


def theory_step(H: int, K: int, m: int, theta: int, bound: float) -> float:
    """η_0 = min( √(θ ln(HK) / (m² H² K)), 1 / (4 m √(B K)) ).  [eq:CKKM21-eta]"""
    m = max(m, 1)  # a single policy needs no step, but some number
    by_noise = 1.0 / (4.0 * m * sqrt(bound * K))
    return min(sqrt(theta * log(H * K) / K) / (m * H), by_noise) if H * K > 1 else by_noise


def distortion(lower_hsas: FloatArray, upper_hsas: FloatArray) -> FloatArray:
    """ε_h(s, a) = H min(2, Σ_{s'} (upper − lower)), at least H ‖p − p'‖_1 for all p, p' in the box; 0 at the last step.

    So ‖x − x'‖_1 <= min(⟨ε, x⟩, ⟨ε, x'⟩) for the occupancies of one policy under two such kernels.
    [eq:CKKM21-distortion]
    """
    epsilon_hsa: FloatArray = lower_hsas.shape[0] * np.minimum(2.0, (upper_hsas - lower_hsas).sum(axis=-1))
    epsilon_hsa[-1] = 0.0
    return epsilon_hsa


def _play_known(
    problem: Problem, open_hs: AnyArray, near_hsa: FloatArray, cost_hsa: FloatArray, draws: Draws
) -> KnownState:
    """The next centre and a draw around it.  [eq:CKKM21-mirror-descent]

    ∇R(x_{k+1}) = ∇R(x_1) − Σ_{j<=k} η_j ℓ̃_j inside the polytope, where ∇R(x_1) = 0.
    """
    transition_tsas = occupancy_polytope.dense_transition(problem)
    x_hsa = occupancy_polytope.minimise(transition_tsas, problem.initial, open_hs, cost_hsa, near_hsa, log=1.0)
    normal_hsa = draws.normal(problem.shape)
    step_hsa, pull_hsa = occupancy_polytope.dikin_step(transition_tsas, open_hs, x_hsa, normal_hsa)
    return KnownState(x_hsa, cost_hsa, pull_hsa, occupancy_polytope.policy_of(x_hsa + step_hsa))


def _play_unknown(problem: Problem, state: UnknownState, draws: Draws) -> UnknownState:
    """As `_play_known`, on the boxes' polytope."""
    point = box_polytope.minimise(state.body, problem.initial, state.cost, state.point)
    step, pull = box_polytope.dikin_step(state.body, point, draws)
    played_hsa = box_polytope.occupancy(point) + box_polytope.occupancy(step)
    return state._replace(point=point, pull=pull, policy_hsa=occupancy_polytope.policy_of(played_hsa))
