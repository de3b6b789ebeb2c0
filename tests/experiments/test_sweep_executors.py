"""Whoever plays the cells, the curves are the same bits; whoever dies, nothing is lost and nothing is there twice."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from aggbandit import _files
from aggbandit.errors import InvalidInputError, StorageError
from aggbandit.experiments import task as tasks
from aggbandit.experiments.executors import ClusterLostError, DaskCluster, Processes, Threads
from aggbandit.experiments.store import Store
from aggbandit.experiments.sweep import Shard, planned, play
from aggbandit.experiments.task import NO_ROOM, blas_held, play_cell
from aggbandit.simulation.run import STATE_FORMAT, STATE_KIND
from aggbandit.simulation.state_trees import classes_of
from experiments_shared import (
    assert_same_curves,
    curves,
    environment,
    finish,
    in_session,
    kill_group,
    spec,
    start,
    wait_until,
)

MIXED = spec(learner='["uniform", "po-known", "po-unknown", "slow_learners:Slow:seconds=0"]', episodes="60")
LONG = spec(learner='["slow_learners:Slow:seconds=0.004"]', episodes="300", replicas="1", seed="[0, 1]")


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """MIXED and LONG, each played by one thread, undisturbed."""
    folders = {}
    for name, study in (("mixed", MIXED), ("long", LONG)):
        folders[name] = tmp_path_factory.mktemp(name)
        swept(study, folders[name], lambda folder, count: Threads(folder, 1, threads=1))
    return folders


def swept(study, folder, executor, **options):
    store = Store.create(folder)
    store.keep_spec(study)
    work = planned(study, store, **options)
    return play(work, store, executor(store.folder, len(work.todo)))


class Cluster:
    """A scheduler and two worker processes on loopback addresses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = environment()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(exist_ok=True)
        self.file = folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                   "--scheduler-file", str(self.file))  # fmt: skip
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]
        for name in ("one", "two"):
            self.start_worker(name)

    def start_worker(self, name: str) -> None:
        self.start("worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--no-nanny",
                   "--name", name, "--death-timeout", "30")  # fmt: skip

    def start(self, kind: str, *arguments: str) -> None:
        name = arguments[-3] if kind == "worker" else kind
        self.processes[name] = subprocess.Popen(
            [sys.executable, "-m", "dask", kind, *arguments], env=self.environment, cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=(self.folder / f"{name}.log").open("ab"),
        )  # fmt: skip

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


def by_threads(folder, request):
    swept(MIXED, folder, lambda folder, count: Threads(folder, count, threads=2))


def by_processes(folder, request):
    swept(MIXED, folder, lambda folder, count: Processes(folder, 2))


def by_shards(folder, request):
    for i in range(4):
        swept(MIXED, folder, lambda folder, count: Threads(folder, 1, threads=1), shard=Shard(i + 1, 4))


def by_dask(folder, request):
    address = request.getfixturevalue("cluster").address
    swept(MIXED, folder, lambda folder, count: DaskCluster(folder, address))


EXECUTORS = [by_threads, by_processes, by_shards, by_dask]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")  # of distributed
@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda one: one.__name__)
def test_the_curves_are_the_same_bits(executor, calm, tmp_path, request):
    executor(tmp_path, request)
    assert_same_curves(tmp_path, calm["mixed"])
    assert len(list(tmp_path.glob("*.parquet"))) == len(MIXED.cells)
    assert not Store.open(tmp_path).failed


def test_shards_are_a_partition():
    parts = [Shard(i + 1, 4).of(MIXED) for i in range(4)]
    assert sorted(cell.id for part in parts for cell in part) == sorted(cell.id for cell in MIXED.cells)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for text in ("0/4", "5/4", "1", "a/b", "1/0"):
        with pytest.raises(InvalidInputError, match="--shard must be i/n"):
            Shard.parse(text)


def test_threads_left_over_share_replicas(calm, tmp_path):
    executor = Threads(tmp_path, 1, threads=3)
    assert (executor.slots, executor._threads_each) == (1, 3)
    swept(MIXED, tmp_path, lambda folder, count: executor, shard=Shard(1, len(MIXED.cells)))
    (one,) = curves(tmp_path).values()
    assert (one.regret == curves(calm["mixed"])[one.cell.id].regret).all()


# What is there is not played again


