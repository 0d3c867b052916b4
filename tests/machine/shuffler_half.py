"""The shuffler half alone on a simulated machine, fed with given draws."""

from collections.abc import Callable
from random import Random
from typing import cast

from sabot_firmware import hardware, shuffler
from sabot_firmware.rng.draws import Slots
from sabot_firmware.shuffler import Shuffler
from sabot_protocol import ticks
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine


class Half:
    """The shuffler half alone on a machine, fed with given draws."""

    def __init__(self, *faults: str) -> None:
        self.machine = SimulatedMachine(Random(1), tuple(PlannedFault.parse(each) for each in faults))
        self.machine.on_edge = lambda sensor, level, at_us: self.edges.append((sensor, level, at_us))
        self.edges: list[tuple[int, int, int]] = []
        self.half = Shuffler(self.machine)
        self.half.start(0)
        self.draws: list[int] = []
        self.asked: list[int] = []
        self.run(lambda: self.half.state == shuffler.IDLE)

    def draw(self, bound: int) -> int:
        """The slot of the next card, as ``Slots`` gives it."""
        self.asked.append(bound)
        return self.draws[bound - 1]

    def run(self, done: Callable[[], bool]) -> None:
        """Let time pass until something is so."""
        agenda = self.machine.agenda
        while True:
            now = agenda.now_us & ticks.MASK
            for sensor, level, at_us in self.edges:
                self.half.edge(sensor, level, at_us & ticks.MASK, now)
            self.edges.clear()
            due = self.half.step(now)
            while self.half.unreported:
                self.half.next_unreported()  # as a controller does
            if done():
                return
            assert agenda.run(None if due is None else agenda.now_us + due)

    def begin(self, cards: int) -> None:
        """Begin to shuffle what lies in the tray."""
        now_us = self.machine.agenda.now_us & ticks.MASK
        self.half.shuffle(1, hardware.RED, cards, cast(Slots, self), now_us)

    def shuffle(self, deck: list[PhysicalCard], draws: list[int]) -> list[PhysicalCard]:
        """The order that comes of these draws; the deck is out of the machine again then."""
        self.draws, self.asked = draws, []
        self.machine.load(list(deck))
        self.begin(len(deck))
        ended = (shuffler.STORED, shuffler.JAMMED)
        self.run(lambda: self.half.state in ended)
        assert self.half.jam is None
        order, self.machine.store = self.machine.store, []
        self.half.take_from_shelf()
        self.machine.presence()
        self.edges.clear()
        return order


def intended(deck: list[PhysicalCard], draws: list[int]) -> list[int]:
    """The order that these draws make of a deck."""
    order: list[int] = []
    for card, slot in zip(deck, draws, strict=True):
        order.insert(slot, card.number)
    return order
