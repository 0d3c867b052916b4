"""Reading a journal file without holding it: also while another program writes it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sabot_driver.errors import JournalDamaged, JournalMissing
from sabot_driver.journal import CommandRecord, JournalEntry

_EVENTS = (
    "SELECT id, memory_id, boot_id, n, is_gap, ticks_ms, utc_ms, quality, message, body, gap_size, "
    "from_boot, from_n, at_us FROM events WHERE at_us >= ?"
)
END_US = 253_402_300_800_000_000  # the year 10000, which no calendar of Python has
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
                if not _is_event(row):
                    raise JournalDamaged(f"{path}: event {row[0]!r} has values that no program writes")
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
            found = [CommandRecord(*row) for row in db.execute(_COMMANDS)]
    except sqlite3.Error as error:
        raise JournalDamaged(f"{path}: {error}") from error
    for each in found:
        if not (
            _numbers(each.number, each.message) and _is_time(each.at_us) and isinstance(each.body, bytes)
        ):
            raise JournalDamaged(f"{path}: command {each.number!r} has values that no program writes")
    return found


def _is_event(row: tuple[Any, ...]) -> bool:
    """Whether the cells have the types of a journal: SQLite stores others too."""
    id, memory_id, boot_id, n, is_gap, ticks_ms, utc_ms, quality, message, body, *gap, at_us = row
    return (
        _numbers(id, boot_id, n, is_gap, ticks_ms, quality, message)
        and all(each is None or _numbers(each) for each in gap)
        and isinstance(memory_id, bytes)
        and isinstance(body, bytes)
        and _is_time(at_us)
        and (utc_ms is None or (_numbers(utc_ms) and _is_time(utc_ms * 1000)))
    )


def _numbers(*cells: object) -> bool:
    return all(isinstance(each, int) for each in cells)


def _is_time(at_us: object) -> bool:
    return isinstance(at_us, int) and 0 <= at_us < END_US


def read_serial(path: Path) -> bytes | None:
    """The serial number of the device whose journal this is; None before its first session."""
    try:
        with closing(_open(path)) as db:
            row = db.execute("SELECT value FROM meta WHERE name = 'serial'").fetchone()
    except sqlite3.Error as error:
        raise JournalDamaged(f"{path}: {error}") from error
    if row is not None and not isinstance(row[0], bytes):
        raise JournalDamaged(f"{path}: its serial number is not bytes")
    return None if row is None else row[0]
