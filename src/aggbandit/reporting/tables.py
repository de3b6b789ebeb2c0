"""One row per learner: what it sees, what it lost, how fast it ran.

The same rows are printed in a terminal and written into the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aggbandit.learners.base import AGGREGATE, CLOSED_FORM, CONVEX_PROBLEM, KNOWN, UNKNOWN
from aggbandit.reporting import numbers
from aggbandit.reporting.curves import Curves, Slope, reference_of, share

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS = ("learner", "feedback", "dynamics", "regret", "of uniform's", "slope", "episodes/s", "an episode")
MANY = 6  # rows from which on races are parted by lines


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
    time: str  # that an episode takes: the same in other words
    tuned: bool
    notes: tuple[str, ...]  # but for those that all rows share

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of `HEADINGS`."""
        name = self.learner + (" (tuned)" if self.tuned else "") + ("*" if self.notes else "")
        return (
            name, self.feedback, self.dynamics, self.regret, self.share, self.slope, self.rate, self.time,
        )  # fmt: skip


def rows(curves: Sequence[Curves]) -> list[Row]:
    """The rows of one setting."""
    reference = reference_of(curves)
    shared = shared_notes(curves)
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
                time=numbers.duration(1.0 / one.episodes_per_second),
                tuned=one.tuned,
                notes=tuple(note for note in one.notes if note not in shared),
            )
        )
    return out


def shared_notes(curves: Sequence[Curves]) -> list[str]:
    """What is to be noted of every one of several rows: a mark beside each would tell nothing apart."""
    if len(curves) < 2:
        return []
    return [note for note in dict.fromkeys(curves[0].notes) if all(note in one.notes for one in curves)]


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
    shared = shared_notes(curves)
    told: dict[str, list[str]] = {}
    for one in curves:
        for note in one.notes:
            if note in shared:
                continue
            everywhere = all(note in other.notes for other in curves if other.learner == one.learner)
            told.setdefault(note, []).append(one.learner if everywhere else one.label)
    beaten = (
        [f"Negative: {', '.join(below)} lost less than any fixed policy, by following the losses."] if below else []
    )
    tuned = (
        ["Tuned: numbers given by hand, not the theory's or the default ones."] if any(c.tuned for c in curves) else []
    )
    return [
        first,
        *(f"{note[0].upper()}{note[1:]}." for note in shared),
        *beaten,
        *tuned,
        *closed_form_against_convex(curves),
        *(f"* {', '.join(dict.fromkeys(labels))}: {note}." for note, labels in told.items()),
    ]


def closed_form_against_convex(curves: Sequence[Curves]) -> list[str]:
    """How much longer learners of totals take that solve a convex problem in every episode, where both kinds are there.

    A learner with compiled loops of its own does not share the others' loop, most of whose time is Python's on small
    instances: both comparisons are told.
    """
    from aggbandit.learners.registry import TABLE
    from aggbandit.simulation.engines.registry import FUSED

    out = []
    for dynamics in (KNOWN, UNKNOWN):
        mine = [one for one in curves if one.feedback == AGGREGATE and one.dynamics == dynamics and not one.tuned]
        seconds = {one.label: 1.0 / one.episodes_per_second for one in mine}
        convex = [one.label for one in mine if one.update_by == CONVEX_PROBLEM]
        closed = [one for one in mine if one.update_by == CLOSED_FORM]
        if not convex or not closed:
            continue
        fastest = min(convex, key=lambda label: seconds[label])
        told = []
        for shared in (False, True):
            same = [one.label for one in closed if (TABLE.get(one.learner) not in FUSED) == shared]
            if same:
                best = min(same, key=lambda label: seconds[label])
                ratio = numbers.plain(seconds[fastest] / seconds[best], 2)
                loop = "in the same loop" if shared else "in compiled loops of its own"
                told.append(f"{ratio} times {best}'s {numbers.duration(seconds[best])} ({loop})")
        out.append(
            f"Convex problem or closed form, {dynamics} dynamics, totals: {fastest}, the fastest that solves a convex "
            f"problem in every episode, takes {numbers.duration(seconds[fastest])}, " + " and ".join(told) + "."
        )
    return out


def terminal_table(curves: Sequence[Curves], *, time: bool = False) -> Table:
    """A table for `rich`; with `time`, what an episode takes in place of how many a second has."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    left_out = {"slope", "episodes/s" if time else "an episode"}  # fits in 80 columns without; the page has them
    kept = [index for index, heading in enumerate(HEADINGS) if heading not in left_out]
    for index, heading in enumerate(HEADINGS):
        if index in kept:
            table.add_column(heading, justify="left" if index < 3 else "right", no_wrap=index > 0, overflow="fold")
    for before, one, row in zip([None, *curves], curves, rows(curves), strict=False):
        if begins_a_race(before, one, len(curves)):
            table.add_section()
        cells = [Text(numbers.simple(cell)) for cell in row.cells]  # Text: what is in brackets is no markup
        table.add_row(*(cells[index] for index in kept))
    return table


def begins_a_race(before: Curves | None, one: Curves, count: int) -> bool:
    """Whether a line parts this row from the one before: it sees or knows something else, and rows are many."""
    return before is not None and count >= MANY and (before.is_reference or before.race != one.race)
