"""Closing a round: settlement, discards, and the irregularities of both games (MD3 11, 13; MDM 11, 13)."""

from sabot_table.cards import Card, card
from sabot_table.procedure.mini_procedure import MiniProcedure
from sabot_table.procedure.packs import IN_SHOE
from sabot_table.procedure.vocabulary import Attribution
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import ROYAL_9
from sabot_table.settlement import CardSource, DealtHands, Settlement, settle


class RoundEndProcedure(MiniProcedure):
    """From known cards to the next round."""

    def must_hit(self, by: Attribution, seat: int) -> None:
        """The progressive controller drew a seat for its Must Hit meter (MDM 12.N)."""
        self.check("must_hit", by)
        if ROYAL_9 not in self.round.wagers.get(seat, {}):
            what = f"seat {seat} has no Royal 9 wager"
            raise self.refuse(what, "11.B", "12.N", "check the progressive controller")
        self.round.must_hit_seat = seat
        self.move("must_hit", by)

    def settle(self, by: Attribution) -> Settlement:
        """Settle the round; vigorish that is marked stays owed."""
        self.check("settle", by)
        playing, meters = self.round, self.meters()
        if meters is not None:
            meters = meters.with_contribution(sum(made.get(ROYAL_9, 0) for made in playing.wagers.values()))
        settled = settle(
            self.rules, playing.wagers, self.coup() if not self.three_card else self._hands(),
            CardSource(playing.source), playing.forfeits, playing.abandoned, meters, playing.must_hit_seat,
        )  # fmt: skip
        playing.settlement = settled.to_json()
        if settled.meters is not None:
            self.memory.meters = settled.meters.save()
        if settled.marked:
            for seat, cents in settled.vigorish_by_seat().items():
                self.memory.marked[seat] = self.memory.marked.get(seat, 0) + cents
        self.move("settle", by)
        return settled

    def _hands(self) -> DealtHands:
        playing = self.round
        shown = {seat: tuple(card(each) for each in hand) for seat, hand in playing.hands.items()}
        return DealtHands(tuple(card(each) for each in playing.dealer), shown)

    def empty_device(self, by: Attribution) -> None:
        """After a failure: the cards came out of the device, to be shuffled with those dealt (MD3 13.D)."""
        self.check("empty_device", by)
        self.round.cards_in_device = False
        self.move("empty_device", by)

    def collect(self, by: Attribution) -> None:
        """All cards leave the layout; a wrong pack leaves the table; the round is over."""
        self.check("collect", by)
        playing = self.round
        pack = self.pack(playing.pack_id)
        if playing.cards_in_device:
            raise self.refuse("cards left in the device", "13.D", "13.E", "take them out and say so")
        if pack.must_leave:
            self.move_pack("remove", pack, by)
            self.order("remove-pack", pack=pack.pack_id, why=pack.must_leave)
        elif self.rules.fixed.every_round:
            self.check_discards(pack)
            self.move_pack("discard", pack, by)
        if pack.state not in IN_SHOE:
            self.forget_shoe()
        if self.memory.cover == "out":
            self.memory.cover = "announce"
        elif self.memory.cover == "last" and not playing.simulated:
            self.memory.cover = "over"
        self.memory.round = None
        self.move("collect", by)

    # -- irregularities -------------------------------------------------------------------------

    def face_up_card(self, by: Attribution, seen: Card | None = None) -> None:
        """A card lies face up in the shoe: void (MD3 13.A); in mini baccarat it is a card that was seen."""
        if not self.three_card:
            if seen is None:
                raise self.refuse("a face-up card without its name", "13.A", "13.D", "say which card it is")
            self.card_exposed(by, seen)
            return
        self.check("face_up_card", by)
        inside = self.round.method == DealingMethod.AUTOMATED_SHOE
        why = "a card lay face up"
        self.void_round(by, "13.A", "13.D", why, cards_in_device=inside, action="face_up_card")

    def drawn_in_error(self, by: Attribution, seen: Card | None = None) -> None:
        """A card too many was drawn: unseen it is the next card; seen it is another matter."""
        self.check("drawn_in_error", by)
        if not self.three_card:
            if seen is not None:
                self.card_exposed(by, seen)
                return
            self.check_shoe("a card drawn in error")
            self.memory.carried += 1
            self.move("drawn_in_error", by)
            return
        if self.state != "dealing":
            raise self.refuse("a card drawn while none is dealt", "13.B", "13.A", "have the floor decide")
        if self.round.method == DealingMethod.AUTOMATED_SHOE:
            self.void_round(by, "13.C", "13.E", "a card too many came out of the shoe", cards_in_device=True)
        elif seen is not None:
            self.void_round(by, "13.A", "13.D", f"{seen} was seen")
        else:
            self.round.reserved += 1
            self.move("drawn_in_error", by)

    def wrong_number(self, by: Attribution, why: str) -> None:
        """Somebody has a wrong number of cards: void, and shuffled again (MD3 13.C)."""
        self.check("void", by)
        automated = self.round.method == DealingMethod.AUTOMATED_SHOE and self.state == "dealing"
        self.void_round(by, "13.C", "13.E", why, cards_in_device=automated)

    def shoe_failed(self, by: Attribution, why: str) -> None:
        """The automated shoe jammed, stopped or did not deal: void, its cards come out (MD3 13.D)."""
        self.check("void", by)
        if self.round.method != DealingMethod.AUTOMATED_SHOE:
            do = f"this round is dealt by {self.method}"
            raise self.refuse("a failure of the automated shoe", "13.D", "13.E", do)
        self.void_round(by, "13.D", "13.E", why, cards_in_device=True)
