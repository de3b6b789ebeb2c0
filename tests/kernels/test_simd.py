from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from aggbandit.kernels import simd
from aggbandit.kernels.simd import LANES, ROWS


class Pair(NamedTuple):
    x: np.ndarray
    out: np.ndarray


class Triple(NamedTuple):
    left: np.ndarray
    right: np.ndarray
    out: np.ndarray


@njit
def scalar_exp(x, small, out):
    for i in range(x.size):
        out[i] = simd.exp_small(x[i]) if small else simd.exp_bounded(x[i])


@njit
def vector_exp(arrays, small, groups):
    at = simd.pointers(arrays)
    for i in range(groups):
        x = simd.load(at.x, i * LANES)
        simd.store(at.out, i * LANES, simd.exp_small(x) if small else simd.exp_bounded(x))


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than double here")
@pytest.mark.parametrize("small, bound", [(True, simd.SMALL), (False, 1.0), (False, 700.0)])
def test_exponentials_are_right_to_an_ulp(small, bound):
    x = np.random.default_rng(0).uniform(-bound, bound, 200_000)
    x[:5] = 0.0, -bound, bound, 1e-300, -1e-17
    out = np.empty_like(x)
    scalar_exp(x, small, out)
    exact = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs((out - exact) / np.spacing(exact.astype(np.float64)))) <= 1.0


@pytest.mark.parametrize("small, bound", [(True, simd.SMALL), (False, 700.0)])
def test_vectors_and_scalars_give_the_same_bits(small, bound):
    x = np.random.default_rng(1).uniform(-bound, bound, 50 * LANES)
    one_by_one, together = np.empty_like(x), np.empty_like(x)
    scalar_exp(x, small, one_by_one)
    vector_exp(Pair(x, together), small, 50)
    np.testing.assert_array_equal(one_by_one, together)


@njit
def vector_operations(arrays, scalar):
    at = simd.pointers(arrays)
    x, y = simd.load(at.left, 0), simd.load(at.right, 0)
    results = (
        x + y, x - y, x * y, x / y, x + scalar, scalar - x, simd.fma(x, y, scalar), simd.greater(x, y),
        simd.lesser(x, y), simd.absolute(y), simd.where_equal(x, y, x, scalar), simd.spread(scalar),
    )  # fmt: skip
    for i in range(len(results)):
        simd.store(at.out, i * LANES, results[i])


def test_operations_are_those_of_each_lane():
    rng = np.random.default_rng(2)
    x, y, s = rng.normal(size=LANES), rng.normal(size=LANES), 0.75
    y[3] = x[3]
    out = np.empty((12, LANES))
    vector_operations(Triple(x, y, out), s)
    fused = [float(Fraction(a) * Fraction(b) + Fraction(s)) for a, b in zip(x, y, strict=True)]  # rounded once
    expected = [
        x + y, x - y, x * y, x / y, x + s, s - x, fused, np.maximum(x, y), np.minimum(x, y), np.abs(y),
        np.where(x == y, x, s), np.full(LANES, s),
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


@njit
def masks(arrays, limit, bound):
    at = simd.pointers(arrays)
    greatest, least = simd.load(at.x, 0), simd.load(at.out, 0)
    return simd.beyond(greatest, limit, least, bound), simd.is_zero(greatest)


def test_lanes_beyond_a_limit_are_told_by_their_bits():
    greatest, least = np.full(LANES, 0.5), np.full(LANES, 2.0)
    assert masks(Pair(greatest, least), 0.5, 2.0) == (0, False)
    greatest[1], least[2], greatest[4], least[5] = 0.6, 1.9, np.nan, np.nan
    assert masks(Pair(greatest, least), 0.5, 2.0) == (0b110110, False)
    zero = np.zeros(LANES)
    assert masks(Pair(zero, least), 0.5, 2.0)[1]
    zero[-1] = 5e-324
    assert not masks(Pair(zero, least), 0.5, 2.0)[1]
    zero[-1] = np.nan
    assert not masks(Pair(zero, least), 0.5, 2.0)[1]


@njit
def counted(arrays, offset, groups, u):
    return simd.count_at_most(simd.pointers(arrays).x, offset, groups, u)


def test_entries_at_most_u_are_counted():
    x = np.concatenate([np.full(3, -1.0), np.arange(16.0), np.full(3, -1.0)])
    x[-5:-3] = np.inf
    pair = Pair(x, np.empty(0))
    assert [counted(pair, 3, 2, u) for u in (-0.5, 0.0, 7.0, 7.5, 11.0, 1e9)] == [0, 1, 8, 8, 12, 14]
    assert counted(pair, 3, 1, 1e9) == 8


@njit
def products(arrays, depth, rows, add, scalars_vary):
    at = simd.pointers(arrays)
    if scalars_vary:
        simd.multiply(at.left, 1, rows + 2, at.right, LANES, depth, at.out, LANES, rows, add)
    else:
        simd.combine(at.left, 1, at.right, LANES, (rows + 1) * LANES, depth, at.out, LANES, rows, add)


def in_order(scalars_ki, vectors_kil, start_il):
    """Sums of products, each multiply-add rounded once, k in order."""
    sums = [[Fraction(value) for value in row] for row in start_il]
    for scalars, vectors in zip(scalars_ki, vectors_kil, strict=True):
        for i, row in enumerate(sums):
            for lane in range(LANES):
                row[lane] = Fraction(float(Fraction(scalars[i]) * Fraction(vectors[i][lane]) + row[lane]))
    return np.array([[float(value) for value in row] for row in sums])


@pytest.mark.parametrize("scalars_vary", [True, False], ids=["multiply", "combine"])
@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("depth, rows", [(1, 1), (5, 2), (3, ROWS - 1), (7, ROWS)])
def test_products_add_up_in_order_and_touch_nothing_else(depth, rows, add, scalars_vary):
    rng = np.random.default_rng([depth, rows])
    out = rng.normal(size=(rows + 2, LANES))
    before = out.copy()
    if scalars_vary:
        left, right = rng.normal(size=1 + depth * (rows + 2)), rng.normal(size=(depth + 1, LANES))
        scalars = left[1:].reshape(depth, rows + 2)[:, :rows]
        vectors = np.broadcast_to(right[1:, None], (depth, rows, LANES))
    else:
        left, right = rng.normal(size=1 + depth), rng.normal(size=(1 + depth * (rows + 1), LANES))
        scalars = np.broadcast_to(left[1:, None], (depth, rows))
        vectors = right[1:].reshape(depth, rows + 1, LANES)[:, :rows]
    products(Triple(left, right, out), depth, rows, add, scalars_vary)
    start = before[1 : rows + 1] if add else np.zeros((rows, LANES))
    np.testing.assert_array_equal(out[1 : rows + 1], in_order(scalars, vectors, start))
    np.testing.assert_array_equal(out[[0, -1]], before[[0, -1]])


@njit
def scalars_by_pointer(arrays):
    at = simd.pointers(arrays)
    at.out[2] = at.x[1] + 1.0


def test_pointers_read_and_write_single_elements():
    out = np.zeros(4)
    scalars_by_pointer(Pair(np.array([1.0, 2.0]), out))
    np.testing.assert_array_equal(out, [0.0, 0.0, 3.0, 0.0])
