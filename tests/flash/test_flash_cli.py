"""``sabot flash`` as a user sees it: by a port, by a drive, and what it leaves alone."""

import itertools
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.conformance.table import Table
from tests.conformance.targets import Tcp
from tests.flash.applications import OLD, boots
from tests.flash.board import UNIX, UnixBoard
from tests.flash.command import Sabot
from tests.flash.images import INFO, MADE, image

from sabot_cli import flash_command as command
from sabot_driver.discovery import DiscoveredDevice
from sabot_driver.keyring import write_key
from sabot_flash import install, running_device
from sabot_flash.bootloader_drive import ABOUT, TARGET
from sabot_flash.errors import BoardBusy, NotWritten
from sabot_flash.image_components import ImageComponent
from sabot_flash.running_device import check_idle
from sabot_flash.uf2_image import check_image
from sabot_protocol.codec import CODEC
from sabot_protocol.errors import Refusal
from sabot_protocol.host.messages import (
    Identity,
    Role,
    ShoeState,
    ShufflerState,
    StatusReport,
)
from sabot_protocol.modes import check_command
from sabot_protocol.schema_hash import SCHEMA_HASH

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


def answers(version: str) -> DiscoveredDevice:
    """What a board that was flashed answers."""
    major, minor = CODEC.version
    about = Identity(
        major, minor, SCHEMA_HASH, 0, 1, bytes(4), 16, 249, bytes(8), model="Sabot on RP2040", version=version
    )
    return DiscoveredDevice("port", about)


def file_of(tmp_path: Path) -> Path:
    """The small application as a file."""
    path = tmp_path / "application.romfs"
    path.write_bytes(OLD.data)
    return path


# -- by a port -------------------------------------------------------------------------------------------


def test_a_board_at_its_prompt_is_flashed_and_shows_its_identity(
    sabot: Sabot, board: UnixBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install.install, "__defaults__", (UNIX,))
    monkeypatch.setattr(running_device, "wait_for_device", lambda port, seconds: answers("old"))
    monkeypatch.setattr(command.Flashing, "_compare", lambda self, found, wanted: False)
    ran = sabot(board.port, "--image", file_of(tmp_path))
    assert boots(board) == b"application old old"
    assert ran.code == 0
    assert ran.names() == ["progress", "flashed", "identity"]
    assert ran.last["model"] == "Sabot on RP2040"
    assert ran.last["components"] is None


