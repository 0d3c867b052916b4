"""The state of a session: everything that must survive the end of the program. It is saved as JSON."""

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
    state: str  # of the table: when the table goes on, the words are over


@dataclass
class FaultState:
    """A fault that a half of the machine has stopped for."""

    fault: int
    place: int
    cards: int
    steps: str
    service: bool = False  # the device lets only service clear it
    clearing: bool = False  # its steps were done, and the device looks around


@dataclass
class Commitment:
    """A shuffle that the device is bound to and that has not begun."""

    shuffle_id: int
    commitment: str  # hex
    nonce: str  # hex, ours


@dataclass
class BegunShuffle:
    """A shuffle that the device began with our nonce; it is checked once it is revealed."""

    pack_id: int
    commitment: str  # hex
    nonce: str  # hex, ours


@dataclass
class Reveal:
    """A shuffle as the device reveals it, until all its slots are here."""

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
    """The machine as its events and answers have told it."""

    serial: str = ""
    memory_id: str = ""  # hex
    up: bool = False
    survey: list[str] = field(default_factory=list)  # questions still to be asked since the link is up
    shoe: int = 0
    shuffler: int = 0
    in_shoe: int = 0
    in_shuffler: int = 0
    decks: dict[int, int] = field(default_factory=dict)  # deck id -> back
    faults: list[FaultState] = field(default_factory=list)
    game: GameState | None = None
    versions: dict[str, str] = field(default_factory=dict)
    model: str = ""
    fed: int = 0  # a deck that the device took; the event of its feeding is on its way
    commit_asked: int = 0  # deck whose commitment is on its way
    commitments: dict[int, Commitment] = field(default_factory=dict)  # by deck
    begun: dict[int, BegunShuffle] = field(default_factory=dict)  # by shuffle, until it is revealed
    reveals: list[int] = field(default_factory=list)  # shuffles that may be revealed now
    reveal: Reveal | None = None
    tray_seen_empty: bool = False
    emptying: bool = False  # cards come out because the floor said so
    stops: dict[int, int] = field(default_factory=dict)  # of the shuffler in a row, by pack
    doubtful: list[int] = field(default_factory=list)  # packs that may have come out unplayed
    looked_in: bool = False  # the shoe's path was purged since the shoe is blocked
    path_empty: bool = False  # the machine took the floor's word for it; its shoe is about to be free
    cleared_unanswered: int = 0  # a fault whose clearing the device told before it answered
    refused: str = ""  # a request that the device refused; not repeated before something changes
    last_number: int = 0  # of the newest command that the device answered
    open_round: int = 0  # the device's own, as its status told it
    lost_events: bool = False  # in the round in play


@dataclass
class RoundProgress:
    """How far the device is with the round in play, and what people told of it."""

    round_id: int
    opened: bool = False
    closed: bool = False
    stacks_asked: int = 0
    end_asked: bool = False
    device_done: bool = False  # ended or void there
    stub: int | None = None
    count: int | None = None
    void_reason: int = 0  # to tell the device
    exposed_by: Actor | None = None
    exposed_event: DeviceEventId | None = None  # where a button told it
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
    """What the machine told and the rules had no place for; the floor has not looked yet."""

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
    """What a dealer says that a round was, while the floor has not confirmed it."""

    row: int
    round_id: int
    dealer: str
    how: Authentication
    told: str  # JSON of a `CorrectionProposed`


@dataclass
class Stranger:
    """A machine that answers and is not this table's."""

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
    """Since when a need is there, and the row after which it has its present form."""

    number: int
    since_s: int
    seen: int
    form: str


@dataclass
class SessionState:
    """All of a session."""

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
    called: str = ""  # why the floor was called and has not come
    notes: list[WaitingNote] = field(default_factory=list)  # of the floor, oldest first
    known_notes: list[str] = field(default_factory=list)  # ids of the newest notes, read or not
    announcement: Announcement | None = None
    outbox: list[OutboxCommand] = field(default_factory=list)
    next_command: int = 1
    highest_deck: int = 0  # that the device ever had
    needs: dict[str, NeedHistory] = field(default_factory=dict)
    next_need: int = 1
    countersign: list[int] = field(default_factory=list)  # rows that the floor has not countersigned
    unexplained: dict[int, UnexplainedReport] = field(default_factory=dict)  # by row
    leaving: list[int] = field(default_factory=list)  # packs that must leave; the floor has not said where to
    rows: int = 0  # the record's newest row
    running: bool = False  # a program runs this table, or was ended without closing it
    warned: dict[int, int] = field(default_factory=dict)  # pack -> minutes of its last warning
    results: ShoeResults = field(default_factory=ShoeResults)
    last_round: dict[str, Any] | None = None
    """The round before, as a snapshot showed it last: screens show it until the next one."""
    policy: str = ""  # the hash of the house policy that was in force last
    simulated_people: bool = False
    """Whether simulated people may act: the device proved that it is emulated."""



@cache
def _saved() -> TypeAdapter[SessionState]:
    """What reads and writes a saved session; made at its first use, since it takes a while."""
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
