"""The emulated device: firmware, the simulated machine it drives, and the simulated people at the table.

Everything that needs a device uses this interface: tests, soak, oracle, power cuts and fairness in virtual
time, and the endpoints (``endpoints/``) for hosts outside. Three kinds of firmware are behind it:

    python       ``python_device``: the shipped controller in this process
    micropython  ``micropython_device``: the same on a real MicroPython, over two pipes
    rp2040       ``rp2040.pico_device``: the board's image on an emulated Raspberry Pi Pico

An emulated device never waits and reads no clock. Its machine lives in virtual microseconds, which may run at
any speed. Its wire lives in the milliseconds of whoever serves it, because the host has timers too.
"""

from collections.abc import Callable
from importlib import import_module
from random import Random, SystemRandom
from typing import Any, Protocol

from sabot_protocol import __version__, schema, ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_protocol import Caller
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.simulated_people import SimulatedPeople
from sabot_simulators.view import View

MODEL = "Sabot simulator"
VERSION = __version__  # of every component
SIMULATOR = schema.SIMULATOR_FLAG
TEST_RNG = schema.TEST_RNG_FLAG
IDLE_US = 2_000_000  # longer than any motion takes
OPENING_UTC_S = 1_800_000_000  # the time of day when the machine is switched on
LONGEST_WAIT_US = 600_000_000  # of machine time, before a wait is given up
UNATTENDED = DeviceSettings(dealer=False)

MEMORY_FAULTS = ("absent", "damaged", "read_only", "blank", "crashes")
"""What can become of critical memory: its chip does not answer, the record of the keys is damaged, the chip
takes no writes, is blank, or is out of use because the program failed again and again."""

KINDS = {
    "python": "sabot_simulators.python_device:WiredPythonDevice",
    "micropython": "sabot_simulators.micropython_device:MicroPythonDevice",
    "rp2040": "sabot_simulators.rp2040.pico_device:PicoDevice",
}
"""The class of each kind of firmware, by the setting ``firmware``. Only the one asked for is loaded."""

Report = tuple[str, tuple[int | str, ...]]
CommandValue = int | str | bytes


class FirmwareMissing(Exception):
    """This computer lacks what a kind of firmware runs on; the text says how to get it."""


class PlugInUse(Exception):
    """Every plug of the device has a cable in it already."""


class WaitTimeout(Exception):
    """A wait in virtual time did not end: nothing is due any more, or ten minutes have passed."""


