"""Losses that rise and fall smoothly, each entry in its own time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import cos, fmod, pi, sin
from typing import Any, final

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer, require_number
from aggbandit.adversaries.base import LossSequence, Shape, require_range, table_for
from aggbandit.mdp._seeded import uniforms
from aggbandit.mdp.tabular import TabularMDP

DEFAULT_PERIOD = 10_000


@final
@dataclass(frozen=True, eq=False)
class Drifting(LossSequence):
    """ℓ^k = m + d min(m, 1 - m) sin(2π (k / T + φ)), entry by entry, with its own phase φ.

    m is the centre, d in [0, 1] the depth: with d = 1 each entry just reaches 0 or 1.  Where m is 0 or 1 nothing
    moves.  The period T is `period` episodes, or K / cycles once the number of episodes K is known.
    """

    trusted = True

    centre: FloatArray  # m, (H, S, A)
    phase: FloatArray  # φ, (H, S, A), in turns
    depth: float = 1.0  # d
    cycles: float = 1.0
    period: float | None = None
    planned: int | None = None  # K

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        H, S, A = self.centre.shape
        return H, S, A

    def for_episodes(self, episodes: int) -> Drifting:
        """The same waves with so many cycles in K episodes, unless a period was asked for."""
        episodes = require_integer("episodes", episodes, low=1)
        return self if self.period is not None else replace(self, planned=episodes)

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop)
        out = np.empty((stop - start, *self.shape))
        part_sin, part_cos = self._parts
        period = self._period
        for k in range(start, stop):
            # sin(θ + φ) from the sine and cosine of each: a vectorised sine may round differently at different
            # places of an array, and the numbers must not depend on how episodes are cut
            angle = 2.0 * pi * fmod(k, period) / period
            table = out[k - start]
            np.multiply(part_sin, cos(angle), out=table)
            table += part_cos * sin(angle)
            table += self.centre
        np.clip(out, 0.0, 1.0, out=out)  # rounding may step over the edge
        out.flags.writeable = False
        return out

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        """d min(m, 1 - m) times sin 2πφ and cos 2πφ."""
        amplitude = self.depth * np.minimum(self.centre, 1.0 - self.centre)
        return amplitude * np.sin(2.0 * pi * self.phase), amplitude * np.cos(2.0 * pi * self.phase)

    @property
    def _period(self) -> float:
        if self.period is not None:
            return self.period
        return (DEFAULT_PERIOD if self.planned is None else self.planned) / self.cycles

    def __repr__(self) -> str:
        return f"Drifting(shape={self.shape}, period={self._period:g}, depth={self.depth:g})"


def drifting(
    mdp: TabularMDP,
    *,
    cycles: float = 1.0,
    period: float | None = None,
    depth: float = 1.0,
    table: Any = "random",
    seed: int = 0,
) -> Drifting:
    """Losses that rise and fall smoothly, each entry in its own time.

    Every entry swings around its own centre as a sine wave with a phase of its own, at most as far as [0, 1] allows.
    What is best changes slowly; over whole cycles the mean of each entry is its centre.

    cycles   waves in the episodes played; as long as their number is not known, it is taken to be 10000
    period   episodes in a wave instead
    depth    how far entries swing, from 0 (not at all) to 1 (until they touch 0 or 1)
    table    the centres: "random" (uniform in (0, 1)), "natural" (the losses that belong to the instance; those that
             are 0 or 1 stay there), or an array (H, S, A)
    seed     of the random centres and of the phases
    """
    cycles = require_number("cycles", cycles, low=0.0, low_open=True)
    depth = require_number("depth", depth, low=0.0, high=1.0)
    if period is not None:
        period = require_number("period", period, low=1.0)
    centre = table_for(mdp, table, seed)
    phase = uniforms("phases", seed, mdp.shape)
    phase.flags.writeable = False
    return Drifting(centre, phase, depth, cycles, period)
