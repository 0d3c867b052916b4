"""The data of a row, as pydantic models. Which kind of row carries which model is in `row_kinds`.

A model holds only integers, texts, flags, lists and models, so that its JSON has one canonical form. ``None``
means *not known*, or that the field does not apply, such as hours that the rule text does not limit. It never
means *none*: a list that is known to be empty is empty.
"""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sabot_session.rows import Authentication, Json
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource, WagerOutcome

CardText = Annotated[str, StringConstraints(pattern=r"^(A|[2-9]|10|J|Q|K)[CDHS]$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Text = Annotated[str, StringConstraints(max_length=500)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=500)]
HexText = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})*$", max_length=128)]
Seat = Annotated[int, Field(ge=1, le=16)]
Cents = Annotated[int, Field(ge=0, le=10**12)]
Count = Annotated[int, Field(ge=0, le=10**6)]
Number = Annotated[int, Field(ge=1, le=2**53 - 1)]
UtcSeconds = Annotated[int, Field(ge=0, le=2**53 - 1)]
PackId = Annotated[int, Field(ge=1, le=2**32 - 1)]


class Destination(StrEnum):
    """Where a pack goes that leaves the table."""

    CANCELLED = "cancelled"  # drilled or marked, so that no game can use it again
    HELD_FOR_SURVEILLANCE = "held_for_surveillance"


class HandOf(StrEnum):
    """Whose hand it is: three-card games have a dealer's and the seats', mini baccarat Player and Banker."""

    DEALER = "dealer"
    SEAT = "seat"
    PLAYER = "player"
    BANKER = "banker"


class CountedBy(StrEnum):
    """Who counted cards."""

    MACHINE = "machine"
    DEALER = "dealer"


class ShuffledBy(StrEnum):
    """What shuffled a pack."""

    MACHINE = "machine"
    HAND = "hand"


class RowData(BaseModel):
    """The base of all: no field but the named ones, no conversion of types, not changed once made."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, defer_build=True, cache_strings="keys"
    )

    def to_json(self) -> dict[str, Json]:
        """As `Row.data` takes it: every field, in JSON's types."""
        return self.model_dump(mode="json")


# -- parts of rows ------------------------------------------------------------------------------


class Wager(RowData):
    """One wager on the layout."""

    seat: Seat
    wager: Name
    cents: Cents


class Bets(RowData):
    """What was bet: the betting seats, and their wagers if they are known."""

    seats: tuple[Seat, ...]
    wagers: tuple[Wager, ...] | None  # None: chips lie there, and the program does not know them

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if len(set(self.seats)) != len(self.seats):
            raise ValueError("a seat is named twice")
        made = [(each.seat, each.wager) for each in self.wagers or ()]
        if len(set(made)) != len(made):
            raise ValueError("a wager of a seat is named twice")
        if not {seat for seat, _ in made} <= set(self.seats):
            raise ValueError("a wager of a seat that does not bet")
        return self


class Hand(RowData):
    """One hand as it lay face up."""

    of: HandOf
    seat: int = Field(0, ge=0, le=16)  # 0 unless it is a seat's
    cards: tuple[CardText, ...] | None  # None: nobody told the program
    points: Annotated[int, Field(ge=0, le=9)] | None = None
    rank: Text = ""  # in the game's words, such as "three faces"

    @model_validator(mode="after")
    def _seat_fits(self) -> Self:
        if (self.of is HandOf.SEAT) != (self.seat > 0):
            raise ValueError("a seat's hand names its seat, any other hand none")
        if self.cards is None and self.points is not None:
            raise ValueError("points of cards that are not known")
        return self


class ResultLine(RowData):
    """What became of one wager. Where the stake is not known, ``odds`` says what it pays."""

    seat: Seat
    wager: Name
    outcome: WagerOutcome
    line: Text  # of the paytable
    odds: Text = ""  # such as "8 to 1"
    stake_cents: Cents | None
    pays_cents: Cents | None  # besides the stake, before the vigorish
    vig_cents: Cents | None
    clause: Said

    @model_validator(mode="after")
    def _amounts_fit(self) -> Self:
        known = {each is not None for each in (self.stake_cents, self.pays_cents, self.vig_cents)}
        if len(known) == 2:
            raise ValueError("stake, payment and vigorish are all known or all not known")
        if self.stake_cents is None and self.outcome is WagerOutcome.WIN and not self.odds:
            raise ValueError("a win of an unknown stake says its odds")
        return self


