"""A device with fast timers and a client with a journal on disk, which somebody else can lock."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pytest_mock import MockerFixture
from tests.conformance.targets import eventually

from sabot_driver import Journal, Keyring, LostEvents, ReceivedEvent, connect
from sabot_driver.clock import Clock
from sabot_driver.journal import JournalBatch
from sabot_driver.link_state import Notice
from sabot_protocol.host.messages import FloorCalled, Locate
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.python_device import WiredPythonDevice

RATE = 4.0  # both ends' timers run so much faster: a session without a keep-alive ends after 1.25 s
WAIT_S = 60.0  # a limit for what fails, not a measure


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Somebody else holds the journal's write lock."""
    other = sqlite3.connect(path, isolation_level=None, timeout=WAIT_S)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


class Bench:
    """A device with fast timers on a TCP port, and a client with a journal on disk."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.db"
        device = emulate(DeviceSettings(seed=1), wire_ms(RATE))
        assert isinstance(device, WiredPythonDevice)
        self.device = device
        self.served = DeviceServer(self.device, RATE)
        self._listener = TcpListener()
        self.served.listen(self._listener)
        self._keyring = Keyring(folder)
        self.notices: list[Notice] = []
        self.connect()

    def connect(self) -> None:
        """Another client of the same journal."""
        self.client = connect(
            self._listener.url, keyring=self._keyring, journal=self.path, clock=Clock(RATE), simulator=True
        )
        self.client.listen(self.notices.append)

    @property
    def sessions(self) -> int:
        """How many sessions there were."""
        return self.client.loop.connection.protocol.diagnostics.sessions

    def emit(self, seconds: int) -> None:
        """The device tells something."""
        self.served.call(lambda: self.device.end.emit("located", seconds))

    def rest(self) -> None:
        """Wait until the device has told all it has to tell, and nothing is left to be written."""
        self.client.ask(Locate(1))  # behind the clock, which is set first
        core = self.client.loop.connection
        assert eventually(lambda: self.unacknowledged() == 0 and not core.write_ahead.has_batch())

    def newest(self) -> int:
        """The newest command that the device knows."""
        return self.device.end.ledger.newest(self.client.journal.host_id)

    def unacknowledged(self) -> int:
        """How many events the device still keeps."""
        return self.device.end.events.unacknowledged()

    def told(self) -> list[int]:
        """The numbers of the events in the journal, in its order."""
        told = list(self.client.events(0, timeout=0))
        assert [each for each in told if isinstance(each, LostEvents)] == []
        return [each.n for each in told if isinstance(each, ReceivedEvent)]

    def tells_all(self) -> bool:
        """Whether every event of the device comes into the journal, in order; new ones may come meanwhile."""
        return eventually(lambda: self.told() == list(range(1, self.device.end.events.last + 1)))

    def floor_called(self) -> list[int]:
        """What became of ``call_floor``, as the device tells."""
        told = [each.message for each in self.client.events(0, timeout=0) if isinstance(each, ReceivedEvent)]
        return [each.on for each in told if isinstance(each, FloorCalled)]

    def lasts(self) -> None:
        """The session goes on for longer than the link's silence: only keep-alives can do that."""
        record = self.client.loop.connection.protocol.diagnostics
        before = record.frames_out
        assert eventually(lambda: record.frames_out >= before + 8)

    def close(self) -> None:
        """Clean up."""
        self.client.close()
        self.served.close()
        assert self.served.failure is None


class Gate:
    """Lets the journal's writes pass one by one."""

    def __init__(self, journal: Journal, mocker: MockerFixture, holding: Any = None) -> None:
        """``holding`` is the lock that a write holds meanwhile."""
        self._holding = holding or nullcontext()
        self._permits = threading.Semaphore(0)
        self._write = journal.write
        self.begun = 0
        mocker.patch.object(journal, "write", self._wait)

    def _wait(self, work: JournalBatch, at_us: int) -> int | None:
        self.begun += 1
        with self._holding:
            assert self._permits.acquire(timeout=WAIT_S)
            return self._write(work, at_us)

    def wait_for(self, begun: int) -> None:
        """So many writes have begun, and the last of them waits."""
        assert eventually(lambda: self.begun == begun)

    def let(self, writes: int = 1) -> None:
        """So many writes may pass."""
        self._permits.release(writes)
