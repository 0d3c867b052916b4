"""The shuffler half: tray to chamber to store shelf.

Card k goes under r cards, r drawn uniformly from 0 to k-1, so every order is equally likely. Two motions run
at the same time: one brings cards to the insertion roller, the other opens the stack and inserts them. Every
card is counted where it enters, where it is inserted, and by the height that it adds; the three counts must
agree. A card that does not arrive in its window is backed up and tried again, into the same slot. What cannot
be repeated stops the half, and all cards of the deck are fed again.
"""

from sabot_firmware import machine_constants
from sabot_firmware.half import HalfStates, MachineHalf
from sabot_firmware.hardware import (
    BACK,
    CHAMBER,
    ELEVATOR,
    ELEVATOR_HOME,
    ENTRY,
    FEED,
    FEED_STALL,
    FORWARD,
    GRIPPER,
    HEIGHT,
    INSERT,
    INSERT_STALL,
    INSERTION,
    NOTHING,
    PUSHER_HOME,
    SHELF,
    SHUFFLER_DOOR,
    STOP,
    STORE,
    TRAY,
    Hardware,
    clear_levels,
)
from sabot_firmware.height_model import HeightModel
from sabot_firmware.jam import (
    LENGTH_TOLERANCE_UM,
    MARGIN_US,
    SWITCH_MARGIN_US,
    WRONG_BACKS,
    roller_window_us,
)
from sabot_firmware.motion import Wait
from sabot_protocol import ticks
from sabot_protocol.modes import SHUFFLER_STEPS, steps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Generator

    from sabot_firmware.motion import Steps
    from sabot_firmware.rng.draws import Slots

# States, numbered as on the wire (tests/machine/test_wire_numbers.py compares them with the schema)
STARTING = 0
IDLE = 1
FEEDING = 2
HOLDING = 9
STORING = 3
STORED = 4
JAMMED = 5
DOOR_OPEN = 6
SERVICE = 7
OUT_OF_ORDER = 8
UNPROVED = 10

_STEPS = steps_of("ShufflerState", SHUFFLER_STEPS)

MAX_RETRIES = 3
BACK_UP_US = 20000
NUDGE_US = 10000  # less than the gap: the card behind is not touched
SHELF_WINDOW_US = machine_constants.SHELF_US + SWITCH_MARGIN_US
GRIP_WINDOW_US = machine_constants.GRIP_US + SWITCH_MARGIN_US
OPENING_US = machine_constants.travel_us(machine_constants.OPENING_UM) + SWITCH_MARGIN_US
ENTRY_WINDOW_US = roller_window_us(machine_constants.ENTRY_UM)
NEXT_WINDOW_US = roller_window_us(machine_constants.ENTRY_UM + machine_constants.PITCH_UM)
LENGTH_WINDOW_US = roller_window_us(machine_constants.CARD_LENGTH_UM)
STAGE_WINDOW_US = roller_window_us(machine_constants.INSERTION_UM - machine_constants.ENTRY_UM)
FREE_WINDOW_US = roller_window_us(  # from the start of a card's insertion until the entry is free
    machine_constants.CARD_LENGTH_UM - machine_constants.INSERTION_UM + machine_constants.ENTRY_UM
)
BEHIND_WINDOW_US = roller_window_us(  # from a card's entry until the one before has left the insertion
    machine_constants.INSERTION_UM - machine_constants.ENTRY_UM - machine_constants.GAP_UM
)
IN_WINDOW_US = (
    LENGTH_WINDOW_US - machine_constants.travel_us(machine_constants.OPENING_UM) - machine_constants.HEIGHT_US
)
OVERHANG_WINDOW_US = roller_window_us(45000)  # two cards that stick together are not longer than this
HELP_WINDOW_US = (MAX_RETRIES + 2) * (LENGTH_WINDOW_US + NUDGE_US)
SEATED_US = roller_window_us(machine_constants.INSERT_TRAVEL_UM - machine_constants.CARD_LENGTH_UM)
STAGE_US = machine_constants.INSERTION_UM - machine_constants.ENTRY_UM  # one micrometre a microsecond

