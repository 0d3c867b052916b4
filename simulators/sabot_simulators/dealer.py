"""A simulated dealer for tests: feeds the tray, plays rounds, takes each stack, clears faults.

Commands that only floor or service may give are given in their role.
"""

from collections.abc import Callable

from sabot_firmware import hardware, shoe, shuffler
from sabot_firmware.jam import SERVICE_FAULTS
from sabot_protocol.codec import enum_name, enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators.emulated_device import OPENING_UTC_S, SteppedDevice, WaitTimeout
from sabot_simulators.mechanism.moving_parts import SHOE, SHUFFLER
from sabot_simulators.mechanism.physical_cards import PhysicalCard, new_deck

BACKS = (hardware.RED, hardware.BLUE)
SHUFFLED = (shuffler.IDLE, shuffler.STORED, shuffler.HOLDING, shuffler.JAMMED, shuffler.DOOR_OPEN)
SHOE_STOPPED = (shoe.JAMMED, shoe.UNPROVED, shoe.DOOR_OPEN, shoe.EMPTY)
STACK_COMES = (shoe.STACK_WAITING, *SHOE_STOPPED)
STUB_COMES = (shoe.STUB_WAITING, *SHOE_STOPPED)
MAX_RECOVERIES = 8
COOLING_US = 61_000_000
DAMAGED = enum_number("RemoveReason", "damaged")
TOO_HOT = enum_number("Forbidden", "too_hot")
TRAY_EMPTY = enum_number("Forbidden", "tray_empty")


class RecoveryFailed(Exception):
    """The machine is still not usable after the dealer has tried everything."""


