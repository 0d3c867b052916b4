"""The emulator does what rp2040js does, however quick; the image is built twice the same."""

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.board.table import SEED, Table

from sabot_firmware import hardware
from sabot_image_build.build import build_uf2
from sabot_image_build.uf2_image import from_uf2
from sabot_simulators.dealer import Dealer
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import HERE, Pico, bootrom, node
from sabot_simulators.rp2040.runner_messages import Change, RunResult
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

STEP_US = 6_173
CUT_US = 300_000
SHUFFLE_US = 2_500_000
RANDOM_PROGRAMS = HERE / "thumb_to_wasm" / "tests" / "random_programs.mjs"
PROGRAMS = 2_000
FEWEST = 5
"""How often each instruction must have been among them."""


class Watched(Pico):
    """Keeps what it was after every run."""

    moments: list[tuple[float, str, str]]

    def run(self, until_us: float, changes: Sequence[Change] = ()) -> RunResult:
        """Run, and look."""
        ran = super().run(until_us, changes)
        self.moments.append((ran.now_us, ran.why, self.digest()))
        return ran


def _moments(pico: Watched) -> list[tuple[float, str, str]]:
    """What the chip is through half a boot, a power cut, a boot, provisioning, and the start of a shuffle."""
    pico.moments = []
    device = HostedPico(pico, PinDrivenMachine(Random(SEED)))
    while pico.now_us < CUT_US:
        device.run_for(STEP_US)
    device.power_off()
    device.power_on()
    device.provision()
    device.run_until_idle()
    dealer = Dealer(device)
    dealer.feed(dealer.new_deck(hardware.RED))
    device.run_for(SHUFFLE_US)
    return pico.moments


def test_instructions_do_what_the_interpreter_does_and_take_as_long(image: Path, tmp_path: Path) -> None:
    rom = bootrom(tmp_path)
    with Watched(image, board_wiring(), rom) as quick:
        ours = _moments(quick)
    with Watched(image, board_wiring(), rom, interpreted=True) as slow:
        theirs = _moments(slow)
    assert len({digest for _, _, digest in ours}) > 200
    assert ours == theirs


def test_random_programs_end_as_the_interpreter_ends_them() -> None:
    command = [node(), str(RANDOM_PROGRAMS), str(PROGRAMS), str(SEED)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = json.loads(ended.stdout)
    assert said["compared"] > PROGRAMS * 9 // 10
    assert len(said["seen"]) > 70
    assert all(count >= FEWEST for name, count in said["seen"].items() if name != "NOP")


def test_two_builds_give_the_same_bytes(image: Path, tmp_path: Path, record_property: object) -> None:
    again = build_uf2(folder=tmp_path / "elsewhere")
    assert again.path.read_bytes() == image.read_bytes()
    assert b"MicroPython v1.25 on 2023-11-14" in b"".join(from_uf2(image.read_bytes()).values())
    assert callable(record_property)
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    record_property("figure", f"built twice: {again.program_bytes:,} bytes of program, UF2 {digest[:16]}")


def test_a_restored_board_goes_on_as_before(ready: Table) -> None:
    pico = ready.device.pico
    ready.device.run_for(50_000)
    pico.snapshot("here")
    machine_us = ready.machine.agenda.now_us
    pico.run(machine_us + 300_000)
    first = pico.digest()
    pico.restore("here")
    pico.run(machine_us + 300_000)
    assert pico.digest() == first
