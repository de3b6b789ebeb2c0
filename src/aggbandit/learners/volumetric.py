"""GeometricHedge with volumetric spanners: adversarial linear bandits on the occupancy polytope, by sampling."""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_integer, require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import ADVERSARIAL, AGGREGATE, KNOWN, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import occupancy_polytope as polytope
from aggbandit.learners.parts import polytope_sampling as sampling
from aggbandit.learners.parts.categorical import sample
from aggbandit.learners.parts.deterministic_policies import span_dimension

MOST_DIMENSIONS = 150
ANCESTORS = 100  # chains that run from the centre to the first episode; the others part from them 2 m steps before it


class State(NamedTuple):
    shape: sampling.Geometry
    spanner_dn: FloatArray  # S'', a barycentric spanner of deterministic policies
    pool_cm: FloatArray  # S', draws of p_k, as v in y = x / scale = centre + W v
    cost_n: FloatArray  # η Σ_{j<k} L̂_j, times the scale
    played_n: FloatArray  # x_k, divided by the scale
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class Volumetric(Learner[State]):
    """Continuous exponential weights over all occupancies, exploring a volumetric spanner.

    p̂_k = (1 − γ) p_k + γ Unif(S_k),   S_k = S'_k ∪ S'',   x_k ~ p̂_k,   plays π = x_k(s, a) / Σ_a x_k(s, a)
    L̂_k = (L^k / H) C_k^{-1} x_k,   C_k = E_{p̂_k}[x x^T]          [eq:HK16-estimator]
    p_{k+1}(x) ∝ p_k(x) exp(−η ⟨L̂_k, x⟩),   p_1 uniform
    η = √(ln(2K) / K),   γ = |S_k| η                               [eq:HK16-eta]

    S'_k: 4 (d + (4 √d + ln 2K)²) draws of p_k; S'': a 2-approximate barycentric spanner, computed once; d is the
    dimension of the occupancies' span, where C_k is inverted.

    Paper    Hazan and Karnin 2016 (COLT 2014), Algorithm 2, Theorem 19: regret Õ(d √K) for losses in [0, 1], here
             Õ(H² S A √K).
    Departs  in three ways.  p_k is sampled by hit-and-run chains, kept from episode to episode and moved
             `sampling_steps` times each, and S'_k, the draws from p_k and C_k are the same pool (the paper takes exact
             independent draws and the exact C_k); given the pool the estimate is exactly unbiased.  γ <= 1/2,
             which needs K >= 4 |S|² ln 2K, some 10^9 episodes for d = 6: before, η is lowered to 1/(2 |S|).
             The factor 4 of |S'| is ours, the paper gives none.
    Cost     O(|S| (m² + H S A m)) time an episode; some 10^3 points.  Refuses d > 150.
    """

    id = "volumetric"
    needs = Needs(feedback=AGGREGATE, dynamics=KNOWN, losses=ADVERSARIAL)

    step_scale: float = 1.0  # multiplies η
    exploration: float | None = None  # γ; None: |S| η, at most 1/2
    spanner_scale: float = 4.0  # the factor of |S'|
    sampling_steps: int = 1  # of every chain, an episode
    burn_in: int | None = None  # steps of the first chains before the first episode; None: 10 m²

    def __post_init__(self) -> None:
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        require_number("spanner_scale", self.spanner_scale, low=0.0, low_open=True)
        if self.exploration is not None:
            require_number("exploration", self.exploration, low=0.0, high=1.0, low_open=True)
        require_integer("sampling_steps", self.sampling_steps, low=1)
        if self.burn_in is not None:
            require_integer("burn_in", self.burn_in, low=0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        d = span_dimension(problem)
        if d > MOST_DIMENSIONS:
            raise InvalidInputError(
                f"{self.name} samples the occupancy polytope, up to dimension {MOST_DIMENSIONS}, but here it has {d}. "
                f"Take a smaller instance, or 'scrible', 'dlb' or 'po-known', which see the same."
            )

    def resolved(self, problem: Problem) -> Resolved:
        step_size, exploration, lowered = self._steps(problem, span_dimension(problem))
        pool = self._pool_size(problem, span_dimension(problem))
        return {"step_size": step_size, "exploration": exploration, "pool": pool, "step_lowered": lowered}

    def init(self, problem: Problem, draws: Draws) -> State:
        shape = sampling.geometry(problem)
        m, d = shape.tangent_nm.shape[1], shape.span_nd.shape[1]
        spanner_dn = sampling.barycentric_spanner(problem, shape)
        size = self._pool_size(problem, d)
        cost_n = np.zeros(shape.centre_n.size)
        pool_cm = np.zeros((size, m))
        if m > 0:
            root_mm = np.eye(m)  # the proportions of the Dikin ellipsoid, and then of the pool itself
            steps = 10 * m * m if self.burn_in is None else self.burn_in
            pool_cm = np.zeros((min(ANCESTORS, size), m))
            for step in range(steps):
                pool_cm = sampling.hit_and_run(shape, cost_n, pool_cm, root_mm, draws)
                if step + 1 == steps // 4:
                    root_mm = sampling.spread(pool_cm)
            pool_cm = np.resize(pool_cm, (size, m))  # each ancestor several times
            for _ in range(2 * m):
                pool_cm = sampling.hit_and_run(shape, cost_n, pool_cm, root_mm, draws)
        empty = np.empty(problem.shape)
        return self._draw(problem, State(shape, spanner_dn, pool_cm, cost_n, empty.ravel(), empty), draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        step_size, exploration, _ = self._steps(problem, state.shape.span_nd.shape[1])
        points_in, law_i = exploring_law(state, exploration)
        estimate_n = estimate(state.shape.span_nd, points_in, law_i, state.played_n, episode.total / problem.H)
        cost_n = state.cost_n + step_size * estimate_n
        pool_cm = state.pool_cm
        root_mm = sampling.spread(pool_cm)
        for _ in range(self.sampling_steps):
            pool_cm = sampling.hit_and_run(state.shape, cost_n, pool_cm, root_mm, draws)
        return self._draw(problem, state._replace(cost_n=cost_n, pool_cm=pool_cm), draws)

    def _draw(self, problem: Problem, state: State, draws: Draws) -> State:
        _, exploration, _ = self._steps(problem, state.shape.span_nd.shape[1])
        points_in, law_i = exploring_law(state, exploration)
        played_n = points_in[sample(law_i, float(draws.uniform(1)[0]))]
        return state._replace(
            played_n=played_n, policy_hsa=polytope.policy_of((state.shape.scale_n * played_n).reshape(problem.shape))
        )

    def _pool_size(self, problem: Problem, d: int) -> int:
        """|S'| = 4 (d + ln²(1/ε)), ln(1/ε) = 4 √d + ln 2K; the factor is ours."""
        K = problem.require_episodes(self.name)
        return max(2 * d, ceil(self.spanner_scale * (d + (4.0 * sqrt(d) + log(2.0 * K)) ** 2)))

    def _steps(self, problem: Problem, d: int) -> tuple[float, float, bool]:
        """η, γ, and whether η had to be lowered.  [eq:HK16-eta]"""
        K = problem.require_episodes(self.name)
        size = self._pool_size(problem, d) + d
        theorem = sqrt(log(2.0 * K) / K)  # √(ln N / (d K)) with ln N = d ln 2K, the size of a 1/K-net
        step_size = self.step_scale * min(theorem, 0.5 / size)
        exploration = min(size * step_size, 0.5) if self.exploration is None else self.exploration
        return step_size, exploration, theorem > 0.5 / size


def exploring_law(state: State, exploration: float) -> tuple[FloatArray, FloatArray]:
    """The points of S_k = S'_k ∪ S'', divided by the scale, and p̂_k on them: (1 − γ)/|S'| + γ/|S|, γ/|S|."""
    pool_cn = np.maximum(state.shape.centre_n + state.pool_cm @ state.shape.tangent_nm.T, 0.0)
    points_in = np.concatenate([pool_cn, state.spanner_dn])
    law_i = np.full(len(points_in), exploration / len(points_in))
    law_i[: len(pool_cn)] += (1.0 - exploration) / len(pool_cn)
    return points_in, law_i


def estimate(
    span_nd: FloatArray, points_in: FloatArray, law_i: FloatArray, played_n: FloatArray, loss: float
) -> FloatArray:
    """L̂ = loss · C^{-1} x, C = Σ law x x^T, inverted on the span.  [eq:HK16-estimator]"""
    z_id = points_in @ span_nd
    gram_dd = (z_id * law_i[:, None]).T @ z_id
    estimate_n: FloatArray = loss * (span_nd @ np.linalg.solve(gram_dd, span_nd.T @ played_n))
    return estimate_n
