"""The driver's connection and a device, joined by a perfect cable; a test is the clock and the disk."""

from concurrent.futures import Future
from random import Random
from typing import Any

from sabot_driver import Journal
from sabot_driver.connection import Connection
from sabot_driver.errors import LinkLost
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import Caller, DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.host.message_base import Request
from sabot_protocol.key_store import KeyStore
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import DEVICE

KEY = b"device key of thirty-two bytes!!"
SERIAL = b"SERIAL01"


class _Noted(Executor):
    """Does whatever it is told, and keeps a note of it."""

    def __init__(self) -> None:
        self.done: list[tuple[str, tuple[Any, ...]]] = []

    def execute(self, name: str, values: Any, caller: Caller) -> tuple[Any, ...]:
        self.done.append((name, tuple(values)))
        return ()


class _Chip(RecordStore):
    """Critical memory that fails for commands while it is told to."""

    fails = False

    def save(self, name: str, data: bytes) -> None:
        if self.fails and name.startswith("command"):
            raise MemoryFailed(name)
        super().save(name, data)


class Ends:
    """Both ends; nothing is on disk before ``write``."""

    def __init__(self) -> None:
        source = Random(1)
        self.now = 1000
        self.utc_s = 1_800_000_000
        self._memory = _Chip()
        KeyStore(self._memory).set(DEVICE, KEY)
        self._noted = _Noted()
        self._random = source.randbytes
        self._boot()
        self.journal = Journal(random=source.randbytes)
        self.connection = Connection(
            "test:", KEY, SERIAL, self.journal, self.now, owner=True,
            utc_us=lambda: self.utc_s * 1_000_000, random=source.randbytes,
        )  # fmt: skip

    @property
    def done(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What the device was told to do."""
        return self._noted.done

    def _boot(self) -> None:
        identity = DeviceIdentity(SERIAL, "Sabot test", "0.0")
        self.device = DeviceProtocol(identity, self._memory, self._noted, self._random, self.now)
        self.port = DevicePort(self.device)

    def reboot(self) -> None:
        """The device starts again, and both ends have a new session."""
        self.lose_cable()
        self._boot()
        self.connect()

    def fail_memory(self) -> None:
        """From now on the device cannot write down commands."""
        self._memory.fails = True

    def connect(self) -> None:
        """Plug the cable in, and let both ends prove themselves."""
        self.connection.port_opening()
        self.connection.port_opened(self.now)
        self.settle()

    def lose_cable(self) -> None:
        """Pull it."""
        self.connection.port_lost(self.now, LinkLost("pulled"))
        self.port.close()

    def settle(self) -> None:
        """Carry bytes both ways until neither end has more to say."""
        for _ in range(100):
            out = self.connection.poll(self.now)
            if out:
                self.port.receive(out, self.now)
            back = self.port.poll(self.now)
            if back:
                self.connection.receive(back, self.now)
            if not out and not back:
                return

    def wait(self, ms: int) -> None:
        """Let time pass."""
        for _ in range(0, ms, 10):
            self.now += 10
            self.settle()

    def write(self) -> None:
        """Put on disk what waits for it, and let both ends go on."""
        batch = self.connection.write_ahead.take_batch()
        if batch is not None:
            self.journal.write(batch, 0)
            self.connection.batch_written(batch, self.now)
        self.settle()

    def ask(self, request: Request[Any], timeout_ms: int) -> "tuple[int, Future[Any]]":
        """Ask, and send what may be sent: the number and what will come of it."""
        number, future = self.connection.request(self.now, request, timeout_ms)
        self.settle()
        return number, future
