"""What every loss sequence must keep, each rule a function of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aggbandit.adversaries.base import as_losses
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.losses import LossReader

EPISODES = 23


def tables_are_losses(losses: Any, mdp: TabularMDP) -> None:
    """float64 (n, H, S, A), every entry in [0, 1]."""
    tables = as_losses(losses, mdp, EPISODES).tables(0, EPISODES)
    assert tables.dtype == np.float64, f"tables have dtype {tables.dtype}"
    assert tables.shape == (EPISODES, mdp.H, mdp.S, mdp.A), f"tables have shape {tables.shape}"
    assert ((tables >= 0) & (tables <= 1)).all(), "a loss lies outside [0, 1]"


def the_cut_leaves_no_trace(losses: Any, mdp: TabularMDP) -> None:
    """The same numbers however the episodes are cut."""
    sequence = as_losses(losses, mdp, EPISODES)
    whole = np.array(sequence.tables(0, EPISODES))
    for start, stop in ((0, 1), (3, 9), (9, 10), (EPISODES - 1, EPISODES)):
        part = sequence.tables(start, stop)
        assert np.array_equal(part, whole[start:stop]), f"tables({start}, {stop}) differ from the whole"


def segments_agree_with_tables(losses: Any, mdp: TabularMDP) -> None:
    """`segments`, where there is one, tells the same tables in order and without gaps."""
    sequence = as_losses(losses, mdp, EPISODES)
    segments = getattr(sequence, "segments", None)
    if segments is None:
        return
    at = 2
    for start, stop, table in segments(2, EPISODES):
        assert start == at, f"a segment starts at {start}, but {at} comes next"
        assert stop > start, f"the segment from {start} is empty"
        for k in range(start, stop):
            assert np.array_equal(sequence.tables(k, k + 1)[0], table), f"the segment's table differs at episode {k}"
        at = stop
    assert at == EPISODES, f"the segments end at {at}, not at {EPISODES}"


def the_mean_is_a_table(losses: Any, mdp: TabularMDP) -> None:
    """`mean_table`, where there is one, is (H, S, A) within [0, 1]."""
    mean = getattr(as_losses(losses, mdp, EPISODES), "mean_table", None)
    if mean is not None:
        assert np.shape(mean) == (mdp.H, mdp.S, mdp.A), f"mean_table has shape {np.shape(mean)}"
        assert ((mean >= 0) & (mean <= 1)).all(), "a mean loss lies outside [0, 1]"


def blocks_hold_the_tables(losses: Any, mdp: TabularMDP) -> None:
    """What the simulator reads are the tables."""
    reader = LossReader(losses, mdp, EPISODES)
    block = reader.block(0, EPISODES)
    n = block.row_n.size
    read = block.tables_mhsa[block.row_n]
    assert np.array_equal(read, reader.source.tables(0, n)), "the simulator's blocks differ from tables()"


ADVERSARY_CHECKS: dict[str, Callable[[Any, TabularMDP], None]] = {
    check.__name__: check
    for check in (
        tables_are_losses,
        the_cut_leaves_no_trace,
        segments_agree_with_tables,
        the_mean_is_a_table,
        blocks_hold_the_tables,
    )
}


def check_adversary(losses: Any, mdp: TabularMDP) -> None:
    """Run every check on a loss sequence for this instance."""
    for name, check in ADVERSARY_CHECKS.items():
        try:
            check(losses, mdp)
        except AssertionError as error:
            raise AssertionError(f"{type(losses).__name__} breaks {name}: {error}") from error
