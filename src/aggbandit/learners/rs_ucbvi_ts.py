"""RS-UCBVI-TS: UCBVI-TS whose estimates are renewed only when much more is known; [EMM21]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import empirical_model, least_squares
from aggbandit.learners.parts.empirical_model import Model
from aggbandit.learners.parts.greedy import greedy_policy
from aggbandit.learners.parts.least_squares import LeastSquares


class Renewed(NamedTuple):
    """What was known at the last renewal."""

    root: LeastSquares  # R with A = R^T R at that time (its target is not used)
    log_det: float  # ln det(A / λ)
    radius: float  # β
    visits_hsa: FloatArray
    mean_hsas: FloatArray  # p̄
    optimistic_hsa: FloatArray  # ℓ̂ − b


class State(NamedTuple):
    seen: LeastSquares
    model: Model
    renewed: Renewed
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class RsUcbviTs(Learner[State]):
    """UCBVI-TS with ℓ̂, A, p̄ and b of the last renewal; ξ_k is still drawn in every episode.

    Renewed when det A > (1 + C) det A_last or some n_h(s, a) >= (1 + C) n_last, n > 0.       [eq:EMM21-rare]
    ξ_k ~ N(0, (1 + C) v_last² A_last^{-1})

    The rest is as in `ucbvi-ts`.

    Paper    Efroni, Merlis, Mannor 2021, rarely switching UCBVI-TS: the regret of UCBVI-TS with less work.
    Departs  in losses for rewards, and horizon-dependent ones.  Reconstructed, with little to go by: the conditions are
             the usual ones for rare switches (Abbasi-Yadkori, Pál, Szepesvári 2011, Lemma 12, which also gives the
             factor √(1 + C)), C = 1.
    Cost     O((H S A)² + H S² A) an episode as `ucbvi-ts`, since the factor of A takes every episode; only estimates
             and bonuses are renewed rarely, O(H S A ln K) times.
    """

    id = "rs-ucbvi-ts"
    reconstructed = True
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    noise: str = "independent"  # which sets σ
    ridge: float | None = None  # λ; None: H
    v_scale: float = 1.0  # multiplies v
    bonus_scale: float = 1.0  # multiplies b
    growth: float = 1.0  # C

    def __post_init__(self) -> None:
        least_squares.check_arguments(self.confidence, self.noise, self.ridge)
        require_number("v_scale", self.v_scale, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        require_number("growth", self.growth, low=0.0, low_open=True)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        least_squares.require_size(self.name, problem.H * problem.S * problem.A)

    def resolved(self, problem: Problem) -> Resolved:
        return {"first_v": self.v_scale * sqrt(1.0 + self.growth) * self._radius(problem, self._nothing_seen(problem))}

    def init(self, problem: Problem, draws: Draws) -> State:
        seen = self._nothing_seen(problem)
        model = empirical_model.unseen(*problem.shape)
        return self._draw(problem, seen, model, self._renew(problem, seen, model, 0.0), draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        seen, model, renewed = state.seen, state.model, state.renewed
        feature_d = least_squares.trajectory_feature(episode.states, episode.actions, problem.S, problem.A)
        least_squares.add(seen, feature_d, episode.total)
        empirical_model.add_trajectory(model, episode.states, episode.actions)
        log_det = least_squares.log_determinant(seen, least_squares.ridge_of(self.ridge, problem))
        met = (np.arange(problem.H - 1), episode.states[:-1], episode.actions[:-1])
        more = model.visits_hsa[met] >= (1.0 + self.growth) * renewed.visits_hsa[met]
        if log_det > renewed.log_det + log(1.0 + self.growth) or more.any():  # [eq:EMM21-rare]
            renewed = self._renew(problem, seen, model, log_det)
        return self._draw(problem, seen, model, renewed, draws)

    def _renew(self, problem: Problem, seen: LeastSquares, model: Model, log_det: float) -> Renewed:
        K = problem.require_episodes(self.name)
        bonus_hsa = self.bonus_scale * empirical_model.value_bonus(model.visits_hsa, K, self.confidence)
        optimistic_hsa = least_squares.solution(seen).reshape(problem.shape) - bonus_hsa
        root = LeastSquares(seen.root_dd.copy(), np.zeros(seen.target_d.size))
        return Renewed(
            root, log_det, self._radius(problem, seen), model.visits_hsa.copy(), model.mean_hsas.copy(), optimistic_hsa
        )

    def _draw(self, problem: Problem, seen: LeastSquares, model: Model, renewed: Renewed, draws: Draws) -> State:
        v = self.v_scale * sqrt(1.0 + self.growth) * renewed.radius
        noise_d = least_squares.spread(renewed.root, draws.normal((1, seen.target_d.size)))[0]
        drawn_hsa = renewed.optimistic_hsa + v * noise_d.reshape(problem.shape)
        return State(seen, model, renewed, greedy_policy(renewed.mean_hsas, drawn_hsa))

    def _radius(self, problem: Problem, seen: LeastSquares) -> float:
        return least_squares.trajectory_radius(seen, problem, self.ridge, self.noise, self.confidence)

    def _nothing_seen(self, problem: Problem) -> LeastSquares:
        d = problem.H * problem.S * problem.A
        return least_squares.nothing_seen(d, least_squares.ridge_of(self.ridge, problem))
