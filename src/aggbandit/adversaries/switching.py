"""Losses that stay for a block of episodes, then change altogether."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer
from aggbandit.adversaries.base import LossSequence, Segment, Shape, random_table, repeated, require_range
from aggbandit.mdp.tabular import TabularMDP

DEFAULT_PERIOD = 1000


@final
@dataclass(frozen=True, eq=False)
class Switching(LossSequence):
    """B tables in turn: table b in its block of episodes, then the next, from the first again after the last.

    Either every block has `period` episodes, or B blocks divide `planned` episodes: block b then holds those from
    ⌊b K / B⌋ to ⌊(b + 1) K / B⌋ - 1, and the same again after K.
    """

    trusted = True

    block_tables: FloatArray  # (B, H, S, A)
    period: int | None = None  # episodes in a block; None: as many as make B equal blocks of the episodes played
    planned: int | None = None  # K, once it is known; until then blocks of 1000 episodes stand in

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        _, H, S, A = self.block_tables.shape
        return H, S, A

    def for_episodes(self, episodes: int) -> Switching:
        """The same tables in B blocks of equal length, unless a period was asked for."""
        episodes = require_integer("episodes", episodes, low=1)
        return self if self.period is not None else replace(self, planned=episodes)

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop)
        pieces = list(self.segments(start, stop))
        if len(pieces) == 1:
            return repeated(pieces[0][2], stop - start)
        out = np.empty((stop - start, *self.shape))
        for first, last, table in pieces:
            out[first - start : last - start] = table
        out.flags.writeable = False
        return out

    def segments(self, start: int, stop: int, /) -> Iterator[Segment]:
        """One piece for each block that [start, stop) meets."""
        start, stop = require_range(start, stop)
        blocks = len(self.block_tables)
        turn, at = divmod(start, self._cycle)
        n = turn * blocks + ((at + 1) * blocks - 1) // self._cycle  # the last that begins at `start` or before
        while self._begin(n) < stop:
            first, last = max(start, self._begin(n)), min(stop, self._begin(n + 1))
            if first < last:  # with fewer episodes than blocks some are empty
                yield first, last, self.block_tables[n % blocks]
            n += 1

    def _begin(self, n: int) -> int:
        """The first episode of the n-th block, counted on from one turn to the next."""
        turn, b = divmod(n, len(self.block_tables))
        return turn * self._cycle + b * self._cycle // len(self.block_tables)

    @property
    def _cycle(self) -> int:
        """Episodes until the first table returns."""
        blocks = len(self.block_tables)
        if self.period is not None:
            return blocks * self.period
        return blocks * DEFAULT_PERIOD if self.planned is None else self.planned

    def __repr__(self) -> str:
        length = f"period={self.period}" if self.period is not None else f"planned={self.planned}"
        return f"Switching(shape={self.shape}, blocks={len(self.block_tables)}, {length})"


def switching(mdp: TabularMDP, *, blocks: int = 8, period: int | None = None, seed: int = 0) -> Switching:
    """Losses that stay for a block of episodes, then change altogether.

    Each block has a table of its own, uniform in (0, 1), unrelated to the others: what was best a moment ago may be
    worst now, and the comparator is the one policy that is best over all blocks together.

    blocks   how many tables; by default they divide the episodes played into so many equal blocks
    period   episodes in a block instead; after the last block the first returns.  Without `period`, and as long as
             the number of episodes is not known, blocks have 1000 episodes
    seed     of the tables
    """
    blocks = require_integer("blocks", blocks, low=1)
    if period is not None:
        period = require_integer("period", period, low=1)
    return Switching(random_table((blocks, *mdp.shape), seed), period)
