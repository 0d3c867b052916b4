"""Reading a journal file without holding it: also while another program writes it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sabot_driver.errors import JournalDamaged, JournalMissing
from sabot_driver.journal import CommandRecord, JournalEntry

_EVENTS = (
    "SELECT id, memory_id, boot_id, n, is_gap, ticks_ms, utc_ms, quality, message, body, gap_size, "
    "from_boot, from_n, at_us FROM events WHERE at_us >= ?"
)
_COMMANDS = "SELECT number, message, body, memory_id, at_us, outcome FROM commands ORDER BY number"


def _open(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise JournalMissing(f"{path}: there is no such journal")
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def read_entries(path: Path, since_us: int = 0, message: int | None = None) -> Iterator[JournalEntry]:
    """The rows of a journal in order: those that came since a moment, those of one message.

    JournalMissing if there is no such file, JournalDamaged if it cannot be read.
    """
    query, values = _EVENTS, [since_us]
    if message is not None:
        query, values = query + " AND NOT is_gap AND message = ?", [since_us, message]
    try:
        with closing(_open(path)) as db:
            for row in db.execute(query + " ORDER BY id", values):
                gap_from = None if row[11] is None else (row[11], row[12])
                yield JournalEntry(
                    row[0], bytes(row[1]), row[2], row[3], bool(row[4]), row[5], row[6], row[7], row[8],
                    bytes(row[9]), row[10], gap_from, row[13],
                )  # fmt: skip
    except sqlite3.Error as error:
        raise JournalDamaged(f"{path}: {error}") from error


def read_commands(path: Path) -> list[CommandRecord]:
    """The commands that a journal has, oldest first; errors as ``read_entries``."""
    try:
        with closing(_open(path)) as db:
            return [CommandRecord(*row) for row in db.execute(_COMMANDS)]
    except sqlite3.Error as error:
        raise JournalDamaged(f"{path}: {error}") from error


def read_serial(path: Path) -> bytes | None:
    """The serial number of the device whose journal this is; None before its first session."""
    try:
        with closing(_open(path)) as db:
            row = db.execute("SELECT value FROM meta WHERE name = 'serial'").fetchone()
            return None if row is None else bytes(row[0])
    except sqlite3.Error as error:
        raise JournalDamaged(f"{path}: {error}") from error
