import numpy as np
import pytest

from aggbandit.learners.base import Draws, Problem
from aggbandit.learners.parts import polytope_sampling as sampling
from naive import exp2 as naive_exp2
from naive import occupancy_polytopes
from naive import volumetric as naive


def random_problem(seed, H, S, A):
    transition = np.random.default_rng(seed).dirichlet(np.ones(S), size=(H, S, A))
    return Problem(H=H, S=S, A=A, episodes=100, transition=transition)


def scaled(occupancies, shape):
    """y = x / scale, 0 where nobody comes."""
    return np.divide(occupancies, shape.scale_n, out=np.zeros(occupancies.shape), where=shape.scale_n > 0.0)


@pytest.mark.parametrize("H, S, A", [(1, 1, 3), (3, 2, 2), (2, 2, 1), (4, 1, 2)])
def test_coordinates_describe_all_occupancies(H, S, A):
    problem = random_problem(0, H, S, A)
    shape = sampling.geometry(problem)
    vertices = naive_exp2.distinct_occupancies(problem.transition, problem.initial)
    d = np.linalg.matrix_rank(vertices)
    vertices = scaled(vertices, shape)
    assert shape.span_nd.shape[1] == d == shape.tangent_nm.shape[1] + 1
    np.testing.assert_allclose(shape.span_nd.T @ shape.span_nd, np.eye(d), atol=1e-12)
    np.testing.assert_allclose(vertices @ shape.span_nd @ shape.span_nd.T, vertices, atol=1e-12)
    v = (vertices - shape.centre_n) @ shape.tangent_nm
    np.testing.assert_allclose(shape.centre_n + v @ shape.tangent_nm.T, vertices, atol=1e-12)


def test_places_of_tiny_probability_are_described_as_well_as_others():
    rare = np.full((3, 2, 3), 1e-100)
    rare[:, :, 0] = 1.0
    problem = Problem(H=3, S=3, A=2, episodes=1, transition=rare)
    shape = sampling.geometry(problem)
    C, _ = occupancy_polytopes.flow_equations(problem.dynamics.transition, problem.initial)
    reach = shape.scale_n.reshape(3, 3, 2).sum(axis=-1).ravel()
    flow = C @ (shape.scale_n[:, None] * shape.tangent_nm)
    np.testing.assert_allclose(flow[reach > 0] / reach[reach > 0, None], 0.0, atol=1e-12)
    np.testing.assert_allclose(shape.tangent_nm.T @ shape.tangent_nm, np.eye(7), atol=1e-12)


@pytest.mark.parametrize("H, S, A", [(1, 1, 3), (3, 2, 2), (2, 2, 1), (4, 1, 2)])
@pytest.mark.parametrize("ratio", [2.0, 1.0 + 1e-9])
def test_spanner_holds_every_occupancy_with_coefficients_up_to_its_ratio(H, S, A, ratio):
    problem = random_problem(1, H, S, A)
    shape = sampling.geometry(problem)
    span, spanner = shape.span_nd, sampling.barycentric_spanner(problem, shape, ratio)
    vertices = scaled(naive_exp2.distinct_occupancies(problem.transition, problem.initial), shape)
    for row in spanner:  # each is the occupancy of a deterministic policy
        assert np.isclose(vertices, row, rtol=0.0, atol=1e-10).all(axis=1).any()
    coefficients = np.linalg.solve((spanner @ span).T, (vertices @ span).T)
    assert np.abs(coefficients).max() <= ratio + 1e-9


def test_linear_optimisation_finds_the_best_vertex():
    problem = random_problem(2, 3, 2, 2)
    shape = sampling.geometry(problem)
    vertices = scaled(naive_exp2.distinct_occupancies(problem.transition, problem.initial), shape)
    for cost in np.random.default_rng(0).normal(size=(20, 12)):
        found = sampling.extreme_point(problem, shape, cost)
        assert cost @ found == pytest.approx((vertices @ cost).min(), abs=1e-12)


def test_chords():
    rng = np.random.default_rng(3)
    x, direction = rng.random((50, 4)), rng.normal(size=(50, 4))
    x[0, 2], direction[1, 1] = 0.0, 0.0
    first, last = sampling.chords(x, direction)
    for row in range(50):
        assert (first[row], last[row]) == pytest.approx(naive.chord(x[row], direction[row]), abs=1e-14)


@pytest.mark.parametrize("rate", [0.0, 1e-10, 0.7, -0.7, 30.0, -30.0, 4000.0, -4000.0])
@pytest.mark.parametrize("length", [0.3, 2.0])
def test_points_on_a_chord_invert_the_cumulative_law(rate, length):
    for u in (0.0, 0.1, 0.5, 0.9, 1.0 - 2.0**-53):
        t = sampling.truncated_exponential(np.array([rate]), np.array([length]), np.array([u]))[0]
        assert 0.0 <= t <= length
        assert naive.cumulative(t, rate, length) == pytest.approx(u, abs=1e-7)


@pytest.mark.parametrize("cost", [(0.0, 0.0, 0.0), (3.0, -1.0, 0.5), (0.0, 20.0, 5.0)])
def test_hit_and_run_samples_the_tilted_simplex(cost):
    # H = 1: the polytope is the simplex.  4000 chains; the band is 5 standard deviations of their mean, 0.2/√4000 each
    problem = random_problem(0, 1, 1, 3)
    shape = sampling.geometry(problem)
    pool, draws = np.zeros((4000, 2)), Draws(1, 0, 0, 1)
    for _ in range(40):
        pool = sampling.hit_and_run(shape, np.array(cost) * shape.scale_n, pool, np.eye(2), draws)
    root = sampling.spread(pool)
    for _ in range(20):
        pool = sampling.hit_and_run(shape, np.array(cost) * shape.scale_n, pool, root, draws)
    points = shape.scale_n * (shape.centre_n + pool @ shape.tangent_nm.T)
    assert points.min() >= -1e-12
    np.testing.assert_allclose(points.sum(axis=1), 1.0, atol=1e-12)
    expected = naive.tilted_simplex_mean(np.array(cost))
    np.testing.assert_allclose(points.mean(axis=0), expected, atol=5 * points.std() / np.sqrt(4000) + 1e-4)
    if not any(cost):
        np.testing.assert_allclose(expected, 1 / 3, atol=1e-3)


def test_spread_is_a_root_of_the_covariance():
    pool = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 1e-3, 5.0]
    root = sampling.spread(pool)
    np.testing.assert_allclose(root @ root.T, np.cov(pool.T), rtol=1e-4, atol=1e-9)
    assert sampling.spread(np.zeros((5, 0))).shape == (0, 0)
    assert np.isfinite(sampling.spread(np.zeros((5, 2)))).all()  # chains that have not moved yet
