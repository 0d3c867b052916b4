"""Fixtures of the flashing tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.targets import Tcp
from tests.flash.board import UnixBoard
from tests.flash.command import Sabot
from tests.flash.images import INFO

from sabot_driver.clock import Clock
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_driver.user_files import UserFiles
from sabot_flash import running_device
from sabot_flash.bootloader_drive import ABOUT
from sabot_simulators import emulated_device


@pytest.fixture
def sabot(capsys: pytest.CaptureFixture[str]) -> Sabot:
    """Runs ``sabot flash --json`` in this process."""
    return Sabot(capsys)


@pytest.fixture
def board(micropython: str, tmp_path: Path) -> Iterator[UnixBoard]:
    """A board that is MicroPython on this computer, with a flash of its own."""
    with UnixBoard(micropython, tmp_path) as made:
        yield made


@pytest.fixture
def tcp(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tcp]:
    """An emulated device that passes for the kind of board that is flashed; this computer has its key."""
    monkeypatch.setattr(running_device, "MODEL", "Sabot")
    monkeypatch.setattr(emulated_device, "SIMULATOR", 0)
    made = Tcp(tmp_path, "seed=1")
    made.simulator = False
    made.keyring = UserFiles().keyring
    with UnsecuredExchange(made.way(), made.listener.url, Clock(), 30) as asking:
        serial, key = asking.identify().serial, bytes(range(1, 33))
        asking.provision(serial, key)
    made.keyring.keep(serial, key)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A folder like the boot loader's drive."""
    (tmp_path / ABOUT).write_text(INFO)
    return tmp_path
