"""One row per learner: what it sees, what it lost, how fast it ran.

The same rows are printed in a terminal and written into the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aggbandit.reporting import numbers
from aggbandit.reporting.curves import Curves, Slope, reference_of, share

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS = ("learner", "feedback", "dynamics", "regret", "of uniform's", "slope", "episodes/s")


@dataclass(frozen=True, kw_only=True)
class Row:
    """The last checkpoint of one learner, as text."""

    learner: str
    feedback: str
    dynamics: str
    regret: str  # mean ± half the width of its 95 % interval
    share: str  # of the uniform policy's regret
    slope: str
    rate: str  # episodes per second, replicas counted
    notes: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of `HEADINGS`."""
        mark = "*" if self.notes else ""
        return (self.learner + mark, self.feedback, self.dynamics, self.regret, self.share, self.slope, self.rate)


def rows(curves: Sequence[Curves]) -> list[Row]:
    """The rows of one setting."""
    reference = reference_of(curves)
    out = []
    for one in curves:
        mean, half = one.band()
        part = share(one, reference)
        out.append(
            Row(
                learner=one.label,
                feedback=one.feedback,
                dynamics=one.dynamics,
                regret=numbers.with_band(mean[-1], None if half is None else half[-1]),
                share="–"
                if part is None
                else numbers.percent(part.mean[-1], None if part.half is None else part.half[-1]),
                slope=slope_text(one.slope()),
                rate=numbers.rate(one.episodes_per_second),
                notes=one.notes,
            )
        )
    return out


def slope_text(slope: Slope | None) -> str:
    """`0.52 ± 0.01`, or a dash where there is none."""
    if slope is None:
        return "–"
    if slope.half is None or slope.half < 0.005:
        return f"{slope.value:.2f}"
    return f"{slope.value:.2f} ± {slope.half:.2f}"


def notes(curves: Sequence[Curves]) -> list[str]:
    """What must be read beside the numbers: how the bands are made, and every learner's own notes."""
    replicas = sorted({one.replicas for one in curves})
    if replicas == [1]:
        first = "One replica: no bands."
    elif replicas[0] == 1:
        first = "± is a 95 % t-interval for the mean over replicas; learners with one replica have none."
    else:
        first = f"± is a 95 % t-interval for the mean over {' or '.join(map(str, replicas))} replicas."
    below = [one.label for one in curves if one.regret[:, -1].mean() < 0]
    told: dict[str, list[str]] = {}
    for one in curves:
        for note in one.notes:
            told.setdefault(note, []).append(one.label)
    beaten = (
        [f"Negative: {', '.join(below)} lost less than any fixed policy, by following the losses."] if below else []
    )
    return [first, *beaten, *(f"* {', '.join(dict.fromkeys(labels))}: {note}." for note, labels in told.items())]


def terminal_table(curves: Sequence[Curves]) -> Table:
    """A table for `rich`."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    left_out = HEADINGS.index("slope")  # fits in 80 columns without it; the page has it
    for index, heading in enumerate(HEADINGS):
        if index != left_out:
            table.add_column(heading, justify="left" if index < 3 else "right", no_wrap=index > 0, overflow="fold")
    for row in rows(curves):
        cells = [Text(numbers.simple(cell)) for cell in row.cells]  # Text: what is in brackets is no markup
        table.add_row(*cells[:left_out], *cells[left_out + 1 :])
    return table
