"""Files that are whole or absent, and that notice when they were changed.

    write_atomically   a file is replaced in one step: after a crash the old or the new content is there, never a part
    sealed             a payload under one header line with its kind, format version, length and SHA-256
    dump_tree          states (NamedTuples, tuples, lists, dicts, arrays, numbers, strings) as bytes, exactly

Nothing is pickled, so opening a file of unknown origin runs none of its content.
"""

import errno
import hashlib
import io
import json
import os
import re
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from aggbandit._arrays import AnyArray
from aggbandit.errors import DamagedFileError, InvalidInputError

AnyPath: TypeAlias = str | os.PathLike[str]
Tree: TypeAlias = Any  # nested NamedTuples, tuples, lists, dicts with str keys, arrays, numbers, strings, None
NamedTuples: TypeAlias = Mapping[str, type] | Callable[[str], type]

_HEADER = re.compile(rb"aggbandit-file 1 ([a-z][a-z0-9-]*) ([1-9][0-9]*) (0|[1-9][0-9]*) ([0-9a-f]{64})\n")
_LONGEST_HEADER = 256
_TREE_HEAD = struct.Struct("<Q")  # bytes of the JSON part
_ARRAY_KINDS = "biufc"  # bool, signed, unsigned, float, complex
COPY = "Restore it from a copy."
_NO_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)  # what file systems say that keep folders in their own way
_SAFE_INTEGER = 2**53  # beyond it some JSON readers round


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: AnyPath, data: bytes) -> None:
    """Replace the file's content in one step that survives a crash at any moment.

    The bytes go to a temporary file in the same folder, are forced to disk, and take the file's name; then the
    folder is forced to disk too.  Where anything fails, the old file stays as it was and the temporary one goes.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder, but a file is to be written", os.fspath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        error.filename = os.fspath(target)  # what the caller asked for
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _force_folder(target.parent)


def make_folder(path: AnyPath) -> None:
    """Make the folder, and those above it, where they are missing; their names are forced to disk like a file's."""
    missing = []
    folder = Path(os.path.realpath(path))
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    Path(path).mkdir(parents=True, exist_ok=True)
    for made in missing:
        with suppress(PermissionError):  # a folder may be one to write into, not to read
            _force_folder(made.parent)


def _force_folder(folder: Path) -> None:
    """Force the names in the folder to disk."""
    if os.name == "nt":  # Windows cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def sealed(payload: bytes, kind: str, version: int) -> bytes:
    """The content of a file of this kind and format version: one header line, then the payload.

    The digest covers kind, version and length as well, so that no byte of the file can change unnoticed.
    """
    return _header(payload, kind, version) + payload


def open_sealed(path: AnyPath, kind: str, version: int, way_out: str = COPY) -> bytes:
    """The payload of a sealed file, after checking all that its header says.

    Raises DamagedFileError, naming the file and what is wrong, where it is truncated, altered, of another kind or
    of another format version.
    """
    return unsealed(Path(path).read_bytes(), kind, version, os.fspath(path), way_out)


def unsealed(content: bytes, kind: str, version: int, name: str = "the data", way_out: str = COPY) -> bytes:
    """The payload of sealed bytes, checked like a file's; `name` says in error messages where they come from."""
    match = _HEADER.match(content[:_LONGEST_HEADER])
    if match is None:
        missing = "is empty" if not content else "does not begin with aggbandit's header line"
        raise DamagedFileError(
            f"{name} {missing}: it is no aggbandit {kind} file, or its beginning was altered. {way_out}"
        )
    payload = content[match.end() :]
    found_kind, found_version, length = match[1].decode(), int(match[2]), int(match[3])
    if len(payload) < length:
        raise DamagedFileError(
            f"{name} is truncated: it should hold {length} bytes of data, but has {len(payload)}. {way_out}"
        )
    if len(payload) > length:
        raise DamagedFileError(
            f"{name} was altered: it should hold {length} bytes of data, but has {len(payload) - length} more. "
            f"{way_out}"
        )
    if match[0] != _header(payload, found_kind, found_version):
        raise DamagedFileError(f"{name} was altered: its content does not match the SHA-256 in its header. {way_out}")
    if found_kind != kind:
        raise DamagedFileError(f"{name} is a {found_kind} file, but a {kind} file is needed here.")
    if found_version != version:
        age = "newer" if found_version > version else "older"
        raise DamagedFileError(
            f"{name} has format version {found_version} of {kind} files, {age} than version {version}, which this "
            "aggbandit reads. Open it with the aggbandit that wrote it."
        )
    return payload


def _header(payload: bytes, kind: str, version: int) -> bytes:
    said = f"aggbandit-file 1 {kind} {version} {len(payload)} "
    header = f"{said}{digest(said.encode() + payload)}\n".encode()
    if not _HEADER.fullmatch(header) or len(header) > _LONGEST_HEADER:
        raise ValueError(f"no file kind and version: {kind!r}, {version!r}")
    return header


def class_name(cls: type) -> str:
    """`module:qualname`, the name under which a NamedTuple is stored."""
    return f"{cls.__module__}:{cls.__qualname__}"


