"""The shoe half: pusher to shoe to exit tray.

It deals stacks, one at a time, and ejects what is left. The exit's sensor counts every card by its shadow,
which must be as long as one card, with a gap before and after it. The shoe half never repeats a motion that
failed: it calls ``stop``, and ``Dealing`` voids the open round (`MD3 13.D`).

A deck goes through these states; ``sabot_protocol.modes.SHOE_STEPS`` has all steps and their causes:

    EMPTY, LOADING, READY, ROUND_OPEN, then DISPENSING, STACK_WAITING, ROUND_OPEN for each stack,
    then EJECTING, STUB_WAITING, and EMPTY or BLOCKED

``Controller`` passes edges and the time, loads the shoe and notices that the stub was taken. ``Dealing``
gives the commands of rounds and enters ROUND_OPEN. docs/recovery.md says what ends the state BLOCKED.
"""

from sabot_firmware import machine_constants
from sabot_firmware.half import HalfStates, MachineHalf
from sabot_firmware.hardware import (
    COVER,
    DEAL,
    DEAL_STALL,
    EXIT,
    EXIT_TRAY,
    FACE,
    FORWARD,
    NOTHING,
    PUSHER_END,
    PUSHER_HOME,
    SHOE,
    SHOE_DOOR,
    SHUFFLER_DOOR,
    STOP,
    STORE,
    Hardware,
    clear_levels,
)
from sabot_firmware.jam import LENGTH_TOLERANCE_UM, SWITCH_MARGIN_US, WRONG_BACKS, roller_window_us
from sabot_protocol import ticks
from sabot_protocol.modes import SHOE_STEPS, steps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_firmware.motion import Steps

# States, numbered as on the wire (tests/machine/test_wire_numbers.py compares them with the schema)
STARTING = 0
EMPTY = 1
LOADING = 2
READY = 3
ROUND_OPEN = 4
DISPENSING = 5
STACK_WAITING = 6
EJECTING = 7
STUB_WAITING = 13
UNPROVED = 8
JAMMED = 9
DOOR_OPEN = 10
SERVICE = 11
OUT_OF_ORDER = 12
BLOCKED = 14

_STEPS = steps_of("ShoeState", SHOE_STEPS)

PUSHER_WINDOW_US = machine_constants.PUSHER_US + SWITCH_MARGIN_US
EXIT_WINDOW_US = roller_window_us(machine_constants.EXIT_UM)
PURGE_WINDOW_US = roller_window_us(
    machine_constants.PITCH_UM + machine_constants.EXIT_UM
)  # for a card that lies anywhere between shoe and exit
LENGTH_WINDOW_US = roller_window_us(machine_constants.CARD_LENGTH_UM + LENGTH_TOLERANCE_UM)
LANDING_US = roller_window_us(
    machine_constants.DEALT_UM - machine_constants.EXIT_UM - machine_constants.CARD_LENGTH_UM
)
LOOK_AGAIN_US = 800000  # how often the exit tray is checked while a stack waits
PAUSE_EVERY = 3  # cards between two pauses while the other deck is shuffled
PAUSE_US = 35000  # length of such a pause: a garbage collection and what may delay it

# Tuples are made once, because the path from an edge to an order allocates nothing
TRAY_EMPTY = (READY, ROUND_OPEN)  # states in which nothing may lie in the exit tray
EXIT_CLEAR = (READY, ROUND_OPEN, STACK_WAITING, STUB_WAITING)  # states in which no card may pass the exit
CARDS_VISIBLE = (READY, ROUND_OPEN, STACK_WAITING)  # states in which the shoe's sensor must see cards left
ANY_BACK = -1  # a value of ``back``: unproved cards on their way out may be of any deck


