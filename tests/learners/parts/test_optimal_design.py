import numpy as np
import pytest

from aggbandit.learners.base import Problem
from aggbandit.learners.parts import deterministic_policies, optimal_design


def greatest(z, w):
    return np.einsum("nd,nd->n", z @ np.linalg.inv((z * w[:, None]).T @ z), z).max()


@pytest.mark.parametrize("n, d", [(5, 5), (40, 3), (300, 7), (6, 1)])
def test_kiefer_and_wolfowitz(n, d):
    z = np.random.default_rng(n).normal(size=(n, d))
    w = optimal_design.g_optimal(z, gap=1e-6)
    assert w.min() >= 0.0
    assert w.sum() == pytest.approx(1.0, rel=1e-12)
    assert d * (1 - 1e-12) <= greatest(z, w) <= d * (1 + 1e-6) * (1 + 1e-9)
    # no other weights have a greater determinant
    best = np.linalg.slogdet((z * w[:, None]).T @ z)[1]
    for other in np.random.default_rng(1).dirichlet(np.ones(n), size=50):
        assert np.linalg.slogdet((z * other[:, None]).T @ z)[1] <= best + 1e-9


def test_steps_away_from_a_vector_take_no_more_than_it_has():
    # regression: seeds at which the line search would take a weight below 0
    for seed in (127, 172):
        rng = np.random.default_rng(seed)
        d = rng.integers(2, 6)
        n = rng.integers(d + 1, 30)
        z = rng.normal(size=(n, d)) * rng.exponential(size=(n, 1))
        assert greatest(z, optimal_design.g_optimal(z, gap=1e-6)) <= d * (1 + 2e-6)


def test_design_on_policies_explores_all_of_them():
    transition = np.random.default_rng(2).dirichlet(np.ones(3), size=(4, 3, 2))
    problem = Problem(H=4, S=3, A=2, episodes=1, transition=transition)
    found = deterministic_policies.vertices(problem, "x")
    z = deterministic_policies.span_coordinates(found.occupancy_nhsa.reshape(1024, -1), found.dimension)
    w = optimal_design.g_optimal(z)
    assert greatest(z, w) <= found.dimension * (1 + optimal_design.GAP) * (1 + 1e-9)


def test_independent_vectors_share_the_weight():
    z = np.diag([1.0, 5.0, 0.2])
    np.testing.assert_allclose(optimal_design.g_optimal(z), 1 / 3, rtol=1e-12)
