"""An emulated device: firmware somewhere, the simulated mechanism, and the people at its table.

The rest of this folder sees an object with cables: bytes in, bytes out, when it is due, and virtual time that
somebody lets pass. What runs the machine is a subclass, a kind of firmware; ``emulate`` makes the one that
the settings name:

    python       ``served_python.ServedPythonDevice``: the shipped firmware in this process
    micropython  ``served_micropython.ServedMicroPythonDevice``: the same on MicroPython, over two pipes
    rp2040       ``rp2040.pico_device.PicoDevice``: the board's image on an emulated Raspberry Pi Pico

Two clocks: the mechanism lives in virtual microseconds, which may run at any speed; the wire lives in the
milliseconds of whoever serves it, because the host at its other end has timers too.
"""

from importlib import import_module
from random import Random, SystemRandom
from typing import Protocol

from sabot_protocol import ticks
from sabot_protocol.schema import SIMULATOR_FLAG, TEST_RNG_FLAG
from sabot_simulators.endpoints.settings import Settings
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.simulated_people import SimulatedPeople

MODEL = "Sabot simulator"
VERSION = "0.1.0"  # of all it is made of
IDLE_US = 2_000_000  # longer than anything takes that somebody waits for

MEMORY_FAULTS = ("absent", "damaged", "read_only", "blank", "crashes")
"""What can become of critical memory: its chip does not answer, the record of the keys is damaged, the chip
takes no writes, is blank, or is out of use because the program failed again and again."""

KINDS = {
    "python": "sabot_simulators.endpoints.served_python:ServedPythonDevice",
    "micropython": "sabot_simulators.endpoints.served_micropython:ServedMicroPythonDevice",
    "rp2040": "sabot_simulators.rp2040.pico_device:PicoDevice",
}
"""By the setting ``firmware``: where each kind is. Only the one that is asked for is loaded."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Value, Values
    from sabot_simulators.view import View


class FirmwareMissing(Exception):
    """This computer lacks what a kind of firmware runs on; the text says how to get it."""


class PlugInUse(Exception):
    """Every plug of the device has a cable in it already."""


class Port(Protocol):
    """One cable's place at the device; ``DevicePort`` is one."""

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the host."""

    def poll(self, now: int, room: bool = True) -> bytes:
        """Bytes for the host; none while there is no room for them."""

    def deadline(self) -> int | None:
        """The tick of the wire at which ``poll`` is due by itself, or None."""


class EmulatedDevice:
    """A machine, the people at it, and what a kind of firmware fills in. It never waits and reads no clock.

    A kind fills in the methods of the first part. It calls ``asked`` before a command reaches the firmware,
    ``answered`` or ``refused`` when that has decided, and ``heard`` for everything it reports; it counts
    ``boots``, since the ports of an earlier boot are dead; and it joins ``machine`` and firmware.
    """

    def __init__(self, settings: Settings, now_ms: int = 0) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self.stacks_dispensed: list[tuple[int, int]] = []
        """The truth about stacks: (round, stack) for each that was really dealt, over all boots."""
        self.boots = 0
        """How often it was switched on; ports of an earlier boot are dead."""
        self.crashed = False
        """Set before ``reboot``: the program has failed again and again, and uses critical memory no more."""
        # one each, so that a frame sent again or a height read once more does not change the next shuffle
        mechanism = settings.seed if settings.seed is not None else SystemRandom().getrandbits(128)
        self.wire = _random(settings.seed, "wire")
        self.machine = self._new_machine(Random(f"{mechanism} mechanism"))
        self.people = SimulatedPeople(self) if settings.dealer else None

    def _new_machine(self, random: Random) -> SimulatedMachine:
        settings = self.settings
        return SimulatedMachine(random, settings.faults, settings.capacity, settings.reader)

    @property
    def flags(self) -> int:
        """What its identity says of it."""
        return SIMULATOR_FLAG if self.settings.seed is None else SIMULATOR_FLAG | TEST_RNG_FLAG

    @property
    def now_us(self) -> int:
        """Virtual time since the machine was made."""
        return self.machine.agenda.now_us

    # -- what a kind of firmware fills in -------------------------------------------------------

    def plug(self) -> Port:
        """Another cable."""
        raise NotImplementedError

    def unplug(self, port: Port) -> None:
        """A cable is pulled."""
        raise NotImplementedError

    def tick(self, now_ms: int) -> None:
        """The wire's time."""
        raise NotImplementedError

    def reboot(self, now_ms: int) -> None:
        """The power fails and comes back; cables stay where they are, ports must be plugged anew."""
        raise NotImplementedError

    def view(self) -> "View":
        """What the firmware believes; also in the midst of ``heard``."""
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
        """Let as much virtual time pass as there is work for; whether there is more.

        For a machine at rest there is none: what it waits for then is people, the hours of its decks, a motor
        that cools, or a fault that is planned for a time.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what it took of this computer; it cannot be used any more."""

    # -- what can happen to its controller ------------------------------------------------------

    def harm(self, cause: str) -> None:
        """Something of HARMS happens to critical memory; it shows at the next power-up."""
        if cause == "crashes":
            self.crashed = True
            return
        self._harm(cause)

    def _harm(self, cause: str) -> None:
        raise NotImplementedError

    # -- what it tells --------------------------------------------------------------------------

    def asked(self, name: str, values: "Values") -> bool:
        """A command is about to reach the firmware; whether anybody at the table did anything for it."""
        return self.people is not None and self.people.before(name, values)

    def answered(self, name: str, values: "Values") -> None:
        """The firmware has accepted that command."""
        if self.people is not None:
            self.people.after(name, values)

    def refused(self) -> None:
        """The firmware has refused the last command."""
        if self.people is not None:
            self.people.refused()

    def heard(self, name: str, values: "tuple[Value, ...]") -> None:
        """The firmware reports something."""
        if name == "stack_dispensed":
            self.stacks_dispensed.append((values[0], values[1]))
        if self.people is not None:
            self.people.heard(name, values)


