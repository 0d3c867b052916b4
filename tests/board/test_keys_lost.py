"""The board without its keys, its contact, and what is left in RAM for the boot loader."""

import re

import pytest
from tests.board.table import Table

from sabot_firmware import hardware
from sabot_protocol.codec import CODEC
from sabot_protocol.errors import Refusal
from sabot_protocol.notifications import EventReceived
from sabot_protocol.provisioning import HOLD_MS
from sabot_protocol.wire_constants import DEVICE
from sabot_simulators.board_faults import keys_record
from sabot_simulators.rp2040 import runner_messages

KEYS_DAMAGED = 0x0008
PROVISIONED = 0x0001
FLAGS, MEMORY_ID = 3, 5
RAM_SIZE = 264 * 1024
FRAM_SIZE = 32768
KEY_SIZE = 32
INNER_PAD = b"\x36" * 32  # follows the key of each generator, in what HMAC hashes first


def reboot(table: Table) -> None:
    table.device.power_off()
    table.device.power_on()
    table.device.run_for(2_000_000)


def flags(table: Table) -> int:
    return int(table.device.ask_clear("identify")[FLAGS])


@pytest.mark.parametrize("cause", ["absent", "read_only", "blank", "damaged"])
def test_a_board_without_its_keys_says_so(ready: Table, cause: str) -> None:
    pico = ready.device.pico
    if cause in ("absent", "read_only"):
        pico.break_fram("absent" if cause == "absent" else "deaf")
    elif cause == "blank":
        pico.write_fram(bytes(FRAM_SIZE))
    else:
        at, size = keys_record()
        pico.write_fram(bytes(byte ^ 8 for byte in pico.read_fram(at, size)), at)
    reboot(ready)
    assert flags(ready) & (KEYS_DAMAGED | PROVISIONED) == KEYS_DAMAGED
    pico.break_fram("absent", False)
    pico.break_fram("deaf", False)


def test_the_contact_clears_the_keys(ready: Table) -> None:
    device = ready.device
    before = device.ask_clear("identify")[MEMORY_ID]
    device.run_for(1_000_000)
    ready.machine.hold_contact(True)
    device.run_for((HOLD_MS - 1000) * 1000)
    assert flags(ready) & PROVISIONED
    device.run_for(2_000_000)
    ready.machine.hold_contact(False)
    assert not flags(ready) & (PROVISIONED | KEYS_DAMAGED)
    assert device.ask_clear("identify")[MEMORY_ID] != before
    reboot(ready)
    assert not flags(ready) & (PROVISIONED | KEYS_DAMAGED)


def test_no_key_and_no_seed_is_left_in_ram_for_the_boot_loader(ready: Table) -> None:
    """On the old code every key, and later both generators, were still in RAM when the boot loader ran."""
    device, pico = ready.device, ready.device.pico
    ram = pico.read_ram(0, RAM_SIZE)
    pads = [found.start() for found in re.finditer(re.escape(INNER_PAD), ram)]
    generators = [bytes(byte ^ INNER_PAD[0] for byte in ram[at - KEY_SIZE : at]) for at in pads]
    generators = [key for key in generators if any(key) and key in ram]
    assert len(generators) >= 2  # the one for shuffles and the one for nonces
    secrets = [device._keys[DEVICE], *generators]
    assert all(secret in ram for secret in secrets)
    device.command("start_loader", role="service")
    why = ""
    for _ in range(2000):
        ran = pico.run(device.machine.agenda.now_us + 5_000)
        device.machine.agenda.advance(max(int(ran.now_us), device.machine.agenda.now_us))
        why = ran.why
        if why == runner_messages.LOADER:
            break
    assert why == runner_messages.LOADER
    ram = pico.read_ram(0, RAM_SIZE)
    for secret in secrets:
        for at in range(0, KEY_SIZE, 8):
            assert secret[at : at + 8] not in ram


def test_the_loader_is_not_started_with_cards_inside(opened: Table) -> None:
    with pytest.raises(Refusal):
        opened.device.command("start_loader", role="service")


def test_an_event_that_comes_while_no_host_talks_has_its_time(ready: Table) -> None:
    """On the old code time stood still without a host: such an event had the time of the last talk."""
    device = ready.device
    times: dict[str, int] = {}
    heard = device._heard

    def note(event: EventReceived) -> None:
        message = CODEC.find(event.message)
        assert message is not None
        times[message.name] = event.utc_s
        heard(event)

    device._heard = note  # type: ignore[method-assign]
    device.pull_cable()
    device.run_for(60_000_000)
    pressed_s = device._utc_s()
    ready.machine.sensors.set(hardware.LEFT_BUTTON, 1)
    device.run_for(60_000_000)
    device.plug_cable()
    device.run_for(1_000_000)
    assert pressed_s is not None
    assert abs(times["buttons"] - pressed_s) <= 1
