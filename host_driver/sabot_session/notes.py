"""Notes of the floor for a table's screen: plain words that wait until a person at the table has read them.

A note commands nothing. Where the rule text or the house policy lets none in, it is refused. So is a note
that comes while `MOST_WAITING` wait: the newest is refused, because nobody has read the older ones yet.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sabot_driver.errors import SabotError
from sabot_session.act_base import Act
from sabot_session.note_acts import ReadNote
from sabot_session.outcomes import ActRefused
from sabot_session.rows import Actor, Authentication, Json
from sabot_session.session_state import WaitingNote
from sabot_table.procedure import Attribution, TableRole

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

PROGRAM = Actor("", TableRole.PROGRAM, Authentication.PROGRAM)
MOST_WAITING = 4
MOST_KNOWN = 32
"""Ids of notes that the table remembers, so that a note that is sent again is taken once."""
LONGEST_TEXT = 200
LONGEST_SENDER = 64
_ID = re.compile(r"[0-9a-f]{16,32}")


class NoteRefused(SabotError):
    """A note that the table does not take; nothing has changed. ``reason`` is for programs."""

    reason: ClassVar[str] = "refused"


class NoteUnfit(NoteRefused, ValueError):
    """The note is empty, too long, or has characters that are no plain text."""

    reason = "unfit"
    advice = f"Write 1 to {LONGEST_TEXT} characters in one line."


class NotesNotAllowed(NoteRefused, PermissionError):
    """The rule text or the house policy lets no note in."""

    reason = "not_allowed"
    advice = "Go to the table, or call it."


class NotesFull(NoteRefused):
    """So many notes wait that the table takes no more."""

    reason = "full"
    advice = "Go to the table: nobody there has read the notes that wait."


@dataclass(frozen=True, slots=True)
class Note:
    """What a person of the floor wrote. ``sent_s`` is UTC by the clock of the wall."""

    note_id: str
    sender: str
    text: str
    sent_s: int


def check_note(note: Note) -> None:
    """`NoteUnfit` says what no screen would show as it was written."""
    if not _ID.fullmatch(note.note_id):
        raise NoteUnfit("the note's id is not 16 to 32 hexadecimal digits")
    for what, text, longest in (
        ("text", note.text, LONGEST_TEXT),
        ("sender", note.sender, LONGEST_SENDER),
    ):
        if not text.strip():
            raise NoteUnfit(f"the note's {what} is empty")
        if len(text) > longest:
            raise NoteUnfit(f"the note's {what} has {len(text)} characters, more than {longest}")
        # Not printable: line ends, escape sequences of terminals, marks that turn the reading direction.
        if not text.isprintable():
            raise NoteUnfit(f"the note's {what} has a character that is no plain text")


def is_known(session: "SessionStep", note: Note) -> bool:
    """Whether the table took this note before."""
    return note.note_id in session.state.known_notes


def receive(session: "SessionStep", note: Note, now_s: int) -> None:
    """Take a note, in a step of the session; `NoteRefused` if the table does not."""
    check_note(note)
    if not session.takes_notes:
        raise NotesNotAllowed(f"table {session.name} lets no note in")
    state = session.state
    if len(state.notes) >= MOST_WAITING:
        raise NotesFull(f"{len(state.notes)} notes wait at table {session.name}")
    told: dict[str, Json] = {
        "note_id": note.note_id,
        "sender": note.sender,
        "text": note.text,
        "sent_s": note.sent_s,
    }
    session.row("note_received", PROGRAM, told, round_id=_round_id(session))
    state.notes.append(WaitingNote(note.note_id, note.sender, note.text, note.sent_s, now_s))
    state.known_notes = [*state.known_notes, note.note_id][-MOST_KNOWN:]


def read_note(session: "SessionStep", act: ReadNote, by: Attribution, act_id: str) -> None:
    """The note leaves the screen; who read it is on record."""
    waiting = session.state.notes
    found = next((each for each in waiting if each.note_id == act.note_id), None)
    if found is None:
        raise ActRefused("read_note: no such note waits; somebody has read it, or the table never had it")
    told: dict[str, Json] = {"note_id": found.note_id, "sender": found.sender}
    session.row("note_read", session.actor(by), told, round_id=_round_id(session))
    waiting.remove(found)


def _round_id(session: "SessionStep") -> int:
    playing = session.procedure.table.memory.round
    return 0 if playing is None else playing.round_id


HANDLERS: Mapping[type[Act], Callable[["SessionStep", Any, Attribution, str], None]] = {ReadNote: read_note}
