"""aggbandit.kernels.philox: known answers, the plain definition, and what a random sequence must look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aggbandit.kernels import philox
from naive import philox as naive

WORDS = st.integers(0, 2**32 - 1)


def block(replica, episode, step, stream, seed):
    return tuple(int(x) for x in philox.words(replica, episode, step, stream, np.uint64(seed)))


# Random123's own file kat_vectors, lines "philox4x32 10"
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (  # the digits of π
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter, key, answer):
    assert block(*counter, key[0] | key[1] << 32) == answer
    assert naive.philox4x32(counter, key) == answer


@given(counter=st.tuples(WORDS, WORDS, WORDS, WORDS), seed=st.integers(0, 2**64 - 1))
def test_equals_the_plain_definition(counter, seed):
    key = (seed & 0xFFFFFFFF, seed >> 32)
    words = naive.philox4x32(counter, key)
    assert block(*counter, seed) == words
    u, v = philox.uniforms(*counter, np.uint64(seed))
    assert (u, v) == (naive.double(words[0], words[1]), naive.double(words[2], words[3]))


@pytest.mark.parametrize("kind", [int, np.int64, np.uint32, np.uint64])
def test_the_type_of_the_counter_does_not_matter(kind):
    counter = [kind(i) for i in (3, 1, 4, 1)]
    assert philox.uniforms(*counter, np.uint64(5)) == philox.uniforms(3, 1, 4, 1, np.uint64(5))
    assert philox.uniforms(3, 1, 4, 1, 5) == philox.uniforms(3, 1, 4, 1, np.uint64(5))


def test_doubles_are_at_least_0_and_below_1():
    assert naive.double(0, 0) == 0.0
    assert naive.double(0xFFFFFFFF, 0xFFFFFFFF) == 1.0 - 2.0**-53
    assert philox.unit.py_func(0, 0x7FF) == 0.0  # the lowest 11 bits are dropped
    assert philox.unit.py_func(0, 0x800) == 2.0**-53
    assert philox.unit.py_func(0xFFFFFFFF, 0xFFFFFFFF) == 1.0 - 2.0**-53


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
def test_fill_takes_two_doubles_a_block_in_turn(n):
    out = np.full(n + 1, -1.0)
    philox.fill(2, 3, 10, 4, np.uint64(99), out[:n])
    expected = [u for i in range((n + 1) // 2) for u in philox.uniforms(2, 3, 10 + i, 4, np.uint64(99))]
    np.testing.assert_array_equal(out[:n], expected[:n])
    assert out[n] == -1.0  # nothing is written beyond


def test_each_part_of_the_counter_and_either_half_of_the_seed_matters():
    here = block(1, 2, 3, 4, 5)
    assert block(1, 2, 3, 4, 5) == here
    others = [
        block(2, 2, 3, 4, 5),
        block(1, 3, 3, 4, 5),
        block(1, 2, 4, 4, 5),
        block(1, 2, 3, 5, 5),
        block(1, 2, 3, 4, 6),
        block(1, 2, 3, 4, 5 | 1 << 32),
        block(2, 1, 3, 4, 5),  # no symmetry between replica and episode
        block(1, 2, philox.BEFORE_FIRST_STEP, 4, 5),
    ]
    assert len({here, *others}) == len(others) + 1


AXES = ("replica", "episode", "step", "stream", "seed")
BLOCKS = 1 << 14


def along(axis: str) -> np.ndarray:
    """(BLOCKS, 4) words of consecutive blocks along one part of the counter, or of consecutive seeds."""
    words = np.empty((BLOCKS, 4), dtype=np.uint32)
    place = dict.fromkeys(AXES, 1)
    for i in range(BLOCKS):
        place[axis] = i
        words[i] = philox.words(*(place[name] for name in AXES[:-1]), np.uint64(place["seed"]))
    return words


@pytest.mark.parametrize("axis", AXES)
def test_neighbouring_blocks_look_independent(axis):
    words = along(axis)
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    # Bounds: the numbers are fixed, so nothing is left to chance.  5.5 standard deviations over at most 128 * 128
    # comparisons would be passed by a true random sequence all but once in 1600 times.
    bound = 5.5 * np.sqrt(BLOCKS) / 2
    ones = bits.reshape(BLOCKS, 128).astype(np.float64) - 0.5
    assert np.abs(ones.sum(axis=0)).max() < bound  # each bit is set in half of the blocks
    assert (
        np.abs(2 * np.einsum("ib,ic->bc", ones[:-1], ones[1:])).max() < bound
    )  # and tells nothing of the next block's
    within = np.einsum("ib,ic->bc", ones, ones)
    assert np.abs(2 * (within - np.diag(np.diag(within)))).max() < bound  # nor of the others in its block
    assert len({row.tobytes() for row in words}) == BLOCKS

    doubles = (
        words[:, 0::2].astype(np.uint64) << np.uint64(21) | words[:, 1::2].astype(np.uint64) >> np.uint64(11)
    ) / 2**53
    for column in doubles.T:
        assert stats.chisquare(np.histogram(column, bins=64, range=(0, 1))[0]).pvalue > 1e-4
    pairs = np.histogram2d(*doubles.T, bins=8, range=[(0, 1), (0, 1)])[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-4
