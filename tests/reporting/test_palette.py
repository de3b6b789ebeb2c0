"""Colours that stay apart on paper, on a dark screen and to the colour-blind."""

from itertools import combinations

import pytest

from aggbandit.reporting.palette import DARK_BACKGROUND, LIGHT_BACKGROUND, REFERENCE, STYLES, styles


def luminance(colour):
    """Relative luminance by WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lightness(colour):
    """L* of CIELAB, from 0 to 100: what is left of a colour in grey, and what every eye sees."""
    y = luminance(colour)
    return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else y * 24389 / 27


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_measures_themselves():
    assert lightness("#ffffff") == pytest.approx(100)
    assert lightness("#000000") == 0
    assert lightness("#777777") == pytest.approx(50.03, abs=0.1)  # a known middle grey
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


@pytest.mark.parametrize("scheme, background", [("light", LIGHT_BACKGROUND), ("dark", DARK_BACKGROUND)])
def test_every_colour_stands_out_from_its_background(scheme, background):
    for style in (REFERENCE, *STYLES):
        assert contrast(getattr(style, scheme), background) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_four_differ_in_grey(scheme):
    for one, other in combinations((REFERENCE, *STYLES[:3]), 2):
        assert abs(lightness(getattr(one, scheme)) - lightness(getattr(other, scheme))) >= 10


def test_no_two_of_the_palette_share_a_dash():
    dashes = [style.dash for style in (REFERENCE, *STYLES)]
    assert len(set(dashes)) == len(dashes)


def test_twenty_curves_still_differ(made_up):
    chosen = styles([made_up("uniform"), *(made_up(f"x{i}") for i in range(20))])
    assert chosen[0] == REFERENCE
    assert len({(style.light, style.dash) for style in chosen}) == 21
