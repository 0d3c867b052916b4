"""The far end of a pty, in a process of its own: ``python far_end.py KIND WINDOW MASTER_FD SLAVE_PATH``.

KIND is one of KINDS: a bare echo, bare frames, or a device with its whole stack. Ends when the near end is
closed. pyserial serves both sides; what is waiting is read with the idiom of pyserial's own miniterm.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import serial
from tests.bench import ends

from sabot_protocol import frame, ticks, wire_constants
from sabot_protocol.host.messages import Status, StatusReport
from sabot_protocol.session import Session

_SESSION = Session(ends.KEY, bytes(range(100, 132)), is_host=True)
REQUEST = _SESSION.seal(1, 2, 0, wire_constants.REQUEST, Status.ID, 0, 1000, Status().pack())
_REPORT = StatusReport(60, 0, 0, 0, 0, 0, 0, 0, 0).pack()
ANSWER = _SESSION.seal(2, 1, 0, wire_constants.ANSWER, StatusReport.ID, 0, 1000, _REPORT)
"""What the framed reference sends: the very bytes of Sabot's packets, so that framing them costs the same."""


def open_port(path: str) -> serial.Serial:
    """A serial port in raw mode that waits at most a minute for a byte: a busy machine starts slowly."""
    return serial.Serial(path, 115200, timeout=60)


def open_master(fd: int, path: str) -> serial.Serial:
    """A pyserial port on the master side, which has no path of its own to open."""
    port = open_port(path)
    os.set_blocking(fd, False)
    os.dup2(fd, port.fileno())
    os.close(fd)
    return port


def read(port: serial.Serial) -> bytes:
    """What is there, at least one byte; nothing once the time is up."""
    data: bytes = port.read(port.in_waiting or 1)
    return data


def now_ms() -> int:
    """The time as the ends take it."""
    return time.monotonic_ns() // 1000000 & ticks.MASK


def echo(port: serial.Serial, window: int) -> None:
    """What comes goes back."""
    while True:
        port.write(read(port))


def framed(port: serial.Serial, window: int) -> None:
    """Every good frame is answered with a frame, each in a write of its own."""
    decoder = frame.Decoder()
    while True:
        for payload, _ in decoder.feed(read(port)):
            if payload is not None:
                port.write(frame.encode(ANSWER))


def framed_at_once(port: serial.Serial, window: int) -> None:
    """The same, but the answers to all that was read go out in one write."""
    decoder = frame.Decoder()
    while True:
        out = [frame.encode(ANSWER) for payload, _ in decoder.feed(read(port)) if payload is not None]
        if out:
            port.write(b"".join(out))


def sabot(port: serial.Serial, window: int) -> None:
    """A device: sessions, authentication, typed messages, retransmission, events."""
    device = ends.device_port(window, now_ms())
    while True:
        data = read(port)
        now = now_ms()
        device.receive(data, now)
        out = device.poll(now)
        if out:
            port.write(out)


def modbus(port: serial.Serial, window: int) -> None:
    """Every request of pymodbus is answered with the same sixteen registers, whose bytes were made once."""
    from pymodbus.framer import FramerRTU
    from pymodbus.pdu import DecodePDU
    from pymodbus.pdu.register_message import ReadHoldingRegistersResponse

    response = ReadHoldingRegistersResponse(registers=list(range(16)), dev_id=1)
    answer = FramerRTU(DecodePDU(False)).buildFrame(response)
    heard = 0
    while True:
        heard += len(read(port))
        while heard >= 8:  # a request of eight bytes
            heard -= 8
            port.write(answer)


KINDS: dict[str, Callable[[serial.Serial, int], None]] = {
    "echo": echo,
    "framed": framed,
    "framed, written at once": framed_at_once,
    "sabot": sabot,
    "modbus": modbus,
}


def main(kind: str, window: str, fd: str, path: str) -> None:
    """Serve until the near end is closed."""
    port = open_master(int(fd), path)
    with suppress(OSError, serial.SerialException):  # the near end is closed
        KINDS[kind](port, int(window))


if __name__ == "__main__":
    main(*sys.argv[1:])