# -- the table and its people -------------------------------------------------------------------


class Nothing(RowData):
    """The kind and the actor say all."""


class TableOpened(RowData):
    """Under which rules, and how the cards are dealt."""

    table: Name
    rule_text: Name
    ruleset: Name
    ruleset_sha256: HexText
    method: DealingMethod
    serial: Text = ""  # of the machine; "" where the table has none


class TableClosed(RowData):
    """What is still open at closing."""

    countersignatures: tuple[Number, ...] = ()  # rows that the floor has not countersigned
    disputes: tuple[Number, ...] = ()  # rows that opened disputes without a decision
    holds: tuple[Number, ...] = ()  # rows that hold a round's cards


class SignedOut(RowData):
    """How a dealer's time at the table ended."""

    relieved_by: Text = ""  # person id of the next dealer; "": nobody followed


class AtSeat(RowData):
    """Something about one seat."""

    seat: Seat


class SeatCents(RowData):
    """An amount of one seat."""

    seat: Seat
    cents: Cents


class MethodChanged(RowData):
    """How cards are dealt from now on."""

    method: DealingMethod
    before: DealingMethod
    why: Text = ""


class Why(RowData):
    """Something with its reason."""

    why: Said


class NoteReceived(RowData):
    """A note of the floor, as the wall sent it. The table cannot check who the sender is."""

    note_id: Name
    sender: Name
    text: Said
    sent_s: UtcSeconds  # by the wall's clock


class NoteRead(RowData):
    """A note that a person at the table has read."""

    note_id: Name
    sender: Name


class Interruption(RowData):
    """The program was killed, and another run continues the table."""

    last_s: UtcSeconds  # time of the procedure's newest action; rows of other kinds may be newer
    commands: tuple[Name, ...] = ()  # ids of commands without an answer then
    note: Text = ""


class PolicyInForce(RowData):
    """What the house allows less than the rule text from now on: a policy by its name and hash."""

    name: Text  # "" where the table goes by the rule text alone again
    sha256: HexText


# -- packs --------------------------------------------------------------------------------------


class PackReceived(RowData):
    """A deck or a batch arrives; ``bag`` is the number of its bag or seal."""

    pack_id: PackId
    back: Name
    cards: Count
    bag: Said
    brought_by: Text = ""  # who handed it over, as the receiver names that person
    until_s: UtcSeconds | None = None  # when its hours end; None: the rule text sets none


class OfPack(RowData):
    """Something done with one pack."""

    pack_id: PackId


class ShuffleStarted(RowData):
    """A shuffle begins."""

    pack_id: PackId
    by: ShuffledBy
    shuffle_id: Annotated[int, Field(ge=0)] | None = None  # the machine's


class PackCounted(RowData):
    """A pack was counted, after a shuffle or by hand."""

    pack_id: PackId
    by: CountedBy
    cards: Count | None  # None: the machine could not prove a number
    expected: Count


class ShuffleFinished(RowData):
    """A shuffle ended, with the machine's count if it counted."""

    pack_id: PackId
    by: ShuffledBy
    cards: Count | None = None
    expected: Count


class SeatOfPack(RowData):
    """A seat's part in the cut."""

    pack_id: PackId
    seat: Seat


class PackCut(RowData):
    """A cut; ``seat`` 0 is the dealer."""

    pack_id: PackId
    from_top: Count
    seat: int = Field(0, ge=0, le=16)


class CoverPlaced(RowData):
    """The second cover card of a batch."""

    pack_id: PackId
    above_bottom: Count


class BurnCardShown(RowData):
    """The first card of a new shoe, as the dealer showed it."""

    pack_id: PackId
    first: CardText


class PackBurned(RowData):
    """A batch's first card, and how many went face down after it."""

    pack_id: PackId
    first: CardText
    burned: Count


class PackRetired(RowData):
    """A pack leaves the table for good."""

    pack_id: PackId
    reason: RemovalReason
    why: Text = ""
    destination: Destination
    bag: Text = ""  # number of the bag or seal it leaves in


class HoursWarned(RowData):
    """A pack's hours are nearly over."""

    pack_id: PackId
    minutes: Literal[30, 10]
    until_s: UtcSeconds


