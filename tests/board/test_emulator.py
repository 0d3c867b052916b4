"""The emulator does what rp2040js does, however quick; the image is built twice the same."""

import hashlib
from pathlib import Path
from random import Random

from tests.board.table import SEED, Table

from sabot_image.build import build_uf2
from sabot_image.uf2 import from_uf2
from sabot_simulators.rp2040.messages import SampleWanted, noise, sample
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.wiring import board_wiring

STEP_US = 6_173
END_US = 450_000
NOISE_SIZE = 8192


def _moments(pico: Pico) -> list[str]:
    """What the chip is at moments through its boot."""
    found = []
    pico.power_on()
    pico.run(0, [noise(Random(SEED).randbytes(NOISE_SIZE))])
    for until in range(STEP_US, END_US, STEP_US):
        while pico.now_us < until:
            ran = pico.run(until)
            while any(isinstance(told, SampleWanted) for told in ran.told):
                ran = pico.run(until, [sample(400)])
        found.append(pico.digest())
    return found


def test_instructions_do_what_the_interpreter_does_and_take_as_long(image: Path, tmp_path: Path) -> None:
    rom = bootrom(tmp_path)
    with Pico(image, board_wiring(), rom) as quick:
        ours = _moments(quick)
    with Pico(image, board_wiring(), rom, interpreted=True) as slow:
        theirs = _moments(slow)
    assert len(set(ours)) > 10
    assert ours == theirs


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