class CablePort(Protocol):
    """One cable's place at the device; ``DevicePort`` is one."""

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes from the host."""

    def poll(self, now: int, room: bool = True) -> bytes:
        """Bytes for the host; none while there is no room for them."""

    def deadline(self) -> int | None:
        """The millisecond of the wire at which ``poll`` is due by itself, or None."""


class EmulatedDevice:
    """The interface of all kinds. A kind implements the first part and joins machine and firmware.

    A kind calls ``before_command`` before a command reaches the firmware, ``command_accepted`` or
    ``command_refused`` with its result, and ``_report`` for each event. It counts ``boots``: the ports of an
    earlier boot are dead.
    """

    def __init__(
        self, machine: SimulatedMachine, settings: DeviceSettings = UNATTENDED, now_ms: int = 0
    ) -> None:
        self.machine = machine
        self.settings = settings
        self.now_ms = now_ms
        """The time of the wire."""
        self.reports: list[Report] = []
        """Every event, in order, unless ``keeps_reports`` is off: a device that is served has no end."""
        self.keeps_reports = True
        self.stacks_dispensed: list[tuple[int, int]] = []
        """The truth about stacks: (round, stack) for each that was really dealt, over all boots."""
        self.boots = 0
        """How often the power came on; ports of an earlier boot are dead."""
        self.crashed = False
        """Set before ``reboot``: the program has failed repeatedly and no longer uses critical memory."""
        self.on_report: Callable[[str, tuple[int | str, ...]], None] = lambda name, values: None
        """Called for every event."""
        self.people = SimulatedPeople(self) if settings.dealer else None
        self._power_lost = False

    @classmethod
    def from_settings(cls, random: Random, settings: DeviceSettings, now_ms: int) -> "EmulatedDevice":
        """A device with a new machine that gets its randomness from ``random``."""
        raise NotImplementedError

    # -- what a kind of firmware implements -----------------------------------------------------

    def plug(self) -> CablePort:
        """Plug in one more cable; PlugInUse if there is no place for it."""
        raise NotImplementedError

    def unplug(self, port: CablePort) -> None:
        """Pull a cable."""
        raise NotImplementedError

    def tick(self, now_ms: int) -> None:
        """Set the wire's time."""
        raise NotImplementedError

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back. Cables stay where they are; ports must be plugged again."""
        raise NotImplementedError

    def view(self) -> View:
        """The firmware's state; also inside ``on_report``."""
        raise NotImplementedError

    def next_us(self) -> int | None:
        """When anything happens next in virtual time, or None."""
        raise NotImplementedError

    def settle(self) -> int | None:
        """Do everything that is due now; when the firmware is due next (virtual us), or None."""
        raise NotImplementedError

    def advance(self, to_us: int, steps: int) -> bool:
        """Let virtual time pass up to a moment, in at most so many steps; whether it got there."""
        raise NotImplementedError

    def run(self, steps: int) -> bool:
        """Let virtual time pass while the machine works, in at most so many steps; whether work is left.

        An idle machine has none. It waits for people, for the end of its decks' hours, for a motor that
        cools, or for a fault that is planned for a time.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free what the device uses of this computer; it cannot be used any more."""

    def damage_memory(self, cause: str) -> None:
        """Let one of MEMORY_FAULTS happen to critical memory; it shows at the next power-up."""
        if cause == "crashes":
            self.crashed = True
        else:
            self._damage_memory(cause)

    def _damage_memory(self, cause: str) -> None:
        raise NotImplementedError

    # -- what all kinds share -------------------------------------------------------------------

    @property
    def flags(self) -> int:
        """The flags of its identity."""
        return SIMULATOR if self.settings.seed is None else SIMULATOR | TEST_RNG

    @property
    def now_us(self) -> int:
        """Virtual time since the machine was made."""
        return self.machine.agenda.now_us

    def restart_after_power_cuts(self) -> None:
        """From now on a planned power cut restarts the device; without this, it raises PowerCut."""

        def power_lost() -> None:
            self._power_lost = True

        self.machine.on_power_cut = power_lost

    def before_command(self, name: str, values: "tuple[Any, ...]") -> bool:
        """A command is about to reach the firmware; whether the people did anything for it."""
        return self.people is not None and self.people.before_command(name, values)

    def command_accepted(self, name: str, values: "tuple[Any, ...]") -> None:
        """The firmware has accepted that command."""
        if self.people is not None:
            self.people.command_accepted(name, values)

    def command_refused(self) -> None:
        """The firmware has refused the last command."""
        if self.people is not None:
            self.people.command_refused()

    def _report(self, name: str, *values: Any) -> None:
        """The firmware reports an event."""
        if self.keeps_reports:
            self.reports.append((name, values))
        if name == "stack_dispensed":
            self.stacks_dispensed.append((values[0], values[1]))
        self.on_report(name, values)
        if self.people is not None:
            self.people.event_reported(name, values)


