"""Extreme rows and extreme occupancies, compiled and not, against linear programs."""

import numpy as np
import pytest

from aggbandit._arrays import frozen
from aggbandit.kernels import occupancy_bounds as kernels
from naive import planning as naive

both_forms = pytest.mark.parametrize("jitted", [True, False], ids=["jitted", "python"])
both_senses = pytest.mark.parametrize("sign", [1.0, -1.0], ids=["greatest", "least"])


def form(kernel, jitted):
    """The kernel, or the same source uncompiled (itself where compilation is off)."""
    return kernel if jitted else getattr(kernel, "py_func", kernel)


def read_only(*arrays):
    return tuple(frozen(np.ascontiguousarray(array, dtype=np.float64)) for array in arrays)


def extreme_mean(lower, upper, values, sign, jitted=True):
    lower, upper = read_only(lower, upper)
    order = np.arange(lower.size)
    form(kernels.sort_states, jitted)(np.array(values, dtype=np.float64), sign, order)
    return form(kernels.extreme_mean, jitted)(lower, upper, np.array(values, dtype=np.float64), order)


@both_forms
@both_senses
@pytest.mark.parametrize("seed", range(20))
def test_sorting_from_any_order(seed, sign, jitted):
    rng = np.random.default_rng(seed)
    values = rng.integers(4, size=9) / 4.0  # many ties
    order = rng.permutation(9)
    form(kernels.sort_states, jitted)(values, sign, order)
    assert sorted(order) == list(range(9))
    np.testing.assert_array_equal(values[order], np.sort(values)[:: -int(sign)])


@both_forms
@both_senses
@pytest.mark.parametrize("seed", range(30))
def test_extreme_mean_is_the_linear_program(seed, sign, jitted):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 7))
    row = naive.random_rows(rng, (1, S), 0.3)
    lower, upper = naive.random_boxes(rng, row, width=[0.05, 0.5, 1.0][seed % 3], whole=0.0)
    values = rng.random(S) if seed % 2 else rng.integers(3, size=S) / 2.0
    expected = naive.extreme_row(lower[0], upper[0], values, sign)
    assert extreme_mean(lower[0], upper[0], values, sign, jitted) == pytest.approx(expected, abs=1e-9)


@both_forms
def test_extreme_mean_of_special_boxes(jitted):
    values = [0.25, 1.0, 0.5]

    def both(lower, upper):
        return tuple(extreme_mean(lower, upper, values, sign, jitted) for sign in (-1.0, 1.0))

    assert both([0.0] * 3, [1.0] * 3) == (0.25, 1.0)  # the whole simplex: ERRATA A7, not 0
    assert both([0.0, 0.25, 0.75], [0.0, 0.25, 0.75]) == (0.625, 0.625)  # one point
    assert both([0.5, 0.25, 0.25], [1.0, 1.0, 1.0]) == (0.5, 0.5)  # touches the simplex in its lower corner
    assert both([0.0, 0.0, 0.0], [0.5, 0.25, 0.25]) == (0.5, 0.5)  # ... in its upper corner
    assert both([0.0, 0.0, 0.0], [0.5, 0.5, 0.5]) == (0.375, 0.75)  # filled up to two upper ends exactly


@both_forms
@both_senses
def test_where_rounding_parts_box_and_simplex_the_corner_is_the_row(sign, jitted):
    values = [0.25, 1.0, 0.5]
    above = np.array([0.5, 0.25, 0.25 + 1e-10])
    assert extreme_mean(above, [1.0] * 3, values, sign, jitted) == pytest.approx(above @ values, abs=1e-15)
    below = np.array([0.5, 0.25, 0.25 - 1e-10])
    assert extreme_mean([0.0] * 3, below, values, sign, jitted) == pytest.approx(below @ values, abs=1e-15)
    assert extreme_mean(below, below, values, sign, jitted) == pytest.approx(below @ values, abs=1e-15)


@pytest.mark.equation("LM25-mu-bar")
@both_forms
@pytest.mark.parametrize("H, S, A", [(1, 2, 2), (2, 2, 2), (3, 3, 1), (3, 2, 2), (4, 2, 1), (3, 3, 2)])
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_bounds_are_the_linear_programs(H, S, A, zeros, jitted):
    problem = naive.random_problem(1, H, S, A, zeros=zeros)
    lower, upper = naive.random_boxes(np.random.default_rng(2), problem.transition, width=0.4)
    arguments = read_only(lower, upper, problem.policy, problem.initial)
    out_least, out_greatest = np.full((2, H, S), np.nan)
    scratch = np.full(S, np.nan), np.full(S, np.nan), np.full(S, -1)
    form(kernels.occupancy_bounds, jitted)(*arguments, out_least, out_greatest, *scratch)
    least, greatest = naive.occupancy_bounds(lower, upper, problem.policy, problem.initial)
    np.testing.assert_allclose(out_least, least, atol=1e-8)
    np.testing.assert_allclose(out_greatest, greatest, atol=1e-8)

    sweep = form(kernels.extreme_reach, jitted)
    for sign, bounds in ((-1.0, out_least), (1.0, out_greatest)):
        for h, s in np.ndindex(H, S):
            assert sweep(*arguments, h, s, sign, *scratch) == pytest.approx(bounds[h, s], rel=1e-14, abs=1e-16)
