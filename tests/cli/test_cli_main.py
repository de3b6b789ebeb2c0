"""Exit codes, help and the one clear line that an error is."""

import os
import subprocess
import sys

import pytest

from aggbandit import __version__
from aggbandit.cli import main as main_module


def test_version(aggbandit):
    assert aggbandit("--version") == (0, f"aggbandit {__version__}\n", "")


@pytest.mark.parametrize("command", ["run", "list", "show", "report"])
def test_every_command_is_in_the_help_and_has_its_own(aggbandit, command):
    assert f"\n    {command} " in aggbandit("--help").out
    said = aggbandit(command, "--help")
    assert said.code == 0
    assert said.out.startswith(f"usage: aggbandit {command}")
    assert max(map(len, said.out.splitlines())) <= 100


@pytest.mark.parametrize(
    "wrong", [["bogus"], [], ["run", "--episodes", "many"], ["list", "everything"], ["run", "--lerner", "x"]]
)
def test_a_usage_error_is_2(aggbandit, wrong):
    said = aggbandit(*wrong)
    assert said.code == 2
    assert said.out == ""
    assert "usage: aggbandit" in said.err
    assert "error:" in said.err


def test_an_error_of_the_package_is_one_line_without_traceback(aggbandit):
    said = aggbandit("show", "po-knwon")
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith(
        "aggbandit: There is no learner, instance or adversary 'po-knwon'. Did you mean 'po-known'?"
    )
    assert said.err.count("\n") == 1


def test_an_error_of_the_disk_names_the_file(aggbandit, tmp_path):
    (tmp_path / "file").write_text("")
    said = aggbandit("run", "--out", tmp_path / "file", "--episodes", 5, "--replicas", 1)
    assert said.code == 2
    assert str(tmp_path / "file") in said.err.splitlines()[-1]
    assert "Traceback" not in said.err


def test_an_error_of_our_own_making_is_not_hidden(aggbandit, monkeypatch):
    """A bug must show its traceback: only errors raised on purpose become one line."""

    def broken(arguments):
        raise ValueError("a bug")

    monkeypatch.setattr(main_module.show, "execute", broken)
    with pytest.raises(ValueError, match="a bug"):
        aggbandit("show", "random")


def test_ctrl_c_anywhere_is_130(aggbandit, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module.show, "execute", interrupted)
    try:
        said = aggbandit("show", "random")
    except KeyboardInterrupt:
        pytest.fail("the interrupt came through")
    assert said == (130, "", "\naggbandit: stopped.\n")


@pytest.mark.parametrize("command", [["list"], ["show", "random"]])  # more than the buffer of a pipe holds, and less
def test_a_reader_that_leaves_ends_it_quietly(command):
    """`aggbandit list | head -1`."""
    script = f"import sys; from aggbandit.cli.main import main; sys.exit(main({command}))"
    reader, writer = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    os.close(reader)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert err == b""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_it_prints_in_any_encoding(encoding):
    """A terminal that cannot show ± gets another sign, not a traceback."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "aggbandit.cli", "show", "po-known"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert done.stderr == b""
    assert done.returncode == 0
    assert b"po-known" in done.stdout


def test_help_is_quick():
    """No numba, no plotting for a help text."""
    script = (
        "import sys; from aggbandit.cli.main import main; main(['--help']);"
        "heavy = {'numba', 'scipy', 'matplotlib', 'altair', 'pandas', 'rich', 'pyarrow'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
