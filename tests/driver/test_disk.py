"""A disk that waits, is full or hangs: the wire goes on, calls end in time, nothing is lost or told twice."""

import contextlib
import functools
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import Tcp, eventually
from tests.driver.locked_disk import WAIT_S, Bench, Gate, write_lock

from sabot_driver import Client, LinkState, ReceivedEvent
from sabot_driver.errors import Closed, JournalBusy, JournalFull, LinkLost, PortBusy, Refused
from sabot_driver.journal import JournalBatch
from sabot_protocol.host.messages import CallFloor, ClockQuality, Locate, OpenRound

# -- the write lock is held elsewhere -----------------------------------------------------------


@pytest.mark.slow
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
        assert client.status(WAIT_S), "a query is answered meanwhile"
        assert bench.unacknowledged() >= 5, "what is not on disk is not acknowledged"
        assert client.link is LinkState.UP
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
    assert bench.floor_called() == [1], "the one that was not sent was not executed"


@pytest.mark.slow
def test_commands_wait_for_the_disk_in_order_and_queries_do_not(bench: Bench) -> None:
    client = bench.client
    with write_lock(bench.path):
        _, first = client.submit(CallFloor(1), WAIT_S)
        _, second = client.submit(Locate(7), WAIT_S)  # has no record, and a higher number than the first
        _, third = client.submit(CallFloor(0), WAIT_S)
        assert client.status(WAIT_S)
        bench.lasts()
        assert not [each for each in (first, second, third) if each.done()]
    for each in (first, second, third):
        each.result(WAIT_S)
    assert eventually(lambda: bench.floor_called() == [1, 0])
    names = [each.name for each in client.events(0, timeout=0)]
    ours = [name for name in names if name in ("floor_called", "located")]
    assert ours[1:] == ["floor_called", "located", "floor_called"]


def test_a_command_given_up_before_it_was_sent_is_never_sent(bench: Bench, mocker: MockerFixture) -> None:
    client = bench.client
    gate = Gate(client.journal, mocker)
    number, future = client.submit(CallFloor(1), WAIT_S)
    gate.wait_for(1)  # its record is on its way to the disk
    client.abandon(number)
    _, behind = client.submit(Locate(3), WAIT_S)
    gate.let(100)
    behind.result(WAIT_S)
    assert not future.done()
    assert eventually(lambda: [each.outcome for each in client.journal.commands()] == ["not_executed"])
    assert bench.floor_called() == []


def test_a_command_that_is_held_is_not_sent_in_a_new_session_either(
    bench: Bench, mocker: MockerFixture
) -> None:
    client, sessions = bench.client, bench.sessions
    gate = Gate(client.journal, mocker)
    number, future = client.submit(CallFloor(1), WAIT_S)
    gate.wait_for(1)
    bench.served.pull_all()
    assert eventually(lambda: bench.sessions > sessions and client.link is LinkState.UP)
    assert client.status(WAIT_S)
    assert bench.newest() < number
    gate.let(100)
    future.result(WAIT_S)
    assert eventually(lambda: bench.floor_called() == [1])


def test_a_journal_locked_for_long_is_as_a_full_one(tmp_path: Path, mocker: MockerFixture) -> None:
    """The open round goes on without records, no new one begins; all is as before when the lock is gone."""
    mocker.patch("sabot_driver.journal.BUSY_S", 0.1)
    mocker.patch("sabot_driver.io_loop.RETRY_DISK_MS", 20)
    bench = Bench(tmp_path)
    bench.rest()
    client = bench.client
    with write_lock(bench.path):
        client.ask(CallFloor(1), WAIT_S)
        assert client.journal.commands() == []
        with pytest.raises(JournalFull, match="database is locked"):
            client.ask(OpenRound(1, 1))
        assert bench.unacknowledged() > 0
    assert eventually(lambda: "journal_works" in [each.kind for each in bench.notices])
    client.ask(CallFloor(0))
    assert eventually(lambda: bench.floor_called() == [1, 0])
    assert [each.outcome for each in client.journal.commands()] == ["done"]
    assert bench.tells_all()
    bench.close()


def test_a_client_closed_while_its_journal_is_locked(bench: Bench) -> None:
    """Nothing that was told is lost, and the command that was not sent is not executed afterwards."""
    client = bench.client
    with write_lock(bench.path):
        bench.emit(5)
        _, future = client.submit(CallFloor(1), WAIT_S)
        assert client.status(WAIT_S)
        closing = threading.Thread(target=client.close)
        closing.start()
        assert isinstance(future.exception(WAIT_S), Closed)
    closing.join(WAIT_S)
    assert not closing.is_alive()
    bench.connect()
    assert eventually(lambda: bench.unacknowledged() == 0)
    told = bench.told()
    assert told == list(range(1, len(told) + 1))
    assert {each.outcome for each in bench.client.resolved} <= {"not_executed"}
    assert bench.client.journal.commands(open_only=True) == []
    assert bench.floor_called() == []


