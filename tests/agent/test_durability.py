"""What was acknowledged survives: kills, full disks, other processes, files from elsewhere."""

import errno
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from aggbandit.agent import Agent, InUseError, NotDurableError
from aggbandit.agent import agent as agent_module
from aggbandit.agent import journal as journal_module
from aggbandit.errors import DamagedFileError, InvalidInputError, OutOfOrderError
from tools import agent_life

ROOT = Path(__file__).resolve().parents[2]


def make(path, **arguments):
    return Agent(**({"actions": ["left", "right"], "horizon": 2, "path": path, "bounds": (0, 2)} | arguments))


def play(agent, first, stop):
    for k in range(first, stop):
        with agent.episode(id=str(k)) as episode:
            episode.act("s" * (k % 50))
            episode.end(loss=1.0 + k % 2)


@pytest.mark.skipif(os.name == "nt", reason="forks and SIGKILL are POSIX")
def test_after_kills_at_200_points_the_state_is_that_of_an_undisturbed_life(fast_folder):
    command = [sys.executable, "-m", "tools.agent_life", "--kills", "200", "--dir", str(fast_folder)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 kills" in done.stdout


def test_the_comparison_of_lives_sees_a_difference(fast_folder, monkeypatch):
    monkeypatch.setattr(agent_module, "SNAPSHOT_EVERY", 10)
    one, other = fast_folder / "one.db", fast_folder / "other.db"
    agent_life.live(one, 40)
    agent_life.live(other, 40)
    assert agent_life.outcome(one) == agent_life.outcome(other)
    with Agent(path=other) as agent, agent.episode(id="one more") as episode:
        episode.act("s")
        episode.end(loss=1.0)
    assert agent_life.outcome(one) != agent_life.outcome(other)


def test_every_commit_reaches_the_disk(tmp_path):
    with make(tmp_path / "agent.db") as agent:
        for connection in (agent._journal._write, agent._journal._read):
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert agent._journal._write.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.parametrize("how", ["max_page_count", "file size limit"])
def test_a_full_disk_is_said_and_nothing_is_lost(fast_folder, how):
    path = fast_folder / "agent.db"
    with make(path) as agent:
        play(agent, 0, 10)
        if how == "max_page_count":
            pages = agent._journal._write.execute("PRAGMA page_count").fetchone()[0]
            agent._journal._write.execute(f"PRAGMA max_page_count = {pages}")
        else:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(f"{path}-wal") + 65536, limits[1]))
        try:
            with pytest.raises(NotDurableError, match="has not happened; all that was acknowledged before is safe"):
                play(agent, 10, 3000)
            done = agent.episodes
        finally:
            if how == "file size limit":
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            else:
                agent._journal._write.execute("PRAGMA max_page_count = 1000000")
        assert 10 < done < 3000
        in_memory = {name: array.tobytes() for name, array in agent._beliefs.state().items()}
        play(agent, done, done + 5)  # there is room again: it simply goes on
        play(agent, 0, done + 5)  # and all that was acknowledged is there
        assert agent.episodes == done + 5
    with make(fast_folder / "calm.db") as calm:
        play(calm, 0, done)
        assert {name: array.tobytes() for name, array in calm._beliefs.state().items()} == in_memory


def test_what_could_not_be_written_has_not_happened(fast_folder, monkeypatch):
    path = fast_folder / "agent.db"
    append = journal_module.Journal.append
    failing = False

    def sometimes(journal, statements):
        if failing:
            raise NotDurableError("no room")
        append(journal, statements)

    monkeypatch.setattr(journal_module.Journal, "append", sometimes)
    with make(path) as agent:
        play(agent, 0, 30)
        agent.episode(id="open").act("s")
        before = {name: array.tobytes() for name, array in agent._beliefs.state().items()}
        failing = True
        for asked in (
            lambda: agent.episode(id="new").act("never seen"),
            lambda: agent.episode(id="open").act("t", step=1),
            lambda: agent.score("open", loss=2.0),
            lambda: agent.freeze(),
            lambda: agent.warm_start([{"id": "old", "steps": [{"state": "s", "action": "left"}], "loss": 1}]),
        ):
            with pytest.raises(NotDurableError, match="no room"):
                asked()
            assert {name: array.tobytes() for name, array in agent._beliefs.state().items()} == before
            assert not agent.frozen
            assert agent.unscored == ["open"]
            assert agent.episode(id="open").steps == 1
            assert agent.episode(id="new").steps == 0
        failing = False
        agent.score("open", loss=1.0)  # not the 2.0 that was refused
        assert agent.episodes == 31


