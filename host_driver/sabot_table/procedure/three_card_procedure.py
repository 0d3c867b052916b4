"""Dealing Three Card Baccarat: in stacks, or card by card; the stub; the reveal (MD3 8-11)."""

from collections.abc import Mapping, Sequence

from sabot_table.cards import Card
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.packs import PackProcedure
from sabot_table.procedure.vocabulary import Attribution, RemovalReason, TableRole, Verdict
from sabot_table.procedure.voiding import VoidProcedure
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource, DealtHands, check_hands

DEALER = 0  # among those whom cards go to


class ThreeCardProcedure:
    """Deals a round of Three Card Baccarat, from "no more bets" to known hands."""

    def __init__(self, table: TableContext, packs: PackProcedure, voiding: VoidProcedure) -> None:
        self.table = table
        self._packs = packs
        self._voiding = voiding

    # -- the automated shoe ---------------------------------------------------------------------

    def deal_stack(self, by: Attribution, round_id: int, stack: int, cards: int) -> None:
        """A stack came out; another number of cards than three voids the round (MD3 13.C)."""
        self.table.check("deal_stack", by)
        playing, turns = self.table.round, self.table.turns()
        if playing.method != DealingMethod.AUTOMATED_SHOE:
            raise self.table.refuse("a stack", "deal_stack", f"this round is dealt by {playing.method}")
        if (round_id, stack) != (playing.round_id, len(playing.stacks) + 1):
            what = f"stack {stack} of round {round_id}"
            do = f"stack {len(playing.stacks) + 1} of round {playing.round_id} is next"
            raise self.table.refuse(what, "deal_stack", do)
        playing.stacks.append(cards)
        self.table.move("deal_stack", by)
        if cards != HAND_CARDS:
            self._voiding.void_round(
                by, "wrong_number", f"stack {stack} has {cards} cards", cards_in_device=True
            )
        elif len(playing.stacks) == len(turns):
            self.table.move("hands_dealt", by)

    # -- card by card ---------------------------------------------------------------------------

    def next_to(self) -> int:
        """Whom the next card goes to: a seat, or the dealer (0)."""
        turns = self.table.turns()
        return turns[self.table.round.dealt % len(turns)]

    def deal_card_to(self, by: Attribution, to: int) -> None:
        """One card of a three-card round, from the manual shoe or the hand."""
        self.table.check("deal_card", by)
        playing = self.table.round
        if not self.table.three_card:
            raise self.table.refuse("a single card to a seat", "deal_card", "this game deals two hands")
        if playing.method == DealingMethod.AUTOMATED_SHOE:
            do = f"this round is dealt by {playing.method}"
            raise self.table.refuse("a single card to a seat", "deal_stack", do)
        if to != self.next_to():
            key = "dealt_by_hand" if playing.method == DealingMethod.HAND else "deal_card"
            do = f"the next goes to {name(self.next_to())}"
            raise self.table.refuse(f"a card to {name(to)}", key, do)
        playing.dealt += 1
        playing.reserved = max(0, playing.reserved - 1)
        self.table.move("deal_card", by)
        if playing.dealt == HAND_CARDS * len(self.table.turns()):
            self.table.move("hands_dealt", by)

    # -- the stub -------------------------------------------------------------------------------

    def end_round(self, by: Attribution, round_id: int, verdict: Verdict) -> None:
        """The device counted stacks and stub (MD3 10.C). A wrong count is advice: the dealer determines.

        Of a void round the device may still tell a wrong deck. A wrong verdict of the dealer is the
        determination itself.
        """
        void, wrong = self.table.state == "voided", verdict is not Verdict.CORRECT
        determined = by.role is TableRole.DEALER
        action = "determine" if determined else "count_wrong"
        self.table.check("recount" if void else action if wrong else "count_stub", by)
        if round_id != self.table.round.round_id:
            what = f"the count of round {round_id}"
            raise self.table.refuse(what, "count_automated", f"round {self.table.round.round_id} is played")
        if void or determined or not wrong:
            self._judge(by, verdict, "count_automated")
            return
        self.table.round.advice = str(verdict)
        self.table.move("count_wrong", by)
        self.table.order("determine", round=round_id, advice=str(verdict))

    def determine(self, by: Attribution, verdict: Verdict) -> None:
        """The dealer determines after a wrong count whether the cards were misdealt (MD3 10.C(2-4)).

        The round is void either way. A misdealt pack stays; one with a missing or extra card leaves.
        """
        self.table.check("determine", by)
        if not self.table.round.advice:
            what = "a determination without a wrong count"
            raise self.table.refuse(what, "determine", "wait for the count")
        if verdict is Verdict.CORRECT:
            do = "say whether the cards were misdealt, or a card is missing or extra"
            raise self.table.refuse("a wrong count called correct", "determine", do)
        self._judge(by, verdict, "count_automated", action="determine")

    def count_stub(self, by: Attribution, stub: int, hands: Mapping[int, int] | None = None) -> Verdict:
        """The dealer counted the stub; where it does not fit, the cards of every hand too (MD3 8.F)."""
        self.table.check("count_stub", by)
        turns = self.table.turns()
        key = "count_hand" if self.table.round.method == DealingMethod.HAND else "count_manual"
        if hands is None:
            if stub + HAND_CARDS * len(turns) != self.table.pack_cards:
                what = f"a stub of {stub} with {len(turns)} hands"
                raise self.table.refuse(what, key, "count the cards of every hand too: was it misdealt?")
            counts = [HAND_CARDS] * len(turns)
        elif set(hands) != set(turns):
            raise self.table.refuse(
                "a count of other hands", key, f"count those of {', '.join(map(name, turns))}"
            )
        else:
            counts = list(hands.values())
        total = stub + sum(counts)
        if total != self.table.pack_cards:
            verdict = Verdict.CARD_MISSING if total < self.table.pack_cards else Verdict.CARD_EXTRA
        else:
            misdealt = any(each != HAND_CARDS for each in counts)
            verdict = Verdict.MISDEALT if misdealt else Verdict.CORRECT
        self._judge(by, verdict, key)
        return verdict

    def pass_stub(self, by: Attribution) -> None:
        """The stub goes to the discards uncounted: four rounds in a row at most, unless a shuffler counts."""
        self.table.check("pass_stub", by)
        pack = self.table.pack(self.table.round.pack_id)
        if self.table.round.method == DealingMethod.AUTOMATED_SHOE:
            raise self.table.refuse(
                "an uncounted stub of the automated shoe", "count_automated", "wait for its count"
            )
        terms = self.table.rules.fixed.stub
        assert terms is not None  # a text with this act has it
        if not pack.counted and pack.uncounted_rounds + 1 >= terms.count_every:
            hand = self.table.round.method == DealingMethod.HAND
            what = f"the stub uncounted for {terms.count_every} rounds"
            raise self.table.refuse(what, "uncounted_hand" if hand else "uncounted_manual", "count it now")
        pack.uncounted_rounds += 1
        self.table.move("pass_stub", by)

    def _judge(self, by: Attribution, verdict: Verdict, key: str, action: str = "void") -> None:
        pack = self.table.pack(self.table.round.pack_id)
        pack.uncounted_rounds = 0
        what = verdict.replace("_", " ")
        if verdict in (Verdict.CARD_MISSING, Verdict.CARD_EXTRA):
            why = f"{what} in round {self.table.round.round_id}"
            self._packs.mark_for_removal(pack, RemovalReason.WRONG_COUNT, why)
        if self.table.state == "voided":
            self.table.move("recount", by)
        elif verdict is Verdict.CORRECT:
            self.table.move("count_stub", by)
        else:
            self._voiding.void_round(by, key, what, action=action)

    # -- the reveal -----------------------------------------------------------------------------

    def reveal(
        self,
        by: Attribution,
        dealer: tuple[Card, ...],
        hands: Mapping[int, tuple[Card, ...]],
        source: CardSource,
    ) -> None:
        """The hands are shown: read at the exit, or typed in by the dealer."""
        self.table.check("reveal", by)
        self.table.check_source(source, by)
        self._keep_hands(dealer, hands, source)
        self.table.move("reveal", by)

    def hands_read(self, by: Attribution, round_id: int, stacks: Sequence[tuple[Card, ...]]) -> None:
        """The exit reader saw the stacks, in the order in which they were dealt."""
        self.table.check_round(round_id, "cards")
        turns = self.table.turns()
        if len(stacks) != len(turns):
            raise self.table.refuse(f"{len(stacks)} stacks", "cards_known", f"there are {len(turns)}")
        hands = dict(zip(turns, stacks, strict=True))
        self.reveal(by, hands.pop(DEALER), hands, CardSource.READER)

    def hands_not_known(self, by: Attribution) -> None:
        """The dealer exposed and settled the hands, and nobody told their cards."""
        self.table.check("reveal", by)
        self.table.round.cards_known = False
        self.table.move("reveal", by)

    def _keep_hands(
        self, dealer: tuple[Card, ...], hands: Mapping[int, tuple[Card, ...]], source: CardSource
    ) -> None:
        check_hands(self.table.rules, self.table.round.wagers, DealtHands(dealer, hands))
        for hand in (dealer, *hands.values()):
            if len(hand) != HAND_CARDS:
                raise self.table.refuse(f"a hand of {len(hand)} cards", "wrong_number", "void the round")
        self.table.round.dealer = [str(each) for each in dealer]
        self.table.round.hands = {seat: [str(each) for each in hand] for seat, hand in hands.items()}
        self.table.round.source = str(source)

    def retype_hands(
        self, by: Attribution, dealer: tuple[Card, ...], hands: Mapping[int, tuple[Card, ...]]
    ) -> None:
        """The floor corrects cards that the dealer typed wrong, before anything is settled."""
        self.table.check("retype", by)
        if not self.table.three_card:
            raise self.table.refuse("hands of seats", "retype", "retype the coup")
        self.table.check_typed()
        self._keep_hands(dealer, hands, CardSource.DEALER)
        self.table.move("retype", by)

    def forfeit(self, by: Attribution, seat: int) -> None:
        """A player broke the rules of the hand and loses the round's wagers (MD3 11.A(5))."""
        self.table.check("forfeit", by)
        self._must_bet(seat, "forfeit")
        self.table.round.forfeits.append(seat)
        self.table.move("forfeit", by)

    def abandon(self, by: Attribution, seat: int) -> None:
        """The floor treats the wagers of a player who left as lost (MD3 7.B(3))."""
        self.table.check("abandon", by)
        self._must_bet(seat, "abandon")
        if seat in self.table.memory.seated:
            raise self.table.refuse(f"seat {seat} has not left", "abandon", "only who left abandons")
        self.table.round.abandoned.append(seat)
        self.table.move("abandon", by)

    def _must_bet(self, seat: int, act: str) -> None:
        if seat not in self.table.round.wagers:
            raise self.table.refuse(f"seat {seat} has no wagers", act, "look at the layout again")


def name(to: int) -> str:
    """Who gets cards."""
    return "the dealer" if to == DEALER else f"seat {to}"
