"""The state of a session: everything that must survive the end of the program, saved as JSON.

"The host's nonce" is the table PC's part of a shuffle's randomness.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sabot_driver.errors import SabotError
from sabot_session.rows import Actor, Authentication, DeviceEventId
from sabot_session.shoe_results import ShoeResults
from sabot_table.procedure.memory import TableMemory
from sabot_table.ruleset import RuleSet

VERSION = 1


class BadSavedSession(SabotError, ValueError):
    """A saved session that this program cannot continue."""

    advice = "Continue it with the program and the rule set that wrote it, or begin a new record."


@dataclass
class Announcement:
    """What the dealer says aloud now."""

    text: str
    state: str  # the table's state when it was said; the text is no longer shown in another state


@dataclass
class FaultState:
    """A fault that a half of the machine has stopped for."""

    fault: int
    place: int
    cards: int
    steps: str
    service: bool = False  # the device lets only service clear it
    clearing: bool = False  # the device executed `clear_fault` and checks its sensors


@dataclass
class Commitment:
    """A shuffle that the device has committed to and not begun."""

    shuffle_id: int
    commitment: str  # hex
    nonce: str  # hex, the host's


@dataclass
class BegunShuffle:
    """A shuffle that the device began with the host's nonce, until it is revealed and checked."""

    pack_id: int
    commitment: str  # hex
    nonce: str  # hex, the host's


@dataclass
class Reveal:
    """A shuffle that the device is revealing; the answers bring its slots in parts."""

    shuffle_id: int
    deck_id: int
    cards: int
    commitment: str
    seed: str
    nonce: str
    slots: list[int] = field(default_factory=list)


@dataclass
class GameState:
    """What the machine is set to."""

    method: int
    decks: int
    stack_cards: int
    deck_hours: int
    one_deck: int


@dataclass
class DeviceState:
    """The machine's state, from its events and answers."""

    serial: str = ""
    memory_id: str = ""  # hex
    up: bool = False
    survey: list[str] = field(default_factory=list)  # queries for its whole state, without an answer yet
    shoe: int = 0
    shuffler: int = 0
    in_shoe: int = 0
    in_shuffler: int = 0
    shelved: int = 0  # the deck on the store shelf, once the event said so; its count was told before
    decks: dict[int, int] = field(default_factory=dict)  # deck id -> back
    faults: list[FaultState] = field(default_factory=list)
    game: GameState | None = None
    versions: dict[str, str] = field(default_factory=dict)
    model: str = ""
    fed: int = 0  # a deck whose shuffle was accepted, until the event that its feeding began
    commit_asked: int = 0  # deck of an executed `commit_shuffle` whose event has not come
    commitments: dict[int, Commitment] = field(default_factory=dict)  # by deck
    begun: dict[int, BegunShuffle] = field(default_factory=dict)  # by shuffle, until it is revealed
    reveals: list[int] = field(default_factory=list)  # shuffles that may be revealed now
    reveal: Reveal | None = None
    tray_seen_empty: bool = False
    emptying: bool = False  # the machine executes `empty_machine`
    stops: dict[int, int] = field(default_factory=dict)  # pack -> shuffler's jams since the pack's count
    doubtful: list[int] = field(default_factory=list)  # packs that may have come out unplayed
    looked_in: bool = False  # the blocked shoe was purged
    path_empty: bool = False  # `path_inspected` was executed; the event of the shoe's new state has not come
    cleared_unanswered: int = 0  # a fault whose `fault_cleared` came before the answer to `clear_fault`
    refused: str = ""  # name and body of the newest refused request (`device_side`)
    last_number: int = 0  # of the newest command that the device answered
    open_round: int = 0  # the round that is open on the device, from its status; 0 for none
    lost_events: bool = False  # events were lost while cards of the round in play came out


@dataclass
class RoundProgress:
    """How far the device is with the round in play, and what people reported about it."""

    round_id: int
    opened: bool = False
    closed: bool = False
    stacks_asked: int = 0
    end_asked: bool = False
    device_done: bool = False  # ended or void there
    stub: int | None = None
    count: int | None = None
    void_reason: int = 0  # for the request `void_round`
    exposed_by: Actor | None = None
    exposed_event: DeviceEventId | None = None  # the press, if the machine's button was used
    revealed: bool = False
    faces: list[list[int]] = field(default_factory=list)  # by stack, once exposed
    must_type: bool = False
    draws_asked: int = 0  # dealt card by card: the newest draw that the machine was asked for
    face_up: bool = False  # the card that comes now lies face up
    aside: int = 0  # the draw of a card that came face up, until the dealer names the card
    typed: dict[int, list[str]] = field(default_factory=dict)  # hands that the dealer told one by one


@dataclass
class ShoeProgress:
    """How far a pack is on its way out of the machine and into a shoe, and how far a shoe's end is."""

    deliver_asked: int = 0  # the pack that the machine was asked to bring out
    out: int = 0  # the pack that came out whole and is in no shoe yet
    in_hand: int = 0  # the pack that the dealer put into the manual shoe, or holds
    laid_in: int = 0  # the pack that lies in the machine's shoe, as the floor said
    burns_asked: int = 0  # the first card, then those that go with it
    burns_taken: int = 0
    burn_card: str = ""  # the first card, once the dealer named it
    burnt: int = 0  # cards that the machine counted with it
    end_asked: int = 0  # the pack whose shoe the machine was asked to end


