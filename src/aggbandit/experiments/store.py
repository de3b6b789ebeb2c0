"""A folder of results: one immutable Parquet file a cell, named after what it holds.

    aggbandit-store.json               format of the folder
    NAME.spec                          the spec with this name that was last run here, and its cells
    <cell>.<sha256>.parquet            a finished cell; the second part is the SHA-256 of the file's bytes
    <cell>.<sha256>.error.json         why a cell failed
    states/<cell>.state                where a long cell is

Any number of processes on any number of machines may write at once: a file appears whole, under a name that only
the same bytes can have, and is never changed.  Where a cell has two valid files, the first by name counts.  Every
read compares the bytes with the name: Parquet's own checksums miss flipped bits.

Rows of a cell's file, one a replica and checkpoint (docs/clusters.md has the table): cell, learner, instance,
adversary, K, seed, replica, episodes, regret, pseudo_regret, cost, comparator, parameters.  The schema's metadata
has one key, "aggbandit": JSON with everything else.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import tempfile
import threading
import time
import tomllib
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit import _files
from aggbandit._arrays import FloatArray, IntArray
from aggbandit._version import __version__
from aggbandit.errors import DamagedFileError, InvalidInputError, StorageError
from aggbandit.experiments.cells import Cell, canonical_text

if TYPE_CHECKING:
    from pandas import DataFrame

    from aggbandit.experiments.spec import Spec
    from aggbandit.simulation.result import LearnerRecord, RunResult

FORMAT = 1
MARKER = "aggbandit-store.json"
SPEC_SUFFIX, SPEC_KIND, SPEC_FORMAT = ".spec", "sweep-spec", 1
STATES = "states"
METADATA = b"aggbandit"
STALE_SECONDS = 24 * 3600.0  # a temporary file this old belongs to nobody
_RESULT = re.compile(r"([0-9a-f]{64})\.([0-9a-f]{64})\.parquet")
_ERROR = re.compile(r"([0-9a-f]{64})\.([0-9a-f]{64})\.error\.json")
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{12}\.tmp")


@dataclass(frozen=True, eq=False)
class StoredCell:
    """A finished cell as it was read: curves of R replicas at C checkpoints, and how they came about."""

    cell: Cell
    file: str
    metadata: dict[str, Any]
    episodes: IntArray  # (C,)
    regret: FloatArray  # (R, C)
    pseudo_regret: FloatArray | None
    cost: FloatArray
    comparator: FloatArray  # (C,)

    @property
    def seconds(self) -> float:
        """Of play, all replicas together."""
        return float(self.metadata["seconds"])

    @property
    def evaluate_every(self) -> int:
        """1: every policy was evaluated."""
        return int(self.metadata["evaluate_every"])

    @property
    def dtype(self) -> str:
        """The number type that policies were held in."""
        return str(self.metadata.get("dtype", "float64"))

    @cached_property
    def learner(self) -> LearnerRecord:
        """Who played."""
        from aggbandit.simulation.result import LearnerRecord

        return LearnerRecord(**self.metadata["learner"])


@dataclass(frozen=True)
class Failure:
    """A cell that failed, with the traceback."""

    cell: str
    file: str
    error: str
    traceback: str
    when: str
    name: str


@dataclass(frozen=True)
class Damage:
    """A file that is not what its name says."""

    cell: str
    file: str
    message: str
    replaced: bool  # another, valid file has the cell's result


@dataclass(frozen=True)
class StoredSpec:
    """A spec that was run in this folder."""

    name: str
    text: str
    groups: dict[str, list[str]]  # cells' ids

    @property
    def description(self) -> str:
        """What its author says of it, or nothing."""
        return str(tomllib.loads(self.text).get("description", ""))


class Store:
    """The folder, as it was when last looked at (`refresh`)."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._results: dict[str, list[str]] = {}
        self._errors: dict[str, list[str]] = {}
        self._looked = 0.0
        self._lock = threading.Lock()

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """The store in this folder; raises where there is none, or one of a newer version."""
        store = cls(folder)
        if not store.folder.is_dir():
            raise InvalidInputError(
                f"there is no folder {str(store.folder)!r}. Give the --out of `aggbandit run SPEC`."
            )
        marked = store._check_marker()
        store.refresh()
        if not marked and not store._results:
            raise InvalidInputError(
                f"the folder {str(store.folder)!r} is no store: it has no {MARKER} and no results of a sweep."
            )
        return store

    @classmethod
    def create(cls, folder: str | os.PathLike[str]) -> Store:
        """The store in this folder, made if it is not there."""
        store = cls(folder)
        if store.folder.exists() and not store.folder.is_dir():
            raise InvalidInputError(f"{str(store.folder)!r} is a file; a store is a folder. Give another --out.")
        with cannot_write(store.folder):
            _files.make_folder(store.folder)
            known = store._check_marker()
            _files.make_folder(store.folder / STATES)
            if not known:
                about = {"format": FORMAT, "aggbandit": __version__, "what": "a store of aggbandit results"}
                _files.write_atomically(store.folder / MARKER, json.dumps(about, indent=2).encode())
            with tempfile.TemporaryFile(dir=store.folder):  # a folder that takes none is told before anything is played
                pass
        store.refresh()
        return store

    def _check_marker(self) -> bool:
        path = self.folder / MARKER
        if not path.exists():
            return False
        try:
            found = json.loads(path.read_bytes())
            newer = found["format"] > FORMAT
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(f"{path} cannot be read ({error}). Remove it: the results do not need it.") from None
        if newer:
            raise InvalidInputError(
                f"the store {str(self.folder)!r} was written by a newer aggbandit ({found.get('aggbandit', '?')}, "
                f"format {found['format']}); this is {__version__}, which reads format {FORMAT}. Nothing was changed. "
                "Update aggbandit, or give another --out."
            )
        return True

    def refresh(self, older_than: float = 0.0) -> None:
        """Look at the folder again, unless that was done within `older_than` seconds."""
        now = time.monotonic()
        with self._lock:
            if older_than and now - self._looked < older_than:
                return
            self._looked = now
        results: dict[str, list[str]] = {}
        errors: dict[str, list[str]] = {}
        for name in os.listdir(self.folder):
            if found := _RESULT.fullmatch(name):
                results.setdefault(found[1], []).append(name)
            elif found := _ERROR.fullmatch(name):
                errors.setdefault(found[1], []).append(name)
        for names in (*results.values(), *errors.values()):
            names.sort()
        self._results, self._errors = results, errors

    # What is there

    @property
    def finished(self) -> list[str]:
        """Ids of the cells that have a result, sorted."""
        return sorted(self._results)

    @property
    def failed(self) -> list[str]:
        """Ids of the cells that have none but failed, sorted."""
        return sorted(set(self._errors) - set(self._results))

    def has(self, cell: str) -> bool:
        """Whether this cell has a result."""
        return cell in self._results

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"Store({str(self.folder)!r}: {len(self)} cells{failed})"

    def files(self, cell: str) -> list[Path]:
        """The files that this cell's result may be read from, in the order in which they count."""
        if not self._results.get(cell):  # noted as finished, or new since the last look
            self.refresh()
        return [self.folder / name for name in self._results.get(cell, ())]

    def state_file(self, cell: str) -> Path:
        """Where the cell's state is kept while it runs."""
        return self.folder / STATES / f"{cell}.state"

    def under_way(self) -> list[str]:
        """Ids of unfinished cells that have a saved state."""
        states = self.folder / STATES
        if not states.is_dir():
            return []
        return sorted(path.stem for path in states.glob("*.state") if path.stem not in self._results)

    # Reading

    def read(self, cell: str) -> StoredCell:
        """The cell's curves: of its valid files the first by name.

        Raises DamagedFileError, naming every file and what is wrong, where none is valid.
        """
        wrong: list[str] = []
        for _ in range(2):  # another process may just have repaired it: its file is there under another name
            wrong = []
            gone = False
            for path in self.files(cell):
                try:
                    return read_result(path)
                except DamagedFileError as error:
                    wrong.append(str(error))
                except FileNotFoundError:
                    gone = True
            if not gone:
                break
            self.refresh()
        if not wrong:
            raise InvalidInputError(f"the store {str(self.folder)!r} has no result of the cell {cell}.")
        raise DamagedFileError(" ".join(wrong))

    def read_all(self, *, skip_damaged: bool = False, cells: Iterable[str] | None = None) -> list[StoredCell]:
        """Every cell, in the order of their ids; one that is damaged raises unless it is skipped."""
        out = []
        for cell in self.finished if cells is None else cells:
            try:
                out.append(self.read(cell))
            except DamagedFileError:
                if not skip_damaged:
                    raise
        return out

    def damage(self, cells: Iterable[str] | None = None) -> list[Damage]:
        """Every damaged file, found by reading all of them."""
        found: list[Damage] = []
        for cell in self.finished if cells is None else cells:
            bad: list[tuple[Path, str]] = []
            good = 0
            for path in self.files(cell):
                try:
                    read_result(path)
                    good += 1
                except DamagedFileError as error:
                    bad.append((path, str(error)))
                except FileNotFoundError:  # removed by a process that repairs
                    continue
            found.extend(Damage(cell, path.name, message, good > 0) for path, message in bad)
        return found

    def failures(self) -> list[Failure]:
        """What happened to the cells that failed."""
        return [found for cell in self.failed if (found := self._failure(cell)) is not None]

    def _failure(self, cell: str) -> Failure | None:
        path = self.folder / self._errors[cell][-1]
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # played again just now, by another process
            return None
        if _files.digest(data) != _parts(path)[1]:
            return Failure(cell, path.name, f"{path} was altered", "", "", cell[:12])
        found = json.loads(data)
        return Failure(cell, path.name, found["error"], found["traceback"], found["when"], found["name"])

    def frame(self, *, arguments: str = "varying", final: bool = False, skip_damaged: bool = False) -> DataFrame:
        """A tidy pandas DataFrame: one row a cell, replica and checkpoint.

        Columns: group, cell, learner, instance, adversary, K, seed, replica, episodes, regret, pseudo_regret, cost,
        comparator, seconds, and the arguments ("learner.confidence", "instance.states", ...).

        arguments      "varying": those that are not the same in all cells; "all"; or "none".
        final          only the last checkpoint of each replica.
        skip_damaged   leave damaged files out instead of raising DamagedFileError.
        """
        from aggbandit.experiments.frames import frame_of

        if arguments not in ("varying", "all", "none"):
            raise InvalidInputError(f'arguments must be "varying", "all" or "none", but is {arguments!r}.')
        groups = self.groups()
        return frame_of(self.read_all(skip_damaged=skip_damaged), groups, arguments=arguments, final=final)

    # Specs

    def specs(self) -> list[StoredSpec]:
        """The specs that were run here, by name."""
        out = []
        for path in sorted(self.folder.glob(f"*{SPEC_SUFFIX}")):
            way_out = "Remove it: the results do not need it, and running the spec again writes it."
            found = json.loads(_files.open_sealed(path, SPEC_KIND, SPEC_FORMAT, way_out))
            out.append(StoredSpec(found["name"], found["text"], found["groups"]))
        return out

    def asked(self) -> list[str]:
        """Ids of the cells that the specs here ask for, in their order; of all cells where there is no spec.

        A spec that was edited, or an algorithm with a new version, leaves cells behind that nobody asks for any more.
        """
        specs = self.specs()
        if not specs:
            return self.finished
        return list(dict.fromkeys(cell for spec in specs for cells in spec.groups.values() for cell in cells))

    def groups(self) -> dict[str, list[str]]:
        """The groups that each cell belongs to."""
        out: dict[str, list[str]] = {}
        for spec in self.specs():
            for group, cells in spec.groups.items():
                for cell in cells:
                    out.setdefault(cell, []).append(group)
        return out

    def keep_spec(self, spec: Spec, *, add: bool = False) -> str:
        """Note that this spec is run here; returns what the user should be told about it, if anything.

        Raises where results of another spec are here, unless `add` says that they may share the folder.
        """
        groups = {group.name: [cell.id for cell in group.cells] for group in spec.groups}
        there = {found.name: found for found in self.specs()}
        others = [name for name in there if name != spec.name]
        if others and spec.name not in there and not add:
            raise InvalidInputError(
                f"{str(self.folder)!r} holds results of the spec {others[0]!r}, and this is {spec.name!r}. Nothing was "
                "changed. Give another --out, or --add: both may share the folder, and cells they have in common are "
                "played once."
            )
        said = ""
        old = there.get(spec.name)
        if old is not None and old.groups != groups:
            before = {cell for cells in old.groups.values() for cell in cells}
            now = {cell for cells in groups.values() for cell in cells}
            said = (
                f"the spec {spec.name!r} has changed since it was last run here: {len(now - before)} new cells, "
                f"{len(before - now)} no longer asked for; their results stay"
            )
        if old is None or old.groups != groups or old.text != spec.text:
            content = {"name": spec.name, "text": spec.text, "groups": groups, "aggbandit": __version__}
            data = _files.sealed(json.dumps(content, ensure_ascii=False).encode(), SPEC_KIND, SPEC_FORMAT)
            with cannot_write(self.folder):
                _files.write_atomically(self.folder / f"{spec.name}{SPEC_SUFFIX}", data)
        return said

    # Writing

    def write(self, cell: str, data: bytes) -> Path:
        """Keep the bytes of a cell's result."""
        path = write_result(self.folder, cell, data)
        self.note(cell, finished=True)
        return path

    def note(self, cell: str, *, finished: bool) -> None:
        """A cell has been finished or has failed, by a file that somebody has written: `has` knows at once."""
        if finished:
            self._results.setdefault(cell, [])
            for name in self._errors.pop(cell, ()):
                (self.folder / name).unlink(missing_ok=True)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of results by name: damaged ones, once the cell has been played again."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
            known = self._results.get(name.partition(".")[0], [])
            if name in known:
                known.remove(name)

    def tidy(self) -> None:
        """Remove states of finished cells, and temporary files that a killed process left a day ago or earlier."""
        for path in (self.folder / STATES).glob("*.state"):
            if path.stem in self._results:
                path.unlink(missing_ok=True)
        for folder in (self.folder, self.folder / STATES):
            for path in folder.glob(".*.tmp"):
                if _TEMPORARY.fullmatch(path.name) and _age(path) > STALE_SECONDS:
                    path.unlink(missing_ok=True)


