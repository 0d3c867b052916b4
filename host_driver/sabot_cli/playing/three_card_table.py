"""Three Card Baccarat from the automated shoe: stacks of three, the stub, the reveal (MD3 10, WA3)."""

from sabot_cli.playing.deck_handling import TRIES
from sabot_cli.playing.device_control import TableStopped
from sabot_cli.playing.round_play import PlayedRound, RoundPlay
from sabot_protocol.host.messages import DispenseStack, EndRound, ShoeState, ShufflerState
from sabot_table.cards import Card, card
from sabot_table.errors import ImpossibleCards
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure import TableRole
from sabot_table.settlement import CardSource


class ThreeCardTable(RoundPlay):
    """Two decks that alternate, and a stack to every hand."""

    # -- before the round -----------------------------------------------------------------------

    def prepare(self) -> None:
        """The deck whose turn it is in the shoe, the other one shuffled on the shelf."""
        for _ in range(TRIES):
            self.recover()
            self.watch_hours()
            if self._must_come_out():
                self.empty()
            self.bring_missing()
            self.feed()
            self.wait(self._stopped_or_ready, "the decks to be shuffled")
            if self._is_ready():
                self.taken_out = False
                self.loaded(self.in_shoe)
                return
        raise TableStopped("the machine stops again and again")

    def _stopped_or_ready(self) -> bool:
        missing = len(self.decks) < len(self.backs)
        blocked = self.shoe is ShoeState.BLOCKED
        return bool(self.faults) or blocked or self._must_come_out() or missing or self._is_ready()

    def _is_ready(self) -> bool:
        """One deck in the shoe and the other on the shelf; what the tray could take is fed meanwhile."""
        self.feed()
        stored = self.shuffler is ShufflerState.STORED or len(self.backs) == 1
        return self.shoe is ShoeState.READY and stored and self._in_turn() and self.in_shoe in self.decks

    def _in_turn(self) -> bool:
        return self.in_shoe != self.desk.table.memory.last_pack or len(self.backs) == 1

    def _must_come_out(self) -> bool:
        """Nobody vouches for what is inside, or the deck in the shoe has just played."""
        unproved = self.shoe is ShoeState.UNPROVED or self.shuffler is ShufflerState.UNPROVED
        return unproved or (self.shoe is ShoeState.READY and not self._in_turn() and len(self.decks) > 1)

    # -- the round ------------------------------------------------------------------------------

    def hands(self) -> int:
        """One for each betting seat, and the dealer's."""
        return len(self.desk.table.turns())

    def deal(self) -> None:
        """A stack to every hand, clockwise, the dealer last."""
        playing = self.desk.table.round
        stack = len(playing.stacks) + 1
        self.wait(lambda: self._over("dealing") or self.shoe is ShoeState.ROUND_OPEN, "the shoe to rest")
        if self._over("dealing") or not self.give(DispenseStack(playing.round_id, stack)):
            return
        self.wait(lambda: self._over("dealing") or len(playing.stacks) >= stack, f"stack {stack}")

    def count(self) -> None:
        """The stub comes out, and everything is counted."""
        playing = self.desk.table.round
        began = (ShoeState.ROUND_OPEN, ShoeState.EJECTING, ShoeState.STUB_WAITING)
        self.wait(lambda: self._over("counting") or self.shoe in began, "the last stack to be taken")
        if self._over("counting"):
            return
        if self.shoe is ShoeState.ROUND_OPEN and not self.give(EndRound(playing.round_id)):
            return
        self.wait(lambda: self._over("counting"), "the stub")

    def _over(self, state: str) -> bool:
        return self.table_state != state

    # -- the reveal -----------------------------------------------------------------------------

    def reveal(self) -> None:
        """The hands lie open: what the reader saw, or what the dealer types."""
        playing = self.desk.table.round
        hands = range(1, self.hands() + 1)
        stacks = [self.read(playing.round_id, each) for each in hands]
        if all(each is not None for each in stacks):
            read = tuple(tuple(card(name) for name in each or ()) for each in stacks)
            try:
                self.desk.device(self.desk.procedure.three_card.hands_read, playing.round_id, read)
            except ImpossibleCards as error:
                self.output.tell("impossible", f"[red]{error}[/red]", what="the hands", message=str(error))
                self.void_impossible(str(error))
        elif self.table_state == "revealing":
            self.ask_again(self._type_hands, "the hands")

    def _type_hands(self) -> None:
        playing = self.desk.table.round
        typed: dict[int, tuple[Card, ...]] = {}
        for stack, seat in enumerate(self.desk.table.turns(), 1):
            whose = f"seat {seat}" if seat else "the dealer"
            what = f"the cards of {whose}"
            typed[seat] = self.card_entry.cards(what, HAND_CARDS, self.seen(playing.round_id, stack))
        dealer = typed.pop(0)
        self.desk.do(
            self.desk.procedure.three_card.reveal, TableRole.DEALER, dealer, typed, CardSource.DEALER
        )

    def played(self) -> PlayedRound:
        """The round as it stands."""
        playing = self.desk.table.round
        told = self.told()
        told.stacks, told.ended = list(playing.stacks), self.ended
        if playing.dealer:
            hands = [*(playing.hands[seat] for seat in told.seats), playing.dealer]
            told.hands = [[name.replace("10", "T") for name in hand] for hand in hands]
        return told
