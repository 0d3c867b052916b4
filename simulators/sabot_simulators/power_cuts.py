"""Power cuts at any byte written and at any instant of a cycle.

A cycle is played once. At every write to critical memory and at every instant asked for, a ``Moment`` is
taken: the mechanism and the cards in people's hands as they really were, the memory's bytes, and what the
device had reported. The firmware itself is not part of it, since a cut leaves nothing of it. From a moment
the power comes back as often as one likes, each time over a copy.
"""

import struct
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from random import Random

from sabot_firmware import persistent_state, shoe
from sabot_firmware.critical import CriticalMemory
from sabot_firmware.persistent_state import RECORDS, PersistentState
from sabot_simulators.chips import SimFram
from sabot_simulators.dealer import SHUFFLED, Dealer
from sabot_simulators.emulated_device import Report
from sabot_simulators.mechanism.fault_effects import FaultEffects
from sabot_simulators.mechanism.physical_cards import PhysicalCard, new_deck
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice

CHIP_SIZE = 14336  # enough for every record, and quick to copy
PAUSE_US = 200_000  # people are not as quick as machines
GAME = ("Three Card Poker", 0, 1, 3, 8)
BLADE_UM = 40  # a calibration to be kept
BLADE = 1


class WatchedFram(SimFram):
    """An FRAM that says what is about to be written to it."""

    def __init__(self) -> None:
        super().__init__(CHIP_SIZE)
        self.before_write: Callable[[int, bytes], None] = lambda address, data: None

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes in rising order."""
        self.before_write(address, bytes(data))
        super().write(address, data)


class SlowDevice(PythonDevice):
    """A device whose people take their time before each command."""

    def command(self, name: str, *values: int | str | bytes, role: str = "table") -> tuple[int, ...]:
        """Give the controller a command after a pause."""
        self.run_for(PAUSE_US)
        return super().command(name, *values, role=role)


class SlowDealer(Dealer):
    """Somebody who lets each stack wait a little."""

    def take_stack(self) -> None:
        """Take the stack that waits, after a pause."""
        self.device.run_for(PAUSE_US)
        super().take_stack()


@dataclass
class CutPoint:
    """What there was when the power went."""

    at_us: int
    states: tuple[int, int]
    """What the shuffler and the shoe half were doing."""
    reports: tuple[Report, ...]
    """What the device had reported by then."""
    on_record: bytes
    """The controller's record as it was saved last,"""
    in_mind: bytes
    """and as it would have been saved next."""
    cells: bytes
    """The critical memory, before what was being written."""
    address: int
    writing: bytes
    """What was being written; nothing at an instant between two writes."""
    things: "tuple[SimulatedMachine, CardsInHand]"


@dataclass
class CardsInHand:
    """What people have in their hands and heads."""

    decks: dict[int, list[PhysicalCard]]
    backs: dict[int, int]
    last_deck_id: int


def _copied(things: "tuple[SimulatedMachine, CardsInHand]") -> "tuple[SimulatedMachine, CardsInHand]":
    """A deep copy. The 625 numbers of the generator's state are not copied one by one."""
    random = things[0].random
    twin = Random()
    twin.setstate(random.getstate())
    return deepcopy(things, {id(random): twin})


class Restart:
    """The power has come back: a new controller over the machine and the memory as they were."""

    def __init__(self, moment: CutPoint, written: int = 0, hands: int = 2) -> None:
        self.moment = moment
        chip = self.chip = SimFram(CHIP_SIZE)
        chip.cells[:] = moment.cells
        chip.cells[moment.address : moment.address + written] = moment.writing[:written]
        self.record = PersistentState(self.memory())
        """What was on record when the power came back."""
        self.machine, people = _copied(moment.things)
        self.machine.effects = FaultEffects(self.machine)
        self.hands = hands
        self._people = people
        self.machine.power_off()

    def memory(self) -> CriticalMemory:
        """The records in the chip, looked at anew."""
        return CriticalMemory(self.chip, others=RECORDS)

    def boot(self) -> "Restart":
        """Power on; PowerCut if one is planned for the memory."""
        machine, people = self.machine, self._people
        machine.power_on()
        self.device = PythonDevice(machine, machine.random.randrange, self.memory())
        self.oracle = Oracle(self.device)
        dealer = self.dealer = Dealer(self.device, self.hands)
        dealer.decks, dealer.backs, dealer._last_deck_id = people.decks, people.backs, people.last_deck_id
        for (
            deck
        ) in self.device.controller.persistent.decks.in_use:  # registered at the very end, and still in hand
            if deck.deck_id not in dealer.decks:
                dealer.decks[deck.deck_id] = new_deck(deck.back, machine.random)
                dealer.backs[deck.deck_id] = deck.back
        return self

    def cut(self) -> "Restart":
        """The power goes again."""
        self.machine.power_off()
        return self

    def named(self, name: str) -> list[tuple[int | str, ...]]:
        """The values of every report of a name since the power is back."""
        return [values for each, values in self.device.reports if each == name]

    def cards(self) -> list[int]:
        """Every card there is, by identity."""
        held = [card for cards in self.machine.truth().values() for card in cards]
        held += [card for cards in self._people.decks.values() for card in cards]
        return sorted(map(id, held))


