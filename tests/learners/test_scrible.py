from math import log, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.scrible import Scrible
from naive import occupancy_polytopes as naive
from naive import planning


class Given:
    """Draws that are given in advance."""

    def __init__(self, values):
        self.values = values

    def normal(self, size):
        return np.reshape(self.values, size)

    def uniform(self, size):
        return np.reshape(self.values, size)


def random_problem(seed=0, H=3, S=2, A=3, K=100_000):
    rng = np.random.default_rng(seed)
    return Problem(H=H, S=S, A=A, episodes=K, transition=rng.dirichlet(np.ones(S), size=(H, S, A)))


def walked(learner, problem, k=5):
    """A state some episodes in, and its reduced coordinates: variables, W, and W^T ∇²R W."""
    rng = np.random.default_rng(9)
    H, S, A = problem.shape
    state = learner.init(problem, Draws(0, 0, 0, 1))
    for i in range(k):
        states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
        state = learner.update(problem, state, Episode(i, states, actions, total=H * rng.random()), Draws(0, 0, i, 2))
    open_hs = naive.reachable(problem.dynamics.transition, problem.initial)
    variables = np.repeat(open_hs.ravel(), A)
    C, _ = naive.flow_equations(problem.dynamics.transition, problem.initial)
    basis = naive.null_basis(C[:, variables])
    at = state.x_hsa.ravel()[variables]
    return state, variables, basis, basis.T @ (basis / at[:, None] ** 2)


def symmetric_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(values)) @ vectors.T


def directions(sampling, problem, variables, basis, hessian, at):
    """Draws whose average over the sphere's second moments is exact: u = ± e_i, or all the poles."""
    m = basis.shape[1]
    if sampling == "poles":
        return [[(i + 0.5) / m, sign] for i in range(m) for sign in (0.25, 0.75)]
    root = symmetric_root(hessian)
    found = []
    for i in range(m):
        normal = np.zeros(variables.size)
        normal[variables] = at * (basis @ root[i])  # then g = W Hr^{1/2} e_i, and the step W Hr^{-1/2} e_i
        found += [normal, -normal]
    return found


