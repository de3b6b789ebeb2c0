"""aggbandit.adversaries.fixed."""

import numpy as np

from aggbandit import adversaries
from aggbandit.mdp import instances

MDP = instances.make("random", states=3, actions=2, horizon=2, seed=0)


def test_every_episode_has_the_same_table_without_a_copy():
    losses = adversaries.make("fixed", MDP, seed=1)
    tables = losses.tables(10**9, 10**9 + 10**6)
    assert tables.shape == (10**6, 2, 3, 2)
    assert tables.strides[0] == 0
    assert np.shares_memory(tables, losses.table)


def test_it_is_its_own_mean():
    losses = adversaries.make("fixed", MDP, seed=1)
    np.testing.assert_array_equal(losses.mean_table, losses.tables(0, 1)[0])


def test_one_segment():
    losses = adversaries.make("fixed", MDP, seed=1)
    assert [(start, stop) for start, stop, _ in losses.segments(3, 9)] == [(3, 9)]
    assert list(losses.segments(3, 3)) == []
