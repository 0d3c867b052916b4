"""A device whose reports also go to a host over a wire that loses, damages and repeats bytes.

The soak gives its commands to the controller directly. The host asks what a host may ask at any time.
It is held to this: each event arrives once, in order, as the device reported it; what does not arrive is
named in a gap, and a gap ends a boot or a memory.
"""

from collections.abc import Callable
from typing import Any

from sabot_firmware.critical import Fram
from sabot_protocol.codec import CODEC
from sabot_protocol.notifications import EventGap, EventReceived, Notification, SessionDown
from sabot_simulators.emulated_device import CommandValue, SteppedDevice
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

LOST, DAMAGED, REPEATED = 0.05, 0.03, 0.03  # of what goes over the wire, in each direction
ASKED = ("last_round", "whereabouts")  # over the wire; commands go to the controller
CATCHING_UP_US = 20_000_000  # within which a host has heard everything, whatever was lost
SOON_US = 1_000


class LossyHostDevice(HostedDevice):
    """A device with a host that listens."""

    def __init__(self, machine: SimulatedMachine, draw: Callable[[int], int] | None, chip: Fram) -> None:
        self.different: list[str] = []
        """What the host was told otherwise than it was reported."""
        self.compared = 0
        """How many events arrived that the controller had reported."""
        self._reported: dict[tuple[bytes, int, int], tuple[int, bytes]] = {}
        """By memory id, boot id and n: the message and its values, as packed."""
        self._made: dict[tuple[bytes, int], int] = {}  # events of the boots that are over
        self._heard = (0, 0)  # boot id and n
        super().__init__(machine, draw, chip=chip)

    # -- the device -----------------------------------------------------------------------------

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back; the host connects again."""
        self._made[self.end.memory_id, self.end.boot_id] = self.end.events.last
        super().reboot(now_ms)

    def _connect(self) -> None:
        """Nobody waits for the host: it is there as soon as the wire lets it."""
        self.host.connect(self._now_ms())

    def _set_clock(self) -> None:
        """The soak's clock is the mechanism's, right or wrong."""

    def _utc_s(self) -> int | None:
        return SteppedDevice._utc_s(self)

    def _report(self, name: str, *values: int | str) -> None:
        PythonDevice._report(self, name, *values)
        n = self.end.emit(name, *values)
        message = CODEC.named(name)
        self._reported[self.end.memory_id, self.end.boot_id, n] = message.id, message.pack(values)

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Ask over the wire what a host may ask at any time; give the controller any other command."""
        if name in ASKED:
            return self.ask(name, *values)
        return PythonDevice.command(self, name, *values, role=role)

    # -- the wire -------------------------------------------------------------------------------

    def _carry(self, data: bytes) -> bytes:
        """What arrives of what was sent."""
        chance = self.machine.random.random()
        if chance < LOST:
            return b""
        if chance < LOST + DAMAGED:
            at = self.machine.random.randrange(len(data))
            return data[:at] + bytes((data[at] ^ 1 << self.machine.random.randrange(8),)) + data[at + 1 :]
        return data + data if chance < LOST + DAMAGED + REPEATED else data

    def _step(self) -> int | None:
        answers = len(self.happened)
        due = super()._step()
        if len(self.happened) == answers:
            return due
        new, self.happened = self.happened[answers:], self.happened[:answers]
        for each in new:
            if isinstance(each, SessionDown):
                self._connect()
                due = SOON_US if due is None else min(due, SOON_US)
            elif not self._passed(each):
                self.happened.append(each)  # an answer
        return due

    # -- the host -------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Let the host hear everything; then nothing of this boot may be missing."""
        self.run_for(CATCHING_UP_US)
        last = (self.end.boot_id, self.end.events.last)
        if self._heard != last:
            self.different.append(f"the host has heard up to {self._heard}, the device is at {last}")

    def _passed(self, each: Notification) -> bool:
        """Whether this was an event or a gap: compare it with what the device reported."""
        boot, n = self._heard
        if isinstance(each, EventReceived):
            self._heard = each.boot_id, each.n
            if each.boot_id != boot and boot:
                self._nothing_missing((boot, n), each.boot_id)
            if each.n != (n + 1 if each.boot_id == boot else 1):
                self.different.append(f"event {self._heard} came behind {(boot, n)}")
            reported = self._reported.get((self.host.memory_id, *self._heard))
            if reported is not None:  # else it is one of the wire's own
                self.compared += 1
                if reported != (each.message, each.body):
                    self.different.append(f"event {self._heard} is not what was reported")
            return True
        if isinstance(each, EventGap):
            if each.before[1] != 1:
                self.different.append(f"a gap within a boot, up to {each.before}, behind {(boot, n)}")
            self._heard = each.before[0], each.before[1] - 1
        return isinstance(each, EventGap)

    def _nothing_missing(self, heard: tuple[int, int], boot: int) -> None:
        """Without a gap, everything that the boots before this one made was heard."""
        made = {each: n for (memory_id, each), n in self._made.items() if memory_id == self.host.memory_id}
        if made.get(heard[0], 0) > heard[1] or any(made.get(each) for each in range(heard[0] + 1, boot)):
            self.different.append(f"boot {boot} began behind {heard}, and the events between are in no gap")
