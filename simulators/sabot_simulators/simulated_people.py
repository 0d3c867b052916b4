"""Simulated people at an emulated table: they feed the tray, take stacks, load a shoe and clear jams."""

import json
from itertools import islice

from sabot_firmware import hardware, shoe, shuffler
from sabot_simulators.mechanism.physical_cards import PhysicalCard, new_deck
from sabot_simulators.shoe_loader import ShoeLoader

A_MOMENT_US = 1000
DECK_CARDS = 52
ROUNDS_KNOWN = 4  # whose cards people still know after a restart
FEEDS = ("shuffle", "shuffle_with")  # the deck is laid in before
WATCHED_COMMANDS = (
    *FEEDS, "set_game", "register_deck", "load_shoe", "open_round", "simulate_round", "empty_machine",
)  # fmt: skip
"""The commands that need something from the people at the table."""
REMEMBERED = ("register_deck", "set_game", "open_round", "simulate_round", "load_shoe")
"""The commands after which the people know something new."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Value, Values
    from sabot_simulators.emulated_device import EmulatedDevice


def _nothing() -> None:
    """Nobody wants to know."""


class PeoplesMemory:
    """What people know of their table over a restart of the device's program."""

    def __init__(self, backs: dict[int, int], cards: int, hands: dict[int, list[list[str]]]) -> None:
        self.backs, self.cards, self.hands = backs, cards, hands

    def to_json(self, most: int) -> bytes:
        """At most so many bytes; the cards of the oldest rounds are left out if they do not fit."""
        hands = dict(self.hands)
        while True:
            text = json.dumps({"decks": self.backs, "cards": self.cards, "hands": hands}).encode("ascii")
            if len(text) <= most:
                return text
            del hands[min(hands)]

    @staticmethod
    def from_json(text: bytes) -> "PeoplesMemory":
        """What ``to_json`` made."""
        known = json.loads(text)
        backs = {int(deck_id): back for deck_id, back in known["decks"].items()}
        return PeoplesMemory(backs, known["cards"], {int(key): each for key, each in known["hands"].items()})