def unaged(record: bytes) -> bytes:
    """A record of the controller without the age of its decks, which is written with anything else."""
    without = bytearray(record)
    at = struct.calcsize(persistent_state._HEAD)
    for deck in range(2):
        end = at + (deck + 1) * struct.calcsize(persistent_state._DECK)
        if end <= len(record):
            without[end - 4 : end] = bytes(4)
    return bytes(without)


class Cycle:
    """A table opened and two rounds played from a seed, the second while the first deck is shuffled again."""

    def __init__(self, seed: int, hands: int = 2) -> None:
        random = Random(seed)
        self._chip = WatchedFram()
        self.machine = SimulatedMachine(random)
        memory = CriticalMemory(self._chip, others=RECORDS)
        self.device = SlowDevice(self.machine, random.randrange, memory)
        self.oracle = Oracle(self.device)
        self.dealer = SlowDealer(self.device, hands)
        self.moments: list[CutPoint] = []

    def cut_at_writes(self) -> list[CutPoint]:
        """A moment for every write; each byte of it is one to cut at."""
        self._chip.before_write = self._take
        self._play()
        self._chip.before_write = lambda address, data: None
        return self.moments

    def cut_at(self, instants_us: Iterable[int]) -> list[CutPoint]:
        """A moment for each of these times."""
        live = [True]

        def take(_: int) -> None:
            if live[0]:  # not in what becomes of a moment
                self._take(0, b"")

        for instant_us in instants_us:
            self.machine.agenda.at(instant_us, take, 0)
        self._play()
        live[0] = False
        return self.moments

    def stretches(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """From when to when the two halves were in each pair of states that lasts."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        since = [0]
        agenda, controller = self.machine.agenda, self.device.controller
        states = [(controller.shuffler.state, controller.shoe.state)]

        def look() -> None:
            now = (controller.shuffler.state, controller.shoe.state)
            if now != states[0]:
                if agenda.now_us > since[0]:
                    found.setdefault(states[0], []).append((since[0], agenda.now_us))
                since[0], states[0] = agenda.now_us, now

        self.device.on_step = look
        self._play()
        return found

    def _take(self, address: int, writing: bytes) -> None:
        controller, dealer, machine = self.device.controller, self.dealer, self.machine
        told, machine.on_edge = machine.on_edge, lambda sensor, level, at_us: None
        people = CardsInHand(dealer.decks, dealer.backs, dealer._last_deck_id)
        self.moments.append(
            CutPoint(
                machine.agenda.now_us,
                (controller.shuffler.state, controller.shoe.state),
                tuple(self.device.reports),
                unaged(controller.persistent._written),
                unaged(controller.persistent.pack()),
                bytes(self._chip.cells),
                address,
                writing,
                _copied((machine, people)),
            )
        )
        machine.on_edge = told

    def _play(self) -> None:
        dealer, device = self.dealer, self.device
        device.run_until_idle()
        device.command("set_game", *GAME, role="floor")
        device.command("service_mode", 1, role="service")
        device.command("calibrate", BLADE, BLADE_UM, role="service")
        device.command("service_mode", 0, role="service")
        assert dealer.open_table()
        for _ in range(2):
            deck_id = device.controller.shoe.deck
            self._deal()
            dealer.wait(lambda: dealer.shuffler_state in SHUFFLED)
            dealer.feed(deck_id)
            dealer.wait(lambda: dealer.shoe_state == shoe.READY)
        assert dealer.shuffled()
        device.run_until_idle()
        assert not self.oracle.wrong

    def _deal(self) -> None:
        dealer = self.dealer
        assert dealer.deal_round()
        self.device.run_for(PAUSE_US)
        dealer._take()
        dealer.collect()
        assert dealer.shoe_state != shoe.STUB_WAITING
