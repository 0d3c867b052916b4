"""The emulated Pico for all tests here: built once, booted once, restored from a snapshot for each test.

They run with ``make test-board``, which sets SABOT_BOARD; SABOT_UF2 names another image.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.board.heap import watched
from tests.board.served import Flash
from tests.board.table import HANDS, SEED, Table

from sabot_cli import flash_command as command
from sabot_cli import main
from sabot_flash import raw_repl
from sabot_image_build.build import build_uf2
from sabot_image_build.programs import ToolMissing
from sabot_simulators.allocation_faults.failing_device import FailingDevice
from sabot_simulators.allocation_faults.unix_build import build_micropython
from sabot_simulators.dealer import Dealer
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import EmulatorMissing, Pico, bootrom
from sabot_simulators.rp2040.snapshot import Snapshot
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

collect_ignore_glob = [] if os.environ.get("SABOT_BOARD") else ["test_*.py"]


@pytest.fixture(scope="session")
def image() -> Path:
    """The board's image."""
    named = os.environ.get("SABOT_UF2")
    if named:
        return Path(named)
    try:
        return build_uf2().path
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def pico(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pico]:
    """An emulated Pico with the image in its flash."""
    try:
        rom = bootrom(tmp_path_factory.mktemp("rom"))
        functions = () if os.environ.get("SABOT_UF2") else watched()  # of another image nobody knows where
        made = Pico(image, board_wiring(), rom, watched=functions)
    except EmulatorMissing as missing:
        pytest.skip(str(missing))
    with made:
        made.snapshot("new")
        yield made


@pytest.fixture(scope="session")
def ready_saved(pico: Pico) -> Snapshot[Table]:
    """Provisioned, connected, tested, at rest."""
    pico.restore("new")
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    device.provision()
    device.run_until_idle()
    device.run_for(500_000)
    return Snapshot(pico, "ready", Table(device, Dealer(device, HANDS)))


@pytest.fixture
def ready(ready_saved: Snapshot[Table]) -> Table:
    """Provisioned, connected, tested, at rest."""
    return ready_saved.restored().connected()


@pytest.fixture(scope="session")
def opened_saved(pico: Pico, ready_saved: Snapshot[Table]) -> Snapshot[Table]:
    """Two decks shuffled: one in the shoe, one on the shelf."""
    table = ready_saved.restored().connected()
    assert table.dealer.open_table()
    table.device.run_for(500_000)
    return Snapshot(pico, "opened", table)


@pytest.fixture
def opened(opened_saved: Snapshot[Table]) -> Table:
    """Two decks shuffled: one in the shoe, one on the shelf."""
    return opened_saved.restored().connected()


@pytest.fixture
def flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Flash:
    """``sabot flash --json``: its exit code and what it said."""
    monkeypatch.setenv("SABOT_HOME", str(tmp_path / "home"))
    for name in ("PROMPT_S", "START_S"):  # an emulated board on a busy computer takes its time
        monkeypatch.setattr(command, name, 300.0)
    monkeypatch.setattr(command, "ASK_S", 20.0)
    monkeypatch.setattr(raw_repl, "READ_S", 60.0)
    monkeypatch.setattr(raw_repl, "ENTER_S", 60.0)

    def run(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
        capsys.readouterr()
        code = main.run(["flash", "--json", "--timeout", "300", *map(str, arguments)])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def failing() -> Iterator[FailingDevice]:
    """A device on MicroPython with the C module, built from the sources of the board's image."""
    device = FailingDevice(build_micropython(), 1)
    yield device
    device.close()
