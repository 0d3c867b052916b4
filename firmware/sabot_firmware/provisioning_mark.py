"""The mark in flash that says whether the device was ever given a key.

It has two sectors of cells. A cell is a magic number, a sequence number, the state and a CRC-32; the newest
valid cell counts. When a sector is full, the other one is erased and used, while the full one still holds the
mark. A power cut leaves the old state or the new one. Sectors with data but no valid cell count as GIVEN, so
that a damaged mark never makes the device look new.
"""

import struct
from binascii import crc32

from sabot_firmware.event_log import Flash
from sabot_protocol.provisioning import GIVEN, NEVER, ProvisioningMark

SECTORS = 2
CELL = 16
_MAGIC = 0x4B4D4253  # "SBMK"
_FORM = "<IIBI"  # magic, sequence, state, CRC-32
_USED = 13
_BLANK = b"\xff" * CELL


class FlashProvisioningMark(ProvisioningMark):
    """The mark, in a range of flash that it alone uses."""

    def __init__(self, flash: Flash) -> None:
        super().__init__()
        self._flash = flash
        self._sequence = 0
        self._sector = 0
        self._at = 0  # where the next cell goes in it
        self._read()

    def _read(self) -> None:
        flash = self._flash
        found = False
        touched = False
        try:
            for sector in range(SECTORS):
                for at in range(0, flash.sector_size, CELL):
                    cell = flash.read(sector * flash.sector_size + at, CELL)
                    if cell == _BLANK:
                        continue
                    touched = True
                    magic, sequence, state, crc = struct.unpack_from(_FORM, cell)
                    if magic != _MAGIC or crc != crc32(cell[: _USED - 4]):
                        continue
                    if not found or sequence > self._sequence:
                        found = True
                        self._sequence, self._state, self._sector = sequence, state, sector
        except OSError:
            touched, found = True, False
        if not found:
            self._state = GIVEN if touched else NEVER
        self._at = self._first_free(self._sector)

    def _first_free(self, sector: int) -> int:
        """The end of a sector's cells, torn ones included; its size if full or unreadable."""
        flash = self._flash
        at = flash.sector_size
        try:
            while at and flash.read(sector * flash.sector_size + at - CELL, CELL) == _BLANK:
                at -= CELL
        except OSError:
            return flash.sector_size
        return at

    def write(self, state: int) -> None:
        """Save a state; OSError if it cannot be read back."""
        flash = self._flash
        if self._at >= flash.sector_size:
            other = (self._sector + 1) % SECTORS
            flash.erase(other)  # if this fails, the next try must not erase the sector that holds the mark
            self._sector = other
            self._at = 0
        self._sequence += 1  # also if this fails: the cell may hold all the same
        body = struct.pack("<IIB", _MAGIC, self._sequence, state)
        cell = body + struct.pack("<I", crc32(body))
        place = self._sector * flash.sector_size + self._at
        self._at += CELL
        flash.program(place, cell)
        if flash.read(place, len(cell)) != cell:
            raise OSError("the mark is not there")
        self._state = state
