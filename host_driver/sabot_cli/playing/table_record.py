"""The record of a table: who did what, the procedure as it stands, and the shuffles with their nonces.

One SQLite file a device, in WAL mode with ``synchronous=FULL``. What a step did and how far the device's
events were read are written together, so that after a restart every event is taken in once.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sabot_driver.errors import SabotError
from sabot_driver.private_files import make_folder, prepare_database
from sabot_table.procedure import Attribution

VERSION = 1
_TABLES = """
CREATE TABLE log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at_s INTEGER NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL,
    what TEXT NOT NULL
);
CREATE TABLE saved (one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT NOT NULL, at INTEGER NOT NULL);
CREATE TABLE shuffles (
    memory_id BLOB NOT NULL, shuffle_id INTEGER NOT NULL, deck_id INTEGER NOT NULL,
    commitment BLOB NOT NULL, nonce BLOB NOT NULL, seed BLOB, wrong TEXT,
    PRIMARY KEY (memory_id, shuffle_id)
) WITHOUT ROWID;
"""


class RecordFailed(SabotError, OSError):
    """The table's record cannot be read or written."""

    advice = "Check the disk; put a damaged record aside: the table then begins with new cards."


@dataclass(frozen=True, slots=True)
class SavedTable:
    """The procedure as it was, and the last event of the journal that it had taken in."""

    state: str
    at: int


@dataclass(frozen=True, slots=True)
class ShuffleCommitment:
    """A shuffle as the device committed to it, with our nonce."""

    deck_id: int
    commitment: bytes
    nonce: bytes


class TableRecord:
    """One table's record; None keeps it in memory, for a device that is gone with the program."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        try:
            if path is not None:
                make_folder(path.parent)
                prepare_database(path)
            self._db = sqlite3.connect(":memory:" if path is None else path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
            elif version != VERSION:
                raise RecordFailed(f"{path}: a record of version {version}, not {VERSION}")
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, RecordFailed):
                raise
            raise RecordFailed(f"{path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def load(self) -> SavedTable | None:
        """The procedure as it was kept last."""
        row = self._one("SELECT state, at FROM saved")
        return None if row is None else SavedTable(*row)

    def keep(self, log: Sequence[tuple[Attribution, str]], saved: SavedTable) -> None:
        """What happened, and how things stand after it: all of it or nothing."""
        rows = [(by.at_s, by.who, str(by.role), what) for by, what in log]
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT INTO log (at_s, who, role, what) VALUES (?,?,?,?)", rows)
                self._db.execute("INSERT OR REPLACE INTO saved VALUES (1, ?, ?)", (saved.state, saved.at))
        except sqlite3.Error as error:
            raise RecordFailed(f"{self.path}: {error}") from error

    def log(self) -> list[tuple[int, str, str, str]]:
        """Everything that happened: UTC seconds, who, as what, what."""
        return self._all("SELECT at_s, who, role, what FROM log ORDER BY id", ())

    # -- shuffles -------------------------------------------------------------------------------

    def committed(self, memory_id: bytes, shuffle_id: int, commitment: ShuffleCommitment) -> None:
        """A shuffle is pledged; on disk before the device gets the nonce."""
        self._do(
            "INSERT OR REPLACE INTO shuffles (memory_id, shuffle_id, deck_id, commitment, nonce) "
            "VALUES (?,?,?,?,?)",
            (memory_id, shuffle_id, commitment.deck_id, commitment.commitment, commitment.nonce),
        )

    def commitment_of(self, memory_id: bytes, shuffle_id: int) -> ShuffleCommitment | None:
        """What was kept of a shuffle."""
        row = self._one(
            "SELECT deck_id, commitment, nonce FROM shuffles WHERE memory_id = ? AND shuffle_id = ?",
            (memory_id, shuffle_id),
        )
        return None if row is None else ShuffleCommitment(*row)

    def revealed(self, memory_id: bytes, shuffle_id: int, seed: bytes, wrong: str) -> None:
        """A shuffle was revealed; ``wrong`` is empty if all of it fits."""
        self._do(
            "UPDATE shuffles SET seed = ?, wrong = ? WHERE memory_id = ? AND shuffle_id = ?",
            (seed, wrong, memory_id, shuffle_id),
        )

    # -- SQL ------------------------------------------------------------------------------------

    def _do(self, sql: str, values: tuple[object, ...]) -> None:
        try:
            self._db.execute(sql, values)
        except sqlite3.Error as error:
            raise RecordFailed(f"{self.path}: {error}") from error

    def _all(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise RecordFailed(f"{self.path}: {error}") from error

    def _one(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        rows = self._all(sql, values)
        return rows[0] if rows else None