@dataclass
class HeldPack:
    """A pack whose cards stay out of the tray."""

    row: int
    round_id: int
    why: str


@dataclass
class UnexplainedReport:
    """A report of the machine that the rules refused, until the floor countersigns its row."""

    what: str
    why: str
    clause: str = ""


@dataclass
class OpenDispute:
    """A dispute without a decision."""

    row: int
    round_id: int
    why: str


@dataclass
class ProposedCorrection:
    """A correction of a round that a dealer proposed and the floor has not decided."""

    row: int
    round_id: int
    dealer: str
    how: Authentication
    told: str  # JSON of a `CorrectionProposed`


@dataclass
class Stranger:
    """A machine with another serial number than this table's."""

    serial: str
    memory_id: str
    model: str
    up: bool = True
    journal_at: int = 0  # the newest place in its journal
    installed_by: str = ""  # the technician


@dataclass
class InstalledPc:
    """A table PC that the floor has not confirmed, and the record that it continues."""

    before: str
    rows: int
    round_id: int
    service: str


@dataclass
class WaitingNote:
    """A note of the floor that no person at the table has read. Times are UTC seconds."""

    note_id: str
    sender: str  # as the wall said
    text: str
    sent_s: int  # by the wall's clock
    at_s: int  # when it came


@dataclass
class OutboxCommand:
    """A request to the device that has no answer yet."""

    id: int
    name: str
    body: str  # hex
    role: str = ""  # "floor" or "service" where a person must authorise it
    person: str = ""
    act_id: str = ""


@dataclass
class NeedHistory:
    """What the state keeps of a need: its number, since when it exists, and when it changed last."""

    number: int
    since_s: int
    seen: int  # the record's newest row when ``form`` changed last
    form: str  # roles, acts and details as text


@dataclass
class SessionState:
    """The whole state of a session."""

    memory: TableMemory
    version: int = VERSION
    device: DeviceState = field(default_factory=DeviceState)
    round: RoundProgress | None = None
    shoe: ShoeProgress = field(default_factory=ShoeProgress)
    dealer: Actor | None = None
    bets: dict[int, dict[str, int]] = field(default_factory=dict)  # of the last round, by seat
    bets_known: bool = True  # else ``bets`` has the seats only
    unfed: dict[int, int] = field(default_factory=dict)  # pack -> the round whose cards are not in the tray
    holds: dict[int, HeldPack] = field(default_factory=dict)  # by pack
    disputes: list[OpenDispute] = field(default_factory=list)
    corrections: list[ProposedCorrection] = field(default_factory=list)
    stranger: Stranger | None = None
    installed_pc: InstalledPc | None = None
    called: str = ""  # why the dealer called the floor; "" after the floor came
    notes: list[WaitingNote] = field(default_factory=list)  # of the floor, oldest first
    known_notes: list[str] = field(default_factory=list)  # ids of the newest notes, read or not
    announcement: Announcement | None = None
    outbox: list[OutboxCommand] = field(default_factory=list)
    next_command: int = 1
    highest_deck: int = 0  # that the device ever had
    needs: dict[str, NeedHistory] = field(default_factory=dict)
    next_need: int = 1
    countersign: list[int] = field(default_factory=list)  # rows that the floor has not countersigned
    countersign_words: dict[int, str] = field(default_factory=dict)  # what each of these rows tells
    unexplained: dict[int, UnexplainedReport] = field(default_factory=dict)  # by row
    leaving: list[int] = field(default_factory=list)  # packs off the table without a destination yet
    rows: int = 0  # the record's newest row
    running: bool = False
    """Set by each step, cleared by `TableSession.end`. If it is set at a start, the run before was killed."""
    warned: dict[int, int] = field(default_factory=dict)  # pack -> minutes of its last warning
    results: ShoeResults = field(default_factory=ShoeResults)
    last_round: dict[str, Any] | None = None
    """The snapshot of the round that `DeviceReports.collect` ended last; screens show it between rounds."""
    policy: str = ""  # the hash of the house policy that was in force last
    simulated_people: bool = False
    """Whether simulated people may act: the device proved that it is emulated."""


@cache
def _saved() -> TypeAdapter[SessionState]:
    """The reader and writer of saved sessions. It is made at its first use, because that is slow."""
    return TypeAdapter(SessionState)


def restore(rules: RuleSet, saved: str) -> SessionState:
    """The state that was saved; `BadSavedSession` if it is damaged, newer, or of another rule set."""
    try:
        state = _saved().validate_json(saved)
    except ValidationError as error:
        raise BadSavedSession(f"this is no saved session: {error.errors()[0]['msg']}") from error
    if state.version != VERSION:
        raise BadSavedSession(f"version {state.version} of a saved session; this program has {VERSION}")
    if state.memory.ruleset_sha256 != rules.sha256:
        raise BadSavedSession(
            f"the session was saved under another rule set ({state.memory.ruleset_sha256[:12]}), "
            f"not {rules.name} ({rules.sha256[:12]})"
        )
    return state


def save(state: SessionState) -> str:
    """The state as JSON."""
    return _saved().dump_json(state).decode()
