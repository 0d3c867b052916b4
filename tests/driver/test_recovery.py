"""What the driver recovers from by itself: wrong clocks, unknown values, time-outs, its own mistakes."""

import asyncio
import math
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Pty, eventually

from sabot_driver import Journal, Link, aio
from sabot_driver.clock import LONGEST_S, Clock
from sabot_driver.errors import Forked, PortBusy
from sabot_driver.journal import Work
from sabot_driver.keyring import write_key
from sabot_protocol import ticks
from sabot_protocol.host.messages import CallFloor, FaultRaised, Locate, Role, Status


@pytest.mark.parametrize("year_us", [0, 200 * 365 * 86_400_000_000])
def test_a_computer_with_a_wrong_clock_has_a_session(
    tmp_path: Path, mocker: MockerFixture, year_us: int
) -> None:
    """A clock before 2026 or after 2106 ended the driver; the user read 'no session'."""
    mocker.patch.object(Clock, "utc_us", return_value=year_us)
    target = Pty(tmp_path)
    client = target.connect()
    assert client.status()
    assert client.link is Link.UP
    target.close()


def test_an_event_with_a_value_nobody_knows_is_kept(tmp_path: Path) -> None:
    """The reader died of it, and the client was closed without a word."""
    target = Pty(tmp_path)
    client = target.connect()
    core = client.line.core
    body = bytes([250] * 64)
    with pytest.raises(Exception, match="fault"):
        FaultRaised.unpack(body)

    def tell() -> None:
        from sabot_protocol.happenings import EventArrived

        core._event(EventArrived(1, 10_000, 0, 0, 0, 0, FaultRaised.ID, body))

    client.line.look(tell)
    assert client.status()
    target.close()


def test_a_mistake_in_a_thread_is_told_and_the_client_recovers(tmp_path: Path, mocker: MockerFixture) -> None:
    """An exception in a driver's thread closed the client; its calls ended as 'the client was closed'."""
    target = Pty(tmp_path)
    client = target.connect()
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    core = client.line.core
    receive = core.receive
    failing = [True]

    def fail(*values: Any) -> None:
        if failing and failing.pop():
            raise ZeroDivisionError("a mistake")
        receive(*values)

    mocker.patch.object(core, "receive", fail)
    client.begin(Status(), 30)
    assert eventually(lambda: "driver_failed" in notices)
    assert client.status(timeout=30)
    assert not client.line.closed
    target.close()


def test_a_long_time_out_is_long(tmp_path: Path) -> None:
    """A week ended at once."""
    target = Pty(tmp_path)
    client = target.connect(timeout=LONGEST_S)
    assert client.status(LONGEST_S)
    waits = client.line.core.record.deadline
    client.begin(Locate(1), LONGEST_S)
    assert client.line.look(waits) is not None
    assert Clock().to_ms(LONGEST_S) == LONGEST_S * 1000 < ticks.MASK // 2
    target.close()


@pytest.mark.parametrize("timeout", [math.inf, 7 * 86_400.0, math.nan])
def test_a_time_out_that_cannot_be_kept_is_refused(tmp_path: Path, timeout: float) -> None:
    """``resolve(nan)`` cost everybody the session; a week was 74 hours; ``wait_up(inf)`` overflowed."""
    target = Pty(tmp_path)
    client = target.connect()
    number, future = client.begin(CallFloor(1))
    future.result(30)
    sessions = client.line.core.record.record.handshakes
    calls: list[Callable[[], object]] = [
        lambda: client.status(timeout),
        lambda: client.begin(Status(), timeout),
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
    assert client.line.core.record.record.handshakes == sessions
    target.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused_at_once(tmp_path: Path) -> None:
    """Its calls waited for 10 s for threads that a fork does not take along."""
    target = Pty(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    client.ask(CallFloor(1))
    line = client.line
    calls: list[Callable[[], object]] = [
        client.status,
        client.wait_up,
        client.resolve_open,
        lambda: client.link,
        lambda: client.begin(Status()),
        lambda: list(client.events(0, timeout=0)),
        client.journal.last_id,
        lambda: client.journal.write(Work(), 0),
        lambda: asyncio.run(aio.AsyncClient(client).status()),
    ]
    # A thread of the parent may be anywhere at the fork; the child would wait for its locks for ever.
    with line._lock, client.journal._lock, client.journal._read_lock, line._rows_lock:
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
    assert client.link is Link.UP
    target.close()


def test_what_is_no_request_costs_nobody_the_session(tmp_path: Path) -> None:
    """``ask(None)`` ended the session for every thread."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    sessions = client.line.core.record.record.handshakes
    with pytest.raises(TypeError):
        client.ask(None)  # type: ignore[arg-type]
    assert client.status()
    assert client.line.core.record.record.handshakes == sessions
    target.close()


def test_a_journal_has_one_lock_by_whatever_name(tmp_path: Path) -> None:
    """Through a symbolic link two programs had the same host id and gave the same numbers."""
    (tmp_path / "link.db").symlink_to(tmp_path / "journal.db")
    with Journal(tmp_path / "journal.db"), pytest.raises(PortBusy):
        Journal(tmp_path / "link.db")


def test_a_keys_name_is_on_disk_too(tmp_path: Path, mocker: MockerFixture) -> None:
    """After a power cut the file could be gone, and the device had the only copy of its key."""
    synced = mocker.spy(__import__("sabot_driver.keyring").keyring, "sync_folder")
    write_key(tmp_path / "a.key", bytes(range(32)))
    synced.assert_called_once_with(tmp_path)
