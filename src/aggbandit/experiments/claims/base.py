"""What a claim is made of, and the measurements and verdicts that several share.

A verdict is a function of the numbers alone, interval included, and can always come out either way: "holds" and "does
not hold" are said where the whole interval lies on one side, "not reached at this K" where it does not, or where the
learner has hardly begun to learn, so that its growth says nothing.
"""

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
VERDICTS = (HOLDS, FAILS, OPEN)
BOOTSTRAPS = 2000
FAR_FROM_HALF = 0.6  # a slope of at most this, with an interval below 2/3, counts as 1/2
NEXT_ORDER = 2.0 / 3.0
LEARNT = 0.8  # of the uniform policy's regret: above it a learner has hardly begun, and its slope is near 1


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
    minutes: float  # that `--full` takes on two cores, measured or scaled from what was
    play: Callable[[bool, Tell], Outcome]  # (full, tell)


class Estimate(NamedTuple):
    """A number with a 95 % interval; the three are the same where nothing is random."""

    value: float
    low: float
    high: float

    def told(self, form: str = "{:.3f}") -> str:
        """`0.512 [0.498, 0.525]`."""
        value, low, high = (_signless_zero(form.format(number)) for number in self)
        return value if self.low == self.high else f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        return self.told()


def _signless_zero(text: str) -> str:
    """`-0.00` is 0."""
    return text.removeprefix("-") if float(text) == 0.0 else text


def exactly(value: float) -> Estimate:
    """A number that nothing random enters."""
    return Estimate(value, value, value)


def played(
    mdp: TabularMDP, losses: Any, learner: Any, K: int, replicas: int, *, checkpoints: Any = 1, **arguments: Any
) -> RunResult:
    """A run with these claims' habits."""
    made = learners.make(learner, **arguments) if isinstance(learner, str) else learner
    return run(mdp, losses, made, episodes=K, replicas=replicas, checkpoints=checkpoints, keep_policy=False)


def named(learner: str, **arguments: Any) -> str:
    """The id, and what must stand beside it: what the learner sees and is told, and whether it is reconstructed."""
    made = learners.make(learner, **arguments)
    marks = ", reconstructed" if made.reconstructed else ""
    return f"{learner} ({made.needs.feedback}, dynamics {made.needs.dynamics}{marks})"


def small_random(seed: int, H: int = 3, S: int = 4, A: int = 2) -> TabularMDP:
    """A random instance small enough that the √K regime is within reach."""
    return instances.make("random", states=S, actions=A, horizon=H, seed=seed)


def fixed(mdp: TabularMDP, seed: int) -> Any:
    """One random loss table for all episodes."""
    return adversaries.make("fixed", mdp, table="random", seed=seed)


WORLDS = ("fixed losses", "switching losses", "hard instance")


def world(kind: str, seed: int, H: int, S: int, A: int) -> tuple[TabularMDP, Any]:
    """One of `WORLDS`; the hard instance with 8 times its gap, at which something can be learned."""
    if kind == "hard instance":
        hard = instances.make("lower-bound", states=S, actions=A, horizon=H)
        return hard, adversaries.make("lower-bound", hard, scale=8.0, seed=seed)
    mdp = small_random(seed, H=H, S=S, A=A)
    if kind == "switching losses":
        return mdp, adversaries.make("switching", mdp, blocks=40, seed=seed)
    return mdp, fixed(mdp, seed)


def final_regrets(
    kind: str, seeds: Sequence[int], size: tuple[int, int, int], learner: str, K: int, replicas: int, **arguments: Any
) -> FloatArray:
    """(replicas,): final regrets in the mean over the worlds of these seeds."""
    rows = [played(*world(kind, seed, *size), learner, K, replicas, **arguments).regret[:, -1] for seed in seeds]
    return np.asarray(np.mean(rows, axis=0))


def bootstrap(values: FloatArray, statistic: Callable[[FloatArray], FloatArray], seed: int = 0) -> Estimate:
    """A statistic of the columns' means, with its 95 % interval; `values` is (replicas, C), resampled by rows."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(values.shape[0], size=(BOOTSTRAPS, values.shape[0]))
    found = statistic(values[picks].mean(axis=1))
    low, high = np.quantile(found, [0.025, 0.975])
    return Estimate(float(statistic(values.mean(axis=0)[None])[0]), float(low), float(high))


def ratio_of_means(pairs: FloatArray) -> Estimate:
    """Mean of the first column over that of the second, rows resampled together."""
    return bootstrap(pairs, lambda means: means[:, 0] / means[:, 1])


def mean_over(values: FloatArray, unit: float) -> Estimate:
    """The mean in units of `unit`, with its interval by Student's t."""
    from scipy.stats import t

    mean = float(values.mean()) / unit
    n = values.size
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) / unit if n > 1 else 0.0
    return Estimate(mean, mean - half, mean + half)


