"""A small record in two sectors of flash: a power cut leaves the old one or the new one.

A cell is a magic number, a sequence number, the record and a CRC-32; the newest valid cell counts. When a
sector is full, the other one is erased and used, while the full one still holds the record.
"""

import struct
from binascii import crc32

from sabot_firmware.event_log import Flash

SECTORS = 2
_HEAD = 8  # magic, sequence
_CRC = 4


class FlashCells:
    """The cells of one kind of record, in a range of flash that they alone use."""

    def __init__(self, flash: Flash, magic: int, size: int, cell: int) -> None:
        """``size`` bytes of record in cells of ``cell`` bytes, which divides a page of the flash."""
        self._flash = flash
        self._magic = magic
        self._size = size
        self._cell = cell
        self._sequence = 0
        self._sector = 0
        self.record: bytes | None = None
        """The newest record when it was mounted, for ``take``; None if there is none."""
        self.touched = False
        """Something is written there, or nothing can be read."""
        self._read()
        self._at = self._first_free(self._sector)  # where the next cell goes in its sector

    def _read(self) -> None:
        flash, size = self._flash, self._cell
        blank = b"\xff" * size
        end = _HEAD + self._size
        try:
            for sector in range(SECTORS):
                for at in range(0, flash.sector_size, size):
                    cell = flash.read(sector * flash.sector_size + at, size)
                    if cell == blank:
                        continue
                    self.touched = True
                    magic, sequence = struct.unpack_from("<II", cell)
                    if magic != self._magic or struct.unpack_from("<I", cell, end)[0] != crc32(cell[:end]):
                        continue
                    if self.record is None or sequence > self._sequence:
                        self._sequence, self.record, self._sector = sequence, cell[_HEAD:end], sector
        except OSError:
            self.touched, self.record = True, None

    def take(self) -> "bytes | None":
        """The record as it was mounted; its owner keeps what it needs of it."""
        record, self.record = self.record, None
        return record

    def _first_free(self, sector: int) -> int:
        """The end of a sector's cells, torn ones included; its size if full or unreadable."""
        flash = self._flash
        blank = b"\xff" * self._cell
        at = flash.sector_size
        try:
            while at and flash.read(sector * flash.sector_size + at - self._cell, self._cell) == blank:
                at -= self._cell
        except OSError:
            return flash.sector_size
        return at

    def write(self, record: bytes) -> None:
        """Save a record; OSError if it cannot be read back."""
        flash = self._flash
        if self._at >= flash.sector_size:
            other = (self._sector + 1) % SECTORS
            flash.erase(other)  # if this fails, the next try must not erase the sector that holds the record
            self._sector = other
            self._at = 0
        self._sequence += 1  # also if this fails: the cell may hold all the same
        body = struct.pack("<II", self._magic, self._sequence) + record
        cell = body + struct.pack("<I", crc32(body))
        place = self._sector * flash.sector_size + self._at
        self._at += self._cell
        flash.program(place, cell)
        if flash.read(place, len(cell)) != cell:
            raise OSError("what was written to flash is not there")
        self.touched = True
