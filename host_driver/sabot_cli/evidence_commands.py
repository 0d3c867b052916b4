"""``sabot evidence``: what tables have written, verified, exported, and in lines for the floor."""

import json
import struct
import time
from contextlib import ExitStack
from pathlib import Path

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext, json_option
from sabot_cli.device_access import DeviceOptions, device_options, open_device, table_names
from sabot_cli.help_text import Group, example
from sabot_cli.output import OK, NotVerified
from sabot_cli.signing_keys import KEY_FILE, draw, opened, passphrase_option
from sabot_cli.written_files import check_writable
from sabot_driver.errors import SabotError
from sabot_driver.private_files import open_new
from sabot_driver.serial_numbers import format_serial, parse_serial
from sabot_evidence import verifier
from sabot_evidence.countersign import (
    KeptCheckpoint,
    check_continues,
    countersigned_line,
    read_kept,
    read_kept_file,
)
from sabot_evidence.errors import ChainDamaged, EvidenceError
from sabot_evidence.export import export, kept_text, read_newest
from sabot_protocol.host.messages import ChainCheckpoint, Checkpoint
from sabot_protocol.wire_constants import EVENT_HEADER

FILE = click.Path(path_type=Path, dir_okay=False)
EVENT_HEAD_SIZE = struct.calcsize("<BBI") + struct.calcsize(EVENT_HEADER)  # id, clock quality, n, header


class EvidenceUnreadable(SabotError):
    """A file that is no evidence, or cannot be read."""

    advice = (
        "Give journals, records, or archives of 'sabot evidence export'; docs/evidence.md lists the options."
    )


class NoEvidence(SabotError):
    """No table of this computer has written anything."""

    advice = "Name the files, or play at a table first."


class NoDeviceChain(SabotError):
    """A device whose event chain has not begun: it was provisioned without a chain key."""

    advice = "A chain begins at provisioning: 'sabot provision --chain-key FILE'."


class NothingCountersigned(NotVerified):
    """A checkpoint that the floor must not countersign; nothing was signed."""


@click.group(cls=Group)
def evidence() -> None:
    """Verify, export, show and countersign what tables have written."""


def _files(state: CliContext, files: tuple[Path, ...], table: str | None) -> list[Path]:
    """The files meant: those named, those of a table, or all of this computer."""
    if files and table is not None:
        raise click.UsageError("files and --table exclude each other")
    if files:
        return list(files)
    there = state.user_files
    if table is None:
        found = [*there.journals(), *there.records()]
    else:
        entry = there.table(table)
        if entry.serial is None:
            raise NoEvidence(f"the table '{table}' has no device, so it has written nothing")
        journal = there.journal(parse_serial(entry.serial), entry.simulator)
        record = there.table_record(entry)
        found = [each for each in (journal, record) if each is not None and each.exists()]
    if not found:
        raise NoEvidence("no journal and no record is here")
    return found


_TABLE = click.option("--table", metavar="NAME", shell_complete=table_names, help="the files of this table")
_FILES = click.argument("files", nargs=-1, type=FILE)


@evidence.command("verify", epilog=example("sabot evidence verify --anchor floor.txt"))
@json_option
@_FILES
@_TABLE
@click.option(
    "--chain-key", "chain_keys", multiple=True, type=FILE, help="K_0 of a device, from the regulator"
)
@click.option("--pc-key", "pc_keys", multiple=True, metavar="HEX", help="a PC's public key that you trust")
@click.option("--trust", multiple=True, metavar="HEX", help="a key that may countersign checkpoints")
@click.option(
    "--anchor", "anchors", multiple=True, type=FILE, help="lines or checkpoints that the floor kept"
)
@click.option(
    "--device-checkpoint", "checkpoints", multiple=True, type=FILE, help="a checkpoint as a device gave it"
)
@click.pass_obj
def verify_command(
    state: CliContext,
    files: tuple[Path, ...],
    table: str | None,
    chain_keys: tuple[Path, ...],
    pc_keys: tuple[str, ...],
    trust: tuple[str, ...],
    anchors: tuple[Path, ...],
    checkpoints: tuple[Path, ...],
) -> int:
    """Find what was changed, removed or put back in journals and records.

    Without FILES every journal and record of this computer is read. Exit codes: 0 everything fits and an
    anchor shows the newest row; 8 everything fits, and nothing is known after the newest row; 5 something
    does not fit; 1 a file cannot be read.

    The verifier is one file, sabot_evidence/verifier.py, which also runs alone.
    """
    with ExitStack() as stack:
        try:
            files_open, devices = verifier.open_files(_files(state, files, table), stack)
            report = verifier.verify(
                files_open,
                [each.lower() for each in pc_keys],
                [each for path in anchors for each in verifier.read_anchors(path, trust)],
                [verifier.read_chain_key(path) for path in chain_keys],
                [verifier.read_device_anchor(path) for path in (*checkpoints, *devices)],
            )
        except verifier.Unreadable as error:
            raise EvidenceUnreadable(str(error)) from error
    tell_report(state, report)
    return report.code


