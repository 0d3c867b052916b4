"""Packs: decks and batches are brought, opened, shuffled with a pledge, changed at the end of their hours."""

from sabot_cli.playing.device_control import NAMES, DeckStatus, DeviceControl, TableStopped
from sabot_driver.errors import DeviceFaulted, NotAllowed, NotSupported, WrongState
from sabot_protocol.host.messages import (
    Back,
    Component,
    ComponentQuery,
    Forbidden,
    Game,
    Method,
    PlayOneDeck,
    RegisterDeck,
    RemoveDeck,
    RemoveReason,
    SetGame,
    ShoeState,
    ShufflerState,
    StatusFlag,
)
from sabot_table.hand_ranking import HAND_CARDS
from sabot_table.procedure import TableRole
from sabot_table.procedure.vocabulary import RemovalReason
from sabot_table.rule_texts import DealingMethod, GameKind

TRIES = 20  # of things that are worth trying again
NO_LIMIT = 0xFFFF  # hours of a deck, as the device understands them
GAME_NAME = 24  # characters the device keeps of a game's name
ON_THE_TABLE = ("stacked", "discards")  # where no machine has a pack
WARN_BEFORE_S = (3600, 900, 300)


class DeckHandling(DeviceControl):
    """All that is done with cards between rounds."""

    _warned: dict[int, int]

    @property
    def backs(self) -> tuple[Back, ...]:
        """The backs that are in use at this table."""
        return (Back.RED, Back.BLUE) if self.desk.rules.cards.alternating else (Back.RED,)

    # -- opening --------------------------------------------------------------------------------

    def open_table(self) -> None:
        """The table is open, the device known and set to the game, and no card is there that nobody knows."""
        desk, table = self.desk, self.desk.table
        self._warned = {}
        self._identify()
        self.read_past()
        if table.state == "closed":
            desk.do(desk.procedure.open_table, TableRole.FLOOR)
        if table.state == "idle":
            desk.do(desk.procedure.player_arrives, TableRole.DEALER)
        if table.method is not DealingMethod.AUTOMATED_SHOE and table.state == "between":
            desk.do(desk.procedure.equipment.change_method, TableRole.FLOOR, DealingMethod.AUTOMATED_SHOE)
        self._know_packs()
        self._set_game()
        desk.keep()

    def _identify(self) -> None:
        """Model and versions of the device; `Refused` with the clause if they will not do (WA3 versions)."""
        versions = {}
        for each in Component:
            try:
                versions[each.name.lower()] = self.client.ask(ComponentQuery(each), self.timeout).version
            except NotSupported:
                continue  # a device that does not say is judged by what it says
        self.desk.do(
            self.desk.procedure.equipment.identify, TableRole.FLOOR, self.client.identity.model, versions
        )

    def _know_packs(self) -> None:
        """Cards that the procedure or the device does not know leave; nobody vouches for them."""
        desk = self.desk
        for pack in desk.table.packs():
            if pack.pack_id not in self.decks and pack.pack_id != desk.playing:
                desk.do(
                    desk.procedure.packs.remove_pack,
                    TableRole.FLOOR,
                    pack.pack_id,
                    RemovalReason.FLOOR_ORDER,
                    "the device does not know it",
                )
        desk.open_orders = [each for each in desk.open_orders if each.do != "remove-pack"]
        strange = [deck_id for deck_id in self.decks if not desk.has(deck_id)]
        if strange:
            self._all_out()
        for deck_id in strange:
            self.remove(deck_id, RemoveReason.FLOOR_ORDER)

    def _all_out(self) -> None:
        """Nothing is left in the machine."""
        for _ in range(TRIES):
            status = self.client.status(self.timeout)
            if status.flags & StatusFlag.ROUND_OPEN:
                self.void_on_device("it is no round of this table")
            self.wait(
                lambda: bool(self.faults) or self.shoe not in (ShoeState.STARTING, ShoeState.LOADING),
                "the machine to come to rest",
            )
            if self.faults:
                self.clear()
            elif self.shoe is ShoeState.BLOCKED:
                self.clear_blocked_path()
            elif self.shoe is ShoeState.EMPTY and self.shuffler is ShufflerState.IDLE:
                return
            else:
                self.empty()
        raise TableStopped("the machine cannot be emptied")

    def _set_game(self) -> None:
        """The device is told what is played, if it is not set so already."""
        rules = self.desk.rules
        mini = rules.game is GameKind.MINI
        method = Method.CARD_BY_CARD if mini else Method.AUTOMATED_SHOE
        # MD3 3.C, MDM 3.C: how long cards may be used is the rule text's; some texts set no limit.
        hours = rules.hours(DealingMethod.AUTOMATED_SHOE) or NO_LIMIT
        wanted = (method, rules.cards.decks, 1 if mini else HAND_CARDS, hours)
        game = self.ask(Game())
        if (game.method, game.decks, game.stack_cards, game.deck_hours) != wanted:
            self._all_out()
            for deck_id in list(self.decks):
                self.remove(deck_id, RemoveReason.FLOOR_ORDER)
            self.ask_floor(SetGame(rules.name[:GAME_NAME], *wanted))
        one_deck = not rules.cards.alternating
        if bool(game.one_deck) != one_deck:
            self.ask_floor(PlayOneDeck(int(one_deck)))

    # -- coming and going -----------------------------------------------------------------------

    def bring_missing(self) -> None:
        """New packs for those that are not there."""
        for back in self.backs:
            if all(deck.back is not back for deck in self.decks.values()):
                self._bring(back)

    def _bring(self, back: Back) -> None:
        self.set_clock()  # its hours begin now: the device refuses a deck that is opened in its future
        for _ in range(TRIES):
            self.highest_deck += 1
            deck_id = self.highest_deck
            try:
                self.ask_floor(RegisterDeck(deck_id, back, self.desk.now_s()))
                break
            except NotAllowed as error:
                if error.reason is not Forbidden.DECK_USED_BEFORE:
                    raise
        self.decks[deck_id] = DeckStatus(deck_id, back)
        desk = self.desk
        desk.do(desk.procedure.packs.receive_pack, TableRole.FLOOR, deck_id, NAMES[back].lower())
        packs = desk.procedure.packs
        for action, who in (
            (packs.inspect, TableRole.DEALER), (packs.verify, TableRole.FLOOR),
            (packs.spread, TableRole.DEALER), (packs.wash, TableRole.DEALER), (packs.stack, TableRole.DEALER),
        ):  # fmt: skip
            desk.do(action, who, deck_id)
        words = f"{NAMES[back]} is registered as deck {deck_id}"
        self.output.tell("deck", words, deck=NAMES[back], deck_id=deck_id)

    def remove(self, deck_id: int, reason: RemoveReason) -> None:
        """A pack leaves the table for good, in the procedure and on the device."""
        desk = self.desk
        if desk.has(deck_id):
            desk.do(
                desk.procedure.packs.remove_pack, TableRole.FLOOR, deck_id, RemovalReason(reason.name.lower())
            )
        if deck_id in self.decks:
            self.ask_floor(RemoveDeck(deck_id, reason))
            self.wait(lambda: deck_id not in self.decks, "the deck to be removed")

    def take_away(self) -> None:
        """Packs that the procedure ordered to be removed leave the device's books too."""
        while (order := self.desk.take_order("remove-pack")) is not None:
            deck_id = int(str(order.details["pack"]))
            if deck_id in self.decks:
                reason = RemoveReason[str(order.details["reason"]).upper()]
                self.ask_floor(RemoveDeck(deck_id, reason))
                self.wait(lambda gone=deck_id: gone not in self.decks, "the deck to be removed")  # type: ignore[misc]

    # -- hours ----------------------------------------------------------------------------------

    def watch_hours(self) -> None:
        """Warn before a pack's hours end; one past them leaves (MD3 3.C, MDM 3.C)."""
        table, now_s = self.desk.table, self.desk.now_s()
        for pack in table.packs():
            left_s = self.desk.procedure.packs.hours_left_s(pack, now_s)
            if left_s is None or pack.pack_id == self.desk.playing:
                continue
            due = [each for each in WARN_BEFORE_S if left_s <= each]
            if left_s <= 0:
                self.change(pack.pack_id)
            elif due and min(due) < self._warned.get(pack.pack_id, WARN_BEFORE_S[0] + 1):
                self._warned[pack.pack_id] = min(due)
                self.tell_hours(pack.pack_id, left_s)

    def change(self, deck_id: int) -> None:
        """A pack past its hours comes out and is replaced."""
        self.tell_hours(deck_id, 0)
        if deck_id in (self.in_shoe, self.in_shuffler):
            self._all_out()
        self.remove(deck_id, RemoveReason.HOURS)

    # -- shuffling ------------------------------------------------------------------------------

    def feed(self) -> None:
        """Have a pack shuffled that is not in the machine, if the shuffler half is free."""
        if self.shuffler is not ShufflerState.IDLE or self.faults:
            return
        self.check_clock()
        deck = self.next_to_feed()
        if deck is None:
            return
        try:
            self._shuffle(deck)
        except (WrongState, DeviceFaulted):
            return  # not yet: the next event tells when, or which fault it is
        except NotAllowed as error:
            if error.reason is not Forbidden.PAST_ITS_HOURS:
                return
            self.change(deck.deck_id)  # by the device's own clock and limit
            self.bring_missing()
            return
        self.shuffler = ShufflerState.FEEDING
        self.in_shuffler = deck.deck_id
        deck.count = None

    def next_to_feed(self) -> DeckStatus | None:
        """The pack that waits for its shuffle, the one with the next turn first."""
        last = self.desk.table.memory.last_pack
        waiting = [each for each in self.decks.values() if self._waits(each.deck_id)]
        waiting.sort(key=lambda deck: deck.deck_id == last)
        if not waiting or (self.shoe is ShoeState.LOADING and len(waiting) > 1):
            return None
        return waiting[0]

    def _waits(self, deck_id: int) -> bool:
        if deck_id in (self.in_shoe, self.in_shuffler, self.desk.playing) or not self.desk.has(deck_id):
            return False
        return self.taken_out or self.desk.pack(deck_id).state in (*ON_THE_TABLE, "shuffling")

    def _shuffle(self, deck: DeckStatus) -> None:
        """The procedure first: it refuses what the rules forbid."""
        desk = self.desk
        before = desk.pack(deck.deck_id).state
        if before in ON_THE_TABLE:
            desk.do(desk.procedure.packs.start_shuffle, TableRole.DEALER, deck.deck_id, machine=True)
        desk.keep()
        self.proofs.begin(deck.deck_id)
        if before not in (*ON_THE_TABLE, "shuffling"):  # it came out unplayed; a stopped one is begun again
            desk.do(desk.procedure.packs.start_shuffle, TableRole.FLOOR, deck.deck_id, machine=True)

    # -- rest -----------------------------------------------------------------------------------

    def recover(self) -> bool:
        """One thing that stands against the next round is put right; whether there was one."""
        if self.faults:
            self.clear()
            return True
        if self.shoe is ShoeState.BLOCKED:
            self.clear_blocked_path()
            return True
        if self.shoe is ShoeState.OUT_OF_ORDER:
            raise TableStopped(
                "the machine is out of order (MD3 13.E)",
                "Cover it or leave its sign; play by hand from a manual shoe, or call service.",
            )
        return False

    def loaded(self, deck_id: int) -> None:
        """The device has this pack in its shoe, proved."""
        if self.desk.pack(deck_id).state == "shuffled":
            self.desk.device(self.desk.procedure.packs.load, deck_id)
