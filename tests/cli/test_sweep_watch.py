"""Progress of a sweep: what is told, by whose clock."""

import re

import pytest

from aggbandit.cli import sweep
from aggbandit.experiments.executors import Threads
from aggbandit.experiments.spec import Spec
from aggbandit.experiments.store import Store
from aggbandit.experiments.sweep import Work
from aggbandit.experiments.task import DONE, FAILED, Outcome

STUDY = Spec.parse("""
episodes = 10
instance = "random"
adversary = "switching"

[[group]]
name = "first"
learner = "uniform"
seed = { count = 10 }

[[group]]
name = "second"
learner = "po-known"
seed = { count = 4 }
""")


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes when it is told to."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(sweep, "time", made)
    return made


@pytest.fixture
def told(clock, monkeypatch, tmp_path):
    """A watch over STUDY, and the lines that it has said."""
    watch = sweep.Watch(STUDY)
    lines = []
    monkeypatch.setattr(watch, "say", lines.append)
    cells = list(STUDY.cells)
    watch.begin(Work(cells, cells, 0), Store.create(tmp_path), Threads(tmp_path, 1).slots)
    return watch, lines


def ids(name):
    (group,) = (group for group in STUDY.groups if group.name == name)
    return [cell.id for cell in group.cells]


def test_a_line_now_and_then(told, clock):
    watch, lines = told
    assert lines == ["spec: 14 cells; 14 to play, 1 at a time"]
    for cell in ids("first")[:4]:
        clock.now += 4.0
        watch.delivered(Outcome(cell, DONE))
    assert lines[1:] == ["first: 3 of 10 cells, 4 s a cell, 28 s left"]


def test_the_pace_of_a_group_is_counted_from_its_own_beginning(told, clock):
    watch, lines = told
    for cell in ids("first"):
        clock.now += 100.0
        watch.delivered(Outcome(cell, DONE))
    del lines[:]
    for cell in ids("second")[:2]:
        clock.now += 60.0
        watch.delivered(Outcome(cell, DONE))
    assert lines == ["second: 1 of 4 cells, 1 min 0 s a cell, 3 min 0 s left",
                     "second: 2 of 4 cells, 1 min 0 s a cell, 2 min 0 s left"]  # fmt: skip


def test_parts_of_long_cells_count_but_not_those_of_an_earlier_run(told, clock):
    watch, lines = told
    first, *_ = ids("second")
    watch.tell(first, 0.5)  # continued from a saved state
    for share in (0.6, 0.7, 0.8):
        clock.now += 20.0
        watch.tell(first, share)
    assert lines[-1] == "second: 0 of 4 cells, 3 min 20 s a cell, 10 min 40 s left"  # 3.2 cells are left


def test_word_that_comes_after_the_outcome_is_not_counted(told, clock):
    watch, lines = told
    first, second, *_ = ids("second")
    clock.now += 10.0
    watch.delivered(Outcome(first, DONE))
    watch.tell(first, 0.9)
    clock.now += 10.0
    watch.delivered(Outcome(second, DONE))
    assert lines[-1] == "second: 2 of 4 cells, 10 s a cell, 20 s left"


def test_nothing_is_left_at_the_end(told, clock):
    """Shares that came one by one once left a trifle of them, and a bar that waited for it."""
    watch, _ = told
    for cell in ids("second"):
        for share in (0.1, 0.3, 0.7, 0.9):
            clock.now += 1.0
            watch.tell(cell, share)
    for cell in ids("second"):
        clock.now += 1.0
        watch.delivered(Outcome(cell, DONE))
    group = watch._groups["second"]
    assert group.done + group.under_way == group.total
    assert group.pace(clock.now) == ""


def test_failures_are_told_at_once_and_nobody_waits_for_them(told, clock):
    watch, lines = told
    first, second, *_ = ids("second")
    clock.now += 5.0
    watch.tell(first, 0.5)
    watch.delivered(Outcome(first, FAILED, "ValueError: no"))
    assert lines[-1] == f"failed: {first[:12]}: ValueError: no"
    clock.now += 15.0
    watch.delivered(Outcome(second, DONE))
    assert re.fullmatch(r"second: 1 of 4 cells, 1 failed, .* left", lines[-1])
    (group,) = (group for name, group in watch._groups.items() if name == "second")
    assert (group.total, group.done, group.failed, group.under_way) == (4, 1, 1, 0.0)


def test_lines_become_rarer(told, clock):
    """A day's log is some hundred lines long."""
    watch, lines = told
    first, *_ = ids("second")
    for minute in range(24 * 60):
        clock.now += 60.0
        watch.tell(first, minute / (24 * 60))
    assert 200 < len(lines) < 500
