"""Fixtures of the driver's tests."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_mock import MockerFixture
from tests.conformance.targets import MicroPython, Pty
from tests.driver.chaos import nothing_left_behind
from tests.driver.command import Sabot
from tests.driver.connection_ends import Ends
from tests.driver.injected_errors import FailingConnection
from tests.driver.locked_disk import WAIT_S, Bench

from sabot_driver import Client, Journal, connect
from sabot_simulators.endpoints import emulated_usb as emulated

Kind = type[Pty]


@pytest.fixture
def sabot(capsys: pytest.CaptureFixture[str], home: Path) -> Sabot:
    """Runs a command in this process, never with the files of whoever runs the tests."""
    return Sabot(capsys)


@pytest.fixture
def bench(tmp_path: Path, mocker: MockerFixture) -> Iterator[Bench]:
    """A device with fast timers, and a client with a journal on disk, which waits long for a lock."""
    mocker.patch("sabot_driver.journal.BUSY_S", WAIT_S)
    made = Bench(tmp_path)
    made.rest()
    yield made
    made.close()


@pytest.fixture
def ends() -> Ends:
    """A connection with a session, the device clock set, and numbers reserved on disk."""
    made = Ends()
    made.connect()
    made.write()
    made.write()
    assert made.device.utc()[2]
    made.connection.completions.clear()
    return made


@pytest.fixture
def few_numbers(mocker: MockerFixture) -> None:
    """Command numbers are reserved 16 at a time, and a disk that failed is tried again at once."""
    mocker.patch("sabot_driver.io_loop.RETRY_DISK_MS", 20)
    mocker.patch("sabot_driver.journal.NUMBERS_AT_ONCE", 16)


@pytest.fixture
def bus() -> Iterator[emulated.EmulatedUsbBackend]:
    """A bus with a shoe."""
    with nothing_left_behind():
        backend = emulated.get_backend({"seed": ["1"], "serial": ["SIM00007"]})
        yield backend
        backend.close()


@pytest.fixture(params=[Pty, pytest.param(MicroPython, marks=pytest.mark.full)])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of firmware, behind a pseudo-terminal."""
    if request.param is MicroPython:
        request.getfixturevalue("micropython")
    made: Kind = request.param
    return made


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FailingConnection]]:
    """Journals are opened with databases that can fail."""

    def connect(path: object) -> sqlite3.Connection:
        return sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, factory=FailingConnection
        )

    monkeypatch.setattr(Journal, "_connect", staticmethod(connect))
    FailingConnection.left = 0
    yield FailingConnection
    FailingConnection.left = 0


@pytest.fixture(scope="module")
def sim_client() -> Iterator[Client]:
    """A client of an emulated device in this process."""
    with connect("sim://?seed=1") as client:
        yield client


@pytest.fixture(scope="module")
def closed_client() -> Client:
    """A client that was closed after its first event."""
    client = connect("sim://?seed=1")
    next(client.events(after=0, timeout=10))
    client.close()
    return client
