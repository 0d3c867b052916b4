"""A dealer who does everything right: collects the cards, feeds the tray, takes each stack."""

from collections.abc import Callable

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.core import Core
from sabot_protocol.codec import enum_number
from sabot_simulators.in_process import OPENING_UTC_S, InProcess
from sabot_simulators.mechanism.cards import Card, new_deck

BACKS = {1: hardware.RED, 2: hardware.BLUE}


class Dealer:
    """Two decks, and rounds of so many hands, on one machine."""

    def __init__(self, device: InProcess, hands: int = 7) -> None:
        self.device = device
        self.core: Core = device.core
        self.hands = hands
        self.decks = {deck_id: new_deck(back, device.machine.random) for deck_id, back in BACKS.items()}
        self.round_id = 0
        self.hands_dealt: list[list[Card]] = []

    def open_table(self) -> bool:
        """Register both decks, shuffle one into the shoe and one onto the shelf; whether it went well."""
        for deck_id, back in BACKS.items():
            self.device.command("register_deck", deck_id, back, OPENING_UTC_S)
            self.feed(deck_id)
            self._wait(lambda: self.core.shuffler.state in (shuffler.IDLE, shuffler.STORED, shuffler.JAMMED))
            if self.core.shuffler.state == shuffler.JAMMED:
                return False
        self._wait(lambda: self.core.shoe.state in (shoe.READY, shoe.JAMMED))
        return self.core.shoe.state == shoe.READY

    def feed(self, deck_id: int) -> None:
        """Put a deck into the tray and have it shuffled."""
        self.device.machine.load(list(self.decks[deck_id]))
        self.device.command("shuffle", deck_id)

    def play_round(self) -> bool:
        """One round from the deck in the shoe, which is then fed again; whether it was not void."""
        machine, core = self.device.machine, self.core
        deck_id = core.dealing_deck
        self.round_id += 1
        self.device.command("open_round", self.round_id, deck_id, self.hands)
        self.hands_dealt = []
        for stack in range(1, self.hands + 1):
            self.device.command("dispense_stack", self.round_id, stack)
            self._wait(lambda: core.shoe.state in (shoe.STACK_WAITING, shoe.JAMMED))
            if core.shoe.state == shoe.JAMMED:
                return False
            self.hands_dealt.append(machine.take_exit())
            self._wait(lambda: core.shoe.state in (shoe.READY, shoe.JAMMED))
        self.device.command("end_round", self.round_id)
        self._wait(lambda: core.shoe.state in (shoe.EJECTED, shoe.JAMMED))
        if core.shoe.state == shoe.JAMMED:
            return False
        machine.take_exit()
        collected, machine.handed_out = machine.handed_out, []
        self.decks[deck_id] = collected
        self._wait(lambda: core.shoe.state in (shoe.LOADING, shoe.READY, shoe.JAMMED))
        self._wait(lambda: core.shoe.state in (shoe.READY, shoe.JAMMED))
        self.feed(deck_id)
        self._wait(lambda: core.shuffler.state in (shuffler.STORED, shuffler.JAMMED))
        return core.shoe.state == shoe.READY and core.shuffler.state == shuffler.STORED

    def recover(self) -> None:
        """Clear whatever half has stopped: open its door, take every card out, close it, say so."""
        machine, core = self.device.machine, self.core
        for half, door in ((core.shoe, hardware.SHOE_DOOR), (core.shuffler, hardware.SHUFFLER_DOOR)):
            if half.jam is None:
                continue
            fault = enum_number("Fault", half.jam.cause)
            deck_id = core.dealing_deck if half is core.shoe else core.feeding_deck
            machine.open_door(door)
            machine.empty_by_hand(door)
            machine.close_door(door)
            if half is core.shuffler:
                machine.handed_out += machine.tray
                machine.tray.clear()
                machine.load([])
            self.device.run_until(lambda: True)
            self.device.command("clear_fault", fault)
            back = BACKS[deck_id]
            self.decks[deck_id] = [card for card in machine.handed_out if card.back == back]
            machine.handed_out = [card for card in machine.handed_out if card.back != back]
            self._wait(lambda: core.shuffler.state in (shuffler.IDLE, shuffler.STORED))
            self._wait(lambda: core.shoe.state in (shoe.READY, shoe.EMPTY))
            self.feed(deck_id)
        self._wait(lambda: core.shuffler.state in (shuffler.IDLE, shuffler.STORED, shuffler.JAMMED))
        self._wait(lambda: core.shoe.state in (shoe.READY, shoe.JAMMED))

    def _wait(self, until: Callable[[], bool]) -> None:
        self.device.run_until(until)
