"""Cables that are file descriptors: a tty that exists, and a pseudo-terminal as a serial port. POSIX only."""

import contextlib
import os
import pty
import threading
import tty
from pathlib import Path

from sabot_simulators.endpoints.device_server import Unplugged


class FileCable:
    """A cable that is an open file descriptor, such as that of a tty; it closes the descriptor."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.closed = threading.Event()

    def fileno(self) -> int | None:
        """The device's side."""
        return self._descriptor

    def take(self, most: int) -> bytes:
        """Bytes that have arrived; Unplugged when the other end is closed."""
        try:
            data = os.read(self._descriptor, most)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise Unplugged(str(error)) from error
        if not data:
            raise Unplugged("the other end is closed")
        return data

    def give(self, data: bytes) -> int:
        """Write what there is room for now; how many bytes that was."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:  # the next take raises Unplugged
            return len(data)

    def close(self) -> None:
        """Close the descriptor; a second time does nothing."""
        if not self.closed.is_set():
            self.closed.set()
            os.close(self._descriptor)


class PseudoTerminal(FileCable):
    """A cable whose other end is a tty. With a link, the tty keeps its name when it is plugged in again."""

    def __init__(self, link: Path | None = None) -> None:
        """FileExistsError if something that is not a link has the link's name."""
        master, self._slave = pty.openpty()
        tty.setraw(self._slave)  # kept open, so that hosts may come and go
        super().__init__(master)
        self.path = os.ttyname(self._slave)
        self._link = link
        if link is not None:
            try:
                if link.is_symlink():
                    link.unlink()
                link.symlink_to(self.path)
            except OSError:
                self._link = None
                self.close()
                raise
            self.path = str(link)

    def close(self) -> None:
        """Remove the port, as pulling its cable does."""
        if self.closed.is_set():
            return
        if self._link is not None:
            with contextlib.suppress(FileNotFoundError):
                self._link.unlink()
        os.close(self._slave)
        super().close()
