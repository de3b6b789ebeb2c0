"""What a run returns: exact curves, the final policies, and who played."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit import _files
from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit.learners.base import Learner, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND = "run-result"
FORMAT = 1


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LearnerRecord:
    """Who played: a learner's name, arguments, what it sees, and what its arguments came to."""

    name: str
    arguments: dict[str, Any]
    feedback: str
    dynamics: str
    losses: str
    reconstructed: bool
    version: int
    resolved: dict[str, Any]
    text: str
    tuned: bool = False  # numbers were given by hand
    update_by: str = ""

    @classmethod
    def of(cls, learner: Learner[Any], problem: Problem) -> LearnerRecord:
        return cls(
            name=learner.name,
            arguments=learner.arguments,
            feedback=learner.needs.feedback,
            dynamics=learner.needs.dynamics,
            losses=learner.needs.losses,
            reconstructed=learner.reconstructed,
            version=learner.version,
            resolved=dict(learner.resolved(problem)),
            text=repr(learner.bound(problem)),
            tuned=learner.tuned,
            update_by=learner.update_by,
        )

    def __repr__(self) -> str:
        return f"{self.text}, sees {self.feedback}, dynamics {self.dynamics}"


@dataclass(frozen=True, kw_only=True, eq=False)
class RunResult:
    """The outcome of `aggbandit.run`.  C checkpoints, R replicas; arrays are read-only."""

    episodes: IntArray  # (C,) how many were played at each checkpoint; the last is K
    regret: FloatArray  # (R, C) exact: expected loss of the policies played minus the best fixed policy's
    pseudo_regret: FloatArray | None  # (R, C) against the mean table, where losses are i.i.d.
    cost: FloatArray  # (R, C) cumulative expected loss
    comparator: FloatArray  # (C,) the best fixed policy's, for the episodes up to the checkpoint
    policy: FloatArray | None  # (R, H, S, A) after the last episode; None with keep_policy=False
    hindsight_policy: IntArray  # (H, S) the best fixed policy's actions over all K episodes
    seconds: float  # of play, compilation left out
    learner: LearnerRecord
    seed: int
    evaluate_every: int  # 1: every policy was evaluated exactly; n: each n-th, standing for the n - 1 after it
    device: str = "cpu"  # or "cuda" and the names of the GPUs
    dtype: str = "float64"  # of the policies; sums are float64 always

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def replicas(self) -> int:
        """R."""
        return int(self.regret.shape[0])

    @property
    def episodes_per_second(self) -> float:
        """Episodes played a second, all replicas together."""
        return self.replicas * int(self.episodes[-1]) / self.seconds if self.seconds > 0 else float("inf")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path` (temporary file, sync, rename); `RunResult.load` reads it back exactly."""
        tree = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        tree["learner"] = dataclasses.asdict(self.learner)
        _files.write_atomically(path, _files.sealed(_files.dump_tree(tree), KIND, FORMAT))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RunResult:
        """The result saved at `path`; a damaged file raises DamagedFileError."""
        tree = _files.load_tree(_files.open_sealed(path, KIND, FORMAT), {})
        tree["learner"] = LearnerRecord(**tree["learner"])
        return cls(**tree)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """A figure of mean regret against episodes, a line a replica behind it; written to `path` if given."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.5, 3.2), layout="constrained")
        axes = figure.add_subplot()
        for curve in self.regret[:64]:
            axes.plot(self.episodes, curve, color="0.75", linewidth=0.6)
        axes.plot(self.episodes, self.regret.mean(axis=0), color="#0072B2", linewidth=1.8)
        axes.set_xlabel("episodes")
        axes.set_ylabel("regret (total loss above the best fixed policy)")
        every = "" if self.evaluate_every == 1 else f", every {self.evaluate_every}th policy evaluated"
        replicas = f"{self.replicas} replicas" if self.replicas != 1 else "1 replica"
        axes.set_title(f"{self.learner.name}: mean of {replicas}{every}", fontsize="medium")
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        final = self.regret[:, -1]
        spread = f" ± {final.std(ddof=1):.4g} (sd)" if self.replicas > 1 else ""
        return (
            f"RunResult({self.learner.text}: K = {int(self.episodes[-1])}, replicas = {self.replicas}, "
            f"regret {final.mean():.6g}{spread}, best fixed policy's loss {self.comparator[-1]:.6g}, "
            f"{self.seconds:.3g} s)"
        )


def read_only(array: AnyArray) -> AnyArray:
    """An own, read-only copy."""
    own = np.array(array)
    own.flags.writeable = False
    return own
