"""Captures of the wire, their replay, and the support archive."""

import contextlib
import dataclasses
import hashlib
import io
import json
import logging
import zipfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.progress import Progress

from sabot_cli import doctor as examination
from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import DeviceOptions, device_options, open_device
from sabot_cli.device_commands import event_fields, status_fields, tell_event
from sabot_cli.help_text import example
from sabot_cli.output import OK, Output, plain, utc
from sabot_cli.provenance import device_components
from sabot_cli.written_files import CannotWrite, check_writable
from sabot_driver import Client
from sabot_driver.device_values import name_of, parse_wear
from sabot_driver.errors import SabotError
from sabot_driver.journal_reader import read_commands, read_entries
from sabot_driver.keyring import SIMULATORS
from sabot_driver.private_files import open_new
from sabot_driver.received_events import parse_entry
from sabot_driver.roller_trends import trends
from sabot_driver.serial_numbers import format_serial, parse_serial
from sabot_driver.user_files import TABLE_RECORD, RecordTaken
from sabot_protocol.host.capture import CaptureDamaged, read_capture
from sabot_protocol.host.constructs import parse_frame, parse_payload
from sabot_protocol.host.messages import BY_ID, Counters, FaultRaised, RollerTimes, Trace, Wear
from sabot_protocol.schema import COUNTERS
from sabot_session.record import RecordReader
from sabot_session.row_data import Identified
from sabot_session.row_kinds import data_of

LAST_EVENTS = 1000
LAST_LINES = 10_000
QUIET_S = 1.0  # after so long without an event, the device has told all
HIDDEN = "…"
KEYS = ("key", "wrapped")  # fields that carry one, in clear or hidden under a pad


class BadCapture(SabotError):
    """A capture that cannot be read."""

    advice = "Give a pcapng file that 'sabot capture' or --capture has written."


@click.command(epilog=example("sabot capture --out wire.pcapng --seconds 1 --device sim://"))
@device_options
@click.option("--out", type=click.Path(path_type=Path), required=True, help="the pcapng file")
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True)
@click.pass_obj
def capture(state: CliContext, /, out: Path, seconds: float, options: DeviceOptions) -> int:
    """Write what a device says to a file for Wireshark.

    Exit codes: 0 done, 1 frames are missing, 2 usage, 3 no device, 4 several devices, 5 not verified.
    """
    output = state.output
    chosen = dataclasses.replace(options, capture=out)
    ends = datetime.now(UTC).timestamp() + seconds
    with open_device(state, chosen, owner=False) as client:
        after = 0
        with Progress(console=output.console, disable=output.as_json, transient=True) as progress:
            task = progress.add_task("listening", total=seconds)
            while (left := ends - datetime.now(UTC).timestamp()) > 0:
                for event in client.events(after, timeout=min(left, 0.5)):
                    after = event.id
                    tell_event(output, event)
                progress.update(task, completed=seconds - left)
        tap = client.loop.transport
    frames = tap.frames  # type: ignore[attr-defined]  # the last one closes the session
    output.tell("captured", f"{frames} frames in {out}", file=str(out), frames=frames)
    return OK


@click.command(epilog=example("sabot replay wire.pcapng"))
@json_option
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.pass_obj
def replay(state: CliContext, file: Path) -> int:
    """Show a capture, frame by frame; keys are hidden.

    Exit codes: 0 done, 1 the file is no capture, 2 usage.
    """
    output = state.output
    frames = 0
    first: int | None = None
    try:
        with file.open("rb") as stream:
            for each in read_capture(stream):
                frames += 1
                first = each.at_us if first is None else first
                _tell_frame(output, each.frame, each.at_us, first, each.to_device)
    except CaptureDamaged as error:
        raise BadCapture(f"{file}: {error}") from error
    output.tell("replayed", f"{frames} frames", file=str(file), frames=frames)
    return OK


