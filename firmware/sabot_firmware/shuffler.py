"""The shuffler half: tray to chamber to store shelf.

Card k goes under r cards, r drawn uniformly from 0 to k-1, so every order is equally likely. Two motions run
at once: one brings cards to the insertion roller, the other opens the stack and lets them in. A card is
counted where it enters, where it is inserted, and by the height it adds; the three must agree.
"""

from sabot_firmware import figures
from sabot_firmware.half import Half
from sabot_firmware.hardware import (
    BACK,
    CHAMBER,
    ELEVATOR,
    ENTRY,
    FEED,
    FORWARD,
    GRIPPER,
    HEIGHT,
    INSERT,
    INSERTION,
    NOTHING,
    SHELF,
    SHUFFLER_DOOR,
    STOP,
    STORE,
    TRAY,
    Hardware,
)
from sabot_firmware.jam import (
    LENGTH_TOLERANCE_UM,
    MARGIN_US,
    SWITCH_MARGIN_US,
    WRONG_BACKS,
    roller_window_us,
)
from sabot_firmware.motion import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_firmware.motion import Steps

# What the half is doing
IDLE = 0
SHUFFLING = 1
STORING = 2
STORED = 3
JAMMED = 4

HEIGHT_TOLERANCE_UM = 150  # half a card
MAX_RETRIES = 3
BACK_UP_US = 20000
LONGEST_TRAVEL_US = figures.travel_us(figures.ELEVATOR_TRAVEL_DECK_UM) + SWITCH_MARGIN_US
OPENING_US = figures.travel_us(figures.OPENING_UM) + SWITCH_MARGIN_US


# What the sensors must say before this half is believed to be empty
CLEAR_LEVELS = (
    (SHUFFLER_DOOR, 1, "shuffler_door"),
    (ENTRY, 0, "entry"),
    (INSERTION, 0, "insertion"),
    (CHAMBER, 0, "chamber"),
    (STORE, 0, "store"),
)


