"""`aggbandit run` on sizes that take no time."""

import re

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.experiments.first_look import FIRST_LOOK, stored

SMALL = ("--episodes", 200, "--replicas", 3, "--threads", 1)


def cells(text):
    """The rows of the printed table, by learner; columns are parted by two blanks or more."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) == 6}


def test_the_first_look_prints_a_table_and_writes_a_page_and_a_figure(aggbandit, tmp_path):
    said = aggbandit("run", *SMALL)
    assert said.code == 0, said.err
    found = cells(said.out)
    assert found["learner"] == ["feedback", "dynamics", "regret", "of uniform's", "episodes/s"]
    assert list(found) == ["learner", "uniform", "po-known", "po-unknown"]
    assert found["uniform"][:2] == ["aggregate", "unknown"]
    assert found["po-known"][:2] == ["aggregate", "known"]
    assert found["uniform"][3] == "100 %"
    out = tmp_path / "results" / "first-look"
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (out / "regret.pdf").read_bytes().startswith(b"%PDF")
    assert "results/first-look/report.html" in said.out
    assert "results/first-look/regret.pdf" in said.out


def test_the_numbers_are_those_of_run(aggbandit):
    said = aggbandit("run", *SMALL, "--learner", "po-known", "--instance", "chain", "--adversary", "fixed", "--seed", 4)
    mdp = ab.instances.make("chain", seed=4)
    losses = ab.adversaries.make("fixed", mdp, seed=4)
    regret = ab.run(mdp, losses, "po-known", episodes=200, replicas=3, seed=4, threads=1).regret[:, -1]
    mean, band = cells(said.out)["po-known"][2].replace(" ", "").split("±")
    assert float(mean) == pytest.approx(regret.mean(), rel=5e-3)
    # Student's t at 97.5 % with two degrees of freedom, from a table
    assert float(band) == pytest.approx(4.303 * regret.std(ddof=1) / np.sqrt(3), rel=0.06)


def test_learners_with_arguments_beside_the_uniform_policy(aggbandit, tmp_path):
    said = aggbandit("run", *SMALL, "--out", "here", "--learner", "po-known:step_size=main", "--learner", "po-known")
    assert list(cells(said.out)) == ["learner", "uniform", "po-known:step_size=main", "po-known"]
    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "step_size=&#x27;main&#x27;" in page


def test_the_same_learner_twice_is_told_apart(aggbandit):
    said = aggbandit("run", *SMALL, "--learner", "uniform", "--learner", "uniform")
    assert list(cells(said.out)) == ["learner", "uniform #1", "uniform #2"]


def test_one_replica_says_that_there_is_no_band(aggbandit):
    said = aggbandit("run", "--episodes", "1e2", "--replicas", 1, "--learner", "po-known")
    assert "One replica: no bands." in said.out
    assert "±" not in said.out


OWN = '''
import signal
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import aggbandit as ab

class State(NamedTuple):
    played: int

stop_at = [None]

@dataclass(frozen=True, kw_only=True)
class Own(ab.Learner):
    """Plays at random, and can be stopped."""
    needs = ab.Needs(feedback="full", dynamics="known", losses="both")
    rate: float = 1.0  # of nothing

    def init(self, problem, draws):
        return State(0)
    def policy(self, problem, state):
        return np.full(problem.shape, 1 / problem.A)
    def update(self, problem, state, episode, draws):
        if stop_at[0] == state.played:
            signal.raise_signal(signal.SIGINT)
        return State(state.played + 1)
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module `own_cli_learner` in the current folder."""
    import sys

    (tmp_path / "own_cli_learner.py").write_text(OWN)
    yield "own_cli_learner:Own"
    sys.modules.pop("own_cli_learner", None)


def test_a_learner_of_ones_own_from_the_current_folder(aggbandit, own):
    said = aggbandit("run", *SMALL, "--learner", f"{own}:rate=0.5")
    assert said.code == 0, said.err
    row = cells(said.out)[f"{own}:rate=0.5 (tuned)"]
    assert row[:2] == ["full", "known"]
    assert row[3] == "100 %"


def test_ctrl_c_reports_what_there_is_and_the_same_command_continues(aggbandit, own, tmp_path):
    command = ("run", *SMALL, "--out", "stopped", "--learner", "po-known", "--learner", own)
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        import own_cli_learner
    finally:
        sys.path.remove(str(tmp_path))
    own_cli_learner.stop_at[0] = 40
    said = aggbandit(*command)
    assert said.code == 130
    assert list(cells(said.out)) == ["learner", "uniform", "po-known"]
    line = f"Stopped before the end; not finished: {own}. The same command continues there."
    assert line in said.out
    assert line in (tmp_path / "stopped" / "report.html").read_text(encoding="utf-8")
    assert "Traceback" not in said.err

    own_cli_learner.stop_at[0] = None
    said = aggbandit("run", *SMALL, "--out", "stopped", "--seed", "1")
    assert "another play was stopped in stopped; its command continues it with --out stopped-stopped-1" in said.err
    (tmp_path / "stopped-stopped-1").rename(tmp_path / "kept")
    said = aggbandit(*command, "--out", "kept")
    assert said.code == 0
    assert "continuing what was stopped in kept" in said.err
    assert list(cells(said.out)) == ["learner", "uniform", "po-known", own]
    assert stored(tmp_path / "kept")[0].episodes == 200


