"""What a claim is made of, and the measurements that several share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from aggbandit import adversaries, learners
from aggbandit._arrays import FloatArray
from aggbandit.mdp import instances
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.result import RunResult
from aggbandit.simulation.run import run

HOLDS = "holds"
FAILS = "does not hold"
OPEN = "not reached at this K"
BOOTSTRAPS = 2000


class Finding(NamedTuple):
    """One measured number of a claim."""

    what: str
    measured: str
    expected: str
    verdict: str  # HOLDS, FAILS or OPEN


class Series(NamedTuple):
    """A line of a figure; `low` and `high` bound a 95 % band where there is one."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    guide: bool = False  # a bound or a reference slope, drawn thin


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure, as data."""

    x: str
    y: str
    series: list[Series] = field(default_factory=list)
    log: bool = True
    bars: bool = False  # one bar a series, its single y


class Outcome(NamedTuple):
    """What putting a claim to the test came to."""

    findings: list[Finding]
    chart: Chart


Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper."""

    id: str
    title: str
    statement: str  # what the paper says, and where
    test: str  # what is played here
    false_if: str  # the figure that would show it false
    look_at: str  # what a reader should look at
    play: Callable[[bool, Tell], Outcome]  # (full, tell)


class Slope(NamedTuple):
    """The slope of log regret against log K, with a 95 % interval over replicas."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def played(
    mdp: TabularMDP, losses: Any, learner: Any, K: int, replicas: int, *, checkpoints: Any = 1, **arguments: Any
) -> RunResult:
    """A run with these claims' habits."""
    made = learners.make(learner, **arguments) if isinstance(learner, str) else learner
    return run(mdp, losses, made, episodes=K, replicas=replicas, checkpoints=checkpoints, keep_policy=False)


def small_random(seed: int, H: int = 3, S: int = 4, A: int = 2) -> TabularMDP:
    """A random instance small enough that the √K regime is within reach."""
    return instances.make("random", states=S, actions=A, horizon=H, seed=seed)


def fixed(mdp: TabularMDP, seed: int) -> Any:
    """One random loss table for all episodes."""
    return adversaries.make("fixed", mdp, table="random", seed=seed)


def bootstrap(values: FloatArray, statistic: Callable[[FloatArray], FloatArray], seed: int = 0) -> tuple[float, float]:
    """95 % interval of a statistic of the columns' means; `values` is (replicas, C), resampled by rows."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(values.shape[0], size=(BOOTSTRAPS, values.shape[0]))
    found = statistic(values[picks].mean(axis=1))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def slope_between(finals: Sequence[FloatArray], Ks: Sequence[float]) -> Slope:
    """The slope over the last two of `Ks`; `finals[i]` holds the replicas' final regrets at `Ks[i]`."""
    stacked = np.stack([finals[-2], finals[-1]], axis=1)
    width = np.log(Ks[-1] / Ks[-2])

    def statistic(means: FloatArray) -> FloatArray:
        ratio: FloatArray = np.log(np.maximum(means[:, 1], 1e-300) / np.maximum(means[:, 0], 1e-300)) / width
        return ratio

    value = float(statistic(stacked.mean(axis=0)[None])[0])
    return Slope(value, *bootstrap(stacked, statistic))


def exponent(sizes: Sequence[float], regrets: Sequence[float]) -> float:
    """The exponent of a power law fitted to all points."""
    return float(np.polyfit(np.log(sizes), np.log(regrets), 1)[0])


def mean_series(label: str, x: Sequence[float], finals: Sequence[FloatArray]) -> Series:
    """Means with 95 % bands of the mean, by Student's t over replicas."""
    from scipy.stats import t

    means = [float(np.mean(values)) for values in finals]
    halves = [
        float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
        for values in finals
    ]
    low = [m - h for m, h in zip(means, halves, strict=True)]
    high = [m + h for m, h in zip(means, halves, strict=True)]
    return Series(label, x, means, low, high)


def at_most(what: str, value: float, bound: float, form: str = "{:.3g}") -> Finding:
    """A number that must not exceed another."""
    return Finding(what, form.format(value), f"at most {form.format(bound)}", HOLDS if value <= bound else FAILS)


def near_half(what: str, slope: Slope) -> Finding:
    """A slope that should be 1/2: it holds where the interval leaves out 2/3 and lies within 0.4 to 0.6."""
    if slope.high < 2.0 / 3.0 and 0.4 <= slope.value <= 0.6:
        verdict = HOLDS
    elif slope.value > 0.6:
        verdict = OPEN
    else:
        verdict = HOLDS if slope.high <= 0.6 else OPEN  # slower than √K is within an upper bound
    return Finding(what, str(slope), "1/2", verdict)
