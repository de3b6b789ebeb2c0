from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError, UnknownNameError
from aggbandit.learners.base import Problem
from aggbandit.learners.parts import least_squares
from naive import planning
from naive.trajectory_feedback import Ridge

H, S, A = 3, 2, 2


def learned(seed, n, ridge=3.0, loss=None, noise=0.0):
    """The estimator and its definition, fed the same trajectories."""
    rng = np.random.default_rng(seed)
    loss = rng.random((H, S, A)) if loss is None else loss
    seen, naive = least_squares.nothing_seen(H * S * A, ridge), Ridge(H, S, A, ridge)
    for _ in range(n):
        states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
        total = loss[np.arange(H), states, actions].sum() + noise * (2 * (rng.random(H) < 0.5) - 1).sum()
        least_squares.add(seen, least_squares.trajectory_feature(states, actions, S, A), total)
        naive.add(states, actions, total)
    return seen, naive, loss


@pytest.mark.equation("EMM21-least-squares")
@pytest.mark.parametrize("n", [0, 1, 5, 60])
def test_estimates_are_the_ridge_regressions(n):
    seen, naive, _ = learned(n, n)
    np.testing.assert_allclose(least_squares.solution(seen), naive.solution(), atol=1e-12)
    np.testing.assert_allclose(seen.root_dd.T @ seen.root_dd, naive.matrix, atol=1e-12)
    assert least_squares.log_determinant(seen, 3.0) == pytest.approx(
        np.linalg.slogdet(naive.matrix / 3.0)[1], abs=1e-11
    )
    b = np.random.default_rng(0).normal(size=(4, H * S * A))
    np.testing.assert_allclose(least_squares.applied(seen, b[0]), np.linalg.solve(naive.matrix, b[0]), atol=1e-12)
    expected = [row @ np.linalg.solve(naive.matrix, row) for row in b]
    np.testing.assert_allclose(least_squares.squared_norms(seen, b), expected, rtol=1e-11)
    np.testing.assert_allclose(least_squares.spread(seen, b[1:2].copy())[0], naive.spread(b[1]), atol=1e-12)


def test_noise_has_the_inverse_as_covariance():
    # a map z -> ξ of independent normal numbers with Σ ξ(e_i) ξ(e_i)^T = A^{-1}: then Pr[⟨x, ξ⟩ >= ‖x‖_{A^{-1}}] is
    # that of one normal number beyond 1, 0.1587, which optimism rests on
    seen, naive, _ = learned(7, 40)
    columns = least_squares.spread(seen, np.eye(H * S * A))
    np.testing.assert_allclose(columns.T @ columns, np.linalg.inv(naive.matrix), atol=1e-12)


def test_values_of_policies_are_learned_though_single_losses_are_not():
    loss = np.random.default_rng(5).random((H, S, A))
    seen, _, _ = learned(3, 40_000, loss=loss)
    error = least_squares.solution(seen) - loss.ravel()
    assert np.abs(error).max() > 0.05  # a constant can move from step to step
    transition = np.random.default_rng(6).dirichlet(np.ones(S), size=(H, S, A))
    for policy in planning.deterministic_policies(H, S, A):
        reach = planning.occupancy(transition, policy, np.eye(S)[0])[:, :, None] * policy
        assert abs(reach.ravel() @ error) < 2e-3


def test_with_one_step_it_is_the_shrunken_mean():
    seen = least_squares.nothing_seen(3, 2.0)
    for action, total in ((0, 0.5), (0, 1.0), (2, 0.25)):
        least_squares.add(seen, least_squares.trajectory_feature(np.array([0]), np.array([action]), 1, 3), total)
    np.testing.assert_allclose(least_squares.solution(seen), [1.5 / 4, 0.0, 0.25 / 3], rtol=1e-14)


@pytest.mark.equation("EMM21-radius")
def test_radius():
    assert least_squares.radius(0.7, 12, 3.0, 0.8, 0.1) == pytest.approx(
        0.8 * sqrt(0.7 + 2 * log(10)) + sqrt(36), rel=1e-14
    )
    problem = Problem(H=H, S=S, A=A, episodes=None)
    seen, naive, _ = learned(1, 30)
    for noise, sigma in (("independent", sqrt(3) / 2), ("joint", 1.5), ("none", 0.0)):
        mine = least_squares.trajectory_radius(seen, problem, None, noise, 0.05)
        assert mine == pytest.approx(naive.radius(sigma, 0.05), rel=1e-12)
    # what the paper has in closed form is greater
    for k in (1, 10, 1000):
        d = H * S * A
        log_det = d * log(1 + k * H / (3.0 * d))  # at most, by the inequality of the means
        closed = sqrt(0.25 * H * d * log((1 + k * H / 3.0) / 0.05)) + sqrt(3.0 * d)
        assert least_squares.radius(log_det, d, 3.0, sqrt(H) / 2, 0.05) <= closed


@pytest.mark.parametrize("seed", range(12))
def test_losses_stay_within_the_radius(seed):
    # signs of ±1/2 a step are the noise that a loss in [0, 1] can have at most: σ = √H / 2.  δ = 0.01, 12 runs
    problem = Problem(H=H, S=S, A=A, episodes=None)
    for n in (3, 30, 300):
        seen, naive, loss = learned(seed, n, loss=np.full((H, S, A), 0.5), noise=0.5)
        error = naive.solution() - loss.ravel()
        assert sqrt(error @ naive.matrix @ error) <= least_squares.trajectory_radius(
            seen, problem, 3.0, "independent", 0.01
        )


def test_arguments_and_sizes():
    with pytest.raises(UnknownNameError, match="no noise 'jiont'. Did you mean 'joint'"):
        least_squares.check_arguments(0.05, "jiont", None)
    with pytest.raises(InvalidInputError, match="confidence must be"):
        least_squares.check_arguments(1.0, "joint", None)
    with pytest.raises(InvalidInputError, match="ridge must be"):
        least_squares.check_arguments(0.5, "joint", 0.0)
    with pytest.raises(InvalidInputError, match="up to d = 3000, but here d = 3001"):
        least_squares.require_size("x", 3001)
    least_squares.require_size("x", 3000)
