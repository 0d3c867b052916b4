"""A cable between two pseudo-terminals that can be cut, lose what the device says, and be listened to.

POSIX only.
"""

import os
import pty
import select
import threading
import time
import tty
from collections import deque
from dataclasses import dataclass
from types import TracebackType

MOST_SEEN = 20_000


@dataclass(frozen=True)
class CableFrame:
    """A frame that was on the cable, with its delimiter."""

    at_us: int
    to_device: bool
    frame: bytes
    lost: bool


class PtyCable:
    """Carries bytes between ``host_tty`` and ``device_tty`` until it is closed."""

    def __init__(self) -> None:
        self._host, self._host_slave = pty.openpty()
        self._device, self._device_slave = pty.openpty()
        for slave in (self._host_slave, self._device_slave):
            tty.setraw(slave)  # kept open, so that either end may come and go
        self.host_tty = os.ttyname(self._host_slave)
        self.device_tty = os.ttyname(self._device_slave)
        self.device_muted = False
        self.pulled = False
        self.seen: deque[CableFrame] = deque(maxlen=MOST_SEEN)
        self._partial = {self._host: b"", self._device: b""}
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="cable", daemon=True)

    def __enter__(self) -> "PtyCable":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.write(self._stop_write, b"x")
        self._thread.join()
        for each in (
            self._host,
            self._host_slave,
            self._device,
            self._device_slave,
            self._stop_read,
            self._stop_write,
        ):
            os.close(each)

    def _carry(self) -> None:
        while True:
            ready, _, _ = select.select([self._host, self._device, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            for end, other in ((self._host, self._device), (self._device, self._host)):
                if end not in ready:
                    continue
                data = os.read(end, 4096)
                lost = self.pulled or (end == self._device and self.device_muted)
                if not lost:
                    os.write(other, data)
                self._listen(end, data, lost)

    def _listen(self, end: int, data: bytes, lost: bool) -> None:
        *whole, rest = (self._partial[end] + data).split(b"\x00")
        self._partial[end] = rest
        at_us = time.time_ns() // 1000
        self.seen += [CableFrame(at_us, end == self._host, each + b"\x00", lost) for each in whole if each]

    @property
    def frames_lost(self) -> int:
        """How many frames were lost on purpose."""
        return sum(each.lost for each in self.seen)
