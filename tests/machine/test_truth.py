"""Truth against belief: random operators and faults, and after every step the machine is held to what is so.

People do what they like, rightly or wrongly; parts fail; the power goes. Whatever happens, nothing is claimed
that the mechanism contradicts, a round is correct in the physical world or void, a refused command has
changed nothing, and the firmware takes no step that its tables do not have. ``Truth`` has only faults that a
sensor can see, and allows no wrong claim at all; in ``Meddled``, hands also do what no sensor sees.

A step is one thing that somebody does or that happens, with everything held to the truth after it. Hypothesis
chooses the rules, the same ones every time; what is done within one is drawn from the life's own seed and
noted with a failure. Nothing is shrunk, which would take longer than to read the notes.
"""

import contextlib
from collections.abc import Callable
from random import Random
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.machine.tables import Table
from tests.sweeps import Amount

from sabot_firmware import hardware, persistent_state, shoe, shuffler
from sabot_firmware.critical import HEAD_SIZE, CriticalMemory
from sabot_firmware.decks import AUTOMATED_SHOE, CARD_BY_CARD, HAND, MANUAL_SHOE
from sabot_firmware.rounds import CORRECT, UNPROVED
from sabot_protocol.codec import enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.modes import SHOE_STEPS, SHUFFLER_STEPS, steps_of
from sabot_protocol.record_store import RECORDS
from sabot_simulators import chips
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import Dealer, RecoveryFailed
from sabot_simulators.emulated_device import OPENING_UTC_S, WaitTimeout
from sabot_simulators.mechanism.faults import KINDS, PlannedFault
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card, new_deck, one_card
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice

pytestmark = pytest.mark.slow

EXAMPLES, STEPS_EACH = 80, 25  # of each life, where all are run
STEPS_AN_EXAMPLE = 60  # at least, with what the rules do by themselves
HASTE = (0, 100_000, 1_000_000, 5_000_000, 16_000_000)
FEEDING = ("short", "long", "short and long", "mixed", "face up", "cover", "another deck")
ROLES = ("floor", "service")
ANYTHING = (
    *("register", "remove", "one_deck", "shuffle", "take_the_tray", "open_round", "simulate", "close_bets"),
    *("dispense", "draw", "burn", "end_round", "void_round", "take", "put_back", "look_at_faces", "set_game"),
    *("deliver", "load_shoe", "end_shoe", "move_door", "empty_by_hand", "pick_one", "pick_one"),
    *("clear_any_fault", "clear_the_fault"),
    *("machine_command", "service", "jog", "calibrate", "press", "set_clock", "locate", "repair"),
)
VOUCHING = ("return_to_service", "service_mode", "path_inspected")  # by these a person vouches for a half
WORKS = ("jog", "clear_the_fault", "heat", "calibrate", "empty_by_hand", "clear_any_fault", "move_door")
DOORS = (hardware.SHUFFLER_DOOR, hardware.SHOE_DOOR)
FAULTS = range(1, 24)
POWER_CUT = enum_number("VoidReason", "power_cut")
MOVING = (shoe.DISPENSING, shoe.EJECTING, shoe.LOADING)
CHIP_SIZE = 14336
CORE_AT = sum(2 * (HEAD_SIZE + most) for _, most in RECORDS)
SHUFFLER_AFTER = steps_of("ShufflerState", SHUFFLER_STEPS)
SHOE_AFTER = steps_of("ShoeState", SHOE_STEPS)

# What no sensor of this machine sees, or what is there where nobody looks again.
HIDDEN = [
    *("missing_card@store", "missing_card@shoe", "extra_card@store", "extra_card@shoe"),
    *("other_deck_card@store", "other_deck_card@shoe", "face_up_card@store", "face_up_card@shoe"),
    *("aligned_double@shoe", "hand_in_exit@exit_tray"),
]
SEEN = [f"{kind}@{place}" for kind, (_, places) in KINDS.items() for place in places]
SEEN = [each for each in SEEN if each not in HIDDEN]


class OrderedMachine(SimulatedMachine):
    """A machine that counts the orders it is given."""

    orders = 0

    def run(self, roller: int, direction: int) -> None:
        self.orders += 1
        super().run(roller, direction)

    def elevate(self, position_um: int) -> None:
        self.orders += 1
        super().elevate(position_um)

    def home(self) -> None:
        self.orders += 1
        super().home()

    def grip(self, closed: bool) -> None:
        self.orders += 1
        super().grip(closed)

    def shelve(self, down: bool) -> None:
        self.orders += 1
        super().shelve(down)

    def push(self, forward: bool) -> None:
        self.orders += 1
        super().push(forward)

    def measure(self) -> None:
        self.orders += 1
        super().measure()


