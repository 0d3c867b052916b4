"""Fixtures of the tests of house credentials."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver.command import Sabot
from tests.house.harbour import Harbour
from tests.house.house_device import HouseDevice

from sabot_driver import Client, connect
from sabot_house import on_device
from sabot_protocol.host.messages import HouseKey
from sabot_session import pin_hash

CHECK_S = 60.0


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harbour]:
    """A house with an office, and a table PC that trusts it."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)
    with Harbour(tmp_path) as made:
        yield made


@pytest.fixture
def sabot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path
) -> Sabot:
    """Runs a command in this process; every PIN is the same."""
    monkeypatch.chdir(tmp_path)
    return Sabot(capsys)


@pytest.fixture
def house_device(sabot: Sabot, tmp_path: Path) -> Iterator[HouseDevice]:
    """A device that belongs to the house of the folder ``office``."""
    made = HouseDevice(tmp_path / "device", sabot)
    yield made
    made.target.close()


@pytest.fixture
def house_client(harbour: Harbour) -> Iterator[Client]:
    """A device of the harbour, with the newest list of revocations."""
    with connect("sim://?seed=1") as made:
        made.ask(HouseKey(bytes.fromhex(harbour.office.key.public), "MAIN", 0, 0, b""), CHECK_S)
        assert on_device.hand_over(made, harbour.office.revocations())
        yield made
