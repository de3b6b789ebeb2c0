"""What every table, figure and page draws: one learner's regret over the episodes, for several replicas.

Bands are 95 % intervals for the mean over replicas, from Student's t with R - 1 degrees of freedom: replicas are
independent given the instance and the losses, so a band says how well the mean over the learner's and the
environment's randomness is known, not how much one replica strays.  One replica has no band.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray
from aggbandit.learners.base import FEEDBACK_LEVELS

if TYPE_CHECKING:
    from aggbandit.simulation.result import RunResult

CONFIDENCE = 0.95
REFERENCE = "uniform"  # the learner whose regret is 100 %
STRAIGHT = 0.1  # greatest root-mean-square deviation of ln(regret) from its fitted line that still counts as a line
FIT_POINTS = 41


class Band(NamedTuple):
    """A mean over replicas and half the width of its interval; `half` is None where there is one replica."""

    mean: FloatArray
    half: FloatArray | None


class Slope(NamedTuple):
    """Growth of regret in the episodes: regret ~ k^value between `first` and `last` episodes."""

    value: float
    half: float | None
    first: float
    last: float
    level: float  # ln(regret) of the fitted line at `first`


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """One learner's run on one instance against one sequence of losses."""

    label: str
    learner: str  # the id
    text: str  # the learner's repr, with what its arguments resolve to
    feedback: str
    dynamics: str
    losses: str  # for which losses its guarantee is stated
    episodes: AnyArray  # (C,)
    regret: FloatArray  # (replicas, C)
    cost: FloatArray  # (replicas, C)
    comparator: FloatArray  # (C,)
    seconds: float
    setting: str = ""  # the instance and the losses; curves of one setting share a plot
    reconstructed: bool = False
    tuned: bool = False  # numbers were given by hand
    update_by: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: RunResult, *, setting: str = "", label: str | None = None) -> Curves:
        """The curves of one result of `ab.run`."""
        learner = result.learner
        return cls(
            label=learner.name if label is None else label,
            learner=learner.name,
            text=learner.text,
            feedback=learner.feedback,
            dynamics=learner.dynamics,
            losses=learner.losses,
            episodes=result.episodes,
            regret=result.regret,
            cost=result.cost,
            comparator=result.comparator,
            seconds=result.seconds,
            setting=setting,
            reconstructed=learner.reconstructed,
            tuned=learner.tuned,
            update_by=learner.update_by,
            notes=notes_on(result),
        )

    @property
    def replicas(self) -> int:
        """How many independent runs."""
        return int(self.regret.shape[0])

    @property
    def last_episode(self) -> int:
        """K."""
        return int(self.episodes[-1])

    @property
    def is_reference(self) -> bool:
        """Whether the others are measured against this one."""
        return self.learner == REFERENCE

    @property
    def race(self) -> str:
        """What the learner sees and is told: printed beside its name wherever the name is printed."""
        return f"{self.feedback} feedback, {self.dynamics} dynamics"

    @property
    def marks(self) -> str:
        """What else must stand beside the name, each with a comma before it."""
        return (", tuned" if self.tuned else "") + (", reconstructed" if self.reconstructed else "")

    @property
    def episodes_per_second(self) -> float:
        """Episodes of all replicas together, over wall-clock time."""
        return self.last_episode * self.replicas / self.seconds if self.seconds > 0 else math.inf

    def band(self) -> Band:
        """Mean regret (C,) and half the width of its interval."""
        return band(self.regret)

    def slope(self) -> Slope | None:
        """Growth over the last two decades; None where the regret does not follow a power of k there."""
        return slope(self.episodes, self.regret)


def notes_on(result: RunResult) -> tuple[str, ...]:
    """What a reader must know about a result before comparing it."""
    notes = []
    if result.learner.reconstructed:
        notes.append("reconstructed without the paper's full text at hand")
    if result.learner.resolved.get("step_lowered"):
        notes.append("K is small for the theorem's step size, which was lowered to meet its condition")
    if result.evaluate_every > 1:
        notes.append(f"one policy in {result.evaluate_every} was evaluated, standing for those after it")
    if result.dtype != "float64":
        notes.append(f"policies held in {result.dtype}")
    return tuple(notes)


