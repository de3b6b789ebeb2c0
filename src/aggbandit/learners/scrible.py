"""SCRiBLe on the occupancy polytope: adversarial linear bandits by a self-concordant barrier."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, frozen
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    ADVERSARIAL,
    AGGREGATE,
    CONVEX_PROBLEM,
    KNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import occupancy_polytope as polytope

SAMPLINGS = ("sphere", "poles")
MOST_POLE_VARIABLES = 1000  # sampling="poles" factors dense matrices of this size every episode


class State(NamedTuple):
    x_hsa: FloatArray  # x_k, the centre of this episode's draw
    cost_hsa: FloatArray  # η Σ_{j<k} ℓ̃_j, up to a combination of flow equations
    pull_hsa: FloatArray  # ∇²R(x_k) (y_k − x_k)
    policy_hsa: FloatArray  # that of the occupancy y_k


@final
@dataclass(frozen=True, kw_only=True)
class Scrible(Learner[State]):
    """Self-concordant regularisation in bandit linear optimisation: plays a point of the Dikin ellipsoid.

    R(x) = −Σ ln x_h(s, a) over the reachable (h, s);   m = (A − 1) · #reachable (h, s);   θ = A · #reachable
    y_k = x_k + W (W^T ∇²R W)^{-1/2} u_k,   u_k uniform on the sphere;   plays π = y_k(s, a) / Σ_a y_k(s, a)
    ℓ̃_k = m L^k W (W^T ∇²R W)^{1/2} u_k                                     [eq:AHR08-estimator]
    x_{k+1} = argmin_x η Σ_{j<=k} ⟨ℓ̃_j, x⟩ + R(x),   x_1 = argmin R         [eq:AHR08-ftrl]
    η = √(θ ln K / K) / (m H)                                               [eq:AHR08-eta]

    with W an orthonormal basis of the directions inside the polytope.

    Paper    Abernethy, Hazan, Rakhlin 2008; constants after Cohen, Kaplan, Koren, Mansour 2021, Lemma 2 with ε = 0:
             regret <= 2 m H √(θ K ln K) + 2 H, which is Õ(H^{5/2} (S A)^{3/2} √K).
    Departs  in the sampling: uniform on the ellipsoid instead of its 2 m poles (`sampling="poles"` is the original,
             with the same expectation).  Mirror descent needs η m H <= 1/2, here K >= 4 θ ln K: for fewer episodes, or
             a greater `step_scale`, η is lowered to that.
             Reconstructed: the original text was not at hand, its constant in η is not known to us.
    Cost     O(H S³ + H S² A) time a Newton step, 2 to 6 of them an episode; `sampling="poles"` O((H S A)³).
    """

    id = "scrible"
    reconstructed = True
    update_by = CONVEX_PROBLEM
    needs = Needs(feedback=AGGREGATE, dynamics=KNOWN, losses=ADVERSARIAL)

    step_scale: float = 1.0  # multiplies η
    sampling: str = "sphere"  # or "poles"

    def __post_init__(self) -> None:
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        if self.sampling not in SAMPLINGS:
            raise InvalidInputError(
                f"sampling must be one of {', '.join(map(repr, SAMPLINGS))}, but is {self.sampling!r}."
            )

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        variables = int(_reachable(problem).sum()) * problem.A
        if self.sampling == "poles" and variables > MOST_POLE_VARIABLES:
            raise InvalidInputError(
                f"{self.name} with sampling='poles' factors dense matrices, up to {MOST_POLE_VARIABLES} variables, but "
                f"here are {variables}. Leave sampling at 'sphere'."
            )

    def resolved(self, problem: Problem) -> Resolved:
        step_size, lowered = self._step(problem, _reachable(problem))
        return {"step_size": step_size, "step_lowered": lowered}

    def init(self, problem: Problem, draws: Draws) -> State:
        transition_tsas, open_hs = polytope.dense_transition(problem), _reachable(problem)
        start_hsa = polytope.uniform_occupancy(transition_tsas, problem.initial, problem.H, problem.A)
        cost_hsa = np.zeros(problem.shape)
        centre_hsa = polytope.minimise(transition_tsas, problem.initial, open_hs, cost_hsa, start_hsa, log=1.0)
        return self._draw(problem, open_hs, centre_hsa, cost_hsa, draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return frozen(state.policy_hsa)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        transition_tsas = polytope.dense_transition(problem)
        open_hs = state.x_hsa[:, :, 0] > 0.0
        step_size, _ = self._step(problem, open_hs)
        # [eq:AHR08-estimator]: any vector with the same part inside the polytope does, and this one needs no basis
        m = polytope.dimension(open_hs, problem.A)
        cost_hsa = state.cost_hsa + step_size * m * episode.total * state.pull_hsa
        x_hsa = polytope.minimise(transition_tsas, problem.initial, open_hs, cost_hsa, state.x_hsa, log=1.0)
        return self._draw(problem, open_hs, x_hsa, cost_hsa, draws)

    def _draw(
        self, problem: Problem, open_hs: AnyArray, x_hsa: FloatArray, cost_hsa: FloatArray, draws: Draws
    ) -> State:
        transition_tsas = polytope.dense_transition(problem)
        if self.sampling == "sphere":
            step_hsa, pull_hsa = polytope.dikin_step(transition_tsas, open_hs, x_hsa, draws.normal(problem.shape))
        else:
            step_hsa, pull_hsa = pole_step(transition_tsas, open_hs, x_hsa, draws.uniform(2))
        return State(x_hsa, cost_hsa, pull_hsa, polytope.policy_of(x_hsa + step_hsa))

    def _step(self, problem: Problem, open_hs: AnyArray) -> tuple[float, bool]:
        """η, and whether it had to be lowered.  [eq:AHR08-eta]"""
        H, A, K = problem.H, problem.A, problem.require_episodes(self.name)
        m, theta = polytope.dimension(open_hs, A), int(open_hs.sum()) * A
        if m == 0:
            return 0.0, False  # with one action there is nothing to learn
        step_size, most = self.step_scale * sqrt(theta * log(K) / K) / (m * H), 0.5 / (m * H)
        return min(step_size, most), step_size > most


def pole_step(
    transition_tsas: FloatArray, open_hs: AnyArray, x_hsa: FloatArray, uniform: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A step to one of the 2 m poles of the Dikin ellipsoid, ± λ_i^{-1/2} W e_i, and ∇²R times it.

    W^T ∇²R W = Σ λ_i e_i e_i^T; the pole and the sign are drawn with two uniform numbers.
    """
    basis = polytope.tangent_basis(transition_tsas, open_hs, x_hsa.shape[-1])
    m = basis.shape[1]
    if m == 0:
        return np.zeros(x_hsa.shape), np.zeros(x_hsa.shape)
    x = np.where(x_hsa.ravel() > 0.0, x_hsa.ravel(), np.inf)
    # X^{-1} W = Σ √λ_i f_i e_i^T, so that a pole is ± X f_i: no entry of it exceeds x, however small x is
    directions = np.linalg.svd(basis / x[:, None], full_matrices=False)[0]
    direction = directions[:, int(uniform[0] * m)] * (1.0 if uniform[1] < 0.5 else -1.0)
    step = (x_hsa.ravel() * direction).reshape(x_hsa.shape)
    return step, (direction / x).reshape(x_hsa.shape)


def _reachable(problem: Problem) -> AnyArray:
    return polytope.reachable(polytope.dense_transition(problem), problem.initial, problem.H)
