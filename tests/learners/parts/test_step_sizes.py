from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit.errors import InvalidInputError
from aggbandit.learners.parts import step_sizes

sizes = st.integers(1, 30)


@pytest.mark.equation("LM25-iota")
def test_iota():
    assert step_sizes.iota(2, 3, 4, 1000, 0.05) == pytest.approx(log(2 * 3 * 4 * 1000 / 0.05), rel=1e-15)


@pytest.mark.equation("LM25-eta")
@given(H=sizes, S=sizes, A=sizes, K=st.integers(1, 10**9), confidence=st.floats(0.001, 0.5))
def test_named_steps_are_the_two_formulas_of_the_paper(H, S, A, K, confidence):
    main = step_sizes.named_step("main", H, S, A, K, confidence)
    appendix = step_sizes.named_step("appendix", H, S, A, K, confidence)
    assert 1 / main == pytest.approx(H * sqrt(S * A * K) + H**2 * sqrt(K), rel=1e-12)
    assert (appendix / main) ** 2 == pytest.approx(log(H * S * A * K / confidence), rel=1e-12)


@pytest.mark.equation("LM25-eta-condition")
@pytest.mark.parametrize("name", ["main", "appendix"])
@given(H=sizes, S=sizes, A=sizes, K=st.integers(1, 10**4), scale=st.floats(0.1, 10.0))
def test_a_named_step_keeps_the_condition_and_is_lowered_only_for_it(name, H, S, A, K, scale):
    greatest = 3 * H * H * scale
    raw = step_sizes.named_step(name, H, S, A, K, 0.05)
    step, lowered = step_sizes.policy_optimization_step(name, H, S, A, K, 0.05, greatest)
    assert step * greatest <= 1 + 1e-12
    assert lowered == (raw * greatest > 1)
    assert step == (min(raw, 1 / max(4 * H * H, greatest)) if lowered else raw)


def test_the_first_sufficient_number_of_episodes_is_nine_for_the_main_step_without_its_first_term():
    """ERRATA A3: with B <= 3 H² the main step needs K >= 9; its S A term only helps."""
    H = 5
    for K in (1, 4, 9, 16):
        step, lowered = step_sizes.policy_optimization_step("main", H, 1, 1, K, 0.05, 3 * H * H)
        assert step * 3 * H * H <= 1
        assert lowered == ((H * sqrt(K) + H * H * sqrt(K)) < 3 * H * H)
    assert step_sizes.policy_optimization_step("main", H, 1, 1, 9, 0.05, 3 * H * H)[1] is False


def test_a_step_given_by_the_user_is_used_as_it_is():
    assert step_sizes.policy_optimization_step(7.5, 2, 3, 4, 1, 0.05, 1e9) == (7.5, False)


@pytest.mark.equation("LM25-gamma")
def test_exploration_is_two_eta_h_of_the_step_used():
    assert step_sizes.policy_optimization_exploration(None, 0.25, 6) == 3.0
    assert step_sizes.policy_optimization_exploration(0.125, 0.25, 6) == 0.125


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("sqrt", None, 0.05), "step_size must be a positive number or one of 'appendix', 'main', but is 'sqrt'"),
        ((0.0, None, 0.05), "step_size must be a finite number, greater than 0"),
        ((float("inf"), None, 0.05), "step_size must be"),
        ((0.1, -1.0, 0.05), "exploration must be"),
        ((0.1, None, 1.5), "confidence must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        step_sizes.check_step_arguments(*arguments)
