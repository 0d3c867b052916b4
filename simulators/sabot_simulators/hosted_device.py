"""A whole device and its host in one process: machine, controller, both ends of the wire, in virtual time."""

from collections.abc import Callable

from sabot_firmware.controller import Controller
from sabot_firmware.critical import Fram
from sabot_firmware.event_log import EventLog
from sabot_protocol import ticks
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import EventReceived
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.emulated_device import MODEL, SIMULATOR, TEST_RNG, VERSION
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice
from sabot_simulators.simulated_host import PEOPLE, PERSON, SimulatedHost

SERIAL = b"VIRTUAL1"


class HostedDevice(SimulatedHost, PythonDevice):
    """An emulated device whose commands come over the wire from a host that owns it."""

    serial = SERIAL

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        memory: RecordStore | None = None,
        log: EventLog | None = None,
        chip: Fram | None = None,
    ) -> None:
        self.machine = machine
        self._make_keys()
        self._on_grid = False  # at the last exchange
        self._wire_dues: tuple[int | None, int | None] = (None, None)  # of both ends, since then
        self.host = self._new_host(SERIAL)
        super().__init__(machine, draw, memory, chip, log)
        self._connect()
        self._set_clock()

    def _new_controller(self) -> Controller:
        controller = super()._new_controller()
        controller.shuffle_commands.device = SERIAL
        return controller

    def _wire(self) -> None:
        keys = KeyStore(self.memory)
        if keys.get(DEVICE) is None:
            keys.set(DEVICE, self._keys[DEVICE])
            for role in PEOPLE:
                keys.set(role, self._person_key(role, SERIAL), role, PERSON)
        rng = self.controller.shuffle_commands.rng
        identity = DeviceIdentity(SERIAL, MODEL, VERSION, SIMULATOR | (TEST_RNG if rng.test else 0))
        nonces = self.machine.random.randbytes if rng.test else rng.nonce
        self.end = DeviceProtocol(
            identity, self.memory, self.controller, nonces, self._now_ms(), log=self._log
        )
        if self.controller.persistent.record_lost():
            self.end.renew_memory_id()
        self.port = DevicePort(self.end)

    def reboot(self, now_ms: int | None = None) -> None:
        """Cut the power and give it back; the host connects again."""
        super().reboot(now_ms)
        self._connect()
        self._set_clock()

    def _connect(self) -> None:
        self.host.connect(self._now_ms())
        self.run_until(lambda: self.host.up)

    def _set_clock(self) -> None:
        self.command("set_clock", self.true_utc_s(), 0)

    def _carry(self, data: bytes) -> bytes:
        """What arrives of what was sent: everything."""
        return data

    def _report(self, name: str, *values: int | str) -> None:
        super()._report(name, *values)
        self.end.emit(name, *values)

    def _utc_s(self) -> int | None:
        seconds, _, quality = self.end.utc()
        return seconds if quality else None

    def _step(self) -> int | None:
        """Core and wire: bytes go both ways until neither has more to say."""
        due = super()._step()
        now = self._now_ms()
        self.end.tick(now)
        self.end.update_contact(self.machine.contact())
        if self._wire_has_work(now):
            self._exchange(now)
            self._wire_dues = self.host.deadline(), self.port.deadline()
        for deadline in self._wire_dues:
            if deadline is not None:
                wait = ticks.diff(deadline, now) * 1000 - self.machine.agenda.now_us % 1000
                wait = wait if wait > 0 else 1000
                due = wait if due is None or wait < due else due
        return due

    def _wire_has_work(self, now: int) -> bool:
        """Whether an end of the wire may have something to do now. Most steps only move cards."""
        for deadline in self._wire_dues:
            if deadline is not None and ticks.diff(now, deadline) >= 0:
                return True
        on_grid = self.controller.on_grid()
        if on_grid != self._on_grid:
            self._on_grid = on_grid
            return True
        port = self.port
        return port.link is None or self.host.has_pending_output() or port.has_work(now)

    def _exchange(self, now: int) -> None:
        """Let bytes go both ways until neither end has more to say."""
        host_silent = port_silent = False  # an end that was silent stays so until it receives something
        while True:
            out = b"" if host_silent else self.host.poll(now)
            host_silent = not out
            if out:
                self.port.receive(self._carry(out), now)
                port_silent = False
            back = b"" if port_silent else self.port.poll(now)
            port_silent = not (back or self.end.checking())
            if back:
                self.host.receive(self._carry(back), now)
                host_silent = False
            if not out and not back:
                break
        for each in self.host.take_notifications():
            self.happened.append(each)
            if isinstance(each, EventReceived):
                self.host.acknowledge(each.boot_id, each.n)
