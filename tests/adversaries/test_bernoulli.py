"""aggbandit.adversaries.bernoulli: draws that are the definition's, whatever is drawn before."""

import numpy as np
import pytest

from aggbandit import adversaries
from aggbandit.adversaries import bernoulli
from aggbandit.mdp import instances
from naive import philox4x64

MDP = instances.make("random", states=3, actions=3, horizon=2, seed=0)


def test_the_naive_generator_passes_its_known_answers():
    # Random123, kat_vectors, philox4x64 10: all zero, and all ones
    assert philox4x64.block(0, (0, 0)) == [
        0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B,
    ]  # fmt: skip
    assert philox4x64.block(2**256 - 1, (2**64 - 1, 2**64 - 1)) == [
        0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0,
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
@pytest.mark.parametrize("start", [0, 5, 10**7])
def test_draws_equal_the_naive_ones(seed, start):
    losses = adversaries.make("bernoulli", MDP, seed=seed)
    tables = losses.tables(start, start + 3).reshape(3, -1)
    mean = losses.mean_table.reshape(-1)
    expected = [
        [philox4x64.bernoulli_loss(seed, bernoulli.STREAM, k, e, mean.size, mean[e]) for e in range(mean.size)]
        for k in range(start, start + 3)
    ]
    np.testing.assert_array_equal(tables, expected)


def test_long_blocks_are_drawn_in_chunks(monkeypatch):
    losses = adversaries.make("bernoulli", MDP, seed=1)
    whole = losses.tables(3, 40)
    monkeypatch.setattr(bernoulli, "CHUNK_ENTRIES", 100)
    np.testing.assert_array_equal(losses.tables(3, 40), whole)


def test_certain_losses_are_certain():
    table = np.zeros(MDP.shape)
    table[1] = 1.0
    tables = adversaries.make("bernoulli", MDP, table=table).tables(0, 500)
    assert (tables[:, 0] == 0.0).all()
    assert (tables[:, 1] == 1.0).all()


def test_the_least_and_the_greatest_draw(monkeypatch):
    mean = np.array([[[0.0, 2.0**-53, 1.0 - 2.0**-53, 1.0]]])
    for word, expected in ((0, [0, 1, 1, 1]), (2**64 - 1, [0, 0, 0, 1])):

        class Stuck:
            def __init__(self, key, counter):
                pass

            def random_raw(self, size, word=word):
                return np.full(size, word, dtype=np.uint64)

        monkeypatch.setattr(np.random, "Philox", Stuck)
        np.testing.assert_array_equal(bernoulli.Bernoulli(mean).tables(0, 1)[0, 0, 0], expected)


@pytest.mark.parametrize("mean", [0.0, 2.0**-53, 0.3, 0.5, 1.0 - 2.0**-53, 1.0])
def test_thresholds_cut_where_the_mean_does(mean):
    losses = bernoulli.Bernoulli(np.full((1, 1, 1), mean))
    threshold = int(losses._thresholds[0])
    assert threshold == 0 or (threshold - 1) * 2.0**-53 < mean
    assert threshold * 2.0**-53 >= mean


def test_averages_are_the_means():
    losses = adversaries.make("bernoulli", MDP, seed=2)
    tables = losses.tables(0, 40_000)
    assert set(np.unique(tables)) == {0.0, 1.0}
    # standard deviation of each average at most 0.0025; 18 entries
    np.testing.assert_allclose(tables.mean(axis=0), losses.mean_table, atol=0.01)
    flat = tables.reshape(len(tables), -1)
    correlation = np.corrcoef(np.hstack([flat[:-1], flat[1:]]).T)
    assert np.abs(correlation - np.eye(36)).max() < 0.03  # nor within an episode, nor with the next


def test_the_seed_of_the_draws():
    table = np.full(MDP.shape, 0.5)
    first = adversaries.make("bernoulli", MDP, table=table, seed=0).tables(0, 10)
    assert (first != adversaries.make("bernoulli", MDP, table=table, seed=1).tables(0, 10)).any()
