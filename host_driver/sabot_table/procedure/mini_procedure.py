"""Dealing mini baccarat: four cards, third cards, cover card, last hand, simulated rounds (MDM 8-10, 13)."""

from sabot_table.cards import Card, card, check_possible
from sabot_table.coup import Coup, banker_draws, player_draws, points
from sabot_table.procedure.betting import BettingProcedure
from sabot_table.procedure.context import TableContext
from sabot_table.procedure.packs import PackProcedure
from sabot_table.procedure.vocabulary import Attribution, TableRole
from sabot_table.settlement import CardSource

FIRST_CARDS = 4
PLAYER, BANKER = "player", "banker"


class MiniProcedure:
    """Deals a round of mini baccarat, from "no more bets" to a complete coup."""

    def __init__(self, table: TableContext, packs: PackProcedure, betting: BettingProcedure) -> None:
        self.table = table
        self._packs = packs
        self._betting = betting

    def deal_card(self, by: Attribution) -> None:
        """One of the first four cards, face down: Player, Banker, Player, Banker (MDM 8.C)."""
        self.table.check("deal_card", by)
        self._only_mini("a card to nobody", "deal_card")
        self.table.round.dealt += 1
        self.table.move("deal_card", by)
        if self.table.round.dealt >= FIRST_CARDS:
            self.table.move("four_dealt", by)

    def announce(
        self, by: Attribution, player: tuple[Card, ...], banker: tuple[Card, ...], source: CardSource
    ) -> None:
        """The first four cards are shown and their points announced."""
        self.table.check("announce", by)
        self.table.check_source(source, by)
        if (len(player), len(banker)) != (2, 2):
            raise self.table.refuse(
                "other than two cards each", "deal_card", "announce both hands' first two"
            )
        if self.table.round.player:
            raise self.table.refuse("a second announcement", "deal_card", "the four cards are known")
        known = self.table.round.opened_by
        in_order = [player[0], banker[0], player[1], banker[1]]
        if [str(each) for each in in_order][: len(known)] != known:
            what = f"a simulated round that does not begin with {', '.join(known)}"
            raise self.table.refuse(what, "begin_simulated", "type the cards as they lie")
        check_possible((*player, *banker), self.table.rules.cards.decks)
        self._keep(player, banker, source)
        counts = f"Player {points(player)}, Banker {points(banker)}"
        self.table.order("announce", text=counts)  # before any third card (MDM 8.D(3), 9.A)
        self.table.move("announce", by)
        self._go_on(by)

    # -- what an automated shoe reports ---------------------------------------------------------

    def card_dispensed(self, by: Attribution, round_id: int, number: int, draw: int = 0) -> None:
        """A card came out of the shoe: one of the first four, or a third card whose face follows.

        ``number`` counts the cards of the round, ``draw`` the device's draws, both from 1. ``draw`` is 0
        where the device does not count them.
        """
        table, playing = self.table, self.table.round
        self._only_mini("a single card", "deal_card")
        if table.state == "drawing" and number > FIRST_CARDS:
            table.check_round(round_id, "a card")
            self._next_draw(draw)
            known = len(playing.player) + len(playing.banker)
            playing.drawn += [0] * (known - len(playing.drawn)) + [draw]
            return
        if (round_id, number) != (playing.round_id, playing.dealt + 1):
            do = f"card {playing.dealt + 1} of round {playing.round_id} is next"
            raise table.refuse(f"card {number} of round {round_id}", "deal_card", do)
        table.check("deal_card", by)
        self._next_draw(draw)
        playing.drawn += [0] * (playing.dealt - len(playing.drawn)) + [draw]  # those before came by none
        self.deal_card(by)

    def card_set_aside(self, by: Attribution, round_id: int, draw: int) -> None:
        """A card came out of the shoe that goes to no hand now: it was seen, or drawn in error."""
        self.table.check_round(round_id, "a card")
        self._only_mini("a single card", "deal_card")
        self._next_draw(draw)
        self.table.note("card_aside", by)

    def _only_mini(self, what: str, key: str) -> None:
        if self.table.three_card:
            raise self.table.refuse(what, key, "say which seat it belongs to")

    def _next_draw(self, draw: int) -> None:
        if draw and draw != self.table.round.draws + 1:
            do = f"draw {self.table.round.draws + 1} is next"
            raise self.table.refuse(f"draw {draw}", "deal_card", do)
        self.table.round.draws = draw

    def first_four_read(
        self, by: Attribution, round_id: int, player: tuple[Card, ...], banker: tuple[Card, ...]
    ) -> None:
        """The exit reader saw the first four cards, which lie open."""
        self.table.check_round(round_id, "cards")
        self.announce(by, player, banker, CardSource.READER)

    def third_card_read(self, by: Attribution, round_id: int, to: str, drawn: Card) -> None:
        """The exit reader saw a third card, which lies open."""
        self.table.check_round(round_id, "a third card")
        self.third_card(by, to, drawn)

    # -- third cards ----------------------------------------------------------------------------

    def third_due(self) -> str | None:
        """Which hand draws next: "player", "banker", or None (MDM 10)."""
        playing = self.table.round
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
        self.table.check("third_card", by)
        due = self.third_due()
        if not self.table.round.player:
            raise self.table.refuse(
                "a third card before the first four are known", "third_card", "announce them"
            )
        if to != due:
            do = f"the {due} draws" if due else "nobody draws"
            raise self.table.refuse(
                f"a third card to the {to}", "third_card_rules", f"{do}; or report what happened"
            )
        self._check_third(drawn)
        (self.table.round.player if to == PLAYER else self.table.round.banker).append(str(drawn))
        self.table.round.banker_third_waits = False
        if by.role is not TableRole.DEVICE:
            self.table.round.source = str(CardSource.DEALER)  # one card typed in is enough
        self.table.move("third_card", by)
        self._go_on(by)

    def _go_on(self, by: Attribution) -> None:
        if self.third_due() is not None:
            return
        coup = self.coup()
        self.table.order("announce", text=result(self.table.rules.variant, coup))
        self.table.move("coup_simulated" if self.table.round.simulated else "coup_complete", by)

    def coup(self) -> Coup:
        """Both hands in full."""
        return Coup(self._hand(PLAYER), self._hand(BANKER))

    def _hand(self, which: str) -> tuple[Card, ...]:
        names = self.table.round.player if which == PLAYER else self.table.round.banker
        return tuple(card(each) for each in names)

    def _check_third(self, drawn: Card) -> None:
        check_possible((*self._hand(PLAYER), *self._hand(BANKER), drawn), self.table.rules.cards.decks)

    def retype_coup(self, by: Attribution, player: tuple[Card, ...], banker: tuple[Card, ...]) -> None:
        """The floor corrects what the dealer typed wrong: the whole coup, before anything is settled."""
        self.table.check("retype", by)
        self._only_mini("a coup", "retype")
        self.table.check_typed()
        coup = Coup(player, banker)
        check_possible(coup.cards, self.table.rules.cards.decks)
        self._keep(coup.player, coup.banker, CardSource.DEALER)
        self.table.move("retype", by)
        if self.table.state == "drawing":
            self._go_on(by)
        else:
            self.table.order("announce", text=result(self.table.rules.variant, coup))

    def _keep(self, player: tuple[Card, ...], banker: tuple[Card, ...], source: CardSource) -> None:
        self.table.round.player = [str(each) for each in player]
        self.table.round.banker = [str(each) for each in banker]
        self.table.round.source = str(source)

    # -- the cover card and the last hand -------------------------------------------------------

    def cover_card(self, by: Attribution) -> None:
        """The cover card came: this hand is finished, one more is the last (MDM 9.D)."""
        self.table.check("cover_card", by)
        self._packs.check_shoe("a cover card")
        if self.table.memory.cover:
            raise self.table.refuse("a cover card", "cover_card", "it is out already")
        self.table.memory.cover = "out"
        self.table.move("cover_card", by)

    def announce_last_hand(self, by: Attribution) -> None:
        """One more hand from this shoe."""
        self.table.check("announce_last_hand", by)
        if self.table.memory.cover != "announce":
            raise self.table.refuse(
                "a last hand", "announce_last_hand", "it is announced after the hand of the cover card"
            )
        self.table.memory.cover = "last"
        self.table.move("announce_last_hand", by)

    # -- irregularities of mini baccarat --------------------------------------------------------

    def unauthorised_third(self, by: Attribution, seen: Card | None) -> None:
        """The Player got a third card that the rules do not give: unseen (MDM 13.B) or seen (13.C)."""
        self.table.check("unauthorised_third", by)
        playing, due = self.table.round, self.third_due()
        if not playing.player:
            raise self.table.refuse(
                "a third card before the first four are known", "third_card", "announce them"
            )
        if due == PLAYER or len(playing.player) == 3:
            raise self.table.refuse(
                "the Player draws a third card", "third_card_rules", "another is drawn in error"
            )
        if due == BANKER and seen is not None:
            self._check_third(seen)
        self.table.move("unauthorised_third", by)
        if due == BANKER:
            if seen is None:
                playing.banker_third_waits = True
                self.table.order("use-as-third", to=BANKER)
            else:
                playing.banker.append(str(seen))
                self._go_on(by)
        elif seen is None:
            self.table.memory.carried += 1
        elif self.table.rules.options.disclosed_third == "discard":
            self.table.order("discard", cards=[str(seen)], unseen=1)
        else:
            self.table.memory.exposed.append(str(seen))

    def card_exposed(self, by: Attribution, seen: Card) -> None:
        """Any other card was seen: the round in play finishes, then it opens a simulated one (MDM 13.D)."""
        self.table.check("card_exposed", by)
        self._packs.check_shoe("a card that was seen")
        self.table.memory.exposed.append(str(seen))
        self.table.move("card_exposed", by)

    def begin_simulated(self, by: Attribution) -> None:
        """The card that was seen opens a round without wagers."""
        self.table.check("begin_simulated", by)
        if not self.table.memory.exposed:
            raise self.table.refuse(
                "a simulated round", "begin_simulated", "only a card that was seen opens one"
            )
        pack = self._packs.next_pack()
        if self.table.rules.fixed.every_round:
            self.table.move_pack("play", pack, by)
        self._betting.begin(pack, simulated=True)
        self.table.memory.last_pack = pack.pack_id
        known = self.table.memory.exposed[:FIRST_CARDS]
        self.table.memory.exposed = self.table.memory.exposed[FIRST_CARDS:]
        self.table.round.opened_by, self.table.round.dealt = known, len(known)
        self.table.move("begin_simulated", by)
        if self.table.round.dealt >= FIRST_CARDS:
            self.table.move("four_dealt", by)


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
