"""Acts: what people tell a table's session that they did, decided or want. Plain values.

An act has a name, which faces and records use, and the roles that may give it. The rule text may allow an act
to fewer roles or refuse it, and so may the house policy; neither allows more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import TypeAdapter, ValidationError

from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod

D, F, S = TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE


@dataclass(frozen=True, slots=True)
class Act:
    """The base of every act."""

    NAME: ClassVar[str] = ""
    ROLES: ClassVar[tuple[TableRole, ...]] = ()


# -- the table and its people -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenTable(Act):
    """The table opens, and the machine is set to its game; ``method`` None: cards are dealt as before."""

    NAME = "open_table"
    ROLES = (F,)

    method: DealingMethod | None = None


@dataclass(frozen=True, slots=True)
class CloseTable(Act):
    """The table closes."""

    NAME = "close_table"
    ROLES = (F,)


@dataclass(frozen=True, slots=True)
class SignIn(Act):
    """A dealer begins to deal here. The dealer before is relieved."""

    NAME = "sign_in"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class SignOut(Act):
    """The dealer leaves, and nobody follows yet."""

    NAME = "sign_out"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class CallFloor(Act):
    """The dealer calls the floor."""

    NAME = "call_floor"
    ROLES = (D,)

    why: str = "called"


# -- packs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReceivePack(Act):
    """A pack arrives in a bag or under a seal with this number."""

    NAME = "receive_pack"
    ROLES = (F,)

    back: str
    bag: str
    brought_by: str = ""


@dataclass(frozen=True, slots=True)
class RegisterPack(Act):
    """The machine is told of a pack that the table has received."""

    NAME = "register_pack"
    ROLES = (F,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class Inspect(Act):
    """The dealer inspected a pack."""

    NAME = "inspect"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class Verify(Act):
    """The floor verified the inspection."""

    NAME = "verify"
    ROLES = (F,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class Spread(Act):
    """The pack is spread."""

    NAME = "spread"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class Wash(Act):
    """The pack is turned and mixed."""

    NAME = "wash"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class Stack(Act):
    """The pack is one stack."""

    NAME = "stack"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class RemovePack(Act):
    """A pack leaves the table for good."""

    NAME = "remove_pack"
    ROLES = (F,)

    pack_id: int
    reason: RemovalReason
    destination: str = "cancelled"
    bag: str = ""


@dataclass(frozen=True, slots=True)
class OrderShuffle(Act):
    """The floor orders a pack to be shuffled again that came out of the machine unplayed."""

    NAME = "order_shuffle"
    ROLES = (F,)

    pack_id: int


# -- a round ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoMoreBets(Act):
    """Bets are closed. Seats and wagers lie as told, or as in the round before (None)."""

    NAME = "no_more_bets"
    ROLES = (D,)

    wagers: Mapping[int, Mapping[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Expose(Act):
    """The hands lie open, and the wagers are settled as shown."""

    NAME = "expose"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class TypeHands(Act):
    """The cards as they lie open, where no reader told them. Seat 0 is the dealer."""

    NAME = "type_hands"
    ROLES = (D,)

    hands: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Determine(Act):
    """The dealer determines what a wrong count means (MD3 10.C(2-4))."""

    NAME = "determine"
    ROLES = (D,)

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ReportFaceUp(Act):
    """A card lies face up in the shoe."""

    NAME = "report_face_up"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class ReportWrongNumber(Act):
    """Somebody has a wrong number of cards, or a card too many came out."""

    NAME = "report_wrong_number"
    ROLES = (D,)

    why: str = "a wrong number of cards"


@dataclass(frozen=True, slots=True)
class ReportShoeFailed(Act):
    """The shoe jammed, stopped or did not deal."""

    NAME = "report_shoe_failed"
    ROLES = (D,)

    why: str = "the shoe did not deal"


@dataclass(frozen=True, slots=True)
class VoidRound(Act):
    """The floor voids the round."""

    NAME = "void_round"
    ROLES = (F,)

    why: str


@dataclass(frozen=True, slots=True)
class Hold(Act):
    """The cards of this round stay out of the tray until the floor releases them."""

    NAME = "hold"
    ROLES = (D, F)

    why: str = "held"


@dataclass(frozen=True, slots=True)
class Release(Act):
    """The floor releases held cards."""

    NAME = "release"
    ROLES = (F,)

    note: str = ""


@dataclass(frozen=True, slots=True)
class Countersign(Act):
    """The floor countersigns a row of the record."""

    NAME = "countersign"
    ROLES = (F,)

    row: int
    note: str = ""


# -- the machine --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetGame(Act):
    """The machine is set to this table's game."""

    NAME = "set_game"
    ROLES = (F,)


