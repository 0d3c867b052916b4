"""The record in flash that says which house the device belongs to.

Sectors with data but no valid cell count as damaged: such a device takes no key after presence, because
nobody can sign for it. Service can set the house anew while the device has its keys.
"""

import struct

from sabot_firmware import flash_cells
from sabot_firmware.event_log import Flash
from sabot_firmware.flash_cells import FlashCells
from sabot_protocol.house import HouseRecord

SECTORS = flash_cells.SECTORS
CELL = 128
_MAGIC = 0x53484253  # "SBHS"
_FORM = "<32sIB24s"  # key, reset count, length of the site, site
_SIZE = 61


class FlashHouseRecord(HouseRecord):
    """The record, in a range of flash that it alone uses."""

    def __init__(self, flash: Flash) -> None:
        super().__init__()
        self._cells = FlashCells(flash, _MAGIC, _SIZE, CELL)
        record = self._cells.take()
        if record is None:
            self.damaged = self._cells.touched
            return
        self.key, self.count, length, site = struct.unpack(_FORM, record)
        self.site = str(site[:length], "utf-8")

    def write(self, key: bytes, site: str, count: int) -> None:
        """Keep it; OSError if it cannot be read back, and then the record is the old or the new one."""
        name = site.encode()
        self._cells.write(struct.pack(_FORM, key, count, len(name), name))
        super().write(key, site, count)
