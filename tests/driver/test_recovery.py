"""What the driver recovers from by itself: wrong clocks, unknown values, time-outs, its own mistakes."""

import errno
import io
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Pty, eventually
from tests.driver.command import Sabot

from sabot_cli.device_commands import event_fields
from sabot_driver import Client, Credential, Journal, LinkState, LostEvents, Notice, ReceivedEvent
from sabot_driver.capturing_transport import CapturingTransport
from sabot_driver.clock import LONGEST_S, Clock
from sabot_driver.connection import MAX_NOTICES
from sabot_driver.errors import (
    DeviceTimeout,
    Forked,
    JournalBusy,
    LinkLost,
    NotSabot,
    PortBusy,
    SabotError,
    VersionMismatch,
    WrongState,
)
from sabot_driver.journal import JournalBatch
from sabot_driver.keyring import Keyring, write_key
from sabot_driver.received_events import parse_entry
from sabot_driver.transports import CHUNK, Transport
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_evidence.errors import PcKeyDamaged
from sabot_evidence.pc_key import load_pc_key
from sabot_protocol import ticks
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host import messages
from sabot_protocol.host.capture import read_capture
from sabot_protocol.host.messages import CallFloor, FaultRaised, Game, Locate, Located, Role, Status
from sabot_protocol.notifications import EventGap, EventReceived


@pytest.mark.parametrize("year_us", [0, 200 * 365 * 86_400_000_000])
def test_a_computer_with_a_wrong_clock_has_a_session(
    tmp_path: Path, mocker: MockerFixture, year_us: int
) -> None:
    """A clock before 2026 or after 2106 ended the driver; the user read 'no session'."""
    mocker.patch.object(Clock, "utc_us", return_value=year_us)
    target = Pty(tmp_path)
    client = target.connect()
    assert client.status()
    assert client.link is LinkState.UP
    target.close()


def test_an_event_with_a_value_nobody_knows_is_kept(tmp_path: Path) -> None:
    """The reader died of it, and the client was closed without a word."""
    target = Pty(tmp_path)
    client = target.connect()
    core = client.loop.connection
    body = bytes([250] * 64)
    with pytest.raises(Exception, match="fault"):
        FaultRaised.unpack(body)

    def tell() -> None:
        core._event(EventReceived(1, 10_000, 0, 0, 0, 0, FaultRaised.ID, body))

    tell()
    assert client.status()
    target.close()


def test_a_mistake_in_a_thread_is_told_and_the_client_recovers(tmp_path: Path, mocker: MockerFixture) -> None:
    """An exception in a driver's thread closed the client; its calls ended as 'the client was closed'."""
    target = Pty(tmp_path)
    client = target.connect()
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    core = client.loop.connection
    receive = core.receive
    failing = [True]

    def fail(*values: Any) -> None:
        if failing and failing.pop():
            raise ZeroDivisionError("a mistake")
        receive(*values)

    mocker.patch.object(core, "receive", fail)
    client.submit(Status(), 30)
    assert eventually(lambda: "driver_failed" in notices)
    assert client.status(timeout=30)
    assert not client.loop.closed
    target.close()


def test_a_long_time_out_is_long(tmp_path: Path) -> None:
    """A week ended at once."""
    target = Pty(tmp_path)
    client = target.connect(timeout=LONGEST_S)
    assert client.status(LONGEST_S)
    waits = client.loop.connection.protocol.deadline
    client.submit(Locate(1), LONGEST_S)
    assert waits() is not None
    assert Clock().to_ms(LONGEST_S) == LONGEST_S * 1000 < ticks.MASK // 2
    target.close()


