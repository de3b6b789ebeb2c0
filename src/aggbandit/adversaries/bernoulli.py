"""Losses that are 0 or 1 by chance, independently in every entry of every episode."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit._checks import require_integer
from aggbandit.adversaries.base import LossSequence, Shape, require_range, table_for
from aggbandit.mdp.tabular import TabularMDP

# second key word of the generator: a stream apart from whatever else is drawn from the same seed
STREAM = int.from_bytes(b"losses", "little")
WORDS = 4  # in one block of NumPy's Philox4x64
CHUNK_ENTRIES = 2**16  # drawn at a time, so that the raw words stay in the cache


@final
@dataclass(frozen=True, eq=False)
class Bernoulli(LossSequence):
    """ℓ^k_h(s, a) is 1 with probability `mean_table[h, s, a]`, else 0: i.i.d. over episodes.

    Each episode has its own stretch of a counter-based generator, so that it can be drawn without the ones before it:
    NumPy's Philox4x64, whose raw words NumPy keeps for good and makes as fast as a kernel would.
    """

    trusted = True

    mean_table: FloatArray  # (H, S, A)
    seed: int = 0

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        H, S, A = self.mean_table.shape
        return H, S, A

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop)
        out = np.empty((stop - start, self.mean_table.size))
        blocks = -(-self.mean_table.size // WORDS)
        key = np.array([self.seed, STREAM], dtype=np.uint64)  # a list would pass large seeds through floats
        rows = max(1, CHUNK_ENTRIES // self.mean_table.size)
        for first in range(start, stop, rows):
            n = min(rows, stop - first)
            generator = np.random.Philox(key=key, counter=first * blocks)
            raw = generator.random_raw(n * blocks * WORDS).reshape(n, -1)[:, : self.mean_table.size]
            out[first - start : first - start + n] = (raw >> np.uint64(11)) < self._thresholds
        out.flags.writeable = False
        return out.reshape(stop - start, *self.shape)

    @cached_property
    def _thresholds(self) -> AnyArray:
        """⌈m 2^53⌉: u = j 2^-53 is below m just when the integer j is below this, at m = 0 and m = 1 as well."""
        return np.ceil(self.mean_table.reshape(-1) * 2.0**53).astype(np.uint64)

    def __repr__(self) -> str:
        return f"Bernoulli(shape={self.shape}, seed={self.seed})"


def bernoulli(mdp: TabularMDP, *, table: Any = None, seed: int = 0) -> Bernoulli:
    """Losses that are 0 or 1 by chance, independently in every entry of every episode.

    The stochastic setting: `mean_table` stays the same, what an episode draws from it does not.  Results then also
    carry the pseudo-regret, against the policy that is best for the means.

    table   the means: "natural" (the losses that belong to the instance), "random" (uniform in (0, 1)), or an array
            (H, S, A); None: natural where the instance has losses of its own, random otherwise
    seed    of the random means and of the draws
    """
    seed = require_integer("seed", seed, low=0, high=2**64 - 1)
    return Bernoulli(table_for(mdp, table, seed), seed)
