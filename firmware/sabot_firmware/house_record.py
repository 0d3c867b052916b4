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
        self._flash = flash
        cells = FlashCells(flash, _MAGIC, _SIZE, CELL)  # not kept: a board has little memory
        if cells.record is None:
            self.damaged = cells.touched
            return
        self.key, self.count, length, site = struct.unpack(_FORM, cells.record)
        self.site = str(site[:length], "utf-8")

    def write(self, key: bytes, site: str, count: int) -> None:
        """Keep it; OSError if it cannot be read back, and then the record is the old or the new one."""
        cells = FlashCells(self._flash, _MAGIC, _SIZE, CELL)
        known = _packed(self.key, self.site, self.count) if self.key else None
        if cells.record != known:  # misread: a cell written now could count less than one that is there
            raise OSError("the house record was not read as before")
        cells.write(_packed(key, site, count))
        super().write(key, site, count)


def _packed(key: bytes, site: str, count: int) -> bytes:
    name = site.encode()
    return struct.pack(_FORM, key, count, len(name), name)
