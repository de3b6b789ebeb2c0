"""EXP2 over deterministic policies: adversarial linear bandits, occupancies for arms."""

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import (
    ADVERSARIAL,
    AGGREGATE,
    KNOWN,
    Draws,
    Episode,
    Learner,
    Needs,
    Problem,
    Resolved,
)
from aggbandit.learners.parts import deterministic_policies
from aggbandit.learners.parts.categorical import sample
from aggbandit.learners.parts.optimal_design import g_optimal

MOST_WORK = 200_000_000  # multiplications an episode, some tenth of a second


class State(NamedTuple):
    actions_nhs: IntArray  # the policies: what each does, -1 where it never comes
    z_nd: FloatArray  # their occupancies in coordinates of the linear span
    exploration_n: FloatArray  # w, the G-optimal design
    estimate_d: FloatArray  # Σ_k ẑ_k
    play_n: FloatArray  # p_k, the law of the policy played
    chosen: int  # which one that was
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True)
class Exp2(Learner[State]):
    """Exponential weights on all deterministic policies, fed least-squares estimates of their losses.

    q_k(i) ∝ exp(−η Σ_{j<k} ⟨z_i, ẑ_j⟩),   p_k = (1 − γ) q_k + γ w,   i_k ~ p_k
    ẑ_k = P_k^{-1} z_{i_k} L^k,   P_k = Σ_i p_k(i) z_i z_i^T      [eq:BCK12-estimator]
    η = √(ln N / (3 d K)) / H,   γ = η H d                        [eq:BCK12-eta]

    z_i are the occupancies of the N deterministic policies that differ where they go, in coordinates of their span,
    of dimension d = 1 + (A − 1) · #reachable (h, s); w is the G-optimal design on them, for which η |⟨z_i, ẑ⟩| <= 1.

    Paper    Dani, Hayes, Kakade 2007; Cesa-Bianchi and Lugosi 2012; Bubeck, Cesa-Bianchi, Kakade 2012, Figure 1 and
             Theorem 1: regret <= 2 H √(3 d K ln N), which is O(H² S √(A K ln A)).
    Departs  in the exploration: the G-optimal design (Kiefer and Wolfowitz; Lattimore and Szepesvári, Theorem 27.1) in
             place of John's ellipsoid, whose centring would add a constant to the loss that nobody observes; the
             constants are the same.  γ <= 1 needs K >= d ln(N) / 3: for fewer episodes η is lowered to 1 / (H d).
    Cost     O(N d²) an episode; N grows like A^(H S), so that it refuses where N > 60 000 or N d² > 2 · 10⁸.
    """

    id = "exp2"
    needs = Needs(feedback=AGGREGATE, dynamics=KNOWN, losses=ADVERSARIAL)

    step_scale: float = 1.0  # multiplies η
    exploration: float | None = None  # γ; None: η H d, at most 1

    def __post_init__(self) -> None:
        require_number("step_scale", self.step_scale, low=0.0, low_open=True)
        if self.exploration is not None:
            require_number("exploration", self.exploration, low=0.0, high=1.0, low_open=True)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        problem.require_episodes(self.name)
        N, d = deterministic_policies.count(problem, self.name), deterministic_policies.span_dimension(problem)
        if N * d * d > MOST_WORK:
            raise InvalidInputError(
                f"{self.name} weighs N policies in d dimensions in N d² multiplications an episode, at most "
                f"{MOST_WORK} of them, but here N = {N} and d = {d}. {deterministic_policies.WAY_OUT}"
            )

    def resolved(self, problem: Problem) -> Resolved:
        N = deterministic_policies.count(problem, self.name)
        step_size, exploration, lowered = self._steps(problem, N, deterministic_policies.span_dimension(problem))
        told: dict[str, float | int | str | bool] = {
            "step_size": step_size,
            "exploration": exploration,
            "policies": N,
        }
        return told | ({"step_lowered": True} if lowered else {})

    def init(self, problem: Problem, draws: Draws) -> State:
        found = deterministic_policies.vertices(problem, self.name)
        N = found.actions_nhs.shape[0]
        z_nd = deterministic_policies.span_coordinates(found.occupancy_nhsa.reshape(N, -1), found.dimension)
        state = State(
            found.actions_nhs, z_nd, g_optimal(z_nd), np.zeros(found.dimension), np.empty(N), 0, np.empty(problem.shape)
        )
        return self._draw(problem, state, draws)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return state.policy_hsa

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.total is not None
        estimate_d = estimate(state.z_nd, state.play_n, state.chosen, episode.total)
        return self._draw(problem, state._replace(estimate_d=state.estimate_d + estimate_d), draws)

    def _draw(self, problem: Problem, state: State, draws: Draws) -> State:
        step_size, exploration, _ = self._steps(problem, *state.z_nd.shape)
        play_n = play_law(state.z_nd, state.exploration_n, state.estimate_d, step_size, exploration)
        chosen = sample(play_n, float(draws.uniform(1)[0]))
        policy_hsa = deterministic_policies.as_policy(state.actions_nhs[chosen], problem.A)
        return state._replace(play_n=play_n, chosen=chosen, policy_hsa=policy_hsa)

    def _steps(self, problem: Problem, N: int, d: int) -> tuple[float, float, bool]:
        """η, γ, and whether η had to be lowered."""
        H, K = problem.H, problem.require_episodes(self.name)
        theorem = sqrt(log(N) / (3.0 * d * K)) / H  # [eq:BCK12-eta]
        lowered = theorem * H * d > 1.0
        step_size = self.step_scale * min(theorem, 1.0 / (H * d))
        return step_size, min(step_size * H * d, 1.0) if self.exploration is None else self.exploration, lowered


def play_law(
    z_nd: FloatArray, exploration_n: FloatArray, estimate_d: FloatArray, step_size: float, exploration: float
) -> FloatArray:
    """p = (1 − γ) softmax(−η ⟨z_i, Σ ẑ⟩) + γ w."""
    scores_n = -step_size * (z_nd @ estimate_d)
    weights_n = np.exp(scores_n - scores_n.max())
    law_n: FloatArray = (1.0 - exploration) * weights_n / weights_n.sum() + exploration * exploration_n
    return law_n


def estimate(z_nd: FloatArray, play_n: FloatArray, chosen: int, total: float) -> FloatArray:
    """ẑ = P^{-1} z_chosen L,   P = Σ_i p(i) z_i z_i^T.  [eq:BCK12-estimator]"""
    gram_dd = (z_nd * play_n[:, None]).T @ z_nd
    estimate_d: FloatArray = np.linalg.solve(gram_dd, z_nd[chosen] * total)
    return estimate_d
