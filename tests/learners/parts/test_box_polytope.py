import warnings

import numpy as np
import pytest

from aggbandit.learners.parts import box_polytope as polytope
from aggbandit.learners.parts.box_polytope import Point
from naive import occupancy_polytopes as naive


class Given:
    """Normal numbers that are given in advance."""

    def __init__(self, *values):
        self.values = list(values)

    def normal(self, size):
        return np.reshape(self.values.pop(0), size)


def random_boxes(seed, H, S, A, kind):
    """Corners around random distributions, and the distribution of the first state."""
    rng = np.random.default_rng(seed)
    mean = rng.dirichlet(np.ones(S), size=(H, S, A))
    initial = np.eye(S)[0]
    radius = rng.uniform(0.02, 0.6, size=(H, S, A, S))
    if kind == "simplex":
        radius[:] = 2.0
    if kind == "mixed":  # some rows never seen, some frequencies 0
        radius[:, :, 0] = 2.0
        mean[:, 0] = np.eye(S)[0]
    if kind == "short":
        radius[:] = 1e-3
    if kind == "starts":
        initial = np.zeros(S)
        initial[: min(2, S)] = 1.0 / min(2, S)
    return np.maximum(0.0, mean - radius), np.minimum(1.0, mean + radius), initial


shapes = pytest.mark.parametrize(
    "H, S, A, kind",
    [
        (1, 1, 1, "simplex"),
        (1, 3, 2, "starts"),
        (3, 1, 2, "short"),
        (2, 3, 1, "mixed"),
        (3, 2, 2, "simplex"),
        (3, 3, 2, "wide"),
        (3, 3, 2, "mixed"),
        (3, 2, 2, "short"),
        (2, 3, 2, "starts"),
    ],
)


class Dense:
    """The polytope in the coordinates (y, x) of its definition, as equations and inequalities on open variables."""

    def __init__(self, seed, H, S, A, kind):
        self.H, self.S, self.A = H, S, A
        self.lower, self.upper, self.initial = random_boxes(seed, H, S, A, kind)
        self.body = polytope.boxes(self.lower, self.upper, self.initial)
        inner = (H - 1) * S * A * S
        place = np.concatenate([np.repeat(np.arange((H - 1) * S), A * S), np.repeat((H - 1) * S + np.arange(S), A)])
        self.variables = self.body.open_hs.ravel()[place]
        C, self.d = naive.box_flow_equations(H, S, A, self.initial)
        self.C = C[:, self.variables]
        slacks = naive.box_slacks(self.lower, self.upper, H, S, A)
        self.slacks = slacks[np.abs(slacks[:, ~self.variables]).sum(axis=1) == 0.0][:, self.variables]
        self.basis = naive.null_basis(self.C)
        assert self.variables.size == inner + S * A

    def vector(self, point):
        """(y, x) of (m, x)."""
        y = [polytope.next_states(self.body, m, h).ravel() for h, m in enumerate(point.m_hsai)]
        return np.concatenate([*y, point.x_sa.ravel()])[self.variables]

    def coefficients(self, vector):
        """The coefficients on (m, x) of the functional that has these on (y, x)."""
        full = np.zeros(self.variables.size)
        full[self.variables] = vector
        y = full[: -self.S * self.A].reshape(self.H - 1, self.S, self.A, self.S)
        rest = 1.0 - self.lower[:-1].sum(axis=-1, keepdims=True)
        m = (y * self.lower[:-1]).sum(axis=-1, keepdims=True) + rest * y
        return Point(m, full[-self.S * self.A :].reshape(self.S, self.A))

    def hessian(self, vector):
        scaled = self.slacks / (self.slacks @ vector)[:, None]
        return scaled.T @ scaled


def pairing(coefficients, point):
    return float((coefficients.m_hsai * point.m_hsai).sum() + (coefficients.x_sa * point.x_sa).sum())


@shapes
def test_sizes(H, S, A, kind):
    dense = Dense(0, H, S, A, kind)
    assert polytope.dimension(dense.body, A) == dense.basis.shape[1]
    if H > 1 and kind != "starts":
        assert polytope.dimension(dense.body, A) == (A * S - 1) * (1 + (H - 2) * S) + (A - 1) * S
    assert polytope.barrier_parameter(dense.body, A) == len(dense.slacks)