def open_store(folder: str | os.PathLike[str]) -> Store:
    """The results that `aggbandit run SPEC.toml --out DIR` keeps in `folder`, finished or not.

    `.frame()` is a tidy DataFrame, `.read(cell)` one cell's curves, `.failures()` what went wrong, `.damage()` the
    files that are not what they were.
    """
    return Store.open(folder)


class cannot_write:
    """Turns an OSError within into a StorageError that names the folder and the way out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError) and not isinstance(error, (StorageError, DamagedFileError)):
            raise StorageError(
                f"cannot write into {str(self._folder)!r}: {error.strerror or error}. What is finished stays; make "
                "room or give another --out, and the same command continues."
            ) from error


# Results as bytes and files


def write_result(folder: Path, cell: str, data: bytes) -> Path:
    """Keep the bytes of a cell's result in its own file."""
    path = folder / f"{cell}.{_files.digest(data)}.parquet"
    with cannot_write(folder):
        _files.write_atomically(path, data)
    return path


def has_valid_result(folder: Path, cell: str) -> bool:
    """Whether one of the cell's files, as they are now, can be read."""
    for path in folder.glob(f"{cell}.*.parquet"):
        try:
            read_result(path)
            return True
        except (DamagedFileError, FileNotFoundError):
            continue
    return False


