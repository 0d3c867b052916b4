"""A home for the files of one test, and people who are enrolled in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.at_table.next_start import NextStart
from tests.at_table.terminal import DEALER_PIN, FLOOR_PIN, Open, Terminal
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

from sabot_driver import Credential
from sabot_driver.keyring import read_key
from sabot_driver.user_files import UserFiles
from sabot_protocol.host.messages import Role
from sabot_session import pin_hash
from sabot_session.people import PeopleRegister
from sabot_table.procedure import TableRole


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where keys, journals, records and the register of people of one test are."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SABOT_HOME", str(folder))
    return folder


@pytest.fixture
def sabot(home: Path, capsys: pytest.CaptureFixture[str]) -> Sabot:
    """Runs a command in this process."""
    return Sabot(capsys)


@pytest.fixture
def terminal(home: Path) -> Open:
    """Opens a terminal with a command of ``sabot``."""
    return lambda *arguments: Terminal(home, *arguments)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """The URL of an emulated device that no program owns yet."""
    target = Tcp(tmp_path)
    yield target.listener.url
    target.close()


@pytest.fixture
def next_start(home: Path, capsys: pytest.CaptureFixture[str]) -> NextStart:
    """Starts ``sabot play`` again, and leaves when it says what is expected."""
    return NextStart(capsys)


@pytest.fixture
def floor_key(home: Path, terminal: Open, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dealer (dana) and the floor (flo) are enrolled; the floor's key, which ``sim://`` devices know."""
    with terminal("status", "--device", "sim://", "--json") as made:
        assert made.end() == 0
    files = UserFiles(home)
    key = files.floor_key(b"SIM00001")
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)  # little work for scrypt; the register keeps the parameters
    with PeopleRegister(files.people) as people:
        people.enrol("dana", "Dana Deal", [TableRole.DEALER], DEALER_PIN, "setup", 100)
        people.enrol("flo", "Flo Or", [TableRole.FLOOR], FLOOR_PIN, "setup", 100)
        people.give_key("flo", Credential(Role.FLOOR, read_key(key)), "setup", 101)
    return key


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Tcp, Tcp]]:
    """Two emulated machines, each at an address of its own."""
    both = Tcp(tmp_path / "one", "seed=1&serial=SIM00001"), Tcp(tmp_path / "two", "seed=2&serial=SIM00002")
    yield both
    for each in both:
        each.close()
