"""Firmware and mechanism joined in lock step of virtual time; here with both in one process."""

from collections.abc import Callable
from typing import Any

from sabot_firmware.controller import Controller
from sabot_firmware.critical import CriticalMemory, Fram
from sabot_firmware.persistent_state import RECORDS
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_protocol import ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_protocol import Caller
from sabot_protocol.record_store import RecordStore
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_side.piped_board import thermal_noise
from sabot_simulators.micropython_side.scripted_rng import ScriptedRng
from sabot_simulators.view import View, view_of

OPENING_UTC_S = 1_800_000_000  # what the clock says when the machine is switched on
LONGEST_WAIT_US = 600_000_000  # of machine time, before a wait is given up

Report = tuple[str, tuple[int | str, ...]]
CommandValue = int | str | bytes  # values of a command


class WaitTimeout(Exception):
    """What was waited for has not happened: nothing is due any more, or ten minutes have gone."""


class SteppedDevice:
    """A machine, and firmware somewhere that runs it in the machine's own time; reports are kept."""

    def __init__(self, machine: SimulatedMachine, draw: Callable[[int], int] | None) -> None:
        self.machine = machine
        self.reports: list[Report] = []
        self.clock_known = True
        self.clock_wrong_by_s = 0
        self._draw = draw
        self._edges: list[tuple[int, int, int]] = []
        self.on_step: Callable[[], None] | None = None
        """Called after every step of time, for whoever compares belief with truth."""
        self.on_report: Callable[[str, tuple[int | str, ...]], None] = lambda name, values: None
        self.on_command: Callable[[str, tuple[CommandValue, ...]], None] = lambda name, values: None
        """Called for every command that was accepted."""
        self._edge: Callable[[int, int, int, int], None]
        """Tells the firmware of an edge: sensor, level, time of the edge, time now."""
        machine.on_edge = self._note

    # -- the firmware, wherever it is -----------------------------------------------------------

    @property
    def shuffler_state(self) -> int:
        """What the shuffler half does."""
        raise NotImplementedError

    @property
    def shoe_state(self) -> int:
        """What the shoe half does."""
        raise NotImplementedError

    def view(self) -> View:
        """What the firmware believes at this moment."""
        raise NotImplementedError

    def reboot(self) -> None:
        """Power off and on: everything but critical memory and the mechanism is new."""
        raise NotImplementedError

    def _step(self) -> int | None:
        """Let the firmware do what is due; microseconds until it is due again, or None."""
        raise NotImplementedError

    def _idle(self) -> bool:
        """Whether nothing moves or is about to."""
        raise NotImplementedError

    def _execute(self, name: str, values: tuple[CommandValue, ...], caller: Caller) -> tuple[Any, ...]:
        """A request of the wire, given to the core directly."""
        raise NotImplementedError

    # -- both together --------------------------------------------------------------------------

    def _note(self, sensor: int, level: int, at_us: int) -> None:
        self._edges.append((sensor, level, at_us & ticks.MASK))

    def _report(self, name: str, *values: int | str) -> None:
        self.reports.append((name, values))
        self.on_report(name, values)

    def _utc_s(self) -> int | None:
        return self.true_utc_s() + self.clock_wrong_by_s if self.clock_known else None

    def true_utc_s(self) -> int:
        """What time it really is, whatever the device's clock says."""
        return OPENING_UTC_S + self.machine.agenda.now_us // 1_000_000

    def edges_pending(self) -> bool:
        """Whether the firmware has not yet been told of an edge."""
        return bool(self._edges)

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Give the core a command, as the wire would; Refusal if it is refused."""
        caller = Caller(b"TABLE-PC", enum_number("Role", role), True)
        answer = self._execute(name, values, caller)
        self.on_command(name, values)
        return answer

    @property
    def now_us(self) -> int:
        """The time as the firmware has it."""
        return self.machine.agenda.now_us & ticks.MASK

    def run_until(self, done: Callable[[], bool]) -> int:
        """Let time pass until something has happened; how many microseconds that took."""
        agenda = self.machine.agenda
        edges = self._edges
        began = agenda.now_us
        latest = began + LONGEST_WAIT_US
        while True:
            now_us = agenda.now_us
            if edges:
                tell, now = self._edge, now_us & ticks.MASK
                for sensor, level, at_us in edges:
                    tell(sensor, level, at_us, now)
                edges.clear()
            due = self._step()
            if self.on_step is not None:
                self.on_step()
            if done():
                return agenda.now_us - began
            if edges:
                continue  # somebody acted upon what was seen
            if not agenda.run(None if due is None else now_us + due):
                raise WaitTimeout(f"nothing is due at {agenda.now_us} us")
            if agenda.now_us > latest:
                raise WaitTimeout(f"ten minutes have gone at {agenda.now_us} us")

    def run_for(self, us: int) -> None:
        """Let so much time pass."""
        agenda = self.machine.agenda
        end = agenda.now_us + us

        def over(_: int) -> None:
            agenda.noticed = True

        agenda.at(end, over, 0)
        self.run_until(lambda: agenda.now_us >= end)

    def run_until_idle(self) -> None:
        """Let time pass until neither half moves."""
        self.run_until(lambda: self._idle() and not self._edges)


class PythonDevice(SteppedDevice):
    """A machine and the firmware's core that runs it."""

    serial = bytes(8)

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        memory: RecordStore | None = None,
        chip: Fram | None = None,
    ) -> None:
        """With a ``chip`` critical memory is what every boot finds on it."""
        super().__init__(machine, draw)
        self.memory = memory if memory is not None else RecordStore()
        self._chip = chip
        self.controller = self._new_controller()
        self._boot()

    def _new_controller(self) -> Controller:
        if self._chip is not None:
            self.memory = CriticalMemory(self._chip, RECORDS)
        return Controller(self.machine, self.memory, self._make_rng(), self._report, self._utc_s)

    def _make_rng(self) -> DeviceRng:
        """The device's own generator; a foretold one where the test draws."""
        if self._draw is not None:
            return ScriptedRng(self._draw)
        return DeviceRng(self.machine.noise, self.memory, self.serial, thermal_noise)

    def _boot(self) -> None:
        """The power has come."""
        self._edges.clear()
        self._edge = self.controller.edge
        self.controller.start(self.now_us)

    def reboot(self) -> None:
        """Power off and on: everything but critical memory and the mechanism is new."""
        self.machine.power_off()
        self.machine.power_on()
        self.controller = self._new_controller()
        self._boot()

    @property
    def shuffler_state(self) -> int:
        """What the shuffler half does."""
        return self.controller.shuffler.state

    @property
    def shoe_state(self) -> int:
        """What the shoe half does."""
        return self.controller.shoe.state

    def view(self) -> View:
        """What the core believes at this moment."""
        return view_of(self.controller)

    def _step(self) -> int | None:
        return self.controller.step(self.machine.agenda.now_us & ticks.MASK)

    def _idle(self) -> bool:
        return self.controller.idle()

    def _execute(self, name: str, values: tuple[CommandValue, ...], caller: Caller) -> tuple[Any, ...]:
        return self.controller.execute(name, values, caller)