def in_words(error: BaseException) -> str:
    """`ValueError: what was wrong`; some errors cannot even say that."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  its __str__ is a learner's code too
        return type(error).__name__


def failure_record(cell: Cell, error: BaseException | str) -> str:
    """Why a cell failed, as JSON."""
    trace = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""
    record = {
        "format": FORMAT, "cell": cell.id, "name": cell.name, "when": now(),
        "error": in_words(error) if isinstance(error, BaseException) else error,
        "traceback": trace, "parameters": cell.parameters, "versions": versions(), "machine": machine(),
    }  # fmt: skip
    return json.dumps(record, indent=2, ensure_ascii=False, default=repr)


def write_failure_record(folder: Path, cell: str, record: str) -> Path:
    """Keep it, in place of older ones of this cell."""
    data = record.encode(errors="backslashreplace")
    path = folder / f"{cell}.{_files.digest(data)}.error.json"
    with cannot_write(folder):
        _files.write_atomically(path, data)
        for old in folder.glob(f"{cell}.*.error.json"):
            if old != path:
                old.unlink(missing_ok=True)
    return path


def encoded(cell: Cell, result: RunResult, *, started: str, resumed: bool = False) -> bytes:
    """The Parquet file of a finished cell."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    R, C = result.regret.shape
    rows = R * C
    about = {
        "format": FORMAT, "cell": cell.id, "parameters": cell.parameters,
        "labels": {"instance": cell.instance, "adversary": cell.adversary, "learner": cell.learner},
        "learner": asdict(result.learner), "evaluate_every": result.evaluate_every, "replicas": R, "checkpoints": C,
        "seconds": result.seconds, "device": result.device, "dtype": result.dtype, "started": started,
        "finished": now(), "resumed": resumed,
        "versions": versions(), "machine": machine(),
    }  # fmt: skip
    pseudo = result.pseudo_regret

    first = pa.array(np.zeros(rows, dtype=np.int8))

    def same(value: str) -> Any:
        return pa.DictionaryArray.from_arrays(first, pa.array([value]))

    columns: dict[str, Any] = {
        "cell": same(cell.id),
        "learner": same(cell.learner),
        "instance": same(cell.instance),
        "adversary": same(cell.adversary),
        "K": pa.array(np.full(rows, cell.episodes, dtype=np.int64)),
        "seed": pa.array(np.full(rows, cell.seed, dtype=np.uint64)),
        "replica": pa.array(np.repeat(np.arange(R, dtype=np.int32), C)),
        "episodes": pa.array(np.tile(result.episodes.astype(np.int64), R)),
        "regret": pa.array(np.ravel(result.regret)),
        "pseudo_regret": pa.nulls(rows, pa.float64()) if pseudo is None else pa.array(np.ravel(pseudo)),
        "cost": pa.array(np.ravel(result.cost)),
        "comparator": pa.array(np.tile(result.comparator, R)),
        "parameters": same(cell.text),
    }
    table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(about, default=_plain).encode()})
    sink = io.BytesIO()
    # not zstd: to set it up for every column takes longer than a short cell, and curves hardly shrink
    pq.write_table(table, sink, compression="snappy", use_dictionary=_REPEATED, write_statistics=False)
    return sink.getvalue()


