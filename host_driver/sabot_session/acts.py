"""Acts: what people tell a table's session that they did, decided or want. Plain values.

An act has a name, which faces and records use, and the roles that may give it. The rule text may allow an act
to fewer roles or refuse it, and so may the house policy; neither allows more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sabot_session import (
    dealing_acts,
    dispute_acts,
    equipment_acts,
    note_acts,
    seat_acts,
    service_acts,
    swap_acts,
)
from sabot_session.act_base import Act, D, F, S
from sabot_session.dispute_acts import (
    ConfirmCorrection,
    DecideDispute,
    DeclineCorrection,
    Hold,
    OpenDispute,
    ProposeCorrection,
    Release,
)
from sabot_session.equipment_acts import MarkOutOfOrder, Repaired, ReportUnitFailed, ReturnToService
from sabot_session.seat_acts import (
    Abandon,
    Forfeit,
    Idle,
    Leave,
    OpenBets,
    PlaceWager,
    PlayerArrives,
    ReturnBets,
    Sit,
    WithdrawWager,
)
from sabot_session.swap_acts import InstallMachine, InstallPc, SwapMachine, SwapPc
from sabot_table.procedure.vocabulary import RemovalReason, Verdict
from sabot_table.rule_texts import DealingMethod

__all__ = [
    "ACTS",
    "Abandon",
    "Act",
    "CallFloor",
    "ClearFault",
    "CloseTable",
    "ConfirmCorrection",
    "Countersign",
    "DecideDispute",
    "DeclineCorrection",
    "Determine",
    "EmptyMachine",
    "Expose",
    "FloorComes",
    "Forfeit",
    "Hold",
    "Idle",
    "Inspect",
    "InstallMachine",
    "InstallPc",
    "Leave",
    "LeaveUntyped",
    "MarkOutOfOrder",
    "NoMoreBets",
    "NotAnAct",
    "OpenBets",
    "OpenDispute",
    "OpenTable",
    "OrderShuffle",
    "PathInspected",
    "PlaceWager",
    "PlayerArrives",
    "ProposeCorrection",
    "Purge",
    "ReceivePack",
    "RegisterPack",
    "Release",
    "RemovePack",
    "Repaired",
    "ReportFaceUp",
    "ReportShoeFailed",
    "ReportUnitFailed",
    "ReportWrongNumber",
    "ReturnBets",
    "ReturnToService",
    "SetGame",
    "SignIn",
    "SignOut",
    "Sit",
    "Spread",
    "Stack",
    "SwapMachine",
    "SwapPc",
    "TypeHands",
    "Verify",
    "VoidRound",
    "Wash",
    "WithdrawWager",
    "parse_act",
]

# -- the table and its people -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenTable(Act):
    """The table opens, and the machine is set to its game; ``method`` None: cards are dealt as before."""

    NAME = "open_table"
    ROLES = (F,)
    ACTION = "open_table"

    method: DealingMethod | None = None


@dataclass(frozen=True, slots=True)
class CloseTable(Act):
    """The table closes."""

    NAME = "close_table"
    ROLES = (F,)
    ACTION = "close_table"


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
    """The dealer calls the floor: lamp and display of the machine show it."""

    NAME = "call_floor"
    ROLES = (D,)

    why: str = "called"


@dataclass(frozen=True, slots=True)
class FloorComes(Act):
    """The floor is at the table: the call ends."""

    NAME = "floor_comes"
    ROLES = (F,)


# -- packs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReceivePack(Act):
    """A pack arrives in a bag or under a seal with this number."""

    NAME = "receive_pack"
    ROLES = (F,)
    ACTION = "receive_pack"

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
    ACTION = "inspect"

    pack_id: int


@dataclass(frozen=True, slots=True)
class Verify(Act):
    """The floor verified the inspection."""

    NAME = "verify"
    ROLES = (F,)
    ACTION = "verify"

    pack_id: int


@dataclass(frozen=True, slots=True)
class Spread(Act):
    """The pack is spread."""

    NAME = "spread"
    ROLES = (D,)
    ACTION = "spread"

    pack_id: int


@dataclass(frozen=True, slots=True)
class Wash(Act):
    """The pack is turned and mixed."""

    NAME = "wash"
    ROLES = (D,)
    ACTION = "wash"

    pack_id: int


@dataclass(frozen=True, slots=True)
class Stack(Act):
    """The pack is one stack."""

    NAME = "stack"
    ROLES = (D,)
    ACTION = "stack"

    pack_id: int


@dataclass(frozen=True, slots=True)
class RemovePack(Act):
    """A pack leaves the table for good."""

    NAME = "remove_pack"
    ROLES = (F,)
    ACTION = "remove"

    pack_id: int
    reason: RemovalReason
    destination: str = "cancelled"
    bag: str = ""


@dataclass(frozen=True, slots=True)
class OrderShuffle(Act):
    """The floor orders a pack to be shuffled again that came out of the machine unplayed."""

    NAME = "order_shuffle"
    ROLES = (F,)
    ACTION = "start_shuffle"

    pack_id: int


# -- a round ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoMoreBets(Act):
    """Bets are closed. Seats and wagers lie as told, or as in the round before (both None).

    With ``seats`` alone the wagers are not known: chips lie there, and each wager's result is what it pays.
    """

    NAME = "no_more_bets"
    ROLES = (D,)
    ACTION = "no_more_bets"

    wagers: Mapping[int, Mapping[str, int]] | None = None
    seats: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expose(Act):
    """The hands lie open, and the wagers are settled as shown."""

    NAME = "expose"
    ROLES = (D,)
    ACTION = "reveal"


@dataclass(frozen=True, slots=True)
class TypeHands(Act):
    """The cards as they lie open, where no reader told them. Seat 0 is the dealer."""

    NAME = "type_hands"
    ROLES = (D,)
    ACTION = "reveal"

    hands: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LeaveUntyped(Act):
    """The dealer settled the hands that lie open and types no cards: they are not known."""

    NAME = "leave_untyped"
    ROLES = (D,)
    ACTION = "reveal"


@dataclass(frozen=True, slots=True)
class Determine(Act):
    """The dealer determines what a wrong count means (MD3 10.C(2-4))."""

    NAME = "determine"
    ROLES = (D,)
    ACTION = "determine"

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ReportFaceUp(Act):
    """A card lies face up in the shoe."""

    NAME = "report_face_up"
    ROLES = (D, F)
    ACTION = "face_up_card"


@dataclass(frozen=True, slots=True)
class ReportWrongNumber(Act):
    """Somebody has a wrong number of cards, or a card too many came out."""

    NAME = "report_wrong_number"
    ROLES = (D, F)
    ACTION = "wrong_number"

    why: str = "a wrong number of cards"


@dataclass(frozen=True, slots=True)
class ReportShoeFailed(Act):
    """The shoe jammed, stopped or did not deal."""

    NAME = "report_shoe_failed"
    ROLES = (D, F)
    ACTION = "shoe_failed"

    why: str = "the shoe did not deal"


@dataclass(frozen=True, slots=True)
class VoidRound(Act):
    """The floor voids the round."""

    NAME = "void_round"
    ROLES = (F,)
    ACTION = "void"

    why: str


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


_ALL: tuple[type[Act], ...] = (
    OpenTable, CloseTable, SignIn, SignOut, CallFloor, FloorComes, ReceivePack, RegisterPack, Inspect, Verify,
    Spread, Wash, Stack, RemovePack, OrderShuffle, NoMoreBets, Expose, TypeHands, Determine, ReportFaceUp,
    ReportWrongNumber, ReportShoeFailed, VoidRound, LeaveUntyped, Countersign, SetGame, ClearFault,
    EmptyMachine, Purge, PathInspected,
    *equipment_acts.ACTS, *seat_acts.ACTS, *dispute_acts.ACTS, *dealing_acts.ACTS, *swap_acts.ACTS,
    *service_acts.ACTS, *note_acts.ACTS,
)  # fmt: skip
ACTS: Mapping[str, type[Act]] = {each.NAME: each for each in _ALL}
"""Every act by its name. A module of acts has a tuple ``ACTS``; it is joined here."""


LONGEST_TEXT = 1000
LARGEST = 2**53  # a record's numbers are those of JSON


class NotAnAct(ValueError):
    """A name or data that make no act; the text says which."""


@cache
def _form(name: str) -> TypeAdapter[Act]:
    """What reads and writes an act of this name; it takes a while to make."""
    return TypeAdapter(ACTS[name])


def parse_act(name: str, data: Mapping[str, Any]) -> Act:
    """The act of this name with this data, as a face sends it; `NotAnAct` if there is none such."""
    kind = ACTS.get(name)
    if kind is None:
        raise NotAnAct(f"there is no act '{name}'")
    unknown = set(data) - {each.name for each in fields(kind)}
    if unknown:
        raise NotAnAct(f"act '{name}' has no {', '.join(sorted(unknown))}")
    try:
        made: Act = _form(name).validate_python(data)
    except ValidationError as error:
        raise NotAnAct(f"act '{name}': {error.errors()[0]['msg']}") from error
    for each in fields(kind):
        _check_value(f"act '{name}', {each.name}", getattr(made, each.name))
    return made


def _check_value(where: str, value: object) -> None:
    """`NotAnAct` for a text that no screen shows as it was written, and for a number that no row holds."""
    if isinstance(value, str):
        # Not printable: line ends, escape sequences of terminals, marks that turn the reading direction.
        if not value.isprintable():
            raise NotAnAct(f"{where} has a character that is no plain text")
        if len(value) > LONGEST_TEXT:
            raise NotAnAct(f"{where} has {len(value)} characters, more than {LONGEST_TEXT}")
    elif isinstance(value, int):
        if abs(value) >= LARGEST:
            raise NotAnAct(f"{where} is too large a number")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _check_value(where, key)
            _check_value(where, each)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_value(where, each)


def act_data(act: Act) -> dict[str, Any]:
    """The data of an act in JSON's types; `parse_act` makes the act of them again."""
    made: dict[str, Any] = _form(act.NAME).dump_python(act, mode="json")
    return made
