"""The cables: USB and UART, as streams whose reads and writes never wait."""

import select
import sys

from machine import UART, Pin

from sabot_firmware.boards.rp2040 import pins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.device_port import DevicePort

MOST_AT_ONCE = 64  # bytes of one cable; then the other has its turn
_BAUD = 115200


class Cable:
    """One cable with its port of the device."""

    def __init__(self, port: "DevicePort") -> None:
        self.port = port
        self._out = b""
        self._from = 0
        self.stuck = False  # something waits, and at the last try the host took none of it

    def register(self, poller: "select.poll") -> None:
        """Let a poll wait for bytes."""
        raise NotImplementedError

    def read(self) -> bytes:
        """The bytes that are there."""
        raise NotImplementedError

    def write(self, data: "memoryview | bytes") -> int:
        """Write what finds room at once; how much that was."""
        raise NotImplementedError

    def exchange(self, now_ms: int) -> bool:
        """Take what has come and say what is due; whether anything was taken."""
        data = self.read()
        if data:
            self.port.receive(data, now_ms)
        self.stuck = False
        self._write_on()
        if self._out:
            self.port.poll(now_ms, False)
        else:
            self._out = self.port.poll(now_ms)
            self._from = 0
            self._write_on()
        return bool(data)

    def _write_on(self) -> None:
        """Give the host as much of what waits as it takes."""
        if self._out:
            written = self.write(memoryview(self._out)[self._from :])
            self._from += written
            self.stuck = not written
            if self._from >= len(self._out):
                self._out = b""

    def take_unsent(self) -> bytes:
        """What waits for room; somebody else sends it."""
        waits = bytes(memoryview(self._out)[self._from :])
        self.unsent(b"")
        return waits

    def unsent(self, data: bytes) -> None:
        """This waits for room."""
        self._out = data
        self._from = 0
        self.stuck = False

    def writing(self) -> bool:
        """Whether something waits for room."""
        return bool(self._out)


class UsbCable(Cable):
    """The USB CDC that MicroPython has; nothing but frames goes over it."""

    def __init__(self, port: "DevicePort") -> None:
        super().__init__(port)
        self._in = sys.stdin.buffer
        self._to = sys.stdout.buffer
        self._ready = select.poll()
        self._ready.register(sys.stdin, select.POLLIN)
        self._buffer = bytearray(MOST_AT_ONCE)
        self._one = bytearray(1)

    def register(self, poller: "select.poll") -> None:
        """Let a poll wait for bytes."""
        poller.register(sys.stdin, select.POLLIN)

    def read(self) -> bytes:
        """The bytes that are there, one by one: reading more would wait for them."""
        buffer, one, length = self._buffer, self._one, 0
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
        """Write what finds room."""
        return self._to.write(data) or 0


class UartCable(Cable):
    """The serial port on two pins."""

    def __init__(self, port: "DevicePort") -> None:
        super().__init__(port)
        self._uart = UART(
            0, baudrate=_BAUD, tx=Pin(pins.UART_TX), rx=Pin(pins.UART_RX), rxbuf=1024, txbuf=512, timeout=0
        )

    def register(self, poller: "select.poll") -> None:
        """Let a poll wait for bytes."""
        poller.register(self._uart, select.POLLIN)  # type: ignore[arg-type]

    def read(self) -> bytes:
        """The bytes that are there."""
        there = self._uart.any()
        return (self._uart.read(min(there, MOST_AT_ONCE)) or b"") if there else b""

    def write(self, data: "memoryview | bytes") -> int:
        """Write what finds room."""
        return self._uart.write(data) or 0
