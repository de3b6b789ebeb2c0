"""States and actions as bytes: one canonical form for each value, readable again, without pickle.

A value is a str, int, float, bool, None, bytes, an Enum member, or a tuple of these.  Two values are the same state
exactly when their types and contents agree: 1, 1.0 and True are three states.  Rules where Python leaves a choice:

    every NaN is the same state; -0.0 is 0.0
    an Enum member is its class's name and its own name, whatever its value and wherever the class is defined
    NumPy's scalars count as the Python number they hold
"""

import struct
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from aggbandit.errors import DamagedFileError, InvalidInputError

DEEPEST = 100  # tuples within tuples, so that what was written can be read again whatever calls it
KINDS = "a str, int, float, bool, None, bytes, an Enum member, or a tuple of these"


class EnumLabel(NamedTuple):
    """An Enum member read back from a file, where its class is not known; encodes as the member itself does."""

    cls: str
    name: str

    def __repr__(self) -> str:
        return f"{self.cls}.{self.name}"


def encode(value: Any, subject: str = "state", depth: int = 0) -> bytes:
    """The canonical bytes of `value`; each kind has a letter, what varies in length says how long it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return b"N"
    if isinstance(value, EnumLabel):
        return b"e" + _sized(value.cls.encode()) + _sized(value.name.encode())
    if isinstance(value, Enum):
        name = value.name
        if name is None:  # a Flag without a name of its own
            raise InvalidInputError(f"{subject} is {value!r}, a flag that has no name; use a tuple of named members.")
        return b"e" + _sized(type(value).__qualname__.encode()) + _sized(name.encode())
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, int):
        return b"i" + _sized(f"{int(value):x}".encode())
    if isinstance(value, float):
        number = float("nan") if value != value else float(value) + 0.0  # + 0.0 turns -0.0 into 0.0
        return b"f" + struct.pack(">d", number)
    if isinstance(value, str):
        return b"s" + _sized(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, (bytes, bytearray)):
        return b"b" + _sized(bytes(value))
    if isinstance(value, tuple):
        if depth == DEEPEST:
            raise InvalidInputError(
                f"{subject} has tuples nested more than {DEEPEST} deep; name it by something flatter."
            )
        inner = b"".join(encode(item, subject, depth + 1) for item in value)
        return b"t" + struct.pack(">I", len(value)) + inner
    hint = " Use a tuple instead of the list." if isinstance(value, list) else ""
    raise InvalidInputError(f"{subject} must be {KINDS}, but is a {type(value).__qualname__}: {value!r:.80}.{hint}")


def decode(data: bytes) -> Any:
    """The value behind canonical bytes; Enum members come back as `EnumLabel`."""
    try:
        value, end = _decode(data, 0)
    except (struct.error, IndexError, ValueError) as error:
        raise DamagedFileError(f"{data[:40]!r} is no encoded state: {error}.") from error
    if end != len(data):
        raise DamagedFileError(f"{data[:40]!r} is no encoded state: something follows it.")
    return value


def to_json(value: Any) -> Any:
    """`value` for a JSON file: plain where JSON tells the kinds apart, {"kind": content} elsewhere."""
    if isinstance(value, (Enum, np.generic)):  # before the plain kinds: an IntEnum is an int as well
        value = decode(encode(value))
    if isinstance(value, EnumLabel):
        return {"enum": [value.cls, value.name]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    return value


def from_json(value: Any) -> Any:
    """What `to_json` wrote."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        match kind, content:
            case "enum", [str(cls), str(name)]:
                return EnumLabel(cls, name)
            case "bytes", str(digits):
                with suppress(ValueError):
                    return bytes.fromhex(digits)
            case "tuple", list(items):
                return tuple(from_json(item) for item in items)
            case "float", "nan" | "inf" | "-inf":
                return float(content)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InvalidInputError(f"{value!r:.80} is no state or action as `export` writes them.")


def _sized(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _take(data: bytes, at: int) -> tuple[bytes, int]:
    (size,) = struct.unpack_from(">I", data, at)
    end = at + 4 + size
    if end > len(data):
        raise ValueError("it is cut short")
    return data[at + 4 : end], end


def _decode(data: bytes, at: int) -> tuple[Any, int]:
    kind, at = data[at : at + 1], at + 1
    if kind == b"N":
        return None, at
    if kind in (b"T", b"F"):
        return kind == b"T", at
    if kind == b"f":
        return struct.unpack_from(">d", data, at)[0], at + 8
    if kind == b"t":
        (count,) = struct.unpack_from(">I", data, at)
        at += 4
        items = []
        for _ in range(count):
            item, at = _decode(data, at)
            items.append(item)
        return tuple(items), at
    if kind not in (b"i", b"s", b"b", b"e"):
        raise ValueError(f"unknown kind {kind!r}")
    content, at = _take(data, at)
    if kind == b"i":
        return int(content, 16), at
    if kind == b"s":
        return content.decode("utf-8", "surrogatepass"), at
    if kind == b"b":
        return content, at
    name, at = _take(data, at)
    return EnumLabel(content.decode(), name.decode()), at
