import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aggbandit.errors import AggbanditError
from aggbandit.learners.base import Problem
from aggbandit.learners.parts import occupancy_polytope as polytope
from aggbandit.mdp.tabular import TabularMDP
from naive import occupancy_polytopes as naive
from naive import planning


def dynamics(seed, H, S, A, kind="full"):
    """Transitions (T, S, A, S) and a distribution of the first state."""
    rng = np.random.default_rng(seed)
    full = rng.dirichlet(np.ones(S), size=(H, S, A))
    initial = np.eye(S)[0]
    if kind == "holes":  # some states are out of reach at some steps
        full *= rng.random(full.shape) < 0.5
        full[..., 0] += full.sum(axis=-1) == 0.0
        full /= full.sum(axis=-1, keepdims=True)
    if kind == "stationary":
        full = full[:1]
    if kind == "starts":
        initial = rng.dirichlet(np.ones(S))
    return full, initial


def dense(transition, H):
    return np.broadcast_to(transition, (H, *transition.shape[1:]))


shapes = pytest.mark.parametrize(
    "H, S, A, kind",
    [
        (1, 1, 1, "full"),
        (1, 3, 2, "starts"),
        (3, 1, 2, "full"),
        (3, 3, 1, "full"),
        (3, 3, 2, "holes"),
        (4, 3, 2, "stationary"),
        (4, 4, 3, "full"),
        (3, 4, 2, "starts"),
    ],
)


@shapes
def test_reachable_places_and_dimensions(H, S, A, kind):
    transition, initial = dynamics(0, H, S, A, kind)
    open_hs = polytope.reachable(transition, initial, H)
    np.testing.assert_array_equal(open_hs, naive.reachable(dense(transition, H), initial))
    C, _ = naive.flow_equations(dense(transition, H), initial)
    variables = np.repeat(open_hs.ravel(), A)
    basis = polytope.tangent_basis(transition, open_hs, A)
    assert basis.shape[1] == polytope.dimension(open_hs, A) == variables.sum() - np.linalg.matrix_rank(C[:, variables])
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    np.testing.assert_allclose(C @ basis, 0.0, atol=1e-12)
    assert not basis[~variables].any()


