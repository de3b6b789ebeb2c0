"""aggbandit.learners.parts.confidence_sets, and the compiled box of Algorithm 2 that must be the same."""

from math import log, sqrt

import numpy as np
import pytest

from aggbandit.kernels import po_unknown as kernel
from aggbandit.learners.parts import confidence_sets
from naive import po_unknown as naive

SHAPE = 3, 4, 2
EPISODES, CONFIDENCE = 10_000, 0.05


@pytest.fixture
def counts() -> np.ndarray:
    """Pairs never seen, seen once, and seen often enough that the box leaves the simplex's bounds."""
    H, S, A = SHAPE
    rng = np.random.default_rng(0)
    visits = rng.choice([0, 1, 30, 500, 20_000], size=SHAPE)
    visits[0, 0] = 0, 1
    visits[0, 1] = 20_000, 500
    law = rng.dirichlet(np.full(S, 0.5), size=SHAPE)
    found = [rng.multinomial(n, p) for n, p in zip(visits.ravel(), law.reshape(-1, S), strict=True)]
    return np.reshape(found, (H, S, A, S)).astype(np.float64)


@pytest.mark.equation("LM25-confidence-log")
def test_logarithm():
    assert confidence_sets.logarithm(3, 4, 2, 1000, 0.05) == pytest.approx(log(10 * 3 * 4 * 2 * 1000 / 0.05), rel=1e-15)


@pytest.mark.equation("LM25-radius")
def test_radius_by_hand():
    counts = np.zeros((1, 2, 1, 2))
    counts[0, 0, 0] = [1, 3]
    radius = confidence_sets.bernstein_radius(counts, 2.0)
    for state, share in enumerate((0.25, 0.75)):
        assert radius[0, 0, 0, state] == pytest.approx(4 * sqrt(share * 2 / 4) + 10 * 2 / 4, rel=1e-15)
    np.testing.assert_array_equal(radius[0, 1, 0], [20.0, 20.0])  # nothing seen: n counts as 1


@pytest.mark.equation("LM25-confidence-set")
@pytest.mark.parametrize("radius_scale", [1.0, 0.1, 0.0])
def test_the_set_is_the_papers(counts, radius_scale):
    log_term = confidence_sets.logarithm(*SHAPE, EPISODES, CONFIDENCE)
    lower, upper = confidence_sets.bernstein_box(counts, log_term, radius_scale)
    expected = naive.confidence_box(counts, EPISODES, CONFIDENCE, radius_scale)
    np.testing.assert_allclose(lower, expected[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(upper, expected[1], rtol=0, atol=1e-15)
    assert (lower[counts.sum(axis=-1) == 0] == 0).all()
    assert (upper[counts.sum(axis=-1) == 0] == 1).all()
    assert ((lower > 0) & (upper < 1)).any()  # some of them bite
    assert (lower.sum(axis=-1) <= 1 + 1e-12).all()
    assert (upper.sum(axis=-1) >= 1 - 1e-12).all()


@pytest.mark.equation("LM25-confidence-set")
@pytest.mark.parametrize("radius_scale", [1.0, 0.1, 0.0])
@pytest.mark.parametrize("jitted", [True, False])
def test_the_compiled_box_is_the_same(counts, radius_scale, jitted):
    rebuild = kernel.rebuild_box if jitted else kernel.rebuild_box.py_func
    log_term = confidence_sets.logarithm(*SHAPE, EPISODES, CONFIDENCE)
    lower, upper = confidence_sets.bernstein_box(counts, log_term, radius_scale)
    for place in np.ndindex(SHAPE):
        low, slack = np.full(SHAPE[1], np.nan), np.full(SHAPE[1], np.nan)
        rest = rebuild(counts[place], log_term, radius_scale, low, slack)
        np.testing.assert_allclose(low, lower[place], rtol=0, atol=1e-15)
        np.testing.assert_allclose(low + slack, upper[place], rtol=0, atol=1e-15)
        assert rest == pytest.approx(max(0.0, 1 - lower[place].sum()), abs=1e-15)
