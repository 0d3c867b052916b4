"""The mark in flash that says whether the device was ever given a key.

Sectors with data but no valid cell count as GIVEN, so that a damaged mark never makes the device look new.
"""

from sabot_firmware import flash_cells
from sabot_firmware.event_log import Flash
from sabot_firmware.flash_cells import FlashCells
from sabot_protocol.provisioning import GIVEN, NEVER, ProvisioningMark

SECTORS = flash_cells.SECTORS
CELL = 16
_MAGIC = 0x4B4D4253  # "SBMK"


class FlashProvisioningMark(ProvisioningMark):
    """The mark, in a range of flash that it alone uses."""

    def __init__(self, flash: Flash) -> None:
        super().__init__()
        self._cells = FlashCells(flash, _MAGIC, 1, CELL)
        record = self._cells.take()
        if record is not None:
            self._state = record[0]
        else:
            self._state = GIVEN if self._cells.touched else NEVER

    def write(self, state: int) -> None:
        """Save a state; OSError if it cannot be read back."""
        self._cells.write(bytes((state,)))
        self._state = state
