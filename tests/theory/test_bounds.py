"""The bounds, recomputed from the paper's displays by hand."""

from math import log, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit import theory
from aggbandit.errors import InvalidInputError

SIZE = {"H": 4, "S": 5, "A": 3, "K": 10**5}


@pytest.mark.equation("LM25-theorem-1")
def test_theorem_1_is_the_sum_of_its_lemmas() -> None:
    H, S, A, K, delta = 4, 5, 3, 10**5, 0.1
    eta = sqrt(log(H * S * A * K / delta)) / (H * sqrt(S * A * K) + H**2 * sqrt(K))
    gamma = 2 * eta * H
    by_hand = (
        H * log(A) / eta
        + 9 * eta * H**5 * K
        + 3 * gamma * H**2 * S * A * K
        + H**2 / gamma * (log(6 / delta) + 0.75 * log(6 * H / delta))
    )
    assert theory.known_regret_bound(**SIZE, confidence=delta) == pytest.approx(by_hand, rel=1e-12)
    main = theory.known_regret_bound(**SIZE, confidence=delta, version="main")
    assert main != pytest.approx(by_hand, rel=0.1)
    ratio = theory.known_regret_bound(**SIZE) / theory.known_regret_order(**SIZE)
    assert 1 < ratio < 100  # an order and its bound differ by a constant


@pytest.mark.equation("LM25-theorem-1")
def test_theorem_1_grows_as_the_root_of_k() -> None:
    size = dict(SIZE)
    bounds = []
    for K in (10**6, 10**8):
        size["K"] = K
        bounds.append(theory.known_regret_order(**size) / sqrt(theory.iota(**size)))
    assert bounds[1] / bounds[0] == pytest.approx(10.0, rel=1e-12)


@pytest.mark.equation("LM25-theorem-2")
def test_theorem_2_order() -> None:
    log_term = log(4 * 5 * 3 * 10**5 / 0.05)
    by_hand = 4**3 * 5 * sqrt(3 * 10**5) * log_term + 4**4 * 5**3 * 3 * log_term**2
    assert theory.unknown_regret_order(**SIZE) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.equation("LM25-theorem-2", "LM25-sum-of-widths")
def test_theorem_2_with_the_constants_of_its_proof() -> None:
    """Its lemmas summed with Σ μ̄ b̄ <= H Σ (μ̄ - μ̲); the sums Σ μ* b cancel, whatever they are."""
    H, S, A, K, delta = 4, 5, 3, 10**5, 0.1
    eta = sqrt(log(H * S * A * K / delta)) / (H * sqrt(S * A * K) + H**2 * sqrt(K))
    gamma = 2 * eta * H
    by_hand = (
        H * log(A) / eta
        + 16 * eta * H**5 * K
        + 3 * gamma * H**2 * S * A * K
        + H**2 / gamma * (log(6 / delta) + 0.75 * log(6 * H / delta))
    )
    assert theory.unknown_regret_bound(**SIZE, confidence=delta, widths=0.0) == pytest.approx(by_hand, rel=1e-12)
    assert theory.unknown_regret_bound(**SIZE, confidence=delta, widths=10.0) == pytest.approx(by_hand + 40, rel=1e-12)
    summed = theory.lemma_bounds(
        **SIZE, confidence=delta, step=eta, exploration=gamma, comparator_bonus=7.0, comparator_width=3.0, width=40.0,
        dynamics="unknown",
    )  # fmt: skip
    assert sum(summed) == pytest.approx(by_hand + 40, rel=1e-12)
    term = log(6 * H * S * A * K / delta)
    widths = sqrt(H**4 * S**2 * A * K * term) + H**3 * S**3 * A * term**2
    assert theory.sum_of_widths_order(**SIZE, confidence=delta) == pytest.approx(widths, rel=1e-12)
    assert theory.unknown_regret_bound(**SIZE, confidence=delta) == pytest.approx(by_hand + H * widths, rel=1e-12)
    with pytest.raises(InvalidInputError, match="Theorem 2 needs η max B <= 1"):
        theory.unknown_regret_bound(H=4, S=5, A=3, K=30)
    with pytest.raises(InvalidInputError, match="widths must be"):
        theory.unknown_regret_bound(**SIZE, widths=-1.0)


@pytest.mark.equation("LM25-radius")
def test_confidence_radius() -> None:
    term = log(10 * 4 * 3 * 2 * 1000 / 0.1)
    found = theory.confidence_radius([[6, 2, 0], [0, 0, 0]], H=4, S=3, A=2, K=1000, confidence=0.1)
    by_hand = [[4 * sqrt(share * term / 8) + 10 * term / 8 for share in (0.75, 0.25, 0.0)], [10 * term] * 3]
    np.testing.assert_allclose(found, by_hand, rtol=1e-13)
    for visits in ([1, 2], [[1, -1, 0]], 3.0):
        with pytest.raises(InvalidInputError, match="visits must be numbers of at least 0, S = 3 in the last axis"):
            theory.confidence_radius(visits, H=4, S=3, A=2, K=1000)


