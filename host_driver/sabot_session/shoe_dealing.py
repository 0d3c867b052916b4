"""Mini baccarat from the machine's shoe, card by card (MDM 5.F-13, BAC).

The machine brings a shuffled batch out. People cut it and lay it into the machine's shoe. The machine deals
one card at a time. Each card that is taken is sensed. The session asks for the faces of the first four cards
only once the dealer has turned them, and for a third card, which is dealt face up, once it was taken.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message, Request
from sabot_protocol.host.messages import Booted, Forbidden, Method, ShoeState, VoidReason
from sabot_session import acts, dealing_acts
from sabot_session.act_base import Act
from sabot_session.needs import NeedForm, NeedKind
from sabot_session.pack_delivery import PackDelivery
from sabot_session.rows import Actor, Authentication, Json
from sabot_session.session_state import GameState, RoundProgress, SessionState, ShoeProgress
from sabot_session.table_rows import coup_data
from sabot_table.cards import DECK_CARDS, Card, card
from sabot_table.errors import ImpossibleCards
from sabot_table.procedure import TableProcedure, TableRole
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.memory import PackState, RoundState
from sabot_table.procedure.mini_procedure import FIRST_CARDS
from sabot_table.procedure.packs import IN_SHOE
from sabot_table.procedure.vocabulary import RemovalReason

if TYPE_CHECKING:
    from sabot_session.session_step import SessionStep

D, F = TableRole.DEALER, TableRole.FLOOR
DEVICE = Actor("", TableRole.DEVICE, Authentication.SENSED)
RANKS, SUITS = "A23456789TJQK", "SHDC"  # of a face's number, 0 to 51
HANDS = 2
TO = ("the Player", "the Banker")
AFTER = ("settling", "collecting", "voided")


class ShoeDealing:
    """From a batch that came out of the machine to the end of its shoe."""

    def __init__(self, state: SessionState, procedure: TableProcedure, delivery: PackDelivery) -> None:
        self._state = state
        self._procedure = procedure
        self._delivery = delivery

    def game(self, hours: int) -> GameState:
        """The machine deals one card at a time."""
        cards = self._procedure.table.rules.cards
        return GameState(Method.CARD_BY_CARD, cards.decks, 1, hours, int(not cards.alternating))

    # -- what the machine is asked for ----------------------------------------------------------

    def request(self) -> Request[Any] | None:
        """The next card, a face, the end of a round or of a shoe, the burnt cards, or the next batch."""
        playing, progress = self._procedure.table.memory.round, self._state.round
        if playing is None or progress is None:
            return self._of_shoe() or self._delivery.request()
        if self._procedure.table.state == "betting":
            return None
        if not progress.opened:
            return None if playing.simulated else messages.OpenRound(playing.round_id, playing.pack_id)
        if self._procedure.table.state in AFTER:
            return self._after_round(playing, progress)
        if not progress.closed and not playing.simulated:
            return messages.CloseBets(playing.round_id, HANDS)
        return self._of_round(playing, progress)

    def _of_round(self, playing: RoundState, progress: RoundProgress) -> Request[Any] | None:
        table = self._procedure.table
        if self._state.device.shoe != ShoeState.ROUND_OPEN or progress.aside:
            return None
        draws = progress.draws_asked == playing.draws
        if table.state == "dealing":
            return messages.DrawCards(playing.round_id, playing.draws + 1, 1) if draws else None
        if table.state != "drawing":
            return None
        due = None
        if not playing.player:
            if progress.exposed_by is None:
                return None
            due = self._drawn(playing)[len(progress.faces)]
        elif self._procedure.mini.third_due() is not None:
            due = self._third_draw(playing)
            if due is None:
                return messages.DrawCards(playing.round_id, playing.draws + 1, 1) if draws else None
        if due is None or progress.must_type:
            return None
        if not progress.revealed:
            return messages.RevealRound(playing.round_id)
        return messages.Faces(playing.round_id, due)

    @staticmethod
    def _drawn(playing: RoundState) -> list[int]:
        """By which draw each of the first four cards came; 0: it was drawn before the round."""
        return ([0] * (FIRST_CARDS - len(playing.drawn)) + playing.drawn)[:FIRST_CARDS]

    @staticmethod
    def _third_draw(playing: RoundState) -> int | None:
        """By which draw the next third card came; None if it has not come yet."""
        if playing.banker_third_waits:
            return playing.draws
        known = len(playing.player) + len(playing.banker)
        return playing.drawn[known] if len(playing.drawn) > known else None

    def _after_round(self, playing: RoundState, progress: RoundProgress) -> Request[Any] | None:
        device, void = self._state.device, self._procedure.table.state == "voided"
        if not progress.device_done:
            if device.shoe != ShoeState.ROUND_OPEN:
                return None
            if not void:
                return None if progress.end_asked else messages.EndRound(playing.round_id)
            reason = VoidReason(progress.void_reason or VoidReason.FLOOR_ORDER)
            return messages.VoidRound(playing.round_id, reason)
        over = self._procedure.table.rules.fixed.every_round or (void and playing.cards_in_device)
        return self._end_shoe(playing.pack_id) if over else None

    def _end_shoe(self, pack_id: int) -> Request[Any] | None:
        device = self._state.device
        if device.in_shoe != pack_id or device.shoe != ShoeState.READY or self._state.shoe.end_asked:
            return None
        return messages.EndShoe(pack_id)

    def _of_shoe(self) -> Request[Any] | None:
        table, shoe = self._procedure.table, self._state.shoe
        pack = self._in_shoe()
        played = [each.pack_id for each in table.packs() if each.state == "discards"]
        if self._state.device.in_shoe in played:
            return self._end_shoe(self._state.device.in_shoe)
        if pack is None or table.state != "between":
            return None
        if table.memory.cover == "over" or pack.must_leave:
            return self._end_shoe(pack.pack_id)
        rests = self._state.device.shoe == ShoeState.READY and self._state.device.in_shoe == pack.pack_id
        if pack.state != "loaded" or not table.burns or table.memory.marked or not rests:
            return None
        if shoe.burns_asked == 0:
            return messages.BurnCards(1)
        if shoe.burns_asked == shoe.burns_taken == 1 and shoe.burn_card:
            return messages.BurnCards(card(shoe.burn_card).burns)
        return None

    def _in_shoe(self) -> PackState | None:
        return next((each for each in self._procedure.table.packs() if each.state in IN_SHOE), None)

    # -- what the machine tells -----------------------------------------------------------------

    def hear(self, session: "SessionStep", told: Message, now_s: int) -> bool:
        """Batches, burnt cards, cards of the round, cover cards, the end of a shoe."""
        table, progress, shoe = self._procedure.table, self._state.round, self._state.shoe
        playing = table.memory.round
        if self._delivery.hear(session, told, now_s):
            return True
        if isinstance(told, Booted | messages.ShoeChanged):
            shoe.end_asked = 0
            return False
        if isinstance(told, messages.CoverCardSeen):
            if any(row.action == "cover_card" for row in table.expects()) and not table.memory.cover:
                session.do(self._procedure.mini.cover_card, session.device_by(now_s))
        elif isinstance(told, messages.ShoeEnded):
            self._shoe_ended(session, told)
        elif isinstance(told, messages.CardsTaken) and told.round_id == 0:
            shoe.burns_taken = told.draw
        elif isinstance(told, messages.CardsDrawn) and told.round_id == 0:
            shoe.burnt = told.cards
        elif playing is None or progress is None or getattr(told, "round_id", 0) != playing.round_id:
            return False
        elif isinstance(told, messages.CardExposed):
            progress.face_up = True
        elif isinstance(told, messages.CardsTaken):
            self._card_taken(session, playing, progress, told.draw, now_s)
        else:
            return isinstance(told, messages.RoundEnded)
        return True

    def _card_taken(
        self, session: "SessionStep", playing: RoundState, progress: RoundProgress, draw: int, now_s: int
    ) -> None:
        by, mini = session.device_by(now_s), self._procedure.mini
        if draw != playing.draws + 1 or self._procedure.table.state not in ("dealing", "drawing"):
            return
        progress.draws_asked = max(progress.draws_asked, draw)
        if progress.face_up:
            progress.face_up, progress.aside = False, draw
            session.do(mini.card_set_aside, by, playing.round_id, draw, told={"draw": draw})
            return
        first = self._procedure.table.state == "dealing"
        number = 1 + (playing.dealt if first else len(playing.player) + len(playing.banker))
        session.do(
            mini.card_dispensed, by, playing.round_id, number, draw, told={"number": number, "draw": draw}
        )
        if not first:
            data: dict[str, Json] = {"number": number, "draw": draw}
            clause = self._procedure.table.clause("third_card")
            session.row("deal_card", DEVICE, data, clause, playing.round_id)

    def _shoe_ended(self, session: "SessionStep", told: messages.ShoeEnded) -> None:
        self._state.shoe.end_asked = 0
        pack = next((each for each in self._procedure.table.packs() if each.pack_id == told.deck_id), None)
        if pack is None:
            return
        data: dict[str, Json] = {
            "pack_id": pack.pack_id, "by": "machine", "cards": told.count, "expected": told.expected,
        }  # fmt: skip
        session.row("count_pack", DEVICE, data, self._procedure.table.clause("shoe_end"))
        if told.count != told.expected:
            why = f"{told.count} cards instead of {told.expected}"
            self._procedure.packs.mark_for_removal(pack, RemovalReason.WRONG_COUNT, why)

    def executed(
        self, session: "SessionStep", request: Request[Any], answer: Message | None, now_s: int
    ) -> bool:
        """Cards are on their way, or a face was told."""
        shoe, progress = self._state.shoe, self._state.round
        if isinstance(request, messages.BurnCards):
            shoe.burns_asked += 1
        elif isinstance(request, messages.EndShoe):
            if self._state.device.shoe == ShoeState.READY:  # else events have told of it before the answer
                shoe.end_asked = request.deck_id
        elif isinstance(request, messages.LoadShoe):
            shoe.laid_in = request.deck_id
        elif progress is None:
            return self._delivery.executed(request)
        elif isinstance(request, messages.SimulateRound):
            progress.opened = progress.closed = True
        elif isinstance(request, messages.DrawCards):
            progress.draws_asked = request.draw
        elif isinstance(answer, messages.FacesAre):
            self._face_told(session, progress, answer, now_s)
        else:
            return self._delivery.executed(request)
        return True

    def _face_told(
        self, session: "SessionStep", progress: RoundProgress, told: messages.FacesAre, now_s: int
    ) -> None:
        faces = told.faces
        if len(faces) != 1 or faces[0] >= DECK_CARDS:
            progress.must_type, progress.faces = True, []
            return
        progress.faces.append(list(faces))
        named = [card(RANKS[face % 13] + SUITS[face // 13]) for (face,) in progress.faces]
        playing = self._procedure.table.round
        if playing.player:
            progress.faces = []
            self.third(session, progress, named[-1], now_s)
        elif len(named) == FIRST_CARDS:
            progress.faces = []
            player, banker = (named[0], named[2]), (named[1], named[3])
            action = self._procedure.mini.first_four_read
            data = coup_data(player, banker, "reader")
            by = session.device_by(now_s)
            try:
                session.do(action, by, playing.round_id, player, banker, told=data)
            except ImpossibleCards as error:
                session.reports.void_impossible(str(error), now_s)

    def third(self, session: "SessionStep", progress: RoundProgress, drawn: Card, now_s: int) -> None:
        """The reader told the third card, which lies open."""
        due = self._procedure.mini.third_due()
        if due is None:
            return
        action, by = self._procedure.mini.third_card_read, session.device_by(now_s)
        data: dict[str, Json] = {"to": due, "card": str(drawn), "source": "reader"}
        try:
            session.do(action, by, self._procedure.table.round.round_id, due, drawn, told=data)
        except ImpossibleCards as error:
            session.reports.void_impossible(str(error), now_s)

    def failed(self, session: "SessionStep", request: Request[Any], reason: int | None) -> None:
        """A face that the machine does not tell is typed. A batch that it does not know is shuffled again."""
        progress = self._state.round
        if isinstance(request, messages.LoadShoe) and reason == Forbidden.NOT_DELIVERED:
            self._state.shoe.out = 0
            self._state.device.doubtful = sorted({*self._state.device.doubtful, request.deck_id})
        if isinstance(request, messages.RevealRound | messages.Faces) and progress is not None:
            progress.must_type, progress.faces = True, []

    def go_on(self, session: "SessionStep", now_s: int) -> None:
        """A batch lies in the shoe; cards are burnt; a shoe is over; a batch with a wrong count leaves."""
        table, device, shoe = self._procedure.table, self._state.device, self._state.shoe
        if table.state != "between" or device.survey or not device.up:
            return
        laid = next((each for each in table.packs() if each.pack_id == shoe.laid_in), None)
        if laid is not None and device.shoe == ShoeState.READY and device.in_shoe == laid.pack_id:
            self._state.shoe = shoe = ShoeProgress()
            session.do(self._procedure.packs.load, session.device_by(now_s), laid.pack_id)
        pack, by = self._in_shoe(), session.dealer_by(now_s)
        if pack is None or by is None:
            return
        if pack.state == "loaded" and table.burns and shoe.burns_taken == 2 and shoe.burn_card:
            first = card(shoe.burn_card)
            told: dict[str, Json] = {"first": shoe.burn_card, "burned": shoe.burnt}
            session.do(self._procedure.packs.burn, by, pack.pack_id, first, shoe.burnt, told=told)
        elif pack.state == "playing" and device.shoe == ShoeState.EMPTY and not shoe.end_asked:
            session.do(self._procedure.packs.end_shoe, by)
            if pack.must_leave:
                reason = RemovalReason(pack.removal_reason)
                device_by = session.device_by(now_s)
                session.do(
                    self._procedure.packs.remove_pack, device_by, pack.pack_id, reason, pack.must_leave
                )

    # -- what people must do --------------------------------------------------------------------

    def needs(self) -> Iterator[NeedForm]:
        """The round's needs, then those of the next shoe."""
        table, playing, progress = (
            self._procedure.table,
            self._procedure.table.memory.round,
            self._state.round,
        )
        if playing is not None and progress is not None:
            yield from self._needs_of_round(playing, progress)
        elif table.state == "between":
            yield from between_needs(self._procedure)
            yield from self._needs_of_shoe()

    def _needs_of_round(self, playing: RoundState, progress: RoundProgress) -> Iterator[NeedForm]:
        table, mini, device = self._procedure.table, self._procedure.mini, self._state.device
        asked = any(each.name == "simulate_round" for each in self._state.outbox)
        if playing.simulated and not progress.opened and not asked:
            yield self._form(
                NeedKind.SIMULATED_ROUND, F, "let the machine deal a round without wagers",
                dealing_acts.AuthoriseSimulated, "begin_simulated",
            )  # fmt: skip
        if device.shoe == ShoeState.STACK_WAITING and table.state in ("dealing", "drawing"):
            to = (
                TO[playing.dealt % 2]
                if table.state == "dealing"
                else f"the {str(mini.third_due()).capitalize()}"
            )
            words = f"take the card for {to}"
            yield NeedForm(
                NeedKind.TAKE_CARD, (D,), words, table.clause("deal_card"), (), str(playing.draws + 1)
            )
        elif device.shoe == ShoeState.STUB_WAITING:
            words = "take the cards that are left out of the exit tray"
            yield NeedForm(NeedKind.TAKE_STUB, (D,), words, table.clause("shoe_end"))
        if progress.aside and table.state in ("dealing", "drawing"):
            words = "a card came face up: say which; the next card takes its place"
            yield self._form(
                NeedKind.NAME_CARD, D, words, dealing_acts.ReportExposed, "card_exposed",
                {"round_id": playing.round_id, "draws": [progress.aside]},
            )  # fmt: skip
        elif table.state == "drawing":
            yield from self._needs_of_faces(playing, progress)
        elif table.state in AFTER and progress.device_done and not self.may_close_bets():
            shoe_follows = device.up and device.shoe == ShoeState.ROUND_OPEN  # told behind the round's end
            yield from () if shoe_follows else end_needs(self._procedure)

    def _needs_of_faces(self, playing: RoundState, progress: RoundProgress) -> Iterator[NeedForm]:
        due = self._procedure.mini.third_due()
        if not playing.player and progress.exposed_by is None:
            words = "turn the four cards, announce the points"
            yield self._form(NeedKind.EXPOSE, D, words, acts.Expose, "announce")
        elif not playing.player and progress.must_type:
            draws: list[Json] = [*self._drawn(playing)]
            known: list[Json] = [*playing.opened_by]
            details: dict[str, Json] = {"round_id": playing.round_id, "draws": draws, "known": known}
            words = "type the four cards as they lie"
            yield self._form(NeedKind.TYPE_CARDS, D, words, dealing_acts.Announce, "announce", details)
        elif due is not None and progress.must_type and self._third_draw(playing) is not None:
            third: dict[str, Json] = {
                "round_id": playing.round_id, "to": due, "draws": [self._third_draw(playing)],
            }  # fmt: skip
            words = f"type the {due.capitalize()}'s third card"
            yield self._form(NeedKind.TYPE_THIRD, D, words, dealing_acts.TurnThird, "third_card", third)

    def _needs_of_shoe(self) -> Iterator[NeedForm]:
        table, shoe, pack = self._procedure.table, self._state.shoe, self._in_shoe()
        if pack is not None and pack.state == "loaded" and shoe.burns_taken == 1 and not shoe.burn_card:
            words = (
                "show the new shoe's first card and say which it is; as many as it counts are burned with it"
            )
            yield self._form(
                NeedKind.BURN, D, words, dealing_acts.Burn, "burn",
                {"pack_id": pack.pack_id, "round_id": 0, "draws": [1]},
            )  # fmt: skip
        yield from self._delivery.needs()
        batch = self._delivery.next_pack()
        asked = any(each.name == "load_shoe" for each in self._state.outbox) or (
            batch is not None and shoe.laid_in == batch.pack_id
        )
        if batch is not None and self._delivery.is_ready(batch) and not asked:
            back = batch.back.upper()
            words = f"lay {back} into the machine's shoe, shut the door, and let the machine take it"
            yield self._form(
                NeedKind.LAY_IN, F, words, dealing_acts.LaidIn, "load",
                {"pack_id": batch.pack_id, "back": batch.back},
            )  # fmt: skip
        if self._state.device.shoe == ShoeState.STUB_WAITING and not shoe.out and pack is not None:
            words = "take the rest of the shoe out of the exit tray"
            yield NeedForm(NeedKind.TAKE_STUB, (D,), words, table.clause("shoe_end"))

    def _form(
        self, kind: NeedKind, role: TableRole, words: str, act: type[Act], key: str,
        details: dict[str, Json] | None = None,
    ) -> NeedForm:  # fmt: skip
        return NeedForm(
            kind, (role,), words, self._procedure.table.clause(key), (act.NAME,), "", details or {}
        )

    def may_close_bets(self) -> bool:
        """Whether another round can begin at once; its first act settles and collects the one before."""
        table, device, progress = self._procedure.table, self._state.device, self._state.round
        if self._state.dealer is None or not device.up or device.survey:
            return False
        pack, cover = self._in_shoe(), table.memory.cover
        if (
            pack is None
            or device.shoe != ShoeState.READY
            or device.in_shoe != pack.pack_id
            or pack.must_leave
        ):
            return False
        if table.memory.exposed or cover in ("announce", "over"):
            return False
        if table.state == "settling" and self._procedure.round_end.waits_for_controller():
            return False
        if table.state in ("between", "betting"):
            return pack.state == ("playing" if table.burns else "loaded")
        if (
            not table.burns
            or cover == "out"
            or table.state not in AFTER
            or progress is None
            or not progress.device_done
        ):
            return False
        playing = table.round
        return (
            not playing.cards_in_device
            and not (cover == "last" and not playing.void_clause)
            and (not playing.simulated)
        )