def test_a_device_is_opened_while_its_journal_is_locked(bench: Bench) -> None:
    bench.client.close()
    bench.served.reboot()
    with write_lock(bench.path):
        bench.connect()
        assert bench.client.status().clock == ClockQuality.UNKNOWN, "there is no number to set it with"
        with pytest.raises(JournalBusy, match="not sent"):
            bench.client.ask(Locate(1), timeout=0.2)
        assert bench.client.status(WAIT_S)
    bench.client.ask(Locate(1), timeout=WAIT_S)
    assert bench.client.status().clock == ClockQuality.SET


@pytest.mark.slow
def test_a_journal_that_hangs_holds_up_nothing(bench: Bench, mocker: MockerFixture) -> None:
    """As a disk does that does not return from a sync."""
    client, journal = bench.client, bench.client.journal
    client.ask(CallFloor(1))
    assert eventually(lambda: bench.unacknowledged() == 0)
    there = len(bench.told())
    sessions = bench.sessions
    go_on = threading.Event()
    write = journal.write

    def hang(work: JournalBatch, at_us: int) -> int | None:
        with journal._lock:
            assert go_on.wait(WAIT_S)
            return write(work, at_us)

    mocker.patch.object(journal, "write", hang)
    bench.emit(9)
    with pytest.raises(JournalBusy):
        client.ask(CallFloor(0), timeout=0.2)
    bench.lasts()
    assert len(bench.told()) == there, "what is there can be read"
    assert client.status(WAIT_S)
    assert client.resolve_open() == []
    assert bench.sessions == sessions
    go_on.set()
    assert eventually(lambda: bench.unacknowledged() == 0)
    assert bench.floor_called() == [1]


def test_a_command_waits_for_its_own_record_not_for_that_of_others(
    bench: Bench, mocker: MockerFixture
) -> None:
    client = bench.client
    gate = Gate(client.journal, mocker)
    bench.emit(1)
    gate.wait_for(1)
    number, future = client.submit(CallFloor(1), WAIT_S)
    gate.let()
    gate.wait_for(2)
    assert client.status(WAIT_S)
    assert bench.newest() < number
    gate.let(100)
    future.result(WAIT_S)


@pytest.mark.usefixtures("few_numbers")
def test_a_command_without_a_record_waits_for_its_number(bench: Bench, mocker: MockerFixture) -> None:
    client = bench.client
    gate = Gate(client.journal, mocker)
    bench.emit(1)
    gate.wait_for(1)  # with no number in it: enough are left
    futures = [client.submit(Locate(1), WAIT_S)[1] for _ in range(20)]
    gate.let()
    gate.wait_for(2)
    assert client.status(WAIT_S)
    assert eventually(lambda: bench.newest() == client.journal.reserved() - 1)
    assert client.status(WAIT_S)
    assert bench.newest() == client.journal.reserved() - 1
    gate.let(100)
    for each in futures:
        each.result(WAIT_S)


def test_closing_does_not_wait_for_a_disk_that_hangs(bench: Bench, mocker: MockerFixture) -> None:
    """It waited for ever. The journal is let go of as soon as the disk answers."""
    mocker.patch("sabot_driver.io_threads.JOIN_S", 0.1)
    mocker.patch("sabot_driver.threaded_loop.JOIN_S", 0.1)
    journal = bench.client.journal
    gate = Gate(journal, mocker, holding=journal._lock)
    bench.emit(1)
    gate.wait_for(1)
    bench.client.close()
    with pytest.raises(PortBusy):
        bench.connect()
    gate.let(100)

    def connected() -> bool:
        with contextlib.suppress(PortBusy):
            bench.connect()
            return True
        return False

    assert eventually(connected)
    bench.rest()
    assert bench.tells_all()


def test_closing_does_not_wait_for_a_disk_that_is_full(bench: Bench, mocker: MockerFixture) -> None:
    """Its last batch would be tried again and again; the device keeps the events."""
    join_s = mocker.patch("sabot_driver.threaded_loop.JOIN_S", 5.0)
    mocker.patch.object(bench.client.journal, "write", side_effect=JournalFull("full"))
    bench.emit(1)
    ahead = bench.client.loop.connection.write_ahead
    assert eventually(lambda: ahead.error is not None)
    begun = time.monotonic()
    bench.client.close()
    assert time.monotonic() - begun < join_s
    assert bench.unacknowledged() > 0


HOST = """
import sys
from pathlib import Path
from sabot_driver import Keyring, connect
from sabot_protocol.host.messages import CallFloor
client = connect(sys.argv[1], keyring=Keyring(Path(sys.argv[2])), journal=Path(sys.argv[3]), simulator=True)
print("up", flush=True)
input()
client.submit(CallFloor(1), 600)
assert client.status(60)
print("asked", flush=True)
input()
"""


