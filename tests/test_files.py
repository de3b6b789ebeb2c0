"""aggbandit._files: atomic writing, sealed files, state trees."""

import errno
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aggbandit._files import (
    class_name,
    dump_tree,
    load_tree,
    make_folder,
    named,
    open_sealed,
    sealed,
    unsealed,
    write_atomically,
)
from aggbandit.errors import DamagedFileError, InvalidInputError


class Inner(NamedTuple):
    weights: np.ndarray
    count: int


class Outer(NamedTuple):
    inner: Inner
    history: list[Any]


CLASSES = named(Inner, Outer)


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "state"
    write_atomically(path, b"first")
    assert path.read_bytes() == b"first"
    write_atomically(str(path), b"")
    assert path.read_bytes() == b""
    assert os.listdir(tmp_path) == ["state"]  # no temporary file stays


def test_writes_through_a_symbolic_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "state")
    write_atomically(link, b"content")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "state").read_bytes() == b"content"


def test_forces_content_to_disk_before_the_name_and_the_folder_after(tmp_path, monkeypatch):
    path = tmp_path / "state"
    calls = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(handle):
        kind = "folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file"
        calls.append(("fsync", kind, os.fstat(handle).st_size if kind == "file" else None))
        real_fsync(handle)

    def replace(source, target):
        calls.append(("replace", Path(source).parent == Path(target).parent, None))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_atomically(path, b"12345")
    assert calls == [("fsync", "file", 5), ("replace", True, None), ("fsync", "folder", None)]


