"""Critical memory: a 32 KB FRAM on SPI (MB85RS256 and alike)."""

from machine import SPI, Pin

from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.critical import Fram

_WRITE_ENABLE = b"\x06"
_READ_STATUS = b"\x05"
_READ = 0x03
_WRITE = 0x02
_WRITABLE = 0x02
_BAUD = 8000000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def nothing(_: object = None) -> None:
    """Called between two transfers while no card can wait."""


class SpiFram(Fram):
    """The chip. A refused write or a missing chip raises OSError."""

    between: "Callable[[], None]" = staticmethod(nothing)
    """Called around each transfer: a record takes several milliseconds, and cards do not wait for it."""

    def __init__(self) -> None:
        self._select = Pin(pins.FRAM_SELECT, Pin.OUT, value=1)
        self._spi = SPI(
            0,
            baudrate=_BAUD,
            sck=Pin(pins.SPI_SCK),
            mosi=Pin(pins.SPI_MOSI),
            miso=Pin(pins.SPI_MISO),
        )
        self._head = bytearray(3)
        self._status = bytearray(1)

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        self._begin(_READ, address)
        data = self._spi.read(length)
        self._select.value(1)
        self.between()
        return data

    def write(self, address: int, data: "bytes | bytearray | memoryview") -> None:
        """Write bytes from an address on."""
        self.between()
        select, spi = self._select, self._spi
        select.value(0)
        spi.write(_WRITE_ENABLE)
        select.value(1)
        select.value(0)
        spi.write(_READ_STATUS)
        spi.readinto(self._status)
        select.value(1)
        if self._status[0] & 0xFE != _WRITABLE:
            raise OSError("the FRAM does not answer")
        self._begin(_WRITE, address)
        spi.write(data)
        select.value(1)
        self.between()

    def _begin(self, command: int, address: int) -> None:
        head = self._head
        head[0] = command
        head[1] = address >> 8
        head[2] = address & 0xFF
        self._select.value(0)
        self._spi.write(head)