def named(*classes: type) -> dict[str, type]:
    """The mapping that lets `load_tree` find these NamedTuples again."""
    return {class_name(cls): cls for cls in classes}


def dump_tree(tree: Tree) -> bytes:
    """A state tree as bytes, from which `load_tree` gives it back exactly.

    Floats keep every bit (-0.0, inf and NaN too), integers any size, arrays their dtype with its byte order, their
    shape and, where they have one, their C or Fortran order.  Two places that hold the same array object come back
    as two arrays.
    """
    arrays: list[bytes] = []
    structure = json.dumps(_encode(tree, "tree", arrays), separators=(",", ":")).encode()
    return b"".join([_TREE_HEAD.pack(len(structure)), structure, *arrays])


def load_tree(data: bytes, namedtuples: NamedTuples | None = None, *, source: str = "the data") -> Tree:
    """The tree that `dump_tree` turned into these bytes; its arrays are fresh and writable.

    A NamedTuple is made only from a class that `namedtuples`, a mapping or a function from "module:qualname", gives
    for its name: nothing is imported because a file says so.  `source` names the file in error messages.
    """
    with _damage(source):
        (length,) = _TREE_HEAD.unpack_from(data)
        arrays_from = _TREE_HEAD.size + length
        if len(data) < arrays_from:
            raise ValueError("the structure is cut short")
        structure = json.loads(data[_TREE_HEAD.size : arrays_from])
    buffers = io.BytesIO(data)
    buffers.seek(arrays_from)
    find = namedtuples if callable(namedtuples) else (namedtuples or {}).get
    with _damage(source):
        tree = _decode(structure, buffers, find)
        if buffers.read(1):
            raise ValueError("something follows the last array")
    return tree


@contextmanager
def _damage(source: str) -> Iterator[None]:
    try:
        yield
    except DamagedFileError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, LookupError, struct.error, RecursionError) as error:
        raise DamagedFileError(f"{source} holds no state that can be read: {error}.") from error


def _encode(node: Tree, place: str, arrays: list[bytes]) -> Any:
    """JSON for `node`: null, true, false, strings and small integers as they are, all else as [tag, ...]."""
    kind = type(node)
    if node is None or kind is bool or kind is str:
        return node
    if kind is int:
        return node if abs(node) <= _SAFE_INTEGER else ["int", hex(node)]
    if kind is float:
        return ["float", struct.pack(">d", node).hex()]
    if kind is np.ndarray or kind is np.memmap:
        arrays.append(_npy(node, place))
        return ["array"]
    if isinstance(node, np.generic):
        arrays.append(_npy(np.asarray(node), place))
        return ["scalar"]
    if kind is list or kind is tuple:
        return [kind.__name__, [_encode(item, f"{place}[{i}]", arrays) for i, item in enumerate(node)]]
    if isinstance(node, tuple) and hasattr(kind, "_fields"):
        fields: tuple[str, ...] = kind._fields
        items = [_encode(item, f"{place}.{name}", arrays) for name, item in zip(fields, node, strict=True)]
        return ["named", class_name(kind), list(fields), items]
    if kind is dict:
        for key in node:
            if type(key) is not str:
                raise InvalidInputError(f"{place} has the key {key!r}, but the keys of a saved dict must be strings.")
        return ["dict", [[key, _encode(item, f"{place}[{key!r}]", arrays)] for key, item in node.items()]]
    raise InvalidInputError(
        f"{place} is of type {class_name(kind)}, which cannot be saved. A state is made of NamedTuples, tuples, "
        "lists, dicts with string keys, NumPy arrays, numbers, strings and None."
    )


def _npy(array: AnyArray, place: str) -> bytes:
    if array.dtype.kind not in _ARRAY_KINDS:
        raise InvalidInputError(f"{place} has dtype {array.dtype}, but only arrays of numbers or bools can be saved.")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _decode(node: Any, buffers: io.BytesIO, find: Callable[[str], type | None]) -> Tree:
    if not isinstance(node, list):
        return node
    match node:
        case ["int", str(digits)]:
            return int(digits, 16)
        case ["float", str(bits)]:
            return struct.unpack(">d", bytes.fromhex(bits))[0]
        case ["array"]:
            return np.lib.format.read_array(buffers, allow_pickle=False)
        case ["scalar"]:
            return np.lib.format.read_array(buffers, allow_pickle=False)[()]
        case ["list", list(items)]:
            return [_decode(item, buffers, find) for item in items]
        case ["tuple", list(items)]:
            return tuple(_decode(item, buffers, find) for item in items)
        case ["dict", list(items)]:
            return {key: _decode(item, buffers, find) for key, item in items}
        case ["named", str(name), list(fields), list(items)]:
            cls = find(name)
            if cls is None:
                raise ValueError(f"it needs the class {name}, which is not expected here")
            if list(getattr(cls, "_fields", ())) != fields:
                raise ValueError(
                    f"{name} was saved with the fields ({', '.join(fields)}), but now has "
                    f"({', '.join(getattr(cls, '_fields', ()))})"
                )
            return cls._make(_decode(item, buffers, find) for item in items)  # type: ignore[attr-defined]
    raise ValueError(f"it has an unknown kind of entry, {str(node[:1])[:40]}")
