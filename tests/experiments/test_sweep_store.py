"""The store: immutable files that tell when they were changed, readable by anybody, with any number of writers."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import aggbandit as ab
from aggbandit import _files
from aggbandit.errors import DamagedFileError, InvalidInputError, StorageError
from aggbandit.experiments import store as stores
from aggbandit.experiments.store import MARKER, Store, open_store, read_result, write_result
from aggbandit.experiments.sweep import planned
from aggbandit.experiments.task import blas_held, play_cell
from experiments_shared import environment, spec

TINY = spec(episodes="20", checkpoints="3", replicas="2")


@pytest.fixture(scope="module")
def results():
    """The bytes of every cell of TINY."""
    out = {}
    with blas_held():
        for cell in TINY.cells:
            result, _ = play_cell(cell)
            out[cell.id] = result, stores.encoded(cell, result, started=stores.now())
    return out


@pytest.fixture
def store(tmp_path, results):
    made = Store.create(tmp_path / "store")
    made.keep_spec(TINY)
    for id, (_, data) in results.items():
        made.write(id, data)
    made.refresh()
    return made


def test_what_is_read_is_what_was_computed(store, results):
    for cell in TINY.cells:
        result, _ = results[cell.id]
        found = store.read(cell.id)
        assert found.cell == cell
        for name in ("episodes", "regret", "cost", "comparator"):
            np.testing.assert_array_equal(getattr(found, name), getattr(result, name))
        assert found.pseudo_regret is None
        assert found.learner.text == result.learner.text
        assert found.seconds == result.seconds


def test_pseudo_regret_is_kept(tmp_path):
    cell = spec(episodes="20", adversary='"bernoulli"', learner='"uniform"', seed="0").cells[0]
    with blas_held():
        result, _ = play_cell(cell)
    store = Store.create(tmp_path)
    store.write(cell.id, stores.encoded(cell, result, started=stores.now()))
    np.testing.assert_array_equal(store.read(cell.id).pseudo_regret, result.pseudo_regret)


def test_a_file_is_named_after_its_cell_and_bytes(store):
    paths = list(store.folder.glob("*.parquet"))
    assert len(paths) == len(TINY.cells)
    for path in paths:
        cell, digest = re.fullmatch(r"([0-9a-f]{64})\.([0-9a-f]{64})\.parquet", path.name).groups()
        assert _files.digest(path.read_bytes()) == digest
        assert cell in {one.id for one in TINY.cells}


def test_metadata_says_what_produced_the_curve(store):
    about = store.read(TINY.cells[1].id).metadata
    assert about["parameters"] == TINY.cells[1].parameters
    assert about["versions"]["aggbandit"] == ab.__version__
    assert {"numpy", "numba", "scipy", "pyarrow", "python"} <= set(about["versions"])
    assert about["machine"]["cores"] == os.cpu_count()
    assert about["started"] <= about["finished"]
    assert about["learner"]["name"] == "po-known"


def test_every_flipped_byte_is_noticed(store):
    cell = TINY.cells[0].id
    (path,) = store.files(cell)
    whole = path.read_bytes()
    unnoticed, named = [], 0
    with path.open("r+b", buffering=0) as file:
        for i, byte in enumerate(whole):
            os.pwrite(file.fileno(), bytes([byte ^ (1 << i % 8)]), i)
            try:
                store.read(cell)
                unnoticed.append(i)
            except DamagedFileError as error:
                named += path.name in str(error)
            os.pwrite(file.fileno(), bytes([byte]), i)
    assert unnoticed == []
    assert named == len(whole)
    store.read(cell)


@pytest.mark.parametrize("length", [0, 1, 4, 100, -1, -8])
def test_a_truncated_file_is_named(store, length):
    cell = TINY.cells[0].id
    (path,) = store.files(cell)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedFileError, match=f"(?s){path.name} (was altered or truncated|is empty)"):
        store.frame()
    assert set(store.frame(skip_damaged=True)["cell"]) == {one.id for one in TINY.cells[1:]}
    (damage,) = store.damage()
    assert damage.file == path.name
    assert not damage.replaced


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(store):
    """As on a disk with a bad block; a folder in its place stands for that."""
    (path,) = store.files(TINY.cells[0].id)
    path.unlink()
    path.mkdir()
    with pytest.raises(DamagedFileError, match=f"{path.name} cannot be read: Is a directory"):
        store.frame()
    assert set(store.frame(skip_damaged=True)["cell"]) == {one.id for one in TINY.cells[1:]}
    assert [one.file for one in store.damage()] == [path.name]


def test_a_file_under_another_cells_name_is_refused(store):
    first, second = (store.files(cell.id)[0] for cell in TINY.cells[:2])
    renamed = first.with_name(f"{TINY.cells[1].id}.{first.name.split('.')[1]}.parquet")
    os.replace(first, renamed)
    second.unlink()
    store.refresh()
    with pytest.raises(DamagedFileError, match="was renamed: it holds the cell"):
        store.read(TINY.cells[1].id)


def test_bytes_that_are_no_result_are_refused(store):
    cell = TINY.cells[0].id
    store.files(cell)[0].unlink()
    write_result(store.folder, cell, b"something else")
    with pytest.raises(DamagedFileError, match="is no result of a sweep"):
        store.read(cell)


def test_of_two_valid_files_the_first_by_name_counts(store, results):
    cell = TINY.cells[0]
    result, _ = results[cell.id]
    store.write(cell.id, stores.encoded(cell, result, started="at another time"))
    store.refresh()
    paths = store.files(cell.id)
    assert len(paths) == 2
    assert paths == sorted(paths)
    assert store.read(cell.id).file == paths[0].name
    assert len(store.frame()) == len(TINY.cells) * 2 * 3  # once, not twice
    paths[0].write_bytes(b"damaged")
    assert store.read(cell.id).file == paths[1].name
    (damage,) = store.damage()
    assert damage.file == paths[0].name
    assert damage.replaced


def test_what_another_process_repairs_meanwhile_is_read(store, results, monkeypatch):
    """It removes the damaged file between our look at the folder and our read; the new one has another name."""
    cell = TINY.cells[0]
    (path,) = store.files(cell.id)
    path.write_bytes(b"damaged")

    def repaired_first(asked, kept=stores.read_result):
        if asked == path and path.exists():
            data = stores.encoded(cell, results[cell.id][0], started="at another time")
            write_result(store.folder, cell.id, data)
            path.unlink()
        return kept(asked)

    monkeypatch.setattr(stores, "read_result", repaired_first)
    np.testing.assert_array_equal(store.read(cell.id).regret, results[cell.id][0].regret)
    path.write_bytes(b"damaged")
    store.refresh()
    assert [one.file for one in store.damage()] == []
    for new in store.folder.glob(f"{cell.id}.*.parquet"):
        new.unlink()
    with pytest.raises(InvalidInputError, match=f"has no result of the cell {cell.id}"):
        store.read(cell.id)


def test_many_writers_need_no_lock(tmp_path, results):
    folder = Store.create(tmp_path).folder

    def write():
        for id, (_, data) in results.items():
            write_result(folder, id, data)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    store = open_store(folder)
    assert len(store) == len(results)
    assert store.damage() == []
    assert not list(folder.glob(".*.tmp"))


def test_frame_is_tidy(store):
    frame = store.frame()
    assert list(frame.columns[:13]) == [
        "group", "cell", "learner", "instance", "adversary", "K", "seed", "replica", "episodes", "regret",
        "pseudo_regret", "cost", "comparator",
    ]  # fmt: skip
    assert len(frame) == len(TINY.cells) * 2 * 3
    one = frame[(frame["learner"] == "po-known") & (frame["seed"] == 1) & (frame["replica"] == 1)]
    read = store.read(next(cell.id for cell in TINY.cells if cell.learner == "po-known" and cell.seed == 1))
    np.testing.assert_array_equal(one["episodes"], read.episodes)
    np.testing.assert_array_equal(one["regret"], read.regret[1])
    assert set(frame["group"]) == {"small"}
    assert "instance.seed" in frame.columns
    assert "instance.states" not in frame.columns
    assert len(store.frame(final=True)) == len(TINY.cells) * 2
    assert set(store.frame(arguments="all")["instance.states"]) == {3}
    assert "learner.confidence" not in store.frame(arguments="none").columns
    with pytest.raises(InvalidInputError, match='arguments must be "varying"'):
        store.frame(arguments="some")


def test_an_empty_store_has_an_empty_frame(tmp_path):
    frame = Store.create(tmp_path).frame()
    assert len(frame) == 0
    assert "regret" in frame.columns


SCHEMA = {
    "cell": "string", "learner": "string", "instance": "string", "adversary": "string", "K": "int64", "seed": "uint64",
    "replica": "int32", "episodes": "int64", "regret": "double", "pseudo_regret": "double", "cost": "double",
    "comparator": "double", "parameters": "string",
}  # fmt: skip


def test_the_schema_is_the_documented_one(store):
    schema = pq.read_schema(store.files(TINY.cells[0].id)[0])
    found = {field.name: str(getattr(field.type, "value_type", field.type)) for field in schema}
    assert found == SCHEMA
    text = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+)", text, re.MULTILINE)
    assert dict(rows) == SCHEMA


@pytest.mark.parametrize("reader", ["pandas", "polars", "duckdb"])
def test_others_read_it_without_this_package(store, reader, tmp_path):
    script = {
        "pandas": "import pandas, glob; f = pandas.concat(map(pandas.read_parquet, glob.glob('*.parquet')));"
        "print(len(f), repr(float(f.regret.sum())))",
        "polars": "import polars; f = polars.read_parquet('*.parquet'); print(len(f), repr(f['regret'].sum()))",
        "duckdb": "import duckdb; print(*map(repr, duckdb.sql(\"select count(*), sum(regret) from '*.parquet'\")"
        ".fetchall()[0]))",
    }[reader]
    code = f"import sys; sys.modules['aggbandit'] = None\n{script}"
    done = subprocess.run([sys.executable, "-c", code], cwd=store.folder, capture_output=True, text=True, check=True)
    count, total = done.stdout.split()
    frame = store.frame()
    assert int(count) == len(frame)
    assert float(total) == pytest.approx(frame["regret"].sum(), rel=1e-12)


def test_opening_ten_thousand_cells_reads_names_only(tmp_path, results, monkeypatch):
    """Its time is that of listing the folder and matching names; a clock would measure whoever else is at work."""
    store = Store.create(tmp_path)
    (_, data), *_ = results.values()
    digest = _files.digest(data)
    one = tmp_path / "one"
    one.write_bytes(data)
    for i in range(10_000):
        id = _files.digest(str(i).encode())
        os.link(one, store.folder / f"{id}.{digest}.parquet")
    listings = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listings.append(folder) or listdir(folder))
    touched = []
    for module, name in ((Path, "read_bytes"), (Path, "stat"), (Path, "open"), (os, "stat"), (stores, "read_result")):
        kept = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, kept=kept, **k: touched.append(str(a[0])) or kept(*a, **k))
    assert len(open_store(tmp_path)) == 10_000
    assert listings == [tmp_path]
    assert [path for path in touched if path.endswith(".parquet")] == []
    assert len(touched) < 20  # the folder and its marker


def test_a_store_of_a_newer_version_is_left_alone(store):
    marker = store.folder / MARKER
    found = json.loads(marker.read_bytes())
    marker.write_text(json.dumps({**found, "format": 2, "aggbandit": "9.0"}))
    before = sorted(path.name for path in store.folder.rglob("*"))
    for make in (Store.open, Store.create):
        with pytest.raises(InvalidInputError, match=r"written by a newer aggbandit \(9.0, format 2\).*Nothing was"):
            make(store.folder)
    assert sorted(path.name for path in store.folder.rglob("*")) == before


def test_a_result_of_a_newer_version_is_named(store, results, monkeypatch):
    cell = TINY.cells[0]
    monkeypatch.setattr(stores, "FORMAT", 2)
    data = stores.encoded(cell, results[cell.id][0], started="")
    monkeypatch.undo()
    path = write_result(store.folder, cell.id, data)
    store.refresh()
    for read in (lambda: read_result(path), store.damage, lambda: planned(TINY, store, repair=True)):
        with pytest.raises(InvalidInputError, match=r"was written by a newer aggbandit \(.*, format 2\); this is"):
            read()
    assert path.exists()  # to repair it would be to lose it


def test_a_damaged_marker_is_named(store):
    (store.folder / MARKER).write_text("{")
    with pytest.raises(DamagedFileError, match=f"{MARKER} cannot be read.*Remove it"):
        Store.open(store.folder)


def test_results_alone_are_a_store(store, tmp_path):
    (store.folder / MARKER).unlink()
    assert len(open_store(store.folder)) == len(TINY.cells)
    with pytest.raises(InvalidInputError, match="is no store"):
        open_store(tmp_path)
    with pytest.raises(InvalidInputError, match="there is no folder"):
        open_store(tmp_path / "nowhere")


def test_two_specs_in_one_folder(store):
    other = spec(name='"other"', episodes="30")
    with pytest.raises(InvalidInputError, match="holds results of the spec 'small', and this is 'other'.*--add"):
        store.keep_spec(other)
    assert [one.name for one in store.specs()] == ["small"]
    store.keep_spec(other, add=True)
    assert [one.name for one in store.specs()] == ["other", "small"]
    assert store.keep_spec(TINY) == ""  # the folder is known to be shared


def test_a_spec_that_has_changed_is_told(store):
    changed = spec(episodes="20", checkpoints="3", replicas="2", seed="[1, 2, 3]")
    assert "6 new cells, 3 no longer asked for; their results stay" in store.keep_spec(changed)
    assert len(store) == len(TINY.cells)


def test_a_damaged_spec_file_is_named(store):
    path = store.folder / "small.spec"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=r"small\.spec is truncated.*Remove it: the results do not need"):
        store.specs()


FULL = """
import resource, signal, sys
from pathlib import Path
from aggbandit.errors import StorageError
from aggbandit.experiments.store import write_result
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    write_result(Path(sys.argv[1]), "a" * 64, b"x" * 9000)
except StorageError as error:
    print(error)
