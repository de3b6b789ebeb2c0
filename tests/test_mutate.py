"""tools/mutate.py itself: does it tell a hole in the tests from a test that notices?"""

import sys
from pathlib import Path

import pytest

from tools import mutate
from tools.mutate import Mutation

THRICE = "def thrice(x):\n    return 3 * x  # three\n"
TESTS = "from aggbandit.thrice import thrice\n\n\ndef test_thrice():\n    assert thrice(0) == 0\n"
SHARP = TESTS.replace("thrice(0) == 0", "thrice(2) == 6")


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    root = tmp_path / "project"
    for name, text in [
        ("src/aggbandit/__init__.py", ""),
        ("src/aggbandit/thrice.py", THRICE),
        ("tests/test_blunt.py", TESTS),
        ("tests/test_sharp.py", SHARP),
        ("tests/test_red.py", SHARP.replace("6", "7")),
        ("pyproject.toml", "[tool.pytest.ini_options]\nmarkers = ['slow: takes long']\n"),
    ]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(mutate, "ROOT", root)
    monkeypatch.setattr(mutate, "COPIED", ("src", "tests", "pyproject.toml"))
    return root


def test_a_mutation_is_noticed_or_survives(project, capsys):
    sharp = Mutation("thrice.py", "3 * x", "2 * x", "test_sharp.py")
    blunt = Mutation("thrice.py", "3 * x", "2 * x", "test_blunt.py")
    broken = Mutation("thrice.py", "3 * x", "3 * ", "test_sharp.py")
    gone = Mutation("thrice.py", "4 * x", "2 * x", "test_sharp.py")
    holes = mutate.judge([sharp, blunt, broken, gone], workers=2)
    assert len(holes) == 3
    assert holes[0].startswith("thrice.py: '3 * x' -> '2 * x' (test_blunt.py): SURVIVED")
    assert "pytest could not judge it (exit code 2)" in holes[1]
    assert "does not fit: the text occurs 0 times" in holes[2]
    assert "noticed   thrice.py" in capsys.readouterr().out
    assert (project / "src/aggbandit/thrice.py").read_text() == THRICE  # the tree itself is left alone


def test_tests_that_are_red_anyway_prove_nothing(project):
    with pytest.raises(SystemExit, match=r"test_red\.py: not green without any mutation"):
        mutate.judge([Mutation("thrice.py", "3 * x", "2 * x", "test_red.py")], workers=1)


@pytest.mark.parametrize(("old", "count"), [("4 * x", 0), ("r", 4)])
def test_a_mutation_that_does_not_fit_is_refused(old, count):
    with pytest.raises(ValueError, match=f"occurs {count} times, but must occur once"):
        mutate.applied(THRICE, Mutation("thrice.py", old, "", "test_sharp.py"))


def test_every_mutation_fits_the_code_and_names_tests_that_are_there():
    for mutation in mutate.MUTATIONS:
        source = (mutate.ROOT / "src/aggbandit" / mutation.file).read_text(encoding="utf-8")
        assert mutate.applied(source, mutation) != source, mutation.name
        assert all((mutate.ROOT / "tests" / place).exists() for place in mutation.tests.split()), mutation.name
    assert len({mutation.name for mutation in mutate.MUTATIONS}) == len(mutate.MUTATIONS)


def test_a_name_that_nothing_has_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mutate", "no such file"])
    with pytest.raises(SystemExit, match="No mutation's name contains 'no such file'"):
        mutate.main()
