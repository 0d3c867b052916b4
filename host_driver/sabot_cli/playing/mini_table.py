"""Mini baccarat, card by card: four cards, third cards, cards that are seen or one too many (MDM 8-13).

The first four cards lie open before third cards are drawn: the reader tells them while the round is played.
"""

from sabot_cli.playing.device_control import TableStopped
from sabot_cli.playing.irregularity_reports import IrregularityReport
from sabot_cli.playing.round_play import PlayedRound
from sabot_cli.playing.shoe_handling import ShoeHandling
from sabot_driver.errors import Refused
from sabot_protocol.host.messages import (
    CardExposed,
    CardsTaken,
    CoverCardSeen,
    DrawCards,
    EndRound,
    ShoeState,
    SimulateRound,
    StatusFlag,
)
from sabot_table.cards import card
from sabot_table.errors import ImpossibleCards
from sabot_table.procedure import TableRole
from sabot_table.procedure.mini_procedure import FIRST_CARDS
from sabot_table.settlement import CardSource


class MiniTable(ShoeHandling):
    """Player and Banker, from one shoe after the other."""

    _exposed = False  # the card that comes now lies face up
    _in_error = False  # the card that comes now is one too many

    # -- what the device tells ------------------------------------------------------------------

    def pass_on(self, told: object) -> None:
        """Cards, cover cards and faces mean something here."""
        super().pass_on(told)
        table = self.desk.table
        playing = table.memory.round
        if isinstance(told, CoverCardSeen):
            if table.burns and not table.memory.cover and table.state != "collecting":
                self.desk.device(self.desk.procedure.mini.cover_card)
        elif isinstance(told, CardExposed):
            self._exposed = told.round_id != 0
        elif isinstance(told, CardsTaken) and playing is not None and playing.round_id == told.round_id:
            self._card_taken(told.draw)

    def _card_taken(self, draw: int) -> None:
        playing = self.desk.table.round
        if draw != playing.draws + 1:
            return
        if self._exposed or self._in_error:
            self.desk.device(self.desk.procedure.mini.card_set_aside, playing.round_id, draw)
            return
        third = len(playing.player) + len(playing.banker) + 1
        number = playing.dealt + 1 if self.table_state == "dealing" else third
        self.desk.device(self.desk.procedure.mini.card_dispensed, playing.round_id, number, draw)

    # -- the round ------------------------------------------------------------------------------

    def hands(self) -> int:
        """Player and Banker."""
        return 2

    def begin(self) -> None:
        """Bets are opened; what people knew of cards drawn too early opens the hand."""
        super().begin()
        self._exposed = self._in_error = False

    def simulate(self) -> None:
        """A card that was seen opens a round without wagers (MDM 13.D)."""
        self.ended = self.void_reason = None
        self._exposed = self._in_error = False
        self.desk.do(self.desk.procedure.mini.begin_simulated, TableRole.DEALER)
        playing = self.desk.table.round
        self.ask_floor(SimulateRound(playing.round_id, playing.pack_id))
        self._aside = list(playing.opened_by)
        self.play_round()

    def deal(self) -> None:
        """The next of the first four cards: Player, Banker, Player, Banker."""
        self._draw_one("dealing")

    def _draw_one(self, state: str) -> int | None:
        """One card out of the shoe; its draw, or None if the round is void. A face-up card is set aside."""
        playing = self.desk.table.round
        self._exposed = False
        self.wait(lambda: self.table_state != state or self.shoe is ShoeState.ROUND_OPEN, "the shoe to rest")
        draw = playing.draws + 1
        if self.table_state != state or not self.give(DrawCards(playing.round_id, draw, 1)):
            return None
        self.wait(lambda: self.table_state not in (state, "drawing") or playing.draws >= draw, f"card {draw}")
        if playing.draws < draw:
            return None
        if self._exposed:
            self._exposed = False
            self._name_exposed(playing.round_id, draw)
            return self._draw_one(state) if self.table_state == state else None
        return draw

    def _name_exposed(self, round_id: int, draw: int) -> None:
        """A card came face up: the dealer says which, and the following one takes its place (MDM 13.D)."""
        (named,) = self.card_entry.cards("the card that came face up", 1, self.seen(round_id, draw))
        self.output.tell("exposed", f"[yellow]{named} came face up[/yellow]", card=str(named))
        self.desk.do(self.desk.procedure.mini.card_exposed, TableRole.DEALER, named)

    def draw(self) -> None:
        """The first four cards lie open; then the third cards that the rules give."""
        playing = self.desk.table.round
        if not playing.player:
            self._announce()
            return
        due = self.desk.procedure.mini.third_due()
        if due is None:
            raise TableStopped("the round cannot go on", "Have the floor decide.")
        known = len(playing.player) + len(playing.banker)
        draw = playing.drawn[known] if len(playing.drawn) > known else None  # it came before this program did
        if playing.banker_third_waits:
            draw = playing.draws
        if draw is None:
            draw = self._draw_one("drawing")
        if draw is not None and self.table_state == "drawing":
            self._third(due, draw)

    def _third(self, due: str, draw: int) -> None:
        playing = self.desk.table.round
        read = self.read(playing.round_id, draw)
        if read is not None:
            self.desk.device(self.desk.procedure.mini.third_card_read, playing.round_id, due, card(read[0]))
            return
        if self.table_state != "drawing":
            return

        def ask() -> None:
            seen = self.seen(playing.round_id, draw)
            (named,) = self.card_entry.cards(f"the {due}'s third card", 1, seen)
            self.desk.do(self.desk.procedure.mini.third_card, TableRole.DEALER, due, named)

        self.ask_again(ask, "the third card")

    def _announce(self) -> None:
        playing = self.desk.table.round
        drawn = [0] * (FIRST_CARDS - len(playing.drawn)) + playing.drawn[:FIRST_CARDS]
        read = [self.read(playing.round_id, draw) if draw else None for draw in drawn]
        if all(each is not None for each in read):
            four = [card(each[0]) for each in read if each is not None]
            mini = self.desk.procedure.mini
            try:
                self.desk.device(
                    mini.first_four_read, playing.round_id, (four[0], four[2]), (four[1], four[3])
                )
            except ImpossibleCards as error:
                self.void_impossible(str(error))
            return
        if self.table_state != "drawing":
            return
        known = list(self._aside)
        names: list[str] | None = []
        for draw in drawn:
            seen = self.seen(playing.round_id, draw) if draw else known[:1]
            known = known if draw else known[1:]
            names = None if names is None or not seen else [*names, *seen]
        self._aside = known

        def ask() -> None:
            text = [None if names is None else [names[at], names[at + 2]] for at in (0, 1)]
            player = self.card_entry.cards("the Player's first two cards", 2, text[0])
            banker = self.card_entry.cards("the Banker's first two cards", 2, text[1])
            self.desk.do(
                self.desk.procedure.mini.announce, TableRole.DEALER, player, banker, CardSource.DEALER
            )

        self.ask_again(ask, "the first four cards")

    # -- what people report ---------------------------------------------------------------------

    def may_report(self, report: IrregularityReport) -> bool:
        """A third card that the Player must not have comes when the hand is known and stands."""
        if report.what != "unauthorised_third":
            return super().may_report(report)
        playing = self.desk.table.round
        stands = len(playing.player) == 2 and self.desk.procedure.mini.third_due() != "player"
        return stands and super().may_report(report)

    def carry_out(self, report: IrregularityReport) -> None:
        """A card too many really comes out of the shoe; what becomes of it the procedure says."""
        if report.what not in ("drawn_in_error", "unauthorised_third", "card_exposed"):
            super().carry_out(report)
            return
        state, playing = self.table_state, self.desk.table.round
        self._in_error = True
        draw = self._draw_one(state)
        self._in_error = False
        if draw is None:
            return
        names = self.seen(playing.round_id, draw) or []
        wants = report.any_card or report.what == "card_exposed"
        seen = report.seen
        if wants and seen is None:
            (seen,) = self.card_entry.cards("the card that was seen", 1, names or None)
        if seen is None:
            self._aside += names
        report = IrregularityReport(report.round, report.what, seen)
        self.output.tell("report", f"[yellow]the dealer reports: {report}[/yellow]", **report.to_json())
        self.desk.do(self.action_of(report), TableRole.DEALER, seen)
        order = self.desk.take_order("discard")
        for _ in range(int(str(order.details["unseen"])) if order is not None else 0):
            self._in_error = True
            self._draw_one(self.table_state)
            self._in_error = False

    # -- the end --------------------------------------------------------------------------------

    def end_on_device(self) -> None:
        """The hand is over on the device too; by the six-deck text the shoe is as well."""
        playing = self.desk.table.round
        status = self.client.status(self.timeout)
        if status.flags & StatusFlag.ROUND_OPEN and status.round_id == playing.round_id:
            self.wait(lambda: self.shoe is ShoeState.ROUND_OPEN or bool(self.faults), "the shoe to rest")
            if self.faults or not self._end_hand(playing.round_id):
                return
        if not self.desk.table.burns and self.in_shoe == playing.pack_id and self.shoe is ShoeState.READY:
            self._eject(playing.pack_id)

    def _end_hand(self, round_id: int) -> bool:
        try:
            self.ask(EndRound(round_id))
        except Refused:
            self.catch_up()
            return False
        self.wait(lambda: self.shoe is not ShoeState.ROUND_OPEN, "the end of the hand")
        return True

    def play_round(self) -> None:
        """One round; by the six-deck text its shoe is judged with it."""
        before = self.desk.playing or self._in_the_shoe()
        super().play_round()
        if not self.desk.table.burns and self.desk.has(before):
            self._judge_shoe(before)

    def played(self) -> PlayedRound:
        """The round as it stands."""
        playing = self.desk.table.round
        told = self.told()
        told.seats = [seat for seat in self.desk.rules.clockwise() if seat in playing.wagers]
        if playing.player:
            hands = (playing.player, playing.banker)
            told.hands = [[name.replace("10", "T") for name in hand] for hand in hands]
        return told
