"""Transports: serial ports and URLs that pyserial opens, TCP sockets, and USB.

One thread reads a transport while another writes to it. ``open`` raises PortBusy, PortDenied or NoDevice.
``read`` and ``write`` raise LinkLost when the connection is lost. A transport raises no other errors.
"""

import contextlib
import errno
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Protocol
from urllib.parse import urlsplit

import serial

from sabot_driver.errors import BadUrl, LinkLost, NoDevice, PortBusy, PortDenied, SabotError

BAUD = 115200  # a USB serial port ignores it
CONNECT_S = 5.0
WRITE_S = 2.0  # a port that accepts no byte for this time counts as lost
BLOCK_S = 0.2  # the longest read on a port that cannot be woken
WAKEABLE_S = 5.0
CHUNK = 65536
CHECK_NETWORK = "Check host and port, and that a device or 'sabot simulate' listens there."
SERIAL_HANDLERS = "sabot.serial_handlers"


# Pyserial fails with TypeError, AttributeError or ValueError when a port is closed under a read.
_GONE = (serial.SerialException, OSError, TypeError, AttributeError, ValueError)


class Transport(Protocol):
    """A connection to one device. It may be opened and closed many times."""

    url: str

    def open(self) -> None:
        """Open the port; raises PortBusy, PortDenied or NoDevice."""

    def read(self) -> bytes:
        """Wait for bytes and return them; empty after at most 5 s without any, or after ``wake``."""

    def write(self, data: bytes) -> None:
        """Send all bytes, or raise LinkLost."""

    def wake(self) -> None:
        """Let a ``read`` that waits return empty, where the port supports that."""

    def close(self) -> None:
        """Close the port; a second call does nothing."""


class SerialTransport:
    """A serial port, or any URL that pyserial can open."""

    def __init__(self, url: str) -> None:
        self.url = url
        _add_handlers()
        try:
            limit = None if url.startswith("rfc2217://") else WRITE_S  # its handler has its own limit
            self._port: Any = serial.serial_for_url(
                url, baudrate=BAUD, timeout=BLOCK_S, write_timeout=limit, do_not_open=True
            )
        except ValueError as error:
            raise BadUrl(f"{url}: {error}") from error
        self._waits: _Waits | None = None
        self._open = False

    @property
    def port(self) -> Any:
        """The pyserial object, for tests."""
        return self._port

    def open(self) -> None:
        """Open the port, exclusively where the system supports that."""
        with contextlib.suppress(AttributeError, ValueError, NotImplementedError):
            self._port.exclusive = True
        try:
            self._port.open()
        except (serial.SerialException, OSError) as error:
            raise opening_error(self.url, error) from error
        try:
            self._waits = _Waits(self._port.fileno())
            self._port.timeout = 0
        except (OSError, AttributeError, ValueError):  # io.UnsupportedOperation is both
            self._waits = None
            self._port.timeout = WAKEABLE_S if hasattr(self._port, "cancel_read") else BLOCK_S
        self._open = True

    def read(self) -> bytes:
        """What has come."""
        try:
            waits = self._waits
            if waits is None:
                data = bytes(self._port.read(1))
                more = self._port.in_waiting if data else 0
                return data + bytes(self._port.read(more)) if more else data
            if not waits.wait(WAKEABLE_S):
                return b""
            data = os.read(self._port.fileno(), CHUNK)  # pyserial's read would ask twice more whether it may
        except _GONE as error:
            raise LinkLost(f"{self.url}: {error}") from error
        if not data:
            raise LinkLost(f"{self.url}: the port is gone")
        return data

    def write(self, data: bytes) -> None:
        """Send all of it."""
        try:
            if self._waits is None:
                self._port.write(data)
            else:  # pyserial's write would ask after each piece whether it may write another
                _write_all(self._port.fileno(), data)
        except _GONE as error:
            raise LinkLost(f"{self.url}: {error}") from error

    def wake(self) -> None:
        """End a read that waits."""
        waits = self._waits
        if waits is not None:
            waits.wake()
        else:
            cancel = getattr(self._port, "cancel_read", None)
            if cancel is not None:
                with contextlib.suppress(serial.SerialException, OSError, AttributeError):
                    cancel()

    def close(self) -> None:
        """Close the port."""
        if not self._open:
            return
        self._open = False
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.close()
        with contextlib.suppress(serial.SerialException, OSError):
            self._port.close()