@shapes
@pytest.mark.parametrize("root", [0.0, 3.0])
def test_minimum_is_cvxpys(H, S, A, kind, root):
    transition, initial = dynamics(1, H, S, A, kind)
    rng = np.random.default_rng(7)
    cost = 10.0 * rng.normal(size=(H, S, A))
    log = rng.uniform(1.0, 4.0, size=(H, S, A))
    open_hs = polytope.reachable(transition, initial, H)
    start = polytope.uniform_occupancy(transition, initial, H, A)
    x = polytope.minimise(transition, initial, open_hs, cost, start, log=log, root=root)
    C, d = naive.flow_equations(dense(transition, H), initial)
    variables = np.repeat(open_hs.ravel(), A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = naive.barrier_minimum(
            cost.ravel()[variables], np.eye(variables.sum()), C[:, variables], d, log.ravel()[variables], root
        )
    np.testing.assert_allclose(x.ravel()[variables], expected, rtol=2e-4, atol=1e-7)
    assert not x.ravel()[~variables].any()
    assert (x.ravel()[variables] > 0.0).all()
    np.testing.assert_allclose(C @ x.ravel(), d, atol=1e-15)
    # optimality to the specified 1e-10 in the norm of the Hessian, which is more than cvxpy can tell
    at = x.ravel()[variables]
    gradient = cost.ravel()[variables] - 0.5 * root / np.sqrt(at) - log.ravel()[variables] / at
    hessian = 0.25 * root * at**-1.5 + log.ravel()[variables] / at**2
    basis = naive.null_basis(C[:, variables])
    if basis.shape[1]:
        reduced = basis.T @ gradient
        decrement = reduced @ np.linalg.solve(basis.T @ (hessian[:, None] * basis), reduced)
        assert np.sqrt(decrement) < 1e-9


@given(
    seed=st.integers(0, 10_000),
    size=st.floats(-1.0, 5.0),
    log=st.floats(-4.0, 1.0),
    skew=st.sampled_from([0.02, 0.1, 1.0]),
)
@example(seed=6, size=5.0, log=-4.0, skew=0.1)
def test_steps_are_optimal_whatever_the_cost_the_weight_and_the_start(seed, size, log, skew):
    # regression: small weights once made the line search believe rounding, and stop half-way
    transition, initial = dynamics(seed, 3, 3, 2)
    rng = np.random.default_rng([seed, 1])
    cost = 10.0**size * rng.normal(size=(3, 3, 2))
    policy = np.maximum(rng.dirichlet(np.full(2, skew), size=(3, 3)), 1e-12)
    start = polytope.of_policy(transition, initial, policy / policy.sum(axis=-1, keepdims=True))
    assert remaining_decrement(transition, initial, cost, start, 10.0**log) < 1e-5


@pytest.mark.parametrize("log", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_small_weights_are_solved_as_exactly_as_great_ones(seed, log):
    transition, initial = dynamics(seed, 3, 3, 2)
    cost = np.random.default_rng([seed, 2]).normal(size=(3, 3, 2))
    start = polytope.uniform_occupancy(transition, initial, 3, 2)
    assert remaining_decrement(transition, initial, cost, start, log) < 1e-9


def remaining_decrement(transition, initial, cost, start, log):
    """At what `minimise` finds, for the objective over log, which is standard self-concordant."""
    open_hs = polytope.reachable(transition, initial, 3)
    x = polytope.minimise(transition, initial, open_hs, cost, start, log=log)
    variables = np.repeat(open_hs.ravel(), 2)
    C, _ = naive.flow_equations(transition, initial)
    at = x.ravel()[variables]
    assert (at > 0.0).all()
    # with X the scale of the coordinates, the gradient over log in the null space of C X, and the Hessian the identity
    basis = naive.null_basis(C[:, variables] * at)
    return np.linalg.norm(basis.T @ (at * cost.ravel()[variables] / log - 1.0))


def test_a_cost_beyond_double_precision_is_an_error():
    transition, initial = dynamics(0, 2, 2, 2)
    open_hs = polytope.reachable(transition, initial, 2)
    start = polytope.uniform_occupancy(transition, initial, 2, 2)
    with pytest.raises(AggbanditError, match=r"stopped at a decrement of .* Lower step_scale"):
        polytope.minimise(transition, initial, open_hs, np.full((2, 2, 2), np.nan), start, log=1.0)


@shapes
def test_dikin_steps_are_the_reduced_coordinates_ones(H, S, A, kind):
    transition, initial = dynamics(2, H, S, A, kind)
    open_hs = polytope.reachable(transition, initial, H)
    x = polytope.uniform_occupancy(transition, initial, H, A)
    C, _ = naive.flow_equations(dense(transition, H), initial)
    variables = np.repeat(open_hs.ravel(), A)
    basis = naive.null_basis(C[:, variables])
    m = basis.shape[1]
    at = x.ravel()[variables]
    hessian = basis.T @ (basis / at[:, None] ** 2)
    second_moment = np.zeros((m, m))
    for j in np.flatnonzero(variables):  # g = one normal number at a time: the steps' matrix, column by column
        normal = np.eye(H * S * A)[j].reshape(H, S, A)
        step, pull = polytope.dikin_step(transition, open_hs, x, normal)
        v = basis.T @ step.ravel()[variables]
        if m and np.abs(v).max() > 0:
            np.testing.assert_allclose(v @ hessian @ v, 1.0, rtol=1e-9)  # ‖y − x‖_x = 1
            np.testing.assert_allclose(basis @ v, step.ravel()[variables], atol=1e-12)  # C step = 0
            np.testing.assert_allclose(basis.T @ pull.ravel()[variables], hessian @ v, rtol=1e-7, atol=1e-9)
            assert ((x + step).ravel()[variables] > 0.0).all()
            # before it was divided by its length, the step was K g; so its scale is that of K g
            K = basis @ np.linalg.solve(hessian, basis.T)
            g = normal.ravel()[variables] / at
            length = np.sqrt(g @ K @ g)
            np.testing.assert_allclose(step.ravel()[variables] * length, K @ g, atol=1e-9)
            second_moment += length**2 * np.outer(v, v)
    # Σ_j (K g_j)(K g_j)^T = K ∇²R K = K: normal in the metric of the Hessian, so uniform once divided by its length
    if m:
        np.testing.assert_allclose(second_moment, np.linalg.inv(hessian), rtol=1e-7, atol=1e-12)


def test_policy_of_an_occupancy():
    transition, initial = dynamics(3, 3, 3, 2, "holes")
    policy = np.random.default_rng(0).dirichlet(np.ones(2), size=(3, 3))
    x = polytope.of_policy(transition, initial, policy)
    np.testing.assert_allclose(x, planning.occupancy(transition, policy, initial)[:, :, None] * policy, atol=1e-15)
    open_hs = polytope.reachable(transition, initial, 3)
    back = polytope.policy_of(x)
    np.testing.assert_allclose(back[open_hs], policy[open_hs], rtol=1e-12)
    assert (back[~open_hs] == 0.5).all()


def test_transitions_of_a_sparse_model():
    successors = np.array([[[0, 1], [1, 1]], [[1, 0], [0, 0]]])
    mdp = TabularMDP.sparse(successors, np.full((2, 2, 2), 0.5), horizon=3)
    transition = polytope.dense_transition(Problem(H=3, S=2, A=2, episodes=1, transition=mdp))
    assert transition.shape == (1, 2, 2, 2)
    np.testing.assert_allclose(transition[0], mdp.transition[0])
    steps = TabularMDP.sparse(np.broadcast_to(successors, (3, 2, 2, 2)), np.full((3, 2, 2, 2), 0.5))
    transition = polytope.dense_transition(Problem(H=3, S=2, A=2, episodes=1, transition=steps))
    assert transition.shape == (3, 2, 2, 2)