def test_new_folders_are_forced_to_disk_by_name(tmp_path, monkeypatch):
    forced = []
    kept = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: forced.append(os.readlink(f"/proc/self/fd/{handle}")) or kept(handle)
    )
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert sorted(forced) == [str(tmp_path), str(tmp_path / "a")]
    make_folder(tmp_path / "a" / "b")
    assert len(forced) == 2


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_a_file_system_need_not_force_folders_but_must_not_fail(tmp_path, monkeypatch, code):
    """Some network file systems answer EINVAL; EIO is a disk that lost something."""
    kept = os.fsync

    def fsync(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(code, os.strerror(code))
        kept(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            write_atomically(tmp_path / "state", b"12345")
    else:
        write_atomically(tmp_path / "state", b"12345")
        assert (tmp_path / "state").read_bytes() == b"12345"


def test_a_folder_that_is_not_there_is_told_by_the_name_asked_for(tmp_path):
    """It used to be told by the name of the temporary file."""
    path = tmp_path / "no folder" / "state"
    with pytest.raises(FileNotFoundError, match=f"'{re.escape(str(path))}'$"):
        write_atomically(path, b"content")


def test_a_folder_is_no_place_to_write_to(tmp_path):
    """It used to be told by the name of the temporary file."""
    with pytest.raises(
        IsADirectoryError, match=f"Is a folder, but a file is to be written: '{re.escape(str(tmp_path))}'$"
    ):
        write_atomically(tmp_path, b"content")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, failing):
    path = tmp_path / "state"
    write_atomically(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_a_missing_folder_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        write_atomically(tmp_path / "no-such-folder" / "state", b"new")


KILLED = """
import os, signal, sys
from aggbandit._files import write_atomically

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, sys.argv[2], die)
write_atomically(sys.argv[1], b"new" * 100_000)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL on Windows")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_half_way_the_old_file_is_whole(tmp_path, moment):
    path = tmp_path / "state"
    write_atomically(path, b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), moment])
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    write_atomically(path, b"next")  # what the killed process left behind is in nobody's way
    assert path.read_bytes() == b"next"


WRITES_ON = """
import sys
from aggbandit._files import sealed, write_atomically

print("ready", flush=True)
for i in range(1_000_000):
    write_atomically(sys.argv[1], sealed(b"%d " % i * 20_000, "state", 1))
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL on Windows")
def test_killed_at_any_moment_the_file_is_one_that_was_written(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "state"
    seen = set()
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITES_ON, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired, match="timed out"):
            writer.wait(0.02 + 0.1 * rng.random())
        writer.kill()
        writer.communicate()
        payload = open_sealed(path, "state", 1)
        number = payload.split(b" ", 1)[0]
        assert payload == number + b" " + payload[len(number) + 1 :]
        assert payload == (number + b" ") * 20_000
        seen.add(number)
    assert len(seen) > 1  # the kills did come at different moments


@given(payload=st.binary(max_size=300), version=st.integers(1, 10**6))
def test_a_sealed_payload_comes_back(tmp_path_factory, payload, version):
    path = tmp_path_factory.mktemp("sealed") / "file"
    path.write_bytes(sealed(payload, "run-result", version))
    assert open_sealed(path, "run-result", version) == payload


@pytest.fixture
def good(tmp_path) -> tuple[Path, bytes]:
    path = tmp_path / "session.agg"
    content = sealed(bytes(range(256)) * 2, "session", 3)
    path.write_bytes(content)
    return path, content


def test_every_altered_byte_is_noticed(good):
    path, content = good
    for i in range(len(content)):
        for flip in (0x01, 0x20, 0x80, 0xFF):  # 0x20 swaps the case of a letter
            altered = bytearray(content)
            altered[i] ^= flip
            path.write_bytes(altered)
            with pytest.raises(DamagedFileError, match=r"session\.agg"):
                open_sealed(path, "session", 3)


def test_every_truncation_is_noticed(good):
    path, content = good
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match=r"session\.agg (is truncated|is empty|does not begin)"):
            open_sealed(path, "session", 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", r"session\.agg is empty"),
        (lambda content: content[:-1], r"is truncated: it should hold 512 bytes of data, but has 511"),
        (lambda content: content + b"\n", r"was altered: it should hold 512 bytes of data, but has 1 more"),
        (lambda content: content[:-1] + b"!", r"was altered: its content does not match"),
        (lambda content: content.replace(b"session 3", b"session 2"), r"was altered: its content does not match"),
        (lambda content: content.replace(b" 512 ", b" 0512 "), r"does not begin with aggbandit's header line"),
        (lambda content: b"PAR1" + content, r"does not begin with aggbandit's header line"),
        (lambda content: sealed(b"", "run-result", 3), r"is a run-result file, but a session file is needed here"),
        (lambda content: sealed(b"", "session", 4), r"has format version 4 of session files, newer than version 3"),
        (lambda content: sealed(b"", "session", 2), r"has format version 2 of session files, older than version 3"),
    ],
)
def test_what_is_wrong_is_said(good, change: Callable[[bytes], bytes], message):
    path, content = good
    path.write_bytes(change(content))
    with pytest.raises(DamagedFileError, match=message):
        open_sealed(path, "session", 3)


def test_sealed_bytes_need_no_file():
    content = sealed(b"payload", "snapshot", 2)
    assert unsealed(content, "snapshot", 2) == b"payload"
    with pytest.raises(DamagedFileError, match=r"^row 7 is truncated"):
        unsealed(content[:-1], "snapshot", 2, "row 7")


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        open_sealed(tmp_path / "nowhere", "session", 1)


@pytest.mark.parametrize(("kind", "version"), [("", 1), ("two words", 1), ("x\n", 1), ("k" * 200, 1), ("state", 0)])
def test_a_header_that_could_not_be_read_is_not_written(kind, version):
    with pytest.raises(ValueError, match="no file kind and version"):
        sealed(b"", kind, version)


