"""REPO: policy optimisation for each member of an ensemble, and hedging over the members; [CLRS24]."""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_integer, require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import ensembles, least_squares, linear_mdp
from aggbandit.learners.parts.categorical import sample
from aggbandit.learners.parts.linear_mdp import LinearModel


class Epoch(NamedTuple):
    """What is frozen until covariances or counts have doubled."""

    noise_md: FloatArray  # ζ^1 ... ζ^m
    bonus_hsa: FloatArray  # b
    limit: float  # where values are cut
    log_det: float  # of the rewards' Λ at its start
    visits_hsa: FloatArray  # counts at its start; without features
    log_det_h: FloatArray  # of the Λ_h at its start; with features


class State(NamedTuple):
    known: ensembles.Knowledge
    epoch: Epoch
    logits_mhsa: FloatArray  # of every member's policy
    policy_mhsa: FloatArray
    hedge_m: FloatArray  # logarithms of q, up to a constant
    member: int  # which one is played


@final
@dataclass(frozen=True, kw_only=True)
class Repo(Learner[State]):
    """Exponential weights at every (h, s) for each of m members, and over the members; a drawn member is played.

    In an epoch with rewards' noise ζ^1, ..., ζ^m ~ N(0, β_r² Λ^{-1}) and bonus b frozen:           [eq:CLRS24-repo]
    Q̂^{k,i}: the value of π^{k,i} on the estimated dynamics for rewards θ̂^k + ζ^i + b
    π^{k+1,i}_h(a|s) ∝ π^{k,i}_h(a|s) exp(η_o Q̂^{k,i}_h(s, a))
    i_k ~ q_k,   q_{k+1}(i) ∝ q_k(i) exp(η_x V̂^{k,i}_1)
    η_o = √(2 ln A / K) / V_max,   η_x = √(2 ln m / K) / V_max                                      [eq:CLRS24-steps]
    A new epoch when the determinant of a covariance has doubled, or a count: ζ drawn anew, π and q uniform.

    Without `features` (d = S A): b that of `ucbvi-ts`, no clipping, and
    V_max = H + H (β_r / √λ_r) √(2 ln(2 m H S A K / δ)) + H², with the greatest β_r of K episodes.
    With `features` (S, A, d), ‖φ‖ <= 1: b and V_max = 3 H (1 + β_r) as in `re-lsvi`.
    θ̂, β_r, Λ, m and noise= are those of `re-lsvi`; θ̂ and the dynamics are renewed in every episode.

    Paper    Cassel, Luo, Rosenberg, Sotnikov 2024, REPO: Õ(√(d⁵ H⁹ K)); tabular Õ(H^{7/2} S² A^{3/2} √K) according to
             [LM25].
    Departs  Reconstructed from the abstract and introduction, with little to go by: policy optimisation with a hedge
             over the ensemble is the paper's; the epochs, the steps (bounds for Hedge with losses in [0, V_max]) and
             all constants are ours.  For experiments set `value_bound` to H: V_max is some hundreds.
    Cost     O(m H S² A + (d H)²) an episode, m some 100 to 150; a new epoch O(m (d H)²).
    """

    id = "repo"
    reconstructed = True
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    noise: str = "independent"  # which sets σ
    ensemble: int | None = None  # m; None: ⌈9 ln(7 K / δ)⌉
    v_scale: float = 1.0  # multiplies β_r in ζ
    bonus_scale: float = 1.0  # multiplies b
    step_scale: float = 1.0  # multiplies η_o and η_x
    value_bound: float | None = None  # V_max in the steps; None: as above
    features: Any = None  # (S, A, d); whether they express the instance is checked where it is played

    def __post_init__(self) -> None:
        least_squares.check_arguments(self.confidence, self.noise, None)
        require_number("v_scale", self.v_scale, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        if self.ensemble is not None:
            require_integer("ensemble", self.ensemble, low=1)
        if self.value_bound is not None:
            require_number("value_bound", self.value_bound, low=0.0, low_open=True)
        if self.features is not None:
            object.__setattr__(self, "features", linear_mdp.as_features(self.features))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        least_squares.require_size(self.name, problem.H * self._features(problem))

    @property
    def linear_features(self) -> Any:
        return self.features

    def resolved(self, problem: Problem) -> Resolved:
        policy_step, hedge_step, bound = self._steps(problem)
        K = problem.require_episodes(self.name)
        m = ensembles.members(self.ensemble, K, self.confidence)
        return {"ensemble": m, "step_size": policy_step, "hedge_step_size": hedge_step, "value_bound": bound}

    def init(self, problem: Problem, draws: Draws) -> State:
        return self._new_epoch(problem, ensembles.nothing_known(problem, self.features), draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_mhsa[state.member])

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        policy_step, hedge_step, _ = self._steps(problem)
        improve(problem, state, policy_step, hedge_step)
        ensembles.add(problem, state.known, episode)
        if doubled(problem, state.known, state.epoch):
            return self._new_epoch(problem, state.known, draws)
        return state._replace(member=draw_member(state.hedge_m, draws))

    def _new_epoch(self, problem: Problem, known: ensembles.Knowledge, draws: Draws) -> State:
        H, S, A = problem.shape
        K = problem.require_episodes(self.name)
        m = ensembles.members(self.ensemble, K, self.confidence)
        radius = ensembles.reward_radius(problem, known, self.noise, self.confidence)
        noise_md = least_squares.spread(known.rewards, draws.normal((m, known.rewards.target_d.size)))
        noise_md *= self.v_scale * radius
        limit = ensembles.value_limit(problem, self.features, radius)
        bonus_hsa = self.bonus_scale * ensembles.dynamics_bonus(problem, known, K, self.confidence, limit)
        log_det = least_squares.log_determinant(known.rewards, float(H))
        if isinstance(known.dynamics, LinearModel):
            visits_hsa, log_det_h = np.zeros((0, S, A)), linear_mdp.log_determinants(known.dynamics)
        else:
            visits_hsa, log_det_h = known.dynamics.visits_hsa.copy(), np.zeros(0)
        epoch = Epoch(noise_md, bonus_hsa, limit, log_det, visits_hsa, log_det_h)
        hedge_m = np.zeros(m)
        policy_mhsa = np.full((m, H, S, A), 1.0 / A)
        return State(known, epoch, np.zeros((m, H, S, A)), policy_mhsa, hedge_m, draw_member(hedge_m, draws))

    def _features(self, problem: Problem) -> int:
        if self.features is None:
            return problem.S * problem.A
        return int(linear_mdp.require_fit(self.features, problem.S, problem.A).shape[-1])

    def _steps(self, problem: Problem) -> tuple[float, float, float]:
        """η_o, η_x and V_max.  [eq:CLRS24-steps]"""
        H, S, A = problem.shape
        K = problem.require_episodes(self.name)
        m = ensembles.members(self.ensemble, K, self.confidence)
        radius = ensembles.greatest_reward_radius(problem, H * self._features(problem), K, self.noise, self.confidence)
        if self.value_bound is not None:
            bound = self.value_bound
        elif self.features is not None:
            bound = ensembles.value_limit(problem, self.features, radius)
        else:
            spread = sqrt(2.0 * log(2.0 * m * H * S * A * K / self.confidence))
            bound = H + H * radius / sqrt(H) * spread + H * H
        scale = self.step_scale / (bound * sqrt(K))
        return scale * sqrt(2.0 * log(A)), scale * sqrt(2.0 * log(m)), bound


def improve(problem: Problem, state: State, policy_step: float, hedge_step: float) -> None:
    """Exponential weights for every member's policy and over the members, in place.  [eq:CLRS24-repo]"""
    from aggbandit.kernels import ensemble

    losses_mhsa = ensembles.optimistic_losses(state.known, state.epoch.noise_md, state.epoch.bonus_hsa)
    q_mhsa, value_m = np.empty(losses_mhsa.shape), np.empty(len(losses_mhsa))
    model_hsas = state.known.dynamics.mean_hsas
    ensemble.evaluate(
        frozen(model_hsas),
        frozen(losses_mhsa),
        frozen(state.policy_mhsa),
        problem.initial,
        state.epoch.limit,
        q_mhsa,
        value_m,
    )
    ensemble.exponential_weights(q_mhsa, policy_step, state.logits_mhsa, state.policy_mhsa)
    state.hedge_m[:] -= hedge_step * value_m
    state.hedge_m[:] -= state.hedge_m.max()


def doubled(problem: Problem, known: ensembles.Knowledge, epoch: Epoch) -> bool:
    """Whether the determinant of a covariance, or a count, has doubled since the epoch began; 1 visit doubles 0."""
    if least_squares.log_determinant(known.rewards, float(problem.H)) >= epoch.log_det + log(2.0):
        return True
    if isinstance(known.dynamics, LinearModel):
        return bool((linear_mdp.log_determinants(known.dynamics) >= epoch.log_det_h + log(2.0)).any())
    visits_hsa = known.dynamics.visits_hsa
    return bool(((visits_hsa > epoch.visits_hsa) & (visits_hsa >= 2.0 * epoch.visits_hsa)).any())


def draw_member(hedge_m: FloatArray, draws: Draws) -> int:
    """i ~ q."""
    weights_m = np.exp(hedge_m)
    return sample(weights_m / weights_m.sum(), float(draws.uniform(1)[0]))
