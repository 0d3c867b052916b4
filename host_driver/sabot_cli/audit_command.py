"""``sabot audit``: recomputes each revealed shuffle and compares it with the evidence."""

import contextlib
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from rich.markup import escape

from sabot_cli.cli_context import CliContext
from sabot_cli.device_access import DeviceOptions, device_options, find_device, open_device
from sabot_cli.help_text import example
from sabot_cli.output import NOT_VERIFIED, OK, Output
from sabot_cli.shuffle_evidence import BadEvidence, ShuffleEvidence, ShuffleStatements
from sabot_cli.shuffle_reveal import ask_reveal
from sabot_driver import Client
from sabot_driver.errors import NotAllowed
from sabot_driver.serial_numbers import format_serial, parse_serial
from sabot_evidence import verifier
from sabot_protocol.host.shuffle_audit import RevealedShuffle
from sabot_protocol.host.shuffle_audit import audit as audited
from sabot_serve.errors import ServiceRunning

VERDICTS = {
    "proved": "proved",
    "wrong": "wrong",
    "dropped": "dropped",
    "secret": "not revealed: its deck was not fed again yet",
    "not_kept": "reveal not kept here",
    "lost": "never revealed: the machine was started anew before, and its seed is lost",
}
"""Every verdict, in words."""
MOST_MISSING = 20  # shuffles that are named one by one
BEFORE = ("commitment", "nonce")
"""What must have been kept before the reveal, or it proves nothing."""


@dataclass
class AuditResult:
    """What an audit says of one shuffle."""

    shuffle_id: int
    verdict: str
    """One of `VERDICTS`."""
    wrong: list[str]
    deck_id: int | None
    faces: int = 0
    """How many cards were seen to come out where they should."""


def audit_shuffle(told: ShuffleStatements, serial: bytes | None, new_deck: bool = False) -> AuditResult:
    """Judge one shuffle by everything that was told of it."""
    deck_id = told.value_of("deck")
    wrong = told.contradictions()
    if told.value_of("seed") is None or told.value_of("slots") is None:
        if wrong:
            verdict = "wrong"
        elif told.value_of("drop") is not None:
            verdict = "dropped"
        elif told.value_of("revealable") is not None:
            verdict = "not_kept"
        else:
            verdict = "secret" if told.value_of("started anew") is None else "lost"
        return AuditResult(told.shuffle_id, verdict, wrong, deck_id)
    wrong += [
        f"no source has the {what} from before the reveal"
        for what in BEFORE
        if told.value_before_reveal(what) is None
    ]
    if serial is None:
        wrong.append("no source names the device: give --serial")
    if told.value_of("drop") is not None:
        wrong.append(f"it was dropped ({told.value_of('drop')}) and revealed all the same")
    fed, out = told.value_of("cards fed"), told.value_of("cards that came out")
    cards = told.value_of("cards")
    if fed is None and new_deck:
        fed = tuple(range(cards))
    shuffle = RevealedShuffle(
        serial or b"", deck_id, told.shuffle_id, cards, told.value_before_reveal("commitment") or b"",
        told.value_before_reveal("nonce") or b"", told.value_of("seed"), told.value_of("slots"), fed, out,
    )  # fmt: skip
    wrong += audited(shuffle)
    faces = len(out) if fed is not None and out is not None else 0
    return AuditResult(told.shuffle_id, "wrong" if wrong else "proved", wrong, deck_id, faces)