# -- a round ------------------------------------------------------------------------------------


class RoundOpened(RowData):
    """Bets are open; the dealer is who was signed in then."""

    pack_id: PackId
    method: DealingMethod
    dealer: Name  # person id
    serial: Text = ""  # of the machine that deals; "": none
    simulated: bool = False  # a simulated round has no wagers (MDM 13.D)


class StackDealt(RowData):
    """The machine dealt a stack to a seat; seat 0 is the dealer."""

    stack: Count
    seat: int = Field(ge=0, le=16)
    cards: Count | None  # as the exit counted them; not proved before the stub is counted


class CardDealt(RowData):
    """One card came, face down or not yet told."""

    number: Count
    draw: Count = 0  # the machine's number of the draw; 0: dealt by hand


class CardAside(RowData):
    """A card out of the machine that goes to no hand now: it came face up, or was drawn in error."""

    draw: Count


class StubCounted(RowData):
    """Stacks and stub were counted; ``advice`` is the machine's verdict, ``verdict`` the dealer's."""

    by: CountedBy
    stacks: Count | None
    stub: Count | None
    expected: Count
    verdict: Verdict | None  # None: not determined yet
    advice: Verdict | None = None


class VerdictGiven(RowData):
    """The dealer determines what the count means (MD3 10.C)."""

    verdict: Verdict
    advice: Verdict | None = None  # the machine's


class Exposed(RowData):
    """Hands that lie face up, and who told their cards; no source: the cards are not known."""

    hands: tuple[Hand, ...]
    source: CardSource | None

    @model_validator(mode="after")
    def _source_fits(self) -> Self:
        known = [each.cards is not None for each in self.hands]
        if (self.source is not None) != any(known):
            raise ValueError("cards have a source, and only cards have one")
        named = [(each.of, each.seat) for each in self.hands]
        if len(set(named)) != len(named):
            raise ValueError("a hand is named twice")
        return self


class ThirdCard(RowData):
    """A third card of mini baccarat, face up."""

    to: Literal["player", "banker"]
    card: CardText | None
    source: CardSource | None


class Announced(RowData):
    """Points that the dealer announced after the first four cards, and those cards if they are known."""

    player: Annotated[int, Field(ge=0, le=9)] | None
    banker: Annotated[int, Field(ge=0, le=9)] | None
    hands: tuple[Hand, ...] = ()
    source: CardSource | None = None


class SeenCard(RowData):
    """A card that was exposed out of its turn, if somebody saw its face."""

    card: CardText | None = None


class Meter(RowData):
    """One progressive meter."""

    name: Name
    cents: Cents


class Settled(RowData):
    """Each wager's result; without lines the dealer settled, and the program does not know how."""

    lines: tuple[ResultLine, ...] | None
    meters: tuple[Meter, ...] = ()  # progressive meters afterwards


class Voided(RowData):
    """Why a round is void (its clause is the row's), and what goes back, if the wagers are known."""

    why: Said
    give_back: tuple[Wager, ...] | None
    countersign: bool = False  # whether the floor must countersign it within the shift


class MustHit(RowData):
    """The progressive controller named a winner."""

    seat: Seat
    cents: Cents


class Correction(RowData):
    """Dealer and floor together replace parts of a round. A part that is left out stays as it was."""

    dealer: Name  # person id; the floor is the row's actor
    dealer_how: Authentication
    why: Said
    bets: Bets | None = None
    exposed: Exposed | None = None
    settled: Settled | None = None
    counted: StubCounted | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if all(each is None for each in (self.bets, self.exposed, self.settled, self.counted)):
            raise ValueError("a correction changes something")
        if self.dealer_how in (Authentication.SENSED, Authentication.PROGRAM):
            raise ValueError("the dealer of a correction is a person")
        return self


class CorrectionProposed(RowData):
    """What a dealer says that a round really was; it counts once the floor confirms it."""

    why: Said
    bets: Bets | None = None
    exposed: Exposed | None = None
    settled: Settled | None = None


class OfRow(RowData):
    """Something that refers to an earlier row."""

    row: Number
    note: Text = ""


class DisputeOpened(RowData):
    """What is disputed ("the screen is wrong"), and at which machine."""

    why: Said
    serial: Text = ""


