import numpy as np
import pytest

from aggbandit.learners.base import Problem
from aggbandit.learners.parts import deterministic_policies as parts
from aggbandit.mdp.tabular import TabularMDP
from naive import exp2 as naive
from naive import planning


def problems():
    rng = np.random.default_rng(5)
    full = rng.dirichlet(np.ones(2), size=(3, 2, 2))
    yield "full", Problem(H=3, S=2, A=2, episodes=1, transition=full), 2**5
    moves = np.zeros((3, 2, 2, 2))  # action a leads to state a
    moves[:, :, 0, 0] = moves[:, :, 1, 1] = 1.0
    yield "deterministic", Problem(H=3, S=2, A=2, episodes=1, transition=moves), 2**3
    yield "stationary", Problem(H=3, S=2, A=2, episodes=1, transition=full[0]), 2**5
    yield "two starts", Problem(H=2, S=2, A=2, episodes=1, initial_state=[0.25, 0.75], transition=full[:2]), 2**4
    stuck = np.zeros((3, 2, 2, 2))
    stuck[:, :, :, 0] = 1.0  # state 1 is never reached
    yield "unreachable", Problem(H=3, S=2, A=2, episodes=1, transition=stuck), 2**3
    sparse = TabularMDP.sparse([[[0], [1]], [[1], [0]]], np.ones((2, 2, 1)), horizon=3)
    yield "sparse", Problem(H=3, S=2, A=2, episodes=1, transition=sparse), 2**3
    yield "one action", Problem(H=3, S=2, A=1, episodes=1, transition=full[:, :, :1]), 1


@pytest.mark.parametrize(("name", "problem", "number"), list(problems()), ids=lambda x: x if isinstance(x, str) else "")
def test_vertices_are_the_distinct_occupancies(name, problem, number):
    transition = np.broadcast_to(problem.dynamics.transition, (problem.H, problem.S, problem.A, problem.S))
    expected = naive.distinct_occupancies(transition, problem.initial)
    found = parts.vertices(problem, "x")
    rows = found.occupancy_nhsa.reshape(len(found.actions_nhs), -1)
    assert len(rows) == len(expected) == number == parts.count(problem, "x")
    for row in expected:
        assert np.isclose(rows, row, rtol=0.0, atol=1e-12).all(axis=1).sum() == 1
    for row, actions in zip(rows, found.actions_nhs, strict=True):
        policy = parts.as_policy(actions, problem.A)
        np.testing.assert_allclose(policy.sum(axis=-1), 1.0, rtol=1e-15)
        reach = planning.occupancy(transition, policy, problem.initial)
        np.testing.assert_allclose(row, (reach[:, :, None] * policy).ravel(), atol=1e-14)
        np.testing.assert_array_equal(actions < 0, reach == 0.0)  # there nothing is said, and every action played
        np.testing.assert_array_equal(policy[reach == 0.0], 1 / problem.A)
    assert found.dimension == np.linalg.matrix_rank(rows) == parts.span_dimension(problem)


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_span_coordinates_keep_all_estimators(scale):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 6)) * np.array([1, 1, 1, 1, 0, scale])
    z = parts.span_coordinates(rows, 3)
    assert z.shape == (12, 3)
    np.testing.assert_allclose(z.T @ z / 12, np.eye(3), atol=1e-12)
    # an invertible linear map leads from the coordinates back to the rows
    back = np.linalg.lstsq(z, rows, rcond=None)[0]
    np.testing.assert_allclose(z @ back, rows, atol=1e-12 * scale + 1e-12)
