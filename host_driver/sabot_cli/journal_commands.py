"""``sabot journal``: what the journals of this computer hold, and letting go of what is old."""

import csv
import json
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from sabot_cli.cli_context import CliContext, F, json_option, verbose_option
from sabot_cli.device_commands import event_fields, tell_event
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK, utc
from sabot_driver import LostEvents, ReceivedEvent
from sabot_driver.journal_reader import read_entries, read_serial
from sabot_driver.pruning import (
    Contents,
    contents,
    forget_reader,
    open_journal,
    prune,
    put_aside,
    size_of,
)
from sabot_driver.received_events import parse_entry
from sabot_driver.serial_numbers import format_serial, parse_serial

DAY_US = 86_400_000_000
CSV_COLUMNS = ("serial", "id", "received_utc", "device_utc", "boot", "n", "name", "fields")
UNITS_S = {"s": 1, "min": 60, "h": 3600, "d": 86400}


NO_JOURNAL = "this computer has no journal; one begins when a program owns a device"


@click.group(cls=Group)
@verbose_option
def journal() -> None:
    """What devices have told this computer, on disk."""


def read_since(context: click.Context, parameter: click.Parameter, text: str | None) -> int:
    """A moment in microseconds of UTC: a local date, a local date and time, or how long ago."""
    if text is None:
        return 0
    ago = re.fullmatch(r"(\d+(?:\.\d+)?) *(s|min|h|d)", text.strip())
    if ago is not None:
        return time.time_ns() // 1000 - round(float(ago[1]) * UNITS_S[ago[2]] * 1e6)
    try:
        return round(datetime.fromisoformat(text.strip()).astimezone().timestamp() * 1e6)
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is no moment; write 2026-11-17, '2026-11-17 20:15', 90min, 6h or 2d"
        ) from None


def which_options(command: F) -> F:
    """``--serial``, ``--table``, ``--file``: which journal is meant."""
    for option in (
        click.option("--file", type=click.Path(path_type=Path), help="a journal anywhere"),
        click.option("--table", metavar="NAME", help="the journal of this table's device"),
        click.option("--serial", metavar="SERIAL", help="the journal of this device; without, of every one"),
    ):
        command = option(command)
    return command


def _which(state: CliContext, serial: str | None, table: str | None, file: Path | None) -> list[Path]:
    """The journals meant: the one that is named, or every one of this computer."""
    if sum(each is not None for each in (serial, table, file)) > 1:
        raise click.UsageError("--serial, --table and --file exclude each other")
    if file is not None:
        return [file]
    if table is not None:
        entry = state.user_files.table(table)
        if entry.serial is None:
            raise click.UsageError(f"the table '{table}' names no device; use --serial")
        return [state.user_files.journal(parse_serial(entry.serial), entry.simulator)]
    if serial is not None:
        machine, emulated = (state.user_files.journal(parse_serial(serial), each) for each in (False, True))
        return [emulated if emulated.exists() and not machine.exists() else machine]
    return state.user_files.journals()


@journal.command("show", epilog=example("sabot journal show"))
@json_option
@which_options
@click.pass_obj
def show(state: CliContext, serial: str | None, table: str | None, file: Path | None) -> int:
    """How much a journal holds, since when, and who has not read it.

    Exit codes: 0 done, 1 there is no such journal, 2 usage, 5 it is damaged.
    """
    paths = _which(state, serial, table, file)
    if not paths and not state.output.as_json:
        click.echo(NO_JOURNAL)
    for path in paths:
        with open_journal(path) as opened:
            there = contents(opened)
        unread = "".join(f", {count} unread by {name}" for name, count in there.unread.items() if count)
        state.output.tell(
            "journal",
            f"{path.name}: {there.events} events since {_day(there)}, {there.commands} commands"
            f" ({there.open_commands} open), {there.bytes / 1e6:.1f} MB{unread}",
            file=str(path),
            serial=there.serial,
            events=there.events,
            oldest=_utc(there.oldest_us),
            newest=_utc(there.newest_us),
            commands=there.commands,
            open_commands=there.open_commands,
            unread=there.unread,
            bytes=there.bytes,
        )
    return OK


