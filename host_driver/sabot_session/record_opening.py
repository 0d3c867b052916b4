"""Opening a table's record for a session: an older record is taken over, other rules begin a new session.

A record outlives programs, rule sets and machines. The saved session in it belongs to one rule set. Under
another one a new session begins in the same record, if the table is closed; its row numbers, deck numbers and
open countersignatures continue.
"""

import json
from pathlib import Path
from typing import Any

from sabot_driver.errors import SabotError
from sabot_driver.journal import Journal
from sabot_protocol.host.messages import Booted
from sabot_session.errors import RecordFailed, RecordVersion
from sabot_session.record import RecordReader, SqliteRecord
from sabot_session.record_migration import Migrated, migrate
from sabot_session.rows import SavedSession
from sabot_session.session_state import SessionState, restore, save
from sabot_table.procedure.memory import TableMemory
from sabot_table.ruleset import RuleSet

CLOSED = "closed"


class TableInPlay(SabotError):
    """The table is open under another rule set."""

    advice = "Continue under the rule set that the table was opened with, or close the table with it first."


def open_record(
    path: Path | None,
    rules: RuleSet,
    journal: Journal,
    at_s: int,
    used_before: bool = False,
    journal_anew: bool = False,
) -> tuple[SqliteRecord, Migrated | None]:
    """The record of a table, ready for a session under these rules, and what a migration took over.

    None as path keeps the record in memory. ``used_before``: the device was at another table, so that a new
    record begins after everything that its journal has; the device is asked for its state. ``journal_anew``:
    the record's journal is gone (`has_lost_journal`), and the new one has what the device still told.

    `TableInPlay` if the table is open under other rules; `MigrationRefused` and the errors of `SqliteRecord`
    as they are named.
    """
    migrated = None
    try:
        record = SqliteRecord(path)
    except RecordVersion as error:
        if path is None or error.version != 1:
            raise
        migrated = migrate(path, lambda state, at: None, at_s)
        record = SqliteRecord(path)
    join_chains(record, journal)
    try:
        _prepare(record, rules, journal, used_before, journal_anew)
    except BaseException:
        record.close()
        raise
    return record, migrated


def has_lost_journal(path: Path | None, journal: Journal, serial: str) -> bool:
    """Whether a record has taken in more of its device's events than the journal has.

    Then the journal was put aside or lost, and a new one counts from 1. The session would skip its events.
    """
    if path is None or not path.exists():
        return False
    try:
        with RecordReader(path) as reader:
            saved = reader.load()
    except RecordFailed:
        return False  # opening it says what is wrong
    if saved is None or json.loads(saved.state)["device"].get("serial") != serial:
        return False
    return saved.journal_at > journal.last_id()


def join_chains(record: SqliteRecord, journal: Journal) -> None:
    """Have each file's checkpoints name the other's newest row: one that is put back alone is found then."""
    record.chain.seen = lambda: journal.chain.head
    journal.chain.seen = lambda: record.chain.head


def rules_in_play(record: RecordReader) -> str | None:
    """The name of the rule set under which the table is open; None if it is closed or new."""
    saved = record.load()
    if saved is None or _memory(saved).get("state") == CLOSED:
        return None
    opened = record.rows_of_kind("open_table")
    return str(opened[-1].row.data["ruleset"]) if opened else None


def _memory(saved: SavedSession) -> dict[str, Any]:
    found = json.loads(saved.state)["memory"]
    assert isinstance(found, dict)
    return found


def _prepare(
    record: SqliteRecord, rules: RuleSet, journal: Journal, used_before: bool, journal_anew: bool
) -> None:
    saved, newest = record.load(), record.newest()
    if saved is None:
        memory = TableMemory(rules.sha256, method=rules.dealing.methods[0])
        place = _newest(journal) if used_before else _this_start(journal)
        begun = SavedSession(save(SessionState(memory, rows=newest)), place)
        record.commit([], begun)
        return
    place = _after_rows(record, journal) if journal_anew else saved.journal_at
    memory_before = _memory(saved)
    if memory_before["ruleset_sha256"] != rules.sha256:
        if memory_before["state"] != CLOSED:
            name = rules_in_play(record) or "other rules"
            raise TableInPlay(f"the table is open under {name}, not {rules.name}")
        record.commit([], SavedSession(_other_rules(saved, rules, newest), place))
        return
    state = restore(rules, saved.state)
    if state.rows != newest or journal_anew:  # a row of the record itself: it was moved, or restored
        state.rows = newest
        record.commit([], SavedSession(save(state), place))


def _other_rules(saved: SavedSession, rules: RuleSet, newest: int) -> str:
    """A new session under other rules; what belongs to the table and not to its game stays."""
    before = json.loads(saved.state)
    memory = TableMemory(
        rules.sha256,
        method=rules.dealing.methods[0],
        highest_pack=before["memory"]["highest_pack"],
        newest_s=before["memory"]["newest_s"],
    )
    state = SessionState(
        memory,
        rows=newest,
        next_command=before["next_command"],
        next_need=before["next_need"],
        highest_deck=before["highest_deck"],
        countersign=before["countersign"],
        countersign_words={int(row): words for row, words in before.get("countersign_words", {}).items()},
    )
    text = json.loads(save(state))
    text["device"] = before["device"]  # what its events told; the link coming up asks for the rest
    return json.dumps(text)


def _newest(journal: Journal) -> int:
    """The place of the journal's newest entry."""
    return max((entry.id for entry in journal.entries()), default=0)


def _after_rows(record: SqliteRecord, journal: Journal) -> int:
    """The place in a new journal after the newest event of which the record has a row; 0 if it has none.

    Events after it that made no row are taken in once more: they only tell a state.
    """
    newest = None
    for each in record.all_rows():
        newest = each.row.follows or newest
    if newest is None:
        return 0
    place = 0
    for entry in journal.entries():
        same = not entry.is_gap and entry.memory_id.hex() == newest.memory_id
        if same and (entry.boot_id, entry.n) <= (newest.boot, newest.number):
            place = entry.id
    return place


def _this_start(journal: Journal) -> int:
    """The place in the journal before the newest start of the device: events since then tell its state."""
    found = 0
    for entry in journal.entries():
        if not entry.is_gap and entry.message == Booted.ID:
            found = entry.id - 1
    return found
