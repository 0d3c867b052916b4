"""A shuffled pack on its way into a shoe: out of the machine, cut, covered (MD3 5.C-E, MDM 5.B-E)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import (
    Booted,
    DeckDelivered,
    DeliverDeck,
    FaultRaised,
    ShoeChanged,
    ShoeState,
    ShufflerState,
)
from sabot_session import dealing_acts
from sabot_session.act_base import Act
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.rows import Json
from sabot_session.session_state import SessionState
from sabot_table.procedure import TableProcedure, TableRole
from sabot_table.procedure.memory import PackState
from sabot_table.procedure.packs import IN_SHOE
from sabot_table.procedure.vocabulary import RemovalReason

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

D, F = TableRole.DEALER, TableRole.FLOOR
PREPARED = ("shuffled", "cut", "covered")


class PackDelivery:
    """Brings a pack out of the machine when its turn comes, and has it cut and covered."""

    def __init__(self, state: SessionState, procedure: TableProcedure) -> None:
        self._state = state
        self._procedure = procedure

    # -- what the machine does ------------------------------------------------------------------

    def request(self) -> Request[Any] | None:
        """The pack on the shelf comes out once its turn is there and no pack is in the shoe."""
        table, device, shoe = self._procedure.table, self._state.device, self._state.shoe
        if table.state != "between" or shoe.deliver_asked or shoe.out or table.memory.units:
            return None
        if device.shoe != ShoeState.EMPTY or device.shuffler != ShufflerState.STORED:
            return None
        if any(each.state in IN_SHOE or each.pack_id == table.memory.delivered for each in table.packs()):
            return None
        pack = next((each for each in table.packs() if each.pack_id == device.in_shuffler), None)
        if pack is None or pack.state != "shuffled" or not self.has_turn(pack.pack_id):
            return None
        return DeliverDeck(pack.pack_id)

    def has_turn(self, pack_id: int) -> bool:
        """Whether this pack may be dealt next."""
        table, memory = self._procedure.table, self._procedure.table.memory
        alternates = table.uses_shuffler() and not memory.one_pack
        return not alternates or pack_id != memory.last_pack or pack_id == memory.delivered

    def hear(self, session: "SessionStep", told: Message, now_s: int) -> bool:
        """The pack came out, and the machine counted it."""
        shoe = self._state.shoe
        if isinstance(told, Booted | FaultRaised | ShoeChanged):
            shoe.deliver_asked = 0
            return False
        if not isinstance(told, DeckDelivered):
            return False
        shoe.deliver_asked = 0
        pack = self._known(told.deck_id)
        if pack is None or pack.state != "shuffled" or self._procedure.table.memory.units:
            return True  # without a machine the pack is shuffled again by hand
        if self._procedure.table.state == "closed":
            device = self._state.device
            device.doubtful = sorted({*device.doubtful, told.deck_id})  # the floor orders another shuffle
            return True
        by = session.device_by(now_s)
        session.do(self._procedure.packs.deliver, by, told.deck_id)
        if told.count == told.expected:
            shoe.out = told.deck_id
            return True
        why = f"{told.count} cards instead of {told.expected}"
        reason = RemovalReason.WRONG_COUNT
        session.do(self._procedure.packs.remove_pack, by, told.deck_id, reason, why)
        return True

    def executed(self, request: Request[Any]) -> bool:
        """The machine brings the pack out."""
        if not isinstance(request, DeliverDeck):
            return False
        device, pack = self._state.device, self._known(request.deck_id)
        if pack is not None and pack.state == "shuffled":
            self._procedure.packs.begin_delivery(request.deck_id)
        if (device.shuffler, device.in_shuffler) == (ShufflerState.STORED, request.deck_id):
            self._state.shoe.deliver_asked = request.deck_id  # else events have told of it before the answer
        return True

    def _known(self, pack_id: int) -> PackState | None:
        return next((each for each in self._procedure.table.packs() if each.pack_id == pack_id), None)

    # -- what people do -------------------------------------------------------------------------

    def next_pack(self) -> PackState | None:
        """The shuffled pack that lies on the table and goes into the shoe next; None while there is none."""
        table = self._procedure.table
        if any(each.state in IN_SHOE for each in table.packs()):
            return None
        for pack in table.packs():
            here = pack.pack_id == self._state.shoe.out or pack.shuffled_by != "machine"
            if pack.state in PREPARED and here and self.has_turn(pack.pack_id):
                return pack
        return None

    def is_ready(self, pack: PackState) -> bool:
        """Whether nothing is to be done with a pack before it goes into the shoe."""
        if not self._procedure.packs.needs_cut(pack):
            return True
        return pack.state == ("covered" if self._procedure.table.has("place_cover") else "cut")

    def needs(self) -> Iterator[NeedForm]:
        """Take it, verify its shuffle, cut it, place its cover card."""
        table, device = self._procedure.table, self._state.device
        if table.memory.round is None and device.shoe == ShoeState.STUB_WAITING and not table.memory.units:
            words = "take the cards out of the exit tray"
            yield NeedForm(NeedKind.TAKE_PACK, (D,), words, self._clause("load"))
        pack = self.next_pack()
        if pack is None or table.state != "between" or self.is_ready(pack):
            return
        back, packs = pack.back.upper(), self._procedure.packs
        details: dict[str, Json] = {"pack_id": pack.pack_id, "back": pack.back}
        if pack.shuffled_by == "hand" and table.has("verify_shuffle") and not pack.shuffle_verified:
            words = f"look at {back}, which was shuffled by hand: are the cards mixed evenly?"
            yield self._form(NeedKind.VERIFY_SHUFFLE, F, words, dealing_acts.VerifyShuffle, details)
        elif pack.state == "shuffled":
            terms, cards = table.rules.fixed.cut, table.pack_cards
            seat = next(iter(packs.cutters(pack)), 0) if terms.by_players else 0
            who = f"seat {seat}" if seat else "the dealer"
            least, most = terms.from_top, cards - terms.from_bottom
            words = f"{who} cuts {back}, at least {least} from the top, {terms.from_bottom} from the bottom"
            offered: dict[str, Json] = {"seat": seat, "least": least, "most": most}
            yield self._form(
                NeedKind.CUT, D, words, dealing_acts.CutPack, {**details, **offered}, dealing_acts.DeclineCut
            )
        else:
            cover = table.rules.fixed.cover
            assert cover is not None  # a text with this act has it
            words = f"place the second cover card of {back}, at least {cover.above_bottom} above the bottom"
            bounds: dict[str, Json] = {"least": cover.above_bottom, "most": table.pack_cards - 1}
            yield self._form(NeedKind.PLACE_COVER, D, words, dealing_acts.PlaceCover, {**details, **bounds})

    def _form(
        self, kind: NeedKind, role: TableRole, words: str, act: type[Act], details: dict[str, Json],
        *others: type[Act],
    ) -> NeedForm:  # fmt: skip
        names = (act.NAME, *(each.NAME for each in others))
        return NeedForm(kind, (role,), words, self._clause(act.NAME), names, str(details["pack_id"]), details)

    def _clause(self, key: str) -> str:
        return self._procedure.table.clause(key)
