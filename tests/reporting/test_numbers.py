"""Numbers as text."""

import math

import pytest

from aggbandit.reporting import numbers


@pytest.mark.parametrize(
    "mean, half, text",
    [
        (12345.678, 67.8, "12 345 ± 68".replace("12 345", "12 346")),
        (0.12345, 0.0067, "0.1235 ± 0.0067"),
        (3.14159, 0.5, "3.14 ± 0.50"),
        (-1234.5, 12.0, "-1 234 ± 12"),
        (1234.5, None, "1 234"),
        (0.5, None, "0.5000"),
        (16000.0, 0.0, "16 000 ± 0"),
        (16000.0, 1e-11, "16 000 ± 0"),  # a policy without chance differs by rounding only
        (math.nan, 1.0, "–"),
    ],
)
def test_a_mean_has_the_digits_that_its_band_allows(mean, half, text):
    assert numbers.simple(numbers.with_band(mean, half)) == text


@pytest.mark.parametrize(
    "share, half, text",
    [
        (0.1718, 0.004, "17.2 ± 0.4 %"),
        (1.0, 0.0, "100 %"),
        (0.5, None, "50.0 %"),
        (math.nan, None, "–"),
        (-0.32, 0.01, "-32 ± 1 %"),
    ],
)
def test_percent(share, half, text):
    assert numbers.simple(numbers.percent(share, half)) == text


@pytest.mark.parametrize(
    "value, text",
    [(412_345, "412 k"), (999_600, "1.00 M"), (999_400, "999 k"), (366.0, "366"), (1.2e6, "1.20 M"), (math.inf, "–")],
)
def test_rate(value, text):
    assert numbers.rate(value) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (62.5e-9, "62.5 ns"),
        (1.25e-6, "1.25 µs"),
        (0.0034, "3.40 ms"),
        (3.44, "3.4 s"),
        (7, "7 s"),
        (59.99, "1 min 0 s"),
        (125, "2 min 5 s"),
        (4200, "1 h 10 min"),
        (math.inf, "–"),
    ],
)
def test_duration(seconds, text):
    assert numbers.duration(seconds) == text


def test_thousands_are_set_apart_by_a_narrow_space_that_does_not_break():
    assert numbers.grouped(-1234567) == "\u22121\u202f234\u202f567"
