"""Flashing an emulated Pico: service starts its loader, drive or prompt takes an image, and it answers."""

import hashlib
import threading
import time
from pathlib import Path
from random import Random

import pytest
from tests.board.served import Flash, PtyCable, serve

from sabot_cli import main
from sabot_driver.keyring import write_key
from sabot_flash.bootloader_drive import ABOUT, TARGET
from sabot_image_build.build import build_development, build_file_system, build_mpy
from sabot_image_build.programs import ToolMissing
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

SERVICE_KEY = bytes(range(1, 33))
INFO = "UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n"


class Bench:
    """A Pico that is served on a terminal; when it starts its boot loader it is a drive, then boots anew."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.cable = PtyCable()
        self.port = self.cable.address
        self.drive = folder / "drive"
        self.drive.mkdir()
        self.loaders = 0
        self._folder = folder
        self._image = image
        self._going = True
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._failed: BaseException | None = None

    def __enter__(self) -> "Bench":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._going = False
        self._thread.join(60)
        assert self._failed is None, self._failed

    def _live(self) -> None:
        try:
            fram = b""
            while self._going:
                with Pico(self._image, board_wiring(), bootrom(self._folder)) as pico:
                    if fram:
                        pico.write_fram(fram)
                    serve(pico, PinDrivenMachine(Random(1)), self.cable, lambda: self._going)
                    fram = pico.read_fram()
                if self._going:
                    self._be_a_drive()
        except BaseException as error:  # noqa: BLE001  told when the bench is left
            self._failed = error

    def _be_a_drive(self) -> None:
        self.loaders += 1
        target = self.drive / TARGET
        (self.drive / ABOUT).write_text(INFO)
        while self._going and (not target.exists() or target.stat().st_size < self._image.stat().st_size):
            time.sleep(0.05)
        if self._going:
            copied = self._folder / f"copied{self.loaders}.uf2"
            copied.write_bytes(target.read_bytes())
            self._image = copied
            (self.drive / ABOUT).unlink()


def provision(bench: Bench, folder: Path) -> None:
    """Give the device its keys, as a table's computer does."""
    args = ["--device", bench.port, "--timeout", "300", "--service-key", str(folder / "service.key")]
    assert main.run(["provision", *args]) == 0


def test_a_production_board_is_flashed_by_service_and_proves_its_components(
    image: Path, tmp_path: Path, flash: Flash
) -> None:
    write_key(tmp_path / "service.key", SERVICE_KEY)
    with Bench(image, tmp_path) as bench:
        provision(bench, tmp_path)
        code, said = flash(bench.port, "--uf2", image, "--drive", bench.drive)
        assert (code, said[-1]["error"]) == (5, "KeyMissing")
        assert bench.loaders == 0
        code, said = flash(
            bench.port, "--uf2", image, "--drive", bench.drive, "--service-key", tmp_path / "service.key"
        )
        assert code == 0, said[-1]
        assert bench.loaders == 1
        assert [each["event"] for each in said if each["event"] != "progress"] == [
            *("image", "stopped", "flashed", "identity"),
        ]
        assert said[-1]["model"] == "Sabot on RP2040"
        assert set(said[-1]["components"]) == {"controller", "card_recognition", "rng"}


def test_a_board_in_development_is_flashed_at_its_prompt_and_again_while_it_runs(
    tmp_path: Path, flash: Flash
) -> None:
    try:
        micropython = build_development()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    files = build_mpy(tmp_path / "mpy")
    first, second = tmp_path / "first.romfs", tmp_path / "second.romfs"
    first.write_bytes(build_file_system(files))
    second.write_bytes(build_file_system({**files, "another.py": b"pass\n"}))
    write_key(tmp_path / "service.key", SERVICE_KEY)
    with Bench(micropython, tmp_path) as bench:
        code, said = flash(bench.port, "--image", first)
        assert code == 0, said[-1]
        assert said[-1]["model"] == "Sabot on RP2040"
        assert said[-1]["components"] is None  # nobody has its key yet
        provision(bench, tmp_path)
        code, said = flash(bench.port, "--image", second)
        assert (code, said[-1]["error"]) == (5, "KeyMissing")
        code, said = flash(bench.port, "--image", second, "--service-key", tmp_path / "service.key")
        assert code == 0, said[-1]
        flashed = next(each for each in said if each["event"] == "flashed")
        assert flashed["place"] == "b"
        assert flashed["before"] == hashlib.sha256(first.read_bytes()).hexdigest()
        assert set(said[-1]["components"]) == {"controller", "card_recognition", "rng"}
        assert bench.loaders == 0
