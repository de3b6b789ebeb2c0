"""What `aggbandit run` plays: several learners, one after the other, on one instance against the same losses.

Everything is kept in one folder as it comes: each finished result, and the state of the run under way, so that a
stopped run continues where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit._arrays import IntArray
from aggbandit._checks import require_integer
from aggbandit._files import write_atomically
from aggbandit._version import __version__
from aggbandit.errors import DamagedFileError, InvalidInputError
from aggbandit.experiments.named import Named

if TYPE_CHECKING:
    from aggbandit.adversaries import LossSequence
    from aggbandit.learners.base import Learner
    from aggbandit.mdp.tabular import TabularMDP
    from aggbandit.simulation.result import RunResult
    from aggbandit.simulation.run import Progress

REFERENCE = Named("uniform")
PLAN_FILE = "plan.json"
RESULT_SUFFIX = ".result"
STATE_SUFFIX = ".state"
FORMAT = 1
LOG_SPACED = 120  # checkpoints for the logarithmic views
EVENLY_SPACED = 100  # and for the linear one, where log-spaced ones would cut the corners late in the run


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One instance, one loss sequence, some learners."""

    instance: Named
    adversary: Named
    learners: tuple[Named, ...]
    episodes: int
    replicas: int
    seed: int
    device: str = "cpu"
    dtype: str = "float64"

    def made(self) -> tuple[TabularMDP, LossSequence, list[Learner[Any]]]:
        """All of it, configured; raises before anything is played where something does not fit."""
        from aggbandit import adversaries, learners
        from aggbandit.learners.base import Problem
        from aggbandit.mdp import instances
        from aggbandit.simulation.engines.places import Places, gpus_of
        from aggbandit.simulation.engines.registry import require_on_gpu

        require_integer("episodes", self.episodes, low=1)
        require_integer("replicas", self.replicas, low=1)
        require_integer("seed", self.seed, low=0)
        mdp = instances.make(self.instance.name, **self._seeded(self.instance, instances.get))
        losses = adversaries.make(self.adversary.name, mdp, **self._seeded(self.adversary, adversaries.get))
        chosen = [learners.make(one.name, **one.arguments) for one in self.learners]
        if gpus_of(self.device):  # before a GPU is looked for: no machine's would do
            for learner in chosen:
                require_on_gpu(learner)
        Places.parse(self.device, self.dtype)
        for learner in chosen:
            learner.check(Problem.of(mdp, self.episodes, learner.needs))
        return mdp, losses, chosen

    def _seeded(self, what: Named, get: Callable[[str], Callable[..., Any]]) -> dict[str, Any]:
        """Its arguments, with the plan's seed where it takes one and none is given."""
        import inspect

        takes_seed = "seed" in inspect.signature(get(what.name)).parameters
        return {**({"seed": self.seed} if takes_seed else {}), **what.arguments}

    def checkpoints(self) -> IntArray:
        """Dense enough for linear and logarithmic axes alike."""
        K = self.episodes
        marks = np.concatenate([np.geomspace(1, K, LOG_SPACED), np.linspace(1, K, EVENLY_SPACED + 1)])
        found: IntArray = np.unique(np.round(marks).astype(np.int64))
        return found

    @property
    def labels(self) -> list[str]:
        """The learners' names on every table and plot: as they were typed."""
        return [str(learner) for learner in self.learners]

    @property
    def setting(self) -> str:
        """The instance and the losses, as they were typed."""
        return f"{self.instance} · {self.adversary} losses"

    def with_reference(self) -> Plan:
        """The same with the uniform policy in front, unless it is there: the others' regret is compared with it."""
        if any(learner.name == REFERENCE.name for learner in self.learners):
            return self
        return replace(self, learners=(REFERENCE, *self.learners))


# With few long blocks a learner follows every switch and ends below the best fixed policy: a regret that is negative.
# Blocks this short are over before it has followed; what is left to learn is the policy that is best over them all.
FIRST_LOOK = Plan(
    instance=Named("random", {"states": 3, "actions": 2, "horizon": 3}),
    adversary=Named("switching", {"blocks": 8, "period": 250}),
    learners=(REFERENCE, Named("po-known"), Named("po-unknown")),
    episodes=50_000,
    replicas=16,
    seed=0,
)


