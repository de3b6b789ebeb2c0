"""The same losses in every episode."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from aggbandit._arrays import FloatArray
from aggbandit.adversaries.base import LossSequence, Segment, Shape, repeated, require_range, table_for
from aggbandit.mdp.tabular import TabularMDP


@final
@dataclass(frozen=True, eq=False)
class Fixed(LossSequence):
    """The same table in every episode, without a copy of it anywhere."""

    trusted = True

    table: FloatArray  # (H, S, A)

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        H, S, A = self.table.shape
        return H, S, A

    @property
    def mean_table(self) -> FloatArray:  # type: ignore[override]
        """The table itself: a constant is i.i.d."""
        return self.table

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop)
        return repeated(self.table, stop - start)

    def segments(self, start: int, stop: int, /) -> Iterator[Segment]:
        """One piece."""
        start, stop = require_range(start, stop)
        if start < stop:
            yield start, stop, self.table

    def __repr__(self) -> str:
        return f"Fixed(shape={self.shape})"


def fixed(mdp: TabularMDP, *, table: Any = None, seed: int = 0) -> Fixed:
    """The same losses in every episode.

    The easiest adversary: only the totals and the learner's own chance hide which policy is best.

    table   "natural" (the losses that belong to the instance), "random" (uniform in (0, 1)), or an array (H, S, A);
            None: natural where the instance has losses of its own, random otherwise
    seed    of the random table
    """
    return Fixed(table_for(mdp, table, seed))
