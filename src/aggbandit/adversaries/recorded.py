"""Losses that were recorded, or made elsewhere: an array with one table per episode."""

from __future__ import annotations

import mmap
from typing import Any, final

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit._checks import as_array
from aggbandit.adversaries.base import LossSequence, as_table, repeated, require_losses, require_range
from aggbandit.errors import InvalidInputError

CHUNK_BYTES = 2**24


@final
class Recorded(LossSequence):
    """The losses `tables` (K, H, S, A), one table per episode, entries in [0, 1].

    An array in memory is copied.  A memory-mapped one (`np.load(path, mmap_mode="r")`) is not: it is checked once,
    part by part, and read as the episodes come, so it may be larger than memory; nothing may write to its file.

    >>> losses = Recorded([[[[0.0, 1.0]]], [[[0.5, 0.5]]]])
    >>> losses
    Recorded(episodes=2, shape=(1, 1, 2))
    >>> losses.tables(1, 2)
    array([[[[0.5, 0.5]]]])
    """

    trusted = True

    def __init__(self, tables: Any) -> None:
        given = tables if isinstance(tables, np.ndarray) else as_array("tables", tables)
        if given.ndim != 4 or 0 in given.shape:
            raise InvalidInputError(
                f"tables must have shape (K, H, S, A), every axis at least 1, but has {given.shape}."
            )
        if given.dtype.kind not in "fiub":
            raise InvalidInputError(f"tables must hold real numbers, but the dtype is {given.dtype}.")
        distinct = given[:1] if given.strides[0] == 0 else given  # K times the same memory is kept once
        rows = max(1, CHUNK_BYTES // (distinct[0].size * 8))
        for start in range(0, len(distinct), rows):
            require_losses("tables", np.asarray(distinct[start : start + rows]), offset=start)
        if not _is_mapped(given):
            distinct = np.array(distinct, dtype=np.float64)
            distinct.flags.writeable = False
        K, H, S, A = given.shape
        self.__dict__.update(episodes=K, shape=(H, S, A), _tables=distinct)

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop, self.episodes)
        kept: AnyArray = self.__dict__["_tables"]
        if len(kept) == 1:
            return repeated(np.asarray(kept[0], dtype=np.float64), stop - start)
        part = np.asarray(kept[start:stop])
        part = as_table("tables", part, part.shape, "(n, H, S, A)").view()
        part.flags.writeable = False
        return part

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name}: Recorded losses do not change.")

    def __repr__(self) -> str:
        return f"Recorded(episodes={self.episodes}, shape={self.shape})"


def _is_mapped(array: AnyArray) -> bool:
    """Whether the memory belongs to a mapped file, however many views lie between."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
