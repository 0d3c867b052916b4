"""Dealing mini baccarat: four cards, third cards, cover card, last hand, simulated rounds (MDM 8-10, 13)."""

from sabot_table.cards import Card, card, check_possible
from sabot_table.coup import Coup, banker_draws, player_draws, points
from sabot_table.procedure.three_card_procedure import ThreeCardProcedure
from sabot_table.procedure.vocabulary import Attribution, TableRole
from sabot_table.rule_texts import DealingMethod
from sabot_table.settlement import CardSource

FIRST_CARDS = 4
PLAYER, BANKER = "player", "banker"


class MiniProcedure(ThreeCardProcedure):
    """From "no more bets" to a coup."""

    def deal_card(self, by: Attribution) -> None:
        """One of the first four cards, face down: Player, Banker, Player, Banker (MDM 8.C)."""
        self.check("deal_card", by)
        if self.three_card:
            raise self.refuse("a card to nobody", "8.D", "8.C", "say whom it goes to")
        self.round.dealt += 1
        self.move("deal_card", by)
        if self.round.dealt >= FIRST_CARDS:
            self.move("four_dealt", by)
        else:
            self.order_cards()

    def announce(
        self, by: Attribution, player: tuple[Card, ...], banker: tuple[Card, ...], source: CardSource
    ) -> None:
        """The first four cards are shown and their points announced."""
        self.check("announce", by)
        if (source is CardSource.READER) != (by.role is TableRole.DEVICE):
            raise self.refuse(
                f"cards from the {source} told by {by.role}", "11.B", "11.A", "say who saw them"
            )
        if (len(player), len(banker)) != (2, 2):
            raise self.refuse("other than two cards each", "8.D", "8.C", "announce both hands' first two")
        if self.round.player:
            raise self.refuse("a second announcement", "8.D", "8.C", "the four cards are known")
        known = self.round.opened_by
        in_order = [player[0], banker[0], player[1], banker[1]]
        if [str(each) for each in in_order][: len(known)] != known:
            what = f"a simulated round that does not begin with {', '.join(known)}"
            raise self.refuse(what, "13.A", "13.D", "type the cards as they lie")
        check_possible((*player, *banker), self.rules.cards.decks)
        self._keep(player, banker, source)
        self.move("announce", by)
        self._go_on(by)

    def third_due(self) -> str | None:
        """Which hand draws next: "player", "banker", or None (MDM 10)."""
        playing = self.round
        player, banker = self._hand(PLAYER), self._hand(BANKER)
        if not playing.player:
            return None
        first, other = points(player[:2]), points(banker[:2])
        if len(player) == 2 and player_draws(first, other):
            return PLAYER
        third = player[2].value if len(player) == 3 else None
        return BANKER if len(banker) == 2 and banker_draws(first, other, third) else None

    def third_card(self, by: Attribution, to: str, drawn: Card) -> None:
        """A third card, face up, to the hand that must draw."""
        self.check("third_card", by)
        due = self.third_due()
        if not self.round.player:
            raise self.refuse("a third card before the first four are known", "8.D", "9.C", "announce them")
        if to != due:
            do = f"the {due} draws" if due else "nobody draws"
            raise self.refuse(f"a third card to the {to}", "8.D", "10.B", f"{do}; or report what happened")
        self._check_third(drawn)
        (self.round.player if to == PLAYER else self.round.banker).append(str(drawn))
        self.round.banker_third_waits = False
        if by.role is not TableRole.DEVICE:
            self.round.source = str(CardSource.DEALER)  # one card typed in is enough
        self.move("third_card", by)
        self._go_on(by)

    def _go_on(self, by: Attribution) -> None:
        due = self.third_due()
        if due is not None:
            self.order_draw()
            return
        coup = self.coup()
        self.order("announce", text=result(self.rules.variant, coup))
        self.move("coup_simulated" if self.round.simulated else "coup_complete", by)

    def order_draw(self) -> None:
        """Ask for the third card that is due, of the dealer or of the automated shoe."""
        playing = self.round
        self.order("draw", to=self.third_due())
        if playing.method == DealingMethod.AUTOMATED_SHOE and not playing.banker_third_waits:
            number = len(playing.player) + len(playing.banker) + 1
            self.order("dispense-card", round=playing.round_id, card=number, to=self.third_due())

    def coup(self) -> Coup:
        """Both hands in full."""
        return Coup(self._hand(PLAYER), self._hand(BANKER))

    def _hand(self, which: str) -> tuple[Card, ...]:
        names = self.round.player if which == PLAYER else self.round.banker
        return tuple(card(each) for each in names)

    def _check_third(self, drawn: Card) -> None:
        check_possible((*self._hand(PLAYER), *self._hand(BANKER), drawn), self.rules.cards.decks)

    def retype_coup(self, by: Attribution, player: tuple[Card, ...], banker: tuple[Card, ...]) -> None:
        """The floor corrects what the dealer typed wrong: the whole coup, before anything is settled."""
        self.check("retype", by)
        self.check_typed()
        self._only_mini("a coup", "11.A")
        coup = Coup(player, banker)
        check_possible(coup.cards, self.rules.cards.decks)
        self._keep(coup.player, coup.banker, CardSource.DEALER)
        self.move("retype", by)
        if self.state == "drawing":
            self._go_on(by)
        else:
            self.order("announce", text=result(self.rules.variant, coup))

    def _keep(self, player: tuple[Card, ...], banker: tuple[Card, ...], source: CardSource) -> None:
        self.round.player = [str(each) for each in player]
        self.round.banker = [str(each) for each in banker]
        self.round.source = str(source)

    # -- the cover card and the last hand -------------------------------------------------------

    def cover_card(self, by: Attribution) -> None:
        """The cover card came: this hand is finished, one more is the last (MDM 9.D)."""
        self.check("cover_card", by)
        self._only_mini("the cover card", "9.D")
        self.check_shoe("a cover card")
        if not self.burns or self.memory.cover:
            raise self.refuse("a cover card", "5.D", "9.D", "it is out already, or this game has none")
        self.memory.cover = "out"
        self.move("cover_card", by)

    def announce_last_hand(self, by: Attribution) -> None:
        """One more hand from this shoe."""
        self.check("announce_last_hand", by)
        if self.memory.cover != "announce":
            raise self.refuse("a last hand", "5.D", "9.D", "it is announced after the hand of the cover card")
        self.memory.cover = "last"
        self.order("announce", text="last hand")
        self.move("announce_last_hand", by)

    def end_shoe(self, by: Attribution) -> None:
        """The cards of a finished shoe go to the discards."""
        pack = self.next_pack()
        self.check_pack("discard", pack, by)
        if self.state not in ("between", "idle"):
            raise self.refuse("the end of a shoe in a round", "11.C", "9.D", "finish the round first")
        self.check_discards(pack)
        self.move_pack("discard", pack, by)
        self.forget_shoe()

    # -- irregularities of mini baccarat --------------------------------------------------------

    def unauthorised_third(self, by: Attribution, seen: Card | None) -> None:
        """The Player got a third card that the rules do not give: unseen (MDM 13.B) or seen (13.C)."""
        self.check("unauthorised_third", by)
        self._only_mini("an unauthorised third card", "13.B")
        playing, due = self.round, self.third_due()
        if not playing.player:
            raise self.refuse("a third card before the first four are known", "8.D", "9.C", "announce them")
        if due == PLAYER or len(playing.player) == 3:
            raise self.refuse("the Player draws a third card", "8.D", "10.B", "another is drawn in error")
        if due == BANKER and seen is not None:
            self._check_third(seen)
        self.move("unauthorised_third", by)
        if due == BANKER:
            if seen is None:
                playing.banker_third_waits = True
                self.order("use-as-third", to=BANKER)
            else:
                playing.banker.append(str(seen))
                self._go_on(by)
        elif seen is None:
            self.memory.carried += 1
        elif self.rules.options.disclosed_third == "discard":
            self.order("discard", cards=[str(seen)], unseen=1)
        else:
            self.memory.exposed.append(str(seen))

    def card_exposed(self, by: Attribution, seen: Card) -> None:
        """Any other card was seen: the round in play finishes, then it opens a simulated one (MDM 13.D)."""
        self.check("card_exposed", by)
        self._only_mini("a card that was seen", "13.D")
        self.check_shoe("a card that was seen")
        self.memory.exposed.append(str(seen))
        self.move("card_exposed", by)

    def begin_simulated(self, by: Attribution) -> None:
        """The card that was seen opens a round without wagers."""
        self.check("begin_simulated", by)
        if not self.memory.exposed:
            raise self.refuse("a simulated round", "13.A", "13.D", "only a card that was seen opens one")
        pack = self.next_pack()
        if self.rules.fixed.every_round:
            self.move_pack("play", pack, by)
        self.begin(pack, simulated=True)
        self.memory.last_pack = pack.pack_id
        known = self.memory.exposed[:FIRST_CARDS]
        self.memory.exposed = self.memory.exposed[FIRST_CARDS:]
        self.round.opened_by, self.round.dealt = known, len(known)
        self.move("begin_simulated", by)
        if self.round.dealt >= FIRST_CARDS:
            self.move("four_dealt", by)
        else:
            self.order_cards(opening=True)

    def too_few_cards(self, by: Attribution) -> None:
        """The shoe cannot finish the round: void, and a new set of cards (MDM 13.E)."""
        self.check("too_few_cards", by)
        self._only_mini("too few cards", "13.E")
        if self.burns:
            self.memory.cover = "over"
        self.void_round(by, "13.C", "13.E", "too few cards", action="too_few_cards")

    def _only_mini(self, what: str, section: str) -> None:
        if self.three_card:
            raise self.refuse(what, "13.C", section, "this game has none; void the round if it is wrong")


def result(variant: str, coup: Coup) -> str:
    """What the dealer announces: both point counts, who won, the result's name if it has one (MDM 11.A)."""
    totals = coup.totals
    if totals.player == totals.banker:
        return f"Player {totals.player}, Banker {totals.banker}: tie hand"
    winner = "Banker" if totals.banker > totals.player else "Player"
    called = ""
    if winner == "Banker" and totals.banker == 7 and totals.banker_cards == 3:
        called = {"ez": ", Dragon 7", "fortune-7": ", Fortune 7"}.get(variant, "")
    elif winner == "Player" and variant == "ez" and totals.player == 8 and totals.player_cards == 3:
        called = ", Panda 8"
    elif winner == "Player" and variant == "fortune-7" and totals.player == totals.banker + 1:
        called = ", One Up"
    return f"Player {totals.player}, Banker {totals.banker}: {winner} wins{called}"
