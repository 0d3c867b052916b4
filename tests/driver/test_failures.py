"""Everything that goes wrong with cables, ports, devices and disks: its typed error, in time, with advice."""

import errno
import logging
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import serial
import usb.core
from pytest_mock import MockerFixture
from tests.conformance.table import Table
from tests.conformance.targets import Pty, Tcp, Usb, eventually

from sabot_driver import Client, Journal, Keyring, LinkState, Notice, ReceivedEvent, connect
from sabot_driver.clock import Clock
from sabot_driver.errors import (
    BadUrl,
    DeviceRebooted,
    DeviceTimeout,
    JournalFull,
    KeyExposed,
    LinkLost,
    NoAnswer,
    NoDevice,
    NotProvisioned,
    NotSabot,
    PortBusy,
    PortDenied,
    VersionMismatch,
    WrongDevice,
)
from sabot_driver.threaded_loop import ThreadedLoop
from sabot_driver.transports import SerialTransport, SocketTransport
from sabot_driver.usb import UsbTransport
from sabot_protocol.host.messages import Locate, Located, OpenRound, Shuffle
from sabot_simulators import emulated_device
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.fault_proxy import FaultProxy, TcpFrontend, TcpUpstream
from sabot_simulators.endpoints.impairment import Impairment
from sabot_simulators.endpoints.pseudo_terminal import PseudoTerminal
from sabot_simulators.endpoints.tcp import TcpListener


@contextmanager
def bare_terminal() -> Iterator[PseudoTerminal]:
    terminal = PseudoTerminal()
    yield terminal
    terminal.close()


def in_time(seconds: float, began: float) -> bool:
    """Not a measure: a wait that does not end would hang the suite."""
    return time.monotonic() - began < seconds + 30


# -- opening ------------------------------------------------------------------------------------


def test_a_port_that_is_not_there() -> None:
    with pytest.raises(NoDevice) as error:
        connect("/dev/ttyNOT-THERE")
    assert isinstance(error.value, FileNotFoundError)
    assert "sabot devices" in error.value.advice


def test_a_tcp_port_nobody_listens_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoDevice, match="refused"):
        connect(f"socket://127.0.0.1:{port}")


@pytest.mark.parametrize(
    "url",
    ["", "nonsense://x", "socket://nowhere", "socket://h:port", "usb://X?seed=1", "usb://X?backend=none"],
)
def test_a_url_nothing_can_open(url: str) -> None:
    with pytest.raises(BadUrl) as error:
        connect(url)
    assert isinstance(error.value, ValueError)
    assert error.value.advice


def test_a_setting_no_emulated_device_has() -> None:
    with pytest.raises(BadUrl, match="no setting 'sed'"):
        connect("sim://?sed=1")
    with pytest.raises(BadUrl, match="no fault is called"):
        connect("sim://?fault=flood")