class DisputeDecided(RowData):
    """The decision on a dispute, with surveillance's reference."""

    row: Number  # that opened the dispute
    surveillance: Said
    decision: Said
    machine_wrong: bool


# -- the machine --------------------------------------------------------------------------------


class FaultRaised(RowData):
    """A half of the machine stopped."""

    serial: Name
    half: DeviceUnit
    fault: Name
    place: Text = ""
    cards: Count | None = None
    steps: tuple[Said, ...] = ()


class FaultCleared(RowData):
    """A fault is cleared, as the sensors confirm."""

    serial: Name
    half: DeviceUnit
    fault: Name
    countersign: bool = False  # a dealer cleared it, and the floor must countersign


class FaultDone(RowData):
    """A person says that a fault's steps are done; the sensors decide."""

    fault: Name
    countersign: bool = False  # a dealer said so, and the floor must countersign


class MachineStarted(RowData):
    """The machine started again; nothing in it is proved."""

    reason: Name


class MachineUnit(RowData):
    """A half of a machine."""

    serial: Text = ""
    unit: DeviceUnit
    why: Text = ""


class MarkedOutOfOrder(RowData):
    """How a half is kept from being used (MD3 13.E)."""

    serial: Text = ""
    unit: DeviceUnit
    how: Literal["covered", "sign"]


class PartJogged(RowData):
    """A part of the machine that service moves."""

    part: Name


class ValueCalibrated(RowData):
    """A calibration value in micrometres, and the one before."""

    what: Name
    value: Annotated[int, Field(ge=-10000, le=10000)]
    was: Annotated[int, Field(ge=-10000, le=10000)]


class Component(RowData):
    """One component of a machine with its version."""

    name: Name
    version: Name


class Identified(RowData):
    """The machine at the table."""

    serial: Name
    model: Text = ""
    components: tuple[Component, ...] = ()


class MachineInstalled(RowData):
    """A machine that service put here; the floor confirms it."""

    serial: Name


class PcInstalled(RowData):
    """A table PC that service put here, and the record that it continues; the floor confirms it."""

    before: Name
    rows: Count
    round_id: Count


class MachineSwapped(RowData):
    """Another machine at this table."""

    before: Text  # serial number; "": there was none
    after: Name
    service: Name  # person id of the technician; the floor is the row's actor


class PcSwapped(RowData):
    """Another table PC; this record continues the numbers of the one before."""

    before: Name  # record id
    rows: Count  # of the record before, as far as it was read
    round_id: Count  # the newest round then
    service: Name


class RecordRestored(RowData):
    """The file was moved, or restored from a copy: the record id and the number of rows before that."""

    before: Name  # record id
    rows: Count


class RecordMigrated(RowData):
    """The rows before this one were taken from a record of an older version."""

    version: Count
    rows: Count
    kept: Text  # name of the copy of the old file
    sha256: HexText


class LoggedBefore(RowData):
    """A line of an older record. The older program wrote it; no person was authenticated."""

    what: Annotated[str, StringConstraints(max_length=4000)]
    who: Annotated[str, StringConstraints(max_length=4000)]
    role: Text


class ShuffleCommitted(RowData):
    """The machine committed itself to a shuffle, and our nonce is on disk."""

    pack_id: PackId
    memory_id: HexText
    shuffle_id: Annotated[int, Field(ge=0)]
    commitment: HexText


class ShuffleRevealed(RowData):
    """A shuffle was revealed and checked; ``wrong`` is "" if all of it fits. The rest proves it once more."""

    memory_id: HexText
    shuffle_id: Annotated[int, Field(ge=0)]
    pack_id: PackId | None = None
    cards: Count = 0
    commitment: HexText = ""
    nonce: HexText = ""  # ours
    seed: HexText = ""  # the device's
    slots: tuple[Count, ...] = ()  # for each card fed, how many lay above it then
    wrong: Text


class CommandSent(RowData):
    """A command that went to the machine. No program writes this row now."""

    command: Name
    message: Name


class Unexplained(RowData):
    """What was told or followed, and why the rules refuse it."""

    what: Name
    why: Said
    countersign: bool = False


class CommandAnswered(RowData):
    """A request that the machine did not execute: its message name, and the error."""

    command: Name
    outcome: Said