class Truth(RuleBasedStateMachine):
    """One table's life."""

    faults: ClassVar[list[str]] = SEEN
    made: ClassVar[int] = 0

    @initialize(seed=st.binary(min_size=8, max_size=8), opened=st.booleans())
    def switch_on(self, seed: bytes, opened: bool) -> None:
        self.random = Random(seed)
        self.machine = OrderedMachine(self.random)
        self.machine.on_fault = self.upset
        self.chip = chips.SimFram(CHIP_SIZE)
        self.corrupted = False
        self.device = PythonDevice(self.machine, self.random.randrange, self.memory())
        self.oracle = Oracle(self.device)
        self.device.on_report = self.heard
        self.dealer = Dealer(self.device, hands=3)
        self.cards: set[int] = set()
        self.owned: list[PhysicalCard] = []  # so that no identity is used again
        self.open_round_id = 0  # what the table believes
        self.highest_round = 0
        self.voided: set[int] = set()
        self.dealt: set[tuple[int, int]] = set()
        self.hands_got: list[int] = []  # cards that came out with each stack, taken too early or not
        self.came_out = 0  # cards that had come out before the newest stack
        self.said = [-1, -1]
        self.gave_up = 0
        self.device.run_until_idle()
        if opened:
            assert self.dealer.open_table()

    def memory(self) -> CriticalMemory:
        return CriticalMemory(self.chip, others=persistent_state.RECORDS)

    # -- what the device says -------------------------------------------------------------------

    def heard(self, name: str, values: tuple[int | str, ...]) -> None:
        """Hold every report to what is so."""
        self.oracle.report(name, values)
        numbers = [each for each in values if isinstance(each, int)]
        if name == "shuffler_changed":
            self.stepped(0, numbers[0], SHUFFLER_AFTER)
        elif name == "shoe_changed":
            self.stepped(1, numbers[0], SHOE_AFTER)
        elif name == "stack_dispensed":
            assert numbers[0] == self.open_round_id
            assert (numbers[0], numbers[1]) not in self.dealt
            self.dealt.add((numbers[0], numbers[1]))
            self.hands_got.append(self.came_since())
        elif name == "round_ended":
            assert numbers[0] == self.open_round_id
            self.round_ended(*numbers)
        elif name == "round_voided":
            assert numbers[0] not in self.voided or not self.open_round_id
            self.voided.add(numbers[0])
            self.open_round_id = 0

    def stepped(self, half: int, state: int, after: tuple[int, ...]) -> None:
        before, self.said[half] = self.said[half], state
        assert before < 0 or after[before] >> state & 1, f"half {half} from {before} to {state}"

    def round_ended(self, round_id: int, verdict: int, stub: int, count: int) -> None:
        if verdict == CORRECT:
            right = set(self.hands_got) <= {3} and sum(self.hands_got) + self.came_since() == 52
            assert count == 52
            assert stub + 3 * len(self.hands_got) == 52
            assert right or self.excused()
        if verdict in (CORRECT, UNPROVED):
            self.open_round_id = 0
            assert round_id not in self.voided

    def came_since(self) -> int:
        """How many cards fell into the exit tray since this was last asked."""
        before, self.came_out = self.came_out, self.machine.faults.cards["exit_tray"]
        return self.came_out - before

    def excused(self) -> bool:
        """Whether anything has happened that no sensor sees."""
        return any(f"{each.kind}@{each.place}" in HIDDEN for each in self.machine.faults.happened)

    # -- doing things -----------------------------------------------------------------------------

    def observed(self) -> tuple[object, ...]:
        """Everything that a refused command must leave as it is."""
        controller = self.device.controller
        current = controller.dealing.round
        for deck in controller.persistent.decks.in_use:
            deck.aged_s = 0  # looking at the clock ages a deck
        return (
            controller.shuffler.state,
            controller.shoe.state,
            controller.shuffler.jam,
            controller.shoe.jam,
            controller.shuffler.stored_deck,
            controller.shuffler.feeding_deck,
            controller.shoe.deck,
            controller.persistent.pack(),
            controller.service.emptying,
            current,
            (current.bets_closed, tuple(current.stacks)) if current is not None else None,
            self.machine.orders,
            self.machine.display,
            len(self.device.reports),
            tuple(controller.whereabouts(deck.deck_id)[1][4] for deck in controller.persistent.decks.in_use),
        )

    def ask(self, name: str, *values: int | str, role: str = "table") -> bool:
        """Give a command; whether it was accepted."""
        if name in VOUCHING:
            self.overlook(name)
        before = self.observed()
        try:
            self.device.command(name, *values, role=role)
        except Refusal:
            assert self.observed() == before, f"{name} was refused, and yet something changed"
            return False
        except PowerCut:
            self.cut()
            return False
        self.settle()
        return True

    def overlook(self, act: str) -> None:
        """Whoever has the machine in hand looks at nothing."""
        for half in range(len(DOORS)):
            self.machine.overlook(half, "a visitor", act)

    def settle(self, us: int = 0) -> None:
        """Let time pass."""
        try:
            if us:
                self.device.run_for(us)
            else:
                self.device.run_until(lambda: True)
        except PowerCut:
            self.cut()

    def cut(self) -> None:
        """The power has gone, and comes back."""
        self.chip.power.restore()
        opened, self.open_round_id = self.open_round_id, 0
        was_said = len(self.device.reports)
        self.device.memory = self.memory()
        self.said = [-1, -1]
        self.hands_got = []
        self.device.reboot()
        controller = self.device.controller
        if controller.persistent.damaged:
            assert self.corrupted
            self.highest_round = 0
            self.voided, self.dealt = set(), set()
        elif opened:
            void = ("round_voided", (opened, POWER_CUT))
            ended = (
                controller.persistent.round_id == opened
                and controller.persistent.verdict != 0
                and not controller.persistent.void
            )
            assert void in self.device.reports[was_said:] or ended
        self.corrupted = False
        assert controller.dealing.round is None
        for deck in controller.persistent.decks.in_use:
            assert not controller.whereabouts(deck.deck_id)[0]
        self.settle()

    def upset(self, fault: PlannedFault) -> None:
        """Faults of memory and clock, which the machine does not have."""
        if fault.kind == "unknown_clock":
            self.device.clock_known = False
        elif fault.kind == "wrong_clock":
            self.device.clock_wrong_by_s = self.random.choice((-86400, 3600, 30000, 10**6))
        elif fault.kind == "torn_record":
            self.chip.power.cut_after(self.random.randrange(120))
        else:
            size = HEAD_SIZE + dict(persistent_state.RECORDS)["core"]
            self.chip.flip(CORE_AT + self.random.randrange(2) * size + self.random.randrange(100), 3)
            self.corrupted = True

    def deck_ids(self) -> list[int]:
        return [deck.deck_id for deck in self.device.controller.persistent.decks.in_use] or [1]

    # -- rules ----------------------------------------------------------------------------------------

    @rule(times=st.integers(1, 6))
    def play(self, times: int) -> None:
        """People do what is right, some things in a row."""
        for _ in range(times):
            self.do_what_is_right(self.random.choice(HASTE))
            self.hold()

    @rule(times=st.integers(2, 9))
    def play_in_no_hurry(self, times: int) -> None:
        """The same, and let everything end that was begun."""
        for _ in range(times):
            self.do_what_is_right(16_000_000)
            self.hold()

    @rule()
    def feed_wrongly(self) -> None:
        """A deck comes into the tray that is not as it should be."""
        deck_id, how = self.random.choice(self.deck_ids()), self.random.choice(FEEDING)
        note(f"fed {deck_id} {how}")
        self.feed_and_shuffle(deck_id, how, self.random.choice(HASTE))

    @rule(times=st.integers(1, 5), rightly=st.booleans())
    def do_anything(self, times: int, rightly: bool) -> None:
        """Somebody does something, whatever comes of it; or right and other things in turn."""
        for _ in range(times):
            if rightly:
                self.do_what_is_right(self.random.choice(HASTE))
            what, chance = self.random.choice(ANYTHING), self.random.randrange(12)
            note(f"{what} {chance}")
            getattr(self, what)(chance)
            self.hold()

    @rule(times=st.integers(0, 4))
    def strike(self, times: int) -> None:
        """Something goes wrong, at once or at its next occasion, while people go on."""
        fault = self.random.choice(self.faults)
        note(fault)
        try:
            self.machine.strike(fault)
        except PowerCut:
            self.cut()
        self.settle()
        self.hold()
        self.play(times)

    @rule(times=st.integers(1, 5))
    def strike_twice(self, times: int) -> None:
        """Two things at once."""
        self.strike(0)
        self.strike(times)

    @rule()
    def wait(self) -> None:
        self.settle(self.random.choice((1, 1_000, 30_000, 150_000, 700_000, 4_000_000, 17_000_000)))

    @rule(again=st.booleans())
    def power_cut(self, again: bool) -> None:
        """At any moment, and perhaps again while it comes back."""
        self.settle(self.random.randrange(800_000))
        self.cut()
        if again:
            self.settle(self.random.randrange(900_000))
            self.hold()
            self.cut()

    @rule(times=st.integers(3, 9))
    def change_the_game(self, times: int) -> None:
        """Empty the machine for another method, and play by it."""
        self.ask("empty_machine", role="floor")
        for _ in range(3):
            self.settle(9_000_000)
            self.machine.take_exit()
            self.settle()
        self.set_game(self.random.randrange(12))
        self.play_in_no_hurry(times)

    @rule(times=st.integers(1, 6), out=st.booleans())
    def maintain(self, times: int, out: bool) -> None:
        """Bring everything out, then service, or out of order for a while."""
        self.ask("empty_machine", role="floor")
        for _ in range(3):
            self.settle(9_000_000)
            self.machine.take_exit()
            self.settle()
        self.ask("mark_out_of_order" if out else "service_mode", *(() if out else (1,)), role="service")
        for _ in range(times):
            what = self.random.choice((*WORKS, self.random.choice(ANYTHING)))
            chance = self.random.randrange(12)
            note(f"{what} {chance}")
            getattr(self, what)(chance)
            self.settle(self.random.choice(HASTE))
            self.hold()
        self.ask("return_to_service" if out else "service_mode", *(() if out else (0,)), role="service")

    @rule()
    def put_right(self) -> None:
        """Somebody who knows how brings the table back to play, if it can be."""
        self.device.clock_known, self.device.clock_wrong_by_s = True, 0
        try:
            self.machine.repair()
            self.settle()
            for name in ("return_to_service", "service_mode"):
                self.overlook(name)
                with contextlib.suppress(Refusal):
                    self.device.command(name, *((0,) if name == "service_mode" else ()), role="service")
            self.device.run_until_idle()
            with contextlib.suppress(Refusal):
                self.device.command("set_game", "Three Card Poker", AUTOMATED_SHOE, 1, 3, 8, role="floor")
            self.dealer.recover()
        except PowerCut:
            self.cut()
        except (RecoveryFailed, WaitTimeout, Refusal):
            self.gave_up += 1

    # -- people who do it right -----------------------------------------------------------------------

    def do_what_is_right(self, haste: int) -> None:
        """The next thing to do, by what the device says of itself; then so much time passes."""
        controller = self.device.controller
        state, method = controller.shoe.state, controller.persistent.game.method
        current = controller.dealing.round
        round_id = self.highest_round + 1
        if state in (shoe.STACK_WAITING, shoe.STUB_WAITING):
            self.machine.take_exit()
            self.settle(10_000)
        elif current is not None and state == shoe.ROUND_OPEN:
            if not current.bets_closed:
                self.ask("close_bets", current.round_id, self.random.choice((2, 3, 3, 5)))
            elif method == CARD_BY_CARD and len(current.stacks) < 2:
                self.ask("draw_cards", current.round_id, len(current.stacks) + 1, self.random.randrange(1, 7))
                self.settle(min(haste, 1_000_000))
            elif current.next_stack() is not None and method != CARD_BY_CARD:
                self.ask("dispense_stack", current.round_id, len(current.stacks) + 1)
                self.settle(min(haste, 1_000_000))
            else:
                self.ask("end_round", current.round_id)
                self.settle(min(haste, 7_000_000))
        elif state == shoe.READY and method in (AUTOMATED_SHOE, CARD_BY_CARD) and self.random.random() < 0.9:
            self.try_to_open("open_round", round_id, controller.shoe.deck)
        elif state == shoe.READY:
            self.ask("end_shoe", controller.shoe.deck or 1)
            self.settle(min(haste, 7_000_000))
        elif state == shoe.EMPTY and method != AUTOMATED_SHOE and self.deliver_or_load(haste):
            pass
        elif controller.shuffler.state in (shuffler.IDLE, shuffler.STORED):
            self.dealer.collect()
            busy = (controller.shoe.deck, controller.shuffler.stored_deck)
            waiting = [each for each in self.deck_ids() if each not in busy and self.dealer.decks.get(each)]
            if waiting and not self.machine.tray:
                self.feed_and_shuffle(waiting[0], "right", haste)
            elif len(controller.persistent.decks.in_use) < 2:
                self.register(self.random.randrange(2))
            else:
                self.settle(haste)
        elif controller.shuffler.jam is not None or controller.shoe.jam is not None or state == shoe.UNPROVED:
            self.put_right()
        else:
            self.settle(haste)

    def deliver_or_load(self, haste: int) -> bool:
        """For a method other than stacks of three; whether there was anything to do."""
        controller, machine = self.device.controller, self.machine
        if controller.persistent.delivered and controller.persistent.game.method == CARD_BY_CARD:
            machine.open_door(hardware.SHOE_DOOR)
            self.settle()
            self.dealer.collect()
            cards = self.dealer.decks.get(controller.persistent.delivered, [])
            self.dealer.decks[controller.persistent.delivered] = []
            if self.random.random() < 0.5:
                cards.insert(self.random.randrange(len(cards) + 1), cover_card(self.random))
            machine.load_shoe(cards)
            machine.close_door(hardware.SHOE_DOOR)
            self.settle()
            return self.ask("load_shoe", controller.persistent.delivered, role="floor")
        if controller.shuffler.stored_deck and self.ask("deliver_deck", controller.shuffler.stored_deck):
            self.settle(min(haste, 9_000_000))
            return True
        return False

    def feed_and_shuffle(self, deck_id: int, how: str, haste: int) -> None:
        """Collect what came out, lay a deck into the tray, rightly or not, and have it shuffled."""
        self.dealer.collect()
        cards = self.dealer.decks.setdefault(deck_id, [])
        fed = list(cards)
        self.random.shuffle(fed)
        back = self.dealer.backs.get(deck_id, hardware.RED)
        at = self.random.randrange(len(fed) + 1)
        if how in ("short", "short and long") and fed:
            fed.pop(at - 1)
        if how in ("long", "short and long"):
            fed.insert(at, one_card(back, self.random))
        elif how == "mixed" and fed:
            fed[at - 1] = one_card(hardware.RED + hardware.BLUE - back, self.random)
        elif how == "face up" and fed:
            fed[at - 1].face_up = True
        elif how == "cover":
            fed.insert(at, cover_card(self.random))
        elif how == "another deck":
            deck_id = self.random.choice(self.deck_ids())
        loaded = set(map(id, fed))
        cards[:] = [card for card in cards if id(card) not in loaded]
        self.machine.load(fed)
        self.settle()
        if self.ask("shuffle", deck_id):
            self.settle(haste)

    # -- people who do anything ---------------------------------------------------------------------------

    def register(self, chance: int) -> None:
        back = (hardware.RED, hardware.BLUE, hardware.RED, hardware.COVER)[chance % 4]
        deck_id = self.dealer._last_deck_id + (0 if chance > 9 else 1)
        if deck_id and self.ask("register_deck", deck_id, back, OPENING_UTC_S, role="floor"):
            self.dealer._last_deck_id = deck_id
            self.dealer.backs[deck_id] = back
            self.dealer.decks[deck_id] = new_deck(back, self.random)

    def remove(self, chance: int) -> None:
        ids = [*self.deck_ids(), 999]
        self.ask("remove_deck", ids[chance % len(ids)], chance % 5 + 1, role="floor")

    def one_deck(self, chance: int) -> None:
        self.ask("play_one_deck", chance % 2, role="floor")

    def shuffle(self, chance: int) -> None:
        ids = [*self.deck_ids(), 999]
        self.ask("shuffle", ids[chance % len(ids)])

    def take_the_tray(self, chance: int) -> None:
        self.machine.take_tray()
        self.settle()

    def open_round(self, chance: int) -> None:
        number = (1, 1, 0, -1, 7, 1)[chance % 6]
        deck_id = (
            self.device.controller.shoe.deck if chance < 8 else self.random.choice([*self.deck_ids(), 999])
        )
        self.try_to_open("open_round", max(self.highest_round + number, 1), deck_id or 1)

    def try_to_open(self, name: str, round_id: int, *values: int) -> None:
        before = self.open_round_id
        if self.ask(name, round_id, *values, role="floor" if name == "simulate_round" else "table"):
            assert not before
            assert round_id > self.highest_round
            self.highest_round = round_id
            if round_id not in self.voided:
                self.open_round_id = round_id
            self.hands_got = []
            self.came_since()

    def simulate(self, chance: int) -> None:
        self.try_to_open("simulate_round", self.highest_round + 1, self.device.controller.shoe.deck or 1)

    def round_id(self, chance: int) -> int:
        return max(self.highest_round - (1 if chance == 11 else 0) + (1 if chance == 10 else 0), 1)

    def close_bets(self, chance: int) -> None:
        self.ask("close_bets", self.round_id(chance), (2, 3, 17)[chance % 3])

    def dispense(self, chance: int) -> None:
        current = self.device.controller.dealing.round
        stack = max((len(current.stacks) if current is not None else 0) + (1, 1, 0, 2)[chance % 4], 1)
        asked = (self.round_id(chance), stack)
        right = current is not None and asked == (current.round_id, current.next_stack())
        if self.ask("dispense_stack", *asked):
            assert right
            assert (self.highest_round, stack) not in self.dealt

    def draw(self, chance: int) -> None:
        current = self.device.controller.dealing.round
        draw = (len(current.stacks) if current is not None else 0) + (1, 1, 0, 2)[chance % 4]
        self.ask("draw_cards", self.round_id(chance), max(draw, 1), chance + 1)

    def burn(self, chance: int) -> None:
        self.ask("burn_cards", min(chance + 1, 10))

    def end_round(self, chance: int) -> None:
        self.ask("end_round", self.round_id(chance))

    def void_round(self, chance: int) -> None:
        self.ask("void_round", self.round_id(chance), 1, role="floor")

    def take(self, chance: int) -> None:
        """Take what is there, whatever is to come."""
        self.machine.snatch_exit()
        self.settle()

    def put_back(self, chance: int) -> None:
        """A hand is back in the exit, which is empty."""
        machine = self.machine
        moving = self.device.controller.shoe.state in MOVING
        if not machine.exit_tray and not machine.deal_track.bodies and not moving:
            machine.meddle_with_exit()
            self.settle()

    def look_at_faces(self, chance: int) -> None:
        if chance % 2:
            self.ask("reveal_round", self.round_id(chance))
        self.ask("faces", self.round_id(chance), chance % 4 + 1)

    def set_game(self, chance: int) -> None:
        method = (AUTOMATED_SHOE, AUTOMATED_SHOE, MANUAL_SHOE, HAND, CARD_BY_CARD, CARD_BY_CARD)[chance % 6]
        self.ask("set_game", "Three Card Poker", method, 2 if chance == 11 else 1, 3, 8, role="floor")

    def deliver(self, chance: int) -> None:
        ids = self.deck_ids()
        self.ask("deliver_deck", self.device.controller.shuffler.stored_deck or ids[chance % len(ids)])

    def load_shoe(self, chance: int) -> None:
        ids = self.deck_ids()
        if chance % 3 and not self.machine.level(hardware.SHOE_DOOR):
            self.machine.load_shoe(self.machine.handed_out[: (1, 52)[chance % 2]])
            self.machine.close_door(hardware.SHOE_DOOR)
            self.settle()
        self.ask(
            "load_shoe", self.device.controller.persistent.delivered or ids[chance % len(ids)], role="floor"
        )

    def end_shoe(self, chance: int) -> None:
        self.ask("end_shoe", self.device.controller.shoe.deck or 1)

    def move_door(self, chance: int) -> None:
        door = DOORS[chance % 2]
        if self.machine.level(door):
            self.machine.open_door(door)
        else:
            self.overlook("closed a door")
            self.machine.close_door(door)
        self.settle()

    def empty_by_hand(self, chance: int) -> None:
        door = DOORS[chance % 2]
        if chance > 3 and self.machine.level(door):
            self.machine.open_door(door)
            self.settle()
        if not self.machine.level(door):
            self.machine.empty_by_hand(door)
            self.settle()
            if chance > 1:
                self.machine.close_door(door)
                self.settle()

    def pick_one(self, chance: int) -> None:
        """Take a card off the shelf or out of the shoe through its door, or lay one there."""
        door = DOORS[chance % 2]
        machine = self.machine
        machine.open_door(door)
        self.settle()
        cards = machine.shoe if door == hardware.SHOE_DOOR else machine.store
        if cards and chance % 4 < 2:
            machine.handed_out.append(cards.pop(self.random.randrange(len(cards))))
        elif cards and len(cards) < machine.capacity:
            cards.insert(self.random.randrange(len(cards)), one_card(cards[0].back, self.random))
        machine.presence()
        self.settle()
        if chance < 10:
            self.overlook("picked one card")
            machine.close_door(door)
            self.settle()

    def clear_any_fault(self, chance: int) -> None:
        self.ask("clear_fault", self.random.choice(FAULTS), role=ROLES[chance % 2])

    def clear_the_fault(self, chance: int) -> None:
        """Mend, open, empty or not, close, and say that it is clear."""
        machine, controller = self.machine, self.device.controller
        door = DOORS[chance % 2]
        half = controller.shoe if door == hardware.SHOE_DOOR else controller.shuffler
        if half.jam is None:
            return
        cause = half.jam.cause
        machine.repair()
        machine.open_door(door)
        self.settle()
        if chance < 9:
            machine.empty_by_hand(door)
        else:
            self.overlook("took nothing out")
        machine.close_door(door)
        self.settle()
        halves = (controller.shuffler, controller.shoe)
        jams = [each.jam.cause for each in halves if each.jam and each.state == each.states.jammed]
        if self.ask("clear_fault", enum_number("Fault", cause), role=ROLES[chance % 4 // 2]):
            assert cause in jams  # service, or out of order, is not ended so
        self.settle(1_500_000)

    def machine_command(self, chance: int) -> None:
        names = ("empty_machine", "empty_machine", "mark_out_of_order", "return_to_service", "self_test")
        self.ask(names[chance % 5], role="service")

    def service(self, chance: int) -> None:
        self.ask("service_mode", 0 if chance > 7 else 1, role="service")
        if chance % 2:
            self.jog(chance)

    def jog(self, chance: int) -> None:
        part = self.random.randrange(1, 8)
        self.ask("jog", part, self.random.choice((0, 1, 1, -1, 9000, 200_000)), role="service")

    def calibrate(self, chance: int) -> None:
        # Blades that stand elsewhere than they are said to find no gap between cards: not so far off here.
        what, value = ((1, 20), (1, 9999), (2, 295), (2, 305), (2, 0), (1, 0))[chance % 6]
        self.ask("calibrate", what, value, role="service")

    def heat(self, chance: int) -> None:
        self.machine.strike("over_temperature")
        self.settle()

    def press(self, chance: int) -> None:
        button = (hardware.LEFT_BUTTON, hardware.RIGHT_BUTTON)[chance % 2]
        self.machine.press(button)
        self.settle()
        self.machine.release(button)
        self.settle()

    def set_clock(self, chance: int) -> None:
        self.device.clock_known = chance != 0
        self.device.clock_wrong_by_s = (0, 0, 5000, -5000, 10**6, 0)[chance % 6]

    def locate(self, chance: int) -> None:
        self.ask("locate", chance + 1)

    def repair(self, chance: int) -> None:
        self.machine.repair()
        self.settle()

    # -- what always holds ----------------------------------------------------------------------------------

    @invariant()
    def hold(self) -> None:
        """Hold the device to all of it; this is one step."""
        type(self).made += 1
        self.nothing_is_claimed_that_is_not_so()
        self.every_card_is_in_one_place()
        self.the_round_is_what_the_table_believes()
        self.a_half_that_is_jammed_says_why_and_turns_nothing()

    def nothing_is_claimed_that_is_not_so(self) -> None:
        assert [wrong for wrong in self.oracle.wrong if wrong.unseen is None and not self.excused()] == []
        controller, machine = self.device.controller, self.machine
        if controller.shoe.state in MOVING or controller.shuffler.state == shuffler.STORING:
            return  # cards are between two places
        for deck in controller.persistent.decks.in_use:
            proved, cards = controller.whereabouts(deck.deck_id)
            if not proved:
                continue
            assert sum(cards) == controller.persistent.game.cards()
            places = [machine.count(place) for place in ("chamber", "store", "shoe")]
            for claimed, real in zip(cards[2:5], places, strict=True):
                assert not claimed or claimed == real or self.excused(), (cards, places)

    def every_card_is_in_one_place(self) -> None:
        held = [card for cards in self.machine.truth().values() for card in cards]
        held += [card for cards in self.dealer.decks.values() for card in cards]
        now = set(map(id, held))
        assert len(now) == len(held)
        assert self.cards <= now, "a card has vanished"
        if len(now) > len(self.cards):
            self.owned += [card for card in held if id(card) not in self.cards]
            self.cards = now

    def the_round_is_what_the_table_believes(self) -> None:
        controller = self.device.controller
        current = controller.dealing.round
        assert (current.round_id if current is not None else 0) == self.open_round_id
        assert controller.persistent.round_open == (current is not None)
        assert controller.persistent.round_id == self.highest_round
        states = (shoe.ROUND_OPEN, shoe.DISPENSING, shoe.STACK_WAITING, shoe.EJECTING)
        assert current is None or controller.shoe.state in states

    def a_half_that_is_jammed_says_why_and_turns_nothing(self) -> None:
        controller, machine = self.device.controller, self.machine
        for half, rollers in (
            (controller.shuffler, machine._rollers[:2]),
            (controller.shoe, machine._rollers[2:]),
        ):
            if half.state == half.states.jammed:
                assert half.jam is not None
                assert half.idle()
                assert not any(roller.direction for roller in rollers)
            if half.state == half.states.idle and half.idle():
                assert half.jam is None
            out = (half.states.out_of_order, half.states.service, half.states.starting, half.states.jammed)
            assert half.state in out or not controller.persistent.out_of_order


@pytest.mark.rule("MD3 5.B")
def test_a_hand_that_reaches_the_deck_while_it_is_pushed_leaves_nothing_proved() -> None:
    """Found by the lives below: the shuffler's door opened and closed again while the pusher worked."""
    table = Table(1)
    table.device.run_until_idle()
    deck_id = table.new_deck(hardware.RED)
    table.feed(deck_id)
    table.wait(lambda: table.shoe_state == shoe.LOADING)
    table.device.run_for(100_000)
    machine = table.machine
    machine.open_door(hardware.SHUFFLER_DOOR)
    table.device.run_until(lambda: True)
    machine.handed_out.append(machine.store.pop(5))
    machine.close_door(hardware.SHUFFLER_DOOR)
    table.device.run_for(3_000_000)
    assert not table.device.controller.whereabouts(deck_id)[0]
    assert table.faults() == [("pusher", "door_opened")]
    table.recover()
    assert table.play_round()


def test_a_door_whose_opening_was_not_heard_is_looked_at_when_the_pusher_arrives() -> None:
    table = Table(1)
    table.device.run_until_idle()
    deck_id = table.new_deck(hardware.RED)
    table.feed(deck_id)
    table.wait(lambda: table.shoe_state == shoe.LOADING)
    machine, heard = table.machine, table.machine.on_edge
    machine.on_edge = lambda sensor, level, at_us: None
    machine.sensors.set(hardware.SHUFFLER_DOOR, 0)
    machine.on_edge = heard
    table.device.run_for(3_000_000)
    assert table.faults() == [("pusher", "door_opened")]
    assert not table.device.controller.whereabouts(deck_id)[0]


class Meddled(Truth):
    """A life in which hands also do what no sensor sees."""

    faults: ClassVar[list[str]] = SEEN + HIDDEN * 3


class HonestAgain(Truth):
    """The same rules from another beginning."""


class MeddledAgain(Meddled):
    """The same rules from another beginning."""


LIVES = (Truth, HonestAgain, Meddled, MeddledAgain)


@pytest.mark.rule("MD3 5.B")
@pytest.mark.rule("MD3 10.C")
@pytest.mark.rule("MD3 13.D")
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_the_machine_never_claims_what_is_not_so(
    life: type[Truth],
    amount: Amount,
    record_property: Callable[[str, object], None],
) -> None:
    life.made = 0
    examples = amount(EXAMPLES // 16, full=EXAMPLES // 2, campaign=EXAMPLES)
    run_state_machine_as_test(
        life,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS_EACH,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate,),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    record_property("steps", life.made)
    assert life.made >= examples * STEPS_AN_EXAMPLE, f"{life.made} steps"
