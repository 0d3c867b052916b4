"""The threads below the clients: who reads, what Ctrl-C may break, and that no thread is left behind."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.conformance.table import Table
from tests.conformance.targets import InProcess, Pty, Tcp, eventually
from tests.driver.chaos import nothing_left_behind
from tests.sweeps import Amount

from sabot_driver import Client, LinkState, ReceivedEvent
from sabot_driver.errors import LinkLost
from sabot_driver.interrupt_safe_future import InterruptSafeFuture
from sabot_driver.transports import Transport
from sabot_protocol.host.messages import Locate, Located

pytestmark = pytest.mark.slow


class Slow:
    """A transport whose reads take their time to end; counts who is in one."""

    def __init__(self, way: Transport) -> None:
        self._way = way
        self._lock = threading.Lock()
        self.url = way.url
        self.inside = 0
        self.most = 0
        self.closed_under_a_read = 0
        self.opened = 0

    def open(self) -> None:
        self.opened += 1
        self._way.open()

    def read(self) -> bytes:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            data = self._way.read()
            if not data:
                time.sleep(0.2)
            return data
        finally:
            with self._lock:
                self.inside -= 1

    def write(self, data: bytes) -> None:
        self._way.write(data)

    def wake(self) -> None:
        self._way.wake()

    def close(self) -> None:
        self.closed_under_a_read += self.inside
        self._way.close()


def lose_the_cable(client: Client) -> None:
    """The connection takes its port for lost while a thread still reads it."""
    client.loop.call(client.loop.connection.port_lost, LinkLost("lost by the test"))


def test_a_cable_is_given_up_only_when_nobody_reads_it_any_more(tmp_path: Path) -> None:
    with nothing_left_behind():
        target = Tcp(tmp_path)
        way = Slow(target.way())
        client = target.connect(transport=way)
        for _ in range(3):
            lose_the_cable(client)
            client.status(30)
        assert way.opened == 5  # once to ask who is there
        assert way.most == 1, "two threads have read the same cable"
        assert way.closed_under_a_read == 0
        client.close()
        target.close()


def test_a_pulled_cable_leaves_no_thread(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    client = target.connect()
    client.status()

    def readers() -> int:
        return sum(each.name == "sabot-reader" for each in threading.enumerate())

    assert eventually(lambda: readers() == 1)
    target.pull()
    assert eventually(lambda: client.link is not LinkState.UP)
    assert eventually(lambda: readers() == 0)
    target.plug()
    client.status(30)
    assert readers() == 1
    target.close()
    assert readers() == 0


def test_a_leader_and_those_who_wait_beside_it_are_all_answered(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    done: list[int] = []

    def ask(pause_s: float) -> None:
        for _ in range(60):
            client.status(30)
            time.sleep(pause_s)
        done.append(1)

    threads = [threading.Thread(target=ask, args=(pause_s,)) for pause_s in (0, 0, 0.001, 0.003)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(done) == 4
    target.close()


def test_only_the_drivers_threads_process_answers_and_events(tmp_path: Path, mocker: MockerFixture) -> None:
    """Ctrl-C ends a call of the main thread anywhere: it must not strike amid an answer or an event."""
    target = Pty(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    table = Table(client)
    by: set[str] = set()
    connection = client.loop.connection
    for name in ("_answered", "_event", "batch_written"):
        real = getattr(connection, name)

        def note(*values: Any, real: Any = real) -> None:
            by.add(threading.current_thread().name)
            real(*values)

        mocker.patch.object(connection, name, note)
    for _ in range(50):
        client.ask(Locate(2))
    table.wait_for(Located, 0, seconds=2)
    assert by <= {"sabot-reader", "sabot-timer", "sabot-journal"}
    target.close()


class StrikeAt:
    """Ctrl-C at a thread's given call: Python looks for signals as functions begin and as C returns."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_return"):
            self._left -= 1
            if not self._left:
                sys.setprofile(None)
                raise KeyboardInterrupt


def test_ctrl_c_after_every_single_call_of_a_request(tmp_path: Path, amount: Amount) -> None:
    target = Pty(tmp_path)
    client = target.connect(journal=tmp_path / "journal.db")
    moment, unharmed = 0, 0
    while unharmed < 5:  # what a request does is not always as much
        moment += amount(9, full=1)
        try:
            sys.setprofile(StrikeAt(moment))
            client.ask(Locate(1), timeout=30)
            sys.setprofile(None)
            unharmed += 1
        except KeyboardInterrupt:
            unharmed = 0
        assert client.status(30), f"after an interruption at call {moment}"
    assert moment > 100
    client.ask(Locate(9), timeout=30)
    Table(client).wait_for(Located, 0, seconds=9)
    told = list(client.events(0, timeout=0))
    assert [each.n for each in told if isinstance(each, ReceivedEvent)] == list(range(1, len(told) + 1))
    assert not client.loop.connection._open
    target.close()


def test_who_is_interrupted_while_it_looks_at_an_answer_holds_up_nobody() -> None:
    moment, unharmed = 0, False
    while not unharmed:
        moment += 1
        pending: InterruptSafeFuture[int] = InterruptSafeFuture()
        try:
            sys.setprofile(StrikeAt(moment))
            pending.done()
            sys.setprofile(None)
            unharmed = True
        except KeyboardInterrupt:
            pass
        other = threading.Thread(target=pending.set_result, args=(moment,), daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), f"nobody can settle it after an interruption at call {moment}"
    assert moment > 2


def test_only_the_timer_logs_and_tells_so_that_an_interruption_cannot_hold_the_log(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    told_by: list[str] = []
    client.listen(lambda notice: told_by.append(threading.current_thread().name))
    for _ in range(3):
        lose_the_cable(client)
        client.status(30)
    assert eventually(lambda: len(told_by) >= 6)
    assert set(told_by) == {"sabot-timer"}
    target.close()


def test_an_interruption_while_the_link_goes_down_does_not_keep_it_down(
    tmp_path: Path, mocker: MockerFixture
) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    strike = mocker.patch.object(
        client.loop.connection._jitter, "randint", side_effect=[KeyboardInterrupt, 60]
    )
    with pytest.raises(KeyboardInterrupt):
        lose_the_cable(client)
    assert client.status(30)
    assert strike.call_count == 2
    target.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_ctrl_c_at_any_moment_leaves_link_and_journal_whole(tmp_path: Path, root: Path) -> None:
    program = Path(__file__).with_name("interrupted_host.py")
    ran = subprocess.run(
        [sys.executable, str(program), str(tmp_path), "300"],
        env={"PYTHONPATH": str(root), "PATH": ""}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    interrupted, whole = ran.stdout.split()
    assert int(interrupted) > 50
    assert whole == "whole"


def test_in_process_too(tmp_path: Path) -> None:
    target = InProcess(tmp_path)
    client = target.connect()
    for _ in range(50):
        client.status()
    lose_the_cable(client)
    assert client.status(30)
    target.close()
