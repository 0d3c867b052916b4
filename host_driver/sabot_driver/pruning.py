"""What a journal holds, and how to delete old rows so that the file does not grow without limit.

Pruning cuts off the oldest part of the journal's chain: rows that came before a given time, up to the first
row that did not. A signed checkpoint says where the cut is (docs/evidence.md). These rows stay, however old
they are:

- the newest row: it is the position from which the device replays events;
- events that a named reader has not read, and what was written after them;
- commands without a known outcome: the driver still has to resolve them.

Row ids and command numbers are never used again. If another program has the journal open, PortBusy is raised.
"""

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sabot_driver.errors import JournalDamaged, JournalMissing
from sabot_driver.journal import Journal
from sabot_driver.private_files import BESIDE, make_folder, sync_folder
from sabot_driver.serial_numbers import format_serial

_UNREAD = (
    "SELECT COUNT(*) FROM events WHERE at_us < ? AND id < (SELECT MAX(id) FROM events) "
    "AND id > (SELECT MIN(id) FROM readers)"
)
_FIRST_TO_STAY = """
SELECT MIN(link) FROM chain LEFT JOIN events ON kind IN ('E', 'e') AND events.id = chain.id
    LEFT JOIN commands ON kind IN ('C', 'c') AND number = chain.id
WHERE (events.id IS NOT NULL AND events.id < (SELECT MAX(id) FROM events)
    AND (events.at_us >= :before OR events.id > (SELECT COALESCE(MIN(id), 9223372036854775807) FROM readers)))
    OR (commands.outcome IS NOT NULL AND commands.at_us >= :before)
    OR link = (SELECT MAX(link) FROM chain)
"""
"""The first link whose row is recent, or unread. The newest link always stays."""
_WHOLE_BEFORE = "(SELECT id FROM chain WHERE kind IN {kinds} GROUP BY id HAVING MAX(link) <= :cut)"
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"  # the write-ahead log
_DELETE_EVENTS = (
    "DELETE FROM events WHERE id < (SELECT MAX(id) FROM events) AND id IN "
    + _WHOLE_BEFORE.format(kinds="('E', 'e')")
)
_DELETE_COMMANDS = "DELETE FROM commands WHERE outcome IS NOT NULL AND number IN " + _WHOLE_BEFORE.format(
    kinds="('C', 'c', 'O')"
)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal holds."""

    serial: str | None
    events: int
    oldest_us: int | None
    """When the driver wrote the oldest row, UTC in microseconds."""
    newest_us: int | None
    commands: int
    open_commands: int
    """Commands without a known outcome."""
    unread: dict[str, int]
    """For each named reader, the number of rows it has not read."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were deleted, or would be in a dry run."""

    events: int
    commands: int
    unread: int
    """Old events that were kept because a reader has not read them."""


def open_journal(path: Path) -> Journal:
    """Open an existing journal; JournalMissing if there is none, PortBusy if another program has it open."""
    if not path.exists():
        raise JournalMissing(f"{path}: there is no such journal")
    return Journal(path)


def contents(journal: Journal) -> Contents:
    """What a journal holds."""
    with journal.sql() as db:
        events, oldest, newest = db.execute("SELECT COUNT(*), MIN(at_us), MAX(at_us) FROM events").fetchone()
        commands, ended = db.execute("SELECT COUNT(*), COUNT(outcome) FROM commands").fetchone()
        unread = {
            name: db.execute("SELECT COUNT(*) FROM events WHERE id > ?", (id,)).fetchone()[0]
            for name, id in db.execute("SELECT name, id FROM readers ORDER BY name").fetchall()
        }
        serial = db.execute("SELECT value FROM meta WHERE name = 'serial'").fetchone()
    text = None if serial is None else format_serial(bytes(serial[0]))
    return Contents(text, events, oldest, newest, commands, commands - ended, unread, size_of(journal.path))


def prune(journal: Journal, before_us: int, dry_run: bool = False) -> Pruned:
    """Delete the rows from before a time that are not needed any more; all of them, or none on an error."""
    with journal.sql() as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            (unread,) = db.execute(_UNREAD, (before_us,)).fetchone()
            (first,) = db.execute(_FIRST_TO_STAY, {"before": before_us}).fetchone()
            cut = {"cut": 0 if first is None else first - 1}
            events = db.execute(_DELETE_EVENTS, cut).rowcount
            commands = db.execute(_DELETE_COMMANDS, cut).rowcount
            head = journal.chain.head
            if events or commands:
                head = journal.chain.cut(db, cut["cut"], time.time_ns() // 1000, events, commands)
            db.execute("ROLLBACK" if dry_run else "COMMIT")
            if not dry_run:
                journal.chain.head = head
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
        if not dry_run and (events or commands):
            for statement in ("VACUUM", _EMPTY_LOG):
                with contextlib.suppress(sqlite3.OperationalError):  # no room: it shrinks another time
                    db.execute(statement)
    return Pruned(events, commands, unread)


def forget_reader(journal: Journal, reader: str) -> bool:
    """Remove a named reader, so that its unread rows can be pruned; False if there is no such reader."""
    with journal.sql() as db:
        return db.execute("DELETE FROM readers WHERE name = ?", (reader,)).rowcount > 0


def put_aside(path: Path, folder: Path) -> Path:
    """Move a journal into a folder, with the date in its name, and return where it is now.

    JournalMissing if there is none, PortBusy if another program has it open. A damaged journal is moved too.
    """
    if not path.exists():
        raise JournalMissing(f"{path}: there is no such journal")
    with (
        contextlib.suppress(JournalDamaged),
        Journal(path) as held,
        held.sql() as db,
        contextlib.suppress(sqlite3.OperationalError),  # no room: the write-ahead log is moved with it
    ):
        db.execute(_EMPTY_LOG)
    make_folder(folder)
    to = folder / f"{path.stem}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S')}{path.suffix}"
    if to.exists():
        raise JournalMissing(f"{to}: a journal was put aside there in this very second", "Try again.")
    for end in ("", *BESIDE):
        beside = path.with_name(path.name + end)
        if beside.exists():
            beside.rename(to.with_name(to.name + end))
    sync_folder(folder)
    return to


def size_of(path: Path | None) -> int:
    """The size of a journal on disk in bytes; 0 for a journal in memory."""
    if path is None:
        return 0
    files = (path, path.with_name(path.name + "-wal"))
    return sum(each.stat().st_size for each in files if each.exists())
