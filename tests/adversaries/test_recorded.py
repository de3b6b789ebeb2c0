"""aggbandit.adversaries.recorded: arrays in memory and on disk."""

import tracemalloc

import numpy as np
import pytest

from aggbandit.adversaries import Recorded, recorded
from aggbandit.errors import InvalidInputError

TABLES = np.random.default_rng(0).random((40, 2, 3, 2))


def spoilt(index, value):
    tables = TABLES.copy()
    tables[index] = value
    return tables


def test_tables_are_the_array():
    losses = Recorded(TABLES)
    assert losses.shape == (2, 3, 2)
    assert losses.episodes == 40
    assert losses.mean_table is None
    np.testing.assert_array_equal(losses.tables(0, 40), TABLES)
    np.testing.assert_array_equal(losses.tables(7, 9), TABLES[7:9])
    assert losses.for_episodes(3) is losses


def test_an_array_in_memory_is_copied_and_left_alone():
    tables = TABLES.copy()
    losses = Recorded(tables)
    assert tables.flags.writeable
    tables[:] = 2.0
    np.testing.assert_array_equal(losses.tables(0, 40), TABLES)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, ">f8"])
def test_other_number_types_become_float64(dtype):
    tables = (TABLES > 0.5).astype(dtype)
    found = Recorded(tables).tables(3, 5)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, tables[3:5])


def test_beyond_the_last_episode():
    with pytest.raises(InvalidInputError, match=r"^stop is 41, but these losses hold 40 episodes, counted from 0\.$"):
        Recorded(TABLES).tables(39, 41)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (spoilt((17, 1, 2, 0), 1.25), r"^tables\[17, 1, 2, 0\] is 1\.25, but every loss must lie in \[0, 1\]\. Shift"),
        (spoilt((39, 0, 0, 1), -1e-9), r"^tables\[39, 0, 0, 1\] is -1e-09, but every loss must lie"),
        (spoilt((2, 1, 0, 0), np.nan), r"^tables\[2, 1, 0, 0\] is nan, but every loss must lie"),
        (np.full((2, 1, 1, 1), 7, dtype=np.uint8), r"^tables\[0, 0, 0, 0\] is 7\.0, but every loss must lie"),
        (TABLES[0], r"^tables must have shape \(K, H, S, A\), every axis at least 1, but has \(2, 3, 2\)\.$"),
        (TABLES[:0], r"^tables must have shape \(K, H, S, A\), every axis at least 1, but has \(0, 2, 3, 2\)\.$"),
        (TABLES.astype(str), r"^tables must hold real numbers, but the dtype is <U32\.$"),
        (TABLES.astype(complex), r"^tables must hold real numbers, but the dtype is complex128\.$"),
        ([[0.0], [0.0, 1.0]], r"^tables must be an array, but its rows differ"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 1000])
def test_bad_arrays_are_refused(tables, message, chunk, monkeypatch):
    monkeypatch.setattr(recorded, "CHUNK_BYTES", chunk)  # the place is told whatever the part it was found in
    with pytest.raises(InvalidInputError, match=message):
        Recorded(tables)


@pytest.fixture
def mapped(tmp_path):
    path = tmp_path / "losses.npy"
    on_disk = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(4000, 10, 50, 4))  # 64 MB
    on_disk[:] = 0.25
    on_disk[3999] = 0.75
    on_disk.flush()
    del on_disk
    return path


def test_a_mapped_array_is_not_read_into_memory(mapped, monkeypatch):
    monkeypatch.setattr(recorded, "CHUNK_BYTES", 2**20)
    tracemalloc.start()
    try:
        array = np.load(mapped, mmap_mode="r")
        losses = Recorded(array)
        last = losses.tables(3990, 4000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4e6
    assert np.shares_memory(last, array)
    assert not last.flags.writeable
    assert (last[-1] == 0.75).all()
    assert losses.shape == (10, 50, 4)


def test_a_view_of_a_mapped_array_is_not_read_either(mapped):
    array = np.load(mapped, mmap_mode="r")
    losses = Recorded(np.asarray(array)[::2])
    assert losses.episodes == 2000
    assert np.shares_memory(losses.tables(0, 1), array)


def test_a_writable_map_is_not_written_and_hands_out_read_only_tables(mapped):
    losses = Recorded(np.load(mapped, mmap_mode="r+"))
    tables = losses.tables(0, 2)
    with pytest.raises(ValueError, match="read-only"):
        tables[0] = 0.0


def test_a_mapped_array_is_checked(mapped):
    array = np.load(mapped, mmap_mode="r+")
    array[3000, 9, 49, 3] = 1.5
    with pytest.raises(InvalidInputError, match=r"^tables\[3000, 9, 49, 3\] is 1\.5, but every loss must lie in"):
        Recorded(array)


def test_one_table_for_all_episodes_is_kept_once():
    losses = Recorded(np.broadcast_to(TABLES[0], (10**6, 2, 3, 2)))
    assert losses.episodes == 10**6
    assert losses.tables(5, 10**6).strides[0] == 0
    np.testing.assert_array_equal(losses.tables(5, 7), [TABLES[0]] * 2)
