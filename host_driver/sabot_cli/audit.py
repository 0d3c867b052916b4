"""``sabot audit``: every shuffle that was revealed is computed again and compared with what was told."""

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sabot_cli.device import Chosen, device_options, opened
from sabot_cli.output import NOT_VERIFIED, OK, Output
from sabot_cli.state import State
from sabot_cli.witnesses import BadEvidence, Told, Witnesses
from sabot_driver import Client
from sabot_driver.errors import NotAllowed
from sabot_driver.serials import from_text, to_text
from sabot_protocol.host.messages import RevealShuffle, ShuffleSlots
from sabot_protocol.host.shuffle_audit import RevealedShuffle
from sabot_protocol.host.shuffle_audit import audit as audited

BEFORE = ("commitment", "nonce")
"""What must have been kept before the reveal, or it proves nothing."""


@dataclass
class Judged:
    """What an audit says of one shuffle."""

    shuffle_id: int
    verdict: str
    """``proved``, ``wrong``, ``dropped``, or ``secret``: nobody has its reveal."""
    wrong: list[str]
    deck_id: int | None
    faces: int = 0
    """How many cards were seen to come out where they should."""


def judge(told: Told, serial: bytes | None, new_deck: bool = False) -> Judged:
    """Judge one shuffle by everything that was told of it."""
    deck_id = told.known("deck")
    wrong = told.contradictions()
    if told.known("seed") is None or told.known("slots") is None:
        verdict = "wrong" if wrong else "dropped" if told.known("drop") is not None else "secret"
        return Judged(told.shuffle_id, verdict, wrong, deck_id)
    wrong += [f"nobody kept the {what} before the reveal" for what in BEFORE if told.kept(what) is None]
    if serial is None:
        wrong.append("nobody says which device it was")
    if told.known("drop") is not None:
        wrong.append(f"it was dropped ({told.known('drop')}) and revealed all the same")
    fed, out = told.known("cards fed"), told.known("cards that came out")
    cards = told.known("cards")
    if fed is None and new_deck:
        fed = tuple(range(cards))
    shuffle = RevealedShuffle(
        serial or b"", deck_id, told.shuffle_id, cards, told.kept("commitment") or b"",
        told.kept("nonce") or b"", told.known("seed"), told.known("slots"), fed, out,
    )  # fmt: skip
    wrong += audited(shuffle)
    faces = len(out) if fed is not None and out is not None else 0
    return Judged(told.shuffle_id, "wrong" if wrong else "proved", wrong, deck_id, faces)


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@device_options
@click.option(
    "--journal",
    "journals",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="a device's journal; with --device its own is read",
)
@click.option("--serial", help="the device's serial number, where no file tells it")
@click.option("--new-decks", is_flag=True, help="each deck was in its maker's order at its first shuffle")
@click.pass_obj
def audit(
    state: State,
    /,
    files: tuple[Path, ...],
    journals: tuple[Path, ...],
    serial: str | None,
    new_decks: bool,
    **options: Any,
) -> int:
    """Prove shuffles after their reveal.

    From lines of 'sabot play --json' (FILES), a journal, or a device.

    Slots are computed from seed and nonce and compared with those the machine measured, card by card; faces
    too, where it is known in which order the cards were fed. Exit code 5 if anything does not fit.
    """
    witnesses = Witnesses()
    for path in journals:
        witnesses.read_journal(path)
    for path in files:
        _read_file(witnesses, path)
    if options["device"] is not None or options["table"] is not None:
        with opened(state, Chosen(**options), owner=True) as client:  # an observer is not told
            _ask_device(state, witnesses, client, options["timeout"], bool(journals))
    elif not files and not journals:
        raise click.UsageError("give files, --journal or --device")
    if serial is not None:
        witnesses.serials = {"--serial": from_text(serial), **witnesses.serials}
    return tell(state.output, witnesses, new_decks)


def _read_file(witnesses: Witnesses, path: Path) -> None:
    if str(path) == "-":
        witnesses.read_lines(sys.stdin, "standard input")
        return
    try:
        with path.open(encoding="utf-8") as lines:
            witnesses.read_lines(lines, path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise BadEvidence(f"{path}: {error}") from error


def _ask_device(
    state: State, witnesses: Witnesses, client: Client, timeout: float, has_journal: bool
) -> None:
    """Have a device reveal what it may reveal, next to what its journal here has of it."""
    about = client.identity
    witnesses.serials[client.url] = about.serial
    journal = state.places.journal(about.serial, client.simulator)
    if not has_journal and journal.exists():
        witnesses.read_journal(journal)
    for event in client.events(0, timeout=0.5):
        raw = getattr(event, "raw", None)
        if raw is not None:
            witnesses.heard_event(raw[0], raw[1], client.url)
    for shuffle_id in sorted(witnesses.shuffles):
        with contextlib.suppress(NotAllowed):  # still secret, or forgotten
            shown = client.ask(RevealShuffle(shuffle_id), timeout)
            placed: list[int] = []
            while len(placed) < shown.cards:
                more = client.ask(ShuffleSlots(shuffle_id, len(placed)), timeout).slots
                if not more:
                    break
                placed += more
            witnesses.heard_reveal(shown, placed, client.url)


def tell(output: Output, witnesses: Witnesses, new_decks: bool) -> int:
    """Judge every shuffle and say it; the exit code."""
    serials = set(witnesses.serials.values())
    device = next(iter(witnesses.serials.values()), None)
    general = [f"shuffle {number} is missing: a try that nobody tells of" for number in witnesses.missing()]
    if len(serials) > 1:
        general.append("the files are of different devices: " + ", ".join(sorted(map(repr, serials))))
    counts = dict.fromkeys(("proved", "wrong", "dropped", "secret"), 0)
    decks: set[int | None] = set()
    for shuffle_id, told in sorted(witnesses.shuffles.items()):
        judged = judge(told, device, new_decks and told.known("deck") not in decks)
        decks.add(judged.deck_id)
        counts[judged.verdict] += 1
        colour = {"proved": "green", "wrong": "red"}.get(judged.verdict, "dim")
        faces = f", {judged.faces} faces" if judged.faces else ""
        why = "".join(f"\n  {each}" for each in judged.wrong)
        output.tell(
            "shuffle_audited",
            f"shuffle {shuffle_id}, deck {judged.deck_id}: [{colour}]{judged.verdict}[/{colour}]{faces}{why}",
            shuffle_id=shuffle_id,
            deck_id=judged.deck_id,
            verdict=judged.verdict,
            faces=judged.faces,
            wrong=judged.wrong,
        )
    for each in general:
        output.tell("evidence", f"[red]{each}[/red]", wrong=each)
    ok = not general and not counts["wrong"] and counts["proved"] > 0
    words = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no shuffles"
    if not counts["proved"]:
        words += "; nothing is proved"
    if witnesses.lost_events:
        words += f"; {witnesses.lost_events} events are lost, so shuffles may be missing"
    output.tell(
        "audit",
        f"[{'green' if ok else 'red'}]{words}[/{'green' if ok else 'red'}]",
        serial=None if device is None else to_text(device),
        **counts,
        lost_events=witnesses.lost_events,
        wrong_in_general=general,
        ok=ok,
    )
    return OK if ok else NOT_VERIFIED