class SimulatedPeople:
    """The dealer, and the floor at a jam. They act on the machine only, never over the wire."""

    def __init__(self, device: "EmulatedDevice") -> None:
        self._device = device
        self._new: dict[int, list[PhysicalCard]] = {}  # by deck id: decks not yet fed
        self._backs: dict[int, int] = {}  # by deck id
        self._loaded: list[PhysicalCard] = []  # just put into the tray
        self._committed: dict[int, int] = {}  # by shuffle id: the deck it is committed for
        self._laid_in = False
        self._looked_in = False  # into the shoe's path, since it was last free
        self._round = 0  # the one cards are dealt for; 0 while a new shoe is burnt
        self._cards = DECK_CARDS  # what a deck or batch of the game has
        self.hands: dict[int, list[list[str]]] = {}
        """What lay in each stack or draw, by round: the dealer sees it when the cards are turned over.

        Burnt cards are those of round 0."""
        self.shoe = ShoeLoader()
        self.on_change: Callable[[], None] = _nothing
        """Called when the people know something new."""
        self._away = False

    def leave(self, away: bool) -> None:
        """Do nothing at the machine from now on; or come back, and take what waits in the exit tray."""
        self._away = away
        waiting = self._device.view().shoe_state
        if not away and waiting in (shoe.STACK_WAITING, shoe.STUB_WAITING):
            self._soon(self._take, waiting)

    def cut_shoe(self, from_top: int | None, cover_above: int | None) -> None:
        """Cut the next batch after so many cards from the top (None: in the middle).

        The cover card goes in above so many cards from the bottom (None: there is no cover card).
        """
        self.shoe.cut_from_top, self.shoe.cover_above = from_top, cover_above

    def memory(self) -> PeoplesMemory:
        """What the people know now."""
        newest = dict(islice(reversed(self.hands.items()), ROUNDS_KNOWN))
        return PeoplesMemory(self._backs, self._cards, newest)

    def remember(self, known: PeoplesMemory) -> None:
        """Begin with these decks in the hands, in a new deck's order; the machine holds none of them."""
        self._backs, self._cards = dict(known.backs), known.cards
        self.hands.update(known.hands)
        random = self._device.machine.random
        self._new = {deck_id: new_deck(back, random, known.cards) for deck_id, back in known.backs.items()}

    def before_command(self, name: str, values: "Values") -> bool:
        """Prepare what a command needs, such as cards in the tray; whether anything was done."""
        machine = self._device.machine
        if self._away:
            return False
        if name == "load_shoe":
            return self._lay_in(values[0])
        if name not in FEEDS or machine.tray:
            return False
        deck_id = values[0] if name == "shuffle" else self._committed.get(values[0], 0)
        cards = self._new.pop(deck_id, None) or self._in_hand(deck_id)
        if not cards:
            return False
        for card in cards:
            card.face_up = False
        self._loaded = cards
        machine.load(cards)
        return True

    def _in_hand(self, deck_id: int) -> list[PhysicalCard]:
        back = self._backs.get(deck_id)
        return [card for card in self._device.machine.handed_out if card.back == back]

    def _lay_in(self, deck_id: int) -> bool:
        machine, batch = self._device.machine, self._in_hand(deck_id)
        if not batch or machine.shoe:
            return False
        self.shoe.open_shoe(machine)
        self._device.settle()
        self.shoe.lay_in(batch, machine)
        self._laid_in = True
        return True

    def command_refused(self) -> None:
        """The last command was refused: undo what was prepared."""
        if self._laid_in:
            self._laid_in = False
            self._device.settle()
            self.shoe.open_shoe(self._device.machine)
            self._device.settle()
            self._empty(hardware.SHOE_DOOR)
        if self._loaded:
            self._loaded = []
            self._device.machine.take_tray()

    def command_accepted(self, name: str, values: "Values") -> None:
        """The last command was accepted: follow it up."""
        self._loaded, self._laid_in = [], False
        machine = self._device.machine
        if name == "register_deck":
            deck_id, back, _ = values
            gone = [card for card in machine.handed_out if card.back == back]  # of the deck it replaces
            machine.removed += gone
            machine.handed_out = [card for card in machine.handed_out if card.back != back]
            self._backs[deck_id] = back
            self._new[deck_id] = new_deck(back, machine.random, self._cards)
        elif name == "set_game":
            self._cards = values[2] * DECK_CARDS
        elif name in ("open_round", "simulate_round"):
            self._round = values[0]
            self.hands[self._round] = []
        elif name == "load_shoe":
            self._round = 0
            self.hands[0] = []
        elif name == "empty_machine" and machine.exit_tray:  # left there when the power went
            self._soon(self._take_left, 0)
        if name in REMEMBERED:
            self.on_change()

    def event_reported(self, name: str, values: "tuple[Value, ...]") -> None:
        """React to an event, after the reaction time of the settings."""
        if self._away and name != "shuffle_committed":
            return
        if name == "shoe_changed" and values[0] in (shoe.STACK_WAITING, shoe.STUB_WAITING):
            self._soon(self._take, int(values[0]))
        elif name == "shuffle_committed":
            self._committed = {int(values[1]): int(values[0])}  # the one before is dropped
        elif name == "fault_raised":
            self._soon(self._look, int(values[0]))
        elif name == "shoe_changed" and values[0] == shoe.BLOCKED:
            if not self._looked_in:  # once: what was not seen then is not there
                self._looked_in = True
                self._soon(self._look_in, 0)
        elif name == "shoe_changed" and values[0] == shoe.EMPTY:
            self._looked_in = False
        elif name == "shoe_changed" and values[0] == shoe.DOOR_OPEN:
            self._soon(self._device.machine.close_door, hardware.SHOE_DOOR)
        elif name == "shuffler_changed" and values[0] == shuffler.DOOR_OPEN:
            self._soon(self._device.machine.close_door, hardware.SHUFFLER_DOOR)

    def _soon(self, action: "Callable[[int], None]", argument: int) -> None:
        self._device.machine.agenda.after(self._device.settings.dealer_ms * 1000, action, argument)

    def _take(self, waiting: int) -> None:
        machine = self._device.machine
        if self._away or self._device.view().shoe_state != waiting:
            return
        taken = machine.take_exit()
        if waiting == shoe.STACK_WAITING and taken:
            seen = [card.name for card in taken if card.number >= 0]
            self.hands.setdefault(self._round, []).append(seen)
            self.on_change()
        if not taken:
            self._soon(self._take, waiting)

    def _take_left(self, _: int) -> None:
        self._device.machine.take_exit()

    def _look(self, fault: int) -> None:
        """A half has stopped: repair it, open its door, take every card out, close the door."""
        view = self._device.view()
        agenda, machine = self._device.machine.agenda, self._device.machine
        for door, found in (
            (hardware.SHOE_DOOR, view.shoe_fault),
            (hardware.SHUFFLER_DOOR, view.shuffler_fault),
        ):
            if found == fault:
                machine.repair()
                machine.open_door(door)
                agenda.after(A_MOMENT_US, self._empty, door)

    def _look_in(self, _: int) -> None:
        """The deck came out short: open the shoe's door, take out the card if it is there, close it again."""
        machine = self._device.machine
        machine.open_door(hardware.SHOE_DOOR)
        machine.agenda.after(A_MOMENT_US, self._empty, hardware.SHOE_DOOR)

    def _empty(self, door: int) -> None:
        machine = self._device.machine
        if machine.level(door):
            return  # it was closed meanwhile
        machine.empty_by_hand(door)
        if door == hardware.SHUFFLER_DOOR:
            machine.take_tray()
        machine.agenda.after(A_MOMENT_US, machine.close_door, door)
