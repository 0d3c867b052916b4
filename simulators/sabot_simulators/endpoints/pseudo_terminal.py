"""A pseudo-terminal that leads to an emulated device, as a serial port does. POSIX only."""

import contextlib
import os
import pty
import tty
from pathlib import Path

from sabot_simulators.endpoints.device_server import Unplugged


class PseudoTerminal:
    """A cable that ends in a tty. With a link, the name stays the same when it is plugged in again."""

    def __init__(self, link: Path | None = None) -> None:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)  # kept open, so that hosts may come and go
        os.set_blocking(self._master, False)
        self.path = os.ttyname(self._slave)
        self._link = link
        self._closed = False
        if link is not None:
            self._name(link)
            self.path = str(link)

    def _name(self, link: Path) -> None:
        """Replace an older link; what is none is left alone: FileExistsError."""
        try:
            if link.is_symlink():
                link.unlink()
            link.symlink_to(self.path)
        except OSError:
            os.close(self._master)
            os.close(self._slave)
            raise

    def fileno(self) -> int | None:
        """The device's side."""
        return self._master

    def take(self, most: int) -> bytes:
        """What has come."""
        try:
            return os.read(self._master, most)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise Unplugged(str(error)) from error

    def give(self, data: bytes) -> int:
        """Write what finds room at once."""
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0
        except OSError:  # the next take says so
            return len(data)

    def close(self) -> None:
        """The port disappears, as when its cable is pulled."""
        if self._closed:
            return
        self._closed = True
        if self._link is not None:
            with contextlib.suppress(FileNotFoundError):
                self._link.unlink()
        os.close(self._slave)
        os.close(self._master)
