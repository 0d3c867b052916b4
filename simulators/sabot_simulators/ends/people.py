"""Those at an emulated table, as far as a machine needs hands: the dealer, and the floor at a jam."""

from sabot_firmware import hardware, shoe, shuffler
from sabot_simulators.mechanism.cards import Card, new_deck

A_MOMENT_US = 1000
FEEDS = ("shuffle", "commit_shuffle")  # the deck is laid in before
CONCERNED = (*FEEDS, "register_deck", "open_round")
"""The commands that somebody at the table has to do with."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Value, Values
    from sabot_simulators.ends.emulated import EmulatedDevice


class People:
    """Those at the table, as far as a machine needs hands: the dealer, and the floor at a jam."""

    def __init__(self, device: "EmulatedDevice") -> None:
        self._device = device
        self._new: dict[int, list[Card]] = {}  # by deck id: decks not yet fed
        self._backs: dict[int, int] = {}  # by deck id
        self._loaded: list[Card] = []  # just put into the tray
        self._round = 0
        self.hands: dict[int, list[list[str]]] = {}
        """What lay in each stack, by round: the dealer sees it when the cards are turned over."""

    def before(self, name: str, values: "Values") -> bool:
        """The host is about to ask for something; whether anybody did anything for it."""
        machine = self._device.machine
        if name not in FEEDS or machine.tray:
            return False
        deck_id = values[0]
        back = self._backs.get(deck_id)
        in_hand = [card for card in machine.handed_out if card.back == back]
        cards = self._new.pop(deck_id, None) or in_hand
        if not cards:
            return False
        for card in cards:
            card.face_up = False
        self._loaded = cards
        machine.load(cards)
        return True

    def refused(self) -> None:
        """It was refused: what was prepared is taken back."""
        if self._loaded:
            self._loaded = []
            self._device.machine.take_tray()

    def after(self, name: str, values: "Values") -> None:
        """It was accepted."""
        self._loaded = []
        machine = self._device.machine
        if name == "register_deck":
            deck_id, back, _ = values
            gone = [card for card in machine.handed_out if card.back == back]  # of the deck it replaces
            machine.removed += gone
            machine.handed_out = [card for card in machine.handed_out if card.back != back]
            self._backs[deck_id] = back
            self._new[deck_id] = new_deck(back, machine.random)
        elif name == "open_round":
            self._round = values[0]
            self.hands[self._round] = []

    def heard(self, name: str, values: "tuple[Value, ...]") -> None:
        """The machine reports something; whoever it concerns does it in a moment."""
        if name == "shoe_changed" and values[0] in (shoe.STACK_WAITING, shoe.STUB_WAITING):
            self._soon(self._take, int(values[0]))
        elif name == "fault_raised":
            self._soon(self._look, int(values[0]))
        elif name == "shoe_changed" and values[0] == shoe.DOOR_OPEN:
            self._soon(self._device.machine.close_door, hardware.SHOE_DOOR)
        elif name == "shuffler_changed" and values[0] == shuffler.DOOR_OPEN:
            self._soon(self._device.machine.close_door, hardware.SHUFFLER_DOOR)

    def _soon(self, action: "Callable[[int], None]", argument: int) -> None:
        self._device.machine.agenda.after(self._device.settings.dealer_ms * 1000, action, argument)

    def _take(self, waiting: int) -> None:
        machine = self._device.machine
        if self._device.view().shoe_state != waiting:
            return
        taken = machine.take_exit()
        if waiting == shoe.STACK_WAITING and taken:
            self.hands.setdefault(self._round, []).append([card.name for card in taken])
        if not taken:
            self._soon(self._take, waiting)

    def _look(self, fault: int) -> None:
        """Something has stopped: mend it, open the door, take every card out, close it again."""
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

    def _empty(self, door: int) -> None:
        machine = self._device.machine
        if machine.level(door):
            return  # somebody closed it meanwhile
        machine.empty_by_hand(door)
        if door == hardware.SHUFFLER_DOOR:
            machine.take_tray()
        machine.agenda.after(A_MOMENT_US, machine.close_door, door)
