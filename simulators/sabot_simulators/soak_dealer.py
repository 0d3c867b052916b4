"""A dealer who comes late, opens a door, has the machine emptied; the power may fail at a stub's end."""

from random import Random

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.decks import DEFAULT_HOURS
from sabot_protocol.codec import enum_number
from sabot_simulators.dealer import Dealer
from sabot_simulators.emulated_device import LONGEST_WAIT_US, SteppedDevice
from sabot_simulators.mechanism.faults import PlannedFault

CUT_AT_THE_END = 0.05  # that the power goes while the last cards of a stub come out
TAKEN_WHILE_OFF = 0.5  # that somebody takes what lies in the exit tray while the power is off
TOGETHER = 0.5  # that a deck is shuffled while the next round is dealt
OPENED = 0.05  # that somebody opens a door between two rounds; half of them take a card
EMPTIED = 0.3  # that the floor has everything brought out after a fault
HOURS = enum_number("RemoveReason", "hours")


class SoakDealer(Dealer):
    """A dealer who sometimes comes late, opens a door, or has the machine emptied."""

    def __init__(self, device: SteppedDevice, random: Random) -> None:
        super().__init__(device)
        self._random = random
        self._opened_us: dict[int, int] = {}

    def new_deck(self, back: int) -> int:
        """The floor opens a new deck and registers it; its number."""
        deck_id = super().new_deck(back)
        self._opened_us[deck_id] = self.device.machine.agenda.now_us
        return deck_id

    def take_stack(self) -> None:
        """Take the stack that waits; behind the last one the power may be about to fail."""
        super().take_stack()
        if len(self.hands_dealt) == self.hands and self._random.random() < CUT_AT_THE_END:
            machine = self.device.machine
            drawn = machine.faults.cards["tray"] + machine.faults.cards["shoe"]
            last = drawn + len(machine.shoe) - self._random.choice((0, 0, 0, 1, 2))
            machine.plan(PlannedFault("power_cut", "controller", card=max(last, 1)))

    def play_round(self) -> bool:
        """One round, or two of which the second is dealt while the first one's deck is shuffled."""
        return self._two_rounds() if self._random.random() < TOGETHER else super().play_round()

    def _two_rounds(self) -> bool:
        first = self.device.view().shoe_deck
        if not self._dealt_out(first):
            return False
        self.device.run_until_idle()  # the pusher brings the other deck
        if self.shoe_state != shoe.READY or self.shuffler_state != shuffler.IDLE:
            return False
        second = self.device.view().shoe_deck
        self.feed(first)
        if not self._dealt_out(second) or not self.shuffled():
            return False
        self.device.run_until_idle()  # the pusher brings the other deck
        if self.shoe_state != shoe.READY or self.shuffler_state != shuffler.IDLE:
            return False
        self.feed(second)
        return self.shuffled() and self.shoe_state == shoe.READY

    def _dealt_out(self, deck_id: int) -> bool:
        """One round up to its cards in the dealer's hands; whether its deck may be fed again."""
        if not self.deal_round():
            return False
        self._take()
        self.collect()
        return self.shoe_state != shoe.STUB_WAITING and self.device.view().has_deck(deck_id)

    def open_a_door(self) -> None:
        """Somebody opens a door, may take a card, and closes it."""
        machine = self.device.machine
        door, cards = self._random.choice(
            ((hardware.SHUFFLER_DOOR, machine.store), (hardware.SHOE_DOOR, machine.shoe))
        )
        machine.open_door(door)
        self.device.run_until(lambda: True)
        if cards and self._random.random() < TAKEN_WHILE_OFF:
            machine.handed_out.append(cards.pop(self._random.randrange(len(cards))))
            machine.presence()
        machine.close_door(door)
        self.device.run_until(lambda: True)

    def stand(self, seconds: int) -> None:
        """Nobody does anything for so long."""
        most_s = LONGEST_WAIT_US // 2_000_000
        while seconds > 0:
            self.device.run_for(min(seconds, most_s) * 1_000_000)
            seconds -= most_s

    def _mend(self) -> bool:
        """One round of clearing. The table PC tells the device the time; decks that are too old leave."""
        self.device.clock_known, self.device.clock_wrong_by_s = True, 0
        mended = super()._mend()
        if mended:
            old = self._past_their_hours()
            if old or self._random.random() < EMPTIED:
                self._bring_everything_out()
            for deck_id in old:
                self.device.command("remove_deck", deck_id, HOURS, role="floor")
        return mended

    def _past_their_hours(self) -> list[int]:
        now_us = self.device.machine.agenda.now_us
        left_us = {
            deck.deck_id: self._opened_us.get(deck.deck_id, 0) + DEFAULT_HOURS * 3_600_000_000 - now_us
            for deck in self.device.view().decks
        }
        return [deck_id for deck_id, left in left_us.items() if left <= 0]

    def _bring_everything_out(self) -> None:
        self.device.run_until_idle()
        at_rest = self.shuffler_state in (shuffler.STORED, shuffler.IDLE)
        if at_rest and self.shoe_state in (shoe.READY, shoe.EMPTY):
            self.device.machine.take_tray()
            self.device.command("empty_machine", role="floor")
            self._wait_emptied()
        self.collect()
