"""Shoes of several decks: shuffled, delivered, cut, laid in, burnt; ended and counted (MDM 3, 5, 9.D; BAC).

A batch is shuffled and delivered by the machine, cut and laid in by people, and dealt until its cover card.
"""

import time
from abc import abstractmethod

from sabot_cli.playing.deck_handling import TRIES
from sabot_cli.playing.device_control import TableStopped
from sabot_cli.playing.round_play import RoundPlay
from sabot_driver.errors import NotAllowed, WrongState
from sabot_protocol.host.messages import (
    BurnCards,
    CardsTaken,
    DeckDelivered,
    DeliverDeck,
    EndShoe,
    Forbidden,
    LoadShoe,
    RemoveReason,
    ShoeEnded,
    ShoeState,
    ShufflerState,
)
from sabot_table.procedure import TableRole

IN_SHOE = ("loaded", "playing")
LAY_IN_S = 600.0  # how long people have to cut a batch and lay it in


class ShoeHandling(RoundPlay):
    """One shoe at a time, of one batch; the other batch is shuffled meanwhile."""

    cover_above = 0
    """Where the dealer puts the second cover card: so many cards above the bottom; 0: the least allowed."""
    _delivered = 0  # the batch that lies on the table, to be cut
    _came_out: DeckDelivered | None = None  # with its count
    _burnt = 0  # draws of burnt cards that were taken
    _ended: ShoeEnded | None = None
    _aside: list[str]  # cards drawn too early, as people at an emulated table know them

    def pass_on(self, told: object) -> None:
        """Batches that come out, burnt cards, and the end of a shoe."""
        super().pass_on(told)
        if isinstance(told, DeckDelivered):
            self._delivered, self._came_out = told.deck_id, told
        elif isinstance(told, ShoeEnded):
            self._ended = told
        elif isinstance(told, CardsTaken) and told.round_id == 0:
            self._burnt = told.draw

    @abstractmethod
    def simulate(self) -> None:
        """A round without wagers, opened by a card that was seen."""

    # -- a new shoe -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """A shoe that may be dealt from: laid in, burnt, not over; what is in the way is done first."""
        for _ in range(TRIES):
            table = self.desk.table
            self.wait(lambda: bool(self.faults) or self._rests(), "the shoe to rest")
            if self.recover():
                continue
            self.watch_hours()
            self.bring_missing()
            if table.memory.cover == "announce":
                self.desk.do(self.desk.procedure.mini.announce_last_hand, TableRole.DEALER)
            if table.memory.cover == "over":
                self._end_shoe()
            self._out_of_a_lost_shoe()
            if self._shoe_is_ready():
                self.taken_out = self.taken_out and self.shuffler is ShufflerState.IDLE
                self.feed()
                if not table.memory.exposed:
                    return
                self.simulate()
                continue
            self._new_shoe()
        raise TableStopped("no shoe can be made ready")

    def _in_the_shoe(self) -> int:
        """The pack that the procedure has in the shoe; 0 if there is none."""
        for pack in self.desk.table.packs():
            if pack.state in IN_SHOE:
                return pack.pack_id
        return 0

    def _shoe_is_ready(self) -> bool:
        pack_id = self._in_the_shoe()
        return (
            bool(pack_id)
            and self.in_shoe == pack_id
            and self.shoe is ShoeState.READY
            and (not self.desk.table.burns or self.desk.pack(pack_id).state == "playing")
        )

    def _out_of_a_lost_shoe(self) -> None:
        """A pack that the procedure has in the shoe and the device has not is shuffled anew."""
        pack_id = self._in_the_shoe()
        if pack_id and (self.in_shoe != pack_id or self.shoe is ShoeState.UNPROVED):
            if self.desk.pack(pack_id).state == "playing" and self.desk.table.burns:
                self.desk.do(self.desk.procedure.packs.end_shoe, TableRole.DEALER)
            else:
                self.desk.do(self.desk.procedure.packs.start_shuffle, TableRole.FLOOR, pack_id, machine=True)
        if self.shoe is ShoeState.UNPROVED or self._wrong_on_shelf():
            self.empty()

    def _wrong_on_shelf(self) -> bool:
        """The batch on the shelf has not the turn, and nothing is in the shoe: the other must be there."""
        stored = self.shuffler is ShufflerState.STORED and self.shoe is ShoeState.EMPTY
        return stored and not self._has_turn(self.in_shuffler) and not self._in_the_shoe()

    def _new_shoe(self) -> None:
        """The batch whose turn it is comes out shuffled, is cut, gets its cover card, and is laid in."""
        self.feed()
        pack_id = self._next_batch()
        if pack_id is None:
            self.wait(self._something_new, "a batch to be shuffled")
            return
        if self._delivered != pack_id and not self._deliver(pack_id):
            return
        self._cut(pack_id)
        if not self._lay_in(pack_id):
            return
        self._burn(pack_id)
        self.feed()

    def _next_batch(self) -> int | None:
        """The batch that is shuffled and has the turn; None while there is none."""
        table = self.desk.table
        for pack in table.packs():
            turn = self._has_turn(pack.pack_id)
            stored = self.shuffler is ShufflerState.STORED and self.in_shuffler == pack.pack_id
            out = self._delivered == pack.pack_id
            if pack.state in ("shuffled", "cut", "covered") and turn and (stored or out):
                return pack.pack_id
        return None

    def _has_turn(self, pack_id: int) -> bool:
        memory = self.desk.table.memory
        return pack_id != memory.last_pack or pack_id == memory.delivered or len(self.backs) == 1

    def _something_new(self) -> bool:
        self.feed()
        unproved = self.shoe is ShoeState.UNPROVED or self.shuffler is ShufflerState.UNPROVED
        missing = len(self.decks) < len(self.backs)
        ready = self._next_batch() is not None or self._shoe_is_ready() or self._wrong_on_shelf()
        return bool(self.faults) or self.shoe is ShoeState.BLOCKED or unproved or missing or ready

    def _waits(self, deck_id: int) -> bool:
        """Not the batch that lies on the table to be cut, and none that is shuffled."""
        if not super()._waits(deck_id) or deck_id == self._delivered:
            return False
        return self.desk.pack(deck_id).state not in IN_SHOE

    def _out_or_stopped(self) -> bool:
        return bool(self.faults) or self.shoe in (ShoeState.EMPTY, ShoeState.BLOCKED)

    def _deliver(self, pack_id: int) -> bool:
        self.wait(self._out_or_stopped, "the shoe to be empty")
        if self.faults or self.shoe is ShoeState.BLOCKED:
            return False
        self._came_out = None
        self.ask(DeliverDeck(pack_id))
        self.desk.device(self.desk.procedure.packs.deliver, pack_id)
        self.wait(lambda: bool(self.faults) or self._came_out is not None, "the batch to come out")
        self.wait(self._out_or_stopped, "the batch to be taken")
        out: DeckDelivered | None = self._came_out
        if self.faults or out is None:
            return False
        if out.count != out.expected:  # a card is missing or extra: it leaves
            self._delivered = 0
            self.remove(pack_id, RemoveReason.WRONG_COUNT)
            return False
        return True

    def _cut(self, pack_id: int) -> None:
        """By the player whose turn it is, and the dealer's cover card (MDM 5.B-C)."""
        desk, table = self.desk, self.desk.table
        pack, size, packs = desk.pack(pack_id), table.pack_cards, desk.procedure.packs
        from_top = above = None
        terms = desk.rules.fixed
        if packs.needs_cut(pack) and pack.state == "shuffled":
            seat = next(iter(packs.cutters(pack)), None)
            who = "the dealer" if seat is None else f"seat {seat}"
            what = f"{who} cuts: cards from the top"
            least, most = terms.cut.from_top, size - terms.cut.from_bottom
            from_top = self.card_entry.number(what, least, most, size // 2)
            desk.do(
                desk.procedure.packs.cut,
                TableRole.DEALER if seat is None else TableRole.PLAYER,
                pack_id,
                from_top,
                seat=seat,
            )
        if packs.needs_cut(pack) and terms.cover is not None:
            what = "the cover card: cards above the bottom"
            least = terms.cover.above_bottom
            above = self.card_entry.number(what, least, size - 1, self.cover_above or least)
            if pack.state == "cut":
                desk.do(desk.procedure.packs.place_cover, TableRole.DEALER, pack_id, above)
        if self.people is not None:
            self.people.cut_shoe(0 if not packs.needs_cut(pack) else from_top, above)
        self.output.tell("cut", deck_id=pack_id, from_top=from_top, cover_above_bottom=above)

    def _lay_in(self, pack_id: int) -> bool:
        """The floor says that the batch was laid in; the machine believes its sensors and its door."""
        ends = time.monotonic() + LAY_IN_S
        told = False
        while True:
            try:
                self.ask_floor(LoadShoe(pack_id))
                break
            except (WrongState, NotAllowed) as error:
                reason = error.reason if isinstance(error, NotAllowed) else None
                if reason is Forbidden.NOT_DELIVERED:  # nobody vouches for it any more
                    self._delivered = 0
                    self.desk.do(
                        self.desk.procedure.packs.start_shuffle, TableRole.FLOOR, pack_id, machine=True
                    )
                    return False
                if time.monotonic() > ends or reason not in (None, Forbidden.NOT_CLEARED):
                    raise
                if not told:
                    told = True
                    self.output.tell("lay_in", "cut the batch, lay it into the shoe, shut the door")
                time.sleep(0.1)
        self._delivered = 0
        self._burnt = 0
        self._aside = []
        self.wait(lambda: bool(self.faults) or self.in_shoe == pack_id, "the shoe")
        self.desk.do(self.desk.procedure.packs.load, TableRole.DEALER, pack_id)
        return not self.faults

    def _burn(self, pack_id: int) -> None:
        """The first card is shown, and as many as it counts go with it (MDM 5.F-G)."""
        if not self.desk.table.burns:
            return
        self.close_table()  # marked vigorish is due before a new shoe
        if not self._burn_cards(1):
            return
        (first,) = self.card_entry.cards("the first card, which is burnt", 1, self.seen(0, 1))
        if not self._burn_cards(first.burns):
            return
        self.desk.do(self.desk.procedure.packs.burn, TableRole.DEALER, pack_id, first, first.burns)
        words = f"a new shoe: {first} is burnt, and {first.burns} with it"
        self.output.tell("shoe", words, deck_id=pack_id, burn_card=str(first), burned=first.burns)

    def _burn_cards(self, number: int) -> bool:
        before = self._burnt
        self.ask(BurnCards(number))
        self.wait(lambda: bool(self.faults) or self._burnt > before, "the burnt cards")
        self.wait(lambda: bool(self.faults) or self.shoe is ShoeState.READY, "the burnt cards to be taken")
        return not self.faults

    def _end_shoe(self) -> None:
        """What is left comes out and the whole batch is counted; a wrong one leaves."""
        pack_id = self._in_the_shoe()
        if not pack_id:
            return
        if self.in_shoe == pack_id and self.shoe is ShoeState.READY:
            self._eject(pack_id)
        self.desk.do(self.desk.procedure.packs.end_shoe, TableRole.DEALER)
        self._judge_shoe(pack_id)

    def _eject(self, pack_id: int) -> None:
        self._ended = None
        self.ask(EndShoe(pack_id))
        self.wait(lambda: bool(self.faults) or self._ended is not None, "the end of the shoe")
        self.wait(self._out_or_stopped, "the shoe to be taken out")

    def _judge_shoe(self, pack_id: int) -> None:
        ended, self._ended = self._ended, None
        if ended is None or ended.deck_id != pack_id:
            return
        right = ended.count == ended.expected
        colour = "green" if right else "red"
        words = f"the shoe is over: [{colour}]{ended.count} of {ended.expected} cards[/{colour}]"
        self.output.tell("shoe_ended", words, deck_id=pack_id, count=ended.count, expected=ended.expected)
        if not right:
            self.remove(pack_id, RemoveReason.WRONG_COUNT)

    def come_out(self, deck_id: int) -> None:
        """A shoe that failed is a shoe no more: what is left of it comes out (MDM 13.E)."""
        for _ in range(TRIES):
            if self.recover():
                continue
            if self.shoe is ShoeState.READY and self.in_shoe == deck_id:
                self._eject(deck_id)
            elif self.shoe is ShoeState.UNPROVED:
                self.empty()
            elif self.shoe is ShoeState.EMPTY:
                return
            else:
                self.wait(lambda: bool(self.faults) or self._rests(), "the cards to come out")
        raise TableStopped("the cards do not come out of the shoe")
