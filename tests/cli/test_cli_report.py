"""`aggbandit report`: drawn again from what is stored."""

import pytest

SMALL = ("--episodes", 100, "--replicas", 2, "--threads", 1)


@pytest.fixture
def played(aggbandit, tmp_path):
    """A folder with two results."""
    assert aggbandit("run", *SMALL, "--out", "there", "--learner", "po-known").code == 0
    return tmp_path / "there"


def test_the_same_table_page_and_figure_without_playing(aggbandit, played, monkeypatch):
    first = {name: (played / name).read_bytes() for name in ("report.html", "regret.pdf")}
    for name in first:
        (played / name).unlink()

    def forbidden(*arguments, **keywords):
        raise AssertionError("played")

    monkeypatch.setattr("aggbandit.simulation.run.run", forbidden)
    said = aggbandit("report", played)
    assert said.code == 0
    assert {name: (played / name).read_bytes() for name in first} == first
    assert "po-known" in said.out


def test_elsewhere(aggbandit, played, tmp_path):
    before = sorted(played.iterdir())
    assert aggbandit("report", played, "--out", tmp_path / "a" / "b").code == 0
    assert (tmp_path / "a" / "b" / "report.html").exists()
    assert sorted(played.iterdir()) == before


def test_a_damaged_result_is_named_and_left_out(aggbandit, played):
    damaged = bytearray((played / "1.result").read_bytes())
    damaged[len(damaged) // 2] ^= 4
    (played / "1.result").write_bytes(damaged)
    said = aggbandit("report", played)
    assert said.code == 1
    assert said.err.startswith("aggbandit: ")
    assert "1.result was altered" in said.err
    assert "Left out:" in (played / "report.html").read_text(encoding="utf-8")
    assert "uniform" in said.out


def test_nothing_readable_is_an_error(aggbandit, played):
    for name in ("0.result", "1.result"):
        (played / name).write_bytes(b"")
    said = aggbandit("report", played)
    assert said.code == 2
    assert "can be read" in said.err.splitlines()[-1]


def test_an_unfinished_play_says_what_is_missing(aggbandit, played):
    (played / "1.result").unlink()
    said = aggbandit("report", played)
    assert said.code == 0
    assert "Not finished: po-known." in said.out


@pytest.mark.parametrize("folder, message", [("nowhere", "there is no folder 'nowhere'"), (".", "holds no results")])
def test_a_folder_without_results_is_told(aggbandit, folder, message):
    said = aggbandit("report", folder)
    assert said.code == 2
    assert message in said.err
