"""Thompson sampling on trajectories: the best policy for losses drawn around their estimate; [EMM21]."""

from dataclasses import dataclass
from typing import NamedTuple, final

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, KNOWN, STOCHASTIC, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import least_squares, occupancy_polytope
from aggbandit.learners.parts.greedy import greedy_policy
from aggbandit.learners.parts.least_squares import LeastSquares


class State(NamedTuple):
    seen: LeastSquares
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class TsTrajectory(Learner[State]):
    """The best policy for ℓ̂_{k-1} + ξ_k, ξ_k ~ N(0, v_k² A_{k-1}^{-1}), by one dynamic programme.  [eq:EMM21-ts]

    A = λ I + Σ φ φ^T,   ℓ̂ = A^{-1} Σ φ L,   φ the indicator of the places met, λ = H
    v_k = β_{k-1} = σ √(ln det(A_{k-1} / λ) + 2 ln(1/δ)) + √(λ d),   d = H S A

    σ = √H / 2 for noise="independent" (the H losses of an episode are, given the trajectory), H / 2 for "joint"
    (whatever they are), 0 for "none".

    Paper    Efroni, Merlis, Mannor 2021, Thompson sampling with a known model: Õ((S A)^{3/2} H √K) for stationary
             losses.
    Departs  in losses for rewards, and horizon-dependent ones.  Reconstructed from the abstract and introduction: the
             form is the paper's; v_k is the radius of the confidence set, derived again, where the paper has (as far as
             known) the cruder √(9 S A H ln(10 k H²/δ)).
    Cost     O((H S A)² + H S² A) an episode, O((H S A)²) memory.
    """

    id = "ts-trajectory"
    reconstructed = True
    needs = Needs(feedback=AGGREGATE, dynamics=KNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    noise: str = "independent"  # which sets σ
    ridge: float | None = None  # λ; None: H
    v_scale: float = 1.0  # multiplies v

    def __post_init__(self) -> None:
        least_squares.check_arguments(self.confidence, self.noise, self.ridge)
        require_number("v_scale", self.v_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        least_squares.require_size(self.name, problem.H * problem.S * problem.A)

    def resolved(self, problem: Problem) -> Resolved:
        return {"first_v": self.v_scale * self._radius(problem, self._nothing_seen(problem))}

    def init(self, problem: Problem, draws: Draws) -> State:
        seen = self._nothing_seen(problem)
        return self._draw(problem, seen, draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        feature_d = least_squares.trajectory_feature(episode.states, episode.actions, problem.S, problem.A)
        least_squares.add(state.seen, feature_d, episode.total)
        return self._draw(problem, state.seen, draws)

    def _draw(self, problem: Problem, seen: LeastSquares, draws: Draws) -> State:
        v = self.v_scale * self._radius(problem, seen)
        drawn_d = (
            least_squares.solution(seen) + v * least_squares.spread(seen, draws.normal((1, seen.target_d.size)))[0]
        )
        transition_tsas = occupancy_polytope.dense_transition(problem)
        return State(seen, greedy_policy(transition_tsas, drawn_d.reshape(problem.shape)))

    def _radius(self, problem: Problem, seen: LeastSquares) -> float:
        return least_squares.trajectory_radius(seen, problem, self.ridge, self.noise, self.confidence)

    def _nothing_seen(self, problem: Problem) -> LeastSquares:
        d = problem.H * problem.S * problem.A
        return least_squares.nothing_seen(d, least_squares.ridge_of(self.ridge, problem))