@click.command(epilog=example("sabot audit play.jsonl"))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@device_options
@click.option(
    "--journal",
    "journals",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="a device's journal; with --device its own is read",
)
@click.option(
    "--record",
    "records",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="a table's record; with --table its own is read",
)
@click.option("--serial", help="the device's serial number, where no file tells it")
@click.option("--new-decks", is_flag=True, help="each deck was in its maker's order at its first shuffle")
@click.pass_obj
def audit(
    state: CliContext,
    /,
    files: tuple[Path, ...],
    journals: tuple[Path, ...],
    records: tuple[Path, ...],
    serial: str | None,
    new_decks: bool,
    options: DeviceOptions,
) -> int:
    """Prove shuffles after their reveal.

    From a table's record, lines of 'sabot play --json' (FILES), a journal, or a device.

    Slots are computed from seed and nonce and compared with those the machine measured, card by card; faces
    too, where it is known in which order the cards were fed.

    Journals and records must be what was written: their chains are verified first, as 'sabot evidence verify'
    does it. A file that does not fit proves nothing, whatever its numbers say.

    A device whose memory was lost, or a simulator that was started anew, counts shuffles from 1 again. Those
    lives are told apart by the memory id in the journal. 'reveal not kept here' means that the deck was fed
    again, and that no source has what the device revealed then: ask the device (--device) or give the lines
    of 'sabot play --json'. Of a table that another process runs, record and journal are read (--table).

    Exit codes: 0 proved, 1 a file cannot be read, 2 usage, 3 no device, 5 something does not fit or nothing
    is proved, 6 in use.
    """
    evidence = ShuffleEvidence()
    read = [*journals, *records]
    for path in journals:
        evidence.read_journal(path)
    for path in records:
        evidence.read_record(path)
    for path in files:
        _read_file(evidence, path)
    if options.device is not None or options.table is not None:
        try:
            with open_device(state, options, owner=True) as client:  # an observer is not told
                read += _ask_device(state, evidence, client, options, bool(journals))
        except ServiceRunning as running:
            read += _read_running(state, evidence, options, running)
    elif not files and not journals and not records:
        raise click.UsageError("give files, --record, --journal, --table or --device")
    evidence.join_lives()
    if serial is not None:
        evidence.serials = {"--serial": parse_serial(serial), **evidence.serials}
    return report_audit(state.output, evidence, new_decks, read)