def test_an_interrupt_in_the_middle_of_a_write_loses_only_that_write(fast_folder, monkeypatch):
    with make(fast_folder / "agent.db") as agent:
        play(agent, 0, 5)
        commit = journal_module.Journal.append

        def interrupted(journal, statements):
            monkeypatch.setattr(journal_module.Journal, "append", commit)
            raise KeyboardInterrupt("now")

        monkeypatch.setattr(journal_module.Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt, match="now"):
            play(agent, 5, 6)
        assert agent.episodes == 5
        play(agent, 0, 8)
        assert agent.episodes == 8


def test_a_second_process_is_refused(tmp_path):
    path = tmp_path / "agent.db"
    program = f"import aggbandit.agent\naggbandit.agent.Agent(path={str(path)!r})"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with make(path):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert f"is in use by another process (pid {os.getpid()}). One agent at a time" in done.stderr
        with pytest.raises(InUseError, match="in use by another agent in this process"):
            make(path)
    make(path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_the_process_is_refused(tmp_path):
    with make(tmp_path / "agent.db") as agent:
        agent._process -= 1  # as a forked child sees it
        with pytest.raises(OutOfOrderError, match="and this is a child of it"):
            agent.episode()
        agent._process += 1


def test_another_configuration_is_refused_and_named(tmp_path):
    path = tmp_path / "agent.db"
    make(path).close()
    for arguments, message in [
        ({"horizon": 3}, r"made with horizon = 2, but is opened with 3"),
        ({"actions": ["left", "up"]}, r"made with actions = \['left', 'right'\], but is opened with \['left', 'up'\]"),
        ({"bounds": (0, 3)}, "made with bounds"),
        ({"forget": 0.1}, "made with forget = 0.0, but is opened with 0.1"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            make(path, **arguments)
    make(path).close()


def test_files_from_elsewhere_are_refused_and_left_alone(tmp_path):
    newer, foreign, text = tmp_path / "newer.db", tmp_path / "foreign.db", tmp_path / "text.db"
    make(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t(x)")
    connection.close()
    text.write_text("this is no database at all, and long enough for SQLite to look at" * 20)
    for path, message in [
        (newer, "has format version 99, newer than version 1, which this aggbandit reads"),
        (foreign, "is an SQLite file of another program"),
        (text, "is no agent's file, or it is damaged"),
    ]:
        content = path.read_bytes()
        with pytest.raises(DamagedFileError, match=message):
            make(path)
        assert path.read_bytes() == content


def test_a_disk_without_room_for_the_holder_of_the_lock_is_no_obstacle(fast_folder, monkeypatch):
    def full(handle, data, at):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with make(fast_folder / "agent.db"), pytest.raises(InUseError, match="in use by another process"):
        make(fast_folder / "agent.db")


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "missing" / "agent.db"):
        with pytest.raises(NotDurableError, match=f"{path} cannot be made or opened"):
            make(path)
    assert list(tmp_path.iterdir()) == []
    assert not tmp_path.with_name(tmp_path.name + ".lock").exists()


def test_a_new_agent_without_configuration_leaves_no_file(tmp_path):
    with pytest.raises(InvalidInputError, match="A new agent needs actions= and horizon= and bounds="):
        Agent(path=tmp_path / "agent.db")
    assert not (tmp_path / "agent.db").exists()
