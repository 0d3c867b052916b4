"""The last sectors of the flash: the event log's; before them mark, house record and ring of evidence."""

import rp2

from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.event_log import Flash

_COUNT = 4
_SIZE = 5
_ERASE = 6


class _Stretch(Flash):
    """Written only while nothing moves, because the processor and its interrupts stop meanwhile."""

    def __init__(self, size: int, behind: int) -> None:
        """A range of ``size`` bytes that ends ``behind`` bytes before the end of the flash."""
        whole = rp2.Flash()
        end = (whole.ioctl(_COUNT, 0) or 0) * (whole.ioctl(_SIZE, 0) or 0)
        self._flash = rp2.Flash(start=end - behind - size, len=size)

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        data = bytearray(length)
        self._flash.readblocks(address // self.sector_size, data, address % self.sector_size)
        return bytes(data)

    def program(self, address: int, data: bytes) -> None:
        """Write bytes that are erased, all in one page."""
        page = address - address % self.page_size
        whole = bytearray(b"\xff" * self.page_size)  # what is all ones leaves the page as it is
        whole[address - page : address - page + len(data)] = data
        self._flash.writeblocks(page // self.sector_size, whole, page % self.sector_size)

    def erase(self, sector: int) -> None:
        """Make every byte of a sector 0xFF."""
        self._flash.ioctl(_ERASE, sector)


class LogFlash(_Stretch):
    """The event log's range."""

    def __init__(self) -> None:
        super().__init__(pins.LOG_FLASH_BYTES, 0)


class MarkFlash(_Stretch):
    """The provisioning mark's range."""

    def __init__(self) -> None:
        super().__init__(pins.MARK_FLASH_BYTES, pins.LOG_FLASH_BYTES)


class HouseFlash(_Stretch):
    """The house record's range."""

    def __init__(self) -> None:
        super().__init__(pins.HOUSE_FLASH_BYTES, pins.MARK_FLASH_BYTES + pins.LOG_FLASH_BYTES)


class EvidenceFlash(_Stretch):
    """The range of the log's ring of evidence."""

    def __init__(self) -> None:
        behind = pins.HOUSE_FLASH_BYTES + pins.MARK_FLASH_BYTES + pins.LOG_FLASH_BYTES
        super().__init__(pins.EVIDENCE_FLASH_BYTES, behind)