def test_a_port_another_process_has(tmp_path: Path) -> None:
    with bare_terminal() as terminal:
        program = "import serial, sys; p = serial.Serial(sys.argv[1], exclusive=True); print('held'); input()"
        other = subprocess.Popen(
            [sys.executable, "-uc", program, terminal.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(PortBusy) as error:
            connect(terminal.path)
        other.communicate(b"\n")
    assert isinstance(error.value, BlockingIOError)
    assert "sabot doctor" in error.value.advice


def test_a_port_this_user_may_not_open(mocker: MockerFixture) -> None:
    denied = serial.SerialException(errno.EACCES, "could not open port: Permission denied")
    mocker.patch.object(serial.Serial, "open", side_effect=denied)
    with pytest.raises(PortDenied) as error:
        connect("/dev/ttyACM0")
    assert isinstance(error.value, PermissionError)
    assert "dialout" in error.value.advice


def test_windows_says_access_denied_for_a_port_in_use(mocker: MockerFixture) -> None:
    said = "could not open port 'COM3': PermissionError(13, 'Access is denied.', None, 5)"
    denied = serial.SerialException(said)
    mocker.patch.object(serial.Serial, "open", side_effect=denied)
    with pytest.raises(PortBusy):
        connect("COM3")


def test_a_usb_device_another_process_has_claimed(tmp_path: Path) -> None:
    target = Usb(tmp_path)
    target.connect()
    with pytest.raises(PortBusy):
        connect("usb://SIM00001", transport=target.way())
    target.close()


def test_a_usb_device_this_user_may_not_open(tmp_path: Path, mocker: MockerFixture) -> None:
    target = Usb(tmp_path)
    denied = usb.core.USBError("Access denied (insufficient permissions)", -3, errno.EACCES)
    mocker.patch.object(target.backend, "claim_interface", side_effect=denied)
    with pytest.raises(PortDenied):
        target.connect()
    target.close()


def test_a_usb_device_that_is_not_there(tmp_path: Path) -> None:
    target = Usb(tmp_path)
    with pytest.raises(NoDevice, match="no such device"):
        connect("usb://OTHER", transport=UsbTransport("usb://OTHER", "OTHER", target.backend))
    target.close()


# -- who is there -------------------------------------------------------------------------------


def test_a_device_that_answers_nothing() -> None:
    began = time.monotonic()
    with bare_terminal() as terminal, pytest.raises(NoAnswer) as error:
        connect(terminal.path, timeout=0.5)
    assert in_time(0.5, began)
    assert not isinstance(error.value, NotSabot)
    assert isinstance(error.value, ConnectionError)
    assert error.value.advice


def test_garbage_on_the_line() -> None:
    with bare_terminal() as terminal:
        stop = threading.Event()

        def chatter() -> None:
            while not stop.wait(0.01):
                terminal.give(b"$GPGGA,123519,4807.038,N,01131.000,E*47\r\n")

        thread = threading.Thread(target=chatter)
        thread.start()
        with pytest.raises(NotSabot, match="not from a Sabot device") as error:
            connect(terminal.path, timeout=0.5)
        assert error.value.advice
        stop.set()
        thread.join()


def test_a_new_device_is_not_given_a_key_unasked(tmp_path: Path, mocker: MockerFixture) -> None:
    mocker.patch.object(emulated_device, "SIMULATOR", 0)
    target = Pty(tmp_path)
    with pytest.raises(NotProvisioned) as error:
        target.connect(simulator=False)
    assert "provision" in error.value.advice
    target.close()


def test_a_swapped_device_is_recognised(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    target.connect().close()
    other = Pty(tmp_path, "seed=9&serial=SIM00009")
    with pytest.raises(WrongDevice, match="SIM00009") as error:
        other.connect(serial=b"SIM00001")
    assert error.value.advice
    other.close()
    target.close()


@pytest.mark.slow
def test_a_device_swapped_under_a_running_client_is_not_obeyed(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    target.pull()
    other = Pty(tmp_path, "seed=9&serial=SIM00009")  # on the same port, with no key or another one
    with pytest.raises(LinkLost) as error:
        client.status(timeout=1)
    assert isinstance(error.value.__cause__, NotProvisioned | WrongDevice)
    other.close()
    target.close()


def test_a_key_others_can_read_is_not_used(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    client.close()
    target.keyring.path(client.identity.serial, simulator=True).chmod(0o644)
    with pytest.raises(KeyExposed) as error:
        target.connect()
    assert "chmod" in error.value.advice
    target.close()


def test_a_device_of_another_version_still_tells_its_status(tmp_path: Path, mocker: MockerFixture) -> None:
    target = Pty(tmp_path)
    target.served.call(lambda: setattr(target.python.end, "schema_hash", b"another!"))
    client = target.connect()
    assert client.peer is not None
    assert client.peer.limited
    assert client.status()
    with pytest.raises(VersionMismatch, match="update"):
        client.ask(Shuffle(1))
    target.close()


# -- links that fail ----------------------------------------------------------------------------


def test_a_pulled_cable_is_said_and_found_again(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    target.pull()
    with pytest.raises(LinkLost) as error:
        client.status(timeout=0.3)
    assert error.value.advice
    assert client.link is not LinkState.UP
    target.plug()
    assert client.status(timeout=30)
    assert notices[0] == "down"
    assert notices[-1] == "up"
    target.close()


@pytest.mark.slow
def test_who_has_an_answer_of_a_new_session_was_told_of_that_session(tmp_path: Path) -> None:
    """An answer overtook the notice ``up`` when the keeper's thread was late."""
    target = Pty(tmp_path)
    client = target.connect()
    notices: list[str] = []

    def slowly(notice: Notice) -> None:
        time.sleep(0.2)
        notices.append(notice.kind)

    client.listen(slowly)
    for _ in range(3):
        target.pull()
        with pytest.raises(LinkLost):
            client.status(timeout=0.3)
        assert eventually(lambda: notices[-1:] == ["down"])
        target.plug()
        assert client.status(timeout=30)
        assert notices[-1] == "up"
    target.close()


def test_who_listens_after_connecting_is_not_told_of_that_session_again(
    tmp_path: Path, mocker: MockerFixture
) -> None:
    """``connect`` returned before the keeper had told ``up``; a new listener heard it first of all."""
    make = Client.__init__

    def late(client: Client, loop: ThreadedLoop, *rest: Any) -> None:
        make(client, loop, *rest)
        assert eventually(lambda: loop.connection.link is LinkState.UP)

    mocker.patch.object(Client, "__init__", late)
    mocker.patch.object(logging.getLogger("sabot"), "log", side_effect=lambda *_: time.sleep(0.2))
    target = Pty(tmp_path)
    client = target.connect()
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    target.pull()
    with pytest.raises(LinkLost):
        client.status(timeout=0.3)
    assert eventually(lambda: bool(notices))
    assert notices[0] == "down"
    target.close()


def test_a_listener_that_fails_does_not_end_the_client(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    notices: list[str] = []

    def fail(notice: Notice) -> None:
        raise ValueError(notice.kind)

    client.listen(fail)
    client.listen(lambda notice: notices.append(notice.kind))
    target.pull()
    with pytest.raises(LinkLost):
        client.status(timeout=0.3)
    target.plug()
    assert client.status(timeout=30)
    assert notices[-1] == "up"
    target.close()


@pytest.mark.slow
def test_a_half_open_link_is_noticed(tmp_path: Path) -> None:
    """The other end is gone, and TCP does not know: no answer in time, then the silence ends the session."""
    rate = 20.0
    served = DeviceServer(emulate(DeviceSettings(seed=1), wire_ms(rate)), rate)
    listener = TcpListener()
    served.listen(listener)
    mischief = Impairment(Random(1))
    with FaultProxy(TcpFrontend(), TcpUpstream(listener.host, listener.port), mischief) as proxy:
        client = connect(proxy.url, keyring=Keyring(tmp_path), clock=Clock(rate), simulator=True)
        mischief.half_open = True
        with pytest.raises(DeviceTimeout) as error:
            client.status(timeout=0.05)
        assert isinstance(error.value, TimeoutError)
        assert error.value.advice
        with pytest.raises(LinkLost):
            client.status(timeout=2)
        assert client.link is not LinkState.UP
        mischief.half_open = False
        assert client.status(timeout=30)
        client.close()
    served.close()


def test_a_command_never_sent_before_a_reboot_is_not_executed(tmp_path: Path) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    target.pull()
    assert eventually(lambda: client.link is not LinkState.UP)
    _, future = client.submit(Locate(5), 30)
    target.reboot()
    target.plug()
    assert isinstance(future.exception(35), DeviceRebooted)
    assert [each for each in client.events(0, timeout=0) if each.name == "located"] == []
    target.close()


def test_ctrl_c_leaves_the_link_usable(tmp_path: Path, mocker: MockerFixture) -> None:
    target = Pty(tmp_path)
    client = target.connect()
    client.status()
    target.pull()
    assert eventually(lambda: client.link is not LinkState.UP)
    before = client.loop.connection.protocol.waiting()
    future_result = mocker.patch("sabot_driver.client.Future.result", side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        client.status(timeout=300)
    mocker.stop(future_result)
    assert client.loop.connection.protocol.waiting() == before, "nobody waits for that answer any more"
    target.plug()
    assert client.status(timeout=30)
    target.close()


def test_a_write_nobody_takes_ends(tmp_path: Path, mocker: MockerFixture) -> None:
    mocker.patch("sabot_driver.transports.WRITE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        way = SocketTransport(f"socket://127.0.0.1:{deaf.getsockname()[1]}")
        way.open()
        with pytest.raises(LinkLost):
            way.write(bytes(64 << 20))
        way.close()


def test_reading_a_closed_port_is_a_lost_link() -> None:
    with bare_terminal() as terminal:
        way = SerialTransport(terminal.path)
        way.open()
        way.close()
        with pytest.raises(LinkLost):
            way.read()
        with pytest.raises(LinkLost):
            way.write(b"x")


# -- a full disk --------------------------------------------------------------------------------


def test_a_full_disk_stops_acknowledging_and_refuses_a_round(tmp_path: Path, mocker: MockerFixture) -> None:
    mocker.patch("sabot_driver.io_loop.RETRY_DISK_MS", 50)
    target = Tcp(tmp_path)
    path = tmp_path / "journal.db"
    client = target.connect(journal=path)
    table = Table(client)
    table.open()
    client.ask(Locate(1))
    table.wait_for(Located, 0)
    assert eventually(lambda: target.python.end.events.unacknowledged() == 0)
    notices: list[str] = []
    client.listen(lambda notice: notices.append(notice.kind))
    journal = client.journal
    with journal._lock:
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count={pages}")
    for _ in range(2000):
        client.ask(Locate(1))
        if "journal_failed" in notices:
            break
    assert "journal_failed" in notices
    with pytest.raises(JournalFull) as full:
        client.ask(OpenRound(1, 1))
    assert "space on the disk" in full.value.advice
    assert target.python.end.events.unacknowledged() > 0
    assert client.status(), "everything else goes on"
    with journal._lock:
        journal._db.execute("PRAGMA max_page_count=1000000")
    assert eventually(lambda: target.python.end.events.unacknowledged() == 0)
    assert eventually(lambda: "journal_works" in notices)
    told = [each.n for each in client.events(0, timeout=0) if isinstance(each, ReceivedEvent)]
    assert told == list(range(1, len(told) + 1))
    client.ask(OpenRound(1, 1))
    target.close()


def test_a_restored_journal_is_noticed_by_its_numbers(tmp_path: Path) -> None:
    """A backup of the journal is put back: no number is used twice, and events are told again from there."""
    target = Tcp(tmp_path)
    path = tmp_path / "journal.db"
    first = target.connect(journal=path)
    Table(first).floor()
    first.close()
    with Journal(path) as journal:
        backup = [(each.boot_id, each.n) for each in journal.entries()]
    shutil.copy(path, tmp_path / "backup.db")
    client = target.connect(journal=path)
    Table(client).open()
    client.close()
    shutil.copy(tmp_path / "backup.db", path)
    again = target.connect(journal=path)
    table = Table(again)
    table.open_round(2, 1)
    table.stack(1)
    told = [(each.boot_id, each.n) for each in again.events(0, timeout=0) if isinstance(each, ReceivedEvent)]
    assert told[: len(backup)] == backup
    assert len(set(told)) == len(told)
    target.close()
