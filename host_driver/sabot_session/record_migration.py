"""Taking over a record of version 1, which `sabot play` wrote before there was a session.

Version 1 has a log of who did what, the saved procedure, and the shuffles. Its log lines become rows of the
kind ``logged_before``, marked as the program's: the older program authenticated nobody. Shuffles keep their
commitments, nonces and results. The old file stays beside the new one, whole, under another name.

The new file is complete on disk before it takes the old one's name, so a cut at any instant leaves one or the
other.
"""

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sabot_driver.held_files import FileHeld, hold
from sabot_driver.private_files import prepare, sync_folder
from sabot_session.canonical import row_bytes
from sabot_session.errors import (
    MigrationRefused,
    RecordBusy,
    RecordDamaged,
    RecordFailed,
    RecordHeld,
    RecordMissing,
)
from sabot_session.record import PROGRAM, create_tables, named, place_of
from sabot_session.row_data import LoggedBefore, RecordMigrated
from sabot_session.row_kinds import check_row
from sabot_session.rows import NumberedRow, Row, SavedSession

OLD_VERSION = 1

Convert = Callable[[str, int], SavedSession | None]
"""The saved session for version 1's saved procedure and its place in the journal; None: begin without one."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration took over, and where the old file is."""

    rows: int
    shuffles: int
    kept: Path


def migrate(path: Path, convert: Convert, at_s: int) -> Migrated:
    """Replace a record of version 1 by one of this version, with a copy of the old file kept beside it.

    `MigrationRefused`, with nothing changed, while a round is open, for any other version, and if the saved
    procedure cannot be read. `RecordHeld` if a program uses the record.
    """
    if not path.is_file():
        raise RecordMissing(f"{path}: there is no such record")
    path = path.resolve()
    try:
        with closing(hold(path)):
            return _migrate(path, convert, at_s)
    except FileHeld as error:
        raise RecordHeld(f"{path.name} is in use by {error}") from error
    except sqlite3.Error as error:
        raise named(error, path) from error
    except OSError as error:
        if isinstance(error, RecordFailed):
            raise
        raise RecordFailed(f"{path}: {error}") from error


def _migrate(path: Path, convert: Convert, at_s: int) -> Migrated:
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        _check(old, path)
        saved = old.execute("SELECT state, at FROM saved").fetchone()
        _refuse_open_round(saved, path)
        log = old.execute("SELECT at_s, who, role, what FROM log ORDER BY id").fetchall()
        shuffles = old.execute(
            "SELECT memory_id, shuffle_id, deck_id, commitment, nonce, seed, wrong FROM shuffles"
        ).fetchall()
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        kept, sha256 = _keep_copy(path)
    if path.with_name(path.name + "-wal").exists():
        raise RecordBusy(f"{path}: another program has the record open")
    rows = [
        Row("logged_before", when, PROGRAM, LoggedBefore(what=what, who=who, role=role).to_json())
        for when, who, role, what in log
    ]
    about = RecordMigrated(version=OLD_VERSION, rows=len(rows), kept=kept.name, sha256=sha256)
    rows.append(Row("record_migrated", at_s, PROGRAM, about.to_json()))
    session = None if saved is None else convert(saved[0], saved[1])
    new = _write(path, rows, session, shuffles)
    new.replace(path)
    sync_folder(path.parent)
    return Migrated(len(rows), len(shuffles), kept)


def _check(old: sqlite3.Connection, path: Path) -> None:
    (version,) = old.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version != OLD_VERSION or not {"log", "saved", "shuffles"} <= tables:
        raise MigrationRefused(
            f"{path}: not a record of version {OLD_VERSION}",
            "Only records of that version are migrated; check which file this is.",
        )
    (state,) = old.execute("PRAGMA integrity_check").fetchone()
    if state != "ok":
        raise RecordDamaged(f"{path}: {state}")


def _refuse_open_round(saved: tuple[str, int] | None, path: Path) -> None:
    if saved is None:
        return
    try:
        memory = json.loads(saved[0])
        open_round = memory["round"]
    except (ValueError, KeyError, TypeError) as error:
        raise MigrationRefused(
            f"{path}: its saved procedure cannot be read, so a round may be open: {error!r}",
            "Keep the file for whoever examines it, move it away, and open the table with new cards.",
        ) from error
    if open_round is not None:
        raise MigrationRefused(f"{path}: round {open_round['round_id']} is open")


def _keep_copy(path: Path) -> tuple[Path, str]:
    """A copy of the whole old database; the same one if an earlier try made it."""
    number = 0
    while True:
        number += 1
        kept = path.with_name(f"{path.name}.v{OLD_VERSION}{'' if number == 1 else f'-{number}'}")
        if not kept.exists():
            break
        if _sha256(kept) == _sha256(path):
            return kept, _sha256(kept)
    new = kept.with_name(kept.name + ".new")
    new.unlink(missing_ok=True)
    prepare(new)
    new.write_bytes(path.read_bytes())
    _sync(new)
    new.replace(kept)
    sync_folder(path.parent)
    return kept, _sha256(kept)


def _write(
    path: Path, rows: list[Row], session: SavedSession | None, shuffles: list[tuple[object, ...]]
) -> Path:
    """The new record, complete and on disk, under a name of its own."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    prepare(new)
    with closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=FULL")
        db.execute("BEGIN")
        create_tables(db, secrets.token_hex(16), place_of(new))
        _insert_rows(db, [check_row(each) for each in rows])
        if session is not None:
            db.execute("INSERT INTO saved VALUES (1, ?, ?)", (session.state, session.journal_at))
        db.executemany("INSERT INTO shuffles VALUES (?,?,?,?,?,?,?)", shuffles)
        db.execute("COMMIT")
    _sync(new)
    return new


def _insert_rows(db: sqlite3.Connection, rows: list[Row]) -> None:
    """Rows of a new record. Their chain begins when the record is opened."""
    for number, row in enumerate(rows, 1):
        db.execute(
            "INSERT INTO rows (number, body) VALUES (?, ?)",
            (number, row_bytes(NumberedRow(number, row)).decode()),
        )
        if row.act_id:
            db.execute("INSERT OR IGNORE INTO acts VALUES (?, ?)", (row.act_id, number))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