def test_what_is_there_is_not_played_again(calm, tmp_path):
    swept(MIXED, tmp_path, Threads, shard=Shard(1, 2))
    before = {path.name for path in tmp_path.glob("*.parquet")}
    work = swept(MIXED, tmp_path, Threads)
    assert (work.there, work.done) == (len(before), len(MIXED.cells) - len(before))
    assert before < {path.name for path in tmp_path.glob("*.parquet")}


def test_what_another_writes_meanwhile_is_not_played_again(calm, tmp_path, monkeypatch):
    monkeypatch.setattr("aggbandit.experiments.sweep.LOOK_SECONDS", 0.0)
    store = Store.create(tmp_path)
    work = planned(MIXED, store)
    for one in calm["mixed"].glob("*.parquet"):
        os.link(one, tmp_path / one.name)
    began = []
    monkeypatch.setattr(tasks, "play_cell", lambda cell, **options: began.append(cell))
    play(work, store, Threads(tmp_path, 2))
    assert work.done == len(MIXED.cells)
    assert began == []


@pytest.mark.parametrize("damage", [b"", b"PAR1", None])
def test_damage_is_played_again_on_request(calm, tmp_path, damage):
    swept(MIXED, tmp_path, Threads)
    path = sorted(tmp_path.glob("*.parquet"))[3]
    whole = path.read_bytes()
    path.write_bytes(damage if damage is not None else whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert swept(MIXED, tmp_path, Threads).done == 0  # nobody asked
    work = swept(MIXED, tmp_path, Threads, repair=True)
    assert [one.file for one in work.damage] == [path.name]
    assert work.done == 1
    assert_same_curves(tmp_path, calm["mixed"])
    assert len(list(tmp_path.glob("*.parquet"))) == len(MIXED.cells)


def test_a_damaged_file_stays_where_its_cell_cannot_be_played_again(tmp_path, monkeypatch):
    study = spec(learner='"slow_learners:Broken"', episodes="20")
    monkeypatch.setenv("BROKEN_IS_MENDED", "1")
    swept(study, tmp_path, Threads)
    first, second = sorted(tmp_path.glob("*.parquet"))
    for path in (first, second):
        path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.delenv("BROKEN_IS_MENDED")
    assert len(swept(study, tmp_path, Threads, repair=True).failed) == 2
    assert sorted(tmp_path.glob("*.parquet")) == [first, second]


# Failures


def test_a_cell_that_fails_keeps_its_traceback_and_the_rest_goes_on(tmp_path, monkeypatch):
    study = spec(learner='["slow_learners:Broken", "uniform"]', episodes="20")
    work = swept(study, tmp_path, Threads)
    assert (work.done, len(work.failed)) == (2, 2)
    failures = Store.open(tmp_path).failures()
    assert [one.error for one in failures] == ["ZeroDivisionError: no way to learn this"] * 2
    assert all("slow_learners.py" in one.traceback for one in failures)
    again = swept(study, tmp_path, Threads)
    assert (again.done, len(again.todo), len(again.failed)) == (0, 0, 2)
    monkeypatch.setenv("BROKEN_IS_MENDED", "1")
    assert swept(study, tmp_path, Threads, retry=True).done == 2
    assert Store.open(tmp_path).failures() == []


@pytest.mark.parametrize("executor", [Threads, Processes], ids=lambda one: one.__name__)
def test_a_learner_may_raise_anything(tmp_path, executor):
    study = spec(learner='["slow_learners:Panicking", "uniform"]', episodes="20", seed="0")
    work = swept(study, tmp_path, executor)
    assert work.done == 1
    assert list(work.failed.values()) == ["Panic"]
    (failure,) = Store.open(tmp_path).failures()
    assert "raise Panic" in failure.traceback


def test_whatever_goes_wrong_with_writing_is_told(tmp_path, monkeypatch):
    def broken(outcome, folder):
        raise MemoryError("no room for it")

    monkeypatch.setattr("aggbandit.experiments.executors.keep", broken)
    with pytest.raises(StorageError, match="MemoryError: no room for it"):
        swept(MIXED, tmp_path, lambda folder, count: Threads(folder, 1, threads=1))


def test_a_worker_whose_driver_dies_within_a_line_ends(tmp_path):
    worker = Processes(tmp_path, 1)._start()
    assert b"ready" in worker.stdout.readline()
    out, _ = worker.communicate(b'{"cell": ["', timeout=60)
    assert (worker.returncode, out) == (0, b"")


def test_a_cell_that_kills_its_worker_fails_alone(tmp_path, monkeypatch):
    study = spec(learner='["slow_learners:Deadly", "uniform"]', episodes="20", seed="0")
    started = []
    kept = Processes._start
    monkeypatch.setattr(Processes, "_start", lambda self: started.append(kept(self)) or started[-1])
    work = swept(study, tmp_path, lambda folder, count: Processes(folder, 1))
    assert len(started) in (3, 4)  # the third death is the last; the other cell may need one more
    assert work.done == 1
    (message,) = work.failed.values()
    assert message == "its worker process died 3 times, the last time of SIGKILL; perhaps memory ran out"
    (failure,) = Store.open(tmp_path).failures()
    assert failure.error == message


def test_a_disk_that_is_full_stops_the_sweep_and_loses_nothing(calm, tmp_path, monkeypatch):
    kept = tasks.stores.write_result

    def full(folder, cell, data):
        if len(list(folder.glob("*.parquet"))) >= 2:
            raise StorageError("cannot write: No space left on device")
        return kept(folder, cell, data)

    monkeypatch.setattr(tasks.stores, "write_result", full)
    with pytest.raises(StorageError, match="No space left"):
        swept(MIXED, tmp_path, lambda folder, count: Threads(folder, 1, threads=1))
    there = len(Store.open(tmp_path))
    assert 2 <= there < len(MIXED.cells)
    monkeypatch.undo()
    assert swept(MIXED, tmp_path, Threads).there == there
    assert_same_curves(tmp_path, calm["mixed"])


def test_a_full_disk_is_not_tried_again_with_every_cell(tmp_path, monkeypatch):
    study = spec(learner='"slow_learners:Slow:seconds=0.004"', episodes="30", replicas="1", seed="{ count = 12 }")
    began = []
    kept = tasks.play_cell
    monkeypatch.setattr(tasks, "play_cell", lambda cell, **options: began.append(cell) or kept(cell, **options))

    def full(folder, cell, data):
        raise StorageError("cannot write: No space left on device")

    monkeypatch.setattr(tasks.stores, "write_result", full)
    with pytest.raises(StorageError, match="No space left"):
        swept(study, tmp_path, lambda folder, count: Threads(folder, 1, threads=1))
    assert len(began) < 8


def test_no_room_for_a_state_is_told(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device", str(path))

    (cell, _) = LONG.cells
    store = Store.create(tmp_path)
    monkeypatch.setattr("aggbandit._files.write_atomically", full)
    outcome = tasks.carry_out(cell, store.folder, save_seconds=0.05)
    assert outcome.kind == NO_ROOM
    assert "No space left on device. What is finished stays" in outcome.message


# Long cells


def test_a_long_cell_continues_bit_for_bit(calm, tmp_path):
    (cell, _) = LONG.cells
    state = tmp_path / "state"
    clock = time.monotonic()
    with pytest.raises(tasks.Stopped, match="between two blocks"):
        play_cell(cell, state_file=state, stop=lambda: time.monotonic() - clock > 0.6)
    assert state.exists()
    result, resumed = play_cell(cell, state_file=state)
    assert resumed
    assert (result.regret == curves(calm["long"])[cell.id].regret).all()


def test_a_state_that_cannot_be_used_is_played_from_the_start(calm, tmp_path):
    cell, other = LONG.cells
    state = tmp_path / "state"
    clock = time.monotonic()
    with pytest.raises(tasks.Stopped, match="between two blocks"):
        play_cell(other, state_file=state, stop=lambda: time.monotonic() - clock > 0.4)
    result, resumed = play_cell(cell, state_file=state)
    assert not resumed
    assert (result.regret == curves(calm["long"])[cell.id].regret).all()
    state.write_bytes(b"damaged")
    assert not play_cell(cell, state_file=state)[1]


def test_a_state_that_another_process_removes_meanwhile(calm, tmp_path, monkeypatch):
    """It was through with the cell."""
    cell, _ = LONG.cells
    store = Store.create(tmp_path)
    store.state_file(cell.id).touch()

    def load(self, path):
        path.unlink()
        path.read_bytes()

    monkeypatch.setattr("aggbandit.simulation.run.Simulation.load", load)
    outcome = tasks.carry_out(cell, store.folder)
    assert outcome.kind == tasks.DONE, outcome.message


def test_a_state_that_fails_half_way_leaves_no_trace(calm, tmp_path):
    """As one of another version would: what it said before it failed must not be believed."""
    cell, _ = LONG.cells
    state = tmp_path / "state"
    simulation = cell.simulation()
    with blas_held():
        simulation._play_block(simulation.reader.block(0, 1), None)
    simulation.save(state)
    tree = _files.load_tree(_files.open_sealed(state, STATE_KIND, STATE_FORMAT), classes_of(simulation.learner))
    tree["engines"] = [{} for _ in tree["engines"]]
    _files.write_atomically(state, _files.sealed(_files.dump_tree(tree), STATE_KIND, STATE_FORMAT))
    result, resumed = play_cell(cell, state_file=state)
    assert not resumed
    assert (result.regret == curves(calm["long"])[cell.id].regret).all()


# Deaths


def run_long(folder: Path, *more: str) -> subprocess.Popen[str]:
    file = folder.with_suffix(".toml")
    file.write_text(LONG.text)
    return start("run", str(file), "--out", str(folder), "--save-every", "0.1", "--no-report", *more)


@pytest.mark.parametrize("more", [("--threads", "2"), ("--workers", "2")], ids=["threads", "workers"])
def test_a_killed_driver_continues(calm, tmp_path, more):
    """Killed as soon as states are there: the next driver takes them up."""
    folder = tmp_path / "out"
    process = run_long(folder, *more)
    wait_until(lambda: list((folder / "states").glob("*.state")))
    time.sleep(random.Random(0).random() / 2)
    process.kill()  # the driver alone: worker processes notice by themselves
    process.communicate()
    wait_until(lambda: not in_session(process))
    swept(LONG, folder, Threads)
    assert_same_curves(folder, calm["long"])
    assert any(one.metadata["resumed"] for one in curves(folder).values())
    assert not list((folder / "states").glob("*.state"))


def test_a_killed_worker_costs_its_cell_only(calm, tmp_path, monkeypatch):
    store = Store.create(tmp_path)
    executor = Processes(store.folder, 2, save_seconds=0.1)
    started = []
    kept = executor._start
    monkeypatch.setattr(executor, "_start", lambda: started.append(kept()) or started[-1])

    def kill() -> None:
        wait_until(lambda: list((tmp_path / "states").glob("*.state")))
        started[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    work = play(planned(LONG, store), store, executor)
    killer.join()
    assert len(started) == 3
    assert (work.done, work.failed) == (2, {})
    assert_same_curves(tmp_path, calm["long"])


@pytest.mark.parametrize("more", [("--threads", "2"), ("--workers", "2")], ids=["threads", "workers"])
def test_ctrl_c_finishes_cleanly(calm, tmp_path, monkeypatch, more):
    """States are saved because it stops: it would be a minute until the first one otherwise."""
    folder, mark = tmp_path / "out", tmp_path / "mark"
    monkeypatch.setenv("SLOW_MARK", str(mark))
    patient = spec(learner='"slow_learners:Slow:seconds=0.015"', episodes="300", replicas="1", seed="[0, 1]")
    file = tmp_path / "patient.toml"
    file.write_text(patient.text)
    process = start("run", str(file), "--out", str(folder), "--no-report", *more)
    wait_until(mark.exists)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    code, _, errors = finish(process, timeout=30)
    assert code == 130, errors
    assert "Traceback" not in errors
    assert "0 of 2 cells finished, kept in" in errors
    assert list((folder / "states").glob("*.state"))
    assert not list(folder.rglob(".*.tmp"))
    monkeypatch.delenv("SLOW_MARK")
    swept(patient, folder, Threads)
    found, wanted = curves(folder).values(), curves(calm["long"]).values()  # how long it sleeps changes no number
    assert any(one.metadata["resumed"] for one in found)
    for one, other in zip(*(sorted(cells, key=lambda one: one.cell.seed) for cells in (found, wanted)), strict=True):
        assert (one.regret == other.regret).all()


# Dask


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_workers_without_the_folder_send_their_results(cluster, calm, tmp_path, monkeypatch):
    """The folder's name means nothing to a worker that does not see the probe in it."""
    made = DaskCluster(tmp_path, cluster.address)
    kept = made._client.submit
    somewhere = str(tmp_path / "mounted-elsewhere")

    def submit(function, cell, folder, *rest, **options):
        return kept(function, cell, somewhere, *rest, **options)

    monkeypatch.setattr(made._client, "submit", submit)
    swept(MIXED, tmp_path, lambda folder, count: made)
    assert_same_curves(tmp_path, calm["mixed"])


class Gone:
    """What is left of a result whose worker died before anybody fetched it."""

    def __init__(self, status):
        self.status = status

    def result(self, timeout):
        raise TimeoutError

    def exception(self, timeout):
        from distributed.scheduler import KilledWorker

        return KilledWorker("task", None, 3)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_results_that_died_with_their_worker(cluster, tmp_path, monkeypatch):
    """Another plays the cell, unless its file is there; only where the scheduler is gone does the driver stop."""
    made = DaskCluster(tmp_path, cluster.address)
    cell = MIXED.cells[0]
    for status in ("finished", "lost", "pending"):
        assert made._outcome(cell, Gone(status)) is None
    killed = made._outcome(cell, Gone("error"))
    assert (killed.kind, killed.message) == (tasks.FAILED, "its worker died 4 times; perhaps memory ran out")
    with pytest.raises(ClusterLostError, match="is gone. What is finished stays"):
        made._outcome(cell, Gone("cancelled"))
    again = set()
    kept = made._outcome

    def lost_once(cell, future):
        if cell.id not in again:
            again.add(cell.id)
            return None
        return kept(cell, future)

    monkeypatch.setattr(made, "_outcome", lost_once)
    assert swept(MIXED, tmp_path, lambda folder, count: made).done == len(MIXED.cells)
    assert kept(cell, Gone("lost")).kind == tasks.DONE


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_what_a_killed_driver_leaves_for_the_workers_to_see_is_tidied(cluster, tmp_path, monkeypatch):
    left = []
    kept = DaskCluster._run

    def run(self, *arguments):
        left.extend((tmp_path / "states").iterdir())
        monkeypatch.setattr(Path, "unlink", lambda path, **options: None)  # as if it were killed
        kept(self, *arguments)

    monkeypatch.setattr(DaskCluster, "_run", run)
    swept(
        spec(learner='"uniform"', episodes="20", seed="0"), tmp_path, lambda f, count: DaskCluster(f, cluster.address)
    )
    monkeypatch.undo()
    (probe,) = left
    os.utime(probe, (1, 1))
    Store.open(tmp_path).tidy()
    assert not probe.exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_failure_on_a_cluster_keeps_its_traceback(cluster, tmp_path):
    study = spec(learner='["slow_learners:Broken", "uniform"]', episodes="20", seed="0")
    work = swept(study, tmp_path, lambda folder, count: DaskCluster(folder, cluster.address))
    assert (work.done, len(work.failed)) == (1, 1)
    (failure,) = Store.open(tmp_path).failures()
    assert "no way to learn this" in failure.traceback


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_no_scheduler_is_told(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("aggbandit.experiments.executors.CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterLostError, match=r"no Dask scheduler at 'tcp://127.0.0.1:9'.*dask scheduler"):
        DaskCluster(tmp_path, "tcp://127.0.0.1:9")


@pytest.mark.parametrize("address", ["scheduler.json", "tcp://", "nonsense://127.0.0.1:9"])
def test_what_is_no_address_is_told_without_a_client(tmp_path, monkeypatch, address):
    """One that fails to begin takes forty seconds to end, with a traceback."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", None)
    with pytest.raises(
        ClusterLostError, match=rf"no Dask scheduler at '{address}' \(.*give the address that it prints"
    ):
        DaskCluster(tmp_path, address)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_that_loses_processes(calm, tmp_path):
    """A worker: the other goes on with its cell.  Then the scheduler: the driver stops, and what there is stays."""
    pytest.importorskip("distributed")
    folder = tmp_path / "out"
    made = Cluster(tmp_path / "cluster")
    try:
        process = run_long(folder, "--dask", made.address)
        try:
            wait_until(lambda: list((folder / "states").glob("*.state")))
            made.processes["one"].kill()
            wait_until(lambda: list(folder.glob("*.parquet")))
            made.processes["scheduler"].kill()
            code, _, errors = finish(process)
        finally:
            kill_group(process)
    finally:
        made.close()
    assert code == 2, errors
    assert "is gone. What is finished stays" in errors
    before = set(folder.glob("*.parquet"))
    swept(LONG, folder, Threads)
    assert before <= set(folder.glob("*.parquet"))
    assert_same_curves(folder, calm["long"])