def band(values: FloatArray) -> Band:
    """Mean of (replicas, C) over replicas, with a 95 % t-interval."""
    replicas = values.shape[0]
    mean = values.mean(axis=0)
    if replicas == 1:
        return Band(mean, None)
    from scipy.special import stdtrit

    quantile = float(stdtrit(replicas - 1, 0.5 + CONFIDENCE / 2))
    return Band(mean, quantile * values.std(axis=0, ddof=1) / math.sqrt(replicas))


def slope(episodes: AnyArray, regret: FloatArray) -> Slope | None:
    """The least-squares slope of ln(mean regret) on ln k for K/100 <= k <= K, at evenly spaced ln k.

    None where that is not meaningful: fewer than two decades or ten checkpoints, a regret that is not positive, or
    one that strays from a line.  Its interval comes from the replicas' own slopes, where each has one.
    """
    last = float(episodes[-1])
    first = last / 100.0
    start = int(np.searchsorted(episodes, first, side="right")) - 1  # the checkpoint at `first` or just before it
    inside = slice(max(start, 0), None)
    if start < 0 or len(episodes) - start < 10 or (regret.mean(axis=0)[inside] <= 0).any():
        return None
    x = np.log(episodes[inside].astype(np.float64))
    grid = np.linspace(math.log(first), math.log(last), FIT_POINTS)
    centred = grid - grid.mean()
    weights = centred / (centred @ centred)

    def line(y: FloatArray) -> FloatArray:
        return np.interp(grid, x, np.log(y[inside]))

    y = line(regret.mean(axis=0))
    value = float(weights @ y)
    residual = y - y.mean() - value * centred
    if math.sqrt(float(residual @ residual) / FIT_POINTS) > STRAIGHT:
        return None
    half = None
    if regret.shape[0] > 1 and (regret[:, inside] > 0).all():
        own = np.array([[weights @ line(row)] for row in regret])
        spread = band(own).half
        half = None if spread is None else float(spread[0])
    return Slope(value, half, first, last, float(y.mean() + value * centred[0]))


def settings_of(curves: Iterable[Curves]) -> dict[str, list[Curves]]:
    """The curves by setting, in the order of their first appearance."""
    groups: dict[str, list[Curves]] = {}
    for one in curves:
        groups.setdefault(one.setting, []).append(one)
    return groups


def reference_of(curves: Iterable[Curves]) -> Curves | None:
    """The uniform policy's curves, if they are among these."""
    return next((one for one in curves if one.is_reference), None)


def share(one: Curves, reference: Curves | None) -> Band | None:
    """Regret over the uniform policy's mean regret at the same episodes; NaN where the latter is not positive."""
    if reference is None or not np.array_equal(one.episodes, reference.episodes):
        return None
    base = reference.regret.mean(axis=0)
    base = np.where(base > 0, base, np.nan)
    mean, half = one.band()
    return Band(mean / base, None if half is None else half / base)


def by_what_they_see(curves: Iterable[Curves]) -> list[Curves]:
    """In every setting the reference first, then learners of one race together, those that see least first."""

    def place(one: Curves) -> tuple[bool, int, str]:
        return not one.is_reference, FEEDBACK_LEVELS.index(one.feedback), one.dynamics

    return [one for group in settings_of(curves).values() for one in sorted(group, key=place)]


def with_distinct_labels(curves: Sequence[Curves]) -> list[Curves]:
    """The same curves; where one setting has a label twice, each of them gets its number."""
    seen: dict[tuple[str, str], int] = {}
    count: dict[tuple[str, str], int] = {}
    for one in curves:
        key = (one.setting, one.label)
        count[key] = count.get(key, 0) + 1
    out = []
    for one in curves:
        key = (one.setting, one.label)
        seen[key] = seen.get(key, 0) + 1
        out.append(replace(one, label=f"{one.label} #{seen[key]}") if count[key] > 1 else one)
    return out
