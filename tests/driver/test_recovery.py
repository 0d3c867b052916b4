"""What the driver recovers from by itself: wrong clocks, unknown values, time-outs, its own mistakes."""

import math
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Pty, eventually

from sabot_driver import Journal, Link
from sabot_driver.clock import LONGEST_MS, Clock
from sabot_driver.errors import PortBusy
from sabot_driver.keyring import write_key
from sabot_protocol.host.messages import FaultRaised, Status


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


@pytest.mark.parametrize("timeout", [math.inf, 7 * 86_400.0])
def test_a_long_time_out_is_long(tmp_path: Path, timeout: float) -> None:
    """A week ended at once; inf cost everybody the session."""
    target = Pty(tmp_path)
    client = target.connect()
    assert client.status(timeout)
    assert Clock(1000).to_ms(timeout) == LONGEST_MS
    target.close()


def test_what_is_no_request_costs_nobody_the_session(tmp_path: Path) -> None:
    """``ask(None)`` and a time-out of nan ended the session for every thread."""
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    sessions = client.line.core.record.record.handshakes
    with pytest.raises(TypeError):
        client.ask(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nan"):
        client.status(math.nan)
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
