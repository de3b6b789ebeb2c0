"""How matrix products are cut for kernels/cuda/products.cuh, and transitions in the order in which lanes read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.simulation.engines.cuda.base import up_to

ROWS = 16  # replicas of a warp
COLUMNS = 8  # of a tile
FOUR = 4  # inner indices of a tile's smallest product
LANES = COLUMNS * FOUR
K_AT_ONCE = 4  # fours in one instruction: 1, 2 or 4
MOST_WARPS = 4  # of a block: two fit into a multiprocessor, and do not wait for one another
FEWEST_AT_ONCE = 4  # warps that each multiprocessor should have, one for each of its quarters
MOST_STATE_TILES = 14  # sums that fit into registers
MOST_ACTIONS_AT_ONCE = 5  # with more, registers spill
MOST_PAIRED_ACTIONS = 7  # an odd number of actions is paired with the next state's, or where larger filled up
MOST_HELD = 190  # registers for values, futures and policies of a unit
MOST_STREAMED = 16  # fours at once where values are not held
STAGE_BYTES = 50 * 1024


class Tiles(NamedTuple):
    """Sizes that po_known_lanes.cu explains."""

    warps: int
    splits: int
    state_tiles: int
    actions: int
    unit: int
    fours: int
    parts: int
    held: bool
    k_at_once: int

    @property
    def constants(self) -> dict[str, int | str]:
        return {name.upper(): int(value) for name, value in self._asdict().items()}

    def unit_tiles(self, A: int) -> int:
        return -(-self.unit * A // 2)

    def reach_bytes(self) -> int:
        """Shared memory of `reach`: two stages."""
        return 2 * 8 * LANES * self.actions * self.state_tiles

    def improve_bytes(self, A: int) -> int:
        return 2 * 8 * LANES * self.fours * self.unit_tiles(A)


def choose(S: int, A: int, replicas: int, multiprocessors: int) -> Tiles:
    """The cut for these sizes."""
    of_each = -(-replicas // (ROWS * multiprocessors))  # warps of a multiprocessor
    warps = -(-of_each // -(-of_each // MOST_WARPS))
    all_tiles = -(-S // COLUMNS)
    splits = max(-(-all_tiles // MOST_STATE_TILES), min(FEWEST_AT_ONCE // of_each, all_tiles), 1)
    state_tiles = -(-all_tiles // splits)
    actions = -(-A // -(-A // MOST_ACTIONS_AT_ONCE))
    unit = 2 if A % 2 and A <= MOST_PAIRED_ACTIONS else 1
    unit_tiles = -(-unit * A // 2)
    fours = -(-S // FOUR)
    at_once = max(1, STAGE_BYTES // (8 * LANES * unit_tiles))
    held = fours <= at_once and 4 * fours + 8 * unit * A <= MOST_HELD
    parts = 1 if held else -(-fours // min(at_once, MOST_STREAMED))
    return Tiles(warps, splits, state_tiles, actions, unit, -(-fours // parts), parts, held, K_AT_ONCE)


def fragments(numbers: FloatArray, k_at_once: int) -> FloatArray:
    """From (..., fours, tiles, column of the tile, of the four) to (..., all of these) as the lanes read them."""
    *outer, fours, tiles, columns, of_four = numbers.shape
    lanes = numbers.reshape(*outer, fours, tiles, columns * of_four)
    parts, done = [], 0
    while done < fours:
        count = next(k for k in (4, 2, 1) if k <= min(k_at_once, fours - done))
        width = min(count, 2)  # a lane's numbers lie two and two
        part = lanes[..., done : done + count, :, :].reshape(*outer, count // width, width, tiles, LANES)
        parts.append(np.moveaxis(part, (-2, -4, -1, -3), (-4, -3, -2, -1)).reshape(*outer, -1))
        done += count
    return np.concatenate(parts, axis=-1)


def reaching(transition_tsas: FloatArray, tiles: Tiles) -> FloatArray:
    """(T, splits, stages, numbers of a stage): for `reach`, where (s, a) is the inner index and s' the column."""
    T, S, A, _ = transition_tsas.shape
    rounds = -(-A // tiles.actions)
    columns = tiles.splits * tiles.state_tiles * COLUMNS
    filled = _filled(transition_tsas, (T, up_to(S, FOUR), rounds * tiles.actions, columns))
    parted = filled.reshape(T, -1, FOUR, rounds, tiles.actions, tiles.splits, tiles.state_tiles, COLUMNS)
    parted = parted.transpose(0, 5, 1, 3, 4, 6, 7, 2)
    return fragments(parted.reshape(T, tiles.splits, -1, *parted.shape[-4:]), tiles.k_at_once)


def improving(transition_tsas: FloatArray, tiles: Tiles) -> FloatArray:
    """(T, units, parts, numbers of a stage): for `improve`, where s' is the inner index and (s, a) the column.

    Columns 2q and 2q + 1 of a unit's tiles are, tile by tile, the actions of its q-th state of four, or of two such.
    """
    T, S, A, _ = transition_tsas.shape
    unit, fours, parts = tiles.unit, tiles.fours, tiles.parts
    filled = _filled(transition_tsas, (T, up_to(S, FOUR * unit), A, parts * fours * FOUR))
    parted = filled.reshape(T, -1, unit, FOUR, A, parts, fours, FOUR).transpose(0, 1, 5, 6, 2, 4, 3, 7)
    slots = parted.reshape(*parted.shape[:4], unit * A, FOUR, FOUR)
    slots = _filled(slots, (*slots.shape[:4], 2 * tiles.unit_tiles(A), FOUR, FOUR))
    paired = slots.reshape(*slots.shape[:4], -1, 2, FOUR, FOUR).swapaxes(-3, -2)
    return fragments(paired.reshape(*paired.shape[:5], COLUMNS, FOUR), tiles.k_at_once)


def _filled(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """With zeros up to `shape`."""
    out = np.zeros(shape)
    out[tuple(slice(n) for n in array.shape)] = array
    return out
