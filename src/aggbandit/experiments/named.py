"""A learner, instance or adversary as a person types it: `po-known:step_size=main,confidence=0.1`."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aggbandit.errors import InvalidInputError

WORDS = {"true": True, "false": False, "none": None}
OPENING, CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Named:
    """An id (or a learner's `module:Class`) with its arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Named:
        """`id`, `id:argument=value,...`, `module:Class` or `module:Class:argument=value,...`.

        >>> Named.parse("random:states=5,horizon=3")
        Named(name='random', arguments={'states': 5, 'horizon': 3})
        >>> Named.parse("mine.bandits:Greedy:rate=0.1").name
        'mine.bandits:Greedy'
        """
        name, _, rest = text.strip().partition(":")
        if rest and "=" not in rest.partition(":")[0]:  # the second part is a class, not an argument
            attribute, _, rest = rest.partition(":")
            name = f"{name}:{attribute}"
        if not name:
            raise InvalidInputError(f"{text!r} has no name. Write an id, then its arguments: id:argument=value,...")
        arguments: dict[str, Any] = {}
        for piece in _pieces(rest):
            key, equals, value = piece.partition("=")
            key = key.strip()
            if not equals or not key.isidentifier():
                raise InvalidInputError(f"{text!r}: {piece.strip()!r} is no argument. Write argument=value,...")
            if key in arguments:
                raise InvalidInputError(f"{text!r} gives the argument {key!r} twice.")
            arguments[key] = _value(value.strip())
        return cls(name, arguments)

    def __str__(self) -> str:
        """As it would be typed."""
        if not self.arguments:
            return self.name
        return f"{self.name}:{','.join(f'{key}={_text(value)}' for key, value in self.arguments.items())}"


def _pieces(text: str) -> Iterator[str]:
    """The parts between commas that stand in no bracket and in no quotes."""
    if not text.strip():
        return
    depth, quote, start, escaped = 0, "", 0, False
    for i, sign in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in OPENING:
            depth += 1
        elif sign in CLOSING:
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def _value(text: str) -> Any:
    """A Python number, list or quoted string; true, false, none; otherwise the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    try:
        return json.loads(json.dumps(value))  # plans are stored as JSON
    except (TypeError, ValueError):
        return text


def _text(value: Any) -> str:
    if isinstance(value, str):
        plain = value == value.strip() and _value(value) == value and not set(value) & set(",()[]{}'\"")
        return value if plain else repr(value)
    return str(value)
