"""The image boots, says what it is, takes its keys, and lets nobody in by another way."""

from tests.board.table import Table

from sabot_firmware import hardware, shoe, shuffler
from sabot_image_build import modules
from sabot_image_build.build import MICROPYTHON
from sabot_protocol import __version__
from sabot_protocol.codec import enum_number
from sabot_simulators.rp2040 import runner_messages
from sabot_simulators.rp2040.pico import SERIAL


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


def test_it_names_three_components_with_the_hashes_of_what_they_are_made_of(ready: Table) -> None:
    for component in modules.components(__version__, MICROPYTHON):
        number = enum_number("Component", component.name)
        assert ready.device.ask("component", number) == (number, component.sha256, component.version)


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
