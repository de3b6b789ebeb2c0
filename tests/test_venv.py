"""tools/venv.py: which environments it keeps, which it builds again, and when it installs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import venv


@pytest.fixture
def project(tmp_path) -> Path:
    for name, text in [("pyproject.toml", "one"), ("src/aggbandit/_version.py", "two")]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def bare(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def test_an_environment_that_works_is_known_by_its_version(tmp_path):
    assert venv.state(bare(tmp_path / ".venv")) == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_others_do_not_work(tmp_path, monkeypatch):
    assert venv.state(tmp_path / "missing") == ""
    made = bare(tmp_path / "made")
    moved = made.rename(tmp_path / "moved")
    (moved / "pyvenv.cfg").unlink()  # its Python then reports another prefix, as in a copied folder
    assert venv.state(moved) == ""
    elsewhere = bare(tmp_path / "elsewhere")
    script = venv.python_of(elsewhere).with_name("pip")
    script.write_text(f"#!{venv.python_of(elsewhere)}\n")
    assert venv.state(elsewhere)
    script.write_text(f"#!{venv.python_of(tmp_path / 'old')}\n")
    assert venv.state(elsewhere) == ""
    broken = bare(tmp_path / "broken")
    venv.python_of(broken).unlink()
    assert venv.state(broken) == ""
    venv.python_of(broken).write_text("#!/bin/sh\necho 3.10 " + str(broken) + "\n")
    venv.python_of(broken).chmod(0o755)
    assert venv.state(broken) == ""
    monkeypatch.setattr(venv, "OLDEST", (3, 10))
    assert venv.state(broken) == "3.10"


def test_the_stamp_follows_what_an_installation_depends_on(project):
    stamp = venv.stamp(project, "3.11", ["test"])
    assert venv.stamp(project, "3.11", ["test"]) == stamp
    others = {venv.stamp(project, "3.12", ["test"]), venv.stamp(project, "3.11", ["check", "test"])}
    (project / "src/aggbandit/_version.py").write_text("three")
    others.add(venv.stamp(project, "3.11", ["test"]))
    (project / "pyproject.toml").write_text("four")
    others.add(venv.stamp(project, "3.11", ["test"]))
    assert len(others - {stamp}) == 4


def test_it_installs_once_and_again_when_the_metadata_changes(project, monkeypatch):
    ran = []
    monkeypatch.setattr(venv, "create", lambda folder: bare(folder) and None)
    real = subprocess.run

    def run(command, **options):
        if "pip" not in command:
            return real(command, **options)
        ran.append(command[-1])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    venv.install(project, ["test"])
    venv.install(project, ["test"])
    assert ran == [f"{project}[test]"]
    venv.install(project, [])
    assert ran == [f"{project}[test]", str(project)]
    (project / "pyproject.toml").write_text("changed")
    venv.install(project, ["test"])
    assert len(ran) == 3


def test_a_failed_installation_is_tried_again(project, monkeypatch):
    bare(project / ".venv")  # without pip: it cannot install
    for _ in range(2):
        with pytest.raises(SystemExit, match="pip could not install the project"):
            venv.install(project, [])
    assert not list((project / ".venv").glob("*.stamp"))


def test_an_old_python_is_told_what_is_needed(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 0))
    with pytest.raises(SystemExit, match=r"aggbandit needs Python 3\.11 or later, but .* make PYTHON="):
        venv.main()