@dataclass(frozen=True, slots=True)
class ClearFault(Act):
    """The steps of a fault were done; the machine checks with its sensors."""

    NAME = "clear_fault"
    ROLES = (D, F, S)

    fault: str


@dataclass(frozen=True, slots=True)
class EmptyMachine(Act):
    """Every card inside comes out and is shuffled again."""

    NAME = "empty_machine"
    ROLES = (F,)


@dataclass(frozen=True, slots=True)
class Purge(Act):
    """The shoe's door was opened and closed; the deal roller turns once."""

    NAME = "purge"
    ROLES = (F,)


@dataclass(frozen=True, slots=True)
class PathInspected(Act):
    """The floor looked: no card lies in the shoe's path."""

    NAME = "path_inspected"
    ROLES = (F,)


# -- ways to deal -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangeMethod(Act):
    """Cards are dealt another way from now on."""

    NAME = "change_method"
    ROLES = (F,)

    method: DealingMethod
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlayOnePack(Act):
    """The floor chooses to go on with one pack."""

    NAME = "play_one_pack"
    ROLES = (F,)


@dataclass(frozen=True, slots=True)
class ReportUnitFailed(Act):
    """A half of the machine cannot be used."""

    NAME = "unit_failed"
    ROLES = (D, F)

    unit: DeviceUnit
    why: str = "it cannot be used"


@dataclass(frozen=True, slots=True)
class MarkOutOfOrder(Act):
    """A failed half is covered, or has its sign."""

    NAME = "mark_out_of_order"
    ROLES = (D, F)

    unit: DeviceUnit
    how: Literal["covered", "sign"]


@dataclass(frozen=True, slots=True)
class Repaired(Act):
    """A half may be used again."""

    NAME = "repaired"
    ROLES = (F,)

    unit: DeviceUnit


