"""A fault proxy between a host and a device: it loses, damages and delays bytes, and cuts the connection.

    with FaultProxy(TcpFrontend(), TcpUpstream("127.0.0.1", 4711), Impairment(Random(1), drop=0.01)) as proxy:
        connect(proxy.url)

The host connects to the frontend, the proxy connects to the device upstream. Each is TCP or a terminal.
"""

import contextlib
import heapq
import itertools
import os
import selectors
import socket
import threading
import time
from types import TracebackType
from typing import Protocol

from sabot_simulators.endpoints.impairment import Impairment

GIVE_S = 2.0
IDLE_S = 0.5
JOIN_S = 10.0
MOST_LATE = 65536  # bytes on their way to one end; a bad cable loses what comes beyond


class ByteStream(Protocol):
    """One open connection, to the host or to the device."""

    def fileno(self) -> int:
        """What to wait for."""

    def take(self) -> bytes:
        """Bytes that arrived; empty when the other side has closed."""

    def give(self, data: bytes) -> None:
        """Send bytes; OSError when the other side has closed."""

    def close(self) -> None:
        """Close it."""


class SocketStream:
    """A TCP connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(GIVE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection

    def fileno(self) -> int:
        """The socket."""
        return self._socket.fileno()

    def take(self) -> bytes:
        """What has come."""
        try:
            return self._socket.recv(65536)
        except OSError:
            return b""

    def give(self, data: bytes) -> None:
        """Send."""
        self._socket.sendall(data)

    def close(self) -> None:
        """Close."""
        self._socket.close()


class FileStream:
    """A terminal."""

    def __init__(self, descriptor: int, owned: bool = True) -> None:
        self._descriptor = descriptor
        self._owned = owned

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def take(self) -> bytes:
        """What has come."""
        try:
            return os.read(self._descriptor, 65536)
        except OSError:
            return b""

    def give(self, data: bytes) -> None:
        """Write."""
        while data:
            data = data[os.write(self._descriptor, data) :]

    def close(self) -> None:
        """Close."""
        if self._owned:
            os.close(self._descriptor)


class Frontend(Protocol):
    """Accepts hosts."""

    url: str

    def fileno(self) -> int | None:
        """The descriptor to wait for; None if a host is always there."""

    def accept(self) -> ByteStream | None:
        """The connection of a host, or None."""

    def close(self) -> None:
        """Accept no more hosts."""


class TcpFrontend:
    """A TCP port on this computer."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.url = "socket://127.0.0.1:%d" % self._socket.getsockname()[1]

    def fileno(self) -> int | None:
        """The listening socket."""
        return self._socket.fileno()

    def accept(self) -> ByteStream | None:
        """The connection of a host, or None."""
        try:
            return SocketStream(self._socket.accept()[0])
        except BlockingIOError:
            return None

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class PtyFrontend:
    """A pseudo-terminal; its other side is always there. POSIX only."""

    def __init__(self) -> None:
        import pty
        import tty

        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.url = os.ttyname(self._slave)

    def fileno(self) -> int | None:
        """It is always open."""
        return None

    def accept(self) -> ByteStream | None:
        """The terminal."""
        return FileStream(self._master, owned=False)

    def close(self) -> None:
        """The terminal disappears."""
        os.close(self._slave)
        os.close(self._master)


class Upstream(Protocol):
    """Connects to the device."""

    def __call__(self) -> ByteStream:
        """Plug in; OSError if that fails."""


class TcpUpstream:
    """A device on a TCP port."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def __call__(self) -> ByteStream:
        """Connect."""
        return SocketStream(socket.create_connection(self._address, GIVE_S))


class PtyUpstream:
    """A device on a terminal."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self) -> ByteStream:
        """Open the terminal."""
        return FileStream(os.open(self._path, os.O_RDWR | os.O_NOCTTY))


class FaultProxy:
    """Carries bytes between frontend and upstream, impaired. ``impairment`` can be changed at any time."""

    def __init__(self, door: Frontend, plug: Upstream, mischief: Impairment) -> None:
        self.mischief = mischief
        self.url = door.url
        self._door = door
        self._plug = plug
        self._pairs: dict[ByteStream, ByteStream] = {}
        self._late: list[tuple[float, int, ByteStream, bytes]] = []
        self._last_due: dict[ByteStream, float] = {}
        self._late_bytes: dict[ByteStream, int] = {}
        self._order = itertools.count()
        self._cut_asked = False
        self._stopping = False
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._carry, name="fault-proxy", daemon=True)

    def __enter__(self) -> "FaultProxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        self._wake()
        self._thread.join(JOIN_S)

    def cut(self) -> None:
        """Cut every cable now."""
        self._cut_asked = True
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_write.send(b"x")

    def _carry(self) -> None:
        door = self._door.fileno()
        if door is not None:
            self._selector.register(door, selectors.EVENT_READ)
        try:
            while not self._stopping:
                if door is None and not self._pairs:
                    self._join(self._door.accept())
                self._once(door)
        finally:
            self._cut_all()
            self._door.close()
            self._selector.close()
            self._wake_read.close()
            self._wake_write.close()

    def _once(self, door: int | None) -> None:
        wait = IDLE_S
        if self._late:
            wait = max(min(self._late[0][0] - time.monotonic(), IDLE_S), 0.0)
        for key, _ in self._selector.select(wait):
            if key.data is not None:
                if key.data in self._pairs:
                    self._pass(key.data)
            elif key.fd == door:
                self._join(self._door.accept())
            else:
                with contextlib.suppress(BlockingIOError):
                    self._wake_read.recv(64)
        if self._cut_asked:
            self._cut_asked = False
            self._cut_all()
        now = time.monotonic()
        while self._late and self._late[0][0] <= now:
            _, _, end, data = heapq.heappop(self._late)
            if end in self._pairs:
                self._late_bytes[end] -= len(data)
            self._give(end, data)

    def _join(self, host: ByteStream | None) -> None:
        if host is None:
            return
        try:
            device = self._plug()
        except OSError:
            host.close()
            time.sleep(0.01)  # a terminal's frontend would be tried again at once
            return
        for end, other in ((host, device), (device, host)):
            self._pairs[end] = other
            self._selector.register(end.fileno(), selectors.EVENT_READ, end)

    def _pass(self, end: ByteStream) -> None:
        data = end.take()
        if not data or self.mischief.cuts_now():
            self._cut(end)
            return
        other = self._pairs[end]
        arrives, late_s = self.mischief.carry(data)
        if not arrives:
            return
        due = max(time.monotonic() + late_s, self._last_due.get(other, 0.0))
        if due > time.monotonic():
            waiting = self._late_bytes.get(other, 0) + len(arrives)
            if waiting > MOST_LATE:
                return
            self._late_bytes[other] = waiting
            self._last_due[other] = due
            heapq.heappush(self._late, (due, next(self._order), other, arrives))
        else:
            self._give(other, arrives)

    def _give(self, end: ByteStream, data: bytes) -> None:
        if end not in self._pairs:
            return
        try:
            end.give(data)
        except OSError:
            self._cut(end)

    def _cut(self, end: ByteStream) -> None:
        other = self._pairs.pop(end, None)
        if other is None:
            return
        self._pairs.pop(other, None)
        for each in (end, other):
            self._last_due.pop(each, None)
            self._late_bytes.pop(each, None)
            self._selector.unregister(each.fileno())
            each.close()

    def _cut_all(self) -> None:
        for end in list(self._pairs):
            self._cut(end)