def play(
    plan: Plan,
    folder: Path,
    *,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[tuple[int, RunResult]]:
    """The results in the order of the learners, each kept in `folder` before it is given out.

    Where `folder` holds an unfinished play of the same plan, what is there is not played again; that of another plan
    goes to a folder beside it.
    """
    from aggbandit.simulation.run import run

    mdp, losses, chosen = plan.made()
    continued = begun(plan, folder)
    if not continued:
        set_aside(plan, folder)
        _clear(folder)
        _write(plan, folder, finished=False)
    for index, learner in enumerate(chosen):
        kept, state = folder / f"{index}{RESULT_SUFFIX}", folder / f"{index}{STATE_SUFFIX}"
        result = _kept(kept) if continued else None
        if result is not None:
            yield index, result
            continue
        result = run(
            mdp,
            losses,
            learner,
            episodes=plan.episodes,
            replicas=plan.replicas,
            seed=plan.seed,
            checkpoints=plan.checkpoints(),
            threads=threads,
            device=plan.device,
            dtype=plan.dtype,
            progress=progress or False,
            state_file=state,
        )
        result.save(kept)
        state.unlink(missing_ok=True)
        yield index, result
    _write(plan, folder, finished=True)


def _kept(path: Path) -> RunResult | None:
    """The result stored there; None where there is none, or a damaged one, which is then played again."""
    from aggbandit.simulation.result import RunResult

    try:
        return RunResult.load(path)
    except (FileNotFoundError, DamagedFileError):
        return None


def stored(folder: Path) -> tuple[Plan | None, list[tuple[str, Path]]]:
    """The plan played in `folder`, and the (label, file) of each result there.

    A folder without a plan may hold results saved by `RunResult.save` as `NAME.result`; their label is NAME.
    """
    if not folder.is_dir():
        raise InvalidInputError(
            f"there is no folder {str(folder)!r}. Give the one that `aggbandit run --out` wrote to."
        )
    plan = _read(folder)
    if plan is None:
        found = [(path.stem, path) for path in sorted(folder.glob(f"*{RESULT_SUFFIX}"))]
    else:
        paths = [folder / f"{index}{RESULT_SUFFIX}" for index in range(len(plan.learners))]
        found = [(label, path) for label, path in zip(plan.labels, paths, strict=True) if path.exists()]
    if not found:
        raise InvalidInputError(
            f"the folder {str(folder)!r} holds no results: no {PLAN_FILE} with its files, and no *{RESULT_SUFFIX}."
        )
    return plan, found


def _write(plan: Plan, folder: Path, *, finished: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    record = {"format": FORMAT, "version": __version__, "finished": finished, "plan": asdict(plan)}
    write_atomically(folder / PLAN_FILE, json.dumps(record, indent=2, ensure_ascii=False).encode())


def _record(folder: Path) -> dict[str, Any] | None:
    path = folder / PLAN_FILE
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_bytes())
        known = record["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(f"{path} is no plan that can be read: {error}. Remove it to start afresh.") from None
    if not known:
        raise DamagedFileError(f"{path} has format {record['format']}, but this version reads format {FORMAT}.")
    found: dict[str, Any] = record
    return found


def _read(folder: Path) -> Plan | None:
    record = _record(folder)
    if record is None:
        return None
    try:
        fields = dict(record["plan"])
        for name in ("instance", "adversary"):
            fields[name] = Named(**fields[name])
        fields["learners"] = tuple(Named(**one) for one in fields["learners"])
        return Plan(**fields)
    except (KeyError, TypeError) as error:
        raise DamagedFileError(f"{folder / PLAN_FILE} is no plan that can be read: {error}.") from None


def begun(plan: Plan, folder: Path) -> bool:
    """Whether `folder` holds an unfinished play of this very plan, by this version."""
    record = _record(folder)
    if record is None or record["finished"] or record["version"] != __version__:
        return False
    same: bool = record["plan"] == json.loads(json.dumps(asdict(plan)))
    return same


def set_aside(plan: Plan, folder: Path) -> Path | None:
    """Where an unfinished play of another plan was moved to, so that its command with `--out` can still continue it."""
    record = _record(folder)
    if record is None or record["finished"] or begun(plan, folder) or not _files_of(record, folder):
        return None
    plan.made()  # one that cannot be played moves nothing
    beside = (folder.with_name(f"{folder.name}-stopped-{n}") for n in count(1))
    aside = next(path for path in beside if not path.exists())
    aside.mkdir()
    for path in [*_files_of(record, folder), folder / PLAN_FILE]:  # the plan last: until then it is all still here
        path.rename(aside / path.name)
    return aside


def _clear(folder: Path) -> None:
    """Remove what an earlier play left, and nothing else."""
    for path in _files_of(_record(folder), folder):
        path.unlink()


def _files_of(record: dict[str, Any] | None, folder: Path) -> list[Path]:
    """The results and states that a play has left."""
    places = range(len(record["plan"]["learners"]) if record else 0)
    paths = [folder / f"{index}{suffix}" for index in places for suffix in (RESULT_SUFFIX, STATE_SUFFIX)]
    return [path for path in paths if path.exists()]
