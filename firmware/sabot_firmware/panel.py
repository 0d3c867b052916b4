"""Display and lamp, which only the device controls. The shoe half's message has priority.

The lamp has three states: green while play needs nobody, amber when the dealer must act, and red when the
floor is wanted. The floor is wanted after a jam of the shoe, after a jam of the shuffler while the shoe is
empty, when the machine is out of order, and when the dealer called. `locate` shows amber meanwhile.
"""

from sabot_firmware import shoe, shuffler
from sabot_firmware.hardware import AMBER, GREEN, RED_LIGHT, Hardware

WIDTH = 20

_SHOE = {
    shoe.STARTING: "STARTING",
    shoe.LOADING: "LOADING SHOE",
    shoe.READY: "READY",
    shoe.ROUND_OPEN: "ROUND",
    shoe.DISPENSING: "DEALING",
    shoe.STACK_WAITING: "TAKE THE STACK",
    shoe.EJECTING: "EJECTING",
    shoe.STUB_WAITING: "TAKE THE CARDS",
    shoe.UNPROVED: "EMPTY THE SHOE",
    shoe.BLOCKED: "CARD IN THE PATH?",
    shoe.DOOR_OPEN: "SHOE DOOR OPEN",
    shoe.SERVICE: "SERVICE",
    shoe.OUT_OF_ORDER: "OUT OF ORDER",
}
_SHUFFLER = {
    shuffler.STARTING: "STARTING",
    shuffler.IDLE: "FEED A DECK",
    shuffler.FEEDING: "SHUFFLING",
    shuffler.HOLDING: "SHUFFLED",
    shuffler.STORING: "STORING",
    shuffler.STORED: "NEXT DECK STORED",
    shuffler.UNPROVED: "EMPTY THE SHUFFLER",
    shuffler.DOOR_OPEN: "SHUFFLER DOOR OPEN",
    shuffler.SERVICE: "SERVICE",
    shuffler.OUT_OF_ORDER: "OUT OF ORDER",
}
_CALLING = (shoe.STACK_WAITING, shoe.STUB_WAITING, shoe.UNPROVED, shoe.DOOR_OPEN, shoe.BLOCKED)


class Panel:
    """Two lines and a lamp, written only when they change."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._lines = ("", "")
        self._lamp = -1
        self._counted = ""

    def counted(self, count: int, expected: int) -> None:
        """The count of the last shuffle (MD3 5.B), shown until the next."""
        self._counted = "%d OF %d" % (count, expected)

    def update(
        self, shuffler_half: "shuffler.Shuffler", shoe_half: "shoe.Shoe", locating: bool, called: bool
    ) -> None:
        """Show the states of both halves, jams first."""
        first = _SHOE.get(shoe_half.state, "")
        second = _SHUFFLER.get(shuffler_half.state, "")
        if shuffler_half.state in (shuffler.HOLDING, shuffler.STORED, shuffler.STORING):
            second = self._counted + " " + second
        lamp = GREEN
        if shoe_half.state in _CALLING or shuffler_half.state == shuffler.UNPROVED:
            lamp = AMBER
        if shoe_half.jam is not None:
            first, second = _jam(shoe_half.jam.place, shoe_half.jam.cause)
            lamp = RED_LIGHT
        elif shuffler_half.jam is not None:
            place, cause = _jam(shuffler_half.jam.place, shuffler_half.jam.cause)
            first, second, lamp = (first, place + " " + cause, AMBER) if first else (place, cause, RED_LIGHT)
        elif shoe_half.state == shoe.OUT_OF_ORDER:
            lamp = RED_LIGHT
        elif not first:
            first = self._counted
        if called:
            if lamp != RED_LIGHT and shuffler_half.jam is None:  # a jam's cause stays to be read
                second = "FLOOR CALLED"
            lamp = RED_LIGHT
        if locating:
            lamp = AMBER
            second = "I AM HERE"
        lines = (first[:WIDTH], second[:WIDTH])
        if lines != self._lines:
            self._lines = lines
            self._hardware.show(lines[0], lines[1])
        if lamp != self._lamp:
            self._lamp = lamp
            self._hardware.light(lamp)


def _jam(place: str, cause: str) -> "tuple[str, str]":
    return place.upper().replace("_", " "), cause.upper().replace("_", " ")
