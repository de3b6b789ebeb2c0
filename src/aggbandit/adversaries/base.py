"""The loss sequence contract, and the check of sequences that users bring.

A loss sequence is an object with

    tables(start, stop)     float64 (stop - start, H, S, A) with entries in [0, 1]: the losses of these episodes,
                            counted from 0; called with two positional arguments; may be a read-only view of stride 0
    mean_table              optional, (H, S, A): the mean where losses are i.i.d. over episodes
    segments(start, stop)   optional: (start, stop, table) pieces in order, within which the table stays the same
    for_episodes(K)         optional: the sequence that is meant when K episodes are played
    episodes                optional: how many episodes it has
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit._checks import as_array, place, require_integer
from aggbandit.errors import InvalidInputError
from aggbandit.mdp._seeded import uniforms
from aggbandit.mdp.instances import natural_loss
from aggbandit.mdp.instances.registry import LOSSES
from aggbandit.mdp.tabular import TabularMDP

Shape: TypeAlias = tuple[int, int, int]
Segment: TypeAlias = tuple[int, int, FloatArray]

MISSING = "NaN stands for no number: look for what is missing there."
WAY_OUT = "Shift and scale the losses to [0, 1]; rewards r in [0, 1] become losses 1 - r."


class LossSequence(ABC):
    """Base of the package's own loss sequences.

    A sequence never changes: one whose pace depends on the number of episodes answers `for_episodes` with a new one.
    Where the table stays the same for many episodes it also has `segments`.
    """

    trusted: ClassVar[bool] = False  # its tables keep the contract, and are not looked at again

    shape: Shape  # (H, S, A)
    episodes: int | None = None  # how many episodes it has; None: as many as one likes
    mean_table: FloatArray | None = None

    @abstractmethod
    def tables(self, start: int, stop: int, /) -> FloatArray:
        """The losses of episodes start ... stop - 1, read-only float64 (stop - start, H, S, A)."""

    def for_episodes(self, episodes: int) -> LossSequence:
        """The sequence that is meant when so many episodes are played: itself, unless its pace depends on them."""
        return self


def as_losses(losses: Any, mdp: TabularMDP, episodes: int) -> LossSequence:
    """`losses` made ready to play `episodes` episodes of `mdp`: fitted to their number, checked on every block.

    Our own sequences are checked for shape and length here and trusted afterwards; any other object with `.tables` is
    wrapped, so that each block it hands over is checked first.
    """
    _require_tables(losses)
    if callable(getattr(losses, "for_episodes", None)):
        losses = losses.for_episodes(episodes)
        _require_tables(losses)
    if isinstance(losses, LossSequence) and losses.trusted:
        ready = losses
    elif callable(getattr(losses, "segments", None)):
        ready = _CheckedPieces(losses, mdp.shape)
    else:
        ready = _Checked(losses, mdp.shape)
    if ready.shape != mdp.shape:
        raise InvalidInputError(
            f"losses are for (H, S, A) = {ready.shape}, but the MDP has {mdp.shape}. Make them for this MDP."
        )
    if ready.episodes is not None and ready.episodes < episodes:
        raise InvalidInputError(
            f"losses hold {ready.episodes} episodes, but {episodes} are to be played. "
            f"Play at most {ready.episodes}, or bring more."
        )
    return ready


def checked_tables(losses: Any, start: int, stop: int, shape: Shape) -> FloatArray:
    """`losses.tables(start, stop)` as float64 (stop - start, H, S, A), every entry in [0, 1]: our own are trusted."""
    if isinstance(losses, LossSequence) and losses.trusted:
        return losses.tables(start, stop)
    subject = f"losses.tables({start}, {stop})"
    tables = as_table(subject, losses.tables(start, stop), (stop - start, *shape), "(stop - start, H, S, A)")
    # one look at a table that is the same memory in every episode
    distinct = tables[:1] if tables.strides[0] == 0 else tables
    require_losses(subject, distinct, first_episode=start)
    return tables


def as_table(subject: str, values: Any, shape: tuple[int, ...], axes: str) -> FloatArray:
    """`values` as float64 of this shape, not copied when it is that already."""
    array = as_array(subject, values)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(f"{subject} must hold real numbers, but its dtype is {array.dtype}.")
    if array.shape != shape:
        raise InvalidInputError(f"{subject} must have shape {axes} = {shape}, but has {array.shape}.")
    return array if array.dtype == np.float64 else _as_float64(array)


def require_losses(subject: str, array: AnyArray, offset: int = 0, first_episode: int | None = None) -> None:
    """Every entry lies in [0, 1].

    `offset` is added to the first index where a part of a longer array is looked at; with `first_episode`, that of
    the first table, the message names the episode, since where blocks begin is nobody's choice.
    """
    inside = (array >= 0.0) & (array <= 1.0)  # False for NaN as well
    if not inside.all():
        first = np.argwhere(~inside)[0]
        value = array[tuple(first)]
        episode = "" if first_episode is None else f" in episode {first_episode + first[0]}"
        first[0] += offset
        way_out = MISSING if np.isnan(value) else WAY_OUT
        raise InvalidInputError(
            f"{place(subject, first)} is {float(value)!r}{episode}, but every loss must lie in [0, 1]. {way_out}"
        )


def require_range(start: int, stop: int, episodes: int | None = None) -> tuple[int, int]:
    """(start, stop) once they are a range of episodes that exist."""
    start = require_integer("start", start, low=0)
    stop = require_integer("stop", stop, low=start)
    if episodes is not None and stop > episodes:
        raise InvalidInputError(f"stop is {stop}, but these losses hold {episodes} episodes, counted from 0.")
    return start, stop


def repeated(table_hsa: FloatArray, n: int) -> FloatArray:
    """n times the same table, (n, H, S, A), as a read-only view of stride 0."""
    return np.broadcast_to(table_hsa, (n, *table_hsa.shape))


def random_table(shape: tuple[int, ...], seed: int) -> FloatArray:
    """Losses drawn uniformly from (0, 1), read-only; a stream of its own, apart from that of instances."""
    table = uniforms("losses", seed, shape)
    table.flags.writeable = False
    return table


def table_for(mdp: TabularMDP, table: Any, seed: int) -> FloatArray:
    """The read-only table (H, S, A) that the argument `table` of a factory stands for.

    "natural": the losses that the instance suggests; "random": uniform in (0, 1), from the seed; None: natural where
    there are any, random otherwise; an array is copied.
    """
    if table is None or isinstance(table, str):
        if table not in (None, "natural", "random"):
            raise InvalidInputError(f'table must be "natural", "random" or an array (H, S, A), but is {table!r}.')
        natural = None if table == "random" else natural_loss(mdp)
        if natural is None and table == "natural":
            raise InvalidInputError(
                f"table is 'natural', but this MDP suggests no losses of its own; the instances that do are "
                f"{', '.join(sorted(LOSSES))}. Use table='random' or an array (H, S, A)."
            )
        require_integer("seed", seed, low=0, high=2**64 - 1)
        return random_table(mdp.shape, seed) if natural is None else natural
    return own_table("table", table, mdp.shape)


def own_table(subject: str, table: Any, shape: Shape) -> FloatArray:
    """A read-only copy of a user's table (H, S, A), checked."""
    given = as_table(subject, table, shape, "(H, S, A)")
    require_losses(subject, given)
    copy = np.array(given)
    copy.flags.writeable = False
    return copy


