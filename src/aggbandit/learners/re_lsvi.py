"""RE-LSVI: the most optimistic of an ensemble of randomised values; [CLRS24], tabular and linear MDPs."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_integer, require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import ensembles, least_squares, linear_mdp


class State(NamedTuple):
    known: ensembles.Knowledge
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class ReLsvi(Learner[State]):
    """The greedy policy of the member with the greatest value among m, each with rewards drawn around their estimate.

    ζ^i ~ N(0, β_r² Λ^{-1}), i = 1..m, jointly for all steps;   m = ⌈9 ln(7 K / δ)⌉              [eq:CLRS24-members]
    V^i: best value on the estimated dynamics for rewards θ̂ + ζ^i + b
    plays the greedy policy of argmax_i V^i_1                                                    [eq:CLRS24-re-lsvi]
    β_r = σ √(ln det(Λ / λ_r) + 2 ln(6/δ)) + √(λ_r d H),   Λ = λ_r I + Σ φ φ^T, φ stacked over the steps, λ_r = H

    Without `features`: d = S A, the model is the frequencies, b that of `ucbvi-ts`, and values are not clipped.
    With `features` (S, A, d), ‖φ‖ <= 1: least squares for the next state (λ_p = 1), b = β_p ‖φ‖_{Λ_h^{-1}} with
    β_p = d V_max √ln(2 d H K / δ), and values cut at V_max = 3 H (1 + β_r), the "loose truncation".
    σ = √H / 2 for noise="independent" (the H losses of an episode are, given the trajectory), H / 2 for "joint"
    (whatever they are), 0 for "none".

    Paper    Cassel, Luo, Rosenberg, Sotnikov 2024, RE-LSVI: Õ(√(d⁵ H⁷ K)).
    Departs  Reconstructed from the abstract and introduction.  The ensemble, the choice of the best member and the
             loose truncation are the paper's; whether its optimism for the dynamics is a bonus, and all constants,
             are not known to us.  Without features the value of the best member is optimistic with probability 1 − δ.
    Cost     O(m (d H)² + m H S² A) an episode, m some 100 to 150.
    """

    id = "re-lsvi"
    reconstructed = True
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    noise: str = "independent"  # which sets σ
    ensemble: int | None = None  # m; None: ⌈9 ln(7 K / δ)⌉
    v_scale: float = 1.0  # multiplies β_r in ζ
    bonus_scale: float = 1.0  # multiplies b
    features: Any = None  # (S, A, d); whether they express the instance is checked where it is played

    def __post_init__(self) -> None:
        least_squares.check_arguments(self.confidence, self.noise, None)
        require_number("v_scale", self.v_scale, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)
        if self.ensemble is not None:
            require_integer("ensemble", self.ensemble, low=1)
        if self.features is not None:
            object.__setattr__(self, "features", linear_mdp.as_features(self.features))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        d = problem.S * problem.A
        if self.features is not None:
            d = linear_mdp.require_fit(self.features, problem.S, problem.A).shape[-1]
        least_squares.require_size(self.name, problem.H * d)

    @property
    def linear_features(self) -> Any:
        return self.features

    def resolved(self, problem: Problem) -> Resolved:
        K = problem.require_episodes(self.name)
        return {"ensemble": ensembles.members(self.ensemble, K, self.confidence)}

    def init(self, problem: Problem, draws: Draws) -> State:
        return self._draw(problem, ensembles.nothing_known(problem, self.features), draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        ensembles.add(problem, state.known, episode)
        return self._draw(problem, state.known, draws)

    def _draw(self, problem: Problem, known: ensembles.Knowledge, draws: Draws) -> State:
        K = problem.require_episodes(self.name)
        m = ensembles.members(self.ensemble, K, self.confidence)
        radius = ensembles.reward_radius(problem, known, self.noise, self.confidence)
        noise_md = least_squares.spread(known.rewards, draws.normal((m, known.rewards.target_d.size)))
        noise_md *= self.v_scale * radius
        limit = ensembles.value_limit(problem, self.features, radius)
        bonus_hsa = self.bonus_scale * ensembles.dynamics_bonus(problem, known, K, self.confidence, limit)
        losses_mhsa = ensembles.optimistic_losses(known, noise_md, bonus_hsa)
        actions_mhs, value_m = best_of_members(known.dynamics.mean_hsas, losses_mhsa, problem.initial, limit)
        return State(known, np.eye(problem.A)[actions_mhs[int(np.argmin(value_m))]])


def best_of_members(
    model_hsas: FloatArray, losses_mhsa: FloatArray, initial_s: FloatArray, limit: float
) -> tuple[Any, FloatArray]:
    """Every member's best actions (m, H, S) and its value (m,) in losses, so that the least is the most optimistic."""
    from aggbandit.kernels import ensemble

    M, H, S, _ = losses_mhsa.shape
    actions_mhs, value_m = np.empty((M, H, S), dtype=np.int64), np.empty(M)
    ensemble.best(frozen(model_hsas), frozen(losses_mhsa), initial_s, limit, actions_mhs, value_m)
    return actions_mhs, value_m
