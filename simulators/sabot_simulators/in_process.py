"""Firmware and mechanism in one process, joined in lock step of virtual time."""

from collections.abc import Callable

from sabot_firmware.core import Core
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_end import Caller
from sabot_simulators.mechanism.machine import Machine

OPENING_UTC_S = 1_800_000_000  # what the clock says when the machine is switched on
TABLE = Caller(b"TABLE-PC", enum_number("Role", "table"), True)


class Stuck(Exception):
    """Nothing is due any more, and what was waited for has not happened."""


class InProcess:
    """A machine and the firmware's core that runs it; reports are kept."""

    def __init__(self, machine: Machine, draw: Callable[[int], int]) -> None:
        self.machine = machine
        self.reports: list[tuple[str, tuple[int | str, ...]]] = []
        self.clock_known = True
        self.core = Core(machine, draw, self._report, self._utc_s)
        self.shuffler = self.core.shuffler
        self.shoe = self.core.shoe
        self._edges: list[tuple[int, int, int]] = []
        machine.on_edge = self._note
        self.each_step: Callable[[], None] = lambda: None
        """Called after every step of time, for whoever compares belief with truth."""

    def _note(self, sensor: int, level: int, at_us: int) -> None:
        self._edges.append((sensor, level, at_us & ticks.MASK))

    def _report(self, name: str, *values: int | str) -> None:
        self.reports.append((name, values))

    def _utc_s(self) -> int | None:
        return OPENING_UTC_S + self.machine.agenda.now_us // 1_000_000 if self.clock_known else None

    def command(self, name: str, *values: int) -> tuple[int, ...]:
        """Give the core a command, as the wire would; Refusal if it is refused."""
        return self.core.execute(name, values, TABLE)

    @property
    def now_us(self) -> int:
        """The time as the firmware has it."""
        return self.machine.agenda.now_us & ticks.MASK

    def _step(self) -> int | None:
        """Let the firmware do what is due; microseconds until it is due again, or None."""
        return self.core.step(self.now_us)

    def run_until(self, done: Callable[[], bool]) -> int:
        """Let time pass until something has happened; how many microseconds that took."""
        agenda = self.machine.agenda
        began = agenda.now_us
        edges = self._edges
        while True:
            for sensor, level, at_us in edges:
                self.core.edge(sensor, level, at_us, self.now_us)
            edges.clear()
            due = self._step()
            self.each_step()
            if done():
                return agenda.now_us - began
            next_us = agenda.next_us()
            if due is not None and (next_us is None or agenda.now_us + due < next_us):
                next_us = agenda.now_us + due
            if next_us is None:
                raise Stuck(f"nothing is due at {agenda.now_us} us")
            agenda.advance(next_us)