def tell_report(state: CliContext, report: verifier.Report) -> None:
    """Say what the verifier found, as it says it itself."""
    for each in report.findings:
        state.output.tell("finding", kind=each.kind, file=each.file, text=each.text, row=each.row)
    if not state.output.as_json:
        for line in verifier.lines(report):
            state.output.tell("line", escape(line))
    state.output.tell(
        "evidence",
        code=report.code,
        verdict=verifier.VERDICTS[report.code],
        rows=report.rows,
        rounds=report.rounds,
        gaps=report.gaps,
        gaps_per_1000_rounds=report.gap_rate,
    )


@evidence.command("show", epilog=example("sabot evidence show"))
@json_option
@_FILES
@_TABLE
@click.pass_obj
def show(state: CliContext, files: tuple[Path, ...], table: str | None) -> int:
    """The newest checkpoints, in lines that the floor keeps.

    Print them or write them down, and keep them where this computer cannot change them: 'sabot evidence
    verify --anchor FILE' takes them back. With --json the whole checkpoint is told, with its signature.

    Exit codes: 0 done, 1 a file cannot be read, 2 usage.
    """
    for path in _files(state, files, table):
        try:
            newest = read_newest(path)
        except ChainDamaged as error:
            raise EvidenceUnreadable(str(error), error.advice) from error
        if newest is None:
            words = f"{path.name}: no checkpoint yet"
            state.output.tell("checkpoint", escape(words), file=str(path), line=None, checkpoint=None)
            continue
        line = newest.head.line()
        state.output.tell(
            "checkpoint",
            escape(line),
            file=str(path),
            line=line,
            key=newest.key,
            checkpoint=kept_text(newest),
        )
    return OK


@evidence.command("export", epilog=example("sabot evidence export --out evidence.zip"))
@json_option
@_FILES
@_TABLE
@click.option("--out", type=FILE, required=True, help="the archive to write")
@click.pass_obj
def export_command(state: CliContext, files: tuple[Path, ...], table: str | None, out: Path) -> int:
    """Gather journals, records, checkpoints and the verifier in one archive.

    Tables may run meanwhile: each file is copied as it is at one moment. No key is in the archive.

    Exit codes: 0 done, 1 a file cannot be read, 2 usage.
    """
    chosen = _files(state, files, table)
    check_writable(out)
    try:
        with open_new(out) as file:
            export(file, chosen)
    except ChainDamaged as error:
        out.unlink(missing_ok=True)
        raise EvidenceUnreadable(str(error), error.advice) from error
    words = f"{out}: {len(chosen)} files. Verify it with 'sabot evidence verify {out}'."
    state.output.tell("exported", escape(words), file=str(out), files=[str(each) for each in chosen])
    return OK


