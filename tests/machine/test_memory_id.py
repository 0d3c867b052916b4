"""The memory id tells hosts that numbers begin anew."""

import pytest
from tests.attacks.by_hand import Table

from sabot_firmware.critical import HEAD_SIZE, CriticalMemory
from sabot_firmware.persistent_state import RECORDS, PersistentState
from sabot_protocol.record_store import RECORDS as OTHERS
from sabot_simulators.chips import SimFram
from sabot_simulators.micropython_device import MicroPythonDevice
from sabot_simulators.python_device import WiredPythonDevice

MEMORY_ID = 5  # its place in an identity


def chip_of(table: Table) -> SimFram:
    device = table.device
    if isinstance(device, MicroPythonDevice):
        assert isinstance(device.chip, SimFram)
        return device.chip
    assert isinstance(device, WiredPythonDevice)
    return device.chip


def core_record() -> int:
    """Where the core's record begins."""
    return sum(2 * (HEAD_SIZE + most) for _, most in OTHERS)


@pytest.mark.parametrize(
    "firmware", ["python", pytest.param("micropython", marks=[pytest.mark.slow, pytest.mark.full])]
)
@pytest.mark.parametrize("how", ["damaged", "unknown version"])
def test_a_damaged_record_of_rounds_and_decks_draws_a_new_one(
    firmware: str, how: str, request: pytest.FixtureRequest
) -> None:
    """Round and deck numbers began anew under the same memory id: round 1 was dealt twice."""
    if firmware == "micropython":
        request.getfixturevalue("micropython")
    with Table(firmware) as table:
        chip = chip_of(table)
        memory = CriticalMemory(chip, RECORDS)
        kept = PersistentState(memory)
        kept.round_id = 7
        kept.save()
        before = table.clear("identify")[MEMORY_ID]
        table.served._reboot()
        assert table.clear("identify")[MEMORY_ID] == before
        memory = CriticalMemory(chip, RECORDS)
        if how == "damaged":
            for slot in range(2):
                at = core_record() + slot * (HEAD_SIZE + RECORDS[0][1])
                chip.flip(at + HEAD_SIZE + 20, 3)
        else:
            memory.save("core", b"\xfe" + kept.pack()[1:])
        table.served._reboot()
        after = table.clear("identify")[MEMORY_ID]
        assert after != before
        for _ in range(400):
            table.turn()
        table.served._reboot()
        assert table.clear("identify")[MEMORY_ID] == after
