"""`aggbandit run SPEC`, `status`, `report`, `compare`: what is printed and which exit code it is."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from aggbandit.cli.main import main
from aggbandit.experiments.spec import Spec
from aggbandit.experiments.store import Store
from experiments_shared import SPEC, environment, finish, start

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A spec as a file, and an empty place."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    path.write_text(SPEC.replace("episodes = 300", "episodes = 40").replace('"po-unknown"', '"fixed-policy"'))
    return path


@pytest.fixture
def run(capsys, study):
    def call(*arguments):
        code = main([str(one) for one in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_run_status_report_compare(run, study):
    study.write_text(f'description = "What A < B costs"\n{study.read_text()}')
    code, out, err = run("run", study, "--out", "out", "--threads", "2")
    assert code == 0, err
    assert "small: 6 cells; 6 to play, 2 at a time" in err
    assert "po-known" in out
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "spec <code>small</code>" in page
    assert "<h1>What A &lt; B costs</h1>" in page
    assert Path("out/regret.pdf").exists()
    code, out, _ = run("status", "out", "--check")
    assert code == 0
    assert re.search(r"small +small +6 of 6 +0 +0", out)
    assert "6 cells read, 0 damaged files" in out
    code, out, _ = run("compare", "uniform", "po-known", "--in", "out")
    assert code == 0
    assert re.search(r"A +uniform\nB +po-known\n", out)
    assert "instance random:states=3,actions=2,horizon=2 · losses switching:blocks=3 · K 40" in out
    assert re.search(r" 2 +6 +(A|B) is better|undecided", out)
    code, out, _ = run("compare", "out", "out")
    assert code == 0
    assert out.count("identical") == 3
    code, _, err = run("compare", "uniform", "po-knwn", "--in", "out")
    assert code == 2
    assert "Did you mean 'po-known'?" in err
    code, _, err = run("compare", "uniform", "po-known")
    assert code == 2
    assert "'uniform' is no folder" in err
    code, out, err = run("run", study, "--out", "out", "--no-report")
    assert code == 0
    assert "6 of them there already; 0 to play" in err
    assert out == "6 of 6 cells finished, kept in out\n"


def test_dry_run_prints_cells_time_and_memory_and_plays_nothing(run, study):
    code, out, _ = run("run", study, "--out", "out", "--dry-run")
    assert code == 0
    assert not Path("out").exists()
    rows = [line for line in out.splitlines() if re.match(r"[0-9a-f]{12} ", line)]
    assert len(rows) == 6
    assert all(re.search(r"\d (ms|s) .*\d [KMG]iB", line) for line in rows), out
    assert re.search(r"6 cells, 6 to play: about \d.* on one core, about \d.* with \d+ at once; starting", out)
    assert re.search(r"Memory: [\d.]+ [MG]iB with \d+ at once in threads, of which a process takes", out)
    assert out.endswith("Results would go to out.\n")
    run("run", study, "--out", "out", "--shard", "1/2", "--no-report")
    code, out, _ = run("run", study, "--out", "out", "--dry-run")
    assert out.count(" there") == 3
    assert "6 cells, 3 to play" in out
    assert " with 7 at once" in run("run", study, "--out", "out", "--dry-run", "--workers", "7")[1]
    run("run", study, "--out", "out", "--no-report")
    out = run("run", study, "--out", "out", "--dry-run")[1]
    assert out.endswith("\n\n6 cells, 0 to play.\nResults would go to out.\n")


def test_a_dry_run_tells_what_it_tries(run, study, monkeypatch):
    monkeypatch.setattr("aggbandit.cli.sweep.QUIET_SECONDS", 0.0)
    _, out, err = run("run", study, "--out", "out", "--dry-run")
    kinds = int(re.search(r"^trying (\d+) kinds of cells, each for a moment$", err, flags=re.MULTILINE)[1])
    assert [line.partition(" of ")[0] for line in err.splitlines() if " tried; next " in line] == [
        str(done) for done in range(1, kinds)
    ]
    assert "tried" not in out


def test_a_dry_run_says_where_threads_wait_for_one_another(run, study):
    slow = '"slow_learners:Slow:seconds=0.001"'
    study.write_text(study.read_text().replace('"fixed-policy"', slow))
    asked = ("run", study, "--out", "out", "--dry-run")
    assert re.search(r"In threads up to about \d.*: learners without a compiled", run(*asked, "--threads", "4")[1])
    assert "In threads" not in run(*asked, "--workers", "4")[1]
    assert "In threads" not in run(*asked, "--threads", "1")[1]
    study.write_text(study.read_text().replace(slow, '"fixed-policy"'))
    assert "In threads" not in run(*asked, "--threads", "4")[1]


def test_a_dry_run_of_a_learner_that_fails_says_that_it_does_not_know(run, study):
    study.write_text(study.read_text().replace('"fixed-policy"', '"slow_learners:Broken"'))
    code, out, _ = run("run", study, "--out", "out", "--dry-run")
    assert code == 0
    assert re.search(r"slow_learners:Broken .* –  +–\n", out)
    assert "6 to play: for an unknown time on one core" in out


def test_a_typo_is_told_before_anything_is_made(run, study):
    study.write_text(study.read_text().replace("replicas", "replcas"))
    code, out, err = run("run", study, "--out", "out")
    assert (code, out) == (2, "")
    assert err.startswith("aggbandit: study.toml, line 4: replcas = 3: there is no such key. Did you mean 'replicas'?")
    assert not Path("out").exists()


def test_what_belongs_into_the_spec_is_not_taken_beside_it(run, study):
    assert "--learner is not taken with a SPEC" in run("run", study, "--learner", "uniform")[2]
    assert "--episodes is not taken with a SPEC" in run("run", study, "--episodes", "7")[2]
    assert "give one of them" in run("run", study, "--workers", "2", "--dask", "tcp://x")[2]
    assert "give one of them" in run("run", study, "--workers", "2", "--threads", "2")[2]
    for name, wrong in (("workers", "0"), ("threads", "-1"), ("save-every", "-1"), ("save-every", "nan")):
        code, _, err = run("run", study, f"--{name}={wrong}", "--out", "out")
        assert code == 2
        assert re.match(rf"aggbandit: --{name} must be .* but is {wrong}\.", err)
    assert not Path("out").exists()
    assert "no spec file 'scalng'" in run("run", "scalng")[2]


def test_failures_and_what_is_missing_are_in_the_exit_codes(run, study, monkeypatch):
    study.write_text(study.read_text().replace('"fixed-policy"', '"slow_learners:Broken"'))
    code, out, err = run("run", study, "--out", "out", "--shard", "1/1", "--no-report")
    assert code == 1
    assert err.count("ZeroDivisionError: no way to learn this") == 4  # when it happens, and at the end
    code, out, _ = run("status", "out")
    assert code == 1
    assert re.search(r"4 of 6 +2 +0", out)
    assert "ZeroDivisionError: no way to learn this" in out
    assert "Traceback" not in out
    assert "Traceback" in run("status", "out", "--tracebacks")[1]
    code, out, _ = run("report", "out")
    assert code == 0
    assert "Failed: 2 cells" in out
    monkeypatch.setenv("BROKEN_IS_MENDED", "1")
    assert run("run", study, "--out", "out", "--retry", "--no-report")[0] == 0
    assert run("status", "out")[0] == 0


def test_damage_is_named_left_out_and_repaired(run, study):
    run("run", study, "--out", "out", "--no-report")
    path = sorted(Path("out").glob("*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:-1])
    code, out, _ = run("status", "out", "--check")
    assert code == 1
    assert path.name in out
    code, out, _ = run("report", "out")
    assert code == 1
    assert f"Left out: {path}" in out
    code, _, err = run("run", study, "--out", "out", "--repair", "--no-report")
    assert code == 0
    assert f"damaged: {path}" in err
    assert run("status", "out", "--check")[0] == 0


def test_what_no_spec_asks_for_any_more_is_not_reported(run, study):
    run("run", study, "--out", "out", "--no-report")
    study.write_text(study.read_text().replace("seed = [0, 1]", "seed = [0]"))
    code, out, err = run("run", study, "--out", "out")
    assert code == 0
    assert "0 new cells, 3 no longer asked for; their results stay" in err
    assert "Not shown: 3 cells that no spec asks for now." in out
    assert "seeds, each with its own" not in out
    assert "3 cells more that no spec asks for now" in run("status", "out")[1]
    code, out, _ = run("compare", "uniform", "po-known", "--in", "out")
    assert re.search(r" 1 +3 +(A|B) is better|undecided", out)


def test_two_specs_and_a_changed_one(run, study):
    run("run", study, "--out", "out", "--no-report")
    other = study.with_name("other.toml")
    other.write_text(study.read_text().replace('name = "small"', 'name = "other"'))
    code, _, err = run("run", other, "--out", "out")
    assert code == 2
    assert "holds results of the spec 'small'" in err
    code, _, err = run("run", other, "--out", "out", "--add", "--no-report")
    assert code == 0
    assert "6 of them there already" in err
    study.write_text(study.read_text().replace("seed = [0, 1]", "seed = [0, 1, 2]"))
    code, _, err = run("run", study, "--out", "out", "--no-report")
    assert code == 0
    assert "has changed since it was last run here: 3 new cells, 0 no longer" in err
    assert len(Store.open("out")) == 9


def test_a_full_disk_is_told_and_nothing_is_lost(study):
    """Files of more than 3 kB do not fit: the spec does, the results do not."""
    command = f"ulimit -f 3; exec {shlex.join([*start_command('run', study, '--out', 'out', '--no-report')])}"
    done = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert re.search(r"aggbandit: cannot write into 'out': File too large\. What is finished stays", done.stderr)
    assert "0 of 6 cells finished, kept in out" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(Path("out").rglob(".*.tmp"))


def start_command(*arguments):
    import sys

    return [sys.executable, "-m", "aggbandit.cli", *map(str, arguments)]


def test_a_folder_that_cannot_be_written_is_told(run, study):
    if os.geteuid() == 0:  # whom permissions do not stop
        code, _, err = run("run", study, "--out", "/proc/aggbandit")
    else:
        Path("locked").mkdir(mode=0o500)
        code, _, err = run("run", study, "--out", "locked/out")
    assert code == 2
    assert re.match(r"aggbandit: cannot write into '.*': .*\. What is finished stays", err)


def test_status_and_report_of_nothing(run, tmp_path):
    assert "there is no folder 'nowhere'" in run("status", "nowhere")[2]
    (tmp_path / "empty").mkdir()
    code, _, err = run("status", "empty")
    assert code == 2
    assert "is no store" in err


def test_a_report_before_anything_is_finished(run, study):
    store = Store.create("out")
    store.keep_spec(Spec.load(study))
    code, _, err = run("report", "out")
    assert code == 2
    assert err == "aggbandit: there is nothing to report yet in 'out'. Not finished: 6 of 6 cells.\n"
    code, out, _ = run("status", "out")
    assert code == 1
    assert re.search(r"small +small +0 of 6 +0 +6", out)


def test_a_report_that_cannot_be_written_names_the_way_out(run, study, monkeypatch):
    run("run", study, "--out", "out", "--no-report")

    def refuse(path, data):
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr("aggbandit.reporting.page.write_page", refuse)
    code, _, err = run("report", "out")
    assert code == 2
    assert err.startswith("aggbandit: cannot write into 'out': Read-only file system.")
    assert "give another --out" in err


def test_a_cell_that_was_stopped_is_in_the_exit_code(run, study, monkeypatch):
    """By a learner that raises KeyboardInterrupt, say: nobody else has stopped."""
    monkeypatch.setenv("BROKEN_INTERRUPTS", "1")
    study.write_text(study.read_text().replace('"fixed-policy"', '"slow_learners:Broken"'))
    code, _, _ = run("run", study, "--out", "out", "--no-report")
    assert code == 1


def test_quiet_lines_where_there_is_no_terminal(study):
    process = start("run", str(study), "--out", "out", "--no-report", "--workers", "1")
    code, out, err = finish(process)
    assert code == 0, err
    assert "\x1b" not in out + err
    assert "6 of 6 cells finished" in out


def commands(page):
    """The sh blocks of a page, line by line, and its toml blocks."""
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL) for line in
             block.splitlines()]  # fmt: skip
    return lines, re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["howto/sweeps.md", "clusters.md"])
def test_the_commands_of_the_docs_run(page, run, study):
    """In order, on the page's own spec if it has one."""
    lines, specs = commands(page)
    for text in specs:
        study.write_text(text.replace("1_000, 4_000", "100, 200").replace("4_000", "200"))
    assert len(lines) >= 5
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "aggbandit"
        code, _, err = run(*arguments)
        assert code == 0, (line, err)


def test_the_python_of_the_sweeps_page_runs(run, study, capsys):
    text = (DOCS / "howto/sweeps.md").read_text(encoding="utf-8")
    study.write_text(commands("howto/sweeps.md")[1][0].replace("1_000, 4_000", "100, 4_000"))
    assert run("run", study, "--out", "results/study", "--no-report")[0] == 0
    names = {}
    for block in re.findall(r"^```python no-run\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert "po-known" in capsys.readouterr().out
    mistake = re.search(r"study.toml, line 10: adversary\[0\].blokcs = \[2, 8\]: .*'blocks'\?", text)[0]
    study.write_text(study.read_text().replace("blocks = [2, 8]", "blokcs = [2, 8]"))
    assert mistake in run("run", study, "--out", "results/study")[2]
