"""The journal: the events that a device sent to this host, on disk before the host acknowledges them.

Each device has one SQLite file, in WAL mode with ``synchronous=FULL``. The host acknowledges an event only
after the journal holds it, and every program reads events from the journal. The host's id and its command
numbers are in the same file, so that they are lost or restored together.

A write may wait for another program or for the disk. The disk worker's thread therefore calls ``write``, and
it holds no lock of the IO loop meanwhile. Reads use their own connection and do not wait for a writer.

While a program uses the journal, it holds an exclusive transaction on a second file, ``….lock``. The system
releases that lock when the program ends, also after a crash.

Every row has a link in the journal's chain, and every transaction with rows a signed checkpoint
(``journal_chain``, docs/evidence.md).
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from sabot_driver.errors import Forked, JournalBusy, JournalDamaged, JournalError, JournalFull, PortBusy
from sabot_driver.held_files import FileHeld, hold
from sabot_driver.journal_chain import TABLES as CHAIN_TABLES
from sabot_driver.journal_chain import JournalChain
from sabot_driver.private_files import make_folder, prepare_database
from sabot_evidence.errors import EvidenceError
from sabot_evidence.pc_key import PcKey, load_pc_key
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.notifications import EventGap, EventReceived

VERSION = 2
WITHOUT_CHAIN = 1  # the version before; opening such a journal takes it over
NUMBERS_AT_ONCE = 1024  # reserved on disk together; a crash skips at most this many
PAGE = 256
BUSY_S = 5.0  # how long a write waits for another program that holds the write lock
CACHE_KIB = 512  # of pages that SQLite keeps in memory; rows are rarely read again

UnsavedEvent = tuple[bytes, EventReceived | EventGap]
"""The memory id of the device when it sent the event, and the event or gap."""

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id BLOB NOT NULL,
    boot_id INTEGER NOT NULL,
    n INTEGER NOT NULL,
    is_gap INTEGER NOT NULL,
    ticks_ms INTEGER NOT NULL,
    utc_ms INTEGER,
    quality INTEGER NOT NULL,
    message INTEGER NOT NULL,
    body BLOB NOT NULL,
    gap_size INTEGER,
    from_boot INTEGER,
    from_n INTEGER,
    at_us INTEGER NOT NULL
);
CREATE UNIQUE INDEX once ON events (memory_id, boot_id, n) WHERE NOT is_gap;
CREATE TABLE commands (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    body BLOB NOT NULL,
    memory_id BLOB NOT NULL,
    at_us INTEGER NOT NULL,
    outcome TEXT
);
CREATE TABLE readers (name TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
"""
_PUT = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
_COLUMNS = (
    "memory_id, boot_id, n, is_gap, ticks_ms, utc_ms, quality, message, body, gap_size, "
    "from_boot, from_n, at_us"
)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One row: an event as received, or a gap."""

    id: int
    """Rises with every row of this journal; a reader stores it as its position."""
    memory_id: bytes
    boot_id: int
    n: int
    """The event's number in its boot; for a gap, the number of the first event after it."""
    is_gap: bool
    ticks_ms: int
    utc_ms: int | None
    """UTC in milliseconds by the device's clock; None while that clock is not set."""
    quality: int
    message: int
    """The event's message; for a gap, its reason."""
    body: bytes
    gap_size: int | None
    """How many events a gap lost; None if the device does not know."""
    gap_from: tuple[int, int] | None
    """The last event before a gap: (boot id, n)."""
    at_us: int
    """When the driver wrote the row, UTC in microseconds."""


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command of this host, and its outcome if that is known."""

    number: int
    message: int
    body: bytes
    memory_id: bytes
    at_us: int
    outcome: str | None


@dataclass(slots=True)
class JournalBatch:
    """Rows for one transaction."""

    events: list[UnsavedEvent] = field(default_factory=list)
    """Events and gaps."""
    commands: list[CommandRecord] = field(default_factory=list)
    """Commands that are about to be sent."""
    reserve: int | None = None
    """Command numbers below this one are reserved by the transaction."""


class Journal:
    """One device's journal, safe to use from several threads; one program at a time writes it."""

    def __init__(
        self,
        path: Path | None = None,
        serial: bytes | None = None,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Open or begin a journal; without a path it is kept in memory. ``random`` makes a new host's id.

        PortBusy if another program has it, JournalDamaged if it is of another device or cannot be read.
        """
        self.path = path
        self.ended: dict[int, str] = {}
        """Outcomes of commands that are not on disk yet; the next ``write`` writes them."""
        self._committed = JournalBatch()  # what is on disk without the caller of ``write`` knowing it
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._read_lock = self._lock if path is None else threading.RLock()
        self._held: sqlite3.Connection | None = None
        if path is not None:
            try:
                make_folder(path.parent)
                path = path.resolve()  # two names of one file must find the same lock, ids and numbers
                prepare_database(path)
            except OSError as error:
                raise JournalError(f"{path.parent}: {error}") from error
            self._held = _hold(path)
        try:
            self._db = self._reading = self._connect(path)
            key = PcKey(random(32)) if path is None else load_pc_key(path.parent, random)
            self._prepare(key, random)
            if path is not None:
                self._reading = self._connect(path)
            self._bind(serial, random)
        except sqlite3.Error as error:
            self._let_go()
            raise _named(error, path) from error
        except EvidenceError as error:
            self._db.close()
            self._let_go()
            raise JournalDamaged(f"{path}: {error}", error.advice) from error
        except JournalError:
            self._reading.close()
            self._db.close()
            self._let_go()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @staticmethod
    def _connect(path: Path | None) -> sqlite3.Connection:
        return sqlite3.connect(
            ":memory:" if path is None else path, BUSY_S, isolation_level=None, check_same_thread=False
        )

    def _prepare(self, key: PcKey, random: Callable[[int], bytes]) -> None:
        db = self._db
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version in (0, WITHOUT_CHAIN):
            self._begin(version, key, random)
        elif version != VERSION:
            raise JournalDamaged(
                f"{self.path}: a journal of version {version}; this driver writes version {VERSION}",
                "Update the driver, or begin a new journal.",
            )
        found = self._get("chain_id")
        if found is None:
            raise JournalDamaged(f"{self.path}: the journal's chain has no id")
        self.chain = JournalChain(db, found.hex(), key)
        """The chain of the journal's rows."""

    def _begin(self, version: int, key: PcKey, random: Callable[[int], bytes]) -> None:
        """The tables of a new journal, or the chain of one that was written without; all or nothing."""
        db, chain_id = self._db, random(16)
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in f"{'' if version else _TABLES}{CHAIN_TABLES}".split(";\n"):
                if statement.strip():
                    db.execute(statement)
            db.execute(_PUT, ("chain_id", chain_id))
            if version == WITHOUT_CHAIN:
                JournalChain(db, chain_id.hex(), key).take_over(db, time.time_ns() // 1000)
            db.execute(f"PRAGMA user_version={VERSION}")
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _bind(self, serial: bytes | None, random: Callable[[int], bytes]) -> None:
        bound = self._get("serial")
        if serial is not None and bound is not None and bound != serial:
            raise JournalDamaged(f"{self.path}: this is the journal of {bound!r}, not of {serial!r}")
        if serial is not None and bound is None:
            self._put("serial", serial)
        if self._get("host_id") is None:
            self._put("host_id", random(8))

    def close(self) -> None:
        """Close the files and release the lock."""
        if self._pid != os.getpid():
            return  # the files belong to the parent process
        with self._lock, self._read_lock:
            self._reading.close()
            self._db.close()
            self._let_go()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    # -- what this host is ----------------------------------------------------------------------

    @property
    def host_id(self) -> bytes:
        """The id by which the device knows this host; it stays the same as long as this file exists."""
        found = self._get("host_id")
        assert found is not None
        return found

    def numbers(self) -> "StoredNumbers":
        """The source of command numbers; it never returns a number twice."""
        return StoredNumbers(self)

    def position(self) -> tuple[bytes, int, int] | None:
        """The last event or gap on disk: (memory id, boot id, n); None if there is none."""
        row = self._one("SELECT memory_id, boot_id, n, is_gap FROM events ORDER BY id DESC LIMIT 1")
        if row is None:
            return None
        memory_id, boot_id, n, is_gap = row
        return memory_id, boot_id, n - 1 if is_gap else n

    # -- writing --------------------------------------------------------------------------------

    def write(self, batch: JournalBatch, at_us: int) -> int | None:
        """Put it on disk together with ``ended``, all or none; the newest row's id, if there is a new one.

        JournalBusy if another program holds the write lock for too long, JournalFull and JournalDamaged as
        they are named.
        """
        done = self._committed  # by an earlier call that failed after its COMMIT: nothing is written twice
        events = [each for each in batch.events if not any(each is other for other in done.events)]
        commands = [each for each in batch.commands if not any(each is other for other in done.commands)]
        rows = [_row(memory_id, each, at_us) for memory_id, each in events]
        ended = dict(self.ended)
        last: int | None = None
        with self.sql() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                if batch.reserve is not None:
                    db.execute(_PUT, ("next_number", str(batch.reserve).encode()))
                db.executemany(f"INSERT INTO events ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
                db.executemany(
                    "INSERT INTO commands (number, message, body, memory_id, at_us, outcome) "
                    "VALUES (?,?,?,?,?,?)",
                    [(c.number, c.message, c.body, c.memory_id, c.at_us, c.outcome) for c in commands],
                )
                outcomes = {
                    number: outcome
                    for number, outcome in ended.items()
                    if db.execute(
                        "UPDATE commands SET outcome = ? WHERE number = ? AND outcome IS NOT ?",
                        (outcome, number, outcome),
                    ).rowcount
                }
                if batch.events:
                    (last,) = db.execute("SELECT MAX(id) FROM events").fetchone()
                head = self.chain.head
                if rows or commands or outcomes:
                    first_id = 0 if last is None else last - len(rows) + 1
                    head = self.chain.append(db, rows, first_id, commands, outcomes, at_us)
                db.execute("COMMIT")
                self._committed = batch
                self.chain.head = head
            except BaseException:  # whatever it is: a transaction left open would refuse every later batch
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        for number, outcome in ended.items():
            if self.ended.get(number) == outcome:
                del self.ended[number]
        self._committed = JournalBatch()
        return last

    def append(self, told: Sequence[UnsavedEvent], at_us: int) -> int:
        """Put events and gaps on disk, all or none; the newest row's id."""
        last = self.write(JournalBatch(list(told)), at_us)
        return self.last_id() if last is None else last

    # -- events ---------------------------------------------------------------------------------

    def after(self, id: int, limit: int = PAGE) -> list[JournalEntry]:
        """The rows after one, in order."""
        rows = self._all(f"SELECT id, {_COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?", (id, limit))
        return [_entry(*row) for row in rows]

    def last_id(self) -> int:
        """The newest row's id; 0 if there is none."""
        row = self._one("SELECT MAX(id) FROM events")
        return 0 if row is None or row[0] is None else int(row[0])

    def entries(self) -> Iterator[JournalEntry]:
        """Everything, from the first row on."""
        at = 0
        while page := self.after(at):
            yield from page
            at = page[-1].id

    def reader_position(self, reader: str) -> int:
        """The id of the last row that a named reader has read; 0 for a new reader."""
        row = self._one("SELECT id FROM readers WHERE name = ?", (reader,))
        return 0 if row is None else int(row[0])

    def set_reader_position(self, reader: str, id: int) -> None:
        """Store that a named reader has read all rows up to this one."""
        self._do("INSERT OR REPLACE INTO readers (name, id) VALUES (?, ?)", (reader, id))

    # -- commands -------------------------------------------------------------------------------

    def commands(self, open_only: bool = False) -> list[CommandRecord]:
        """Commands in the order of their numbers; optionally only those without a known outcome."""
        return self._commands("WHERE outcome IS NULL" if open_only else "", open_only)

    def command(self, number: int) -> CommandRecord | None:
        """The command with this number."""
        found = self._commands("WHERE number = ?", False, number)
        return found[0] if found else None

    def _commands(self, where: str, open_only: bool, *values: object) -> list[CommandRecord]:
        ended = dict(self.ended)  # before the rows: what is written meanwhile is in one of the two
        rows = self._all(
            f"SELECT number, message, body, memory_id, at_us, outcome FROM commands {where} ORDER BY number",
            values,
        )
        found = [
            CommandRecord(number, message, body, memory_id, at_us, outcome or ended.get(number))
            for number, message, body, memory_id, at_us, outcome in rows
        ]
        return [each for each in found if each.outcome is None] if open_only else found

    # -- SQL ------------------------------------------------------------------------------------

    def reserved(self) -> int:
        """The first number that was never reserved."""
        return int(self._get("next_number") or b"1")

    @contextlib.contextmanager
    def sql(self) -> "Iterator[sqlite3.Connection]":
        """The database, locked for this thread. Errors of SQLite are raised as JournalError."""
        self._check_process()
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as error:
                raise _named(error, self.path) from error
            except EvidenceError as error:
                raise JournalDamaged(f"{self.path}: {error}", error.advice) from error

    def _get(self, name: str) -> bytes | None:
        row = self._one("SELECT value FROM meta WHERE name = ?", (name,))
        return None if row is None else bytes(row[0])

    def _put(self, name: str, value: bytes) -> None:
        self._do(_PUT, (name, value))

    def _check_process(self) -> None:
        """SQLite's connections and this journal's locks do not survive a fork."""
        if self._pid != os.getpid():
            raise Forked(f"{self.path or 'the journal'} belongs to process {self._pid}")

    def _do(self, sql: str, values: tuple[object, ...]) -> None:
        with self.sql() as db:
            db.execute(sql, values)

    def _one(self, sql: str, values: tuple[object, ...] = ()) -> tuple[Any, ...] | None:
        rows = self._all(sql, values)
        return rows[0] if rows else None

    def _all(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        self._check_process()
        with self._read_lock:
            try:
                return self._reading.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise _named(error, self.path) from error


class StoredNumbers(CommandNumbers):
    """Numbers for commands. One may be sent when it is below ``reserved``, which is on disk."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal.host_id, journal.reserved())
        self.reserved = self.next

    def left(self) -> int:
        """How many reserved numbers are left."""
        return max(self.reserved - self.next, 0)

    def ahead(self) -> int:
        """The end of the next reservation: NUMBERS_AT_ONCE ahead, so that a crash skips no more."""
        return self.next + NUMBERS_AT_ONCE

    def are_few(self) -> bool:
        """Whether more numbers should be reserved now."""
        return self.left() < NUMBERS_AT_ONCE // 2


def _row(memory_id: bytes, each: EventReceived | EventGap, at_us: int) -> tuple[object, ...]:
    if isinstance(each, EventGap):
        boot_id, n = each.before
        return (memory_id, boot_id, n, 1, 0, None, 0, each.reason, b"", each.size, *each.after, at_us)
    utc = each.utc_s * 1000 + each.utc_ms if each.quality else None
    return (
        memory_id, each.boot_id, each.n, 0, each.ticks_ms, utc, each.quality, each.message, each.body, None,
        None, None, at_us,
    )  # fmt: skip


def _entry(id: int, *row: Any) -> JournalEntry:
    gap_from = None if row[10] is None else (row[10], row[11])
    return JournalEntry(*(id, *row[:3], bool(row[3]), *row[4:10], gap_from, row[12]))


def _hold(path: Path) -> sqlite3.Connection:
    """Lock the file beside a journal; PortBusy names the program that holds it."""
    try:
        return hold(path)
    except FileHeld as error:
        raise PortBusy(f"{path.name} is in use by {error}") from error
    except sqlite3.Error as error:
        raise _named(error, path) from error
    except OSError as error:  # no place is left for another file, or the folder takes none
        raise JournalFull(f"{path}: {error}") from error


def _named(error: sqlite3.Error, path: Path | None) -> JournalError:
    text = f"{path or 'journal'}: {error}"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY):
        return JournalFull(text)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalBusy(text)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT):
        return JournalDamaged(text)
    return JournalError(text)
