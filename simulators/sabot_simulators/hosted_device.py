"""A whole device and its host in one process: mechanism, core and both ends of the wire, in virtual time."""

from collections.abc import Callable
from typing import Any

from sabot_firmware.controller import Controller
from sabot_firmware.event_log import EventLog
from sabot_protocol import ticks
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol
from sabot_protocol.errors import Refusal
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import EventReceived, Notification, RequestAnswered, RequestFailed
from sabot_protocol.record_store import RecordStore
from sabot_protocol.schema import SIMULATOR_FLAG, TEST_RNG_FLAG
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import CommandValue, PythonDevice

SERIAL = b"VIRTUAL1"
HOST_ID = b"TABLE-PC"
FLOOR = enum_number("Role", "floor")
SERVICE = enum_number("Role", "service")
PERSON = 7  # who has the people's keys


class CommandFailed(Exception):
    """The wire gave up on a command; the text is its name for why."""


class HostedDevice(PythonDevice):
    """An emulated device whose commands come over the wire from a host that owns it."""

    serial = SERIAL

    def __init__(
        self,
        machine: SimulatedMachine,
        draw: Callable[[int], int] | None,
        memory: RecordStore | None = None,
        log: EventLog | None = None,
    ) -> None:
        self._random = machine.random
        self._keys = {role: self._random.randbytes(32) for role in (DEVICE, FLOOR, SERVICE)}
        self._log = log
        self.host = HostProtocol(self._keys[DEVICE], CommandNumbers(HOST_ID), self._random.randbytes, SERIAL)
        self.happened: list[Notification] = []
        super().__init__(machine, draw, memory)
        self._connect()
        self._set_clock()

    def _new_controller(self) -> Controller:
        rng = self._make_rng()
        controller = Controller(self.machine, self.memory, rng, self._report, self._utc_s, self._log)
        controller.shuffle_commands.device = SERIAL
        return controller

    def _boot(self) -> None:
        """The power has come: the wire's end first, so that what the core reports is kept."""
        keys = KeyStore(self.memory)
        if keys.get(DEVICE) is None:
            keys.set(DEVICE, self._keys[DEVICE])
            for role in (FLOOR, SERVICE):  # a person's slot has the number of the role
                keys.set(role, slot_key(self._keys[role], SERIAL, role), role, PERSON)
        flags = SIMULATOR_FLAG | (TEST_RNG_FLAG if self.controller.shuffle_commands.rng.test else 0)
        identity = DeviceIdentity(SERIAL, "Sabot simulator", "0.1.0", flags)
        rng = self.controller.shuffle_commands.rng
        nonces = self._random.randbytes if rng.test else rng.nonce
        self.end = DeviceProtocol(
            identity, self.memory, self.controller, nonces, self._now_ms(), log=self._log
        )
        if self.controller.persistent.record_lost():
            self.end.renew_memory_id()
        self.port = DevicePort(self.end)
        super()._boot()

    def reboot(self) -> None:
        """Power off and on; the host connects again."""
        super().reboot()
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

    def _now_ms(self) -> int:
        return self.machine.agenda.now_us // 1000 & ticks.MASK

    def _step(self) -> int | None:
        """Core and wire: bytes go both ways until neither has more to say."""
        due = super()._step()
        now = self._now_ms()
        self.end.tick(now)
        self.end.update_contact(self.machine.contact())
        while True:
            out = self.host.poll(now)
            if out:
                self.port.receive(self._carry(out), now)
            back = self.port.poll(now)
            if back:
                self.host.receive(self._carry(back), now)
            if not out and not back:
                break
        for each in self.host.take_notifications():
            self.happened.append(each)
            if isinstance(each, EventReceived):
                self.host.acknowledge(each.boot_id, each.n)
        for deadline in (self.host.deadline(), self.port.deadline()):
            if deadline is not None:
                wait = ticks.diff(deadline, now) * 1000 - self.machine.agenda.now_us % 1000
                wait = wait if wait > 0 else 1000
                due = wait if due is None or wait < due else due
        return due

    def command(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Ask over the wire, in somebody's role, and wait for the answer; Refusal if the device refuses."""
        answer = self.ask(name, *values, role=role)
        self.on_command(name, values)
        return answer

    def ask(self, name: str, *values: CommandValue, role: str = "table") -> tuple[Any, ...]:
        """Any request of the schema: the answer's values."""
        message = CODEC.named(name)
        slot = enum_number("Role", role)
        by = None if role == "table" else (slot, self._keys[slot])
        number = self.host.request(message.id, message.pack(values), self._now_ms(), by=by)
        found: list[RequestAnswered | RequestFailed] = []

        def answered() -> bool:
            for each in self.happened:
                if isinstance(each, RequestAnswered | RequestFailed) and each.request_id == number:
                    found.append(each)
            return bool(found)

        self.run_until(answered)
        answer = found[0]
        self.happened.remove(answer)
        if isinstance(answer, RequestFailed):
            raise CommandFailed(answer.reason)
        if answer.status:
            error = CODEC.error(answer.status)
            assert error is not None
            raise Refusal(error.name, error.unpack(answer.body))
        said = CODEC.find(answer.message)
        assert said is not None
        return said.unpack(answer.body)

    def events(self) -> list[tuple[str, tuple[int, ...]]]:
        """The events that reached the host, by name."""
        told = []
        for each in self.happened:
            if isinstance(each, EventReceived):
                message = CODEC.find(each.message)
                assert message is not None
                told.append((message.name, message.unpack(each.body)))
        return told
