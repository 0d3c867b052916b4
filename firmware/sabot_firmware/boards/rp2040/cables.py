"""The cables USB and UART: streams whose reads and writes never block."""

import select
import sys

from machine import UART, Pin

from sabot_firmware.boards.rp2040 import pins

try:
    from sabot_grid import read_usb
except ImportError:  # another image than ours
    read_usb = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.device_port import DevicePort

MOST_AT_ONCE = 64  # bytes of one cable before the other has its turn
_BAUD = 115200


class Cable:
    """One cable with its port of the device."""

    def __init__(self, port: "DevicePort") -> None:
        self.port = port
        self._out = b""
        self._from = 0
        self.stuck = False  # bytes wait, and the host took none at the last try

    def register(self, poller: "select.poll") -> None:
        """Register the cable's input with a poll object."""
        raise NotImplementedError

    def read(self) -> bytes:
        """The received bytes, possibly none."""
        raise NotImplementedError

    def write(self, data: "memoryview | bytes") -> int:
        """Write what fits at once; return the number of bytes written."""
        raise NotImplementedError

    def exchange(self, now_ms: int) -> bool:
        """Receive and send what is due; whether bytes were received.

        What comes while a keep-alive is sealed, or the host's is opened, is answered in the same exchange: a
        turn of the loop sooner.
        """
        data = self.read()
        received = bool(data)
        if self._send(data, now_ms) != received:
            data = self.read()
            if data:
                self._send(data, now_ms)
                received = True
        return received

    def _send(self, data: bytes, now_ms: int) -> bool:
        """Let the port have the bytes, and write what it has to say; whether that was anything."""
        if data:
            self.port.receive(data, now_ms)
        self.stuck = False
        self._write_on()
        if self._out:
            self.port.poll(now_ms, False)
            return False
        self._out = self.port.poll(now_ms)
        self._from = 0
        said = bool(self._out)
        self._write_on()
        return said

    def _write_on(self) -> None:
        """Write as much of the waiting bytes as the host takes."""
        if self._out:
            written = self.write(memoryview(self._out)[self._from :])
            self._from += written
            self.stuck = not written
            if self._from >= len(self._out):
                self._out = b""

    def take_unsent(self) -> bytes:
        """Take the bytes that wait to be written; another object sends them."""
        waits = bytes(memoryview(self._out)[self._from :])
        self.unsent(b"")
        return waits

    def unsent(self, data: bytes) -> None:
        """Set the bytes that wait to be written."""
        self._out = data
        self._from = 0
        self.stuck = False

    def writing(self) -> bool:
        """Whether bytes wait to be written."""
        return bool(self._out)


class UsbCable(Cable):
    """MicroPython's USB CDC, which carries frames only."""

    def __init__(self, port: "DevicePort") -> None:
        super().__init__(port)
        self._in = sys.stdin.buffer
        self._to = sys.stdout.buffer
        self._ready = select.poll()
        self._ready.register(sys.stdin, select.POLLIN)
        self._buffer = bytearray(MOST_AT_ONCE)
        self._one = bytearray(1)

    def register(self, poller: "select.poll") -> None:
        """Register the cable's input with a poll object."""
        poller.register(sys.stdin, select.POLLIN)

    def read(self) -> bytes:
        """The received bytes. MicroPython's own stream gives them one by one: a longer read would block."""
        buffer, one, length = self._buffer, self._one, 0
        if read_usb is not None:
            length = read_usb(buffer)
            return bytes(memoryview(buffer)[:length]) if length else b""
        ready, read = self._ready.ipoll, self._in.readinto  # type: ignore[attr-defined,union-attr]
        while length < MOST_AT_ONCE:
            there = False
            for _ in ready(0):
                there = True
            if not there:
                break
            read(one)
            buffer[length] = one[0]
            length += 1
        return bytes(buffer[:length]) if length else b""

    def write(self, data: "memoryview | bytes") -> int:
        """Write what fits."""
        return self._to.write(data) or 0


class UartCable(Cable):
    """The serial port on two pins."""

    def __init__(self, port: "DevicePort") -> None:
        super().__init__(port)
        self._uart = UART(
            0, baudrate=_BAUD, tx=Pin(pins.UART_TX), rx=Pin(pins.UART_RX), rxbuf=1024, txbuf=512, timeout=0
        )

    def register(self, poller: "select.poll") -> None:
        """Register the cable's input with a poll object."""
        poller.register(self._uart, select.POLLIN)  # type: ignore[arg-type]

    def read(self) -> bytes:
        """The received bytes."""
        there = self._uart.any()
        return (self._uart.read(min(there, MOST_AT_ONCE)) or b"") if there else b""

    def write(self, data: "memoryview | bytes") -> int:
        """Write what fits."""
        return self._uart.write(data) or 0
