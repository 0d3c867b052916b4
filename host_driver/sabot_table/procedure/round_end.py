"""The end of a round: settlement and discards (MD3 11, MDM 11)."""

from sabot_table.cards import card
from sabot_table.coup import Coup
from sabot_table.errors import TableError
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.mini_procedure import MiniProcedure
from sabot_table.procedure.packs import IN_SHOE, PackProcedure
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.ruleset import ROYAL_9
from sabot_table.settlement import CardSource, DealtHands, Settlement, WagerResult, results_of, settle


class RoundEndProcedure:
    """Settles a round whose cards are known, and collects its cards."""

    def __init__(self, table: TableContext, packs: PackProcedure, mini: MiniProcedure) -> None:
        self.table = table
        self._packs = packs
        self._mini = mini

    def must_hit(self, by: Attribution, seat: int) -> None:
        """The progressive controller drew a seat for its Must Hit meter (MDM 12.N)."""
        self.table.check("must_hit", by)
        if ROYAL_9 not in self.table.round.wagers.get(seat, {}):
            what = f"seat {seat} has no Royal 9 wager"
            raise self.table.refuse(what, "must_hit", "check the progressive controller")
        self.table.round.must_hit_seat = seat
        self.table.move("must_hit", by)

    def settle_unknown(self, by: Attribution) -> None:
        """Settle a round whose wagers or cards are not known: say what each wager pays, or nothing at all."""
        self.table.check("settle", by)
        playing = self.table.round
        results = None if not playing.cards_known else [each.to_json() for each in self._results()]
        playing.settlement = {"settlement": results}
        self.table.move("settle", by)

    def due(self) -> list[dict[str, object]] | None:
        """What the act that settles will pay and take, for people who settle by it; None if none is due.

        It changes nothing. What forbids the settlement is told by the act.
        """
        playing = self.table.memory.round
        if playing is None or self.table.state != "settling" or not playing.cards_known:
            return None
        try:
            lines = self._settled().lines if playing.wagers_known else self._results()
        except TableError:
            return None
        return [each.to_json() for each in lines]

    def settle(self, by: Attribution) -> Settlement:
        """Settle the round; vigorish that is marked stays owed."""
        self.table.check("settle", by)
        playing, settled = self.table.round, self._settled()
        playing.settlement = settled.to_json()
        if settled.meters is not None:
            self.table.memory.meters = settled.meters.save()
        if settled.marked:
            for seat, cents in settled.vigorish_by_seat().items():
                self.table.memory.marked[seat] = self.table.memory.marked.get(seat, 0) + cents
        self.table.move("settle", by)
        return settled

    def _settled(self) -> Settlement:
        playing, meters = self.table.round, self.table.meters()
        if meters is not None:
            meters = meters.with_contribution(sum(made.get(ROYAL_9, 0) for made in playing.wagers.values()))
            if self.waits_for_controller():
                do = "wait until the progressive controller names the winner"
                raise self.table.refuse("a Must Hit meter at its maximum without a winner", "must_hit", do)
        return settle(
            self.table.rules, playing.wagers, self._cards(),
            CardSource(playing.source), playing.forfeits, playing.abandoned, meters, playing.must_hit_seat,
        )  # fmt: skip

    def _results(self) -> tuple[WagerResult, ...]:
        playing = self.table.round
        return results_of(
            self.table.rules, playing.wagers, self._cards(), playing.forfeits, playing.abandoned
        )

    def _cards(self) -> DealtHands | Coup:
        return self._hands() if self.table.three_card else self._mini.coup()

    def waits_for_controller(self) -> bool:
        """Whether a Must Hit meter is at its maximum and the controller has named no winner (MDM 12.N-O)."""
        playing, meters = self.table.memory.round, self.table.meters()
        if playing is None or meters is None or playing.must_hit_seat or not self._royal_9_seats():
            return False
        staked = sum(made.get(ROYAL_9, 0) for made in playing.wagers.values())
        return meters.with_contribution(staked).must_hit_due

    def _royal_9_seats(self) -> list[int]:
        return [seat for seat, made in self.table.round.wagers.items() if ROYAL_9 in made]

    def _hands(self) -> DealtHands:
        playing = self.table.round
        shown = {seat: tuple(card(each) for each in hand) for seat, hand in playing.hands.items()}
        return DealtHands(tuple(card(each) for each in playing.dealer), shown)

    def collect(self, by: Attribution) -> None:
        """All cards leave the layout; a wrong pack leaves the table; the round is over."""
        self.table.check("collect", by)
        playing = self.table.round
        pack = self.table.pack(playing.pack_id)
        if playing.cards_in_device:
            raise self.table.refuse("cards left in the device", "empty_device", "take them out and say so")
        if pack.must_leave:
            self._packs.remove_marked(pack, by)
        elif self.table.rules.fixed.every_round:
            self._packs.check_discards(pack)
            self.table.move_pack("discard", pack, by)
        if pack.state not in IN_SHOE:
            self._packs.forget_shoe()
        if self.table.memory.cover == "out":
            self.table.memory.cover = "announce"
        elif self.table.memory.cover == "last" and not playing.simulated and not playing.void_clause:
            self.table.memory.cover = "over"  # a void hand was not the last: it is not complete (9.D(3))
        self.table.memory.round = None
        self.table.move("collect", by)
