"""Cards dealt by the dealer: from a manual shoe or from the hand, shuffled by the machine or not (MD3 8, 9).

The machine, where it serves, shuffles packs, counts them and brings them out. Everything else is people's:
they say that hands are dealt, count the stub, and type the cards as they lie. Without a machine the dealer
shuffles one pack.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import Method
from sabot_session import acts, dealing_acts
from sabot_session.act_base import Act
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.pack_delivery import PackDelivery
from sabot_session.rows import Json
from sabot_session.session_state import GameState, RoundProgress, SessionState
from sabot_session.shoe_dealing import between_needs, end_needs
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure import TableProcedure, TableRole
from sabot_table.procedure.memory import PackState, RoundState
from sabot_table.procedure.packs import IN_SHOE
from sabot_table.rule_texts import DealingMethod

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

D, F = TableRole.DEALER, TableRole.FLOOR
ON_DEVICE = {DealingMethod.MANUAL_SHOE: Method.MANUAL_SHOE, DealingMethod.HAND: Method.HAND}
STORED = ("shuffled", "cut", "covered", "loaded")
AFTER = ("settling", "collecting", "voided")


class HandDealing:
    """From a shuffled pack on the table to a settled round, by people's acts alone."""

    def __init__(self, state: SessionState, procedure: TableProcedure, delivery: PackDelivery) -> None:
        self._state = state
        self._procedure = procedure
        self._delivery = delivery

    def game(self, hours: int) -> GameState:
        """The machine shuffles and brings whole packs out."""
        table = self._procedure.table
        cards, one = table.rules.cards, table.memory.one_pack
        stack = HAND_CARDS if table.three_card else 1
        method = ON_DEVICE[table.method]
        return GameState(method, cards.decks, stack, hours, int(one or not cards.alternating))

    def request(self) -> Request[Any] | None:
        """The pack whose turn it is comes out of the machine."""
        return self._delivery.request()

    def hear(self, session: "SessionStep", told: Message, now_s: int) -> bool:
        """A pack came out."""
        return self._delivery.hear(session, told, now_s)

    def executed(
        self, session: "SessionStep", request: Request[Any], answer: Message | None, now_s: int
    ) -> bool:
        """A pack comes out."""
        return self._delivery.executed(request)

    def failed(self, session: "SessionStep", request: Request[Any], reason: int | None) -> None:
        """Nothing follows: the state decides again."""

    def go_on(self, session: "SessionStep", now_s: int) -> None:
        """Nothing happens by itself."""

    # -- what people must do --------------------------------------------------------------------

    def needs(self) -> Iterator[NeedForm]:
        """The round's needs, then those of the pack that is dealt next."""
        table, progress = self._procedure.table, self._state.round
        playing = table.memory.round
        if playing is not None and progress is not None:
            yield from self._needs_of_round(playing, progress)
        elif table.state == "between":
            yield from between_needs(self._procedure)
            yield from self._needs_of_packs()

    def _needs_of_round(self, playing: RoundState, progress: RoundProgress) -> Iterator[NeedForm]:
        table = self._procedure.table
        if table.state == "dealing":
            each = (
                "three cards to each hand"
                if table.three_card
                else "four cards: Player, Banker, Player, Banker"
            )
            words = f"deal {each}, one card after the other"
            key = "dealt_by_hand" if playing.method == DealingMethod.HAND else "deal_card"
            yield self._form(NeedKind.DEAL, words, key, dealing_acts.Dealt)
        elif table.state == "counting":
            yield self._count(playing)
        elif table.state == "revealing":
            left: list[Json] = [seat for seat in table.turns() if seat not in progress.typed]
            details: dict[str, Json] = {"round_id": playing.round_id, "hands": left, "by_hand": True}
            words = "expose the hands and type each as it lies"
            names = (acts.TypeHands.NAME, acts.LeaveUntyped.NAME)
            yield NeedForm(NeedKind.TYPE_HANDS, (D,), words, table.clause("reveal"), names, "", details)
        elif table.state == "drawing":
            yield from self._needs_of_cards(playing)
        elif table.state in AFTER and not self.may_close_bets():
            yield from end_needs(self._procedure)

    def _needs_of_cards(self, playing: RoundState) -> Iterator[NeedForm]:
        details: dict[str, Json] = {"round_id": playing.round_id, "known": [*playing.opened_by]}
        due = self._procedure.mini.third_due()
        if not playing.player:
            words = "turn the four cards, announce the points, type the cards"
            yield self._form(NeedKind.TYPE_CARDS, words, "announce", dealing_acts.Announce, details)
        elif due is not None:
            words = f"deal the {due.capitalize()}'s third card and type it"
            yield self._form(
                NeedKind.TYPE_THIRD, words, "third_card", dealing_acts.TurnThird, {**details, "to": due}
            )

    def _count(self, playing: RoundState) -> NeedForm:
        table = self._procedure.table
        hand, pack = playing.method == DealingMethod.HAND, table.pack(playing.pack_id)
        terms = table.rules.fixed.stub
        may_pass = terms is not None and (pack.counted or pack.uncounted_rounds + 1 < terms.count_every)
        names = (
            (dealing_acts.PassStub.NAME, dealing_acts.CountStub.NAME)
            if may_pass
            else (dealing_acts.CountStub.NAME,)
        )
        words = "count the stub, or put it into the discard rack" if may_pass else "count the stub"
        expected = table.pack_cards - HAND_CARDS * len(table.turns())
        details: dict[str, Json] = {"expected": expected, "hands": [*table.turns()]}
        clause = table.clause("count_hand" if hand else "count_manual")
        return NeedForm(NeedKind.COUNT_STUB, (D,), words, clause, names, "", details)

    def _needs_of_packs(self) -> Iterator[NeedForm]:
        table = self._procedure.table
        for pack in table.packs():
            if table.memory.units and pack.shuffled_by != "prepared":
                yield from self._shuffle(pack)
        yield from self._delivery.needs()
        pack_next = self._delivery.next_pack()
        if pack_next is not None and self._delivery.is_ready(pack_next):
            where = (
                "take {} into the hand"
                if table.method is DealingMethod.HAND
                else "put {} into the manual shoe"
            )
            words = where.format(pack_next.back.upper())
            yield self._form(
                NeedKind.LOAD, words, "load", dealing_acts.LoadPack, {"pack_id": pack_next.pack_id}
            )
        inside = self._in_shoe()
        if inside is None:
            return
        in_hand = inside.pack_id == self._state.shoe.in_hand
        if in_hand and not self._may_be_dealt(inside):
            words = f"{inside.back.upper()} may not be dealt so: order it shuffled again"
            clause, name = table.clause("start_shuffle"), acts.OrderShuffle.NAME
            details: dict[str, Json] = {"pack_id": inside.pack_id}
            yield NeedForm(NeedKind.ORDER_SHUFFLE, (F,), words, clause, (name,), str(inside.pack_id), details)
            return
        if inside.state == "loaded" and table.burns and not table.memory.marked and in_hand:
            words = "show the new shoe's first card, burn as many as it counts, and say which it is"
            yield self._form(NeedKind.BURN, words, "burn", dealing_acts.Burn, {"pack_id": inside.pack_id})
        elif table.memory.cover == "over" or (inside.state == "playing" and not in_hand):
            words = "the shoe is over: put its cards into the discard rack"
            yield self._form(
                NeedKind.END_SHOE, words, "discard", dealing_acts.EndShoe, {"pack_id": inside.pack_id}
            )

    def _shuffle(self, pack: PackState) -> Iterator[NeedForm]:
        """Without a machine: the dealer shuffles, and packs that came out of it are shuffled again."""
        back, details = pack.back.upper(), {"pack_id": pack.pack_id}
        ours = (self._state.shoe.out, self._state.shoe.in_hand)
        by_machine = pack.shuffled_by == "machine" and pack.pack_id not in ours
        if pack.state in ("stacked", "discards"):
            words = f"shuffle {back} by hand"
            yield self._form(
                NeedKind.SHUFFLE_BY_HAND, words, "start_shuffle", dealing_acts.StartShuffle, details
            )
        elif pack.state == "shuffling" and pack.shuffled_by == "hand":
            words = f"finish the shuffle of {back}: one single stack"
            yield self._form(
                NeedKind.SHUFFLE_BY_HAND, words, "finish_shuffle", dealing_acts.FinishShuffle, details
            )
        elif pack.state in ("shuffling", *STORED) and by_machine:
            words = f"take {back} out of the machine and order it shuffled by hand"
            clause, name = self._procedure.table.clause("start_shuffle"), acts.OrderShuffle.NAME
            yield NeedForm(
                NeedKind.ORDER_SHUFFLE, (F,), words, clause, (name,), str(pack.pack_id), {**details}
            )

    def _may_be_dealt(self, pack: PackState) -> bool:
        """Whether a pack in the shoe or the hand has the turn and a fitting shuffle (MD3 3.B, 9.A)."""
        table = self._procedure.table
        if table.method is DealingMethod.HAND and pack.shuffled_by != "machine":
            return False
        return table.burns or pack.state != "loaded" or self._delivery.has_turn(pack.pack_id)

    def _in_shoe(self) -> PackState | None:
        return next((each for each in self._procedure.table.packs() if each.state in IN_SHOE), None)

    def _form(
        self, kind: NeedKind, words: str, key: str, act: type[Act],
        details: dict[str, Json] | dict[str, int] | None = None,
    ) -> NeedForm:  # fmt: skip
        known: dict[str, Json] = {**(details or {})}
        return NeedForm(
            kind,
            (D,),
            words,
            self._procedure.table.clause(key),
            (act.NAME,),
            str(known.get("pack_id", "")),
            known,
        )

    def may_close_bets(self) -> bool:
        """Whether a pack lies in the shoe or the hand, and nothing stands against a round."""
        table = self._procedure.table
        pack, cover = self._in_shoe(), table.memory.cover
        if self._state.dealer is None or pack is None or pack.must_leave:
            return False
        if pack.pack_id != self._state.shoe.in_hand or not self._may_be_dealt(pack):
            return False  # it lies in the machine, or is shuffled again
        if table.memory.exposed or cover in ("announce", "over"):
            return False
        if table.state == "settling" and self._procedure.round_end.waits_for_controller():
            return False
        if table.state in ("between", "betting"):
            return pack.state == ("playing" if table.burns else "loaded")
        if not table.burns or cover == "out" or table.state not in AFTER:
            return False
        playing = table.round
        last = cover == "last" and not playing.void_clause
        return not last and not playing.simulated