def same(left: Any, right: Any) -> bool:
    """Equal in type, structure and every bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray | np.generic):
        return left.dtype.str == right.dtype.str and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, float):
        return np.float64(left).tobytes() == np.float64(right).tobytes()
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], (1,)),
        (Inner(np.zeros(1), 0), (np.zeros(1), 0)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, "f4")),
        (np.zeros(2, "<f8"), np.zeros(2, ">f8")),
        (np.float64(1), 1.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_the_comparison_used_here_tells_apart(left, right):
    assert same(left, left)
    assert not same(left, right)


numeric = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(endianness="?"),
)
arrays = numeric.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), arrays, arrays.map(lambda a: a.T)
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Inner, arrays, st.integers()),
        st.builds(Outer, st.builds(Inner, arrays, st.integers()), st.lists(inner, max_size=2)),
    ),
    max_leaves=8,
)


@given(tree=trees)
@example(
    tree=[
        math.inf,
        -math.inf,
        math.nan,
        math.copysign(math.nan, -1),
        -0.0,
        5e-324,
        2**53,
        2**53 + 1,
        -(10**5000),
        "\ud800",
        "[]",
    ]
)
@example(tree=(np.float64(0.1), np.int32(-3), np.bool_(True), np.complex64(1j)))
@example(tree=[[], (), {}, [None], ["int", "0x1"], ["array"], ["named", "x"]])  # look like entries of the format
def test_trees_come_back_exactly(tree):
    assert same(load_tree(dump_tree(tree), CLASSES), tree)


def test_arrays_come_back_writable_and_apart():
    base = np.arange(6.0).reshape(2, 3)
    frozen = base[:, ::2]
    frozen.flags.writeable = False
    one, two = load_tree(dump_tree([frozen, np.broadcast_to(base, (4, 2, 3))]))
    one[0, 0] = 7.0
    assert one.flags.c_contiguous
    assert base[0, 0] == 0.0
    assert two.flags.c_contiguous
    np.testing.assert_array_equal(two[3], base)


def test_a_memory_map_is_saved_as_the_array_it_shows(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(4.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert same(load_tree(dump_tree(mapped)), np.arange(4.0))


def test_nothing_but_the_expected_classes_is_made():
    data = dump_tree(Inner(np.zeros(2), 1))
    assert class_name(Inner) == f"{Inner.__module__}:Inner"
    assert isinstance(load_tree(data, CLASSES.get), Inner)  # a function from the name does as well
    with pytest.raises(DamagedFileError, match=rf"old\.session holds no state .* needs the class {class_name(Inner)}"):
        load_tree(data, named(Outer), source="old.session")
    with pytest.raises(DamagedFileError, match="needs the class"):
        load_tree(data)


def test_changed_fields_are_told():
    class Changed(NamedTuple):
        weights: np.ndarray
        total: int

    data = dump_tree(Inner(np.zeros(2), 1))
    with pytest.raises(DamagedFileError, match=r"saved with the fields \(weights, count\), but now has \(weights, tot"):
        load_tree(data, {class_name(Inner): Changed})


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({1: 2}, r"tree has the key 1, but the keys of a saved dict must be strings"),
        ([0, {1, 2}], r"tree\[1\] is of type builtins:set, which cannot be saved"),
        (Outer(Inner(np.array(["a"]), 0), []), r"tree\.inner\.weights has dtype <U1"),
        ({"a": np.array([object()])}, r"tree\['a'\] has dtype object"),
        (np.ma.masked_array([1.0], [True]), r"tree is of type numpy.*MaskedArray, which cannot be saved"),
        (b"bytes", r"tree is of type builtins:bytes"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_place(tree, message):
    with pytest.raises(InvalidInputError, match=message):
        dump_tree(tree)


def test_bytes_that_are_no_tree_are_refused():
    whole = dump_tree({"a": np.arange(3), "b": [1.5]})
    for length in range(len(whole)):
        with pytest.raises(DamagedFileError, match="holds no state that can be read"):
            load_tree(whole[:length])
    with pytest.raises(DamagedFileError, match="something follows the last array"):
        load_tree(whole + b"\0")
    with pytest.raises(DamagedFileError, match="unknown kind of entry"):
        load_tree(whole.replace(b'"float"', b'"fleet"'))


def test_no_pickle_is_ever_opened(tmp_path):
    marker = tmp_path / "was-run"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    import io

    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    honest = dump_tree(np.zeros(1))
    structure = honest[: honest.index(b"\x93NUMPY")]
    with pytest.raises(DamagedFileError, match="allow_pickle=False"):
        load_tree(structure + buffer.getvalue())
    assert not marker.exists()