@evidence.command("ask-device", epilog=example("sabot evidence ask-device --device sim:// --out device.json"))
@device_options
@click.option("--out", type=FILE, required=True, help="the file to write")
@click.pass_obj
def ask_device(state: CliContext, /, options: DeviceOptions, out: Path) -> int:
    """Ask a device itself for the newest checkpoint of its event chain, for 'verify --device-checkpoint'.

    The program that runs the table must have ended. Carry the file away from the table PC: whoever changes
    the journal there could change this file too.

    Exit codes: 0 done, 1 the device has no chain or the file cannot be written, 2 usage, 3 no device,
    4 several devices, 5 not verified, 6 another host owns the device.
    """
    with open_device(state, options, owner=True) as client:
        event = client.ask(Checkpoint(), options.timeout).event
        if not event:
            raise NoDeviceChain(f"{format_serial(client.identity.serial)} has no event chain yet")
        told = ChainCheckpoint.unpack(event[EVENT_HEAD_SIZE:])
        kept = {
            "format": "sabot device checkpoint 1",
            "serial": format_serial(client.identity.serial),
            "boot": told.boot_id,
            "n": told.n,
            "index": told.index,
            "hash": told.hash.hex(),
            "tag": told.tag.hex(),
            "event_hex": event.hex(),
        }
    with open_new(out) as file:
        file.write(json.dumps(kept).encode() + b"\n")
    words = f"{out}: event {told.index} of the chain of {kept['serial']}, {told.hash.hex()[:16]}"
    state.output.tell("device_checkpoint", escape(words), file=str(out), **kept)
    return OK


@evidence.command("new-key", epilog=example("sabot evidence new-key floor.pem"))
@json_option
@passphrase_option
@click.argument("file", type=KEY_FILE)
@click.pass_obj
def new_key(state: CliContext, file: Path, passphrase_stdin: bool) -> int:
    """Draw a key with which the floor countersigns checkpoints. Keep it away from the table PC.

    The public key is printed: whoever verifies gives it with --trust.

    Exit codes: 0 done, 1 the file cannot be written, 2 usage.
    """
    key = draw(file, passphrase_stdin)
    state.output.tell("key", f"{file}: the public key is {key.public}", file=str(file), public=key.public)
    return OK


@evidence.command(
    "countersign",
    epilog=example("sabot evidence countersign checkpoints.jsonl --key floor.pem --kept floor.jsonl"),
)
@json_option
@passphrase_option
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--key", "key_file", type=KEY_FILE, required=True, help="the floor's key, of 'evidence new-key'"
)
@click.option("--kept", type=FILE, required=True, help="the floor's file, to which the lines are added")
@click.option("--by", default="the floor", show_default=True, help="who countersigns")
@click.pass_obj
def countersign_command(
    state: CliContext, files: tuple[Path, ...], key_file: Path, kept: Path, by: str, passphrase_stdin: bool
) -> int:
    """Countersign the newest checkpoints with a key that the table PC does not have.

    FILES are journals, records, or lines of checkpoints (checkpoints.jsonl in an exported archive). The
    floor keeps --kept where the table PC cannot change it, and 'sabot evidence verify --anchor FILE --trust
    HEX' takes it back. A checkpoint that does not continue what the floor keeps is refused, and nothing is
    signed then: the table's files were put back to an older state, forked, or signed by another key.

    Exit codes: 0 done, 1 a file cannot be read, 2 usage, 5 a checkpoint is refused.
    """
    check_writable(kept)
    key = opened(key_file, passphrase_stdin)
    try:
        before = read_kept_file(kept)
        found = [each for path in files for each in _checkpoints(path)]
        new = [each for each in found if check_continues(each, before)]
    except (EvidenceError, OSError, UnicodeDecodeError) as error:
        raise NothingCountersigned(str(error), getattr(error, "advice", None)) from error
    at_us = time.time_ns() // 1000
    with kept.open("a", encoding="utf-8") as file:
        file.writelines(countersigned_line(each, key, by, at_us) + "\n" for each in new)
    for each in new:
        words = f"{each.of} {each.chain[:8]} row {each.row}: countersigned by {by}"
        state.output.tell("countersigned", escape(words), of=each.of, chain=each.chain, row=each.row, by=by)
    words = f"{kept}: {len(new)} checkpoints added; verify with --anchor {kept} --trust {key.public}"
    state.output.tell("kept", escape(words), file=str(kept), added=len(new), public=key.public)
    return OK


def _checkpoints(path: Path) -> list[KeptCheckpoint]:
    """The newest checkpoint of a journal or record, or every checkpoint of a file of lines."""
    with path.open("rb") as file:
        is_database = file.read(15) == b"SQLite format 3"
    if not is_database:
        return read_kept_file(path)
    newest = read_newest(path)
    return [] if newest is None else [read_kept(kept_text(newest), str(path))]
