"""A served device whose turns a test makes one by one, an owner on one cable and a flooder on another."""

import errno
import os
import socket
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Any

import pytest

from sabot_protocol import frame
from sabot_protocol.codec import CODEC, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.frame import Decoder
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.notifications import RequestAnswered
from sabot_protocol.provisioning import HOLD_MS
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import EmulatedDevice, emulate
from sabot_simulators.endpoints.device_server import DeviceServer, HostCable, InProcessCable
from sabot_simulators.endpoints.pseudo_terminal import PseudoTerminal
from sabot_simulators.endpoints.tcp import SocketCable

TICK_MS = 5
MOST_TURNS = 2000
SMALL = 4096
KEY = bytes(range(1, 33))
NOON = 1_800_000_000
SLOT = 3
FLOORS_KEY = b"f" * 32
ROLE = enum_number("Role", "floor")


class ByHand(DeviceServer):
    """The server without its thread: ``turn`` is one round of it, at a time of the test's own."""

    def __init__(self, device: EmulatedDevice) -> None:
        self.ms = 1000
        super().__init__(device)
        self._thread.join()

    def _live(self) -> None:
        """The test does it."""

    def now_ms(self) -> int:
        return self.ms

    def turn(self) -> None:
        self.ms += TICK_MS
        self._once()

    def plug(self, cable: HostCable) -> None:
        self._plug(cable)


class Flooder:
    """A host without a key at the end of a cable of its own."""

    def __init__(self, served: ByHand, kind: str) -> None:
        self.answers: list[tuple[bytes | None, str | None]] = []
        self._decoder = Decoder()
        self.cable: HostCable
        self._ends: list[Callable[[], None]] = []
        if kind == "in-process":
            cable = InProcessCable(served)
            self.write: Callable[[bytes], int] = lambda data: cable.write(data, 0)
            self.read: Callable[[int], bytes] = lambda most: cable.read(most, 0)
            self.cable = cable
        elif kind == "tcp":
            listening = socket.create_server(("127.0.0.1", 0))
            ours = socket.socket()
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)  # so that it is full soon
            ours.connect(listening.getsockname())
            theirs, _ = listening.accept()
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
            listening.close()
            ours.setblocking(False)
            self._ends.append(ours.close)
            self.write = _not_waiting(ours.send)
            self.read = _not_waiting_bytes(ours.recv)
            self.cable = SocketCable(theirs)
        else:
            assert kind == "pty"
            terminal = PseudoTerminal()
            descriptor = os.open(terminal.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            self._ends.append(lambda: os.close(descriptor))
            self.write = _not_waiting(lambda data: os.write(descriptor, data))
            self.read = _not_waiting_bytes(lambda most: os.read(descriptor, most))
            self.cable = terminal
        self.taken: list[int] = []
        """Bytes that the device took, turn by turn."""
        take = self.cable.take

        def counted(most: int) -> bytes:
            data = take(most)
            self.taken.append(len(data))
            return data

        self.cable.take = counted  # type: ignore[method-assign]
        served.plug(self.cable)

    def flood(self, data: bytes, reads: int) -> None:
        """Write as much as the cable takes, and read so many bytes."""
        self.write(data)
        if reads:
            self.answers += self._decoder.feed(self.read(reads))

    def close(self) -> None:
        for end in self._ends:
            end()


def _not_waiting(write: Callable[[bytes], int]) -> Callable[[bytes], int]:
    def tried(data: bytes) -> int:
        try:
            return write(data)
        except BlockingIOError:
            return 0

    return tried


def _not_waiting_bytes(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def tried(most: int) -> bytes:
        try:
            return read(most)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                return b""
            raise

    return tried


class Table:
    """A device of one kind with its owner connected."""

    def __init__(self, firmware: str) -> None:
        self.device = emulate(DeviceSettings.from_query({"firmware": [firmware], "seed": ["1"]}), 1000)
        self.served = ByHand(self.device)
        self.cable = InProcessCable(self.served)
        self.served.plug(self.cable)
        self._random = Random(1)
        self.host = HostProtocol(KEY, CommandNumbers(b"TABLE-PC"), self._random.randbytes, None)
        self.each_turn: Callable[[], None] = lambda: None
        self.provision(KEY)

    def __enter__(self) -> "Table":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.served._let_go()
        self.device.close()

    def provision(self, key: bytes) -> None:
        """Give the device its key, and connect."""
        self.clear("provision", self._random.randbytes(16), key, self._random.randbytes(32))
        self.connect()

    def connect(self) -> None:
        """Begin a session."""
        self.host.connect(self.served.ms)
        self._until(lambda: self.host.up)

    def restart(self) -> None:
        """Power off and on; the owner connects again."""
        self.served._reboot()
        self.connect()

    def clear(self, name: str, *values: bytes) -> tuple[Any, ...]:
        """Ask outside a session."""
        question = ClearExchange(CODEC, name, values, self.served.ms)
        for _ in range(MOST_TURNS):
            out = question.poll(self.served.ms)
            if out:
                self.cable.write(bytes(out), 0)
            self.turn()
            question.receive(self.cable.read(4096, 0))
            if question.answer is not None:
                return tuple(question.answer)
            assert question.failure is None, question.failure
        raise AssertionError(f"{name} was not answered")

    def refused(self, name: str, *values: bytes) -> str:
        """The error's name, for what is asked outside a session."""
        with pytest.raises(AssertionError) as raised:
            self.clear(name, *values)
        return str(raised.value).partition("\n")[0]

    def frame(self, id: int, body: bytes) -> bytes:
        """A frame outside a session."""
        return bytes(frame.encode(bytes((CLEAR_TO_DEVICE, id)) + body))

    def ask(
        self, name: str, *values: int | bytes | str, by: tuple[int, bytes] | None = None
    ) -> tuple[RequestAnswered, int]:
        """A request of the owner: its answer, and how many turns of the device that took."""
        message = CODEC.named(name)
        number = self.host.request(message.id, message.pack(values), self.served.ms, by=by)
        found: list[RequestAnswered] = []

        def answered() -> bool:
            found.extend(
                each
                for each in self.host.take_notifications()
                if isinstance(each, RequestAnswered) and each.request_id == number
            )
            return bool(found)

        turns = self._until(answered)
        return found[0], turns

    def outcome(
        self, name: str, *values: int | bytes | str, by: tuple[int, bytes] | None = None
    ) -> tuple[str, tuple[Any, ...]]:
        """A request of the owner: ok and the answer's values, or the error's name and details."""
        answer, _ = self.ask(name, *values, by=by)
        if answer.status:
            error = CODEC.error(answer.status)
            assert error is not None
            return error.name, tuple(error.unpack(answer.body))
        said = CODEC.find(answer.message)
        assert said is not None
        return "ok", tuple(said.unpack(answer.body))

    def turn(self) -> None:
        self.each_turn()
        self.served.turn()

    def _until(self, done: Callable[[], bool]) -> int:
        for turns in range(MOST_TURNS):
            if done():
                return turns
            out = self.host.poll(self.served.ms)
            if out:
                self.cable.write(bytes(out), 0)
            self.turn()
            self.host.receive(self.cable.read(4096, 0), self.served.ms)
        raise AssertionError("the owner waits in vain")


def turns(table: Table, ms: int) -> None:
    """Let so much time pass."""
    for _ in range(ms // TICK_MS):
        table.turn()


def hold_contact(table: Table) -> None:
    """Hold the contact in the logic compartment for long enough."""
    turns(table, 100)
    table.device.machine.hold_contact(True)
    turns(table, HOLD_MS + 500)
    table.device.machine.hold_contact(False)
    turns(table, 100)