@dataclass(frozen=True, slots=True)
class StartShuffle(Act):
    """The dealer begins to shuffle a pack by hand."""

    NAME = "start_shuffle"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class FinishShuffle(Act):
    """The dealer has shuffled a pack by hand."""

    NAME = "finish_shuffle"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class VerifyShuffle(Act):
    """The floor looked at a stack that was shuffled by hand."""

    NAME = "verify_shuffle"
    ROLES = (F,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class DeclineCut(Act):
    """A player does not want to cut; the dealer tells it."""

    NAME = "decline_cut"
    ROLES = (D,)

    pack_id: int
    seat: int


@dataclass(frozen=True, slots=True)
class CutPack(Act):
    """A pack is cut so many cards from the top, by a seat or by the dealer (0)."""

    NAME = "cut"
    ROLES = (D,)

    pack_id: int
    from_top: int
    seat: int = 0


@dataclass(frozen=True, slots=True)
class OrderRecut(Act):
    """The floor orders another cut."""

    NAME = "order_recut"
    ROLES = (F,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class PlaceCover(Act):
    """The second cover card lies so many cards above the bottom."""

    NAME = "place_cover"
    ROLES = (D,)

    pack_id: int
    above_bottom: int


@dataclass(frozen=True, slots=True)
class LaidIn(Act):
    """A pack lies in the machine's shoe, and the door is shut; the machine checks with its sensors."""

    NAME = "laid_in"
    ROLES = (F,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class LoadPack(Act):
    """A pack lies in the manual shoe, or in the dealer's hand."""

    NAME = "load"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class Burn(Act):
    """A new shoe's first card is shown, and as many cards as it counts go with it, face down."""

    NAME = "burn"
    ROLES = (D,)

    pack_id: int
    first: str


@dataclass(frozen=True, slots=True)
class EndShoe(Act):
    """The cards of a finished manual shoe are in the discard rack."""

    NAME = "discard"
    ROLES = (D,)

    pack_id: int


@dataclass(frozen=True, slots=True)
class CollectVigorish(Act):
    """The dealer collects the vigorish that a seat owes."""

    NAME = "collect_vigorish"
    ROLES = (D,)

    seat: int


@dataclass(frozen=True, slots=True)
class Leave(Act):
    """A player leaves the table; the dealer tells it."""

    NAME = "leave"
    ROLES = (D,)

    seat: int


@dataclass(frozen=True, slots=True)
class Dealt(Act):
    """Every hand has the cards that it begins with, dealt by hand one after the other."""

    NAME = "dealt"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class CountStub(Act):
    """The dealer counted the stub; where it does not fit, the cards of every hand too. Seat 0 is the dealer."""

    NAME = "count_stub"
    ROLES = (D,)

    stub: int
    hands: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PassStub(Act):
    """The stub goes to the discards uncounted."""

    NAME = "pass_stub"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class Announce(Act):
    """The first four cards lie open and are these."""

    NAME = "announce"
    ROLES = (D,)

    player: tuple[str, ...]
    banker: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnThird(Act):
    """A hand's third card lies open and is this one."""

    NAME = "third_card"
    ROLES = (D,)

    to: Literal["player", "banker"]
    card: str


@dataclass(frozen=True, slots=True)
class Settle(Act):
    """The wagers are settled as shown."""

    NAME = "settle"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class Collect(Act):
    """The cards of the round are off the layout."""

    NAME = "collect"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class ReportDrawnInError(Act):
    """A card too many was drawn; its name if somebody saw it."""

    NAME = "drawn_in_error"
    ROLES = (D,)

    seen: str | None = None


@dataclass(frozen=True, slots=True)
class ReportThird(Act):
    """The Player got a third card against the rules; its name if somebody saw it."""

    NAME = "unauthorised_third"
    ROLES = (D,)

    seen: str | None = None


@dataclass(frozen=True, slots=True)
class ReportExposed(Act):
    """A card was seen that belongs to no hand."""

    NAME = "card_exposed"
    ROLES = (D,)

    card: str


@dataclass(frozen=True, slots=True)
class ReportTooFew(Act):
    """The shoe cannot finish the round."""

    NAME = "too_few_cards"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class ReportCover(Act):
    """The cover card came out of a manual shoe."""

    NAME = "cover_card"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class AnnounceLastHand(Act):
    """The dealer announces the shoe's last hand."""

    NAME = "announce_last_hand"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class BeginSimulated(Act):
    """A card that was seen opens a round without wagers."""

    NAME = "begin_simulated"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class AuthoriseSimulated(Act):
    """The floor lets the machine deal a round without wagers."""

    NAME = "authorise_simulated"
    ROLES = (F,)


@dataclass(frozen=True, slots=True)
class Idle(Act):
    """Nobody plays."""

    NAME = "idle"
    ROLES = (D,)


@dataclass(frozen=True, slots=True)
class PlayerArrives(Act):
    """Somebody wants to play at an idle table."""

    NAME = "player_arrives"
    ROLES = (D,)

    spread_stored: bool = False


WAYS_TO_DEAL: tuple[type[Act], ...] = (
    ChangeMethod, PlayOnePack, ReportUnitFailed, MarkOutOfOrder, Repaired, StartShuffle, FinishShuffle,
    VerifyShuffle, DeclineCut, CutPack, OrderRecut, PlaceCover, LaidIn, LoadPack, Burn, EndShoe,
    CollectVigorish, Leave, Dealt, CountStub, PassStub, Announce, TurnThird, Settle, Collect,
    ReportDrawnInError, ReportThird, ReportExposed, ReportTooFew, ReportCover, AnnounceLastHand,
    BeginSimulated, AuthoriseSimulated, Idle, PlayerArrives,
)  # fmt: skip

_EVERY: tuple[type[Act], ...] = (
    OpenTable, CloseTable, SignIn, SignOut, CallFloor, ReceivePack, RegisterPack, Inspect, Verify, Spread,
    Wash, Stack, RemovePack, OrderShuffle, NoMoreBets, Expose, TypeHands, Determine, ReportFaceUp,
    ReportWrongNumber, ReportShoeFailed, VoidRound, Hold, Release, Countersign, SetGame, ClearFault,
    EmptyMachine, Purge, PathInspected, *WAYS_TO_DEAL,
)  # fmt: skip
ACTS: Mapping[str, type[Act]] = {each.NAME: each for each in _EVERY}
"""Every act by its name."""


class NotAnAct(ValueError):
    """A name or data that make no act; the text says which."""


def parse_act(name: str, data: Mapping[str, Any]) -> Act:
    """The act of this name with this data, as a face sends it; `NotAnAct` if there is none such."""
    kind = ACTS.get(name)
    if kind is None:
        raise NotAnAct(f"there is no act '{name}'")
    try:
        made: Act = TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise NotAnAct(f"act '{name}': {error.errors()[0]['msg']}") from error
    return made