@pytest.mark.equation("AHR08-estimator")
@pytest.mark.parametrize("sampling", ["sphere", "poles"])
def test_estimates_are_unbiased_and_plays_feasible(sampling):
    problem = random_problem()
    H, S, A = problem.shape
    learner = Scrible(sampling=sampling)
    state, variables, basis, hessian = walked(learner, problem)
    at = state.x_hsa.ravel()[variables]
    loss = np.random.default_rng(1).random((H, S, A))
    eta = learner.resolved(problem)["step_size"]
    m = basis.shape[1]
    assert m == (1 + (H - 1) * S) * (A - 1)
    mean, second = np.zeros(m), np.zeros((m, m))
    open_hs = state.x_hsa[:, :, 0] > 0
    all_draws = directions(sampling, problem, variables, basis, hessian, at)
    assert len(all_draws) == 2 * m
    for values in all_draws:
        drawn = learner._draw(problem, open_hs, state.x_hsa, state.cost_hsa, Given(values))
        played = (
            planning.occupancy(problem.transition, drawn.policy_hsa, problem.initial)[:, :, None] * drawn.policy_hsa
        )
        v = basis.T @ (played - state.x_hsa).ravel()[variables]
        np.testing.assert_allclose(basis @ v, (played - state.x_hsa).ravel()[variables], atol=1e-12)
        np.testing.assert_allclose(v @ hessian @ v, 1.0, rtol=1e-8)  # the played point is on the Dikin ellipsoid
        # E[L] = ⟨ℓ, y⟩ is all that matters: the estimate is linear in the total
        total = float((loss * played).sum())
        after = learner.update(
            problem, drawn, Episode(0, np.zeros(H, int), np.zeros(H, int), total=total), Draws(0, 0, 0, 2)
        )
        estimated = basis.T @ ((after.cost_hsa - drawn.cost_hsa) / eta).ravel()[variables]
        mean += estimated / len(all_draws)
        second += np.outer(estimated / total, estimated / total) / len(all_draws)
    np.testing.assert_allclose(mean, basis.T @ loss.ravel()[variables], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(second, m * hessian, rtol=1e-7, atol=1e-7)  # so E‖ℓ̃‖*² = m² L²: it is ≤ (m H)²


@pytest.mark.equation("AHR08-ftrl")
@pytest.mark.parametrize("sampling", ["sphere", "poles"])
def test_centres_are_optimal_and_follow_mirror_descent(sampling):
    problem = random_problem(2)
    H = problem.H
    learner = Scrible(step_scale=3.0, sampling=sampling)
    state, variables, basis, _ = walked(learner, problem, k=0)
    np.testing.assert_allclose(basis.T @ (1.0 / state.x_hsa.ravel()[variables]), 0.0, atol=1e-7)  # the analytic centre
    for k in range(20):
        before = state
        episode = Episode(k, np.zeros(H, int), np.zeros(H, int), total=1.0 + k % 2)
        state = learner.update(problem, state, episode, Draws(0, 0, k, 2))
        estimated = (state.cost_hsa - before.cost_hsa).ravel()[variables]
        x, x_next = before.x_hsa.ravel()[variables], state.x_hsa.ravel()[variables]
        np.testing.assert_allclose(basis.T @ (1 / x - 1 / x_next + estimated), 0.0, atol=1e-6)
        # the Bregman divergence of the step bounds its local norm (Cohen et al., Lemma 9)
        divergence = float((-np.log(x_next / x) + (x_next - x) / x).sum())
        assert divergence >= np.linalg.norm((x_next - x) / x) / 2 - 1


@pytest.mark.parametrize("sampling", ["sphere", "poles"])
def test_one_coordinate_by_hand(sampling):
    # R = −ln x − ln(1 − x): centre 1/2, R'' = 8, so the first play is 1/2 ± 1/√8
    problem = Problem(H=1, S=1, A=2, episodes=1000, transition=np.ones((1, 1, 2, 1)))
    learner = Scrible(sampling=sampling)
    eta = learner.resolved(problem)["step_size"]
    assert eta == pytest.approx(sqrt(2 * log(1000) / 1000) / 1, rel=1e-14)  # θ = 2, m = 1, H = 1
    loss, firsts, estimates = np.array([0.9, 0.2]), set(), []
    open_hs = np.ones((1, 1), bool)
    for values in ([1.0, -1.0], [-1.0, 1.0]) if sampling == "sphere" else ([0.5, 0.2], [0.5, 0.7]):
        half = np.full((1, 1, 2), 0.5)
        state = learner._draw(problem, open_hs, half, np.zeros((1, 1, 2)), Given(values))
        first = state.policy_hsa[0, 0, 0]
        firsts.add(round(float(first), 12))
        total = float(loss @ state.policy_hsa[0, 0])
        after = learner.update(
            problem, state, Episode(0, np.zeros(1, int), np.zeros(1, int), total=total), Draws(0, 0, 0, 2)
        )
        estimates.append((after.cost_hsa[0, 0, 0] - after.cost_hsa[0, 0, 1]) / eta)
    assert firsts == {round(0.5 + 1 / sqrt(8), 12), round(0.5 - 1 / sqrt(8), 12)}
    # along (1, −1)/√2 the estimate's mean is (ℓ_1 − ℓ_2)/√2, so its coordinates differ by ℓ_1 − ℓ_2 on average
    assert np.mean(estimates) == pytest.approx(0.7, rel=1e-9)


@pytest.mark.equation("AHR08-eta")
def test_step_size_and_its_condition():
    problem = random_problem(0, 3, 2, 3, K=100_000)
    m, theta, H = 5 * 2, 5 * 3, 3
    told = Scrible().resolved(problem)
    assert told["step_size"] == pytest.approx(sqrt(theta * log(1e5) / (m**2 * H**2 * 1e5)), rel=1e-13)
    assert not told["step_lowered"]
    few = Scrible().resolved(random_problem(0, 3, 2, 3, K=100))
    assert few["step_lowered"]
    assert few["step_size"] == pytest.approx(1 / (2 * m * H), rel=1e-13)
    assert Scrible(step_scale=7.0).resolved(problem)["step_size"] == pytest.approx(7 * told["step_size"])


def test_arguments_and_sizes_are_checked():
    with pytest.raises(InvalidInputError, match="sampling must be one of 'sphere', 'poles', but is 'cube'"):
        Scrible(sampling="cube")
    with pytest.raises(InvalidInputError, match="step_scale must be a finite number, greater than 0"):
        Scrible(step_scale=-1.0)
    large = random_problem(0, 20, 20, 3)
    with pytest.raises(InvalidInputError, match="up to 1000 variables, but here are 1143"):
        ab.start(Scrible(sampling="poles"), large)
    assert ab.start(Scrible(), large).policy.shape == (20, 20, 3)