class Dealer:
    """Two decks, and rounds of so many hands, on one machine."""

    def __init__(self, device: SteppedDevice, hands: int = 7, deck_size: int = 52) -> None:
        self.device = device
        self.hands = hands
        self._deck_size = deck_size
        self.decks: dict[int, list[PhysicalCard]] = {}  # what is to be fed of each deck
        self.backs: dict[int, int] = {}
        self.round_id = 0
        self._last_deck_id = 0
        self.hands_dealt: list[list[PhysicalCard]] = []

    # -- decks ----------------------------------------------------------------------------------

    def new_deck(self, back: int) -> int:
        """The floor opens a new deck and registers it; its number."""
        self._last_deck_id += 1
        deck_id = self._last_deck_id
        now_s = self.device._utc_s() or OPENING_UTC_S
        self.device.command("register_deck", deck_id, back, now_s, role="floor")
        self.decks[deck_id] = new_deck(back, self.device.machine.random, self._deck_size)
        self.backs[deck_id] = back
        return deck_id

    def open_table(self) -> bool:
        """Register both decks, shuffle one into the shoe and one onto the shelf; whether it went well."""
        self.device.run_until_idle()
        for back in BACKS:
            self.feed(self.new_deck(back))
            if not self.shuffled():
                return False
        self.wait(lambda: self.shoe_state not in (shoe.LOADING, shoe.EMPTY))
        return self.shoe_state == shoe.READY

    def feed(self, deck_id: int) -> None:
        """Put a deck into the tray and have it shuffled."""
        cards, self.decks[deck_id] = self.decks[deck_id], []
        self.device.machine.load(cards)
        self.device.run_until(lambda: True)
        self.device.command("shuffle", deck_id)

    def shuffled(self) -> bool:
        """Wait for the shuffle that was begun; whether it was finished."""
        device = self.device
        self.wait(lambda: device.shuffler_state in SHUFFLED)
        return self.shuffler_state in (shuffler.IDLE, shuffler.STORED, shuffler.HOLDING)

    # -- rounds ---------------------------------------------------------------------------------

    @property
    def shoe_state(self) -> int:
        """The state of the shoe half."""
        return self.device.shoe_state

    @property
    def shuffler_state(self) -> int:
        """The state of the shuffler half."""
        return self.device.shuffler_state

    def deal_round(self) -> bool:
        """One round from the deck in the shoe, up to the stub in the exit tray; whether it got that far."""
        device = self.device
        view = device.view()
        deck_id, self.round_id = view.shoe_deck, view.last_round + 1
        device.command("open_round", self.round_id, deck_id)
        device.command("close_bets", self.round_id, self.hands)
        self.hands_dealt = []
        for stack in range(1, self.hands + 1):
            device.command("dispense_stack", self.round_id, stack)
            self.wait(lambda: device.shoe_state in STACK_COMES)
            if self.shoe_state != shoe.STACK_WAITING:
                return False
            self.take_stack()
            if self.shoe_state != shoe.ROUND_OPEN:
                return False
        device.command("end_round", self.round_id)
        self.wait(lambda: device.shoe_state in STUB_COMES)
        return self.shoe_state == shoe.STUB_WAITING

    def take_stack(self) -> None:
        """Take the stack that waits."""
        self.hands_dealt.append(self._take())

    def _take(self) -> list[PhysicalCard]:
        """Take what lies in the exit tray, twice if it must be; give up after a while if it is not seen."""
        device, machine = self.device, self.device.machine
        waiting = self.shoe_state
        taken = machine.take_exit()
        for _ in range(3):
            device.run_until(lambda: True)
            if self.shoe_state != waiting:
                break
            device.run_for(2_000_000)
            if machine.exit_tray:
                taken = machine.take_exit()
        return taken

    def play_round(self) -> bool:
        """One round from the deck in the shoe, which is then fed again; whether nothing stopped."""
        deck_id = self.device.view().shoe_deck
        if not self.deal_round():
            return False
        self._take()
        self.collect()
        if self.shoe_state == shoe.STUB_WAITING:
            return False
        if not self.device.view().has_deck(deck_id):
            return False
        self.wait(lambda: self.shuffler_state in SHUFFLED)
        if self.shuffler_state == shuffler.JAMMED:
            return False
        self.feed(deck_id)
        going_on = self.shuffled()
        self.wait(lambda: self.shoe_state not in (shoe.LOADING, shoe.EMPTY) or not going_on)
        return going_on and self.shoe_state == shoe.READY

    def collect(self) -> None:
        """Sort everything that came out of the machine by its backs."""
        machine = self.device.machine
        collected, machine.handed_out = machine.handed_out, []
        for card in collected:
            card.face_up = False
            for deck_id, back in self.backs.items():
                if card.back == back and deck_id == max(d for d, b in self.backs.items() if b == back):
                    self.decks[deck_id].append(card)
                    break
            else:
                machine.removed.append(card)

    # -- faults ---------------------------------------------------------------------------------

    def recover(self) -> None:
        """Bring the machine back to a deck in the shoe and one on the shelf; RecoveryFailed if that fails."""
        for _ in range(MAX_RECOVERIES):
            self.device.run_until_idle()
            if not self._mend():
                continue
            self.device.run_until_idle()
            if self._refill():
                return
        raise RecoveryFailed("the machine does not come back")

    def _mend(self) -> bool:
        """One round of clearing; whether both halves are usable."""
        device, machine = self.device, self.device.machine
        if machine.exit_tray:
            machine.take_exit()
            device.run_until(lambda: True)
        for door in (hardware.SHOE_DOOR, hardware.SHUFFLER_DOOR):
            if door == hardware.SHOE_DOOR and self.shoe_state in (shoe.STUB_WAITING, shoe.STACK_WAITING):
                machine.open_door(door)  # the tray is empty and the machine does not see it
                device.run_until(lambda: True)
            if not machine.level(door):
                machine.close_door(door)
                device.run_until(lambda: True)
            view = device.view()
            fault = view.shoe_fault if door == hardware.SHOE_DOOR else view.shuffler_fault
            if not fault:
                continue
            service = enum_name("Fault", fault) in SERVICE_FAULTS
            machine.repair()
            machine.open_door(door)
            device.run_until(lambda: True)
            self._take_out(door)
            if door == hardware.SHUFFLER_DOOR:
                machine.take_tray()
            machine.close_door(door)
            device.run_until(lambda: True)
            try:
                device.command("clear_fault", fault, role="service" if service else "floor")
            except Refusal:
                device.run_for(COOLING_US)
                return False
            device.run_until_idle()
        if self.shoe_state == shoe.BLOCKED:
            self._unblock()
        if self.shoe_state == shoe.OUT_OF_ORDER:
            self._leave_machine()
            device.command("return_to_service", role="service")
            device.run_until_idle()
        if self.shoe_state == shoe.UNPROVED or self.shuffler_state == shuffler.UNPROVED:
            if self.shoe_state != shoe.BLOCKED:  # nothing is pushed onto a card that may lie there
                device.command("empty_machine", role="floor")
                self._wait_emptied()
            self._empty_by_hand()
        self.collect()
        view = device.view()
        return not view.shoe_fault and not view.shuffler_fault

    def _take_out(self, door: int) -> None:
        """Take every card out of a half, through its open door."""
        self.device.machine.empty_by_hand(door)

    def _empty_by_hand(self) -> None:
        """What the machine could not bring out of the shuffler half is taken out through its door."""
        device, machine = self.device, self.device.machine
        if self.shuffler_state == shuffler.UNPROVED:
            machine.open_door(hardware.SHUFFLER_DOOR)
            device.run_until(lambda: True)
            self._take_out(hardware.SHUFFLER_DOOR)
            machine.close_door(hardware.SHUFFLER_DOOR)
            device.run_until(lambda: True)

    def _unblock(self) -> None:
        """The floor looks for the card that did not come out, then lets the roller bring it."""
        device, machine = self.device, self.device.machine
        machine.open_door(hardware.SHOE_DOOR)
        device.run_until(lambda: True)
        self._take_out(hardware.SHOE_DOOR)
        machine.close_door(hardware.SHOE_DOOR)
        device.run_until(lambda: True)
        device.command("purge", role="floor")
        device.run_until_idle()
        if machine.exit_tray:
            machine.take_exit()
            device.run_until(lambda: True)
        self.collect()
        if self.shoe_state == shoe.BLOCKED and not self._may_be_whole():
            self._inspect()

    def _inspect(self) -> None:
        """The floor says that no card lies in the path, and overlooks what lies there."""
        self.device.machine.overlook(SHOE, "floor", "inspected the path")
        self.device.command("path_inspected", role="floor")

    def _leave_machine(self) -> None:
        """Service has finished, and overlooks what lies in either half."""
        for half in (SHUFFLER, SHOE):
            self.device.machine.overlook(half, "service", "left the machine")

    def _may_be_whole(self) -> bool:
        """Whether the deck that came out short can still be fed and counted: all its cards are at hand."""
        view = self.device.view()
        cards = self.decks.get(view.last_played, [])
        return view.has_deck(view.last_played) and len(cards) == self._deck_size

    def _wait_emptied(self) -> None:
        """Take whatever comes out until emptying has ended."""
        try:
            self.wait(self._emptied)
        except WaitTimeout:  # for ten minutes it waits for cards that were taken: service repairs the sensor
            self.device.machine.repair()
            self.device.run_until(lambda: True)

    def _emptied(self) -> bool:
        """Take what lies in the exit tray while nothing moves; whether emptying has ended."""
        if self.shoe_state in (shoe.STUB_WAITING, shoe.UNPROVED) and self.device.machine.exit_tray:
            self.device.machine.take_exit()
        return not self.device.view().emptying

    def _refill(self) -> bool:
        """Register what is missing and feed until a deck is in the shoe and the other on the shelf."""
        self._register_missing()
        for _ in range(3):
            if self.shuffler_state == shuffler.STORED and self.shoe_state == shoe.READY:
                return self._turn_is_right()
            view = self.device.view()
            inside = (view.shoe_deck, view.stored_deck, view.feeding_deck)
            waiting = [deck.deck_id for deck in view.decks if deck.deck_id not in inside]
            waiting.sort(key=lambda deck_id: deck_id == view.last_played)
            if not waiting:
                return False
            try:
                self.feed(waiting[0])
            except Refusal as refused:
                self._not_fed(waiting[0], refused)
                return False
            if not self.shuffled():
                return False
            self.wait(lambda: self.shoe_state not in (shoe.LOADING, shoe.EMPTY))
            if self.shoe_state != shoe.READY:
                return False
        return False

    def _register_missing(self) -> None:
        """Decks with a bent card leave; a new deck is opened for each back that no deck has."""
        for deck_id, cards in self.decks.items():
            if any(card.bent for card in cards) and self.device.view().has_deck(deck_id):
                self.device.command("remove_deck", deck_id, DAMAGED, role="floor")
        for back in BACKS:
            if not self.device.view().has_back(back):
                self.device.machine.take_tray()
                self.collect()  # what is left of a deck that is gone is not fed again
                self.new_deck(back)

    def _not_fed(self, deck_id: int, refused: Refusal) -> None:
        """A deck was not shuffled: take it back, and remove the cause or the deck."""
        if refused.values in ((TRAY_EMPTY,), (TOO_HOT,)):
            if refused.values == (TRAY_EMPTY,):  # it is not: service repairs its sensor
                self.device.machine.repair()
            else:
                self.device.run_for(COOLING_US)
            self.device.machine.take_tray()
            self.collect()
            return
        # Its hours are over, or it may not be shuffled for another reason: a new one.
        self.device.command("remove_deck", deck_id, DAMAGED, role="floor")

    def _turn_is_right(self) -> bool:
        """Whether the deck in the shoe has the turn; if not, the machine is emptied."""
        view = self.device.view()
        if view.last_played != view.shoe_deck:
            return True
        self.device.command("empty_machine", role="floor")
        self._wait_emptied()
        self.collect()
        return False

    def wait(self, until: Callable[[], bool]) -> None:
        """Let time pass."""
        self.device.run_until(until)
