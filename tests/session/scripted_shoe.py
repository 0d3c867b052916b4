"""A scripted machine that deals card by card, and a table that plays from it: no threads, nothing moves."""

from dataclasses import replace

from tests.session.acted_table import ActedTable
from tests.session.scripted_machine import ScriptedMachine, Told, faces_of

from sabot_protocol.host import messages as m
from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_table.cards import DECK_CARDS
from sabot_table.rule_texts import DealingMethod

STORED, IDLE = m.ShufflerState.STORED, m.ShufflerState.IDLE


class ScriptedShoe(ScriptedMachine):
    """Shuffles batches, brings them out, takes them in its shoe and deals single cards."""

    cards: tuple[str, ...] = ()
    """The cards of a round in the order of their draws; "" for one that the reader cannot read."""
    burns = 0
    """How often cards were burnt."""

    def _play_one_deck(self, request: m.PlayOneDeck) -> Told:
        it = self.game = replace(self.game, one_deck=request.on)
        told = m.GameChanged(
            it.name, it.method, it.decks, it.stack_cards, it.deck_hours, it.one_deck, bytes(8), 0
        )
        return m.Done(), told

    def _shuffle_with(self, request: m.ShuffleWith) -> Told:
        deck = self.committed.pop(request.shuffle_id)
        cards, self.stored = self.game.decks * DECK_CARDS, deck
        told = (
            m.ShufflerChanged(m.ShufflerState.FEEDING, deck),
            m.DeckCounted(deck, request.shuffle_id, cards, cards),
            m.ShufflerChanged(STORED, deck),
        )
        return m.ShuffleBegun(request.shuffle_id), *told

    def _deliver_deck(self, request: m.DeliverDeck) -> Told:
        cards, self.stored = self.game.decks * DECK_CARDS, 0
        delivered = m.DeckDelivered(request.deck_id, cards, cards)
        return m.Done(), m.ShufflerChanged(IDLE, 0), delivered

    def _load_shoe(self, request: m.LoadShoe) -> Told:
        self.in_shoe = request.deck_id
        return m.Done(), m.ShoeChanged(m.ShoeState.READY, request.deck_id, 0)

    def _burn_cards(self, request: m.BurnCards) -> Told:
        self.burns += 1
        return m.Done(), m.CardsDrawn(0, self.burns, request.cards), m.CardsTaken(0, self.burns)

    def _draw_cards(self, request: m.DrawCards) -> Told:
        return (
            m.Done(),
            m.ShoeChanged(m.ShoeState.STACK_WAITING, self.in_shoe, request.round_id),
            m.ShoeChanged(m.ShoeState.ROUND_OPEN, self.in_shoe, request.round_id),
            m.CardsTaken(request.round_id, request.draw),
        )

    def _end_round(self, request: m.EndRound) -> Told:
        ended = m.RoundEnded(request.round_id, m.Verdict.CORRECT, 0, 0)
        return m.Done(), ended, m.ShoeChanged(m.ShoeState.READY, self.in_shoe, 0)

    def _end_shoe(self, request: m.EndShoe) -> Told:
        cards, self.in_shoe = self.game.decks * DECK_CARDS, 0
        ended = m.ShoeEnded(request.deck_id, cards, cards)
        return m.Done(), ended, m.ShoeChanged(m.ShoeState.EMPTY, 0, 0)

    def _reveal_round(self, request: m.RevealRound) -> Told:
        return (m.Done(),)

    def _faces(self, request: m.Faces) -> Told:
        return (m.FacesAre(request.round_id, request.stack, faces_of(self.cards[request.stack - 1])),)


class ShoeTable(ActedTable):
    """A table whose machine deals card by card."""

    def __init__(self, rules: str = "baccarat-six-deck") -> None:
        super().__init__(rules)
        self.shoe = ScriptedShoe(self.session, lambda: self.now_s)
        self.machine = self.shoe

    def begin(self) -> None:
        """Open the table and have the first batch fed."""
        self.machine.link()
        self.give(acts.OpenTable(), "anna")
        self.give(acts.SignIn(), "ben")
        self.give(dealing_acts.ChangeMethod(DealingMethod.AUTOMATED_SHOE), "anna")
        self.prepare()

    def ready(self) -> None:
        """Begin, and lay the batch into the shoe, until bets can be closed."""
        self.begin()
        self.lay_in()

    def lay_in(self) -> None:
        """Lay the batch that came out into the shoe."""
        need = self.need(NeedKind.LAY_IN)
        assert need is not None, [each.words for each in self.session.needs()]
        self.give(acts.parse_act(need.acts[0], {"pack_id": need.details["pack_id"]}), need=need)
        assert self.need(NeedKind.BETS) is not None, [each.words for each in self.session.needs()]
