"""The loop that joins one port of the device to one byte stream.

It really waits: it sleeps in ``select.poll`` until bytes come or the port's deadline is due.
"""

import select
import time

from sabot_protocol import ticks
from sabot_protocol.device_port import DevicePort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO as Stream  # a byte stream that ``select.poll`` can wait for


MAX_WAIT_MS = 1000

_board_ticks_ms: "Callable[[], int] | None" = getattr(time, "ticks_ms", None)


def ticks_ms() -> int:
    """Milliseconds of 30 bits, on a board, a computer's MicroPython (which counts further) and CPython."""
    if _board_ticks_ms is not None:
        return _board_ticks_ms() & ticks.MASK
    return time.monotonic_ns() // 1000000 & ticks.MASK


def wait_ms(port: DevicePort, now: int) -> int:
    """How long the loop may sleep before the port is due."""
    due = port.deadline()
    if due is None:
        return MAX_WAIT_MS
    return min(max(ticks.diff(due, now), 0), MAX_WAIT_MS)


def serve_once(port: DevicePort, stream: "Stream", poller: "select.poll") -> bool:
    """Say what is due, then wait for bytes once. False when the stream has ended."""
    now = ticks_ms()
    out = port.poll(now)
    while out:
        written = stream.write(out)
        out = out[written or 0 :]
    if poller.poll(wait_ms(port, now)):
        data = read_ready(stream, poller)
        if not data:
            return False
        port.receive(data, ticks_ms())
    return True


def read_ready(stream: "Stream", poller: "select.poll") -> bytes:
    """All bytes that are there now; a board's ``read(n)`` would wait for all n."""
    data = stream.read(1) or b""
    while len(data) < 1024 and poller.poll(0):
        more = stream.read(1)
        if not more:
            break
        data += more
    return data
