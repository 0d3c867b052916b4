"""The record of a table as a SQLite file: rows, the saved session, accepted acts, shuffle commitments.

WAL mode with ``synchronous=FULL``: what `SqliteRecord.commit` returned from survives a power cut. A row is
stored as its canonical bytes (`sabot_session.canonical`); the columns used for searching are computed from
them by SQLite, so they cannot say anything else. Triggers keep rows from being changed or deleted. Each row
has its hash in the record's chain, and each commit a signed checkpoint (`sabot_session.record_chain`).

One program writes: a second one is refused by name (`RecordHeld`). Any number of programs may read meanwhile.
"""

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sabot_driver.held_files import FileHeld, hold
from sabot_driver.private_files import make_folder, prepare_database
from sabot_evidence.chain import RESTORED, first_hash
from sabot_evidence.errors import EvidenceError
from sabot_evidence.pc_key import PcKey, load_pc_key
from sabot_session.canonical import read_row
from sabot_session.errors import (
    ActRepeated,
    RecordBusy,
    RecordDamaged,
    RecordFailed,
    RecordFull,
    RecordHeld,
    RecordMissing,
    RecordVersion,
)
from sabot_session.record_chain import OF, SECOND_US, RecordChain, add_chain
from sabot_session.row_data import RecordRestored
from sabot_session.row_kinds import check_row
from sabot_session.rows import Actor, Authentication, NumberedRow, Row, SavedSession
from sabot_table.procedure import TableRole

