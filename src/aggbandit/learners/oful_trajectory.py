"""OFUL on trajectories: the policy that could be best, given all totals; [EMM21] with known dynamics."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import require_number
from aggbandit.learners.base import AGGREGATE, KNOWN, STOCHASTIC, Draws, Episode, Learner, Needs, Problem, Resolved
from aggbandit.learners.parts import deterministic_policies, least_squares
from aggbandit.learners.parts.least_squares import LeastSquares

REFRESH = 10_000  # episodes of rank-one updates before the widths are computed afresh
TIE = 1e-12  # relative: values this near are equal, and chance decides


class State(NamedTuple):
    actions_nhs: IntArray  # all deterministic policies, -1 where they never come
    occupancy_nd: FloatArray  # and where they go
    seen: LeastSquares
    squared_widths_n: FloatArray  # ‖μ‖² in the norm of A^{-1}
    updates: int
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class OfulTrajectory(Learner[State]):
    """The deterministic policy of least ⟨μ, ℓ̂⟩ − β ‖μ‖_{A^{-1}}, μ its occupancy.  [eq:EMM21-oful]

    A = λ I + Σ φ φ^T,   ℓ̂ = A^{-1} Σ φ L,   φ the indicator of the places met, λ = H
    β = σ √(ln det(A / λ) + 2 ln(1/δ)) + √(λ d),   d = H S A

    σ = √H / 2 for noise="independent" (the H losses of an episode are, given the trajectory), H / 2 for "joint"
    (whatever they are), 0 for "none".

    Paper    Efroni, Merlis, Mannor 2021, OFUL with a known model: Õ(S A H √K) for stationary losses.
    Departs  in losses for rewards, and horizon-dependent ones.  Reconstructed from the abstract and introduction: the
             form is the paper's, the constants are derived again, so that β holds with probability 1 − δ.
             Where several policies are equally good, which they are at first, one of them is drawn.
    Cost     O(N H S A) an episode for N deterministic policies; refuses N > 60 000 and N H S A > 5 · 10⁶.
    """

    id = "oful-trajectory"
    reconstructed = True
    needs = Needs(feedback=AGGREGATE, dynamics=KNOWN, losses=STOCHASTIC)

    confidence: float = 0.05  # δ
    noise: str = "independent"  # which sets σ
    ridge: float | None = None  # λ; None: H
    bonus_scale: float = 1.0  # multiplies β

    def __post_init__(self) -> None:
        least_squares.check_arguments(self.confidence, self.noise, self.ridge)
        require_number("bonus_scale", self.bonus_scale, low=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        deterministic_policies.count(problem, self.name)

    def resolved(self, problem: Problem) -> Resolved:
        return {
            "policies": deterministic_policies.count(problem, self.name),
            "first_radius": self._radius(problem, self._nothing_seen(problem)),
        }

    def init(self, problem: Problem, draws: Draws) -> State:
        found = deterministic_policies.vertices(problem, self.name)
        occupancy_nd = found.occupancy_nhsa.reshape(len(found.actions_nhs), -1)
        seen = self._nothing_seen(problem)
        widths_n = least_squares.squared_norms(seen, occupancy_nd)
        state = State(found.actions_nhs, occupancy_nd, seen, widths_n, 0, np.empty(problem.shape))
        return self._choose(problem, state, draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        feature_d = least_squares.trajectory_feature(episode.states, episode.actions, problem.S, problem.A)
        direction_d = least_squares.applied(state.seen, feature_d)
        least_squares.add(state.seen, feature_d, episode.total)
        updates = (state.updates + 1) % REFRESH
        if updates == 0:
            widths_n = least_squares.squared_norms(state.seen, state.occupancy_nd)
        else:  # Sherman and Morrison
            along_n = state.occupancy_nd @ direction_d
            widths_n = state.squared_widths_n - along_n**2 / (1.0 + float(feature_d @ direction_d))
        return self._choose(problem, state._replace(squared_widths_n=widths_n, updates=updates), draws)

    def _choose(self, problem: Problem, state: State, draws: Draws) -> State:
        beta = self.bonus_scale * self._radius(problem, state.seen)
        solution_d = least_squares.solution(state.seen)
        optimistic_n = optimistic_values(state.occupancy_nd, solution_d, state.squared_widths_n, beta)
        least = float(optimistic_n.min())
        best = np.flatnonzero(optimistic_n <= least + TIE * max(1.0, abs(least)))
        chosen = int(best[int(float(draws.uniform(1)[0]) * best.size)])
        return state._replace(policy_hsa=deterministic_policies.as_policy(state.actions_nhs[chosen], problem.A))

    def _radius(self, problem: Problem, seen: LeastSquares) -> float:
        return least_squares.trajectory_radius(seen, problem, self.ridge, self.noise, self.confidence)

    def _nothing_seen(self, problem: Problem) -> LeastSquares:
        d = problem.H * problem.S * problem.A
        return least_squares.nothing_seen(d, least_squares.ridge_of(self.ridge, problem))


def optimistic_values(
    occupancy_nd: FloatArray, solution_d: FloatArray, squared_widths_n: FloatArray, beta: float
) -> FloatArray:
    """⟨μ, ℓ̂⟩ − β ‖μ‖_{A^{-1}} for every policy.  [eq:EMM21-oful]"""
    values_n: FloatArray = occupancy_nd @ solution_d - beta * np.sqrt(np.maximum(squared_widths_n, 0.0))
    return values_n
