"""Make a provisioned device forget that it has an owner, then give it a key of one's own."""

import pytest
from tests.attacks.by_hand import TICK_MS, Table

from sabot_firmware import hardware, shuffler
from sabot_protocol.codec import CODEC
from sabot_protocol.errors import Refusal
from sabot_protocol.provisioning import HOLD_MS
from sabot_simulators.dealer import Dealer
from sabot_simulators.emulated_device import MEMORY_FAULTS
from sabot_simulators.stubs.month import StubbedDevice
from sabot_simulators.stubs.stubbed_board import StubbedBoard

pytestmark = pytest.mark.slow

KEYS_DAMAGED_FLAG = 0x0008
PROVISIONED_FLAG = 0x0001
MINE = b"the key of somebody who has none"


def take_over(table: Table) -> str:
    """What the device says to a host that gives it a key."""
    more = len(CODEC.named("provision").fields) - 2
    return table.refused("provision", b"sixteen bytes ok", MINE, *[bytes(32)] * more)


def turns(table: Table, ms: int) -> None:
    for _ in range(ms // TICK_MS):
        table.turn()


@pytest.mark.parametrize("cause", MEMORY_FAULTS)
def test_a_device_that_lost_its_keys_takes_no_new_ones(table: Table, cause: str) -> None:
    """On the old code the fourth crash in a row began with an empty memory, and damaged keys counted as none.

    The device called itself unprovisioned, took a key, let its new owner fill the service slot and started
    the boot loader.
    """
    table.device.damage_memory(cause)
    table.served._reboot()
    flags = table.clear("identify")[3]
    assert flags & (KEYS_DAMAGED_FLAG | PROVISIONED_FLAG) == KEYS_DAMAGED_FLAG
    assert take_over(table) == "keys_damaged"


def test_nothing_on_the_cable_closes_the_contact(table: Table) -> None:
    """Every message that needs no session, again and again, for longer than the contact must be held."""
    for id in range(256):
        message = CODEC.find(id)
        if message is None or message.kind != "clear":
            continue
        table.cable.write(table.frame(id, bytes(100)), 0)
        turns(table, HOLD_MS // 50)
    assert table.clear("identify")[3] & PROVISIONED_FLAG
    assert take_over(table) == "already_provisioned"


def test_a_restart_does_not_open_provisioning_again(table: Table) -> None:
    """Whoever waits for service to clear the keys finds the device closed after a power cut."""
    turns(table, 100)
    table.device.machine.hold_contact(True)
    turns(table, HOLD_MS + 500)
    table.device.machine.hold_contact(False)
    turns(table, 100)
    assert not table.clear("identify")[3] & (KEYS_DAMAGED_FLAG | PROVISIONED_FLAG)
    table.served._reboot()
    assert take_over(table) == "provisioning_closed"


def test_the_boot_loader_needs_service_and_an_empty_machine() -> None:
    """On the old code a device that had lost its memory let its new owner start the boot loader at any time.

    This is the shipped program over stubs of the board, the only one that has a boot loader.
    """
    with StubbedBoard() as board:
        device = StubbedDevice(board, 5)
        device.provision()
        device.run_until_idle()
        for role in ("table", "floor"):
            with pytest.raises(Refusal, match="wrong_role"):
                device.ask("start_loader", role=role)
        dealer = Dealer(device)
        dealer.feed(dealer.new_deck(hardware.RED))
        device.run_until(lambda: device.shuffler_state == shuffler.FEEDING)
        with pytest.raises(Refusal, match="wrong_state"):
            device.ask("start_loader", role="service")
        device.run_for(1_000_000)
        assert (board.boots, device.shuffler_state) == (1, shuffler.FEEDING)
