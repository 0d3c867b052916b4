"""USB through pyusb: finds a device by serial number and uses its vendor interface (two bulk endpoints)."""

import contextlib
import errno
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import parse_qs, urlsplit

import usb.core
import usb.util

from sabot_driver.errors import AmbiguousDevice, BadUrl, LinkLost, NoDevice, PortBusy, PortDenied, SabotError
from sabot_driver.usb_ids import (
    ENDPOINT_IN,
    ENDPOINT_OUT,
    INTERFACE_CLASS,
    INTERFACE_PROTOCOL,
    INTERFACE_SUBCLASS,
    PRODUCT,
    VENDOR,
)

BACKENDS = "sabot.usb_backends"
READ_MS = 100  # a bulk read cannot be woken, so it must be short
WRITE_MS = 2000
CHUNK = 4096  # a full window of frames; pyusb makes a buffer of this size for each read


class UsbTransport:
    """One device's vendor interface."""

    def __init__(self, url: str, serial: str | None, backend: Any = None) -> None:
        self.url = url
        self._serial = serial
        self._backend = backend
        self._lock = threading.Lock()
        self._device: Any = None
        self._interface = 0

    @classmethod
    def from_url(cls, url: str) -> "UsbTransport":
        """``usb://SERIAL``; ``usb://SERIAL?backend=NAME`` for an installed backend with its settings."""
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        name = query.pop("backend", [""])[-1]
        if not name and query:
            raise BadUrl(f"{url}: settings are for a backend; name it with ?backend=")
        return cls(url, parts.netloc or None, backend(name, query) if name else None)

    def open(self) -> None:
        """Find the device and claim its interface."""
        try:
            device = self._find()
            with contextlib.suppress(NotImplementedError, usb.core.USBError):
                if device.is_kernel_driver_active(self._interface):
                    device.detach_kernel_driver(self._interface)
            try:
                configuration = device.get_active_configuration()
            except usb.core.USBError:
                device.set_configuration()
                configuration = device.get_active_configuration()
            interface = usb.util.find_descriptor(
                configuration,
                bInterfaceClass=INTERFACE_CLASS,
                bInterfaceSubClass=INTERFACE_SUBCLASS,
                bInterfaceProtocol=INTERFACE_PROTOCOL,
            )
            if interface is None:
                raise NoDevice(f"{self.url}: the device has no interface of ours")
            self._interface = interface.bInterfaceNumber
            usb.util.claim_interface(device, self._interface)
        except usb.core.NoBackendError as error:
            raise NoDevice(
                f"{self.url}: there is no libusb on this computer",
                "Install libusb 1.0; docs/driver.md says how.",
            ) from error
        except usb.core.USBError as error:
            raise usb_error(self.url, error) from error
        self._device = device
        self._drain()

    def _find(self) -> Any:
        found = [each for each in find(self._backend) if self._serial in (None, _serial_of(each))]
        if not found:
            raise NoDevice(f"{self.url}: no such device on USB")
        if len(found) > 1:
            raise AmbiguousDevice([f"usb://{_serial_of(each)}" for each in found])
        return found[0]

    def _drain(self) -> None:
        """Discard bytes that were meant for an earlier owner of the interface."""
        with contextlib.suppress(usb.core.USBError):
            while len(self._device.read(ENDPOINT_IN, CHUNK, 1)):
                pass

    def read(self) -> bytes:
        """Received bytes; none if nothing came within 100 ms. LinkLost if the device is gone."""
        device = self._device
        if device is None:
            raise LinkLost(f"{self.url}: closed")
        try:
            return bytes(device.read(ENDPOINT_IN, CHUNK, READ_MS))
        except usb.core.USBTimeoutError:
            return b""
        except usb.core.USBError as error:
            raise LinkLost(f"{self.url}: {error}") from error

    def write(self, data: bytes) -> None:
        """Send all bytes, or raise LinkLost."""
        device = self._device
        if device is None:
            raise LinkLost(f"{self.url}: closed")
        try:
            written = device.write(ENDPOINT_OUT, data, WRITE_MS)
        except usb.core.USBError as error:
            raise LinkLost(f"{self.url}: {error}") from error
        if written != len(data):
            raise LinkLost(f"{self.url}: the device took {written} of {len(data)} bytes")

    def wake(self) -> None:
        """Nothing to do: a bulk read ends after 100 ms."""

    def close(self) -> None:
        """Release the interface."""
        with self._lock:
            device, self._device = self._device, None
        if device is not None:
            with contextlib.suppress(usb.core.USBError):
                usb.util.release_interface(device, self._interface)
            usb.util.dispose_resources(device)


def find(using: Any = None) -> Iterator[Any]:
    """The devices on USB with our vendor and product id; none if libusb is not installed."""
    try:
        yield from usb.core.find(find_all=True, idVendor=VENDOR, idProduct=PRODUCT, backend=using)
    except usb.core.NoBackendError:
        return


def _serial_of(device: Any) -> str | None:
    try:
        text = device.serial_number
    except (ValueError, usb.core.USBError):  # this user may not read it
        return None
    return None if text is None else str(text)


def serials(using: Any = None) -> list[str]:
    """The serial numbers of the devices on USB; '?' if this user may not read it."""
    return [_serial_of(each) or "?" for each in find(using)]


def backend(name: str, settings: dict[str, list[str]]) -> Any:
    """An installed pyusb backend by its name; BadUrl if there is none, or if it rejects the settings."""
    for entry in entry_points(group=BACKENDS):
        if entry.name == name:
            try:
                return entry.load()(settings)
            except ValueError as error:
                raise BadUrl(f"usb backend '{name}': {error}") from error
    known = ", ".join(entry.name for entry in entry_points(group=BACKENDS)) or "none"
    raise BadUrl(f"there is no USB backend '{name}'; there is {known}")


def usb_error(url: str, error: usb.core.USBError) -> SabotError:
    """The typed error for a pyusb error at opening."""
    if error.errno == errno.EACCES:
        return PortDenied(f"{url}: {error}")
    if error.errno == errno.EBUSY:
        return PortBusy(f"{url}: another program has claimed it")
    return NoDevice(f"{url}: {error}")
