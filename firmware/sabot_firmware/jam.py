"""Jams: what a half of the machine stops for, and the windows they are told by.

A jam is found from physics: an edge that did not come in its window, a shadow longer than a card, a switch
that was not reached, a height that grew by none or by two.
"""

from sabot_firmware import figures

MARGIN_US = 3000
SWITCH_MARGIN_US = 10000
LENGTH_TOLERANCE_UM = 6000  # a longer or shorter shadow is not one card


# Why a card does not belong, by what the colour reader sees: nothing, red, blue, a face, a cover card
WRONG_BACKS = ("sensor_disagrees", "wrong_deck", "wrong_deck", "face_up_card", "foreign_card")


def roller_window_us(distance_um: int) -> int:
    """The longest a card may take for a distance at the slowest allowed speed."""
    return distance_um * 100 // (100 - figures.ROLLER_TOLERANCE_PERCENT) + MARGIN_US


class Jam:
    """Why a half stopped: where, what the sensors said, and how many cards are concerned."""

    def __init__(self, place: str, cause: str, cards: int) -> None:
        self.place = place
        self.cause = cause
        self.cards = cards
