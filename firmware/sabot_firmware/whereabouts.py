"""Where the cards of a deck are, as far as it is proved.

Every card of a deck is in exactly one place: tray, path, chamber, store, shoe, exit tray or hands. The number
in the tray is unknown until the tray has been seen empty. While a deck is shuffled, progress is not reported.
After a jam nothing is known. All numbers come from the counters of the two halves, so they cannot contradict
them.
"""

from sabot_firmware import shoe, shuffler
from sabot_firmware.persistent_state import CARDS_INSIDE, CARDS_MOVING, NO_CARDS
from sabot_firmware.shoe import Shoe
from sabot_firmware.shuffler import Shuffler

UNKNOWN = 0xFFFF
PLACES = 7

# What a half holds in each state. In a state that is not here it holds what it held before.
SHUFFLER_CONTENTS = {
    shuffler.IDLE: NO_CARDS,
    shuffler.SERVICE: NO_CARDS,
    shuffler.OUT_OF_ORDER: NO_CARDS,
    shuffler.STORED: CARDS_INSIDE,
    shuffler.UNPROVED: CARDS_INSIDE,
    shuffler.FEEDING: CARDS_MOVING,
    shuffler.STORING: CARDS_MOVING,
    shuffler.HOLDING: CARDS_MOVING,
    shuffler.JAMMED: CARDS_MOVING,
}
SHOE_CONTENTS = {
    shoe.EMPTY: NO_CARDS,
    shoe.SERVICE: NO_CARDS,
    shoe.OUT_OF_ORDER: NO_CARDS,
    shoe.LOADING: CARDS_INSIDE,  # and none between shoe and exit
    shoe.STUB_WAITING: CARDS_INSIDE,
    shoe.READY: CARDS_MOVING,
    shoe.ROUND_OPEN: CARDS_MOVING,
    shoe.DISPENSING: CARDS_MOVING,
    shoe.STACK_WAITING: CARDS_MOVING,
    shoe.EJECTING: CARDS_MOVING,
    shoe.JAMMED: CARDS_MOVING,
    shoe.BLOCKED: CARDS_MOVING,
}

# States in which the shoe half knows how many cards it holds
VOUCHED = (
    shoe.LOADING,
    shoe.READY,
    shoe.ROUND_OPEN,
    shoe.DISPENSING,
    shoe.STACK_WAITING,
    shoe.EJECTING,
    shoe.STUB_WAITING,
)


def whereabouts(deck_id: int, feeding: Shuffler, dealing: Shoe, claimed: bool) -> "tuple[bool, list[int]]":
    """Whether all cards of a deck are proved to be there, and how many are at each place.

    ``claimed`` says that a person vouches for the cards in the shoe: people laid them in, or its door was
    opened and no card has passed its exit since.
    """
    if feeding.feeding_deck == deck_id:
        if feeding.state == shuffler.FEEDING:  # when a card goes in tells how far its slot was
            return False, [UNKNOWN, UNKNOWN, UNKNOWN, 0, 0, 0, 0]
        if feeding.state in (shuffler.HOLDING, shuffler.STORING):
            return True, [0, 0, feeding.inserted, 0, 0, 0, 0]
    if feeding.stored_deck == deck_id:
        return True, [0, 0, 0, feeding.stored, 0, 0, 0]
    if dealing.deck == deck_id and dealing.state in VOUCHED and dealing.back != shoe.ANY_BACK:
        left, taken = dealing.cards - dealing.dealt, dealing.dealt - dealing.in_tray
        return not claimed and left >= 0, [0, 0, 0, 0, max(left, 0), dealing.in_tray, taken]
    return False, [UNKNOWN] * PLACES
