"""aggbandit.kernels.eights: vectors of eight against NumPy, sorting networks against all inputs of zeros and ones."""

from itertools import product

import numpy as np
import pytest
from numba import njit

from aggbandit.kernels import eights
from aggbandit.kernels.eights import (
    exp_bounded,
    fma,
    greater,
    greatest_of,
    integer_from,
    lesser,
    load,
    merge,
    sort,
    spread,
    spread_from,
    store,
    store_tags,
    store_turned,
    sum_of,
    tag,
)


def through(network, values):
    values = list(values)
    for i, j in network:
        if not values[i] > values[j]:
            values[i], values[j] = values[j], values[i]
    return values


def test_eight_are_sorted():
    """A network that sorts every input of zeros and ones sorts everything (Knuth, TAOCP 3, 5.3.4, theorem Z)."""
    for values in product((0, 1), repeat=8):
        assert through(eights.SORT_8, values) == sorted(values, reverse=True)


def test_two_sorted_eights_are_merged():
    for ones, others in product(range(9), repeat=2):
        values = [1] * ones + [0] * (8 - ones) + [1] * others + [0] * (8 - others)
        assert through(eights.MERGE_8_8, values) == sorted(values, reverse=True)


@pytest.mark.parametrize("n", range(13))
def test_any_number_is_sorted(n):
    network = eights.merge_exchange(n)
    assert all(0 <= i < j < n for i, j in network)
    for values in product((0, 1), repeat=n):
        assert through(network, values) == sorted(values, reverse=True)


def test_a_network_without_one_comparator_is_noticed():
    for k in range(len(eights.SORT_8)):
        damaged = eights.SORT_8[:k] + eights.SORT_8[k + 1 :]
        assert any(through(damaged, v) != sorted(v, reverse=True) for v in product((0, 1), repeat=8))


@njit
def sort_lanes(table, pairs):
    for i in range(table.shape[0] // 8):
        sort(table, 64 * i)
    for k in range(pairs.shape[0]):
        merge(table, 64 * pairs[k, 0], 64 * pairs[k, 1])


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_every_lane_is_sorted_for_itself(blocks):
    rng = np.random.default_rng(blocks)
    table = rng.normal(size=(8 * blocks, 8))
    table[rng.random(table.shape) < 0.3] = 0.5  # ties
    table[3, 2], table[5, 2], table[0, 4] = -np.inf, np.inf, 5e-324
    expected = -np.sort(-table, axis=0)
    sort_lanes(table, np.array(eights.merge_exchange(blocks), np.int64).reshape(-1, 2))
    np.testing.assert_array_equal(table, expected)


@njit
def tag_and_read(values, mask, out_tagged, out_tags):
    for i in range(values.shape[0]):
        x = tag(load(values, 8 * i), mask, i)
        store(out_tagged, 8 * i, x)
        store_tags(out_tags, 8 * i, x, mask, 3)


def test_tags_come_back_and_hardly_change_the_value():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 8)) * 10.0 ** rng.integers(-300, 1, size=(20, 8))
    values[4], values[5, :4] = 0.0, -0.0
    tagged, tags = np.empty((20, 8)), np.empty((20, 8), np.int64)
    tag_and_read(values, 31, tagged, tags)
    np.testing.assert_array_equal(tags, 3 * np.arange(20)[:, None] * np.ones((1, 8), int))
    np.testing.assert_allclose(tagged, values, rtol=2.0**-47, atol=1e-320)
    assert (tagged != values).any()


@njit
def turn(table, out_turned, stride):
    store_turned(
        out_turned, 0, stride,
        load(table, 0), load(table, 8), load(table, 16), load(table, 24),
        load(table, 32), load(table, 40), load(table, 48), load(table, 56),
    )  # fmt: skip


def test_turned_is_the_transpose():
    table = np.random.default_rng(1).random((8, 8))
    turned = np.zeros((8, 11))
    turn(table, turned, 11)
    np.testing.assert_array_equal(turned[:, :8], table.T)
    np.testing.assert_array_equal(turned[:, 8:], 0.0)


@njit
def arithmetic(a, b, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * y)
    store(out, 24, x / y)
    store(out, 32, fma(x, y, spread(2.0)))
    store(out, 40, greater(x, y))
    store(out, 48, lesser(x, spread_from(b, 1)))
    return sum_of(x), greatest_of(x)


def test_arithmetic():
    rng = np.random.default_rng(2)
    a, b, out = rng.normal(size=8), rng.normal(size=8), np.empty((7, 8))
    total, greatest = arithmetic(a, b, out)
    np.testing.assert_array_equal(out[:4], [a + b, a - b, a * b, a / b])
    np.testing.assert_allclose(out[4], a * b + 2, rtol=1e-15)
    np.testing.assert_array_equal(out[5:], [np.maximum(a, b), np.minimum(a, b[1])])
    assert total == pytest.approx(a.sum(), rel=1e-14)
    assert greatest == a.max()


@njit
def read(array, offset):
    return integer_from(array, offset)


def test_integers():
    assert read(np.array([7, 8, 9]), 2) == 9


@njit
def exponentials(x, out):
    for i in range(0, x.shape[0], 8):
        store(out, i, exp_bounded(load(x, i)))


def test_exponential_to_two_ulp():
    x = np.concatenate([np.linspace(-700, 700, 4096), -np.logspace(-12, 2, 4096), [0.0] * 8])
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_array_max_ulp(out, np.exp(x), maxulp=2)
    assert out[-1] == 1.0