def test_ctrl_c_before_anything_is_finished(aggbandit, monkeypatch, tmp_path):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("aggbandit.cli.run.play", interrupted)
    said = aggbandit("run", *SMALL, "--out", "stopped")
    assert said.code == 130
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("aggbandit: Stopped before the end; not finished: uniform, po-known")
    assert not (tmp_path / "stopped" / "report.html").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (["--learner", "po-knwon"], "Did you mean 'po-known'?"),
        (["--learner", "po-known:step=1"], "'step'"),
        (["--learner", "po-known:step_size=fast"], "step_size must be a positive number or one of"),
        (["--instance", "randm"], "Did you mean 'random'?"),
        (["--instance", "random:states=-1"], "states must be at least 1, but is -1."),
        (["--adversary", "switching:blocks=x"], "blocks must be an integer, but is 'x'."),
        (["--episodes", "0"], "episodes must be at least 1, but is 0."),
        (["--replicas", "0"], "replicas must be at least 1, but is 0."),
        (["--threads", "0"], "threads must be at least 1, but is 0."),
    ],
)
def test_wrong_input_is_one_line_and_nothing_is_written(aggbandit, tmp_path, options, message):
    said = aggbandit("run", "--episodes", 5, "--replicas", 1, *options, "--out", "out")
    assert said.code == 2
    assert message in said.err.splitlines()[-1]
    assert "Traceback" not in said.err
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("text", ["1.5", "1e400", "nan", "x", ""])
def test_a_count_must_be_whole(aggbandit, text):
    said = aggbandit("run", "--episodes", text)
    assert said.code == 2
    assert "is no whole number" in said.err


@pytest.mark.parametrize("text, value", [("1e5", 100_000), ("1_000", 1000), (str(2**63 - 1), 2**63 - 1)])
def test_counts_may_be_written_shortly_and_stay_exact(text, value):
    from aggbandit.cli.run import _count

    assert _count(text) == value


def test_progress_is_quiet_lines_on_standard_error_without_a_terminal(aggbandit):
    said = aggbandit("run", *SMALL, "--learner", "po-known")
    lines = [line for line in said.err.splitlines() if not line.startswith("compiling")]
    assert (
        lines[0]
        == "random:states=3,actions=2,horizon=3 · switching:blocks=8,period=250 losses: 200 episodes × 3 replicas"
    )
    assert [line.split(": played in ")[0] for line in lines[1:]] == ["uniform", "po-known"]
    assert "\x1b" not in said.err + said.out


def test_progress_is_a_bar_on_a_terminal(aggbandit, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any stream for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    said = aggbandit("run", "--episodes", 3000, "--replicas", 2, "--threads", 1, "--learner", "po-known")
    assert "━" in said.err
    assert "po-known: played in" in said.err
    assert "━" not in said.out


def test_it_says_that_it_compiles_when_it_does_and_only_then(aggbandit, monkeypatch):
    from numba import njit

    from aggbandit.cli import output

    told = []
    watch = output.Compilation(lambda: told.append("compiling"))
    watch.listen()
    assert told == []
    for number in (1, 2):
        compiled = njit(lambda x: x + 1)
        assert compiled(number) == number + 1
    assert told == ["compiling"]  # once, however many functions
    watch.leave()  # a second time does no harm


def test_time_left_is_told_every_ten_seconds(monkeypatch, capsys):
    from aggbandit.cli import output
    from aggbandit.simulation.run import Progress

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    with output.Watch() as watch:
        for seconds in range(31):
            now[0] = float(seconds)
            watch.progress(
                Progress(
                    learner="x", done=10 * seconds, episodes=1000, replicas=1, seconds=float(seconds), compiling=False
                )
            )
    assert capsys.readouterr().err.splitlines() == [
        "x: 10 %, 1 min 30 s left",
        "x: 20 %, 1 min 20 s left",
        "x: 30 %, 1 min 10 s left",
    ]


def test_the_first_look_shows_learning():
    """At a fifth of its length already: the paper's learners below the uniform policy, the informed one lowest."""
    import dataclasses
    import tempfile
    from pathlib import Path

    from aggbandit.experiments.first_look import play

    plan = dataclasses.replace(FIRST_LOOK, episodes=10_000, replicas=4)
    with tempfile.TemporaryDirectory() as folder:
        uniform, known, unknown = (result.regret[:, -1].mean() for _, result in play(plan, Path(folder), threads=1))
    assert 0 < known < unknown < 0.8 * uniform
