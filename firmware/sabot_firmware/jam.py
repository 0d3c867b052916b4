"""Jams: why a half stops, the time windows that detect it, and the steps that clear it.

A jam is detected from physics: an edge that did not come in its window, a sensor covered for longer than a
card is long, a switch that was not reached, a height that grew by no card or by two. Clearing takes at most
three steps.
"""

from sabot_firmware import machine_constants
from sabot_protocol.codec import enum_number

MARGIN_US = 3000
SWITCH_MARGIN_US = 10000
LENGTH_TOLERANCE_UM = 6000  # a longer or shorter shadow is not one card

# Why a card does not belong, by what the colour reader sees: nothing, red, blue, a face, a cover card
WRONG_BACKS = ("sensor_disagrees", "wrong_deck", "wrong_deck", "face_up_card", "foreign_card")

# What only service may clear: the machine itself is not sound
SERVICE_FAULTS = ("axis_lost", "switch_missed", "motor_stall", "memory_damaged", "rng_failed")

_BY_HAND = "1 open the %s door 2 take out every card 3 close it"
BY_SERVICE = "1 take out every card 2 mark out of order 3 call service"
_STEPS = {
    "count_wrong": "1 open the %s door 2 take out that deck: it leaves the table 3 close it",
    "wrong_deck": "1 open the %s door 2 take out every card, sort the decks by their backs 3 close it",
    "foreign_card": "1 open the %s door 2 take out every card and the foreign one 3 close it",
    "face_up_card": "1 open the %s door 2 take out every card, turn the one face up 3 close it",
    "over_temperature": "1 let it cool 2 open the %s door, take out every card 3 close it",
    "supply_low": "1 check the supply 2 open the %s door, take out every card 3 close it",
    "power_lost": "1 open the %s door 2 take out every card: nobody vouches for them 3 close it",
}


def steps_for(cause: str, half: str) -> str:
    """The steps that clear a fault of a half, at most three, as the display shows them."""
    if cause in SERVICE_FAULTS:
        return BY_SERVICE
    text = _STEPS.get(cause, _BY_HAND)
    return text % half


def roller_window_us(distance_um: int) -> int:
    """The longest time a card may take for a distance, at the slowest allowed speed."""
    return distance_um * 100 // (100 - machine_constants.ROLLER_TOLERANCE_PERCENT) + MARGIN_US


class Jam:
    """Why a half stopped: place, cause, and how many cards are concerned."""

    def __init__(self, place: str, cause: str, cards: int) -> None:
        self.place = place
        self.cause = cause
        self.cards = cards
        self._fault = -1

    def fault(self) -> int:
        """The number of the cause on the wire, looked up once: ``status`` asks for it again and again."""
        if self._fault < 0:
            self._fault = enum_number("Fault", self.cause)
        return self._fault
