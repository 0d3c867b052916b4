"""A disk that waits, is full or hangs: the wire goes on, calls end in time, nothing is lost or told twice."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conformance.targets import eventually

from sabot_driver import Event, Keyring, Link, LostEvents, connect
from sabot_driver.clock import Clock
from sabot_driver.errors import JournalBusy
from sabot_driver.states import Notice
from sabot_protocol.host.messages import CallFloor
from sabot_simulators.ends.on_python import OnPython
from sabot_simulators.ends.serving import Served, wire_ms
from sabot_simulators.ends.settings import Settings
from sabot_simulators.ends.tcp import TcpListener

RATE = 20.0  # both ends' timers run so much faster: a session without a keep-alive ends after 0.25 s
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
        self.device = OnPython(Settings(seed=1), wire_ms(RATE))
        self.served = Served(self.device, RATE)
        listener = TcpListener()
        self.served.listen(listener)
        self.client = connect(
            listener.url, keyring=Keyring(folder), journal=self.path, clock=Clock(RATE), simulator=True
        )
        self.notices: list[Notice] = []
        self.client.listen(self.notices.append)

    @property
    def sessions(self) -> int:
        """How many sessions there were."""
        return self.client.line.core.record.record.sessions

    def emit(self, seconds: int) -> None:
        """The device tells something."""
        self.served.call(lambda: self.device.end.emit("located", seconds))

    def unacknowledged(self) -> int:
        """How many events the device still keeps."""
        return self.device.end.events.unacknowledged()

    def told(self) -> list[int]:
        """The numbers of the events in the journal, in its order."""
        told = list(self.client.events(0, timeout=0))
        assert [each for each in told if isinstance(each, LostEvents)] == []
        return [each.n for each in told if isinstance(each, Event)]

    def lasts(self) -> None:
        """The session goes on for longer than the link's silence: only keep-alives can do that."""
        record = self.client.line.core.record.record
        before = record.frames_out
        assert eventually(lambda: record.frames_out >= before + 8)

    def close(self) -> None:
        """Clean up."""
        self.client.close()
        self.served.close()
        assert self.served.failure is None


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


# -- the write lock is held elsewhere -----------------------------------------------------------


def test_a_locked_journal_holds_up_neither_the_wire_nor_a_call(bench: Bench) -> None:
    """The session dropped twice in 12 s, and calls with 3 s took 7 s."""
    client = bench.client
    client.ask(CallFloor(1))
    assert eventually(lambda: bench.unacknowledged() == 0)
    sessions = bench.sessions
    with write_lock(bench.path):
        for seconds in range(1, 6):
            bench.emit(seconds)
        with pytest.raises(JournalBusy, match="not sent") as busy:
            client.ask(CallFloor(0), timeout=0.3)
        bench.lasts()
        assert client.status(), "a query is answered meanwhile"
        assert bench.unacknowledged() >= 5, "what is not on disk is not acknowledged"
        assert client.link is Link.UP
    assert isinstance(busy.value, TimeoutError)
    assert "again" in busy.value.advice
    assert eventually(lambda: bench.unacknowledged() == 0)
    assert bench.sessions == sessions
    told = bench.told()
    assert told == list(range(1, len(told) + 1))
    client.ask(CallFloor(1))
    executed = [each.outcome for each in client.journal.commands() if each.message == CallFloor.ID]
    assert executed[0] == executed[-1] == "done"
    assert set(executed[1:-1]) <= {"not_executed"}, "the one that was not sent is not left open"
    called = [each.message for each in client.events(0, timeout=0) if each.name == "floor_called"]
    assert len(called) == 1, "the one that was not sent was not executed"