class Shoe(MachineHalf):
    """Deals the deck that the pusher brought or that people laid in."""

    def __init__(self, hardware: Hardware, paced: "Callable[[], bool]") -> None:
        """``paced`` returns whether the shuffler half shuffles a deck now.

        Meanwhile this half pauses after every third card, for a fixed time. The board may collect garbage in
        such a pause, or when no stack is being dealt. A pause at the moment when the board needs one would
        reveal something of the shuffle. At other times this half pauses when the board asks for it.
        """
        super().__init__(
            hardware,
            (DEAL,),
            ((DEAL_STALL, "deal"),),
            SHOE_DOOR,
            clear_levels("shoe"),
            HalfStates(STARTING, EMPTY, JAMMED, DOOR_OPEN, SERVICE, OUT_OF_ORDER, UNPROVED),
            _STEPS,
        )
        self._paced = paced
        # False only in the self-test at power-up. Before any later self-test people may have taken cards out
        # and overlooked one.
        self._by_hand = False
        # The next four survive power cuts, ``_reset`` and ``forget``
        self.missing = 0  # how many cards did not come out of a deck; they may lie between shoe and exit
        self.short_deck = 0  # the deck that they belong to; 0 if that is not known
        self.inspected = False  # a person said that no card lies there: the next deck's count is a claim
        # True does not mean that the path is free. People had access, or a block ended without its card:
        # a card may stick in the path until another card has passed the exit.
        self.cleared = False
        self.deal_permille = 1000  # average time of a card past the exit, against the nominal one
        self.faces = bytearray(b"\xff" * machine_constants.BATCH_CAPACITY)  # as read, until the next deck
        self.dealt = 0  # cards counted at the exit since it was loaded, without cover cards
        self._reset(0, NOTHING, 0)

    def _reset(self, deck_id: int, back: int, cards: int) -> None:
        self.deck = deck_id  # the deck in this half
        self.back = back  # the colour it must show
        self.cards = cards  # how many it has, as proved by the shuffler or claimed by who laid it in
        # ``inspected`` was set when the pusher brought the deck. ``Controller.whereabouts`` takes a deck for
        # claimed also while ``cleared`` is set, and if it is dealt card by card.
        self.claimed = False
        self._purging = False  # this ejection is a purge
        self._drawn = False  # the shoe's sensor became free, and the last card has not come to the exit
        self.in_tray = 0  # how many of them lie in the exit tray
        self.stack = 0  # cards of the stack dealt last, also after it was taken
        self.cover_seen = False
        self.exposed = 0  # cards that came face up where that is no fault
        self.ran_out = False  # dealing stopped because the shoe is empty
        self._open_faces = False  # laid in by hand, dealt card by card: a cover card or a face is no fault
        self._after = READY  # the state after the dealt stack was taken
        for at in range(min(self.dealt, len(self.faces))):  # no others were read
            self.faces[at] = 255
        self.dealt = 0

    # -- called by the controller ---------------------------------------------------------------

    def load(self, deck_id: int, back: int, cards: int, now_us: int, after: int = READY) -> None:
        """Push the stack on the shelf into the empty shoe, then enter ``after``.

        ``after`` is READY for a counted deck. It is UNPROVED for cards of unknown count that
        ``empty_machine`` brings out.
        """
        self._reset(deck_id, back, cards)
        if after == READY:
            self.claimed, self.inspected = self.inspected, False
        self.jam = None
        self.enter(LOADING)
        self._scheduler.start(self._push_deck(after), self._wait, now_us)

    def loaded_by_hand(self, deck_id: int, back: int, cards: int) -> None:
        """Accept a batch that people cut and laid in: its count is a claim until it has been dealt out."""
        self._reset(deck_id, back, cards)
        self._open_faces = True
        self.enter(READY)

    def deal(self, cards: int, after: int, now_us: int) -> None:
        """Deal so many cards as one stack into the empty exit tray; enter ``after`` when it was taken."""
        self._after = after
        self.ran_out = False
        self.enter(DISPENSING)
        self._scheduler.start(self._deal_stack(cards), self._wait, now_us)

    def eject(self, now_us: int) -> None:
        """Eject and count all cards that are left. From UNPROVED, a card with any back may pass."""
        if self.state == UNPROVED:
            deck_id, left = self.deck, self._cards_left()
            self._reset(deck_id, ANY_BACK, left)
        self.enter(EJECTING)
        self._scheduler.start(self._eject_rest(), self._wait, now_us)

    def purge(self, now_us: int) -> None:
        """Turn the roller far enough that a loose card anywhere between shoe and exit comes out."""
        self._reset(0, ANY_BACK, 0)
        self._purging = True
        self.enter(EJECTING)
        self._scheduler.start(self._eject_rest(), self._wait, now_us)

    def taken_out(self) -> None:
        """The ejected cards were taken: enter EMPTY, or BLOCKED if a card is missing."""
        self.forget()
        self.door_was_open = False
        self.enter(self.states.idle)

    def block(self, missing: int, deck_id: int) -> None:
        """Set how many cards of a deck are missing. 0 ends the block; no deck is loaded before.

        BLOCKED replaces EMPTY as this half's idle state: the half enters it where it would enter EMPTY.
        """
        self.missing, self.short_deck = missing, deck_id if missing else 0
        self.states.idle = BLOCKED if missing else EMPTY
        if not missing and self.state == BLOCKED:
            self.enter(EMPTY)

    def forget(self) -> None:
        """No deck is in this half any more. A block and ``cleared`` remain."""
        self._reset(0, NOTHING, 0)

    def door_opened(self, place: str, cards: int) -> None:
        """Stop as the other half does, and set ``cleared``: people may overlook a card in the path."""
        self.cleared = True
        super().door_opened(place, cards)

    def void(self) -> None:
        """The round ended early: the cards inside belong to no round any more."""
        self._scheduler.stop_all()
        self.enter(UNPROVED)

    def idle(self) -> bool:
        """Whether no motion of this half runs; a dealt stack that waits to be taken counts as idle."""
        return self.state == STACK_WAITING or not self._scheduler.motions

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """Handle an edge of a sensor of this half."""
        state = self.state
        if sensor == EXIT_TRAY:
            if level == 0 and (state == DISPENSING or (state == EJECTING and self.back != ANY_BACK)):
                return self.stop("exit_tray", "stack_disturbed", self.in_tray)  # before it was complete
            if level == 1 and state in TRAY_EMPTY:
                return self.stop("exit_tray", "stack_disturbed", 0)  # a hand is back in the exit
        elif sensor == EXIT and level and state in EXIT_CLEAR:
            return self.stop("exit", "stack_disturbed", 1)  # no command asked for a card
        elif sensor == SHOE and not level:
            self._drawn = True
            if self._cards_left() and state in CARDS_VISIBLE:
                return self.stop("shoe", "sensor_disagrees", self._cards_left())
        if not self._scheduler.edge(sensor, level, at_us, now_us) and level:
            self.stalled(sensor)

    def _cards_left(self) -> int:
        return max(self.cards - self.dealt, 0)

    # -- motions --------------------------------------------------------------------------------

    def _self_test(self) -> "Steps":
        """Home the pusher. If people may have overlooked a card, turn the roller as in a purge.

        An overlooked card that is loose then reaches the exit's sensor, and the half stops. At power-up the
        roller turns if ``cleared`` is on record and no cards are known to be inside.
        """
        hardware, wait = self._hardware, self._wait
        by_hand, self._by_hand = self._by_hand, True
        overlooked = by_hand or (self.cleared and not self.was_working)
        if hardware.level(SHOE_DOOR) and not hardware.level(PUSHER_HOME):
            hardware.push(False)
            late = yield wait.edge(PUSHER_HOME, 1, PUSHER_WINDOW_US)
            if late:
                return self.stop("pusher", "switch_missed", 0)
        if overlooked and not self.latched and self.occupied() is None:
            self.run(DEAL, FORWARD)
            late = yield wait.edge(EXIT, 1, PURGE_WINDOW_US)
            if not late:
                return self.stop("exit", "card_stuck", 1)
            self.run(DEAL, STOP)
        self.cleared = self.cleared or by_hand
        self._reset(0, NOTHING, 0)
        self._by_sensors()

    def _push_deck(self, after: int) -> "Steps":
        """Push the stack from the shelf (sensor STORE) into the shoe and retract the pusher."""
        hardware, wait = self._hardware, self._wait
        if hardware.level(SHOE) or not hardware.level(STORE) or (self.cleared and hardware.level(EXIT)):
            return self.stop("pusher", "sensor_disagrees", 0)
        if self.cleared:  # hands were inside: a card that they overlooked comes to the exit
            self.run(DEAL, FORWARD)
            late = yield wait.edge(EXIT, 1, PURGE_WINDOW_US)
            if not late:
                return self.stop("exit", "card_stuck", 1)
            self.run(DEAL, STOP)
        hardware.push(True)
        late = yield wait.edge(PUSHER_END, 1, PUSHER_WINDOW_US)
        if late:
            return self.stop("pusher", "switch_missed", 0)
        if after == READY and not hardware.level(SHUFFLER_DOOR):
            return self.stop("pusher", "door_opened", 0)  # hands could reach the deck on its way
        while hardware.pause_requested() and not self._paced():
            yield wait.pause()
        hardware.push(False)
        late = yield wait.edge(PUSHER_HOME, 1, PUSHER_WINDOW_US)
        if late:
            return self.stop("pusher", "switch_missed", 0)
        if hardware.level(STORE) or not hardware.level(SHOE):
            return self.stop("pusher", "sensor_disagrees", 0)
        if hardware.level(EXIT_TRAY):
            return self.stop("exit_tray", "stack_disturbed", 0)  # a hand was there meanwhile
        self.enter(after)

    def _deal_stack(self, cards: int) -> "Steps":
        """Deal so many cards, stop before the next one reaches the exit, and wait until they are taken.

        If a shoe that is dealt card by card runs out of cards, the half enters STUB_WAITING instead.
        """
        hardware, wait = self._hardware, self._wait
        yield from self._deal_cards(cards)
        if self.state == JAMMED:
            return
        if self.in_tray:
            yield wait.time(LANDING_US)
            if not hardware.level(EXIT_TRAY):
                return self.stop("exit_tray", "sensor_disagrees", self.in_tray)
        if self.ran_out:
            self._account()
            self.enter(STUB_WAITING)
            return
        self.stack = self.in_tray
        self.enter(STACK_WAITING)
        while hardware.level(EXIT_TRAY):
            yield wait.edge(EXIT_TRAY, 0, LOOK_AGAIN_US)
        self.in_tray = 0
        self.enter(self._after)

    def _eject_rest(self) -> "Steps":
        """Eject cards until none comes, at most as many as the exit tray holds."""
        hardware, wait = self._hardware, self._wait
        yield from self._deal_cards(hardware.capacity)
        if self.state == JAMMED:
            return
        if hardware.level(SHOE):
            if self.in_tray >= hardware.capacity:
                return self.stop("exit_tray", "sensor_disagrees", self.in_tray)  # the next one finds no room
            return self.stop("deal", "misfeed", 1)
        if self.in_tray:
            yield wait.time(LANDING_US)
            if not hardware.level(EXIT_TRAY):
                return self.stop("exit_tray", "sensor_disagrees", self.in_tray)
        self._account()
        self.enter(STUB_WAITING)

    def _account(self) -> None:
        """The shoe is out of cards: block it if cards are missing, else end the block."""
        missing = max(self.missing - self.in_tray, 0)  # before, less what came out now
        short = max(self.cards - self.dealt, 1 if self._drawn else 0)  # of the deck that came out now
        if short > missing:
            self.block(short, self.deck)
        else:
            self.block(missing, self.short_deck)

    def _deal_cards(self, most: int) -> "Steps":
        """Move and count at most ``most`` cards past the exit into the empty exit tray.

        If no card comes in its window, ejecting ends, and so does dealing from an empty shoe that people
        loaded (``ran_out``). In any other case that is a misfeed.
        """
        hardware, wait = self._hardware, self._wait
        if hardware.level(EXIT_TRAY) or hardware.level(EXIT):
            return self.stop("exit_tray", "sensor_disagrees", 0)
        self.in_tray = 0
        self.run(DEAL, FORWARD)
        while self.in_tray < most:
            if self._pause_due():  # one card has left the exit, the next has not come to it
                self.run(DEAL, STOP)
                if self._paced():
                    yield wait.pause_for(PAUSE_US)
                else:
                    while hardware.pause_requested():
                        yield wait.pause()
                if hardware.level(EXIT):  # nothing moved, and the next card would make no edge
                    return self.stop("exit", "sensor_disagrees", 1)
                self.run(DEAL, FORWARD)
            late = yield wait.edge(EXIT, 1, PURGE_WINDOW_US if self._purging else EXIT_WINDOW_US)
            if late and self._drawn and self.state == EJECTING:  # the last one is slow, or lies in the path
                late = yield wait.edge(EXIT, 1, PURGE_WINDOW_US)
            self._drawn = self._drawn and late
            if late and (self.state == EJECTING or (self._open_faces and not hardware.level(SHOE))):
                self.ran_out = True
                break
            if late:
                return self.stop("deal", "misfeed", 1)
            seen = hardware.colour(EXIT)
            if seen != self.back and not self._may_pass(seen):
                return self.stop("exit", WRONG_BACKS[seen], 1)  # a face: MD3 13.A
            face = hardware.face()
            start_um = hardware.travelled_um(DEAL)
            began_us = wait.at_us
            late = yield wait.edge(EXIT, 0, LENGTH_WINDOW_US)
            length_um = ticks.diff(hardware.travelled_um(DEAL), start_um)
            if late or abs(length_um - machine_constants.CARD_LENGTH_UM) > LENGTH_TOLERANCE_UM:
                return self.stop("exit", "double_feed", 2)
            self.cleared = False  # a card that stuck in the path would have stopped this one
            took_us = ticks.diff(wait.at_us, began_us)
            self.time_card(DEAL, took_us)
            self.deal_permille += (
                took_us * 1000 // machine_constants.CARD_LENGTH_UM - self.deal_permille
            ) // 16
            if seen == COVER:
                self.cover_seen = True  # not a card of the deck
                continue
            if self.dealt < len(self.faces):
                self.faces[self.dealt] = face
            self.dealt += 1
            self.in_tray += 1
        self.run(DEAL, STOP)

    def _pause_due(self) -> bool:
        """Whether the roller must stop before the next card. Allocates nothing."""
        if self._paced():
            return self.in_tray > 0 and self.in_tray % PAUSE_EVERY == 0
        return self._hardware.pause_requested()

    def _may_pass(self, seen: int) -> bool:
        """Whether a card that does not show the deck's back may pass; counts exposed faces."""
        if self.back == ANY_BACK:
            return seen != NOTHING
        if not self._open_faces:
            return False
        if seen == FACE:
            self.exposed += 1  # MDM 13.D: it opens a simulated round
            return True
        return seen == COVER
