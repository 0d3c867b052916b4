"""Firmware and mechanism in one process, joined in lock step of virtual time."""

from collections.abc import Callable

from sabot_firmware.shoe import Shoe
from sabot_firmware.shuffler import Shuffler
from sabot_protocol import ticks

from sabot_simulators.mechanism.machine import Machine


class Stuck(Exception):
    """Nothing is due any more, and what was waited for has not happened."""


class InProcess:
    """A machine and the two halves of the firmware that run it, at the same time."""

    def __init__(self, machine: Machine, draw: Callable[[int], int]) -> None:
        self.machine = machine
        self.shuffler = Shuffler(machine, draw)
        self.shoe = Shoe(machine)
        self._edges: list[tuple[int, int, int]] = []
        machine.on_edge = self._note
        self.each_step: Callable[[], None] = lambda: None
        """Called after every step of time, for whoever compares belief with truth."""

    def _note(self, sensor: int, level: int, at_us: int) -> None:
        self._edges.append((sensor, level, at_us & ticks.MASK))

    @property
    def now_us(self) -> int:
        """The time as the firmware has it."""
        return self.machine.agenda.now_us & ticks.MASK

    def run_until(self, done: Callable[[], bool]) -> int:
        """Let time pass until something has happened; how many microseconds that took."""
        agenda = self.machine.agenda
        began = agenda.now_us
        edges = self._edges
        while True:
            for sensor, level, at_us in edges:
                self.shuffler.edge(sensor, level, at_us, self.now_us)
                self.shoe.edge(sensor, level, at_us, self.now_us)
            edges.clear()
            dues = [half.step(self.now_us) for half in (self.shuffler, self.shoe)]
            self.each_step()
            if done():
                return agenda.now_us - began
            next_us = agenda.next_us()
            for due in dues:
                if due is not None and (next_us is None or agenda.now_us + due < next_us):
                    next_us = agenda.now_us + due
            if next_us is None:
                raise Stuck(f"nothing is due at {agenda.now_us} us")
            agenda.advance(next_us)
