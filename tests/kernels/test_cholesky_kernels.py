import numpy as np
import pytest

from aggbandit.kernels import cholesky


def factored(seed, d, n=20):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    root = np.eye(d) * np.sqrt(2.0)
    for row in rows:
        cholesky.rank_one_update(root, row.copy())
    return root, 2.0 * np.eye(d) + rows.T @ rows, rng


@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_updates_keep_the_factor(d):
    root, matrix, _ = factored(d, d)
    np.testing.assert_allclose(root.T @ root, matrix, rtol=1e-12, atol=1e-12)
    assert not np.tril(root, -1).any()
    assert (np.diagonal(root) > 0.0).all()


@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_solutions(d):
    root, matrix, rng = factored(d + 1, d)
    right = rng.normal(size=d)
    right[0] = 0.0
    answer = right.copy()
    cholesky.solve(root, answer)
    np.testing.assert_allclose(matrix @ answer, right, atol=1e-12)
    rows = rng.normal(size=(5, d))
    norms = np.empty(5)
    cholesky.inverse_norms(root, rows, norms)
    np.testing.assert_allclose(norms, np.einsum("nd,nd->n", rows, np.linalg.solve(matrix, rows.T).T), rtol=1e-11)
    unit = np.eye(d)
    cholesky.spread(root, unit)  # row i is R^{-1} e_i
    np.testing.assert_allclose(unit.T @ unit, np.linalg.inv(matrix), atol=1e-12)  # the covariance of Σ_i z_i row_i
    np.testing.assert_allclose(root @ unit.T, np.eye(d), atol=1e-12)


def test_a_hundred_thousand_updates_do_not_drift():
    rng = np.random.default_rng(0)
    places = rng.integers([0, 3], [3, 6], size=(100_000, 2))
    root, matrix = np.eye(6), np.eye(6)
    for i, j in places:
        feature = np.zeros(6)
        feature[[i, j]] = 1.0
        matrix[[i, i, j, j], [i, j, i, j]] += 1.0
        cholesky.rank_one_update(root, feature)
    np.testing.assert_allclose(root.T @ root, matrix, rtol=1e-10, atol=1e-12 * 33_000)
