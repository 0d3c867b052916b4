"""The fault table: every fault in every phase of the machine's work, and what the machine did about it.

Each row plays one table with two decks through two rounds and the shuffles between them (``PHASES`` are spans
of that cycle), lets one fault happen at its phase, and goes on as far as the machine lets it. Then the table
is brought back and must deal a correct round. ``python -m tests.machine.fault_table`` writes
``docs/faults.md``.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from zlib import crc32

from sabot_firmware import hardware, kept, shoe, shuffler
from sabot_firmware.critical import HEAD_SIZE, CriticalMemory
from sabot_protocol.codec import enum_name, enum_number
from sabot_protocol.errors import Refusal
from sabot_simulators import chips
from sabot_simulators.dealer import CannotGoOn, Dealer
from sabot_simulators.in_process import InProcess
from sabot_simulators.mechanism.cards import Card
from sabot_simulators.mechanism.faults import KINDS, RUNNERS_KINDS, Fault
from sabot_simulators.mechanism.machine import Machine, PowerCut
from sabot_simulators.mechanism.mishaps import CARD_KINDS
from sabot_simulators.watch import UNSEEN, Watch

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "faults.md"
HANDS = 7
STACK_CARDS = 3

# The phases, in the order of the cycle
IDLE, FIRST_STACK, MIDDLE_STACK, LAST_STACK = "idle", "first stack", "middle stack", "last stack"
STUB, TRANSFER, LOAD = "stub", "transfer", "load"
FIRST_CARD, MIDDLE_CARD, LAST_CARD, SHELF = "first card", "middle card", "last card", "shelf"
PHASES = {
    LOAD: "a deck is laid into the tray, while the other is dealt",
    FIRST_CARD: "the shuffle begins, while the other deck is dealt",
    MIDDLE_CARD: "26 cards have come in, while the other deck is dealt",
    LAST_CARD: "one card is left in the tray, while the other deck is dealt",
    SHELF: "the shuffled deck is lowered onto the shelf, while the other is dealt",
    TRANSFER: "the stub is taken and the pusher brings the next deck into the shoe",
    FIRST_STACK: "the first stack is dealt, the other deck on the shelf",
    MIDDLE_STACK: "the fourth of seven",
    LAST_STACK: "the seventh",
    STUB: "the rest is ejected and counted",
    IDLE: "between rounds: a deck in the shoe, the other on the shelf",
}
# What comes behind the last phase
ROUND_AFTER, TRANSFER_AFTER, SHUFFLE_AFTER = "the round's end", "the next transfer", "the next shuffle"
NEXT_ROUND = "the next round"
STACK_PHASES = {1: FIRST_STACK, 4: MIDDLE_STACK, 7: LAST_STACK}

# How a row ends
FOUND, LATER, MENDED, TOLERATED, WAITS = "found", "found later", "mended", "tolerated", "waits"
NEVER = "does not occur"

AT_ONCE_US = 150_000  # how far into the phase that happens which needs no occasion
IDLE_US = 1_000_000
HAND_OVER_US = 500_000  # between laying cards into the tray and the command to shuffle them
WRONG_BY_S = 9 * 3600
TORN_AFTER_BYTES = 40
COMBINATIONS = (
    "missing_card@tray + extra_card@tray",
    "missing_card@tray + duplicate_card@tray",
    "missing_card@store + extra_card@store",
    "missing_card@shoe + extra_card@shoe",
    "aligned_double@shoe + extra_card@shoe",
    "corrupted_record@controller + power_cut@controller",
)

Place = str
Report = tuple[int, str, str, tuple[int | str, ...]]  # when, in which phase, name, values


class NotOccurred(Exception):
    """The phase is over, and the fault has found no occasion."""


class NoMore(Exception):
    """The machine does not let the cycle go on."""


@dataclass(frozen=True)
class Row:
    """One fault, or several at once, in one phase."""

    faults: tuple[str, ...]
    phase: str

    @property
    def name(self) -> str:
        """As the page has it."""
        return " + ".join(self.faults)

    def __str__(self) -> str:
        return f"{self.name}, {self.phase}"


@dataclass
class Outcome:
    """What the machine did."""

    cls: str
    said: str = ""
    after_ms: int | None = None
    where: str = ""
    round: str = ""
    cards: str = ""
    reason: str = ""


def rows() -> list[Row]:
    """Every row of the table."""
    single = [(f"{kind}@{place}",) for kind, (_, places) in KINDS.items() for place in places]
    combined = [tuple(each.split(" + ")) for each in COMBINATIONS]
    return [Row(faults, phase) for faults in single + combined for phase in PHASES]


class WatchedMachine(Machine):
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
    deck: list[Card]
    stacks: list[list[Card]] = field(default_factory=list)
    stub: list[Card] = field(default_factory=list)
    ended: str = ""
    """The verdict, or why it is void."""

    def counts_right(self) -> bool:
        """Whether every hand has three, and all together are a deck."""
        counts = [len(stack) for stack in self.stacks]
        return counts == [STACK_CARDS] * HANDS and len(self.stub) == 52 - HANDS * STACK_CARDS

    def composed_right(self) -> bool:
        """Whether it was dealt from 52 different cards of one back."""
        cards = [card for stack in self.stacks for card in stack] + self.stub
        return len({card.number for card in cards}) == 52 and len({card.back for card in cards}) == 1


class Scene(Dealer):
    """One row, played."""

    device: InProcess

    def __init__(self, row: Row) -> None:
        self.row = row
        self.random = Random(crc32(str(row).encode()))
        self.machine = WatchedMachine(self.random)
        self.chip = chips.SimFram()
        super().__init__(InProcess(self.machine, self.random.randrange, self._memory()), HANDS)
        self.watch = Watch(self.device)
        self.device.each_report = self._heard
        self.machine.on_fault = self._to_the_board
        self.at = "opening"
        self.struck = False
        self.torn = False
        self.heard: list[Report] = []
        self.refused: list[tuple[int, str, str]] = []
        self.rounds: list[RoundSeen] = []
        self.gave_up_waiting = False
        self.cut_us: int | None = None

    def _memory(self) -> CriticalMemory:
        return CriticalMemory(self.chip, kept.RECORDS)

    def _heard(self, name: str, values: tuple[int | str, ...]) -> None:
        self.heard.append((self.machine.agenda.now_us, self.at, name, values))
        self.watch.report(name, values)
        if name == "round_voided" and self.rounds and self.rounds[-1].round_id == values[0]:
            self.rounds[-1].ended = "void: " + enum_name("VoidReason", int(values[1]))
        elif name == "round_ended" and self.rounds:
            self.rounds[-1].stub = list(self.machine.exit_tray)
            self.rounds[-1].ended = enum_name("Verdict", int(values[1]))

    # -- the fault ------------------------------------------------------------------------------

    def _strike(self) -> None:
        """Let the row's faults happen, or wait for their occasion."""
        self.struck = True
        later_s = (self.machine.agenda.now_us + AT_ONCE_US) / 1_000_000
        for each in self.row.faults:
            fault = Fault.parse(each)
            if fault.kind == "dirty_sensor" and self._cards_pass(fault.place):
                self.machine.strike(each + ":1")  # just behind the next card, where it tells worst
            elif fault.kind in CARD_KINDS or fault.kind in RUNNERS_KINDS:
                self.machine.strike(each)
            else:
                self.machine.strike(each if self._needs_a_card(fault) else f"{each}+{later_s}")

    def _cards_pass(self, sensor: str) -> bool:
        if sensor == "exit":
            return self.row.phase not in (IDLE, TRANSFER)
        return self.row.phase in (FIRST_CARD, MIDDLE_CARD, LAST_CARD)

    def _needs_a_card(self, fault: Fault) -> bool:
        return fault.kind in NEED_OCCASION

    def _to_the_board(self, fault: Fault) -> None:
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
        memory = self.device.memory
        assert isinstance(memory, CriticalMemory)
        memory.load("core")
        record = memory._layout["core"]
        self.chip.flip(record.at(record.current) + HEAD_SIZE + 5, 3)

    def happened_us(self) -> int | None:
        """When the last of the row's faults really happened; None if one has not."""
        happened = self.machine.faults.happened
        if self.torn:
            return self.cut_us
        return happened[-1].at_us if len(happened) >= len(self.row.faults) else None

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
        except (PowerCut, chips.PowerCut):
            self._power_fails()
        self.device.run_until_still()

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

    def _cycle(self) -> None:
        self._enter(IDLE)
        self.device.run_for(IDLE_US)
        self._open_round()
        for stack in range(1, HANDS + 1):
            self._enter(STACK_PHASES.get(stack, "the stacks between"))
            self._begin_stack(stack)
            self._shoe_comes()
        self._enter(STUB)
        self._end_round()
        red, blue = self.rounds[0].deck, list(self.machine.store)
        assert red and blue
        self._enter(TRANSFER)
        self._transfer()
        self._together()
        self._enter(TRANSFER_AFTER)
        self._transfer()
        self._enter(SHUFFLE_AFTER)
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
        half = self.device.core.shuffler
        deck_id = self._deck_in_hand()
        self._open_round()
        self._enter(LOAD)
        self._begin_stack(1)
        cards, self.decks[deck_id] = self.decks[deck_id], []
        self.machine.load(cards)
        self.device.run_for(HAND_OVER_US)
        self._shoe_comes()
        self._enter(FIRST_CARD)
        self._shuffle(deck_id)
        self._stack_while(2, lambda: half.inserted >= 1)
        self._come_to(lambda: half.entered >= 26)
        self._enter(MIDDLE_CARD)
        self._stack_while(3, lambda: half.inserted >= 27)
        self._come_to(lambda: half.entered >= 51)
        self._enter(LAST_CARD)
        self._stack_while(4, lambda: half.state != shuffler.FEEDING)
        self._come_to(lambda: half.state == shuffler.STORING)
        self._enter(SHELF)
        self._stack_while(5, lambda: half.state == shuffler.STORED)
        self._enter(ROUND_AFTER)
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

    def _shuffle(self, deck_id: int) -> None:
        if self.shuffler_state in (shuffler.IDLE, shuffler.STORED):
            self._command("shuffle", deck_id)

    def _feed(self, deck_id: int) -> None:
        self._need(self.shuffler_state in (shuffler.IDLE, shuffler.STORED))
        cards, self.decks[deck_id] = self.decks[deck_id], []
        self.machine.load(cards)
        self.device.run_for(HAND_OVER_US)
        if not self._command("shuffle", deck_id):
            raise NoMore

    def _deck_in_hand(self) -> int:
        """The deck that is to be fed: the one of the round before."""
        deck_id = self.device.core.kept.decks.last_played
        self._need(deck_id in self.decks and bool(self.decks[deck_id]))
        return deck_id

    def _open_round(self) -> None:
        self._need(self.shoe_state == shoe.READY)
        core = self.device.core
        round_id = core.kept.round_id + 1
        cards = self.machine.truth()["shoe"]
        if not self._command("open_round", round_id, core.shoe.deck, HANDS):
            raise NoMore
        self.rounds.append(RoundSeen(round_id, cards))
        self._command("close_bets", round_id)

    def _begin_stack(self, stack: int) -> None:
        if self.shoe_state == shoe.ROUND_OPEN:
            self._command("dispense_stack", self.rounds[-1].round_id, stack)

    def _shoe_comes(self) -> None:
        """Wait for the stack and take it. A shoe that stopped ends the cycle when the shuffler stands."""
        self.wait(lambda: self.shoe_state not in (shoe.DISPENSING, shoe.LOADING))
        if self.shoe_state == shoe.STACK_WAITING:
            self.rounds[-1].stacks.append(self._take())
        if self.shoe_state == shoe.STACK_WAITING:
            self.gave_up_waiting = True
            self._wait_then_give_up()
        if self.shoe_state != shoe.ROUND_OPEN:
            self._wait_then_give_up()

    def _wait_then_give_up(self) -> None:
        """The round is over; the shuffler may finish what it does."""
        self.wait(lambda: self.shuffler_state in STANDS)
        raise NoMore

    def _end_round(self) -> None:
        if not self._command("end_round", self.rounds[-1].round_id):
            raise NoMore
        self.wait(lambda: self.shoe_state != shoe.EJECTING)
        if self.shoe_state != shoe.STUB_WAITING:
            self._wait_then_give_up()

    def _transfer(self) -> None:
        """Take the stub; the pusher brings the other deck."""
        self._take()
        self.collect()
        if self.shoe_state == shoe.STUB_WAITING:
            self.gave_up_waiting = True
            raise NoMore
        self.wait(lambda: self.shoe_state != shoe.LOADING)
        self._need(self.shoe_state == shoe.READY)

    def _need(self, so: bool) -> None:
        if not so:
            self._wait_then_give_up()

    def _command(self, name: str, *values: int) -> bool:
        try:
            self.device.command(name, *values)
        except Refusal as refusal:
            why = refusal.error
            if why == "not_allowed":
                why = enum_name("Forbidden", int(refusal.values[0]))
            self.refused.append((self.machine.agenda.now_us, self.at, f"{name} refused: {why}"))
            return False
        return True


STANDS = (shuffler.IDLE, shuffler.STORED, shuffler.JAMMED, shuffler.DOOR_OPEN, shuffler.UNPROVED)
NEED_OCCASION = (
    "misfeed", "double_feed", "aligned_double", "slip", "snag", "stuck", "missed_switch", "lost_steps",
    "grip_slip", "stack_not_taken",
)  # fmt: skip


