"""aggbandit.adversaries.switching: which table is whose episode's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import adversaries
from aggbandit.errors import InvalidInputError
from aggbandit.mdp import instances

MDP = instances.make("random", states=1, actions=2, horizon=1, seed=0)


def blocks_played(losses, start, stop):
    """The index of the table of each episode."""
    tables = losses.tables(start, stop)
    return [int(np.argmax((losses.block_tables == table).all(axis=(1, 2, 3)))) for table in tables]


def test_blocks_divide_the_episodes():
    losses = adversaries.make("switching", MDP, blocks=4, seed=0).for_episodes(12)
    assert blocks_played(losses, 0, 12) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert blocks_played(losses, 12, 16) == [0, 0, 0, 1]


@given(st.integers(1, 9), st.integers(1, 40))
def test_block_b_begins_at_the_floor_of_b_k_over_blocks(blocks, K):
    losses = adversaries.make("switching", MDP, blocks=blocks, seed=0).for_episodes(K)
    expected = [max(b for b in range(blocks) if b * K // blocks <= k) for k in range(K)]
    assert blocks_played(losses, 0, K) == expected


def test_a_period_is_kept_whatever_the_number_of_episodes():
    losses = adversaries.make("switching", MDP, blocks=3, period=2, seed=0)
    assert losses.for_episodes(1000) is losses
    assert blocks_played(losses, 0, 9) == [0, 0, 1, 1, 2, 2, 0, 0, 1]


def test_until_the_number_of_episodes_is_known_blocks_have_a_thousand():
    losses = adversaries.make("switching", MDP, blocks=2, seed=0)
    assert [(start, stop) for start, stop, _ in losses.segments(10, 4001)] == [
        (10, 1000), (1000, 2000), (2000, 3000), (3000, 4000), (4000, 4001),
    ]  # fmt: skip


def test_fitting_changes_nothing_in_the_original():
    losses = adversaries.make("switching", MDP, blocks=2, seed=0)
    fitted = losses.for_episodes(10)
    assert losses.planned is None
    assert fitted.planned == 10
    assert fitted.for_episodes(20).planned == 20
    assert fitted.block_tables is losses.block_tables
    assert "planned=10" in repr(fitted)
    assert "period=5" in repr(adversaries.make("switching", MDP, period=5))
    with pytest.raises(InvalidInputError, match=r"^episodes must be at least 1, but is 0"):
        losses.for_episodes(0)


def test_tables_differ_and_follow_the_seed():
    tables = adversaries.make("switching", MDP, blocks=8, seed=0).block_tables
    assert len({table.tobytes() for table in tables}) == 8
    np.testing.assert_array_equal(tables[:3], adversaries.make("switching", MDP, blocks=3, seed=0).block_tables)
    assert (tables != adversaries.make("switching", MDP, blocks=8, seed=1).block_tables).all()


def test_within_a_block_nothing_is_copied():
    losses = adversaries.make("switching", MDP, blocks=2, seed=0)
    assert losses.tables(0, 1000).strides[0] == 0
    assert losses.tables(0, 1001).strides[0] > 0