def between_needs(procedure: TableProcedure) -> Iterator[NeedForm]:
    """What stands between two rounds of mini baccarat, however they are dealt."""
    table = procedure.table
    if table.memory.cover == "announce":
        name = dealing_acts.AnnounceLastHand.NAME
        yield NeedForm(NeedKind.LAST_HAND, (D,), 'announce "last hand"', table.clause(name), (name,))
    elif table.memory.exposed and any(each.state in IN_SHOE for each in table.packs()):
        name, shown = dealing_acts.BeginSimulated.NAME, ", ".join(table.memory.exposed)
        words = f"{shown} was seen: it opens a round without wagers"
        yield NeedForm(NeedKind.SIMULATED_ROUND, (D,), words, table.clause(name), (name,))
    if any(each.state == "loaded" for each in table.packs()) and table.burns:
        yield from vigorish_needs(procedure)


def vigorish_needs(procedure: TableProcedure) -> Iterator[NeedForm]:
    """Vigorish that seats owe (MDM 12.D)."""
    table, name = procedure.table, dealing_acts.CollectVigorish.NAME
    for seat, cents in sorted(table.memory.marked.items()):
        words = f"collect the vigorish of seat {seat}: {cents} cents"
        details: dict[str, Json] = {"seat": seat, "cents": cents}
        clause = table.clause(name)
        yield NeedForm(NeedKind.COLLECT_VIGORISH, (D,), words, clause, (name,), str(seat), details)


def rack_is_free(table: TableContext) -> bool:
    """Whether the discard rack may take the round's pack (MD3 3.B(5))."""
    others = [each for each in table.packs() if each.pack_id != table.round.pack_id]
    return not table.rules.fixed.every_round or all(each.state != "discards" for each in others)


def end_needs(procedure: TableProcedure) -> Iterator[NeedForm]:
    """What ends a round whose successor cannot begin at once."""
    table = procedure.table
    if table.state == "settling" and procedure.round_end.waits_for_controller():
        words = "wait: the progressive controller names the winner of its Must Hit meter"
        yield NeedForm(NeedKind.CONTROLLER, (), words, table.clause("must_hit"))
    elif table.state == "settling":
        name = dealing_acts.Settle.NAME
        yield NeedForm(NeedKind.SETTLE, (D,), "settle the wagers as shown", table.clause(name), (name,))
    elif table.state in ("collecting", "voided") and not table.round.cards_in_device and rack_is_free(table):
        name = dealing_acts.Collect.NAME
        yield NeedForm(NeedKind.COLLECT, (D,), "collect the cards", table.clause(name), (name,))
