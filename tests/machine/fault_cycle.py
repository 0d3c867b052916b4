"""One cycle of the machine with a fault in one of its phases, or with two.

Two decks are at the table. The first plays a round while the other lies on the shelf; then the pusher brings
that one into the shoe, and it plays a round while the first is loaded, shuffled and stored; and once more.
The dealer does everything right, and goes on as far as the machine lets him. Then service and floor put
everything right; a second fault may happen while they do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NoReturn
from zlib import crc32

from sabot_firmware import hardware, persistent_state, shoe, shuffler
from sabot_firmware.critical import CriticalMemory
from sabot_firmware.rounds import CORRECT, UNPROVED
from sabot_protocol.codec import enum_name, enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators import chips
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import Dealer, RecoveryFailed
from sabot_simulators.emulated_device import CommandValue, WaitTimeout
from sabot_simulators.mechanism.fault_effects import CARD_KINDS
from sabot_simulators.mechanism.faults import COUNTED_AT, EDGE_SENSORS, PlannedFault
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice

HANDS = 7
STACK_CARDS = 3

# The phases, in the order of the cycle
IDLE, FIRST_STACK, MIDDLE_STACK, LAST_STACK = "idle", "first stack", "middle stack", "last stack"
STUB, TRANSFER, LOAD, SHUFFLE, SHELF = "stub", "transfer", "load", "shuffle", "shelf"
PHASES = {
    LOAD: "a deck is laid into the tray, while the first stack of the other is dealt",
    SHUFFLE: "the 52 cards are fed and inserted, while stacks two to four of the other deck are dealt",
    SHELF: "the shuffled deck is lowered onto the shelf, while the fifth stack of the other is dealt",
    TRANSFER: "the stub is taken and the pusher brings the next deck into the shoe",
    FIRST_STACK: "the first stack is dealt, the other deck on the shelf",
    MIDDLE_STACK: "the fourth of seven",
    LAST_STACK: "the seventh",
    STUB: "the rest, 31 cards, is ejected and counted",
    IDLE: "between rounds: a deck in the shoe, the other on the shelf",
}
RECOVERY = "recovery"  # where the second fault of a pair may happen: people put the table right
# Which card of its phase a fault takes. Where no card passes, but something moves: when it happens.
FIRST, MIDDLE, LAST, ONCE = "first", "middle", "last", "once"
# How many cards leave tray and shoe in a phase
PASSING = {
    LOAD: {"shoe": 3},
    SHUFFLE: {"tray": 52, "shoe": 9},
    SHELF: {"shoe": 3},
    TRANSFER: {},
    FIRST_STACK: {"shoe": 3},
    MIDDLE_STACK: {"shoe": 3},
    LAST_STACK: {"shoe": 3},
    STUB: {"shoe": 31},
    IDLE: {},
    RECOVERY: {"tray": 52, "shoe": 52},
}
# Where cards that are counted at a place come from
SOURCE = {"tray": "tray", "chamber": "tray", "shoe": "shoe", "exit_tray": "shoe"}
LASTS_US = {TRANSFER: 600_000, SHELF: 800_000}  # of moves without a card: pusher and carriage
# What lies between and behind them
OPENING, BETWEEN = "the opening", "the stacks between"
ROUND_END, NEXT_TRANSFER = "the round's end", "the next transfer"
NEXT_SHUFFLE, NEXT_ROUND = "the next shuffle", "the next round"
OTHER_SPANS = {
    OPENING: "a round is opened",
    BETWEEN: "stacks two, three, five and six",
    ROUND_END: "behind the shelf phase: the last two stacks of that round, and its stub",
    NEXT_TRANSFER: "the pusher brings the deck just shuffled",
    NEXT_SHUFFLE: "the other deck is shuffled",
    NEXT_ROUND: "the round after that",
}
STACK_PHASES = {1: FIRST_STACK, 4: MIDDLE_STACK, 7: LAST_STACK}

AT_ONCE_US = 150_000  # how far into the phase that happens which needs no occasion
MARGIN_US = 20_000  # behind the beginning, and before the end, of a move
IDLE_US = 1_000_000
REACH_US = 150_000  # until a dealer has reached for a stack that waits
HAND_OVER_US = 500_000  # between laying cards into the tray and the command to shuffle them
WRONG_BY_S = 9 * 3600
TORN_AFTER_BYTES = 40
HOURS = enum_number("RemoveReason", "hours")
STANDS = (shuffler.IDLE, shuffler.STORED, shuffler.JAMMED, shuffler.DOOR_OPEN, shuffler.UNPROVED)
# What needs no card and no move to happen
AT_ONCE = (
    "dirty_sensor", "dead_sensor", "chattering_sensor", "motor_stall", "door_opened", "stack_taken_early",
    "hand_in_exit", "over_temperature", "brown_out", "power_cut",
)  # fmt: skip
BACK_AGAIN = 3  # how often recovering and dealing a round may be tried
BACK_AGAIN_IF_DISTURBED = 6

Report = tuple[int, str, str, tuple[int | str, ...]]  # when, in which phase, name, values


class NotOccurred(Exception):
    """The phase is over, and the fault has found no occasion."""


class NoMore(Exception):
    """The machine does not let the cycle go on."""


@dataclass(frozen=True)
class Row:
    """One fault, or several at once, at one card of a phase; and perhaps another one later."""

    faults: tuple[str, ...]
    phase: str
    card: str = ONCE
    then: str = ""
    """The second fault of a pair."""
    then_phase: str = ""
    then_card: str = ""

    @property
    def name(self) -> str:
        """The faults of one moment."""
        return " + ".join(self.faults)

    def __str__(self) -> str:
        first = f"{self.name}, {self.phase}, {self.card}"
        return f"{first}, then {self.then}, {self.then_phase}, {self.then_card}" if self.then else first


def passing(place: str, phase: str) -> int:
    """How many of the cards that are counted at a place pass in a phase."""
    return sum(PASSING[phase].get(SOURCE[each], 0) for each in COUNTED_AT[place])


def which(card: str, of: int) -> int:
    """The number of the first, the middle or the last of so many cards, from 1."""
    return {FIRST: 1, MIDDLE: (of + 1) // 2, LAST: of}.get(card, 1)


class WatchedMachine(SimulatedMachine):
    """Notes what the deal roller is told."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.deal_orders: list[int] = []

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller, or stop it."""
        if roller == hardware.DEAL:
            self.deal_orders.append(direction)
        super().run(roller, direction)


@dataclass
class RoundSeen:
    """A round as it really was."""

    round_id: int
    deck: list[PhysicalCard]
    """What lay in the shoe when it was opened, the card to be dealt first in front."""
    opened_us: int = 0
    stacks: list[list[PhysicalCard]] = field(default_factory=list)
    begun: int = 0
    """How many stacks the device was told to deal."""
    stub: list[PhysicalCard] = field(default_factory=list)
    ended: str = ""
    """The verdict, or why it is void."""
    ended_us: int | None = None

    def counts_right(self) -> bool:
        """Whether every hand has three, and all together are a deck."""
        counts = [len(stack) for stack in self.stacks]
        return counts == [STACK_CARDS] * HANDS and len(self.stub) == 52 - HANDS * STACK_CARDS

    def right_but_for_a_hand(self) -> bool:
        """The same, without cards that a hand laid onto a stack: they did not come out of the shoe."""
        left, counts = set(map(id, self.deck)), []
        for stack in (*self.stacks, self.stub):
            counts.append(sum(id(card) in left for card in stack))
            left -= set(map(id, stack))
        return counts == [STACK_CARDS] * HANDS + [52 - HANDS * STACK_CARDS]

    def from_the_top(self) -> bool:
        """Whether the cards came as they lay when the round was opened."""
        return [card for stack in (*self.stacks, self.stub) for card in stack] == self.deck

    def composed_of(self, cards: list[PhysicalCard]) -> bool:
        """Whether it was dealt from none but these."""
        known = set(map(id, cards))
        return all(id(card) in known for stack in (*self.stacks, self.stub) for card in stack)


class Scene(Dealer):
    """One row, played."""

    device: PythonDevice

    def __init__(self, row: Row) -> None:
        self.row = row
        self.random = Random(crc32(str(row).encode()))
        self.machine = WatchedMachine(self.random)
        self.chip = chips.SimFram()
        own = any(each.startswith("stuck_noise") for each in (*row.faults, row.then))  # it draws by itself
        draw = None if own else self.random.randrange
        super().__init__(PythonDevice(self.machine, draw, self._memory()), HANDS)
        self.oracle = Oracle(self.device)
        self.device.on_report = self._heard
        self.machine.on_fault = self._to_the_board
        self.at = "opening"
        self.struck = self.struck_again = False
        self.torn = False
        self._awaited: list[tuple[str, int, PlannedFault]] = []  # when so many cards were drawn there
        self.heard: list[Report] = []
        self.refused: list[tuple[int, str, str]] = []
        self.rounds: list[RoundSeen] = []
        self.gave_up_waiting = False
        self.is_back = False  # the cycle is over; what is dealt now is the proof that the table works
        self.motions = 0  # of the shoe, that were asked for
        self.cut_us: int | None = None
        self.originals: list[PhysicalCard] = []

    def _memory(self) -> CriticalMemory:
        return CriticalMemory(self.chip, persistent_state.RECORDS)

    def _heard(self, name: str, values: tuple[int | str, ...]) -> None:
        self.heard.append((self.machine.agenda.now_us, self.at, name, values))
        self.oracle.report(name, values)
        if name not in ("round_voided", "round_ended") or self.is_back:
            return
        last = self.rounds[-1]
        assert last.round_id == values[0]
        last.ended_us = self.machine.agenda.now_us
        if name == "round_voided":
            last.ended = "void: " + enum_name("VoidReason", int(values[1]))
        else:
            last.stub = list(self.machine.exit_tray)
            last.ended = enum_name("Verdict", int(values[1]))

    # -- the fault ------------------------------------------------------------------------------

    def _strike(self) -> None:
        """Let the row's faults happen, or wait for their occasion."""
        self.struck = True
        behind_a_door = self.row.faults[0].startswith("door_opened")
        for each in self.row.faults:
            if self.row.faults[-1].startswith("power_cut") and each != self.row.faults[-1]:
                self.machine.strike(each)  # before the power goes
                continue
            self._arm(PlannedFault.parse(each), self.row.phase, self.row.card, behind_a_door)

    def _strike_again(self) -> None:
        self.struck_again = True
        self._arm(PlannedFault.parse(self.row.then), self.row.then_phase, self.row.then_card)

    def _arm(self, fault: PlannedFault, phase: str, card: str, behind_a_door: bool = False) -> None:
        """Have a fault happen at a card of a phase that begins now."""
        machine = self.machine
        number = 0 if card == ONCE else self._number(fault, phase, card)
        if fault.kind in CARD_KINDS:
            self._arm_card(fault, phase, card, behind_a_door)
        elif number and not self._needs_no_card(fault):
            machine.strike(replace(fault, card=number))
        elif number:
            self._awaited.append((COUNTED_AT[fault.place][0], number, fault))
            self.device.on_step = self._look
        elif fault.kind in AT_ONCE:
            later_us = machine.agenda.now_us + self._into(phase, card)
            machine.strike(replace(fault, seconds=later_us / 1_000_000))
        else:
            machine.strike(fault)

    def _number(self, fault: PlannedFault, phase: str, card: str) -> int:
        """The card of a phase that begins now, as the machine counts cards at a place; 0 if none passes."""
        machine = self.machine
        counted = sum(machine.faults.cards[each] for each in COUNTED_AT[fault.place])
        passes = passing(fault.place, phase)
        if not passes:
            return 0
        if phase == STUB and fault.place not in ("exit", "exit_tray"):
            passes -= 1  # the first card of the stub was drawn behind the last stack
        if fault.place == "exit":
            counted -= len(machine.deal_track.cards())
        return counted + which(card, passes)

    def _needs_no_card(self, fault: PlannedFault) -> bool:
        """Whether it is a fault of a sensor that cards do not pass: no card is its occasion."""
        return fault.kind.endswith("_sensor") and fault.place not in EDGE_SENSORS

    def _into(self, phase: str, card: str) -> int:
        """How far into a phase in which no card passes a fault happens."""
        last = LASTS_US.get(phase, AT_ONCE_US + MARGIN_US) - MARGIN_US
        return {FIRST: MARGIN_US, MIDDLE: (last + MARGIN_US) // 2}.get(card, last)

    def _arm_card(self, fault: PlannedFault, phase: str, card: str, behind_a_door: bool) -> None:
        """An unseen hand finds the first, the middle or the last card of what is to come."""
        machine = self.machine
        if fault.place == "tray" and phase == SHUFFLE and card != FIRST:
            drawn = {MIDDLE: 26, LAST: 51}[card]
            self._awaited.append(("tray", machine.faults.cards["tray"] + drawn, replace(fault, card=1)))
            self.device.on_step = self._look
            return
        of = PASSING[phase].get("shoe", 0) if fault.place == "shoe" else 0
        lies = which(card, of or 52)
        if behind_a_door:
            later_s = (machine.agenda.now_us + AT_ONCE_US) / 1_000_000
            machine.strike(replace(fault, seconds=later_s))
        else:
            put_in = 0 if getattr(machine, fault.place) else machine.effects.put_in[fault.place]
            machine.strike(replace(fault, card=put_in + lies))

    def _look(self) -> None:
        """Let happen what waits for a card that was drawn by now."""
        cards = self.machine.faults.cards
        due = [each for each in self._awaited if cards[each[0]] >= each[1]]
        for each in due:
            self._awaited.remove(each)
            self.machine.strike(each[2])

    def _to_the_board(self, fault: PlannedFault) -> None:
        """Faults of records and clock, which the machine does not have."""
        if fault.kind == "wrong_clock":
            self.device.clock_wrong_by_s = WRONG_BY_S
        elif fault.kind == "unknown_clock":
            self.device.clock_known = False
        elif fault.kind == "corrupted_record":
            self._flip_a_bit()
        else:
            self.torn = True
            self.chip.power.cut_after(TORN_AFTER_BYTES)

    def _flip_a_bit(self) -> None:
        """Of the core's record that counts."""
        record = self.device.memory.load("core")
        assert record is not None
        self.chip.flip(bytes(self.chip.cells).index(record) + 5, 3)

    def happened_us(self) -> int | None:
        """When the last of the row's faults really happened; None if one has not."""
        when = [self._when(each) for each in self.row.faults]
        known = [each for each in when if each is not None]
        return max(known) if len(known) == len(when) else None

    def then_us(self) -> int | None:
        """When the second fault of a pair happened; None if it has not."""
        return self._when(self.row.then) if self.row.then else None

    def _when(self, text: str) -> int | None:
        fault = PlannedFault.parse(text)
        if fault.kind == "torn_record":
            return self.cut_us if self.torn else None
        for each in self.machine.faults.happened:
            if (each.kind, each.place) == (fault.kind, fault.place):
                return each.at_us
        return None

    # -- the cycle ------------------------------------------------------------------------------

    def play(self) -> None:
        """The cycle, as far as the machine lets it."""
        assert self.open_table()
        self.originals = [card for cards in self.machine.truth().values() for card in cards]
        assert len(self.originals) == 104
        try:
            self._cycle()
            self._enter("end")
        except NoMore:
            pass
        except PowerCut:
            self._power_fails()
        self.device.run_until_idle()

    def _power_fails(self) -> None:
        """The power was cut, by the mechanism or in the middle of a record; it comes back."""
        self.cut_us = self.machine.agenda.now_us
        self.machine.power_off()
        self.chip.power.restore()
        self.device.memory = self._memory()
        self.device.reboot()

    def _enter(self, phase: str) -> None:
        if self.struck and self.at == self.row.phase and self.happened_us() is None:
            raise NotOccurred
        self.at = phase
        if phase == self.row.phase and not self.struck:
            self._strike()
        if phase == self.row.then_phase and not self.struck_again:
            self._strike_again()

    def _cycle(self) -> None:
        self._enter(IDLE)
        self.device.run_for(IDLE_US)
        self._enter(OPENING)
        self._open_round()
        for stack in range(1, HANDS + 1):
            self._enter(STACK_PHASES.get(stack, BETWEEN))
            self._begin_stack(stack)
            self._shoe_comes()
        self._enter(STUB)
        self._end_round()
        self._enter(TRANSFER)
        self._transfer()
        self._together()
        self._enter(NEXT_TRANSFER)
        self._transfer()
        self._enter(NEXT_SHUFFLE)
        self._feed(self._deck_in_hand())
        self.wait(lambda: self.shuffler_state in STANDS)
        self._enter(NEXT_ROUND)
        self._open_round()
        for stack in range(1, HANDS + 1):
            self._begin_stack(stack)
            self._shoe_comes()
        self._end_round()
        self._take()

    def _together(self) -> None:
        """Round 2, while the deck of round 1 is shuffled and stored."""
        half = self.device.controller.shuffler
        deck_id = self._deck_in_hand()
        self._enter(OPENING)
        self._open_round()
        self._enter(LOAD)
        self._begin_stack(1)
        self._load(deck_id)
        self._shoe_comes()
        self._enter(SHUFFLE)
        self._command("shuffle", deck_id)
        self._stack_while(2, lambda: half.inserted >= 1)
        self._come_to(lambda: half.entered >= 26)
        self._stack_while(3, lambda: half.inserted >= 27)
        self._come_to(lambda: half.entered >= 51)
        self._stack_while(4, lambda: half.state != shuffler.FEEDING)
        self._come_to(lambda: half.state == shuffler.STORING)
        self._enter(SHELF)
        self._stack_while(5, lambda: half.state == shuffler.STORED)
        self._enter(ROUND_END)
        for stack in (6, 7):
            self._begin_stack(stack)
            self._shoe_comes()
        self._end_round()

    def _come_to(self, done: Callable[[], bool]) -> None:
        """Wait until the shuffler half has come so far, or stands."""
        self.wait(lambda: done() or self.shuffler_state in STANDS)

    def _stack_while(self, stack: int, done: Callable[[], bool]) -> None:
        """Deal a stack, and wait until the shuffler half has come so far, or stands."""
        self._begin_stack(stack)
        self._come_to(done)
        self._shoe_comes()

    def _feed(self, deck_id: int) -> None:
        self._load(deck_id)
        if not self._command("shuffle", deck_id):
            self._give_up()

    def _load(self, deck_id: int) -> None:
        cards, self.decks[deck_id] = self.decks[deck_id], []
        self.machine.load(cards)
        self.device.run_for(HAND_OVER_US)

    def _deck_in_hand(self) -> int:
        """The deck that is to be fed: the one of the round before."""
        deck_id = self.device.view().last_played
        self._need(deck_id in self.decks and bool(self.decks[deck_id]))
        return deck_id

    def _open_round(self) -> None:
        self._need(self.shoe_state == shoe.READY)
        view = self.device.view()
        round_id = view.last_round + 1
        cards = self.machine.truth()["shoe"]
        if not self._command("open_round", round_id, view.shoe_deck):
            self._give_up()
        self.rounds.append(RoundSeen(round_id, cards, self.machine.agenda.now_us))
        self._command("close_bets", round_id, HANDS)

    def _begin_stack(self, stack: int) -> None:
        if self.shoe_state == shoe.ROUND_OPEN:
            self.rounds[-1].begun += self._command("dispense_stack", self.rounds[-1].round_id, stack)

    def _shoe_comes(self) -> None:
        """Wait for the stack and take it. A shoe that stopped ends the cycle when the shuffler stands."""
        self.wait(lambda: self.shoe_state not in (shoe.DISPENSING, shoe.LOADING))
        if self.shoe_state == shoe.STACK_WAITING:
            self.device.run_for(REACH_US)
            if self.shoe_state == shoe.STACK_WAITING:
                self.rounds[-1].stacks.append(self._take())
        if self.shoe_state == shoe.STACK_WAITING:
            self.gave_up_waiting = True
            self._give_up()
        if self.shoe_state != shoe.ROUND_OPEN:
            self._give_up()
        if len(self.rounds[-1].stacks) < self.rounds[-1].begun:  # another hand has taken it
            self.rounds[-1].stacks.append(list(self.machine.last_taken))

    def _give_up(self) -> NoReturn:
        """The cycle cannot go on; the shuffler may finish what it does."""
        self.wait(lambda: self.shuffler_state in STANDS)
        raise NoMore

    def _end_round(self) -> None:
        if not self._command("end_round", self.rounds[-1].round_id):
            self._give_up()
        self.wait(lambda: self.shoe_state != shoe.EJECTING)
        if self.shoe_state != shoe.STUB_WAITING:
            self._give_up()

    def _transfer(self) -> None:
        """Take the stub; the pusher brings the other deck."""
        self._take()
        self.collect()
        if self.shoe_state == shoe.STUB_WAITING:
            self.gave_up_waiting = True
            self._give_up()
        self.wait(lambda: self.shoe_state != shoe.LOADING)
        self._need(self.shoe_state == shoe.READY)

    def _need(self, so: bool) -> None:
        if not so:
            self._give_up()

    def _command(self, name: str, *values: int) -> bool:
        moves = name in ("dispense_stack", "end_round")
        self.motions += moves  # also if the power goes in its midst
        try:
            self.device.command(name, *values)
        except Refusal as refusal:
            self.motions -= moves
            self._note_refusal(name, refusal)
            return False
        return True

    def _note_refusal(self, name: str, refusal: Refusal) -> None:
        why = refusal.error
        if why == "not_allowed":
            why = enum_name("Forbidden", int(refusal.values[0]))
        self.refused.append((self.machine.agenda.now_us, self.at, f"{name} refused: {why}"))

    def _note_refusals(self) -> None:
        """From now on, also of what the dealer asks for on his own account."""
        give = self.device.command

        def command(name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
            try:
                return give(name, *values, role=role)
            except Refusal as refusal:
                self._note_refusal(name, refusal)
                raise

        self.device.command = command  # type: ignore[method-assign]

    def _unblock(self) -> None:
        self.motions += 1  # a purge is asked for
        super()._unblock()

    # -- back again -----------------------------------------------------------------------------

    def bring_back(self) -> bool:
        """Service, floor and dealer put everything right; whether a correct round can be dealt then."""
        self.at = "back again"
        if self.gave_up_waiting and self.shoe_state == shoe.STACK_WAITING:
            reason = enum_number("VoidReason", "floor_order")
            self.device.command("void_round", self.rounds[-1].round_id, reason, role="floor")
        self.is_back = True
        self.machine.repair()
        self.device.run_until(lambda: True)
        if self.device.clock_wrong_by_s:
            self._replace_aged_decks()
        self.device.clock_known = True
        if self.row.then_phase == RECOVERY:
            self._note_refusals()
            self._strike_again()
        wanted = 2 if self.row.then_phase == RECOVERY else 1  # with two, both decks are dealt
        in_a_row = 0
        for _ in range(BACK_AGAIN_IF_DISTURBED if self.row.then else BACK_AGAIN):
            try:
                correct = self._deals_a_correct_round()
                in_a_row = in_a_row + 1 if correct else 0
                if in_a_row == wanted:
                    return True
                if correct:
                    continue
                if correct is False and not self.row.then:
                    return False
            except Refusal:
                pass  # one thing after another: a half is cleared when it is asked again
            except (RecoveryFailed, WaitTimeout):
                if not self.row.then:
                    return False
            except PowerCut:
                self._power_fails()
            if self.row.then:
                self._help()
        return False

    def _deals_a_correct_round(self) -> bool | None:
        """Recover and deal a round; whether it was correct, and so told. None if it did not come to that."""
        self.recover()
        deck = self.machine.truth()["shoe"]
        if not self.deal_round():
            return None
        seen = RoundSeen(self.round_id, deck)
        seen.stacks, seen.stub = self.hands_dealt, list(self.machine.exit_tray)
        claimed = ("round_ended", (self.round_id, CORRECT, len(seen.stub), 52))
        if self.device.reports[-1] == ("round_ended", (self.round_id, UNPROVED, len(seen.stub), 52)):
            return None  # the path was inspected by eye: only the next round's count is proved
        return self.device.reports[-1] == claimed and seen.counts_right() and seen.from_the_top()

    def _help(self) -> None:
        """Service mends what the second fault broke, the floor ends the round, the host tells the time."""
        self.machine.repair()
        self.device.run_until(lambda: True)
        if self.shoe_state in (shoe.ROUND_OPEN, shoe.STACK_WAITING):
            reason = enum_number("VoidReason", "floor_order")
            self.device.command("void_round", self.round_id, reason, role="floor")
        if self.device.clock_wrong_by_s:
            self._replace_aged_decks()
        self.device.clock_known = True

    def _replace_aged_decks(self) -> None:
        """The clock is set right. A deck that was seen too old stays so, and leaves the table."""
        self.device.clock_wrong_by_s = 0
        self.device.run_until_idle()
        self._mend()
        self.machine.take_tray()
        self.device.run_until_idle()
        self.device.command("empty_machine", role="floor")
        self.wait(self._emptied)
        self.collect()
        for deck in self.device.view().decks:
            self.device.command("remove_deck", deck.deck_id, HOURS, role="floor")

    def held(self) -> list[PhysicalCard]:
        """Every card there is, each once."""
        held = [card for cards in self.machine.truth().values() for card in cards]
        held += [card for cards in self.decks.values() for card in cards]
        assert len({id(card) for card in held}) == len(held)
        return held