class SocketTransport:
    """``socket://HOST:PORT``, by a socket of our own.

    Pyserial's sleeps 0.3 s at every close and leaves the socket open when the other end has reset it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        if not parts.hostname or port is None:
            raise BadUrl(f"{url}: a TCP port is socket://HOST:PORT")
        self._address = (parts.hostname, port)
        self._socket: socket.socket | None = None
        self._waits: _Waits | None = None

    def open(self) -> None:
        """Connect."""
        try:
            made = socket.create_connection(self._address, CONNECT_S)
        except OSError as error:
            raise NoDevice(f"{self.url}: {error.strerror or error}", CHECK_NETWORK) from error
        made.settimeout(WRITE_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = made
        self._waits = _Waits(made.fileno())

    def read(self) -> bytes:
        """What has come."""
        made, waits = self._socket, self._waits
        if made is None or waits is None:
            raise LinkLost(f"{self.url}: closed")
        try:
            if not waits.wait(WAKEABLE_S):
                return b""
            data = made.recv(CHUNK)
        except (OSError, ValueError) as error:
            raise LinkLost(f"{self.url}: {error}") from error
        if not data:
            raise LinkLost(f"{self.url}: the other end has closed the connection")
        return data

    def write(self, data: bytes) -> None:
        """Send all of it."""
        made = self._socket
        if made is None:
            raise LinkLost(f"{self.url}: closed")
        try:
            made.sendall(data)
        except OSError as error:
            raise LinkLost(f"{self.url}: {error}") from error

    def wake(self) -> None:
        """End a read that waits."""
        waits = self._waits
        if waits is not None:
            waits.wake()

    def close(self) -> None:
        """Close the connection."""
        made, self._socket = self._socket, None
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.close()
        if made is not None:
            made.close()


def _write_all(fileno: int, data: bytes) -> None:
    """Write to a non-blocking descriptor; OSError if it accepts no byte for WRITE_S."""
    ends: float | None = None
    while True:
        try:
            written = os.write(fileno, data)
        except BlockingIOError:
            written = 0
        if written == len(data):
            return
        data = data[written:]
        now = time.monotonic()
        ends = ends or now + WRITE_S
        if now >= ends or not select.select([], [fileno], [], ends - now)[1]:
            raise OSError(errno.ETIMEDOUT, "the port takes nothing")


def _until_ready(*filenos: int) -> Callable[[float], list[int]]:
    """A function that waits up to some seconds and returns which of the descriptors are readable."""
    if not hasattr(select, "poll"):  # Windows, where only sockets are waited for
        return lambda seconds: select.select(filenos, [], [], seconds)[0]
    poller = select.poll()
    for each in filenos:
        poller.register(each, select.POLLIN)
    return lambda seconds: [fileno for fileno, _ in poller.poll(seconds * 1000)]


class _Waits:
    """Waits until a file descriptor is readable or ``wake`` is called."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._lock = threading.Lock()
        self._closed = False
        self._ready = _until_ready(fileno, self._read.fileno())

    def wait(self, seconds: float) -> bool:
        """Whether there is something to read."""
        ready = self._ready(seconds)
        if ready == [self._fileno]:
            return True
        if ready:
            with contextlib.suppress(BlockingIOError):
                self._read.recv(64)
        return len(ready) > 1

    def wake(self) -> None:
        """End a wait."""
        with self._lock:
            if not self._closed:
                self._write.send(b"x")

    def close(self) -> None:
        """Let go."""
        with self._lock:
            self._closed = True
            self._read.close()
            self._write.close()


def opening_error(url: str, error: BaseException) -> SabotError:
    """The typed error for an error of pyserial or the system at opening."""
    number = getattr(error, "errno", None)
    text = str(error)
    if number == errno.EINVAL and "://" in url:
        why = f"{url}: {getattr(error, 'strerror', None) or text}"
        return BadUrl(why, "Correct that part of the URL." if url.startswith("sim://") else None)
    if number in (errno.EACCES, errno.EPERM) or isinstance(error, PermissionError):
        # Windows reports "access is denied" if another program has the port open
        busy = "PermissionError" in text and "COM" in url.upper()
        return PortBusy(f"{url}: {text}") if busy else PortDenied(f"{url}: {text}")
    if number in (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK) or "exclusively lock" in text:
        return PortBusy(f"{url}: another program has it open")
    if "Permission denied" in text:
        return PortDenied(f"{url}: {text}")
    if "PermissionError(13" in text:
        return PortBusy(f"{url}: {text}")
    if number == errno.ENOENT and "could not open port" in text:
        return NoDevice(f"{url}: there is no such port")
    if number == errno.EISDIR or "Could not configure port" in text:  # pyserial keeps no number of the latter
        return NoDevice(f"{url}: this is no serial port", "'sabot devices' lists ports with a device.")
    return NoDevice(f"{url}: {text}", CHECK_NETWORK if url.startswith("rfc2217://") else None)


def _add_handlers() -> None:
    """Register the URL handler packages of installed distributions with pyserial."""
    for entry in entry_points(group=SERIAL_HANDLERS):
        if entry.value not in serial.protocol_handler_packages:
            serial.protocol_handler_packages.append(entry.value)


def is_simulator(url: str) -> bool:
    """Whether the URL's scheme always names an emulated device."""
    return urlsplit(url).scheme == "sim"


def transport_for(url: str) -> Transport:
    """The transport for a URL or a port's name; BadUrl if there is none."""
    if not isinstance(url, str):
        raise TypeError(f"a device URL is a string, not {url!r}")
    if not url.strip():
        raise BadUrl("the device URL is empty")
    scheme = urlsplit(url).scheme
    if scheme in ("sim", "usb", "socket") and not url.startswith(f"{scheme}://"):
        raise BadUrl(f"{url}: the URL begins with {scheme}://")
    if scheme == "usb":
        from sabot_driver.usb import UsbTransport

        return UsbTransport.from_url(url)
    if scheme == "socket":
        return SocketTransport(url)
    return SerialTransport(url)
