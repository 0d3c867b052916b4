"""The image boots, says what it is, takes its keys, and lets nobody in by another way."""

from pathlib import Path
from random import Random

import pytest
from tests.board.table import Table

from sabot_firmware import hardware, shoe, shuffler
from sabot_flash.image_components import components_in
from sabot_flash.uf2_image import read_image
from sabot_image_build import modules
from sabot_image_build.build import MICROPYTHON
from sabot_image_build.uf2_image import to_uf2
from sabot_protocol import __version__
from sabot_protocol.codec import enum_number
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import SERIAL, Pico, bootrom
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring


def test_it_tests_itself_and_waits_for_a_deck(ready: Table) -> None:
    assert (ready.device.shuffler_state, ready.device.shoe_state) == (shuffler.IDLE, shoe.EMPTY)
    assert ready.device.named("booted") == [(enum_number("BootReason", "power"),)]
    assert ready.device.named("self_tested") == [(1, 1), (2, 1)]
    assert ready.machine.display == ("", "FEED A DECK")
    assert ready.machine.lamp == hardware.GREEN


def test_its_serial_number_is_the_boards_own(ready: Table) -> None:
    ready.device.host.disconnect()
    identity = ready.device.ask_clear("identify")
    assert identity[8] == SERIAL
    assert identity[9:] == ("Sabot on RP2040", __version__)


def test_it_names_components_with_hashes_of_sources_and_program(ready: Table, image: Path) -> None:
    read = read_image(image)
    sources = {each.name: each.sha256 for each in modules.components(__version__, MICROPYTHON)}
    assert sources == {each.name: each.sha256 for each in components_in(read.program)}
    assert len(read.components) == 3
    for component in read.components:
        number = enum_number("Component", component.name)
        assert ready.device.ask("component", number) == (number, component.sha256, component.version)


@pytest.mark.parametrize("place", ["words", "end"])
def test_a_patched_image_has_other_hashes(tmp_path: Path, image: Path, place: str) -> None:
    """On the old code it told the constants that the build had written: those of the genuine components."""
    genuine = read_image(image)
    program = bytearray(genuine.program)
    if place == "words":
        at = program.index(b"FEED A DECK")
        program[at : at + 4] = b"EAT!"
    else:
        program[-256] ^= 1  # a constant in the last page
    patched = tmp_path / "patched.uf2"
    patched.write_bytes(to_uf2([(0, bytes(program))]))
    with Pico(patched, board_wiring(), bootrom(tmp_path)) as pico:
        device = HostedPico(pico, PinDrivenMachine(Random(1)))
        device.provision()
        device.run_until_idle()
        for was, now in zip(genuine.components, read_image(patched).components, strict=True):
            number = enum_number("Component", was.name)
            assert now.sha256 != was.sha256
            assert device.ask("component", number) == (number, now.sha256, was.version)


def test_no_byte_of_the_cable_opens_a_prompt(ready: Table) -> None:
    device = ready.device
    device.host.disconnect()
    for attempt in (b"\x03\x03", b"\x01", b"\x02", b"\r\nimport machine\r\n", b"\x04", b"\x05A\x01"):
        device.wiring.changes.append(runner_messages.usb(attempt))
        heard: list[bytes] = []
        device._hear = heard.append  # type: ignore[assignment]
        device.run_for(300_000)
        del device._hear
        assert b">>>" not in b"".join(heard)
        assert b"raw REPL" not in b"".join(heard)
    assert device.resets == 0
    assert device.ask_clear("identify")[9] == "Sabot on RP2040"


def test_idle_it_sleeps(ready: Table) -> None:
    ready.device.host.disconnect()
    ready.device.run_for(30_000_000)  # the link gives up, the last row is written
    before = ready.device.pico.figures().cycles
    ready.device.run_for(10_000_000)
    assert ready.device.pico.figures().cycles - before < 12_500_000  # one in a hundred