# A shuffle is reported as finished after a fixed time: the mean of the slowest machine plus six standard
# deviations of what its slots change. If retries took longer, the time is extended in steps of STEP_US.
# Pauses for the board come after fixed cards, needed or not, and are part of that time.
SPARE_PERCENT = 107
PAUSE_EVERY = 3  # cards
PAUSE_US = 22000  # the length of one on a Pico
PAUSE_WITHIN_US = 400000  # the longest wait between two pauses, after the last card
STEP_US = 2000000
CARD_US = (  # without the move to the slot
    2 * machine_constants.GRIP_US
    + machine_constants.INSERT_TRAVEL_UM * 100 // (100 - machine_constants.ROLLER_TOLERANCE_PERCENT)
    + machine_constants.travel_us(machine_constants.OPENING_UM)
    + 2 * machine_constants.HEIGHT_US
)


def padded_time_us(cards: int) -> int:
    """The time after which a shuffle of so many cards is reported as finished, whatever its slots are.

    The duration of a shuffle depends on its slots, so the device reports every shuffle after the same time.
    """
    mean_us = 0
    for card in range(cards):  # the mean distance of two slots is a third of the stack
        mean_us += CARD_US + machine_constants.travel_us(card * machine_constants.CARD_THICKNESS_UM // 3)
    return mean_us * SPARE_PERCENT // 100 + (cards - 1) // PAUSE_EVERY * PAUSE_US


class Shuffler(MachineHalf):
    """Shuffles the deck in the tray and stores it on the shelf."""

    def __init__(self, hardware: Hardware) -> None:
        super().__init__(
            hardware,
            (FEED, INSERT),
            ((FEED_STALL, "feed"), (INSERT_STALL, "insertion")),
            SHUFFLER_DOOR,
            clear_levels("shuffler"),
            HalfStates(STARTING, IDLE, JAMMED, DOOR_OPEN, SERVICE, OUT_OF_ORDER, UNPROVED),
            _STEPS,
        )
        self._slots: Slots | None = None
        self._feed_wait = Wait()
        self.blade_um = machine_constants.BLADE_UM
        self.card_um = machine_constants.CARD_THICKNESS_UM
        self._travel_window_us = 0
        self.configure(
            machine_constants.BLADE_UM,
            machine_constants.CARD_THICKNESS_UM,
            machine_constants.ELEVATOR_TRAVEL_DECK_UM,
        )
        self.feeding_deck = 0  # the deck on its way from tray to shelf
        self.stored_deck = 0  # the deck on the shelf
        self.stored = 0  # its cards, as proved when it was shuffled
        self.retried: list[str] = []  # places of retries, which the controller reports afterwards
        self.feed_permille = 1000  # average time from entry to insertion, against the nominal one
        self.retries = 0  # retries in this shuffle
        self._padded_for = 0  # the number of cards that _padded_us is for
        self._padded_us = 0
        self._stack = HeightModel()
        self.placed: array[int] | None = None  # receives the slot of each card, as the heights prove it
        self._reset()

    def _reset(self) -> None:
        self.entered = 0  # counted by the entry sensor
        self.inserted = 0  # counted by the insertion sensor
        self.raised = 0  # counted by the growing height
        self._expected = 0
        self._began_us = 0
        self._stack.reset(self.card_um)
        self._back = NOTHING
        self._may_feed = False  # until then nothing moves
        self._staged = False  # a card waits at the insertion roller
        self._backing = False  # the card at the insertion roller is being backed up
        self._tray_done = False

    # -- called by the controller ---------------------------------------------------------------

    def configure(self, blade_um: int, card_um: int, travel_um: int) -> None:
        """Set the blades' height, the thickness of a card and the travel of the platform."""
        self.blade_um = blade_um
        self.card_um = card_um
        self._travel_window_us = machine_constants.travel_us(travel_um) + SWITCH_MARGIN_US

    def shuffle(
        self,
        deck_id: int,
        back: int,
        expected: int,
        slots: "Slots",
        now_us: int,
        placed: "array[int] | None" = None,
    ) -> None:
        """Shuffle the deck in the tray: ``expected`` cards, each of which must show this back.

        ``slots`` gives the slot of each card. ``placed`` receives the slots as the heights prove them.
        """
        self._reset()
        self._slots, self.placed = slots, placed
        self.retries = 0
        self.feeding_deck = deck_id
        self._back = back
        self._expected = expected
        self._began_us = now_us
        if expected != self._padded_for:  # once a game, since it allocates
            self._padded_for = expected
            self._padded_us = padded_time_us(expected)
        self.jam = None
        self.enter(FEEDING)
        for sensor, place in ((ENTRY, "entry"), (INSERTION, "insertion"), (CHAMBER, "chamber")):
            if self._hardware.level(sensor):
                return self.stop(place, "sensor_disagrees", 0)
        self._scheduler.start(self._insert_cards(), self._wait, now_us)
        self._scheduler.start(self._feed_cards(), self._feed_wait, now_us)

    def unload(self, now_us: int) -> None:
        """Bring whatever lies in the chamber onto the shelf, on its way out of the machine."""
        self.enter(STORING)
        self._scheduler.start(self._store_stack(UNPROVED), self._wait, now_us)

    def idle(self) -> bool:
        """Whether no motion of this half runs; a stack that waits for the shelf counts as idle."""
        return self.state == HOLDING or not self._scheduler.motions

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """Handle an edge of a sensor of this half."""
        if self.state == HOLDING:  # the shelf may be free now
            self._scheduler.signal()
        if self._scheduler.edge(sensor, level, at_us, now_us):
            return
        if level and self.stalled(sensor):
            return
        if sensor == STORE and not level and self.stored_deck:
            self.stop("store", "sensor_disagrees", self.stored)  # no pusher moved it
            self.forget_shelf()
        elif sensor == PUSHER_HOME and level and self.state == IDLE and self._hardware.level(STORE):
            self.enter(UNPROVED)  # the pusher came back without the cards: nothing proves those on the shelf

    def counted(self) -> int | None:
        """The cards in the chamber if all three counts agree; None if they do not."""
        return self.inserted if self.entered == self.inserted == self.raised else None

    def take_from_shelf(self) -> None:
        """The pusher takes the stored deck."""
        self.forget_shelf()
        if self.state == STORED:
            self.enter(IDLE)

    def forget_shelf(self) -> None:
        """The deck on the shelf is no longer proved."""
        self.stored_deck = self.stored = 0

    # -- motions --------------------------------------------------------------------------------

    def _self_test(self) -> "Steps":
        """Open the gripper, home carriage and platform, then derive the state from the sensors."""
        hardware, wait = self._hardware, self._wait
        if not hardware.level(SHUFFLER_DOOR):
            if not self._was_cut():
                self._by_sensors()
            return
        if hardware.level(GRIPPER):
            hardware.grip(False)
            late = yield wait.edge(GRIPPER, 0, GRIP_WINDOW_US)
            if late:
                return self.stop("chamber", "switch_missed", 0)
        if hardware.level(SHELF):
            hardware.shelve(False)
            late = yield wait.edge(SHELF, 0, SHELF_WINDOW_US)
            if late:
                return self.stop("store", "switch_missed", 0)
        hardware.home()
        if not hardware.level(ELEVATOR_HOME):
            late = yield wait.edge(ELEVATOR_HOME, 1, self._travel_window_us)
            if late:
                return self.stop("chamber", "switch_missed", 0)
        if not self._was_cut():
            self._by_sensors()

    def _was_cut(self) -> bool:
        """Whether the power was lost while cards moved. If so the half stops: a card may lie unseen."""
        if not self.was_working or self.latched:
            return False
        self.was_working = False
        self.stop("chamber", "power_lost", 0)
        self.door_was_open = not self._hardware.level(SHUFFLER_DOOR)
        return True

    def _feed_cards(self) -> "Steps":
        """Bring cards from the tray to the insertion roller, one ahead of the other motion."""
        hardware, wait = self._hardware, self._feed_wait
        while not self._may_feed:
            yield wait.signal()
        while True:
            self.run(FEED, FORWARD)
            if not hardware.level(TRAY) and not hardware.level(ENTRY):
                # The last card may just have left the tray: then its edge must still come.
                began_us = self._scheduler.now_us
                late = yield wait.edge(ENTRY, 1, NEXT_WINDOW_US)
                while self._backing and not late:  # it is the edge of the card that is backed up
                    late = yield wait.edge(ENTRY, 1, NEXT_WINDOW_US)
                if late:
                    break
                if ticks.diff(wait.at_us, began_us) > ENTRY_WINDOW_US:
                    return self.stop("tray", "sensor_disagrees", 1)  # the tray was not empty
            elif not hardware.level(ENTRY):
                late = yield wait.edge(ENTRY, 1, NEXT_WINDOW_US)
                if late:  # a retry does not change which card comes next
                    late = yield from self._retry("feed", FEED, BACK_UP_US, ENTRY, 1, NEXT_WINDOW_US)
                if late:
                    return self.stop("feed", "misfeed", 1)
            began_us = wait.at_us
            helped = self.retries
            self.entered += 1
            if self.entered > self._expected + 1:  # one more would not fit
                return self.stop("entry", "count_wrong", self.entered)
            seen = hardware.colour(ENTRY)
            if seen != self._back:
                return self.stop("entry", WRONG_BACKS[seen], 1)
            if hardware.level(INSERTION):  # the card before is still going in
                late = yield wait.edge(INSERTION, 0, BEHIND_WINDOW_US)
                if late:  # the other motion retries it; this card must not run into it
                    self.run(FEED, STOP)
                    late = yield wait.edge(INSERTION, 0, HELP_WINDOW_US)
                    if late:
                        return self.stop("insertion", "card_stuck", 1)
                    self.run(FEED, FORWARD)
            late = yield wait.edge(INSERTION, 1, STAGE_WINDOW_US)
            if late:
                late = yield from self._retry("entry", FEED, NUDGE_US, INSERTION, 1, STAGE_WINDOW_US)
            if late:
                return self.stop("entry", "card_stuck", 1)
            self.run(FEED, STOP)
            self._note_drift(ticks.diff(wait.at_us, began_us))
            if helped == self.retries:
                self.time_card(FEED, ticks.diff(wait.at_us, began_us))
            self._staged = True
            self._scheduler.signal()
            while self._staged:
                yield wait.signal()
            # The card is being inserted. The feed roller supports it and brings the next card behind it.
            self.run(FEED, FORWARD)
            if hardware.level(ENTRY):
                late = yield wait.edge(ENTRY, 0, FREE_WINDOW_US)
                if late:  # it slips or sticks: the next card would catch up, and both would pass as one
                    self.run(FEED, STOP)
                    late = yield wait.edge(ENTRY, 0, HELP_WINDOW_US)
                if late:
                    return self.stop("entry", "card_stuck", 1)
        self.run(FEED, STOP)
        self._tray_done = True
        self._scheduler.signal()

    def _insert_cards(self) -> "Steps":
        """For each card: open the stack at its slot, insert it, close the stack, check the height."""
        hardware, wait, stack, slots = self._hardware, self._wait, self._stack, self._slots
        assert slots is not None
        hardware.request_pause()
        while hardware.pause_requested():
            yield wait.pause()
        self._began_us = self._scheduler.now_us
        retries = self.retries
        self._may_feed = True
        self._scheduler.signal()
        while True:
            while not self._staged and not self._tray_done:
                yield wait.signal()
            if not self._staged:
                break
            if self.inserted and (not self.inserted % PAUSE_EVERY or self.retries != retries):
                hardware.request_pause()  # after a retry, too: it made the time since the last rest longer
                retries = self.retries
            while hardware.pause_requested():  # the next card waits at the insertion roller, nothing moves
                yield wait.pause()
            below = self.inserted - slots.draw(self.inserted + 1)
            below_um = stack.gap_um(below)
            seat_um = self.blade_um - below_um
            hardware.elevate(seat_um)
            if not hardware.level(ELEVATOR):
                late = yield wait.edge(ELEVATOR, 1, self._travel_window_us)
                if late:
                    return self.stop("chamber", "axis_lost", self.inserted)
            hardware.grip(True)
            late = yield wait.edge(GRIPPER, 1, GRIP_WINDOW_US)
            if late:
                return self.stop("chamber", "switch_missed", self.inserted)
            hardware.elevate(
                max(seat_um - machine_constants.OPENING_UM, 0)
            )  # thick cards leave less room below
            self.run(INSERT, FORWARD)
            began_us = self._scheduler.now_us
            start_um = hardware.travelled_um(INSERT)
            self._staged = False
            self._scheduler.signal()
            late = yield wait.edge(ELEVATOR, 1, OPENING_US)
            if late:
                return self.stop("chamber", "axis_lost", self.inserted)
            hardware.measure()
            late = yield wait.edge(HEIGHT, 1, machine_constants.HEIGHT_US + MARGIN_US)
            if late or not stack.fits(below_um, hardware.height_um()):
                return self.stop("chamber", "grip_mismatch", self.inserted)
            if self.placed is not None:
                self.placed[self.inserted] = self.inserted - below  # as the height has just proved
            stack.learn(below, below_um, hardware.height_um())
            helped = late = False
            if hardware.level(INSERTION):
                late = yield wait.edge(INSERTION, 0, IN_WINDOW_US)
                if late:
                    late = yield wait.edge(INSERTION, 0, OVERHANG_WINDOW_US)
                    if not late:  # it moves, and is longer than a card
                        return self.stop("insertion", "double_feed", 2)
                else:
                    self.time_card(INSERT, ticks.diff(wait.at_us, began_us))
            if late:  # the stack stays open at the same slot
                helped = True
                late = yield from self._retry("insertion", INSERT, NUDGE_US, INSERTION, 0, LENGTH_WINDOW_US)
            if late:
                return self.stop("insertion", "card_stuck", 1)
            length_um = ticks.diff(hardware.travelled_um(INSERT), start_um)
            if not helped and abs(length_um - machine_constants.CARD_LENGTH_UM) > LENGTH_TOLERANCE_UM:
                return self.stop("insertion", "double_feed", 2)
            yield wait.time(SEATED_US)
            self.run(INSERT, STOP)
            hardware.elevate(seat_um)
            late = yield wait.edge(ELEVATOR, 1, OPENING_US)
            if late:
                return self.stop("chamber", "axis_lost", self.inserted)
            hardware.grip(False)
            late = yield wait.edge(GRIPPER, 0, GRIP_WINDOW_US)
            if late:
                return self.stop("chamber", "switch_missed", self.inserted)
            self.inserted += 1
            hardware.measure()
            late = yield wait.edge(HEIGHT, 1, machine_constants.HEIGHT_US + MARGIN_US)
            if late or not stack.grows(hardware.height_um()):
                return self.stop("chamber", "height_mismatch", self.inserted)
            stack.grown(below, hardware.height_um())
            self.raised += 1
        stack.reset(self.card_um)  # its measured gaps would reveal slots
        if self.counted() is None or not hardware.level(CHAMBER):
            return self.stop("chamber", "sensor_disagrees", self.inserted)
        if self.counted() != self._expected:
            return self.stop("chamber", "count_wrong", self.inserted)  # MD3 5.B: that deck leaves
        if hardware.level(INSERTION):  # one card more, which the entry's sensor has not seen
            return self.stop("entry", "sensor_disagrees", 1)
        # The duration depends on the slots and must not show: wait until the padded time.
        padded_us = self._padded_us
        while padded_us < ticks.diff(self._scheduler.now_us, self._began_us):
            padded_us += STEP_US
        left_us = padded_us - ticks.diff(self._scheduler.now_us, self._began_us)
        while left_us > 0:
            if left_us > 4 * PAUSE_US:  # a pause must not delay the end
                hardware.request_pause()
                while hardware.pause_requested():
                    yield wait.pause()
                left_us = padded_us - ticks.diff(self._scheduler.now_us, self._began_us)
            yield wait.pause_for(min(left_us, PAUSE_WITHIN_US))
            left_us = padded_us - ticks.diff(self._scheduler.now_us, self._began_us)
        while hardware.level(STORE) or not hardware.level(PUSHER_HOME):
            if hardware.level(PUSHER_HOME) and not self.stored_deck:
                return self.stop("store", "sensor_disagrees", self.inserted)
            self.enter(HOLDING)
            yield wait.signal()
        self.enter(STORING)
        yield from self._store_stack(STORED)

    def _store_stack(self, after: int) -> "Steps":
        """Lower the finished stack onto the store shelf and home the platform meanwhile."""
        hardware, wait = self._hardware, self._wait
        hardware.request_pause()  # when the last one was depends on the slots
        while hardware.pause_requested():
            yield wait.pause()
        hardware.shelve(True)
        late = yield wait.edge(SHELF, 1, SHELF_WINDOW_US)
        if late:
            return self.stop("store", "switch_missed", self.inserted)
        if hardware.level(CHAMBER) or not hardware.level(STORE):
            return self.stop("store", "sensor_disagrees", self.inserted)
        hardware.request_pause()
        while hardware.pause_requested():
            yield wait.pause()
        hardware.shelve(False)
        hardware.home()
        late = yield wait.edge(SHELF, 0, SHELF_WINDOW_US)
        if late:
            return self.stop("store", "switch_missed", self.inserted)
        if not hardware.level(ELEVATOR_HOME):
            late = yield wait.edge(ELEVATOR_HOME, 1, self._travel_window_us)
            if late:
                return self.stop("chamber", "switch_missed", self.inserted)
        hardware.request_pause()
        while hardware.pause_requested():  # before the pusher may come
            yield wait.pause()
        if after == STORED:
            self.stored_deck, self.stored = self.feeding_deck, self.inserted
        self.feeding_deck = 0
        self.enter(after)

    def _retry(
        self, place: str, roller: int, back_us: int, sensor: int, level: int, window_us: int
    ) -> "Generator[Wait, bool, bool]":
        """Back a card up and let it go on, at most MAX_RETRIES times; whether the edge still did not come."""
        inserting = roller == INSERT
        wait = self._wait if inserting else self._feed_wait
        for _ in range(MAX_RETRIES):
            self.retries += 1
            self.retried.append(place)
            self._backing = self._backing or inserting
            self.run(roller, BACK)
            yield wait.time(back_us)
            self.run(roller, FORWARD)
            if inserting:
                self._backing = False
                if self._hardware.level(sensor) == level:
                    continue
            late = yield wait.edge(sensor, level, window_us)
            if not late:
                return False
        return True

    def _note_drift(self, took_us: int) -> None:
        """Update the slow average of feed times, which grows when a roller wears or slips."""
        self.feed_permille += (took_us * 1000 // STAGE_US - self.feed_permille) // 16