def _tell_frame(output: Output, framed: bytes, at_us: int, first: int, to_device: bool | None) -> None:
    way = {True: "host → device", False: "device → host", None: "?"}[to_device]
    head = f"{(at_us - first) / 1e6:10.6f}  {way}"
    fields: dict[str, Any] = {"time_us": at_us, "to_device": to_device}
    try:
        parsed = parse_payload(parse_frame(framed))
    except Exception as error:  # noqa: BLE001 - construct raises many kinds
        output.tell("frame", f"{head}  [red]bad frame: {error}[/red]", bad=str(error), **fields)
        return
    header = {name: plain(value) for name, value in parsed.header.items()}
    values = {name: HIDDEN if name in KEYS else plain(value) for name, value in parsed.fields.items()}
    words = " ".join(f"{name}={value}" for name, value in values.items())
    number = f" #{header['request_id']}" if "request_id" in header else ""
    output.tell(
        "frame",
        f"{head}  {parsed.kind}{number} [bold]{parsed.name or ''}[/bold] {words}",
        kind=parsed.kind,
        name=parsed.name,
        header=header,
        fields=values,
        **fields,
    )


@click.command(epilog=example("sabot bundle --out support.zip --device sim://"))
@device_options
@click.option("--out", type=click.Path(path_type=Path), default=Path("sabot-support.zip"), show_default=True)
@click.pass_obj
def bundle(state: CliContext, /, out: Path, options: DeviceOptions) -> int:
    """Gather what support needs in one archive.

    It has no keys, no host ids, and never the order of cards. Without the device it has what this computer
    knows: the journal, the wear that its events tell, and of the table's record the machine's components
    and what was done when, without cards and names.

    Exit codes: 0 written, with or without the device; 1 the file cannot be written, 2 usage.
    """
    output = state.output
    check_writable(out)
    silent = CliContext(Output(as_json=False), state.user_files)
    silent.output.console = type(output.console)(file=io.StringIO())
    parts: dict[str, Any] = {"made.json": {"at": utc(datetime.now(UTC)), "version": version("sabot")}}
    parts["doctor.json"] = [redacted(each) for each in examination.examine(silent, []).all]
    journals = _journals(state, options)
    with _host_log() as lines:
        try:
            with open_device(state, options, owner=False) as client:
                _device_parts(parts, client, options.timeout)
                journals = [state.user_files.journal(client.identity.serial, client.simulator)]
        except SabotError as error:
            logging.getLogger("sabot.bundle").info("the device was not reached: %s", error)
            parts["device.json"] = {"not reached": redacted(str(error)), "error": type(error).__name__}
            output.tell(
                "warning", f"[yellow]the device is not in the archive: {escape(str(error))}[/yellow]",
                message=str(error),
            )  # fmt: skip
    for path in journals:
        if path.exists():
            parts |= _journal_parts(path)
    parts |= _record_parts(state, journals)
    parts["host-log.json"] = [redacted(each) for each in lines]
    try:
        with open_new(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, json.dumps(content, indent=1, ensure_ascii=False))
    except OSError as error:
        raise CannotWrite(f"{out}: {error.strerror}") from error
    output.tell("bundle", f"{out}: {len(parts)} parts", file=str(out), parts=sorted(parts))
    return OK


def _device_parts(parts: dict[str, Any], client: Client, timeout: float) -> None:
    """What the device says of itself."""
    about = client.identity
    parts["device.json"] = {
        "serial": format_serial(about.serial),
        "model": about.model,
        "version": about.version,
        "protocol": [about.major, about.minor],
        "schema": about.schema.hex(),
        "simulator": client.simulator,
    }
    parts["status.json"] = status_fields(client.status(timeout))
    parts["wear.json"] = {each.name: each.value for each in parse_wear(client.ask(Wear(), timeout))}
    parts["components.json"] = device_components(client, timeout)
    values = client.ask(Counters(), timeout).values
    parts["device-counters.json"] = dict(zip(COUNTERS, values, strict=False))
    own = client.loop.connection.protocol.diagnostics.counters()
    parts["host-counters.json"] = dict(zip(COUNTERS, own, strict=False))
    try:
        parts["device-trace.json"] = client.ask(Trace(0), timeout).headers.hex()
    except SabotError as error:
        parts["device-trace.json"] = {"not allowed": str(error)}
    events = islice(client.events(0, timeout=QUIET_S), LAST_EVENTS)  # all that the device keeps
    parts["events.json"] = [redacted(event_fields(each)) for each in events]


