"""Simulated memory chips, byte by byte, whose power can fail after any byte.

A chip object keeps its contents. New firmware over the same chips is a reboot. This module also runs on
MicroPython.
"""

from sabot_firmware.critical import FRAM_SIZE, Fram
from sabot_firmware.event_log import SECTORS, Flash
from sabot_firmware.flash_cells import SECTORS as CELLS_SECTORS

BOARD_SECTORS = 2 * SECTORS + 2 * CELLS_SECTORS  # event log, mark, house record, ring of evidence


class PowerCut(BaseException):
    """The power went at this very byte, or has not come back since."""


class FlashMisuse(Exception):
    """The firmware asked for what a flash cannot do, such as programming a byte that is not erased."""


class Power:
    """The supply of one or more chips, with the cut that is planned for it.

    Each byte written or programmed is one step, each page of an erase is one. A cut after n steps comes in
    the middle of step n + 1.
    """

    def __init__(self) -> None:
        self.is_on = True
        self.steps = 0  # ever made
        self.cuts = 0
        self._left: int | None = None

    def cut_after(self, steps: int | None) -> None:
        """Plan a cut after so many more steps, or none."""
        self._left = steps

    def restore(self) -> None:
        """The power comes back, and no cut is planned."""
        self.is_on = True
        self._left = None

    def take(self, steps: int) -> int:
        """So many more steps, one after the other; how many are made before the power fails."""
        if self._left is not None:
            if self._left < steps:
                steps = max(self._left, 0)
                self.is_on = False
                self.cuts += 1
            self._left -= steps
        self.steps += steps
        return steps

    def check(self) -> None:
        """PowerCut while the power is off."""
        if not self.is_on:
            raise PowerCut


class _Chip:
    """The cells, the supply and the faults of any chip."""

    def __init__(self, size: int, power: Power | None, fill: int) -> None:
        self.cells: bytearray | memoryview = bytearray(bytes([fill]) * size)
        self.power = power or Power()
        self.writes = 0  # writes, programs and erases that were asked for
        self.reads = 0
        self.deaf = False  # a fault: it ignores writes without an error
        self.failing = 0  # a fault: so many accesses fail with OSError

    def flip(self, address: int, bit: int) -> None:
        """A fault: one bit changes."""
        self.cells[address] ^= 1 << bit

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        self._access(address, length)
        self.reads += 1
        return bytes(self.cells[address : address + length])

    def _access(self, address: int, length: int) -> None:
        self.power.check()
        if self.failing > 0:
            self.failing -= 1
            raise OSError("the chip does not answer")
        if length <= 0 or address < 0 or address + length > len(self.cells):
            raise OSError("outside of the chip")


class SimFram(_Chip, Fram):
    """An FRAM: a cut leaves the bytes before it written, and none behind."""

    def __init__(self, size: int = FRAM_SIZE, power: Power | None = None, fill: int = 0) -> None:
        super().__init__(size, power, fill)
        self.size = size

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes in rising order."""
        self._access(address, len(data))
        self.writes += 1
        made = self.power.take(len(data))
        if not self.deaf:
            self.cells[address : address + made] = data[:made]
        if made < len(data):
            raise PowerCut


class SimFlash(_Chip, Flash):
    """A NOR flash: programs clear bits of one page, erases set those of a sector, and both can be cut.

    A cut in a program leaves the bytes before it and some bits of the next. A cut in an erase leaves some
    pages of the sector erased, in no order, one half-way with any bits, and the others as they were.
    """

    def __init__(
        self, sectors: int = SECTORS, power: Power | None = None, seed: int = 1, sector_size: int = 4096
    ) -> None:
        super().__init__(sectors * sector_size, power, 0xFF)
        self.sectors = sectors
        self.sector_size = sector_size
        self.erases = [0] * sectors  # of each sector
        self._random = seed

    def program(self, address: int, data: bytes) -> None:
        """Clear bits of erased bytes in one page; FlashMisuse if they are not that."""
        self._access(address, len(data))
        self.writes += 1
        if address // self.page_size != (address + len(data) - 1) // self.page_size:
            raise FlashMisuse("%d bytes at %d are in two pages" % (len(data), address))
        for at in range(address, address + len(data)):
            if self.cells[at] != 0xFF:
                raise FlashMisuse("the byte at %d is not erased" % at)
        made = self.power.take(len(data))
        if not self.deaf:
            self.cells[address : address + made] = data[:made]
        if made < len(data):
            self.cells[address + made] = data[made] | self._next() & 0xFF
            raise PowerCut

    def erase(self, sector: int) -> None:
        """Make every byte of a sector 0xFF."""
        self._access(sector * self.sector_size, self.sector_size)
        self.writes += 1
        self.erases[sector] += 1
        pages = self.sector_size // self.page_size
        first = self._next() % pages
        stride = 2 * (self._next() % pages) + 1  # odd: every page has its turn, pages being a power of two
        for turn in range(pages):
            page = (first + turn * stride) % pages
            start = sector * self.sector_size + page * self.page_size
            if not self.power.take(1):
                for at in range(start, start + self.page_size):
                    self.cells[at] |= self._next() & 0xFF
                raise PowerCut
            if not self.deaf:
                self.cells[start : start + self.page_size] = b"\xff" * self.page_size

    def _next(self) -> int:
        self._random = (self._random * 1103515245 + 12345) & 0x7FFFFFFF
        return self._random >> 12