@pytest.mark.parametrize("timeout", [math.inf, 7 * 86_400.0, math.nan])
def test_a_time_out_that_cannot_be_kept_is_refused(tmp_path: Path, timeout: float) -> None:
    """``resolve(nan)`` cost everybody the session; a week was 74 hours; ``wait_up(inf)`` overflowed."""
    target = Pty(tmp_path)
    client = target.connect()
    number, future = client.submit(CallFloor(1))
    future.result(30)
    sessions = client.loop.connection.protocol.diagnostics.handshakes
    calls: list[Callable[[], object]] = [
        lambda: client.status(timeout),
        lambda: client.submit(Status(), timeout),
        lambda: client.resolve(number, timeout),
        lambda: client.resolve_open(timeout),
        lambda: client.wait_up(timeout),
        lambda: client.key_slots(timeout),
        lambda: client.set_key(Role.FLOOR, bytes(32), timeout=timeout),
        lambda: list(client.events(0, timeout=timeout)),
        lambda: target.connect(timeout=timeout),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="72 hours" if timeout > 0 else "not nan"):
            call()
    assert client.status()
    assert client.loop.connection.protocol.diagnostics.handshakes == sessions
    target.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused_at_once(tmp_path: Path) -> None:
    """Its calls waited for 10 s for threads that a fork does not take along."""
    target = Pty(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    client.ask(CallFloor(1))
    line = client.loop
    calls: list[Callable[[], object]] = [
        client.status,
        client.wait_up,
        client.resolve_open,
        lambda: client.link,
        lambda: client.submit(Status()),
        lambda: list(client.events(0, timeout=0)),
        client.journal.last_id,
        lambda: client.journal.write(JournalBatch(), 0),
    ]
    # A thread of the parent may be anywhere at the fork; the child would wait for its locks for ever.
    with line._lock, client.journal._lock, client.journal._read_lock:
        child = os.fork()
    if child == 0:  # nothing of pytest may go on here
        refused = 0
        try:
            for call in calls:
                try:
                    call()
                except Forked as error:
                    refused += bool(error.advice)
            client.close()
        finally:
            os._exit(refused)
    ended: list[int] = []
    waiting = threading.Thread(target=lambda: ended.append(os.waitpid(child, 0)[1]))
    waiting.start()
    waiting.join(60)
    if not ended:
        os.kill(child, signal.SIGKILL)
        waiting.join()
    assert os.waitstatus_to_exitcode(ended[0]) == len(calls)
    assert client.status(), "the parent's session goes on"
    assert client.link is LinkState.UP
    target.close()


def test_what_is_no_request_costs_nobody_the_session(tmp_path: Path) -> None:
    """``ask(None)`` ended the session for every thread."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    sessions = client.loop.connection.protocol.diagnostics.handshakes
    with pytest.raises(TypeError):
        client.ask(None)  # type: ignore[arg-type]
    assert client.status()
    assert client.loop.connection.protocol.diagnostics.handshakes == sessions
    target.close()


@pytest.mark.parametrize(
    "by",
    [
        Credential(Role.FLOOR, "text", slot=3),  # type: ignore[arg-type]
        Credential(Role.FLOOR, bytes(31), slot=3),
        Credential(Role.FLOOR, bytes(range(32)), slot=999),
    ],
)
def test_what_is_no_credential_costs_nobody_the_session(tmp_path: Path, by: Credential) -> None:
    """The wire failed at it in each new session, until the request's time was up."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    sessions = client.loop.connection.protocol.diagnostics.handshakes
    with pytest.raises(ValueError, match="32 bytes" if by.slot == 3 else "slot"):
        client.ask(CallFloor(1), timeout=2, by=by)
    assert client.status()
    assert client.loop.connection.protocol.diagnostics.handshakes == sessions
    assert client.loop.failure is None
    target.close()


def test_a_short_key_is_given_to_nobody(tmp_path: Path) -> None:
    """What is derived from it has the right length, so that nothing noticed."""
    target = Pty(tmp_path)
    client = target.connect()
    with pytest.raises(ValueError, match="32 bytes"):
        client.set_key(Role.FLOOR, b"1234")
    assert Role.FLOOR not in client.key_slots().roles
    target.close()


def test_a_journal_has_one_lock_by_whatever_name(tmp_path: Path) -> None:
    """Through a symbolic link two programs had the same host id and gave the same numbers."""
    (tmp_path / "link.db").symlink_to(tmp_path / "journal.db")
    with Journal(tmp_path / "journal.db"), pytest.raises(PortBusy):
        Journal(tmp_path / "link.db")


def test_a_keys_name_is_on_disk_too(tmp_path: Path, mocker: MockerFixture) -> None:
    """After a power cut the file could be gone, and the device had the only copy of its key."""
    names: list[list[str]] = []  # in the folder, whenever something of it is put on disk
    sync = os.fsync

    def fsync(handle: int) -> None:
        names.append([os.readlink(f"/proc/self/fd/{handle}"), *sorted(os.listdir(tmp_path))])
        sync(handle)

    mocker.patch("os.fsync", fsync)
    write_key(tmp_path / "a.key", bytes(range(32)))
    (contents, new), folder = names
    assert contents == str(tmp_path / new), "the contents first, under another name"
    assert folder == [str(tmp_path), "a.key"], "then the folder, with the name"


# -- what a newer or broken device says ---------------------------------------------------------


def test_a_full_disk_costs_no_key_that_the_device_has(tmp_path: Path, mocker: MockerFixture) -> None:
    """The new key is let go of beside the old one only when it is in the old one's place."""
    keyring = Keyring(tmp_path)
    old, new = bytes(range(32)), bytes(range(1, 33))
    keyring.keep(b"SERIAL01", old)
    keyring.keep_next(b"SERIAL01", new)
    full = mocker.patch("sabot_driver.keyring.write_key", side_effect=OSError(errno.ENOSPC, "full"))
    with pytest.raises(OSError, match="full"):
        keyring.settle(b"SERIAL01", new)
    assert (keyring.find(b"SERIAL01"), keyring.find_next(b"SERIAL01")) == (old, new)
    mocker.stop(full)
    keyring.settle(b"SERIAL01", new)
    assert (keyring.find(b"SERIAL01"), keyring.find_next(b"SERIAL01")) == (new, None)


def test_a_full_disk_keeps_no_half_of_a_key(tmp_path: Path, mocker: MockerFixture) -> None:
    """The half-written file stayed behind under a name of its own, with what had been written of the key."""
    mocker.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "full"))
    with pytest.raises(OSError, match="full"):
        write_key(tmp_path / "a.key", bytes(range(32)))
    with pytest.raises(PcKeyDamaged, match="full"):
        load_pc_key(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_time_out_fits_the_ticks_of_a_fast_clock() -> None:
    """Ticks tell only half of their 298 hours, and a clock of a simulation is faster than the wall."""
    for rate in (0.5, 1.0, 20.0):
        clock = Clock(rate)
        now = clock.now_ms()
        assert 0 < ticks.diff(ticks.add(now, clock.to_ms(LONGEST_S)), now) <= LONGEST_S * 1000


def altered(client: Client, mocker: MockerFixture, status: int | None, body: bytes) -> None:
    """The device's next answers have another status and body."""
    end = client.loop.connection.protocol
    answered = end._answered

    def alter(message: int, was: int, number: int, was_body: bytes) -> None:
        answered(message, was if status is None else status, number, body)

    mocker.patch.object(end, "_answered", alter)


def test_an_answer_with_a_value_nobody_knows_is_an_error_of_that_call_alone(
    tmp_path: Path, mocker: MockerFixture
) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    sessions = client.loop.connection.protocol.diagnostics.sessions
    body = bytearray(client.ask(Game()).pack())
    body[1 + body[0]] = 250  # the method, behind the name
    altered(client, mocker, None, bytes(body))
    with pytest.raises(VersionMismatch, match="does not fit the schema"):
        client.ask(Game(), timeout=30)
    mocker.stopall()
    assert client.status()
    assert client.loop.failure is None
    assert client.loop.connection.protocol.diagnostics.sessions == sessions
    target.close()


@pytest.mark.parametrize("body", [b"", b"\x01"])
def test_a_refusal_whose_details_nobody_can_read_is_still_that_refusal(
    tmp_path: Path, mocker: MockerFixture, body: bytes
) -> None:
    """It ended the session, and the call read 'somebody was interrupted'."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    sessions = client.loop.connection.protocol.diagnostics.sessions
    altered(client, mocker, messages.WrongStateDetail.CODE, body)
    with pytest.raises(WrongState, match="call_floor") as refused:
        client.ask(CallFloor(1), timeout=30)
    assert refused.value.detail is None
    assert refused.value.advice == messages.WrongStateDetail.REMEDY
    mocker.stopall()
    assert client.status()
    assert client.loop.failure is None
    assert client.loop.connection.protocol.diagnostics.sessions == sessions
    target.close()


def test_a_row_with_a_quality_or_a_reason_nobody_knows_is_read(tmp_path: Path) -> None:
    """``events`` raised ValueError, at this row and ever after."""
    with Journal(tmp_path / "journal.db") as journal:
        strange = EventReceived(1, 1, 0, 5, 0, 77, Located.ID, Located(3).pack())
        journal.append([(bytes(8), strange), (bytes(8), EventGap(88, 4, (1, 1), (2, 1)))], 0)
        event, lost = [parse_entry(each) for each in journal.entries()]
    assert isinstance(event, ReceivedEvent)
    assert event.quality == 77
    assert event.message == Located(3)
    assert event_fields(event)["clock"] == 77
    assert isinstance(lost, LostEvents)
    assert lost.reason == 88
    assert event_fields(lost)["reason"] == 88


# -- what programs do ---------------------------------------------------------------------------


class Flood:
    """A port from which garbage comes as fast as it is read."""

    url = "flood"

    def __init__(self) -> None:
        self.asking: UnsecuredExchange | None = None
        self.most = 0
        self.reads = 0

    def open(self) -> None: ...

    def read(self, seconds: float | None = None) -> bytes:
        self.reads += 1
        if self.asking is not None:
            self.most = max(self.most, self.asking._received.qsize())
        return bytes(CHUNK)

    def write(self, data: bytes) -> None: ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


def test_a_flood_before_the_session_does_not_fill_the_memory(mocker: MockerFixture) -> None:
    """What came while nobody looked was kept without a bound."""
    flood = Flood()
    mocker.patch.object(
        ClearExchange, "receive", side_effect=lambda data: time.sleep(0.05)
    )  # a slow computer
    with UnsecuredExchange(flood, flood.url, Clock(), 0.5) as asking:
        flood.asking = asking
        with pytest.raises(NotSabot):
            asking.identify()
    assert 3 < flood.reads < 50, "the port is read only as fast as its bytes are used"
    assert flood.most <= 1


class Broken(Flood):
    """A port whose driver has a mistake."""

    def read(self, seconds: float | None = None) -> bytes:
        raise ZeroDivisionError("a port's mistake")


def test_a_mistake_of_a_port_before_the_session_is_told() -> None:
    """The thread that read ended, and the caller was told that nothing answers."""
    port = Broken()
    with (
        UnsecuredExchange(port, port.url, Clock(), 30) as asking,
        pytest.raises(SabotError, match="a port's mistake"),
    ):
        asking.identify()


def test_a_listener_that_does_not_return_holds_up_no_call(tmp_path: Path) -> None:
    """Calls ended five seconds after their time-out, as 'the driver itself did not answer in time'."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    go_on = threading.Event()

    def stay(notice: Notice) -> None:
        go_on.wait(60)

    client.listen(stay)
    target.pull()
    with pytest.raises(LinkLost):
        client.status(timeout=0.3)
    with pytest.raises(DeviceTimeout, match="The link is down"):
        client.ask(Locate(1), timeout=0.3)

    assert not go_on.is_set()
    go_on.set()
    target.close()


def test_a_call_ends_although_the_connections_time_out_is_later_and_a_listener_stays(
    tmp_path: Path, mocker: MockerFixture
) -> None:
    """The caller was held up between the two: 'the driver itself did not answer in time', 5 s late."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    go_on = threading.Event()

    def stay(notice: Notice) -> None:
        go_on.wait(60)

    client.listen(stay)
    target.pull()
    exact = client.loop.clock.to_ms
    mocker.patch.object(client.loop.clock, "to_ms", lambda seconds: exact(seconds) + 100)
    with pytest.raises(LinkLost):
        client.status(timeout=0.3)

    assert not go_on.is_set()
    go_on.set()
    target.close()


class SlowToOpen:
    """A way to a device that takes its time to be opened again, as a TCP connection does to nobody."""

    def __init__(self, way: Transport) -> None:
        self._way = way
        self.url = way.url
        self.go_on = threading.Event()
        self.go_on.set()
        self.opening = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._way, name)

    def open(self) -> None:
        self.opening.set()
        assert self.go_on.wait(60)
        self._way.open()


def test_a_cable_that_is_long_in_opening_holds_up_no_call(tmp_path: Path) -> None:
    """Whoever opened it also ended calls: futures and the asyncio client's calls were up to 5 s late."""
    target = Pty(tmp_path)
    way = SlowToOpen(target.way())
    client = target.connect(transport=way)
    client.status()
    way.go_on.clear()
    way.opening.clear()
    target.pull()
    assert way.opening.wait(60)
    _, future = client.submit(Status(), 0.2)
    assert isinstance(future.exception(60), LinkLost)
    assert not way.go_on.is_set()
    target.plug()
    way.go_on.set()
    assert client.status(60)
    target.close()


def test_notices_that_nobody_takes_are_bounded(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    core = target.connect().loop.connection
    for number in range(3 * MAX_NOTICES):
        core.notify(Notice("driver_failed", str(number)))
    assert len(core._notices) <= MAX_NOTICES
    target.close()


@pytest.mark.parametrize("reader", [None, "till"])
def test_a_function_for_events_that_fails_is_told_of(tmp_path: Path, reader: str | None) -> None:
    """Its thread ended, and nobody was told that no event would come any more."""
    target = Pty(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    seen: list[str] = []

    def fail(event: ReceivedEvent | LostEvents) -> None:
        seen.append(event.name)
        if event.name == "floor_called":
            raise ZeroDivisionError("the program's mistake")

    client.on_event(fail, after=0, reader=reader)
    client.ask(CallFloor(1))
    assert eventually(lambda: "subscriber_failed" in notices)
    assert seen[-1] == "floor_called"
    assert client.status()
    if reader is not None:
        again = next(client.events(reader=reader, timeout=0))
        assert again.name == "floor_called", "it has not been dealt with"
    target.close()


def test_a_reader_goes_on_when_its_place_cannot_be_kept_for_a_while(
    tmp_path: Path, mocker: MockerFixture
) -> None:
    """Its thread ended at the first write that failed. No event is given twice."""
    mocker.patch("sabot_driver.client.RETRY_DISK_S", 0.02)
    target = Pty(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    seen: list[int] = []
    client.on_event(lambda event: seen.append(event.id), reader="till")
    client.status()
    assert eventually(lambda: len(seen) > 0 and client.journal.reader_position("till") == seen[-1])
    real = client.journal.set_reader_position
    failing = [True, True, True]

    def fail(name: str, id: int) -> None:
        if failing:
            failing.pop()
            raise JournalBusy("for a while")
        real(name, id)

    mocker.patch.object(client.journal, "set_reader_position", fail)
    client.ask(CallFloor(1))
    client.ask(CallFloor(0))
    assert eventually(lambda: client.journal.reader_position("till") == client.journal.last_id())
    assert seen == list(range(1, len(seen) + 1))
    assert failing == []
    target.close()


# -- captures -----------------------------------------------------------------------------------


class BadFile(io.BytesIO):
    """A file whose writes wait until they may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.go_on.set()
        self.full = False

    def write(self, data: Any) -> int:
        assert self.go_on.wait(60)
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_capture_that_cannot_be_written_holds_up_nothing(tmp_path: Path, mocker: MockerFixture) -> None:
    """Each frame raised OSError in the line: the session was lost again and again."""
    mocker.patch("sabot_driver.capturing_transport.MAX_WAITING", 4)
    target = Pty(tmp_path)
    file = BadFile()
    tap = CapturingTransport(target.way(), file, Clock.utc_us)
    client = target.connect(transport=tap)
    client.status()
    sessions = client.loop.connection.protocol.diagnostics.sessions
    file.go_on.clear()
    for _ in range(20):
        assert client.status()
    assert tap.missed > 0
    file.full = True
    file.go_on.set()
    assert eventually(lambda: tap.failure is not None)
    assert client.status()
    assert client.loop.connection.protocol.diagnostics.sessions == sessions
    target.close()
    captured = list(read_capture(io.BytesIO(file.getvalue())))
    assert len(captured) == tap.frames > 0, "what was written before can be read"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_the_command_says_that_its_capture_is_not_complete(sabot: Sabot) -> None:
    ran = sabot("status", "--device", "sim://?seed=1", "--capture", "/dev/full", "--json")
    assert ran.code == 1
    assert "missing from the capture" in ran.out