_REPEATED = ["cell", "learner", "instance", "adversary", "K", "seed", "replica", "episodes", "comparator", "parameters"]


def read_result(path: Path) -> StoredCell:
    """The result in this file, after checking that its bytes are those that its name speaks of."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:  # a disk with a bad block, say: the other files can be read
        raise DamagedFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    id, said = _parts(path)
    if _files.digest(data) != said:
        what = "is empty" if not data else "was altered or truncated: its bytes do not match the SHA-256 in its name"
        raise DamagedFileError(f"{path} {what}. `aggbandit run SPEC --repair` plays the cell again.")
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        about = json.loads(table.schema.metadata[METADATA])
        if about["format"] > FORMAT:  # not damaged: `--repair` must leave it alone
            raise InvalidInputError(
                f"{path} was written by a newer aggbandit ({about.get('versions', {}).get('aggbandit', '?')}, format "
                f"{about['format']}); this is {__version__}, which reads format {FORMAT}. Update aggbandit."
            )
        labels = about["labels"]
        cell = Cell(canonical_text(about["parameters"]), labels["instance"], labels["adversary"], labels["learner"])
        R, C = about["replicas"], about["checkpoints"]
        episodes = table["episodes"].to_numpy()[:C]
        pseudo = table["pseudo_regret"]
        found = StoredCell(
            cell=cell, file=path.name, metadata=about, episodes=episodes,
            regret=table["regret"].to_numpy().reshape(R, C),
            pseudo_regret=None if pseudo.null_count else pseudo.to_numpy().reshape(R, C),
            cost=table["cost"].to_numpy().reshape(R, C),
            comparator=table["comparator"].to_numpy()[:C],
        )  # fmt: skip
    except InvalidInputError:
        raise
    except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
        raise DamagedFileError(f"{path} is no result of a sweep: {error}.") from None
    if cell.id != id or about["cell"] != id:
        raise DamagedFileError(f"{path} was renamed: it holds the cell {about['cell']}.")
    return found


def _parts(path: Path) -> tuple[str, str]:
    found = _RESULT.fullmatch(path.name) or _ERROR.fullmatch(path.name)
    if found is None:
        raise DamagedFileError(f"{path} has no name of a result.")
    return found[1], found[2]


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return repr(value)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@cache
def versions() -> Mapping[str, str]:
    """What the numbers were computed with."""
    from importlib.metadata import version

    names = ("numpy", "numba", "scipy", "pyarrow")
    return {"aggbandit": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


@cache
def machine() -> Mapping[str, Any]:
    """Where the numbers were computed."""
    return {
        "name": platform.node(), "system": platform.system(), "processor": _processor(), "cores": os.cpu_count() or 1,
    }  # fmt: skip


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
