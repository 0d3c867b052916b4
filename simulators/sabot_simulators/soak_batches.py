"""A table whose machine delivers whole decks: for a manual shoe, or to be cut and laid in by hand."""

from contextlib import suppress
from random import Random

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.decks import CARD_BY_CARD, DEFAULT_HOURS, MANUAL_SHOE
from sabot_protocol.errors import Refusal
from sabot_simulators.dealer import BACKS, STACK_COMES, STUB_COMES
from sabot_simulators.emulated_device import SteppedDevice
from sabot_simulators.soak_staff import SoakStaff

LAID_IN = 0.8  # how likely a delivered deck is laid into the shoe, where the game deals card by card
DRAWS = (0, 1, 3)  # of two cards, from a shoe before it ends


class BatchDealer(SoakStaff):
    """Takes delivered decks, lays them into the shoe, draws some cards and has the rest brought out."""

    def __init__(self, device: SteppedDevice, random: Random) -> None:
        super().__init__(device, random)
        self._method = random.choice((MANUAL_SHOE, CARD_BY_CARD, CARD_BY_CARD))

    def open_table(self) -> bool:
        """Set the game and shuffle one of two decks onto the shelf; whether it went well."""
        self.device.run_until_idle()
        self._set_game()
        for back in BACKS:
            self.new_deck(back)
        self.feed(1)
        return self.shuffled() and self._waits()

    def _set_game(self) -> None:
        self.device.command("set_game", "delivered", self._method, 1, 3, DEFAULT_HOURS, role="floor")

    def _waits(self) -> bool:
        """Whether a deck lies on the shelf and the shoe is empty."""
        self.device.run_until_idle()
        return self.shuffler_state == shuffler.STORED and self.shoe_state == shoe.EMPTY

    def play_round(self) -> bool:
        """One deck is delivered and used, then the other is shuffled; whether nothing stopped."""
        self._expect_trouble(("stub", "stub", "pusher", "stack", "tray"))
        device, deck_id = self.device, self.device.view().stored_deck
        device.command("deliver_deck", deck_id)
        self.wait(lambda: device.shoe_state in (*STUB_COMES, shoe.BLOCKED))
        if self.shoe_state != shoe.STUB_WAITING:
            return False
        self._take()
        if self._method == CARD_BY_CARD and self._random.random() < LAID_IN and not self._use_shoe(deck_id):
            return False
        self.collect()
        others = [deck.deck_id for deck in device.view().decks if deck.deck_id != deck_id]
        if self.shoe_state not in (shoe.EMPTY, shoe.BLOCKED) or not others:
            return False
        self.feed(others[0])
        return self.shuffled() and self._waits()

    def _use_shoe(self, deck_id: int) -> bool:
        """Cut the deck, lay it in, draw from it and have the rest brought out; whether that went well."""
        device, machine = self.device, self.device.machine
        cards = [card for card in machine.handed_out if card.back == self.backs[deck_id]]
        at = self._random.randrange(max(len(cards), 1))
        machine.open_door(hardware.SHOE_DOOR)
        device.run_until(lambda: True)
        if self.shoe_state == shoe.DOOR_OPEN and not machine.shoe:
            machine.load_shoe(cards[at:] + cards[:at])
        machine.close_door(hardware.SHOE_DOOR)
        device.run_until(lambda: True)
        device.command("load_shoe", deck_id)
        self._draw(self._random.choice(DRAWS))
        if self.shoe_state != shoe.READY:
            return False
        device.command("end_shoe", deck_id)
        self.wait(lambda: device.shoe_state in STUB_COMES)
        if self.shoe_state != shoe.STUB_WAITING:
            return False
        self._take()
        return True

    def _draw(self, draws: int) -> None:
        """One round of so many draws, if there are any."""
        device, view = self.device, self.device.view()
        if not draws:
            return
        round_id = view.last_round + 1
        device.command("open_round", round_id, view.shoe_deck)
        device.command("close_bets", round_id, 2)
        for draw in range(1, draws + 1):
            device.command("draw_cards", round_id, draw, 2)
            self.wait(lambda: device.shoe_state in (shoe.STUB_WAITING, *STACK_COMES))
            if self.shoe_state != shoe.STACK_WAITING:
                return
            self._take()
            if self.shoe_state != shoe.ROUND_OPEN:
                return
        device.command("end_round", round_id)

    def _refill(self) -> bool:
        """Register what is missing and shuffle the deck whose turn it is onto the shelf."""
        device = self.device
        with suppress(Refusal):  # cards are inside
            self._set_game()  # it may be forgotten, like all the memory
        self._register_missing()
        view = device.view()
        if self.shuffler_state == shuffler.STORED:
            if self.shoe_state != shoe.EMPTY:
                return False
            if view.stored_deck != view.last_played:
                return True
            device.command("empty_machine", role="floor")
            self._wait_emptied()
            self.collect()
            return False
        waiting = [deck.deck_id for deck in view.decks if deck.deck_id != view.last_played]
        try:
            self.feed(waiting[0])
        except Refusal as refused:
            self._not_fed(waiting[0], refused)
            return False
        return self.shuffled() and self._waits()