class Shuffler(Half):
    """Shuffles what lies in the tray and stores it."""

    def __init__(self, hardware: Hardware, draw: "Callable[[int], int]") -> None:
        super().__init__(hardware, (FEED, INSERT), CLEAR_LEVELS, IDLE, JAMMED)
        self._draw = draw
        self._feed_wait = Wait()
        self._insert_wait = Wait()
        self._reset()

    def _reset(self) -> None:
        self.entered = 0  # counted by the entry sensor
        self.inserted = 0  # counted by the insertion sensor
        self.raised = 0  # counted by the growing height
        self.retries = 0  # cards drawn again after a misfeed
        self._height_um = 0
        self._back = NOTHING
        self._staged = False  # a card waits at the insertion roller
        self._tray_done = False

    # -- what the core calls --------------------------------------------------------------------

    def shuffle(self, back: int, now_us: int) -> None:
        """Begin with what lies in the tray, every card of which must show this back."""
        self._reset()
        self._back = back
        self.jam = None
        self.state = SHUFFLING
        self._scheduler.start(self._insert_cards(), self._insert_wait, now_us)
        self._scheduler.start(self._feed_cards(), self._feed_wait, now_us)

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """A sensor of this half has changed."""
        self._scheduler.edge(sensor, level, at_us, now_us)

    def reject(self) -> None:
        """What was stored is not what it must be: it comes out by hand."""
        self._stop("store", "count_wrong", self.entered)

    def verified(self) -> int | None:
        """How many cards are stored, if every way of counting says the same; None if not proved."""
        agree = self.entered == self.inserted == self.raised
        return self.entered if self.state == STORED and agree else None

    # -- motions --------------------------------------------------------------------------------

    def _feed_cards(self) -> "Steps":
        """Bring cards from the tray to the insertion roller, one ahead of the inserter."""
        hardware, wait = self._hardware, self._feed_wait
        while True:
            hardware.run(FEED, FORWARD)
            if not hardware.level(TRAY) and not hardware.level(ENTRY):
                # The last card may just have been drawn: its edge must come, if there is one.
                late = yield wait.edge(ENTRY, 1, roller_window_us(figures.ENTRY_UM))
                if late:
                    break
            elif not hardware.level(ENTRY):
                late = yield wait.edge(ENTRY, 1, roller_window_us(figures.ENTRY_UM + figures.PITCH_UM))
                for _ in range(MAX_RETRIES):
                    if not late:
                        break
                    self.retries += 1  # back up and draw again: which card comes next does not change
                    hardware.run(FEED, BACK)
                    yield wait.time(BACK_UP_US)
                    hardware.run(FEED, FORWARD)
                    late = yield wait.edge(ENTRY, 1, roller_window_us(figures.ENTRY_UM + figures.PITCH_UM))
                if late:
                    return self._stop("feed", "misfeed", 1)
            self.entered += 1
            seen = hardware.colour(ENTRY)
            if seen != self._back:
                return self._stop("entry", WRONG_BACKS[seen], 1)
            if hardware.level(INSERTION):  # the card before is still going in
                late = yield wait.edge(INSERTION, 0, roller_window_us(figures.CARD_LENGTH_UM))
                if late:
                    return self._stop("insertion", "card_stuck", 1)
            late = yield wait.edge(INSERTION, 1, roller_window_us(figures.INSERTION_UM - figures.ENTRY_UM))
            if late:
                return self._stop("entry", "card_stuck", 1)
            hardware.run(FEED, STOP)
            self._staged = True
            self._scheduler.signal()
            while self._staged:
                yield wait.signal()
            # It is being drawn in; the feed roller helps it along and brings the next one behind it.
            hardware.run(FEED, FORWARD)
            late = yield wait.edge(ENTRY, 0, roller_window_us(figures.CARD_LENGTH_UM))
            if late:
                return self._stop("entry", "double_feed", 2)
        hardware.run(FEED, STOP)
        self._tray_done = True
        self._scheduler.signal()

    def _insert_cards(self) -> "Steps":
        """Open the stack at the drawn slot, let the card in, close it, and see that it grew by one."""
        hardware, wait = self._hardware, self._insert_wait
        while True:
            while not self._staged and not self._tray_done:
                yield wait.signal()
            if not self._staged:
                break
            below = self.inserted - self._draw(self.inserted + 1)
            below_um = self._height_um * below // self.inserted if self.inserted else 0
            seat_um = figures.BLADE_UM - below_um
            hardware.elevate(seat_um)
            if not hardware.level(ELEVATOR):
                late = yield wait.edge(ELEVATOR, 1, LONGEST_TRAVEL_US)
                if late:
                    return self._stop("chamber", "axis_lost", self.inserted)
            hardware.grip(True)
            late = yield wait.edge(GRIPPER, 1, figures.GRIP_US + SWITCH_MARGIN_US)
            if late:
                return self._stop("chamber", "switch_missed", self.inserted)
            hardware.elevate(seat_um - figures.OPENING_UM)
            hardware.run(INSERT, FORWARD)
            start_um = hardware.travelled_um(INSERT)
            self._staged = False
            self._scheduler.signal()
            late = yield wait.edge(ELEVATOR, 1, OPENING_US)
            if late:
                return self._stop("chamber", "axis_lost", self.inserted)
            hardware.measure()
            late = yield wait.edge(HEIGHT, 1, figures.HEIGHT_US + MARGIN_US)
            if late or abs(hardware.height_um() - below_um) > HEIGHT_TOLERANCE_UM:
                return self._stop("chamber", "grip_mismatch", self.inserted)
            if hardware.level(INSERTION):
                late = yield wait.edge(INSERTION, 0, roller_window_us(figures.CARD_LENGTH_UM))
                if late:
                    return self._stop("insertion", "card_stuck", 1)
            length_um = hardware.travelled_um(INSERT) - start_um
            if abs(length_um - figures.CARD_LENGTH_UM) > LENGTH_TOLERANCE_UM:
                return self._stop("insertion", "double_feed", 2)
            rest_um = figures.INSERT_TRAVEL_UM - figures.CARD_LENGTH_UM
            yield wait.time(roller_window_us(rest_um))
            hardware.run(INSERT, STOP)
            hardware.elevate(seat_um)
            late = yield wait.edge(ELEVATOR, 1, OPENING_US)
            if late:
                return self._stop("chamber", "axis_lost", self.inserted)
            hardware.grip(False)
            late = yield wait.edge(GRIPPER, 0, figures.GRIP_US + SWITCH_MARGIN_US)
            if late:
                return self._stop("chamber", "switch_missed", self.inserted)
            self.inserted += 1
            hardware.measure()
            late = yield wait.edge(HEIGHT, 1, figures.HEIGHT_US + MARGIN_US)
            grown_um = hardware.height_um() - self._height_um
            if late or abs(grown_um - figures.CARD_THICKNESS_UM) > HEIGHT_TOLERANCE_UM:
                return self._stop("chamber", "height_mismatch", self.inserted)
            self._height_um += grown_um
            self.raised += 1
        yield from self._store_stack()

    def _store_stack(self) -> "Steps":
        """Lower the finished stack onto the store shelf."""
        hardware, wait = self._hardware, self._insert_wait
        self.state = STORING
        if hardware.level(STORE):  # the pusher may still be taking the other deck away
            late = yield wait.edge(STORE, 0, figures.PUSHER_US + SWITCH_MARGIN_US)
            if late:
                return self._stop("store", "sensor_disagrees", self.inserted)
        hardware.shelve(True)
        late = yield wait.edge(SHELF, 1, figures.SHELF_US + SWITCH_MARGIN_US)
        if late:
            return self._stop("store", "switch_missed", self.inserted)
        hardware.shelve(False)
        late = yield wait.edge(SHELF, 0, figures.SHELF_US + SWITCH_MARGIN_US)
        if late:
            return self._stop("store", "switch_missed", self.inserted)
        self.state = STORED
