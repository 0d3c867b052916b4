"""Needs: what must happen at a table now, who may do it, and by which clause."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sabot_session.rows import Json
from sabot_table.procedure import TableRole


class NeedKind(StrEnum):
    """What must happen."""

    OPEN_TABLE = "open_table"
    SIGN_IN = "sign_in"
    LINK = "link"  # the machine does not answer
    SET_GAME = "set_game"
    RECEIVE_PACK = "receive_pack"
    REGISTER_PACK = "register_pack"
    PREPARE_PACK = "prepare_pack"  # inspect, verify, spread, wash, stack
    REMOVE_PACK = "remove_pack"
    REPLACE_PACK = "replace_pack"  # one that stops the shuffler again and again
    ORDER_SHUFFLE = "order_shuffle"
    FEED = "feed"  # a pack into the tray
    RELEASE = "release"  # cards that are held
    CLEAR_FAULT = "clear_fault"
    EMPTY_MACHINE = "empty_machine"
    PURGE = "purge"
    INSPECT_PATH = "inspect_path"
    OUT_OF_ORDER = "out_of_order"  # the machine says so; service returns it
    MARK_OUT_OF_ORDER = "mark_out_of_order"  # sign or cover (MD3 13.E)
    BETS = "bets"
    TAKE_STACK = "take_stack"
    TAKE_STUB = "take_stub"
    DETERMINE = "determine"
    EXPOSE = "expose"
    TYPE_HANDS = "type_hands"
    COUNTERSIGN = "countersign"
    UNEXPLAINED = "unexplained"  # the machine told what does not fit the table
    DECIDE_DISPUTE = "decide_dispute"
    CONFIRM_CORRECTION = "confirm_correction"
    SWAP_MACHINE = "swap_machine"
    SWAP_PC = "swap_pc"
    FLOOR_COMES = "floor_comes"  # the dealer has called
    PLAYER_ARRIVES = "player_arrives"  # the table is idle
    CHANGE_METHOD = "change_method"
    SHUFFLE_BY_HAND = "shuffle_by_hand"
    VERIFY_SHUFFLE = "verify_shuffle"
    CUT = "cut"
    PLACE_COVER = "place_cover"
    LAY_IN = "lay_in"  # a pack into the machine's shoe
    LOAD = "load"  # a pack into the manual shoe, or the dealer's hand
    BURN = "burn"
    END_SHOE = "end_shoe"
    COLLECT_VIGORISH = "collect_vigorish"
    DEAL = "deal"  # by hand
    COUNT_STUB = "count_stub"
    TYPE_CARDS = "type_cards"  # the first four of mini baccarat
    TYPE_THIRD = "type_third"
    NAME_CARD = "name_card"  # one that came face up
    CONTROLLER = "controller"  # the progressive controller names a winner
    SETTLE = "settle"
    COLLECT = "collect"
    TAKE_OUT = "take_out"  # cards out of a machine that cannot be used
    LAST_HAND = "last_hand"
    SIMULATED_ROUND = "simulated_round"
    TAKE_CARD = "take_card"
    TAKE_PACK = "take_pack"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that must happen now."""

    id: str
    kind: NeedKind
    roles: tuple[TableRole, ...]
    """Who may meet it; empty if no person at the table can."""
    words: str
    clause: str
    acts: tuple[str, ...]
    """The names of the acts that meet it; empty if the machine senses it."""
    since_s: int
    seen: int
    """The record's newest row when the need's roles, acts or details changed last.

    An act is refused if its person saw only older rows (``seen`` of `TableSession.act`).
    """
    details: Mapping[str, Json] = field(default_factory=dict)

    @property
    def sensed(self) -> bool:
        """Whether the machine senses that a person did it, so that no act is given."""
        return not self.acts and bool(self.roles)


@dataclass(frozen=True, slots=True)
class NeedForm:
    """A need as it follows from the state, without number and times. ``key`` is unique within the kind."""

    kind: NeedKind
    roles: tuple[TableRole, ...]
    words: str
    clause: str = ""
    acts: tuple[str, ...] = ()
    key: str = ""
    details: Mapping[str, Json] = field(default_factory=dict)
