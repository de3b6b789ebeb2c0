"""The journal: every decision and score of an agent, in an SQLite file, durable before it is acknowledged.

    meta       format and configuration
    states     number and canonical bytes of every state seen
    episodes   number, id, source, when begun, steps once ended, loss once scored
    acts       what was decided at each step of an episode, with its probability and what was on offer
    events     in order: scores learned from, scores merely kept, freezing and thawing
    snapshots  what was learned up to an event, so that opening need not go through all events before it

The journal is the truth: what was learned is a function of its events, in order.  A snapshot that cannot be read is
passed over.  The file is in WAL mode with synchronous=FULL: COMMIT returns once the disk has it.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from aggbandit import _files
from aggbandit.agent.beliefs import Act
from aggbandit.agent.errors import NotDurableError
from aggbandit.errors import DamagedFileError

APPLICATION = 0x61676762  # "aggb": tells SQLite files apart
FORMAT = 1

LEARNED, KEPT, FROZEN, THAWED = 1, 2, 3, 4  # kinds of events
LIVED, GIVEN = 0, 1  # sources of episodes: decided here, or given by warm_start

DIGEST_LENGTH = 64  # a snapshot begins with the SHA-256 of the rest, in hexadecimal

Statement = tuple[str, tuple[Any, ...]]

_SCHEMA = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE states(number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE);
CREATE TABLE episodes(
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source INTEGER NOT NULL, begun REAL NOT NULL,
  steps INTEGER, loss REAL
);
CREATE TABLE acts(
  episode INTEGER NOT NULL, step INTEGER NOT NULL, state INTEGER NOT NULL, action INTEGER NOT NULL,
  probability REAL NOT NULL, allowed BLOB, PRIMARY KEY(episode, step)
) WITHOUT ROWID;
CREATE TABLE events(number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, episode INTEGER);
CREATE TABLE snapshots(event INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""


class EpisodeRow(NamedTuple):
    """An episode as the journal has it."""

    number: int
    id: str
    source: int
    begun: float
    steps: int | None  # None: not ended
    loss: float | None  # None: not scored


class Journal:
    """The file behind an agent; `path` None keeps it in memory, where nothing is durable."""

    def __init__(self, path: Path | None) -> None:
        self._name = "memory" if path is None else str(path)
        self._path = path
        try:
            self._write = self._connect()
            new = self._is_new()
            self._settle(self._write)
            if new:
                # executescript would commit before it starts: the statements one by one, in one transaction
                script = [part for part in _SCHEMA.split(";") if part.strip()]
                script += [f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={FORMAT}"]
                self.append((part, ()) for part in script)
            self._read = self._write
            if path is not None:
                self._read = self._connect()
                self._settle(self._read)
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error

    def _connect(self) -> sqlite3.Connection:
        # autocommit mode: transactions are begun and ended by name below
        where = ":memory:" if self._path is None else self._path
        return sqlite3.connect(where, isolation_level=None, check_same_thread=False, timeout=10.0)

    def _is_new(self) -> bool:
        """Whether nothing is there yet; raises where it is not ours.  Writes nothing."""
        application = self._value("PRAGMA application_id")
        version = self._value("PRAGMA user_version")
        if application == 0 and version == 0 and self._value("SELECT count(*) FROM sqlite_master") == 0:
            return True
        if application != APPLICATION:
            raise DamagedFileError(f"{self._name} is an SQLite file of another program, not an agent's.")
        if version != FORMAT:
            age = "newer" if version > FORMAT else "older"
            raise DamagedFileError(
                f"{self._name} has format version {version}, {age} than version {FORMAT}, which this aggbandit reads. "
                "Open it with the aggbandit that wrote it; it was left as it is."
            )
        return False

    def _settle(self, connection: sqlite3.Connection) -> None:
        """COMMIT returns once the disk has it."""
        if self._path is None:
            return
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise NotDurableError(f"{self._name}: this disk cannot hold an SQLite file in WAL mode, but {mode!r}.")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")  # macOS; without effect elsewhere
        connection.execute("PRAGMA checkpoint_fullfsync=ON")

    def _value(self, sql: str) -> Any:
        return self._write.execute(sql).fetchone()[0]

    def append(self, statements: Iterable[Statement]) -> None:
        """Make these durable, all or none.  On failure none has happened, and NotDurableError says why."""
        try:
            self._write.execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                self._write.execute(sql, values)
            self._write.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self._write.in_transaction:
                    self._write.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._translated(error) from error
            raise

    def _translated(self, error: sqlite3.Error) -> Exception:
        """The error as this package tells it."""
        if isinstance(error, sqlite3.OperationalError):
            return NotDurableError(
                f"{self._name}: {error}. What was asked has not happened; all that was acknowledged before is safe. "
                "Make room (or mend what the message names) and ask again."
            )
        return DamagedFileError(f"{self._name} is no agent's file, or it is damaged: {error}.")

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a committed state."""
        try:
            return self._read.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error

    def configuration(self) -> dict[str, Any] | None:
        """The configuration the file was made with; None in a new file."""
        found = self.query("SELECT value FROM meta WHERE name = 'configuration'")
        if not found:
            return None
        stored: dict[str, Any] = json.loads(found[0][0])
        return stored

    def configure(self, configuration: dict[str, Any]) -> None:
        """Write the configuration of a new file."""
        self.append([("INSERT INTO meta VALUES ('configuration', ?)", (json.dumps(configuration),))])

    def episode(self, name: str) -> tuple[EpisodeRow, list[Act]] | None:
        """An episode and its acts by id."""
        found = self.query("SELECT number, id, source, begun, steps, loss FROM episodes WHERE id = ?", (name,))
        if not found:
            return None
        row = EpisodeRow(*found[0])
        acts = self.query(
            "SELECT state, action, probability, allowed FROM acts WHERE episode = ? ORDER BY step", (row.number,)
        )
        return row, [Act(*act) for act in acts]

    def events_after(self, event: int) -> Iterator[tuple[int, int, float | None, list[Act]]]:
        """(number, kind, loss, acts) of every later event, in order."""
        try:
            cursor = self._read.execute(
                "SELECT v.number, v.kind, e.loss, a.state, a.action, a.probability, a.allowed FROM events v "
                "LEFT JOIN episodes e ON e.number = v.episode LEFT JOIN acts a ON a.episode = v.episode "
                "WHERE v.number > ? ORDER BY v.number, a.step",
                (event,),
            )
            current: tuple[int, int, float | None, list[Act]] | None = None
            for number, kind, loss, *act in cursor:
                if current is None or current[0] != number:
                    if current is not None:
                        yield current
                    current = number, kind, loss, []
                if act[0] is not None:
                    current[3].append(Act(*act))
            if current is not None:
                yield current
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error

    def snapshot(self) -> tuple[int, dict[str, Any]] | None:
        """The latest snapshot that can be read: the event it includes, and its tree."""
        for event, data in self.query("SELECT event, data FROM snapshots ORDER BY event DESC"):
            digest, payload = data[:DIGEST_LENGTH], data[DIGEST_LENGTH:]
            if _files.digest(payload).encode() == digest:
                return event, _files.load_tree(payload, source=f"{self._name}'s snapshot")
        return None

    def close(self) -> None:
        """Let go of the file."""
        if self._read is not self._write:
            self._read.close()
        self._write.close()


def snapshot_statements(event: int, tree: dict[str, Any]) -> list[Statement]:
    """What writes a snapshot and removes older ones."""
    payload = _files.dump_tree(tree)
    return [
        ("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (event, _files.digest(payload).encode() + payload)),
        ("DELETE FROM snapshots WHERE event < ?", (event,)),
    ]
