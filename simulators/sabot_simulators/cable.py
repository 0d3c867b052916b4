"""A cable between two pseudo-terminals that can be cut, or lose what the device says. POSIX only."""

import os
import pty
import select
import threading
import tty
from types import TracebackType


class Cable:
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
        self.frames_lost = 0
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="cable", daemon=True)

    def __enter__(self) -> "Cable":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.write(self._stop_write, b"x")
        self._thread.join()
        for each in (
            self._host, self._host_slave, self._device, self._device_slave, self._stop_read, self._stop_write,
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
                if self.pulled or (end == self._device and self.device_muted):
                    self.frames_lost += data.count(0)
                else:
                    os.write(other, data)