@journal.command("events", epilog=example("sabot journal events --since 1d --json"))
@json_option
@which_options
@click.option(
    "--since", metavar="WHEN", callback=read_since, help="2026-11-17, '2026-11-17 20:15', or 90min, 6h, 2d"
)
@click.option("--csv", "as_csv", is_flag=True, help="a table for a spreadsheet, on standard output")
@click.pass_obj
def events(
    state: CliContext, serial: str | None, table: str | None, file: Path | None, since: int, as_csv: bool
) -> int:
    """The events of a journal, decoded; also while another program has the device.

    Times are local for a person, and UTC in JSON and CSV.

    Exit codes: 0 done, 1 there is no such journal, 2 usage, 5 it is damaged.
    """
    if as_csv and state.output.as_json:
        raise click.UsageError("--json and --csv exclude each other")
    rows = csv.writer(sys.stdout) if as_csv else None
    if rows is not None:
        rows.writerow(CSV_COLUMNS)
    paths, count = _which(state, serial, table, file), 0
    for path in paths:
        told = read_serial(path)
        device = None if told is None else format_serial(told)
        for entry in read_entries(path, since):
            count += 1
            event = parse_entry(entry)
            if rows is not None:
                rows.writerow(_csv_row(device, event))
            else:
                tell_event(state.output, event, dated=True, serial=device, id=event.id)
    if not count and rows is None and not state.output.as_json:
        click.echo(NO_JOURNAL if not paths else "no event since then" if since else "no event yet")
    return OK


def _csv_row(device: str | None, event: ReceivedEvent | LostEvents) -> list[object]:
    fields = event_fields(event)
    received = utc(event.received)
    if isinstance(event, LostEvents):
        about = {"reason": fields["reason"], "size": event.size}
        return [device, event.id, received, "", *event.before, event.name, json.dumps(about)]
    about = fields["fields"]
    return [
        device,
        event.id,
        received,
        fields["device_utc"] or "",
        event.boot_id,
        event.n,
        event.name,
        json.dumps(about),
    ]


@journal.command("aside", epilog=example("sabot journal aside --serial SIM00001"))
@json_option
@which_options
@click.pass_obj
def aside(state: CliContext, serial: str | None, table: str | None, file: Path | None) -> int:
    """Put a journal aside, so that the next session begins a new one.

    Nothing is deleted: the file is moved to the folder 'aside' with the date in its name. This computer is
    then a new host to the device. It receives what the device still has, and a gap says what is missing.
    Commands whose end is not known stay open in the old file.

    Exit codes: 0 done, 1 there is no such journal, 2 usage, 6 in use.
    """
    if serial is None and table is None and file is None:
        raise click.UsageError("say which journal: --serial, --table or --file")
    (path,) = _which(state, serial, table, file)
    to = put_aside(path, state.user_files.state / "aside")
    state.output.tell("aside", f"{path.name} is now {to}", file=str(path), aside=str(to))
    return OK


@journal.command("prune", epilog=example("sabot journal prune --keep 30 --dry-run --serial SIM00001"))
@json_option
@click.option(
    "--keep", type=click.FloatRange(0), metavar="DAYS", required=True, help="what came since then stays"
)
@which_options
@click.option("--forget-reader", "reader", metavar="NAME", help="nobody reads under this name any more")
@click.option("--dry-run", is_flag=True, help="only say what would go")
@click.pass_obj
def prune_command(
    state: CliContext,
    keep: float,
    serial: str | None,
    table: str | None,
    file: Path | None,
    reader: str | None,
    dry_run: bool,
) -> int:
    """Let go of events and commands older than so many days, if nobody needs them any more.

    The newest row, events a named reader has not read and commands without a known end always stay. A
    journal that a running program has is refused: stop that program first.

    Exit codes: 0 done, 1 there is no such journal, 2 usage, 5 it is damaged, 6 in use.
    """
    output = state.output
    before_us = time.time_ns() // 1000 - round(keep * DAY_US)
    for path in _which(state, serial, table, file):
        size = size_of(path)
        with open_journal(path) as opened, output.busy(f"pruning {path.name}"):
            if reader is not None and not dry_run:
                forget_reader(opened, reader)
            gone = prune(opened, before_us, dry_run)
        now = size_of(path)
        words = "would go" if dry_run else "are gone"
        kept = f"; {gone.unread} stay because a reader has not read them" if gone.unread else ""
        output.tell(
            "pruned",
            f"{path.name}: {gone.events} events and {gone.commands} commands {words},"
            f" {size / 1e6:.1f} MB before, {now / 1e6:.1f} MB now{kept}",
            file=str(path),
            before=_utc(before_us),
            events=gone.events,
            commands=gone.commands,
            unread=gone.unread,
            bytes_before=size,
            bytes_after=now,
            dry_run=dry_run,
        )
    return OK


def _utc(at_us: int | None) -> str | None:
    return None if at_us is None else utc(datetime.fromtimestamp(at_us / 1e6, UTC))


def _day(there: Contents) -> str:
    if there.oldest_us is None:
        return "ever"
    return datetime.fromtimestamp(there.oldest_us / 1e6, UTC).strftime("%Y-%m-%d")