@shapes
def test_first_point_is_strictly_inside(H, S, A, kind):
    dense = Dense(1, H, S, A, kind)
    point = polytope.interior_point(dense.body, dense.initial, A)
    vector = dense.vector(point)
    np.testing.assert_allclose(dense.C @ vector, dense.d, atol=1e-14)
    assert (dense.slacks @ vector > 0.0).all()
    occupancy = polytope.occupancy(point)
    np.testing.assert_allclose(np.ptp(occupancy, axis=-1), 0.0, atol=1e-14)  # the uniform policy
    np.testing.assert_allclose(occupancy.sum(axis=(1, 2)), 1.0, rtol=1e-13)


@shapes
def test_minimum_is_cvxpys(H, S, A, kind):
    dense = Dense(2, H, S, A, kind)
    cost = 5.0 * np.random.default_rng(3).normal(size=dense.variables.sum())
    start = polytope.interior_point(dense.body, dense.initial, A)
    found = polytope.minimise(dense.body, dense.initial, dense.coefficients(cost), start)
    vector = dense.vector(found)
    assert (dense.slacks @ vector > 0.0).all()
    np.testing.assert_allclose(dense.C @ vector, dense.d, atol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = naive.barrier_minimum(cost, dense.slacks, dense.C, dense.d, np.ones(len(dense.slacks)))
    np.testing.assert_allclose(vector, expected, rtol=2e-4, atol=1e-6)
    if dense.basis.shape[1]:
        gradient = dense.basis.T @ (cost - (dense.slacks / (dense.slacks @ vector)[:, None]).sum(axis=0))
        reduced = dense.basis.T @ dense.hessian(vector) @ dense.basis
        assert np.sqrt(gradient @ np.linalg.solve(reduced, gradient)) < 1e-8


@shapes
def test_dikin_steps_are_the_reduced_coordinates_ones(H, S, A, kind):
    dense = Dense(4, H, S, A, kind)
    body = dense.body
    point = polytope.minimise(
        body, dense.initial, polytope.nothing(body, A), polytope.interior_point(body, dense.initial, A)
    )
    vector = dense.vector(point)
    m = dense.basis.shape[1]
    if m == 0:
        return
    reduced = dense.basis.T @ dense.hessian(vector) @ dense.basis
    K = dense.basis @ np.linalg.solve(reduced, dense.basis.T)
    rng = np.random.default_rng(5)
    second_moment = np.zeros((m, m))
    inner = point.m_hsai.shape
    size = int(np.prod(inner))
    for j in range(2 * size + S * A):  # one normal number at a time
        normal = np.zeros(2 * size + S * A)
        normal[j] = 1.0
        step, pull = polytope.dikin_step(body, point, Given(normal[: 2 * size], normal[2 * size :]))
        v = dense.basis.T @ dense.vector(step)
        if not v.any():
            continue
        np.testing.assert_allclose(v @ reduced @ v, 1.0, rtol=1e-6)
        # the length that it was divided by: g K g, with g the slack's gradient over the slack
        h, s, a, i = np.unravel_index(j % size, inner) if j < 2 * size else (H - 1, (j - 2 * size) // A, j % A, 0)
        slack = np.zeros(dense.variables.size)
        if j < 2 * size:
            flat = np.arange(size).reshape(inner)
            sign = 1.0 if j < size else -1.0
            slack[flat[h, s, a]] -= sign * (dense.lower if j < size else dense.upper)[h, s, a, i]
            slack[flat[h, s, a, i]] += sign
        else:
            slack[size + j - 2 * size] = 1.0
        slack = slack[dense.variables]
        g = slack / (slack @ vector)
        length = np.sqrt(g @ K @ g)
        np.testing.assert_allclose(dense.vector(step) * length, K @ g, atol=1e-8)
        second_moment += length**2 * np.outer(v, v)
    np.testing.assert_allclose(second_moment @ reduced, np.eye(m), atol=1e-6)  # normal in the Hessian's metric
    # any draw: on the ellipsoid, inside the polytope, and `pull` is the Hessian times the step
    for _ in range(5):
        step, pull = polytope.dikin_step(body, point, Given(rng.normal(size=2 * size), rng.normal(size=S * A)))
        moved = dense.vector(step)
        np.testing.assert_allclose(dense.C @ moved, 0.0, atol=1e-13)
        assert (dense.slacks @ (vector + moved) > 0.0).all()
        assert moved @ dense.hessian(vector) @ moved == pytest.approx(1.0, rel=1e-7)
        for _ in range(3):
            other, _ = polytope.dikin_step(body, point, Given(rng.normal(size=2 * size), rng.normal(size=S * A)))
            expected = moved @ dense.hessian(vector) @ dense.vector(other)
            assert pairing(pull, other) == pytest.approx(expected, rel=1e-6, abs=1e-9)
