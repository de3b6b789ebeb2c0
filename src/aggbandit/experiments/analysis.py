"""What stored cells say: bands by bootstrap, and comparisons of two learners on the same seeds.

Learners that play the same instance and losses with the same seed meet the same draws of the environment, replica by
replica.  The difference of their regrets therefore varies less than either regret: comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError
from aggbandit.experiments.cells import Cell, canonical_text
from aggbandit.experiments.store import StoredCell

RESAMPLES = 2000


class Band(NamedTuple):
    """A mean over replicas (C,), and the ends of its interval."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def bootstrap_band(
    curves: Sequence[FloatArray] | FloatArray, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Band:
    """The mean of curves and its percentile interval, by the bootstrap.

    `curves` is (R, C), one row a replica; or a sequence of such, one a seed: then seeds are resampled first, and
    replicas within each drawn seed, because replicas of one seed share its instance.  The same every time it is asked.

    >>> band = bootstrap_band(np.array([[1.0, 2.0], [3.0, 6.0]]))
    >>> band.mean.tolist(), bool(band.low[0] >= 1.0), bool(band.high[1] <= 6.0)
    ([2.0, 4.0], True, True)
    """
    level = require_number("confidence", confidence, low=0.0, high=1.0, low_open=True, high_open=True)
    seeds = [curves] if isinstance(curves, np.ndarray) else list(curves)
    if not seeds or any(one.ndim != 2 or one.shape[0] == 0 for one in seeds):
        raise InvalidInputError("curves must be (replicas, checkpoints), with at least one replica in each seed.")
    mean = np.mean([one.mean(axis=0) for one in seeds], axis=0)
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = np.zeros((resamples, mean.size))
    if len(seeds) == 1:
        weights = _weights(rng, resamples, seeds[0].shape[0])
        drawn = weights @ seeds[0]
    else:
        times = rng.multinomial(len(seeds), np.full(len(seeds), 1.0 / len(seeds)), size=resamples)
        for column, one in enumerate(seeds):
            # a seed that is drawn m times is resampled m times: together m R draws of its replicas
            R = one.shape[0]
            counts = np.stack([rng.multinomial(m * R, np.full(R, 1.0 / R)) for m in times[:, column]])
            drawn += counts @ one / R
        drawn /= len(seeds)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(mean, low, high)


def _weights(rng: np.random.Generator, resamples: int, R: int) -> FloatArray:
    return np.asarray(rng.multinomial(R, np.full(R, 1.0 / R), size=resamples) / R, dtype=np.float64)


@dataclass(frozen=True)
class Comparison:
    """Final regrets of A and B in one setting, on the same seeds and replicas."""

    cell: Cell  # one of A's: the setting is that of all pairs
    a: str
    b: str
    seeds: int
    pairs: int
    mean_a: float
    mean_b: float
    difference: float  # mean of A - B: negative where A is better
    low: float  # 95 % interval of the difference, by Student's t; infinite where there is one observation
    high: float
    wins: float  # share of pairs in which A's regret is the smaller, ties half
    identical: bool  # bit for bit, in every pair

    @property
    def verdict(self) -> str:
        """Who is better, if the interval says so."""
        if self.identical:
            return "identical"
        if self.high < 0:
            return "A is better"
        return "B is better" if self.low > 0 else "undecided"


def compared(first: Iterable[StoredCell], second: Iterable[StoredCell], a: str, b: str) -> list[Comparison]:
    """By setting: the cells of `first` beside those of `second` that have the same instance, losses, K and seed.

    Where seeds share the instance and the losses, every pair of replicas is an observation of the difference.  Where
    every seed has its own, the mean over its replicas is one.
    """
    partners = _widest(second)
    pairs: dict[tuple[str, str, int, int], list[tuple[StoredCell, StoredCell]]] = {}
    for world, one in _widest(first).items():
        if world in partners:
            cell = one.cell
            setting = cell.instance, cell.adversary, cell.episodes, cell.parameters["delays"]
            pairs.setdefault(setting, []).append((one, partners[world]))
    return [_comparison(found, a, b) for found in pairs.values()]


def _widest(cells: Iterable[StoredCell]) -> dict[str, StoredCell]:
    """By world, which is everything but the learner; of several cells the one with the most replicas."""
    out: dict[str, StoredCell] = {}
    for one in cells:
        found = one.cell.parameters
        world = canonical_text({key: found[key] for key in ("instance", "adversary", "episodes", "seed", "delays")})
        if world not in out or one.regret.shape[0] > out[world].regret.shape[0]:
            out[world] = one
    return out


def _comparison(pairs: Sequence[tuple[StoredCell, StoredCell]], a: str, b: str) -> Comparison:
    finals = []  # of A and B, (2, R) for each seed
    for one, other in pairs:
        R = min(one.regret.shape[0], other.regret.shape[0])
        finals.append(np.stack([one.regret[:R, -1], other.regret[:R, -1]]))
    every = np.concatenate([x - y for x, y in finals])
    shared = len({_environment(one) for one, _ in pairs}) == 1
    x, y = np.concatenate(finals, axis=1) if shared else np.stack([one.mean(axis=1) for one in finals], axis=1)
    mean, half = (x - y).mean(), _half_width(x - y)
    return Comparison(
        cell=pairs[0][0].cell, a=a, b=b, seeds=len(pairs), pairs=every.size, mean_a=float(x.mean()),
        mean_b=float(y.mean()), difference=float(mean), low=float(mean - half), high=float(mean + half),
        wins=float(np.mean((every < 0) + 0.5 * (every == 0))), identical=not every.any(),
    )  # fmt: skip


def _environment(one: StoredCell) -> str:
    found = one.cell.parameters
    return canonical_text({key: found[key] for key in ("instance", "adversary")})


def _half_width(observed: FloatArray) -> float:
    """Half the 95 % interval for the mean.

    Student's t and not the bootstrap: of three seeds that agree, resampling sees nothing but three seeds that agree.
    """
    from scipy.special import stdtrit

    n = observed.size
    if n < 2:
        return float("inf")
    return float(stdtrit(n - 1, 0.975) * observed.std(ddof=1) / np.sqrt(n))
