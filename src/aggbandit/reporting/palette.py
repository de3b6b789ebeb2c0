"""Colours and dashes of the curves.

The first four differ in lightness by ten steps of L* and more, so that they stay apart printed in grey and under
every kind of colour blindness; beyond them, and for certainty, the dashes tell.  Every colour has a contrast of at
least 3 to its background.  `tests/reporting/test_palette.py` holds both.
"""

from collections.abc import Sequence
from typing import NamedTuple

from aggbandit.reporting.curves import Curves


class Style(NamedTuple):
    """How one curve is drawn."""

    light: str  # on white
    dark: str  # on DARK_BACKGROUND
    dash: tuple[int, ...]  # lengths on and off in pixels; (1, 0) is solid


LIGHT_BACKGROUND = "#ffffff"
DARK_BACKGROUND = "#14171c"

REFERENCE = Style("#6f6f6f", "#7e858d", (2, 3))
STYLES = (
    Style("#12355b", "#7cc4fb", (1, 0)),
    Style("#a3123a", "#ff6f8e", (7, 3)),
    Style("#d97706", "#ffe08a", (7, 3, 2, 3)),
    Style("#00806a", "#35c7a8", (4, 2)),
    Style("#7b3fa0", "#c79bf2", (10, 3)),
    Style("#2f7fc1", "#5c9df0", (10, 3, 2, 3, 2, 3)),
    Style("#6b4423", "#d8b48a", (4, 2, 1, 2)),
)


def styles(curves: Sequence[Curves]) -> list[Style]:
    """One style per curve: grey dots for the reference, then the list above; where it ends, with other dashes."""
    out = []
    position = 0
    for one in curves:
        if one.is_reference:
            out.append(REFERENCE)
        else:
            turn, place = divmod(position, len(STYLES))
            dash = STYLES[(place + turn) % len(STYLES)].dash
            out.append(STYLES[place]._replace(dash=dash))
            position += 1
    return out