VERSION = 3
WITHOUT_CHAIN = 2  # the version before; opening such a record takes it over
BUSY_S = 5.0  # how long a write waits for another program that holds the write lock
CACHE_KIB = 512  # of pages that SQLite keeps in memory; rows are rarely read again
PAGE = 1000
PROGRAM = Actor("", TableRole.PROGRAM, Authentication.PROGRAM)
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR)
OPENING_KINDS = ("open_bets", "begin_simulated")

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rows (
    number INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    kind TEXT GENERATED ALWAYS AS (json_extract(body, '$.kind')) VIRTUAL,
    at_s INTEGER GENERATED ALWAYS AS (json_extract(body, '$.at_s')) VIRTUAL,
    round_id INTEGER GENERATED ALWAYS AS (json_extract(body, '$.round')) VIRTUAL
);
CREATE INDEX rows_by_round ON rows (round_id, number);
CREATE INDEX rows_by_kind ON rows (kind, at_s);
CREATE TRIGGER rows_stay BEFORE UPDATE ON rows BEGIN SELECT RAISE(ABORT, 'rows are never changed'); END;
CREATE TRIGGER rows_last BEFORE DELETE ON rows BEGIN SELECT RAISE(ABORT, 'rows are never deleted'); END;
CREATE TABLE acts (act_id TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE saved (
    one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT NOT NULL, journal_at INTEGER NOT NULL
);
CREATE TABLE shuffles (
    memory_id BLOB NOT NULL, shuffle_id INTEGER NOT NULL, deck_id INTEGER NOT NULL,
    commitment BLOB NOT NULL, nonce BLOB NOT NULL, seed BLOB, wrong TEXT,
    PRIMARY KEY (memory_id, shuffle_id)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class ShuffleCommitment:
    """A shuffle as the device committed to it, with our nonce."""

    deck_id: int
    commitment: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True)
class KeptShuffle:
    """A shuffle on record; ``seed`` is None until it was revealed, ``wrong`` is empty if all of it fits."""

    memory_id: bytes
    shuffle_id: int
    committed: ShuffleCommitment
    seed: bytes | None
    wrong: str | None


class RecordReader:
    """A table's record, to read. It needs no lock: the table may be running meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open a record; `RecordMissing`, `RecordVersion`, `RecordDamaged` as they are named."""
        if not path.is_file():
            raise RecordMissing(f"{path}: there is no such record")
        self._begin(path)
        try:
            self._db.execute("PRAGMA query_only=ON")
            if self._check_version() == 0:
                raise RecordMissing(f"{path}: this file is not a record yet")
        except sqlite3.Error as error:
            self._db.close()
            raise named(error, path) from error
        except RecordFailed:
            self._db.close()
            raise

    def _begin(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            self._db = sqlite3.connect(
                ":memory:" if path is None else path,
                BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise named(error, path) from error

    def _check_version(self) -> int:
        """The file's version, 0 if it is new; `RecordVersion` for one that is not ours."""
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if version not in (0, WITHOUT_CHAIN, VERSION):
            what = f"{self.path}: a record of version {version}; this program writes version {VERSION}"
            raise RecordVersion(what, version, version < VERSION)
        return version

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @property
    def record_id(self) -> str:
        """Random, drawn when the record was begun; a record restored from a copy gets another one."""
        found = self._one("SELECT value FROM meta WHERE name = 'record_id'")
        if found is None:
            raise RecordDamaged(f"{self.path}: the record has no id")
        return str(found[0])

    def load(self) -> SavedSession | None:
        """The newest saved session; None in a new record."""
        found = self._one("SELECT state, journal_at FROM saved")
        return None if found is None else SavedSession(*found)

    def newest(self) -> int:
        """The number of the newest row; 0 if there is none."""
        found = self._one("SELECT MAX(number) FROM rows")
        return 0 if found is None or found[0] is None else int(found[0])

    def act(self, act_id: str) -> NumberedRow | None:
        """The first row of an act that was accepted before; None if there is none."""
        found = self._rows("SELECT number, body FROM rows JOIN acts USING (number) WHERE act_id = ?", act_id)
        return found[0] if found else None

    def rows(self, after: int = 0, most: int = PAGE) -> Sequence[NumberedRow]:
        """Rows with higher numbers than ``after``, oldest first."""
        return self._rows(
            "SELECT number, body FROM rows WHERE number > ? ORDER BY number LIMIT ?", after, most
        )

    def all_rows(self, after: int = 0) -> Iterator[NumberedRow]:
        """Every row with a higher number than ``after``, read page by page."""
        while page := self.rows(after):
            yield from page
            after = page[-1].number

    def chained(self, after: int = 0, most: int = PAGE) -> list[tuple[int, str, bytes]]:
        """Rows with higher numbers than ``after``: number, canonical text and hash, oldest first."""
        found = self._all(
            "SELECT number, body, hash FROM rows WHERE number > ? ORDER BY number LIMIT ?", after, most
        )
        return [(int(number), str(body), bytes(hash or b"")) for number, body, hash in found]

    def newest_hash(self) -> tuple[int, bytes]:
        """The number and the hash of the newest row; the chain's beginning if there is none."""
        found = self._one("SELECT number, hash FROM rows ORDER BY number DESC LIMIT 1")
        return (0, first_hash(OF)) if found is None else (int(found[0]), bytes(found[1] or b""))

    def version(self) -> int:
        """A number that is another one after any other connection has written."""
        found = self._one("PRAGMA data_version")
        return 0 if found is None else int(found[0])

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """All rows of one round, oldest first."""
        return self._rows("SELECT number, body FROM rows WHERE round_id = ? ORDER BY number", round_id)

    def rows_of_kind(self, *kinds: str, from_s: int = 0, until_s: int = 2**53) -> Sequence[NumberedRow]:
        """Rows of these kinds with times from ``from_s`` to before ``until_s``, in the record's order."""
        marks = ",".join("?" * len(kinds))
        return self._rows(
            f"SELECT number, body FROM rows WHERE kind IN ({marks}) AND at_s >= ? AND at_s < ? "
            "ORDER BY number",
            *kinds,
            from_s,
            until_s,
        )

    def round_ids(self, from_s: int = 0, until_s: int = 2**53) -> Sequence[int]:
        """Rounds that were opened from ``from_s`` to before ``until_s``, in the order of opening."""
        opened = self.rows_of_kind(*OPENING_KINDS, from_s=from_s, until_s=until_s)
        return [each.row.round_id for each in opened]

    # -- shuffles -------------------------------------------------------------------------------

    def commitment_of(self, memory_id: bytes, shuffle_id: int) -> ShuffleCommitment | None:
        """What was kept of a shuffle."""
        found = self._one(
            "SELECT deck_id, commitment, nonce FROM shuffles WHERE memory_id = ? AND shuffle_id = ?",
            memory_id,
            shuffle_id,
        )
        return None if found is None else ShuffleCommitment(*found)

    def shuffles(self) -> Sequence[KeptShuffle]:
        """Every shuffle on record."""
        rows = self._all(
            "SELECT memory_id, shuffle_id, deck_id, commitment, nonce, seed, wrong FROM shuffles "
            "ORDER BY memory_id, shuffle_id"
        )
        return [
            KeptShuffle(memory_id, shuffle_id, ShuffleCommitment(deck, commitment, nonce), seed, wrong)
            for memory_id, shuffle_id, deck, commitment, nonce, seed, wrong in rows
        ]

    # -- SQL ------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: object) -> list[NumberedRow]:
        found = []
        for number, body in self._all(sql, *values):
            row = read_row(body.encode() if isinstance(body, str) else bytes(body))
            if row.number != number:
                raise RecordDamaged(f"{self.path}: row {number} says it is row {row.number}")
            found.append(row)
        return found

    def _one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        rows = self._all(sql, *values)
        return rows[0] if rows else None

    def _all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise named(error, self.path) from error


class SqliteRecord(RecordReader):
    """A table's record; None keeps it in memory, for a device that is gone with the program.

    Safe to use from several threads; one program at a time.
    """

    def __init__(
        self,
        path: Path | None,
        now_s: Callable[[], int] = lambda: int(time.time()),
        random: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        """Open or begin a record. ``random`` makes the id of a new one.

        `RecordHeld` if another program has it, `RecordVersion` for another version, `RecordDamaged` for a
        file that is no record or misses rows.
        """
        self._held: sqlite3.Connection | None = None
        if path is not None:
            try:
                make_folder(path.parent)
                path = path.resolve()  # two names of one file must find the same lock
                prepare_database(path)
                self._held = hold(path)
            except FileHeld as error:
                raise RecordHeld(f"{path.name} is in use by {error}") from error
            except sqlite3.Error as error:
                raise named(error, path) from error
            except OSError as error:
                raise RecordFailed(f"{path}: {error}") from error
        try:
            self._begin(path)
        except RecordFailed:
            self._let_go()
            raise
        try:
            key = PcKey(secrets.token_bytes(32)) if path is None else load_pc_key(path.parent)
            self._prepare(key, now_s, random)
        except sqlite3.Error as error:
            self.close()
            raise named(error, path) from error
        except EvidenceError as error:
            self.close()
            raise RecordDamaged(f"{path}: {error}", error.advice) from error
        except RecordFailed:
            self.close()
            raise

    def _prepare(self, key: PcKey, now_s: Callable[[], int], random: Callable[[int], str]) -> None:
        version = self._check_version()
        is_new = version == 0
        if is_new and self._db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise RecordDamaged(f"{self.path}: a database that is not a record")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        if is_new:
            with self._transaction() as db:
                create_tables(db, random(16), place_of(self.path))
        if version != VERSION:
            self._begin_chain(key, now_s, random)
        count, newest = self._db.execute("SELECT COUNT(*), COALESCE(MAX(number), 0) FROM rows").fetchone()
        if count != newest:
            raise RecordDamaged(f"{self.path}: {count} rows are there, and the newest is row {newest}")
        found = self._one("SELECT value FROM meta WHERE name = 'chain_id'")
        if found is None:
            raise RecordDamaged(f"{self.path}: the record's chain has no id")
        self.chain = RecordChain(self._db, str(found[0]), key)
        """The chain of the record's rows."""
        self._check_place(now_s, random)

    def _begin_chain(self, key: PcKey, now_s: Callable[[], int], random: Callable[[int], str]) -> None:
        """The chain of a new record, or of one that was written without; all or nothing."""
        with self._transaction() as db:
            add_chain(db)
            chain_id = random(16)
            db.execute("INSERT INTO meta VALUES ('chain_id', ?)", (chain_id,))
            RecordChain.take_over(db, chain_id, key, now_s() * SECOND_US)
            db.execute(f"PRAGMA user_version={VERSION}")

    def _check_place(self, now_s: Callable[[], int], random: Callable[[int], str]) -> None:
        """Draw another record id if this file is not the one that was begun, and record that."""
        place, before = place_of(self.path), self.record_id
        if self._db.execute("SELECT value FROM meta WHERE name = 'place'").fetchone()[0] == place:
            return
        newest = self.newest()
        data = RecordRestored(before=before, rows=newest).to_json()
        with self._transaction() as db:
            self.chain.append(db, [Row("record_restored", now_s(), PROGRAM, data)], newest)
            head = self.chain.keep(db, RESTORED, now_s() * SECOND_US, {"before": before})
            db.execute("UPDATE meta SET value = ? WHERE name = 'record_id'", (random(16),))
            db.execute("UPDATE meta SET value = ? WHERE name = 'place'", (place,))
        self.chain.head = head

    def close(self) -> None:
        """Close the file and release the lock."""
        super().close()
        self._let_go()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    # -- writing --------------------------------------------------------------------------------

    def commit(self, rows: Sequence[Row], saved: SavedSession) -> int:
        """Append rows and replace the saved session in one transaction; the number of the newest row.

        Rows of one act may share its id. `BadRow` for a row that no record takes, `ActRepeated` if an act is
        on record, `RecordFull`, `RecordBusy` and `RecordFailed` if nothing could be written.
        """
        checked = [check_row(each) for each in rows]
        with self._transaction() as db:
            for act_id in dict.fromkeys(each.act_id for each in checked if each.act_id):
                found = db.execute("SELECT number FROM acts WHERE act_id = ?", (act_id,)).fetchone()
                if found is not None:
                    raise ActRepeated(act_id, found[0])
            before = self.newest()
            head = self.chain.append(db, checked, before)
            db.execute(
                "INSERT OR REPLACE INTO saved VALUES (1, ?, ?)",
                (saved.state, saved.journal_at),
            )
        self.chain.head = head
        return before + len(checked)

    def committed(self, memory_id: bytes, shuffle_id: int, commitment: ShuffleCommitment) -> None:
        """A device committed itself to a shuffle; on disk before the device gets the nonce."""
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO shuffles (memory_id, shuffle_id, deck_id, commitment, nonce) "
                "VALUES (?,?,?,?,?)",
                (memory_id, shuffle_id, commitment.deck_id, commitment.commitment, commitment.nonce),
            )

    def revealed(self, memory_id: bytes, shuffle_id: int, seed: bytes, wrong: str) -> None:
        """A shuffle was revealed; ``wrong`` is empty if all of it fits."""
        with self._transaction() as db:
            db.execute(
                "UPDATE shuffles SET seed = ?, wrong = ? WHERE memory_id = ? AND shuffle_id = ?",
                (seed, wrong, memory_id, shuffle_id),
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing; what SQLite says comes as a `RecordFailed`."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise named(error, self.path) from error
            except EvidenceError as error:
                raise RecordDamaged(f"{self.path}: {error}", error.advice) from error
            finally:
                if self._db.in_transaction:
                    self._db.rollback()


def place_of(path: Path | None) -> str:
    """Which file this is: a copy of it is another one. "" for a record in memory."""
    if path is None:
        return ""
    found = path.stat()
    return f"{found.st_dev:x}:{found.st_ino:x}"


def create_tables(db: sqlite3.Connection, record_id: str, place: str) -> None:
    """The tables of a record without its chain, in the transaction that is open."""
    for statement in TABLES.split(";\n"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO meta VALUES ('record_id', ?), ('place', ?)", (record_id, place))
    db.execute(f"PRAGMA user_version={WITHOUT_CHAIN}")


def named(error: sqlite3.Error, path: Path | None) -> RecordFailed:
    """What SQLite says, as one of our errors."""
    text = f"{path or 'the record in memory'}: {error}"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return RecordFull(text)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return RecordBusy(text)
    if code in DAMAGED:
        return RecordDamaged(text)
    return RecordFailed(text)