class SteppedDevice(EmulatedDevice):
    """Firmware that takes edges and times and says when it is due again, wherever it runs.

    Besides ``advance`` and ``run``, for servers, it has waits in virtual time, for tests: ``run_until``,
    ``run_for``, ``run_until_idle``. ``command`` gives the controller a command without the wire.
    """

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        settings: DeviceSettings = UNATTENDED,
        now_ms: int = 0,
    ) -> None:
        """``draw`` replaces the device's generator: it returns a number below its argument."""
        super().__init__(machine, settings, now_ms)
        self.clock_known = True
        self.clock_wrong_by_s = 0
        self.on_step: Callable[[], None] | None = None
        """Called after every step of time, to compare the firmware's state with the truth."""
        self.on_command: Callable[[str, tuple[CommandValue, ...]], None] = lambda name, values: None
        """Called for every command that was accepted."""
        self._draw = draw
        self._edges: list[tuple[int, int, int]] = []
        self._edge: Callable[[int, int, int, int], None]
        """Gives the firmware an edge: sensor, level, time of the edge, time now."""
        machine.on_edge = self._note_edge

    # -- what these kinds implement -------------------------------------------------------------

    @property
    def shuffler_state(self) -> int:
        """The state of the shuffler half."""
        raise NotImplementedError

    @property
    def shoe_state(self) -> int:
        """The state of the shoe half."""
        raise NotImplementedError

    def _boot(self) -> None:
        """Start the firmware: the power has come on."""
        raise NotImplementedError

    def _step(self) -> int | None:
        """Let the firmware do what is due; microseconds until it is due again, or None."""
        raise NotImplementedError

    def _idle(self) -> bool:
        """Whether no motion runs or is about to begin."""
        raise NotImplementedError

    def _execute(self, name: str, values: tuple[CommandValue, ...], caller: Caller) -> tuple[Any, ...]:
        """Give the controller a command directly; Refusal if it refuses."""
        raise NotImplementedError

    # -- power and clocks -----------------------------------------------------------------------

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back: everything but critical memory and the mechanism is new."""
        if now_ms is not None:
            self.now_ms = now_ms
        self._power_lost = False
        self.machine.power_off()
        self.machine.power_on()
        self._restart()

    def _restart(self) -> None:
        self._edges.clear()
        self.boots += 1
        self._boot()

    def true_utc_s(self) -> int:
        """The true time of day, whatever the device's clock says."""
        return OPENING_UTC_S + self.machine.agenda.now_us // 1_000_000

    def _utc_s(self) -> int | None:
        return self.true_utc_s() + self.clock_wrong_by_s if self.clock_known else None

    def _ticks_us(self) -> int:
        """Virtual time as the firmware counts it."""
        return self.machine.agenda.now_us & ticks.MASK

    def _now_ms(self) -> int:
        """Virtual time in the wire's unit."""
        return self.machine.agenda.now_us // 1000 & ticks.MASK

    # -- virtual time ---------------------------------------------------------------------------

    def _note_edge(self, sensor: int, level: int, at_us: int) -> None:
        self._edges.append((sensor, level, at_us & ticks.MASK))

    def _give_edges(self) -> None:
        now = self.machine.agenda.now_us & ticks.MASK
        for sensor, level, at_us in self._edges:
            self._edge(sensor, level, at_us, now)
        self._edges.clear()

    def edges_pending(self) -> bool:
        """Whether there is an edge that the firmware has not been given yet."""
        return bool(self._edges)

    def settle(self) -> int | None:
        """Do everything that is due now; when the firmware is due next (virtual us), or None."""
        if self._power_lost:
            self._power_lost = False
            self.machine.power_on()
            self._restart()
        while True:
            self._give_edges()
            due = self._step()
            if not self._edges:
                return None if due is None else self.now_us + due

    def next_us(self) -> int | None:
        """When anything happens next, or None."""
        due, next_us = self.settle(), self.machine.agenda.next_us()
        if due is None or (next_us is not None and next_us < due):
            return next_us
        return due

    def advance(self, to_us: int, steps: int) -> bool:
        """Let virtual time pass up to a moment, in at most so many steps; whether it got there."""
        agenda = self.machine.agenda
        for _ in range(steps):
            due = self.settle()
            agenda.run(to_us if due is None else min(due, to_us))
            if agenda.now_us >= to_us:
                self.settle()
                return True
        return False

    def run(self, steps: int) -> bool:
        """Let virtual time pass while the machine works, in at most so many steps; whether work is left."""
        agenda = self.machine.agenda
        for _ in range(steps):
            due, next_us = self.settle(), agenda.next_us()
            if self._idle() and (next_us is None or next_us - self.now_us > IDLE_US):
                return False
            agenda.run(due)
        self.settle()  # a command that comes now must find the firmware's clock where the machine's is
        return True

    def run_until(self, done: Callable[[], bool]) -> int:
        """Let time pass until a condition holds; how many microseconds that took. Else WaitTimeout."""
        agenda = self.machine.agenda
        edges = self._edges
        began = agenda.now_us
        latest = began + LONGEST_WAIT_US
        while True:
            now_us = agenda.now_us
            if edges:  # as ``_give_edges`` does: most steps bring one
                now = now_us & ticks.MASK
                for sensor, level, at_us in edges:
                    self._edge(sensor, level, at_us, now)
                edges.clear()
            due = self._step()
            if self.on_step is not None:
                self.on_step()
            if done():
                return agenda.now_us - began
            if edges:
                continue  # ``done`` or ``on_step`` acted on the machine
            if not agenda.run(None if due is None else now_us + due):
                raise WaitTimeout(f"nothing is due at {agenda.now_us} us")
            if agenda.now_us > latest:
                raise WaitTimeout(f"ten minutes have passed at {agenda.now_us} us")

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

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Give the controller a command as if it came over the wire; Refusal if it refuses."""
        caller = Caller(b"TABLE-PC", enum_number("Role", role), True)
        answer = self._execute(name, values, caller)
        self.on_command(name, values)
        return answer


def emulate(settings: DeviceSettings, now_ms: int = 0) -> EmulatedDevice:
    """A device with the kind of firmware that the settings name, for serving to hosts.

    FirmwareMissing if this computer lacks what that kind runs on.
    """
    module, _, name = KINDS[settings.firmware].partition(":")
    kind: type[EmulatedDevice] = getattr(import_module(module), name)
    # a generator of its own: a retransmitted frame must not change the next shuffle
    seed = settings.seed if settings.seed is not None else SystemRandom().getrandbits(128)
    device = kind.from_settings(Random(f"{seed} mechanism"), settings, now_ms)
    device.keeps_reports = False
    device.restart_after_power_cuts()
    return device
