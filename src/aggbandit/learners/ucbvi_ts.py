"""UCBVI-TS: optimism for the dynamics, Thompson sampling for the losses; [EMM21] with unknown dynamics."""

from dataclasses import dataclass
from typing import NamedTuple, final

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, STOCHASTIC, UNKNOWN, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import empirical_model, least_squares
from aggbandit.learners.parts.empirical_model import Model
from aggbandit.learners.parts.greedy import greedy_policy
from aggbandit.learners.parts.least_squares import LeastSquares


class State(NamedTuple):
    seen: LeastSquares
    model: Model
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class UcbviTs(Learner[State]):
    """The best policy on p̄ for the losses ℓ̂ + ξ_k − b, ξ_k ~ N(0, v_k² A^{-1}), by one dynamic programme.

    ℓ̃^k_h(s, a) = ℓ̂_h(s, a) + ξ^k_h(s, a) − b_h(s, a)                              [eq:EMM21-ucbvi-ts]
    b_h(s, a) = H min(1, √(ln(4 H S A K / δ) / (2 (n ∨ 1)))), H where n = 0, 0 at h = H
    A = λ I + Σ φ φ^T,   ℓ̂ = A^{-1} Σ φ L,   φ the indicator of the places met, λ = H
    v_k = β_{k-1} = σ √(ln det(A_{k-1} / λ) + 2 ln(1/δ)) + √(λ d),   d = H S A

    ξ is one joint draw for all places, and Q and V are never clipped: estimates of single steps mean something in sums
    only.  p̄ is uniform where nothing was seen.  σ = √H / 2 for noise="independent" (the H losses of an episode are,
    given the trajectory), H / 2 for "joint" (whatever they are), 0 for "none".

    Paper    Efroni, Merlis, Mannor 2021, UCBVI-TS: Õ(S² A^{3/2} H^{3/2} √K) for stationary dynamics and losses, which
             is Õ(S² A^{3/2} H^{7/2} √K) for ours.
    Departs  in losses for rewards, and horizon-dependent ones.  Reconstructed from the abstract and introduction: the
             form is the paper's; v and b are derived again so that each episode's value is optimistic with probability
             at least 0.158.
    Cost     O((H S A)² + H S² A) an episode, O((H S A)²) memory.
    """

    id = "ucbvi-ts"
    reconstructed = True
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    noise: str = "independent"  # which sets σ
    ridge: float | None = None  # λ; None: H
    v_scale: float = 1.0  # multiplies v
    bonus_scale: float = 1.0  # multiplies b

    def __post_init__(self) -> None:
        least_squares.check_arguments(self.confidence, self.noise, self.ridge)
        require_number("v_scale", self.v_scale, low=0.0)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        least_squares.require_size(self.name, problem.H * problem.S * problem.A)

    def resolved(self, problem: Problem) -> Resolved:
        return {"first_v": self.v_scale * self._radius(problem, self._nothing_seen(problem))}

    def init(self, problem: Problem, draws: Draws) -> State:
        seen = self._nothing_seen(problem)
        return self._draw(problem, seen, empirical_model.unseen(*problem.shape), draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        feature_d = least_squares.trajectory_feature(episode.states, episode.actions, problem.S, problem.A)
        least_squares.add(state.seen, feature_d, episode.total)
        empirical_model.add_trajectory(state.model, episode.states, episode.actions)
        return self._draw(problem, state.seen, state.model, draws)

    def _draw(self, problem: Problem, seen: LeastSquares, model: Model, draws: Draws) -> State:
        v = self.v_scale * self._radius(problem, seen)
        K = problem.require_episodes(self.name)
        bonus_hsa = self.bonus_scale * empirical_model.value_bonus(model.visits_hsa, K, self.confidence)
        drawn_d = (
            least_squares.solution(seen) + v * least_squares.spread(seen, draws.normal((1, seen.target_d.size)))[0]
        )
        return State(seen, model, greedy_policy(model.mean_hsas, drawn_d.reshape(problem.shape) - bonus_hsa))

    def _radius(self, problem: Problem, seen: LeastSquares) -> float:
        return least_squares.trajectory_radius(seen, problem, self.ridge, self.noise, self.confidence)

    def _nothing_seen(self, problem: Problem) -> LeastSquares:
        d = problem.H * problem.S * problem.A
        return least_squares.nothing_seen(d, least_squares.ridge_of(self.ridge, problem))
