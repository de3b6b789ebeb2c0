"""Loss sequences as the simulator reads them: blocks of tables, and the comparator's running sum."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit.adversaries.base import as_losses
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import LossBlock

BLOCK_BYTES = 32 * 2**20  # of distinct tables held at a time


class LossReader:
    """Reads a loss sequence fitted to K episodes, in blocks."""

    def __init__(self, losses: Any, mdp: TabularMDP, episodes: int) -> None:
        self.source = as_losses(losses, mdp, episodes)
        self.shape = (mdp.H, mdp.S, mdp.A)
        self.episodes = episodes
        self._most_rows = max(1, BLOCK_BYTES // (8 * mdp.H * mdp.S * mdp.A))
        mean = getattr(self.source, "mean_table", None)
        self.mean_hsa = None if mean is None else frozen(np.ascontiguousarray(mean, dtype=np.float64))

    def block(self, start: int, stop: int) -> LossBlock:
        """Episodes from `start` on, up to `stop` or as many as fit into memory."""
        rows: list[FloatArray] = []
        counts: list[int] = []
        for count, tables in self._pieces(start, stop):
            if len(rows) + len(tables) > self._most_rows and rows:
                break
            rows.extend(tables)
            counts.extend([count // len(tables)] * len(tables))
            if len(rows) >= self._most_rows:  # before the next piece is made, only to be made again for the next block
                break
        stacked = np.stack(rows) if len(rows) != 1 else np.ascontiguousarray(rows[0])[None]
        row_n = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
        # always read-only: to compiled code that is another type, and each type is compiled anew
        return LossBlock(start, frozen(stacked), row_n, self.mean_hsa)

    def empty(self) -> LossBlock:
        """A block of no episodes: playing it changes nothing, and compiles what playing needs."""
        return LossBlock(0, frozen(np.empty((0, *self.shape))), np.empty(0, np.int64), self.mean_hsa)

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, FloatArray]]:
        """(episodes, tables): each table stands for an equal share of the piece's episodes."""
        segments = getattr(self.source, "segments", None)
        if segments is not None:
            for first, end, table in segments(start, stop):
                yield end - first, table[None]
            return
        while start < stop:
            end = min(stop, start + self._most_rows)
            tables = self.source.tables(start, end)
            same = tables.strides[0] == 0
            yield end - start, tables[:1] if same else tables
            start = end


class LossSum:
    """The running sum of the loss tables, for the best fixed policy in hindsight."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        size = int(np.prod(shape))
        self._shape = shape
        self._current = np.zeros(size)
        self._count = 0
        self._sum = np.zeros(size)
        self._rest = np.zeros(size)

    def add(self, block: LossBlock) -> None:
        """Add the losses of a block's episodes."""
        from aggbandit.kernels import episode as kernel

        tables = block.tables_mhsa.reshape(len(block.tables_mhsa), self._current.size)
        self._count = kernel.accumulate_tables(tables, block.row_n, self._current, self._count, self._sum, self._rest)

    def total(self) -> FloatArray:
        """(H, S, A): the sum so far."""
        from aggbandit.kernels import episode as kernel

        total, rest = self._sum.copy(), self._rest.copy()
        kernel.flush_tables(self._current, self._count, total, rest)
        return (total + rest).reshape(self._shape)

    def state(self) -> dict[str, Any]:
        return {"current": self._current, "count": self._count, "sum": self._sum, "rest": self._rest}

    def restore(self, state: dict[str, Any]) -> None:
        self._current, self._count = np.array(state["current"]), state["count"]
        self._sum, self._rest = np.array(state["sum"]), np.array(state["rest"])