def _require_tables(losses: Any) -> None:
    if not isinstance(losses, type) and callable(getattr(losses, "tables", None)):
        return
    if isinstance(losses, str):
        way_out = f"Make it with ab.adversaries.make({losses!r}, mdp)."
    elif isinstance(losses, np.ndarray) and losses.ndim == 3:
        way_out = 'For one table in every episode: ab.adversaries.make("fixed", mdp, table=...).'
    else:
        way_out = "For an array (K, H, S, A): ab.adversaries.Recorded(array)."
    kind = f"the class {losses.__name__}" if isinstance(losses, type) else f"a {type(losses).__name__}"
    raise InvalidInputError(f"losses must be an object with a method tables(start, stop), but is {kind}. {way_out}")


def _as_float64(array: AnyArray) -> FloatArray:
    converted: FloatArray = array.astype(np.float64)
    return converted


class _Checked(LossSequence):
    """A user's object whose every block is checked before anybody reads it."""

    trusted = True

    def __init__(self, losses: Any, shape: Shape) -> None:
        self._losses = losses
        self.shape = shape
        mean = getattr(losses, "mean_table", None)
        self.mean_table = None if mean is None else own_table("losses.mean_table", mean, shape)
        episodes = getattr(losses, "episodes", None)
        self.episodes = None if episodes is None else require_integer("losses.episodes", episodes, low=0)

    def tables(self, start: int, stop: int, /) -> FloatArray:
        tables = checked_tables(self._losses, start, stop, self.shape)
        same = len(tables) > 0 and tables.strides[0] == 0
        # several calls may go into one block, and the user's object may fill one buffer again and again
        return repeated(np.array(tables[0]), len(tables)) if same else tables

    def __repr__(self) -> str:
        return repr(self._losses)


class _CheckedPieces(_Checked):
    def segments(self, start: int, stop: int, /) -> Iterator[Segment]:
        """The user's pieces, once they are in order, cover [start, stop) and hold losses."""
        subject = f"losses.segments({start}, {stop})"
        at = start
        pieces = self._losses.segments(start, stop)
        if not isinstance(pieces, Iterable):
            raise InvalidInputError(f"{subject} must yield (start, stop, table), but returns {pieces!r}.")
        for piece in pieces:
            try:
                first, last, table = piece
            except (TypeError, ValueError):
                raise InvalidInputError(f"{subject} must yield (start, stop, table), but yields {piece!r}.") from None
            whole = isinstance(first, (int, np.integer)) and isinstance(last, (int, np.integer))
            if not whole or first != at or not at < last <= stop:
                raise InvalidInputError(
                    f"{subject} yields a piece from {first} to {last}, but the next one must begin at {at}, end after "
                    f"it, and not beyond {stop}."
                )
            named = f"{subject}, piece from {first} to {last}: table"
            table = as_table(named, table, self.shape, "(H, S, A)")
            require_losses(named, table)
            yield int(first), int(last), np.array(table)  # as above
            at = last
        if at != stop:
            raise InvalidInputError(f"{subject} ends at {at}, but must cover the episodes up to {stop}.")