def slope_between(finals: Sequence[FloatArray], Ks: Sequence[float]) -> Estimate:
    """The slope of log regret over the last two of `Ks`; `finals[i]` holds the replicas' final regrets at `Ks[i]`."""
    return exponent(Ks[-2:], finals[-2:])


def exponent(sizes: Sequence[float], finals: Sequence[FloatArray]) -> Estimate:
    """The exponent of a power law fitted to all sizes; `finals[i]` holds the replicas' final regrets at `sizes[i]`.

    NaN where a mean, or one drawn anew, is not positive, as it may be against a fixed policy when losses switch: then
    there is no such law.
    """
    logs = np.log(np.asarray(sizes, dtype=float))
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()

    def statistic(means: FloatArray) -> FloatArray:
        fitted: FloatArray = np.log(np.where(means > 0.0, means, np.nan)) @ weights
        return fitted

    return bootstrap(np.stack(finals, axis=1), statistic)


def mean_series(label: str, x: Sequence[float], finals: Sequence[FloatArray]) -> Series:
    """Means with 95 % bands of the mean, by Student's t over replicas."""
    found = [mean_over(np.asarray(values), 1.0) for values in finals]
    return Series(label, x, [f.value for f in found], [f.low for f in found], [f.high for f in found])


def compared(found: Estimate, bound: float, *, above: bool = False) -> str:
    """The verdict on "at most `bound`", or "at least": the whole interval must lie on one side."""
    low, high = (-found.high, -found.low) if above else (found.low, found.high)
    limit = -bound if above else bound
    if not low <= high:  # a NaN somewhere
        return OPEN
    return HOLDS if high <= limit else FAILS if low > limit else OPEN


def at_most(what: str, found: Estimate | float, bound: float, form: str = "{:.3g}", note: str = "") -> Finding:
    """A number that must not exceed another."""
    estimate = found if isinstance(found, Estimate) else exactly(found)
    return Finding(what, estimate.told(form), f"at most {form.format(bound)}{note}", compared(estimate, bound))


def at_least(what: str, found: Estimate | float, bound: float, form: str = "{:.3g}", note: str = "") -> Finding:
    """A number that must not stay below another."""
    estimate = found if isinstance(found, Estimate) else exactly(found)
    verdict = compared(estimate, bound, above=True)
    return Finding(what, estimate.told(form), f"at least {form.format(bound)}{note}", verdict)


def power(what: str, found: Estimate, claimed: float, next_one: float, nearer: float) -> Finding:
    """An exponent fitted to a few sizes, where lower orders and the instances' own difficulty still count.

    It holds where the whole interval lies below `nearer`, it does not where it lies above `next_one`.
    """
    lower, upper = compared(found, nearer), compared(found, next_one)
    verdict = HOLDS if lower == HOLDS else FAILS if upper == FAILS else OPEN
    return Finding(what, found.told("{:.2f}"), f"{claimed:g} or less: below {nearer:g}, not {next_one:g}", verdict)


def growth(last: Estimate, before: Estimate, share: float) -> str:
    """Whether regret grows as √K or slower: the verdict on its slopes over the last decade and the one before.

    It holds where the last slope is at most 0.6 and its interval leaves out 2/3.  It does not where the learner has
    learnt (its regret is `share` of the uniform policy's), yet the slope lies above 0.6 for certain and has not come
    down since the decade before: then it stays there.  A slope on its way down, a learner that has hardly begun, or an
    interval too wide leave it open.
    """
    if last.high < NEXT_ORDER and last.value <= FAR_FROM_HALF:
        return HOLDS
    if share < LEARNT and last.low > FAR_FROM_HALF and last.high >= before.low:
        return FAILS
    return OPEN


def growth_findings(
    label: str,
    finals: Sequence[FloatArray],
    Ks: Sequence[int],
    share: float,
    unit: Callable[[int], float],
    unit_name: str,
) -> list[Finding]:
    """The slope in K, and whether regret over its order flattens: two views of one verdict."""
    last, before = slope_between(finals, Ks), slope_between(finals[:-1], Ks[:-1])
    verdict = growth(last, before, share)
    scaled = ", ".join(f"{float(f.mean()) / unit(K):.3f}" for f, K in zip(finals, Ks, strict=True))
    return [
        Finding(f"slope in K, {label}, last decade", str(last), "1/2 or less, not 2/3", verdict),
        Finding(f"R / {unit_name} at each K, {label}", scaled, "flattens: the slope of 1/2 once more", verdict),
    ]