class ServedSteppedDevice(EmulatedDevice):
    """Firmware that is told of edges and time and says when it is due again, wherever it runs."""

    def __init__(self, settings: Settings, now_ms: int = 0) -> None:
        super().__init__(settings, now_ms)
        self._edges: list[tuple[int, int, int]] = []
        self._power_lost = False
        self._opened = False  # somebody was at the contact, and the firmware begins anew for it
        self._listen()
        self._boot()

    def _listen(self) -> None:
        """Hear what the machine does."""
        self.machine.on_edge = self._note
        self.machine.on_power_cut = self._power_cut

    # -- what these fill in ---------------------------------------------------------------------

    def _start(self) -> None:
        """The power has come."""
        raise NotImplementedError

    def _edge(self, sensor: int, level: int, at_us: int, now_us: int) -> None:
        """An edge of a sensor, and when it was."""
        raise NotImplementedError

    def _step(self, now_us: int) -> int | None:
        """Let the firmware do what is due; microseconds until it is due again, or None."""
        raise NotImplementedError

    def _idle(self) -> bool:
        """Whether nothing moves or is about to."""
        raise NotImplementedError

    # -- power ----------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        """The keys were cleared while critical memory was out of use: the firmware begins with it again."""
        self.crashed, self._opened = False, True
        self._boot()
        self._opened = False

    def _boot(self) -> None:
        self._edges = []
        self.boots += 1
        self._start()

    def reboot(self, now_ms: int) -> None:
        """The power fails and comes back; cables stay where they are, ports must be plugged anew."""
        self.now_ms = now_ms
        self.machine.power_off()
        self.machine.power_on()
        self._boot()

    def _power_cut(self) -> None:
        """A planned cut: the machine is off already; it is switched on again at the next step."""
        self._power_lost = True

    # -- virtual time ---------------------------------------------------------------------------

    def _note(self, sensor: int, level: int, at_us: int) -> None:
        self._edges.append((sensor, level, at_us & ticks.MASK))

    def settle(self) -> int | None:
        """Do everything that is due now; when the firmware is due next (virtual us), or None."""
        if self._power_lost:
            self._power_lost = False
            self.machine.power_on()
            self._boot()
        while True:
            edges, self._edges = self._edges, []
            now_us = self.now_us & ticks.MASK
            for sensor, level, at_us in edges:
                self._edge(sensor, level, at_us, now_us)
            due = self._step(now_us)
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
        """Let as much virtual time pass as there is work for; whether there is more."""
        agenda = self.machine.agenda
        for _ in range(steps):
            due, next_us = self.settle(), agenda.next_us()
            if self._idle() and (next_us is None or next_us - self.now_us > IDLE_US):
                return False
            agenda.run(due)
        self.settle()  # a command that comes now must find the firmware's clock where the machine's is
        return True


def emulate(settings: Settings, now_ms: int = 0) -> EmulatedDevice:
    """A device with the kind of firmware that the settings name; FirmwareMissing if that cannot be had."""
    module, _, kind = KINDS[settings.firmware].partition(":")
    made: EmulatedDevice = getattr(import_module(module), kind)(settings, now_ms)
    return made


def _random(seed: int | None, purpose: str) -> Random:
    """A stream of its own for each purpose; the system's, where nothing has to be repeatable."""
    return SystemRandom() if seed is None else Random(f"{seed} {purpose}")
