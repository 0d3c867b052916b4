"""Fixtures of the attacks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.by_hand import FLOORS_KEY, NOON, ROLE, SLOT, Table, hold_contact, turns
from tests.attacks.disk import Disk
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot
from tests.evidence.day import Day, play_day
from tests.house.harbour import Harbour
from tests.house.house_device import HouseDevice
from tests.serve.page_client import PageClient
from tests.serve.served_table import served_table

from sabot_protocol.session import slot_key
from sabot_session import pin_hash


@pytest.fixture
def sabot(capsys: pytest.CaptureFixture[str]) -> Sabot:
    """Runs a command in this process."""
    return Sabot(capsys)


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[Tcp]:
    """A device without a key that calls itself a simulator and has the machine's serial number."""
    made = Tcp(tmp_path, "seed=1&serial=SB000123")
    yield made
    made.close()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """A table PC's disk."""
    return Disk(tmp_path_factory.mktemp("disk"))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A day at a table, whose files an attacker edits."""
    return play_day(tmp_path_factory.mktemp("day") / "played")


@pytest.fixture(params=["python", pytest.param("micropython", marks=[pytest.mark.slow, pytest.mark.full])])
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """A device with an owner."""
    if request.param == "micropython":
        request.getfixturevalue("micropython")
    with Table(request.param) as made:
        yield made


@pytest.fixture
def floor(table: Table) -> Table:
    """A device whose floor has a key, with the time set."""
    assert table.outcome("set_clock", NOON, 0)[0] == "ok"
    serial = table.clear("identify")[8]
    assert table.outcome("set_key", SLOT, ROLE, 1, slot_key(FLOORS_KEY, serial, SLOT))[0] == "ok"
    return table


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageClient]:
    """A browser that was let in at a table whose web service is attacked."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)
    with served_table(tmp_path) as table, PageClient(table) as page:
        page.enter()
        yield page


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harbour]:
    """A house with an office, and a table PC that trusts it."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)
    with Harbour(tmp_path) as made:
        yield made


@pytest.fixture
def house_device(
    sabot: Sabot, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HouseDevice]:
    """A device that belongs to the house of the folder ``office``."""
    monkeypatch.chdir(tmp_path)
    made = HouseDevice(tmp_path / "device", sabot)
    yield made
    made.target.close()


@pytest.fixture
def stolen(table: Table, harbour: Harbour) -> Table:
    """A device of the harbour, whose contact a thief has held."""
    house = bytes.fromhex(harbour.office.key.public)
    turns(table, 3000)  # the self-test moves something
    assert table.outcome("house_key", house, "MAIN", 0, 0, b"")[0] == "ok"
    hold_contact(table)
    return table