def _journals(state: CliContext, options: DeviceOptions) -> list[Path]:
    """The journals of the table that is named, or of all devices, for when the device does not answer."""
    if options.table is not None:
        entry = state.user_files.table(options.table)
        if entry.serial is not None:
            return [state.user_files.journal(parse_serial(entry.serial), entry.simulator)]
    return state.user_files.journals()


def _journal_parts(path: Path) -> dict[str, Any]:
    """A journal's last events and commands."""
    name = path.stem
    try:
        last = deque(read_entries(path), LAST_EVENTS)
        wear = _told_wear(path)
        commands = read_commands(path)[-LAST_EVENTS:]
    except SabotError as error:
        return {f"journal-{name}.json": {"not read": redacted(str(error))}}
    parts: dict[str, Any] = {
        f"journal-{name}.json": [redacted(event_fields(parse_entry(each))) for each in last],
        f"wear-{name}.json": wear,
        f"commands-{name}.json": [
            {
                "number": each.number,
                "request": BY_ID[each.message].NAME if each.message in BY_ID else each.message,
                "at": utc(datetime.fromtimestamp(each.at_us / 1e6, UTC)),
                "outcome": each.outcome,
            }
            for each in commands
        ],
    }
    return parts


def _told_wear(path: Path) -> dict[str, Any]:
    """Wear as far as the journal's events tell it: times at the rollers, and faults by their place."""
    told = map(parse_entry, read_entries(path, message=FaultRaised.ID))
    raised = [getattr(each, "message", None) for each in told]
    places = Counter(name_of(each.place) for each in raised if isinstance(each, FaultRaised))
    rollers = {
        each.roller: {
            "shuffles": len(each.means),
            "first_ms": each.means[0] if each.means else None,
            "last_ms": each.means[-1] if each.means else None,
            "change_percent": each.change_percent,
        }
        for each in trends(read_entries(path, message=RollerTimes.ID))
    }
    return {"by": "events of the journal", "rollers": rollers, "faults": dict(places)}


def _record_parts(state: CliContext, journals: Sequence[Path]) -> dict[str, Any]:
    """Size and hash of the records of the tables that have these devices."""
    parts: dict[str, Any] = {}
    for path in journals:
        with contextlib.suppress(RecordTaken):  # it is another table's, and told with that one
            record = state.user_files.record_of(parse_serial(path.stem), path.parent.name == SIMULATORS)
            if record.exists():
                digest = hashlib.sha256(record.read_bytes()).hexdigest()
                name = record.name.removesuffix(TABLE_RECORD)
                about = {"bytes": record.stat().st_size, "sha256": digest}
                parts[f"record-{name}.json"] = {**about, **_record_rows(record)}
    return parts


def _record_rows(path: Path) -> dict[str, Any]:
    """The last rows of a record without their data, and the components of the machine as it last told them.

    No card, wager or name of a person is in it.
    """
    try:
        with RecordReader(path) as record:
            last = list(record.all_rows(max(0, record.newest() - LAST_EVENTS)))
            told = [data_of(each.row) for each in record.rows_of_kind("identify")]
    except SabotError as error:
        return {"not read": redacted(str(error))}
    machine = next((each for each in reversed(told) if isinstance(each, Identified)), None)
    rows = [
        {
            "number": each.number,
            "at": utc(datetime.fromtimestamp(each.row.at_s, UTC)),
            "kind": each.row.kind,
            "round": each.row.round_id,
            "role": str(each.row.actor.role),
            "clause": each.row.clause,
        }
        for each in last
    ]
    return {"machine": None if machine is None else machine.to_json(), "rows": rows}


@contextmanager
def _host_log() -> Iterator["deque[str]"]:
    """What the driver says of itself meanwhile, in detail; the last lines of it."""
    lines: deque[str] = deque(maxlen=LAST_LINES)

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")

    log, keep = logging.getLogger("sabot"), Keep()
    before = log.level
    log.addHandler(keep)
    log.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        log.removeHandler(keep)
        log.setLevel(before)


SECRET = ("host_id", "owner", *KEYS, "proof")


def redacted(value: Any) -> Any:
    """The same, without what tells one host from another or helps to become one."""
    if isinstance(value, dict):
        return {name: HIDDEN if name in SECRET else redacted(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(each) for each in value]
    return value.replace(str(Path.home()), "~") if isinstance(value, str) else value