def test_a_host_killed_while_its_journal_is_locked_loses_nothing(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    path = tmp_path / "journal.db"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, target.listener.url, str(target.keyring.folder), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert host.stdin is not None
    assert host.stdout is not None
    assert host.stdout.readline() == b"up\n"
    events = target.python.end.events
    assert eventually(lambda: events.last > 0 and events.unacknowledged() == 0)
    with write_lock(path):
        for seconds in range(1, 6):
            target.served.call(functools.partial(target.python.end.emit, "located", seconds))
        host.stdin.write(b"\n")
        host.stdin.flush()
        assert host.stdout.readline() == b"asked\n"
        host.send_signal(signal.SIGKILL)
        host.wait()
    host.stdin.close()
    host.stdout.close()
    client = target.connect(journal=path)
    assert eventually(lambda: events.unacknowledged() == 0)
    told = list(client.events(0, timeout=0))
    assert [each.n for each in told if isinstance(each, ReceivedEvent)] == list(range(1, events.last + 1))
    assert len(told) == events.last
    assert [each.name for each in told].count("located") == 5
    assert "floor_called" not in [each.name for each in told]
    assert client.journal.commands(open_only=True) == []
    target.close()


# -- a full disk --------------------------------------------------------------------------------


def full(client: Client, is_full: bool) -> None:
    """Nothing can be written, as SQLite itself says it."""
    with client.journal.sql() as db:
        db.execute(f"PRAGMA query_only={int(is_full)}")


def use_up_numbers(client: Client) -> None:
    for _ in range(client.loop.connection.write_ahead.numbers.left()):
        client.ask(Locate(1), WAIT_S)
    with pytest.raises(JournalFull, match="no command number is left"):
        client.ask(Locate(1), WAIT_S)


@pytest.mark.parametrize("how", ["blink", "reboot"])
@pytest.mark.usefixtures("few_numbers")
def test_a_full_disk_without_numbers_and_a_blink_of_the_cable(tmp_path: Path, how: str) -> None:
    """The driver died in the new session, when it had no number to set the clock with."""
    target = Tcp(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    client.ask(CallFloor(1))
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    full(client, True)
    target.served.call(lambda: target.python.end.emit("located", 5))
    assert eventually(lambda: "journal_failed" in notices)
    use_up_numbers(client)
    if how == "reboot":
        target.reboot()
    else:
        target.pull()
        with pytest.raises(LinkLost):
            client.status(0.2)
        target.plug()
    assert eventually(lambda: "clock_not_set" in notices)
    assert client.status(WAIT_S)
    with pytest.raises(JournalFull, match="not sent"):
        client.ask(CallFloor(0), WAIT_S)
    full(client, False)
    assert eventually(lambda: "journal_works" in notices)
    client.ask(CallFloor(0), WAIT_S)
    assert client.status(WAIT_S).clock == ClockQuality.SET
    assert "driver_failed" not in notices
    assert eventually(lambda: target.python.end.events.unacknowledged() == 0)
    target.close()


def test_a_journal_that_failed_is_tried_again_without_an_event(bench: Bench, mocker: MockerFixture) -> None:
    """Rounds were refused until the device told something, which it may do only in a round."""
    mocker.patch("sabot_driver.io_loop.RETRY_DISK_MS", 20)
    client = bench.client
    full(client, True)
    with pytest.raises(JournalFull):
        client.ask(OpenRound(1, 1))
    client.ask(CallFloor(0), WAIT_S)  # other commands go on; this one causes no event
    with pytest.raises(JournalFull, match="not sent"):
        client.ask(OpenRound(1, 1))
    assert bench.unacknowledged() == 0
    full(client, False)
    assert eventually(lambda: "journal_works" in [each.kind for each in bench.notices])
    with pytest.raises(Refused):  # by the device, which has no deck
        client.ask(OpenRound(1, 1), WAIT_S)


@pytest.mark.usefixtures("few_numbers")
def test_no_number_is_sent_that_is_not_on_disk(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    journal, ledger = client.journal, target.python.end.ledger
    for _ in range(40):  # more than are reserved at once
        client.ask(Locate(1), WAIT_S)
        assert ledger.newest(journal.host_id) < journal.reserved()
    full(client, True)
    target.served.call(lambda: target.python.end.emit("located", 5))
    assert eventually(lambda: client.loop.connection.write_ahead.error is not None)
    use_up_numbers(client)
    assert ledger.newest(journal.host_id) == journal.reserved() - 1
    target.close()


# -- mistakes of ours and of others -------------------------------------------------------------


def test_a_mistake_after_rows_were_written_does_not_stop_the_journal(
    bench: Bench, mocker: MockerFixture
) -> None:
    core = bench.client.loop.connection
    on_disk = core.batch_written
    failing = [True]

    def fail(*values: Any) -> None:
        if failing and failing.pop():
            raise ZeroDivisionError("a mistake")
        on_disk(*values)

    mocker.patch.object(core, "batch_written", fail)
    for seconds in (1, 2, 3):
        bench.emit(seconds)
    assert eventually(lambda: "driver_failed" in [each.kind for each in bench.notices])
    assert bench.client.status(WAIT_S)
    bench.emit(4)
    assert eventually(lambda: bench.unacknowledged() == 0)
    assert bench.tells_all()