"""


def test_a_file_that_does_not_fit_leaves_nothing_behind(tmp_path):
    assert resource.RLIMIT_FSIZE is not None
    assert signal.SIGXFSZ is not None
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], env=environment(), capture_output=True, text=True, check=True
    )
    assert re.search(r"cannot write into '.*': File too large\. What is finished stays", done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def refuse(path, data):
        raise OSError(30, "Read-only file system", str(path))

    store = Store.create(tmp_path)
    monkeypatch.setattr(_files, "write_atomically", refuse)
    with pytest.raises(StorageError, match="cannot write into .*: Read-only file system"):
        store.keep_spec(TINY)
    with pytest.raises(StorageError, match="cannot write into .*: Read-only file system"):
        Store.create(tmp_path / "new")
    with pytest.raises(InvalidInputError, match="is a file; a store is a folder"):
        Store.create(tmp_path / MARKER)


def test_failures_keep_their_traceback_and_go_when_the_cell_succeeds(store, results):
    cell = TINY.cells[0]
    store.files(cell.id)[0].unlink()
    try:
        raise ValueError("out of luck")
    except ValueError as error:
        record = stores.failure_record(cell, error)
    stores.write_failure_record(store.folder, cell.id, record)
    stores.write_failure_record(store.folder, cell.id, record.replace("out of luck", "out of luck again"))
    store.refresh()
    (failure,) = store.failures()
    assert failure.error == "ValueError: out of luck again"
    assert "raise ValueError" in failure.traceback
    assert failure.name == cell.name
    store.write(cell.id, results[cell.id][1])
    store.refresh()
    assert store.failures() == []
    assert not list(store.folder.glob("*.error.json"))


def test_tidy_removes_states_of_finished_cells_and_old_leftovers(store):
    done, pending = store.state_file(TINY.cells[0].id), store.state_file("f" * 64)
    done.touch()
    pending.touch()
    old, new = store.folder / f".a.{'0' * 12}.tmp", store.folder / f".b.{'1' * 12}.tmp"
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    store.tidy()
    assert [path.exists() for path in (done, pending, old, new)] == [False, True, False, True]
    assert store.under_way() == ["f" * 64]
