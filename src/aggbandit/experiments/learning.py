"""How much of a random player's regret a learner has left after n episodes: a look at stored curves.

The curves are those of single replicas on random instances, by (H, S, A, noise); benchmarks.learning_curves made them.
At each number of episodes the logarithms of what they have left are smoothed by local linear regression on log H,
log S, log A and log noise; the range holds the middle four fifths of the curves nearby, about that line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer, require_number
from aggbandit.errors import InvalidInputError

NAMES = ("po-model-free", "po-practical", "po-practical:dynamics=unknown")  # learners that have curves
NOISE = 3.0  # where the spread of scores is not told: losses are 0 or 1
LEAST = 1e-4  # shares below this are as good as none
RANGE = (0.1, 0.9)  # quantiles
RIDGE = 0.01  # keeps slopes in hand where few curves are near


class Left(NamedTuple):
    """After so many episodes, shares of the uniform policy's regret."""

    episodes: int
    left: float  # of an episode's regret, by the policy that is played then
    low: float
    high: float
    so_far: float  # of the regret of all episodes up to then


@dataclass(frozen=True)
class Curves:
    """One learner's stored curves."""

    episodes: FloatArray  # (C,)
    places: FloatArray  # (n, 4): H, S, A and noise of each curve
    left: FloatArray  # (n, C): regret since the checkpoint before, over the uniform policy's


def file_of(learner: str) -> str:
    """The name of a learner's stored curves, without its ending."""
    return learner.replace(":", "-").replace("=", "-")


@cache
def curves_of(learner: str) -> Curves:
    """From the package."""
    if learner not in NAMES:
        raise InvalidInputError(
            f"There are no stored curves of {learner}, only of {', '.join(NAMES)}. Play it on an instance like yours "
            "with `aggbandit run` instead."
        )
    folder = resources.files("aggbandit.experiments") / "learning_curves"
    stored = json.loads((folder / f"{file_of(learner)}.json").read_text(encoding="utf-8"))
    places, left = [], []
    for *place, made in stored["curves"]:
        places += [place] * len(made)
        left += made
    return Curves(np.array(stored["episodes"], float), np.array(places, float), np.array(left, float))


def noise_of(spread: float, H: int) -> float:
    """The variance of totals over that of totals whose only chance is in transitions and actions; at least 1.

    `spread` is the standard deviation of a random player's totals over their range, H steps of losses in [0, 1].
    """
    require_number("spread", spread, low=0.0, high=0.5, low_open=True)
    return max(1.0, 12.0 * H * spread * spread)


def forecast(learner: str, *, H: int, S: int, A: int, episodes: Sequence[int], noise: float = NOISE) -> list[Left]:
    """What this learner is expected to have left after each of these numbers of episodes, at most `longest`."""
    stored = curves_of(learner)
    at, pace = _place(stored, H, S, A, noise)
    end = longest(learner, H=H, S=S, A=A, noise=noise)
    places = np.log(stored.places)
    steps = np.array([_step(places[:, i]) for i in range(4)])
    weight = np.exp(-0.5 * (((places - at) / steps) ** 2).sum(axis=1))
    features = np.column_stack([np.ones(len(places)), (places - at) / steps])
    logs = np.log(np.maximum(stored.left, LEAST))
    normal = features.T * weight @ features + RIDGE * weight.sum() * np.diag([0.0, 1.0, 1.0, 1.0, 1.0])
    fitted = np.linalg.solve(normal, features.T * weight @ logs)  # (5, C); row 0 is the value here
    off = logs - features @ fitted
    bands = np.array([_quantile(off[:, c], weight, RANGE) for c in range(logs.shape[1])])
    means = np.log(weight @ np.exp(off) / weight.sum())  # of shares, not of their logarithms
    lines = np.minimum.accumulate(fitted[0] + means), fitted[0] + bands[:, 0], fitted[0] + bands[:, 1]
    ends = stored.episodes
    sums = np.cumsum(np.minimum(1.0, np.exp(lines[0])) * np.diff(ends, prepend=0.0)) / ends
    out = []
    for n in episodes:
        mark = np.log(require_integer("episodes", n, low=1, high=end) * pace)
        left, below, above = (min(1.0, float(np.exp(np.interp(mark, np.log(ends), line)))) for line in lines)
        so_far = float(np.interp(np.exp(mark), ends, sums))
        out.append(Left(n, left, min(below, left), max(above, left), so_far))
    return out


def longest(learner: str, *, H: int, S: int, A: int, noise: float = NOISE) -> int:
    """The greatest number of episodes that its curves speak of at this place."""
    stored = curves_of(learner)
    return int(stored.episodes[-1] / min(1.0, _place(stored, H, S, A, noise)[1]))


def reaching(learner: str, share: float, *, H: int, S: int, A: int, noise: float = NOISE) -> list[int | None]:
    """When the policy then played has this share left: expected, in a good case, in a bad one; None: not in time."""
    size: dict[str, Any] = {"H": H, "S": S, "A": A, "noise": noise}
    marks = np.unique(np.geomspace(10, longest(learner, **size), 300).astype(int))
    rows = forecast(learner, episodes=[int(n) for n in marks], **size)
    return [
        next((row.episodes for row in rows if getattr(row, name) <= share), None) for name in ("left", "low", "high")
    ]


def is_inside(learner: str, *, H: int, S: int, A: int, noise: float) -> bool:
    """Whether curves were made on all sides of this place."""
    return _place(curves_of(learner), H, S, A, noise)[1] == 1.0


def _place(stored: Curves, H: int, S: int, A: int, noise: float) -> tuple[FloatArray, float]:
    """(4,): logarithms of the nearest place among the stored ones, and how many of its episodes one here is worth.

    Beyond the stored sizes the episodes needed are taken to grow in proportion to each of H, S, A and the noise.
    """
    for name, size, least in (("H", H, 1), ("S", S, 1), ("A", A, 2)):
        require_integer(name, size, low=least)
    at = np.log([H, S, A, noise])
    places = np.log(stored.places)
    inside = np.clip(at, places.min(axis=0), places.max(axis=0))
    return inside, float(np.exp((inside - at).sum()))


def _step(values: FloatArray) -> float:
    """The mean distance between neighbours of a grid's axis."""
    axis = np.unique(values)
    return float(np.diff(axis).mean()) if len(axis) > 1 else 1.0


def _quantile(values: FloatArray, weight: FloatArray, at: tuple[float, float]) -> FloatArray:
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    return np.interp(at, below / below[-1], values[order])