@pytest.mark.equation("LM25-eta-condition")
def test_conditions_of_the_lemmas() -> None:
    assert theory.lemmas_do_not_apply(H=3, step=0.01, exploration=0.06) == []
    assert theory.lemmas_do_not_apply(H=3, step=1 / 30, exploration=0.2) == []
    (broken,) = theory.lemmas_do_not_apply(H=3, step=1 / 30, exploration=0.2, dynamics="unknown")
    assert broken == "REG needs η max B <= 1, but η max B = 1.2"
    (broken,) = theory.lemmas_do_not_apply(H=3, step=0.01, exploration=0.03)
    assert broken == "REG needs η <= γ / (2H) = 0.005, but η = 0.01"
    scaled = {"H": 3, "step": 0.01, "exploration": 0.06, "bonus_scale": 0.5, "radius_scale": 0.1}
    assert len(theory.lemmas_do_not_apply(**scaled)) == 1  # dynamics known: no radius
    assert len(theory.lemmas_do_not_apply(**scaled, dynamics="unknown")) == 2


@pytest.mark.equation("LM25-bias-1", "LM25-bias-2", "LM25-reg", "LM25-bonus")
@pytest.mark.parametrize("dynamics", ["known", "unknown"])
def test_lemmas(dynamics: str) -> None:
    H, S, A, K, delta, eta, gamma = 2, 3, 2, 1000, 0.05, 0.01, 0.04
    stars, widths, widest = 7.0, (0.0, 2.0)[dynamics == "unknown"], (0.0, 5.0)[dynamics == "unknown"]
    found = theory.lemma_bounds(
        H=H, S=S, A=A, K=K, confidence=delta, step=eta, exploration=gamma, comparator_bonus=stars,
        comparator_width=widths, width=widest, dynamics=dynamics,
    )  # fmt: skip
    assert found.bias_1 == pytest.approx(2 / 3 * stars + widths + 4 * log(120) / 0.04)
    assert found.bias_2 == pytest.approx(4 / 0.08 * log(240))
    constant = 9 if dynamics == "known" else 16
    reg = 2 * log(2) / 0.01 + constant * 0.01 * 32 * 1000 + stars / 3 + 0.01 * 8 * log(240) / (2 * 0.0016)
    assert found.reg == pytest.approx(reg)
    assert found.bonus == pytest.approx(3 * 0.04 * 4 * 6 * 1000 + widest - stars - widths)


@pytest.mark.equation("LM25-theorem-3")
def test_theorem_3_stays_below_what_uniform_achieves() -> None:
    size = {"H": 4, "S": 3, "A": 2, "K": 2000}
    spread = (192 + 96 * log(2000)) ** -0.5
    assert theory.lower_bound(**size) == pytest.approx(spread / 10 * 9 * sqrt(3 * 2 * 2000), rel=1e-12)
    gap = ab.adversaries.hard.lower_bound_instance(**size).gap
    uniform = theory.uniform_regret_on_the_hard_instance(gap=gap, H=4, A=2, K=2000)
    assert uniform == pytest.approx(spread * 9 * sqrt(3 * 2 * 2000) / 2 * 0.5, rel=1e-12)
    assert theory.lower_bound(**size) < uniform < 5 * theory.lower_bound(**size)
    with pytest.raises(InvalidInputError, match="which is not enough"):
        theory.lower_bound(H=4, S=3, A=2, K=6)


@pytest.mark.equation("LM25-multitask")
def test_multitask_bound() -> None:
    spread = (192 + 96 * log(500)) ** -0.5
    assert theory.multitask_lower_bound(tasks=3, A=2, K=500) == pytest.approx(spread * 9 * sqrt(1000) / 16, rel=1e-12)


@pytest.mark.equation("LM25-table-1")
def test_table_1() -> None:
    bounds = {row.algorithm: row.regret(**SIZE) for row in theory.TABLE_1}
    assert bounds["Algorithm 1"] == bounds["Lower bound"] == pytest.approx(4**2 * sqrt(5 * 3 * 10**5))
    assert bounds["Algorithm 2"] == pytest.approx(4**3 * 5 * sqrt(3 * 10**5))
    assert bounds["Reduction to DBOLO"] / bounds["Algorithm 2"] == pytest.approx(4**2 * 5**5 * 3**2)
    assert bounds["Reduction to efficient linear bandits"] / bounds["Algorithm 1"] == pytest.approx(sqrt(5 * 3))
    assert all(row.condition for row in theory.TABLE_1)
    assert bounds["UCBVI-TS"] / bounds["Algorithm 2"] == pytest.approx(5 * 3 * sqrt(4))


def test_conditions() -> None:
    assert theory.greatest_bonus("known", H=3) == 27
    assert theory.greatest_bonus("unknown", H=3) == 36
    assert theory.step_size_is_valid(1 / 27, "known", H=3)
    assert not theory.step_size_is_valid(1 / 27, "unknown", H=3)
    assert theory.exploration(0.1, H=3) == pytest.approx(0.6)
    assert theory.step_size(**SIZE) == theory.step_size(**SIZE, version="main") * sqrt(theory.iota(**SIZE))
    with pytest.raises(InvalidInputError, match="K = 1 is too small"):
        theory.known_regret_bound(H=4, S=5, A=3, K=1)
    with pytest.raises(InvalidInputError, match="version must be one of"):
        theory.step_size(**SIZE, version="body")
    with pytest.raises(InvalidInputError, match="dynamics must be one of known, unknown"):
        theory.greatest_bonus("guessed", H=3)
    with pytest.raises(InvalidInputError, match="confidence must be"):
        theory.iota(**SIZE, confidence=1.0)