def _read_file(evidence: ShuffleEvidence, path: Path) -> None:
    if str(path) == "-":
        evidence.read_lines(sys.stdin, "standard input")
        return
    try:
        with path.open(encoding="utf-8") as lines:
            evidence.read_lines(lines, path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise BadEvidence(f"{path}: {error}") from error


def _ask_device(
    state: CliContext, evidence: ShuffleEvidence, client: Client, options: DeviceOptions, has_journal: bool
) -> list[Path]:
    """Have a device reveal what it may reveal, next to what its files here have of it; those files."""
    about = client.identity
    evidence.serials[client.url] = about.serial
    journal = state.user_files.journal(about.serial, client.simulator)
    read = []
    if not has_journal and journal.exists():
        evidence.read_journal(journal)
        read.append(journal)
    record = state.user_files.record_of(about.serial, client.simulator)
    if record.exists():
        evidence.read_record(record)
        read.append(record)
    for _ in client.events(0, timeout=0.5):
        pass  # until the device has told everything
    assert client.peer is not None
    memory_id = client.peer.memory_id
    for entry in client.journal.entries():
        if entry.memory_id == memory_id and not entry.is_gap:
            evidence.add_event(entry.message, entry.body, client.url, memory_id)
    evidence.join_lives()
    for told in evidence.ordered():
        if told.memory_id == memory_id:
            with contextlib.suppress(NotAllowed):  # still secret, or forgotten
                shown, placed = ask_reveal(client, told.shuffle_id, options.timeout)
                evidence.add_reveal(shown, placed, client.url, memory_id)
    return read


def _read_running(
    state: CliContext, evidence: ShuffleEvidence, options: DeviceOptions, running: ServiceRunning
) -> list[Path]:
    """Read record and journal of a table that another process runs; the device is not asked."""
    entry = find_device(state, options)
    record = state.user_files.table_record(entry)
    if entry.serial is None or record is None or not record.exists():
        raise running
    serial = parse_serial(entry.serial)
    evidence.serials[entry.name] = serial
    evidence.read_record(record)
    read, journal = [record], state.user_files.journal(serial, entry.simulator)
    if journal.exists():
        evidence.read_journal(journal)
        read.append(journal)
    state.output.tell("device_not_asked", f"{running}; its record and journal are read, not the machine")
    return read


def verify_files(files: Sequence[Path]) -> verifier.Report | None:
    """What the verifier says of journals and records, each file once; None without files."""
    if not files:
        return None
    once = {path.resolve(): path for path in files}
    with ExitStack() as stack:
        try:
            opened, _ = verifier.open_files(list(once.values()), stack)
        except verifier.Unreadable as error:
            raise BadEvidence(str(error)) from error
        return verifier.verify(opened)


def _missing(first: int, last: int, where: str) -> list[str]:
    """What is said of shuffles that no source has: each, or if they are many, all in one line."""
    if last - first >= MOST_MISSING:
        return [f"shuffles {first} to {last}{where} are missing: no source has them"]
    return [f"shuffle {number}{where} is missing: no source has it" for number in range(first, last + 1)]


def _of_life(evidence: ShuffleEvidence, memory_id: bytes) -> str:
    """Which life of the device's memory a shuffle belongs to, for a person."""
    if memory_id not in evidence.lives:
        return " of an unknown memory"
    return f" of memory {evidence.lives.index(memory_id) + 1} of {len(evidence.lives)}"


def report_audit(output: Output, evidence: ShuffleEvidence, new_decks: bool, files: Sequence[Path]) -> int:
    """Judge the files' chains and every shuffle, and say it; the exit code."""
    chains = verify_files(files)
    serials = set(evidence.serials.values())
    device = next(iter(evidence.serials.values()), None)
    several = len({told.memory_id for told in evidence.shuffles.values()}) > 1
    general = [
        line
        for life, first, last in evidence.missing()
        for line in _missing(first, last, _of_life(evidence, life) if several else "")
    ]
    if len(serials) > 1:
        general.append("the files are of different devices: " + ", ".join(sorted(map(repr, serials))))
    if chains is not None:
        general += [
            f"{each.file}: {each.kind.replace('_', ' ').upper()}: {each.text}"
            for each in chains.findings
            if each.kind in verifier.WRONG_KINDS
        ]
    counts = dict.fromkeys(VERDICTS, 0)
    decks: set[int | None] = set()
    for told in evidence.ordered():
        its_device = evidence.device_of.get(told.memory_id, device)  # a table may have had several machines
        judged = audit_shuffle(told, its_device, new_decks and told.value_of("deck") not in decks)
        decks.add(judged.deck_id)
        counts[judged.verdict] += 1
        colour = {"proved": "green", "wrong": "red"}.get(judged.verdict, "dim")
        faces = f", {judged.faces} faces" if judged.faces else ""
        why = "".join(f"\n  {each}" for each in judged.wrong)
        where = _of_life(evidence, told.memory_id) if several else ""
        said = VERDICTS[judged.verdict]
        output.tell(
            "shuffle_audited",
            f"shuffle {told.shuffle_id}{where}, deck {judged.deck_id}: "
            f"[{colour}]{said}[/{colour}]{faces}{why}",
            shuffle_id=told.shuffle_id,
            memory_id=told.memory_id.hex() or None,
            deck_id=judged.deck_id,
            verdict=judged.verdict,
            faces=judged.faces,
            wrong=judged.wrong,
        )
    for each in general:
        output.tell("evidence", f"[red]{escape(each)}[/red]", wrong=each)
    ok = not general and not counts["wrong"] and counts["proved"] > 0
    words = ", ".join(f"{count} {VERDICTS[name]}" for name, count in counts.items() if count) or "no shuffles"
    if not counts["proved"]:
        words += "; nothing is proved"
    if evidence.lost_events:
        words += f"; {evidence.lost_events} events are lost, so shuffles may be missing"
    if chains is not None:
        words += f"; the files: {verifier.VERDICTS[chains.code]}"
    output.tell(
        "audit",
        f"[{'green' if ok else 'red'}]{words}[/{'green' if ok else 'red'}]",
        serial=None if device is None else format_serial(device),
        **counts,
        lost_events=evidence.lost_events,
        memory_lives=len(evidence.lives),
        wrong_in_general=general,
        files_verdict=None if chains is None else verifier.VERDICTS[chains.code],
        ok=ok,
    )
    return OK if ok else NOT_VERIFIED