def test_the_example_of_the_commands_help_runs(
    sabot: Sabot, board: UnixBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With this board's port instead of the example's, and the image where the build puts it."""
    monkeypatch.setattr(install.install, "__defaults__", (UNIX,))
    monkeypatch.setattr(running_device, "wait_for_device", lambda port, seconds: answers("old"))
    monkeypatch.setattr(command.Flashing, "_compare", lambda self, found, wanted: False)
    monkeypatch.chdir(tmp_path)
    command.IMAGE.parent.mkdir(parents=True)
    command.IMAGE.write_bytes(OLD.data)
    assert command.flash.epilog is not None
    program, name, port = command.flash.epilog.split()[-3:]
    assert (program, name) == ("sabot", "flash")
    assert port.startswith("/dev/")
    ran = sabot(board.port)
    assert (ran.code, ran.last["event"]) == (0, "identity")


def test_another_version_that_answers_is_told(
    sabot: Sabot, board: UnixBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install.install, "__defaults__", (UNIX,))
    monkeypatch.setattr(running_device, "wait_for_device", lambda port, seconds: answers("older"))
    ran = sabot(board.port, "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (5, "NotWritten")


def test_a_board_of_another_kind_is_left_alone(sabot: Sabot, board: UnixBoard, tmp_path: Path) -> None:
    ran = sabot(board.port, "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (5, "WrongBoard")
    assert board.operations() == []


def test_without_mpremote_it_says_what_to_install(
    sabot: Sabot, board: UnixBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mpremote.transport", None)
    ran = sabot(board.port, "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (1, "MpremoteMissing")
    assert "pip install 'sabot[flash]'" in ran.last["advice"]


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        ([], "UsageError", 2),
        (["port", "--uf2", "a", "--image", "b"], "UsageError", 2),
        (["port", "--drive", "a"], "UsageError", 2),
        (["sabot.uf2"], "UsageError", 2),
        (["sabot.romfs"], "UsageError", 2),
        (["port", "--image", "/nowhere"], "NoApplication", 2),
        (["--uf2", "/nowhere"], "NoApplication", 2),
    ],
)
def test_what_makes_no_sense(sabot: Sabot, arguments: list[str], error: str, code: int) -> None:
    ran = sabot(*arguments)
    assert (ran.code, ran.last["error"]) == (code, error)


# -- a device that runs ----------------------------------------------------------------------------------


def test_another_device_is_left_alone(sabot: Sabot, tmp_path: Path) -> None:
    ran = sabot("sim://", "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (5, "WrongBoard")


def test_a_device_in_a_round_is_left_alone(sabot: Sabot, tcp: Tcp, tmp_path: Path) -> None:
    table = Table(tcp.connect())
    table.open()
    table.open_round()
    before = tcp.device.boots
    tcp._clients.pop().close()
    ran = sabot(tcp.listener.url, "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (6, "BoardBusy")
    assert "would be void" in ran.last["message"]
    assert tcp.device.boots == before


def test_a_device_that_another_host_owns_is_left_alone(sabot: Sabot, tcp: Tcp, tmp_path: Path) -> None:
    tcp.connect()
    ran = sabot(tcp.listener.url, "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (6, "OwnerHeld")


def test_stopping_a_device_takes_service(sabot: Sabot, tcp: Tcp, tmp_path: Path) -> None:
    key = bytes(range(32))
    tcp.connect().set_key(Role.SERVICE, key)
    tcp._clients.pop().close()
    ran = sabot(tcp.listener.url, "--image", file_of(tmp_path))
    assert (ran.code, ran.last["error"]) == (5, "KeyMissing")
    write_key(tmp_path / "wrong", bytes(32))
    ran = sabot(tcp.listener.url, "--image", file_of(tmp_path), "--service-key", tmp_path / "wrong")
    assert ran.last["error"] == "BadCredential"
    write_key(tmp_path / "service", key)
    ran = sabot(tcp.listener.url, "--image", file_of(tmp_path), "--service-key", tmp_path / "service")
    assert (ran.code, ran.last["error"]) == (3, "NoPrompt")  # this one has no loader to start
    assert "BOOTSEL" in ran.last["advice"]


def report(shuffler: ShufflerState, shoe: ShoeState) -> StatusReport:
    return StatusReport(1, 0, 0, shuffler, shoe, 0, 0, 0, 0)


def test_only_a_machine_at_rest_and_empty_is_stopped() -> None:
    resting = {"IDLE", "EMPTY", "SERVICE", "OUT_OF_ORDER"}
    for shuffler, shoe in itertools.product(ShufflerState, ShoeState):
        if {shuffler.name, shoe.name} <= resting:
            check_idle(report(shuffler, shoe))
            check_command("start_loader", shuffler, shoe)
        else:
            with pytest.raises(BoardBusy, match="not idle and empty"):
                check_idle(report(shuffler, shoe))
            with pytest.raises(Refusal, match="wrong_state"):
                check_command("start_loader", shuffler, shoe)


# -- by a drive ------------------------------------------------------------------------------------------


def boot_loader(folder: Path, whole: int) -> threading.Thread:
    """A board that starts its program as soon as it has all of it."""

    def wait() -> None:
        target = folder / TARGET
        while not target.exists() or target.stat().st_size < whole:
            time.sleep(0.01)
        (folder / ABOUT).unlink()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_an_image_is_copied_to_the_drive_and_what_answers_is_compared(
    sabot: Sabot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_device, "wait_for_device", lambda port, seconds: answers(MADE[0].version))
    monkeypatch.setattr(command.Flashing, "_compare", lambda self, found, wanted: True)
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / ABOUT).write_text(INFO)
    (tmp_path / "one.uf2").write_bytes(image())
    thread = boot_loader(drive, len(image()))
    ran = sabot("--uf2", tmp_path / "one.uf2", "--drive", drive)
    thread.join()
    assert ran.code == 0
    assert ran.names() == ["image", "progress", "flashed", "identity"]
    assert (drive / TARGET).read_bytes() == image()
    wanted = check_image(image()).components[0].sha256
    assert ran.last["components"]["controller"] == ["1.2.3", wanted.hex()]


def test_a_damaged_image_is_not_copied(sabot: Sabot, tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text(INFO)
    (tmp_path / "one.uf2").write_bytes(image()[:-512])
    ran = sabot("--uf2", tmp_path / "one.uf2", "--drive", tmp_path)
    assert (ran.code, ran.last["error"]) == (5, "BadImage")
    assert not (tmp_path / TARGET).exists()


def test_components_are_asked_of_the_device(tcp: Tcp) -> None:
    """An emulated device has no image: what it says of its components is not what was flashed."""
    client = tcp.connect()
    with pytest.raises(NotWritten, match=r"controller is 0\.1\.0"):
        running_device.compare_components(client, (ImageComponent("controller", "1", bytes(32)),), 5)
