"""The device's core: decks, rounds and the two halves of the machine, behind the commands of the wire.

It is stepped with time and edges and returns how long it can be left alone. A command is refused by an
error of the schema and then nothing has happened; accepted, it begins, and events tell what comes of it.
A fault of the shuffler half never touches the round in play; a fault of the shoe half voids it.
"""

from sabot_firmware import figures, shoe, shuffler
from sabot_firmware.decks import Decks
from sabot_firmware.hardware import EXIT_TRAY, SHOE_DOOR, SHUFFLER_DOOR, TRAY, Hardware
from sabot_firmware.jam import Jam
from sabot_firmware.rounds import CORRECT, Round
from sabot_firmware.shoe import Shoe
from sabot_firmware.shuffler import Shuffler
from sabot_protocol.codec import enum_number
from sabot_protocol.device_end import Caller, Executor
from sabot_protocol.errors import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Values

# The halves' states as the wire names them
SHUFFLER_STATES = ("idle", "feeding", "storing", "stored", "jammed")
SHOE_STATES = (
    "empty", "loading", "ready", "dispensing", "stack_waiting", "ejecting_stub", "ejecting_stub", "jammed",
)
ROUND_OPEN_FLAG = 0x0004
FAULT_FLAG = 0x0008


class Core(Executor):
    """One machine's mind."""

    def __init__(
        self,
        hardware: Hardware,
        draw: "Callable[[int], int]",
        report: "Callable[..., object]",
        utc_s: "Callable[[], int | None]",
    ) -> None:
        self._hardware = hardware
        self._report = report  # a message's name and its values, as DeviceEnd.emit takes them
        self._utc_s = utc_s  # None while nobody knows the time
        self._now_us = 0
        self.decks = Decks()
        self.shuffler = Shuffler(hardware, draw)
        self.shoe = Shoe(hardware)
        self.round: Round | None = None
        self.last_round_id = 0
        self.shuffle_id = 0
        self.feeding_deck = 0  # the deck the shuffler half works on or has stored
        self.dealing_deck = 0  # the deck in the shoe
        self._door_was_open = [False, False]  # since the half's last jam: shuffler, shoe
        self._said_shuffler = -1
        self._said_shoe = -1

    # -- time and edges -------------------------------------------------------------------------

    def edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """A sensor has changed."""
        self._now_us = now_us
        if sensor == SHUFFLER_DOOR and not level:
            self._door_was_open[0] = True
            self.shuffler.door_opened("chamber", self.shuffler.entered)
        elif sensor == SHOE_DOOR and not level:
            self._door_was_open[1] = True
            self.shoe.door_opened("shoe", 0)
        else:
            self.shuffler.edge(sensor, level, at_us, now_us)
            self.shoe.edge(sensor, level, at_us, now_us)
        self._follow()

    def step(self, now_us: int) -> int | None:
        """Let time pass; how long until something is due, in microseconds, or None."""
        self._now_us = now_us
        due = self.shuffler.step(now_us)
        other = self.shoe.step(now_us)
        self._follow()
        if due is None or (other is not None and other < due):
            return other
        return due

    def _follow(self) -> None:
        """Notice what the halves have come to, report it, and do what follows by itself."""
        if self.shuffler.state != self._said_shuffler:
            self._said_shuffler = self.shuffler.state
            self._shuffler_changed()
        if self.shoe.state != self._said_shoe:
            before, self._said_shoe = self._said_shoe, self.shoe.state
            self._shoe_changed(before)
        if self.shoe.state == shoe.EJECTED and not self._hardware.level(EXIT_TRAY):
            self.shoe.state = shoe.EMPTY  # the stub was taken
            self.dealing_deck = 0
        if self._may_push():
            deck = self.decks.find(self.feeding_deck)
            assert deck is not None
            self.dealing_deck, self.feeding_deck = self.feeding_deck, 0
            self.shoe.load(deck.back, self._now_us)
            self.shuffler.state = shuffler.IDLE

    def _may_push(self) -> bool:
        """The pusher works only between rounds, only into an empty shoe, only with a deck proved whole."""
        return (
            self.shoe.state == shoe.EMPTY
            and self.round is None
            and self.shuffler.verified() == figures.DECK_CARDS
            and self.decks.find(self.feeding_deck) is not None
        )

    def _shuffler_changed(self) -> None:
        state = SHUFFLER_STATES[self.shuffler.state]
        self._report("shuffler_changed", enum_number("ShufflerState", state), self.feeding_deck)
        if self.shuffler.jam is not None and self.shuffler.state == shuffler.JAMMED:
            self._door_was_open[0] = self.shuffler.jam.cause == "door_opened"
            self._report_jam(self.shuffler.jam)
        elif self.shuffler.state == shuffler.STORED:
            count = self.shuffler.verified()
            if count is not None:  # what the counts do not agree on is no number
                self._report("deck_counted", self.feeding_deck, self.shuffle_id, count, figures.DECK_CARDS)
            if count != figures.DECK_CARDS:  # MD3 5.B: that deck leaves the table
                self.decks.remove(self.feeding_deck)
                self.shuffler.reject()

    def _shoe_changed(self, before: int) -> None:
        round_id = self.round.round_id if self.round is not None else 0
        state = SHOE_STATES[self.shoe.state]
        if self.shoe.state == shoe.READY and self.round is not None:
            state = "round_open"
        self._report("shoe_changed", enum_number("ShoeState", state), self.dealing_deck, round_id)
        if self.shoe.state == shoe.JAMMED and self.shoe.jam is not None:
            self._door_was_open[1] = self.shoe.jam.cause == "door_opened"
            self._report_jam(self.shoe.jam)
            self._void("shoe_failed")
        elif self.shoe.state == shoe.STACK_WAITING and self.round is not None:
            cards = self.shoe.dealt - sum(self.round.stacks)
            self.round.stacks.append(cards)
            self._report("stack_dispensed", round_id, len(self.round.stacks), cards)
        elif self.shoe.state == shoe.READY and before == shoe.STACK_WAITING and self.round is not None:
            self._report("stack_taken", round_id, len(self.round.stacks))
        elif self.shoe.state == shoe.EJECTED and self.round is not None:
            self._end_round(self.round)

    def _end_round(self, ended: Round) -> None:
        stub = self.shoe.stub or 0
        verdict = ended.verdict(stub)
        self._report("round_ended", ended.round_id, verdict, stub, sum(ended.stacks) + stub)
        self.round = None
        if verdict != CORRECT:
            self._report("round_voided", ended.round_id, enum_number("VoidReason", "wrong_number"))

    def _void(self, reason: str) -> None:
        if self.round is not None:
            self.round.void = reason
            self._report("round_voided", self.round.round_id, enum_number("VoidReason", reason))
            self.round = None

    def _report_jam(self, jam: Jam) -> None:
        fault, place = enum_number("Fault", jam.cause), enum_number("Place", jam.place)
        self._report("fault_raised", fault, place, jam.cards, "")

    # -- commands -------------------------------------------------------------------------------

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """(shuffler state, shoe state, fault, status flags, round id, stack)."""
        flags = ROUND_OPEN_FLAG if self.round is not None else 0
        jam = self.shoe.jam or self.shuffler.jam
        fault = 0
        if jam is not None:
            flags |= FAULT_FLAG
            fault = enum_number("Fault", jam.cause)
        return (
            enum_number("ShufflerState", SHUFFLER_STATES[self.shuffler.state]),
            enum_number("ShoeState", SHOE_STATES[self.shoe.state]),
            fault,
            flags,
            self.round.round_id if self.round is not None else 0,
            len(self.round.stacks) if self.round is not None else 0,
        )

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Carry out a command of the wire."""
        if name == "register_deck":
            return self._register_deck(*values)
        if name == "remove_deck":
            return self._remove_deck(values[0])
        if name == "shuffle":
            return self._shuffle(values[0])
        if name == "open_round":
            return self._open_round(*values)
        if name == "dispense_stack":
            return self._dispense_stack(*values)
        if name == "end_round":
            return self._eject(values[0])
        if name == "clear_fault":
            return self._clear_fault(values[0])
        raise Refusal("not_supported")

    def _clear_fault(self, fault: int) -> "Values":
        """Believe that a half is empty again only if its door was opened and its sensors say so."""
        for which, half in ((1, self.shoe), (0, self.shuffler)):
            if half.jam is None or enum_number("Fault", half.jam.cause) != fault:
                continue
            if not self._door_was_open[which] or half.refuse_clearing() is not None:
                raise self._wrong_state()
            half.clear()
            if which:
                self.dealing_deck = 0
            else:
                self.feeding_deck = 0
            self._report("fault_cleared", fault)
            self._follow()
            return ()
        raise self._wrong_state()

    def _register_deck(self, deck_id: int, back: int, opened_s: int) -> "Values":
        if self.decks.refuse_registering(deck_id, back) is not None:
            raise self._wrong_state()
        self.decks.register(deck_id, back, opened_s)
        return ()

    def _remove_deck(self, deck_id: int) -> "Values":
        if self.decks.find(deck_id) is None or (self.round is not None and self.round.deck_id == deck_id):
            raise self._wrong_state()
        self.decks.remove(deck_id)
        return ()

    def _shuffle(self, deck_id: int) -> "Values":
        deck = self.decks.find(deck_id)
        why = self.decks.refuse_shuffling(deck_id, self._utc_s())
        idle = self.shuffler.state == shuffler.IDLE and self._hardware.level(TRAY)
        if deck is None or why is not None or not idle or deck_id == self.dealing_deck:
            raise self._wrong_state()
        self.shuffle_id += 1
        self.feeding_deck = deck_id
        self.shuffler.shuffle(deck.back, self._now_us)
        return (self.shuffle_id,)

    def _open_round(self, round_id: int, deck_id: int, hands: int) -> "Values":
        if round_id <= self.last_round_id:
            raise Refusal("stale", (self.last_round_id, 0))
        why = self.decks.refuse_round(deck_id, self._utc_s())
        ready = self.shoe.state == shoe.READY and self.round is None
        if why is not None or not ready or deck_id != self.dealing_deck:
            raise self._wrong_state()
        self.round = Round(round_id, deck_id, hands)
        self.last_round_id = round_id
        self.decks.started(deck_id)
        return ()

    def _dispense_stack(self, round_id: int, stack: int) -> "Values":
        current = self._current(round_id, stack)
        if current.next_stack() != stack:
            raise Refusal("stale", (round_id, len(current.stacks)))
        if self.shoe.state != shoe.READY:
            raise self._wrong_state()
        self.shoe.deal_stack(self._now_us)
        return ()

    def _eject(self, round_id: int) -> "Values":
        current = self._current(round_id, 0)
        if self.shoe.state != shoe.READY or current.next_stack() is not None:
            raise self._wrong_state()
        self.shoe.eject(self._now_us)
        return ()

    def _current(self, round_id: int, stack: int) -> Round:
        if self.round is None or self.round.round_id != round_id:
            raise Refusal("stale", (self.round.round_id if self.round is not None else 0, stack))
        return self.round

    def _wrong_state(self) -> Refusal:
        return Refusal("wrong_state", (enum_number("ShoeState", SHOE_STATES[self.shoe.state]), 0))
