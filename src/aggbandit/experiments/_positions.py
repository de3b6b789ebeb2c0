"""Where in a TOML text each key and each entry of a list stands: tomllib does not say, and errors should.

Reads only texts that tomllib has accepted, so it need not judge them; it skips over values and keeps places.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t\r\n]*(?:#[^\n]*\n?[ \t\r\n]*)*")
_ATOM = re.compile(r"[^\s,\]\}#]+(?: \d[^\s,\]\}#]*)?")  # numbers, true, dates with a blank in the middle


def line_of(text: str, path: Path) -> int | None:
    """The line (from 1) of the entry at `path`, or of the nearest thing around it."""
    lines = _Scanner(text.replace("\r\n", "\n")).lines
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._document()

    def _document(self) -> None:
        prefix: Path = ()
        self._skip()
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                self.at += 2
                prefix = self._table(self._key(), array=True)
                self._to("]]")
            elif self.text[self.at] == "[":
                self.at += 1
                prefix = self._table(self._key(), array=False)
                self._to("]")
            else:
                self._pair(prefix)
            self._skip()

    def _table(self, keys: Path, *, array: bool) -> Path:
        """The full path of a header: names of lists of tables stand for their latest entry."""
        path: Path = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            self._note(path)
            last = position == len(keys) - 1
            if last and array:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = (*path, self._counts[path])
                self._note(path)
        return path

    def _pair(self, prefix: Path) -> None:
        start = self.at
        path = (*prefix, *self._key())
        for end in range(len(prefix) + 1, len(path) + 1):
            self._note(path[:end], start)
        self._to("=")
        self._skip()
        self._value(path)

    def _key(self) -> Path:
        keys: list[str] = []
        while True:
            self._skip()
            if self.text[self.at] in "\"'":
                start = self.at + 1
                self._string()
                keys.append(self.text[start : self.at - 1])
            else:
                found = _BARE.match(self.text, self.at)
                assert found is not None, "tomllib has accepted this text"
                keys.append(found[0])
                self.at = found.end()
            self._skip()
            if self.text[self.at] != ".":
                return tuple(keys)
            self.at += 1

    def _value(self, path: Path) -> None:
        sign = self.text[self.at]
        if sign == "[":
            self.at += 1
            for index in range(len(self.text)):
                self._skip()
                if self.text[self.at] == "]":
                    break
                self._note((*path, index))
                self._value((*path, index))
                self._skip()
                self.at += self.text[self.at] == ","
            self.at += 1
        elif sign == "{":
            self.at += 1
            self._skip()
            while self.text[self.at] != "}":
                self._pair(path)
                self._skip()
                self.at += self.text[self.at] == ","
                self._skip()
            self.at += 1
        elif sign in "\"'":
            self._string()
        else:
            found = _ATOM.match(self.text, self.at)
            self.at = found.end() if found else self.at + 1

    def _string(self) -> None:
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            end = re.compile(r'(?:\\.|[^\\])*?"""+' if quote == '"' else r".*?'''+", re.DOTALL)
            found = end.match(self.text, self.at + 3)
        else:
            one_line = re.compile(r'"(?:\\.|[^"\\])*"' if quote == '"' else r"'[^']*'")
            found = one_line.match(self.text, self.at)
        assert found is not None, "tomllib has accepted this text"
        self.at = found.end()

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _to(self, sign: str) -> None:
        self.at = self.text.index(sign, self.at) + len(sign)

    def _note(self, path: Path, at: int | None = None) -> None:
        self.lines.setdefault(path, self.text.count("\n", 0, self.at if at is None else at) + 1)
