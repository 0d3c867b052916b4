"""Which table's record a command reads: by the table's name, by a file, or the only one there is."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import table_names
from sabot_driver import Client
from sabot_driver.errors import SabotError
from sabot_driver.serial_numbers import format_serial
from sabot_session.errors import RecordFailed, RecordMissing
from sabot_session.record import RecordReader, SqliteRecord
from sabot_session.record_opening import has_lost_journal, open_record, rules_in_play
from sabot_table.ruleset import RuleSet

QUIET_S = 0.5  # a device that has told nothing for so long has told everything
USUAL_RULES = "md-three-card-baccarat"
"""The rule set of a table that has none yet."""


class SeveralRecords(SabotError):
    """More than one table has a record here, and the command names none."""


@dataclass(frozen=True)
class RecordOptions:
    """The options that say which record."""

    table: str | None
    file: Path | None


def record_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--table``, ``--record`` and ``--json``. The command gets the first two as ``chosen``."""

    @wraps(command)
    def call(*args: Any, table: str | None, record: Path | None, **given: Any) -> Any:
        return command(*args, chosen=RecordOptions(table, record), **given)

    wrapped: Callable[..., Any] = call
    wrapped = click.option(
        "--record", type=click.Path(dir_okay=False, path_type=Path), help="a table's record, or a copy of one"
    )(wrapped)
    wrapped = click.option("--table", metavar="NAME", shell_complete=table_names, help="a table's name")(
        wrapped
    )
    return json_option(wrapped)


def find_record(state: CliContext, chosen: RecordOptions) -> Path:
    """The path of the record; `RecordMissing` or `SeveralRecords` if it is not clear which."""
    if chosen.file is not None and chosen.table is not None:
        raise click.UsageError("--record and --table exclude each other")
    if chosen.file is not None:
        return chosen.file
    files = state.user_files
    if chosen.table is not None:
        entry = files.table(chosen.table)
        path = files.table_record(entry)
        if path is None:
            raise RecordMissing(f"the table '{entry.name}' has no device, so it has no record")
        return path
    there = files.records()
    if not there:
        raise RecordMissing("this computer has no table's record")
    if len(there) > 1:
        names = ", ".join(str(each) for each in there)
        raise SeveralRecords(
            f"there are {len(there)} records: {names}", "Say which: --table NAME or --record FILE."
        )
    return there[0]


def read_record(state: CliContext, chosen: RecordOptions) -> RecordReader:
    """The record, to read; the table may be running meanwhile."""
    return RecordReader(find_record(state, chosen))


def rules_of_record(path: Path | None) -> str | None:
    """The name of the rule set under which the table of a record is open; None if it is closed or new."""
    if path is None or not path.exists():
        return None
    try:
        with RecordReader(path) as reader:
            return rules_in_play(reader)
    except RecordFailed:
        return None  # opening it says what is wrong


def wait_until_told(client: Client) -> None:
    """Wait until the device has told every event that it still has."""
    for _ in client.events(0, timeout=QUIET_S):
        pass


def open_tables_record(
    state: CliContext, client: Client, path: Path | None, rules: RuleSet, takes_over: bool = False
) -> SqliteRecord:
    """The record of a table, ready for a session; an older one is taken over, and that is told.

    ``takes_over``: another computer ran the table. A journal that was put aside, or lost, is told too: the
    record goes on after everything that the device still tells.
    """
    journal = client.journal.path
    own = journal is None or path is None or path.stem == f"{journal.stem}.table"
    anew = has_lost_journal(path, client.journal, format_serial(client.identity.serial))
    if anew:
        wait_until_told(client)
        words = "this device's journal began anew; the record goes on with what the machine says now"
        state.output.tell("journal_anew", words)
    record, migrated = open_record(
        path, rules, client.journal, int(time.time()), used_before=not own or takes_over, journal_anew=anew
    )
    if migrated is not None:
        words = f"the record of an older program was taken over: {migrated.rows} rows; its file is kept"
        state.output.tell("migrated", f"{words} as {migrated.kept.name}", kept=str(migrated.kept))
    return record


def checkpoint_lines(client: Client) -> list[str]:
    """What the floor keeps when a table closes: the newest signed lines of the device's journal."""
    heads = [client.journal.chain.seen(), client.journal.chain.head]
    return [each.line() for each in heads if each is not None]
