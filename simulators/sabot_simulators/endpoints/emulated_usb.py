"""An emulated device on USB: a pyusb backend whose bus has one device.

    usb.core.find(backend=get_backend({"seed": ["1"]}))

Descriptors, configuration, claiming, bulk and control transfers, time-outs and an unplugged cable (ENODEV)
behave as libusb's do. The device has one vendor interface with two bulk endpoints, and the Microsoft OS 2.0
descriptors by which Windows binds WinUSB to it without a driver file.
"""

import errno
import struct
import threading
import uuid
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import usb.backend
import usb.core

from sabot_driver.serial_numbers import format_serial
from sabot_driver.usb_ids import (
    ENDPOINT_IN,
    ENDPOINT_OUT,
    INTERFACE_CLASS,
    INTERFACE_PROTOCOL,
    INTERFACE_SUBCLASS,
    PACKET_SIZE,
    PRODUCT,
    VENDOR,
)
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, InProcessCable, Unplugged, wire_ms
from sabot_simulators.endpoints.in_process import announce

ENGLISH = 0x0409
STRINGS = {1: "Sabot", 2: "Sabot shoe (SIMULATOR)", 4: "Sabot wire"}
SERIAL_STRING = 3

DEVICE, CONFIGURATION, STRING, INTERFACE, ENDPOINT, BOS, CAPABILITY = 1, 2, 3, 4, 5, 15, 16
GET_DESCRIPTOR, GET_STATUS, SET_CONFIGURATION, GET_CONFIGURATION = 6, 0, 9, 8
PLATFORM = 5  # a BOS capability

# Microsoft OS 2.0
MS_OS_20 = uuid.UUID("{D8DD60DF-4589-4CC7-9CD2-659D9E648A9F}")
WINDOWS_8_1 = 0x06030000
MS_VENDOR_CODE = 0x20  # our choice: the bRequest Windows then asks with
MS_SET_HEADER, MS_FEATURE_COMPATIBLE_ID, MS_FEATURE_REGISTRY = 0, 3, 4
MS_DESCRIPTOR_INDEX = 7
REG_MULTI_SZ = 7
INTERFACE_GUID = "{5AB07A3E-6F1C-4B70-9F3E-2C0D8B5A1209}"  # what programs on Windows look devices up by


def device_descriptor() -> bytes:
    """USB 2.1, because only then does a host ask for the BOS."""
    head = struct.pack("<BBHBBBB", 18, DEVICE, 0x0210, 0, 0, 0, PACKET_SIZE)
    return head + struct.pack("<HHHBBBB", VENDOR, PRODUCT, 0x0100, 1, 2, SERIAL_STRING, 1)


def configuration_descriptor() -> bytes:
    """One configuration, one interface, two bulk endpoints."""
    interface = struct.pack(
        "<BBBBBBBBB", 9, INTERFACE, 0, 0, 2, INTERFACE_CLASS, INTERFACE_SUBCLASS, INTERFACE_PROTOCOL, 4
    )
    ends = b"".join(
        struct.pack("<BBBBHB", 7, ENDPOINT, address, 2, PACKET_SIZE, 0)
        for address in (ENDPOINT_OUT, ENDPOINT_IN)
    )
    total = 9 + len(interface) + len(ends)
    return struct.pack("<BBHBBBBB", 9, CONFIGURATION, total, 1, 1, 0, 0x80, 250) + interface + ends


def ms_os_20_set() -> bytes:
    """The Microsoft OS 2.0 descriptor set: this device wants WinUSB, and is looked up by this GUID."""
    compatible = struct.pack("<HH8s8s", 20, MS_FEATURE_COMPATIBLE_ID, b"WINUSB", b"")
    name = "DeviceInterfaceGUIDs\0".encode("utf-16-le")
    value = (INTERFACE_GUID + "\0\0").encode("utf-16-le")
    size = 10 + len(name) + len(value)
    registry = struct.pack("<HHHH", size, MS_FEATURE_REGISTRY, REG_MULTI_SZ, len(name)) + name
    registry += struct.pack("<H", len(value)) + value
    total = 10 + len(compatible) + len(registry)
    return struct.pack("<HHIH", 10, MS_SET_HEADER, WINDOWS_8_1, total) + compatible + registry


def bos_descriptor() -> bytes:
    """Tells Windows that there is such a set, how long it is and how to ask for it."""
    info = struct.pack("<IHBB", WINDOWS_8_1, len(ms_os_20_set()), MS_VENDOR_CODE, 0)
    capability = struct.pack("<BBBB", 4 + 16 + len(info), CAPABILITY, PLATFORM, 0) + MS_OS_20.bytes_le + info
    return struct.pack("<BBHB", 5, BOS, 5 + len(capability), 1) + capability


def string_descriptor(text: str) -> bytes:
    """A string as USB has it."""
    data = text.encode("utf-16-le")
    return struct.pack("<BB", 2 + len(data), STRING) + data


class EmulatedUsbDevice:
    """The device on the bus."""

    def __init__(self, settings: DeviceSettings, clock_rate: float = 1.0) -> None:
        self.serial = format_serial(settings.serial)
        self.device = emulate(settings, wire_ms(clock_rate))
        self.plugged = True
        self.bus, self.address = 1, 1
        self.claimed_by: object | None = None
        self.configured = 1
        self.served: DeviceServer | None = None
        self.cable: InProcessCable | None = None


@dataclass(eq=False)
class UsbHandle:
    """One opening of the device."""

    shoe: EmulatedUsbDevice
    open: bool = True


class EmulatedUsbBackend(usb.backend.IBackend):  # type: ignore[misc]
    """A bus with one emulated device. ``unplug`` and ``plug`` are what hands do to its cable.

    ``clock_rate`` makes the timers of the device's wire run faster, for tests in which both ends do so.
    """

    def __init__(self, settings: DeviceSettings, clock_rate: float = 1.0) -> None:
        super().__init__()
        self.shoe = EmulatedUsbDevice(settings, clock_rate)
        self._clock_rate = clock_rate
        self._lock = threading.Lock()

    # -- hands ----------------------------------------------------------------------------------

    def unplug(self) -> None:
        """Pull the cable: whatever is under way or tried ends with ENODEV."""
        with self._lock:
            self.shoe.plugged = False
        self._stop()

    def plug(self) -> None:
        """Plug it in again; the bus gives it a new address, and old handles stay useless."""
        with self._lock:
            self.shoe.plugged = True
            self.shoe.address += 1
            self.shoe.claimed_by = None

    def close(self) -> None:
        """End the device's thread, if it runs."""
        self._stop()

    def _stop(self) -> None:
        with self._lock:
            served, self.shoe.served = self.shoe.served, None
            self.shoe.cable = None
        if served is not None:
            served.close()

    # -- what pyusb asks ------------------------------------------------------------------------

    def enumerate_devices(self) -> list[tuple[EmulatedUsbDevice, int]]:
        """The bus."""
        return [(self.shoe, self.shoe.address)] if self.shoe.plugged else []

    def get_device_descriptor(self, dev: tuple[EmulatedUsbDevice, int]) -> Any:
        """The device descriptor, with where the device is."""
        names = (
            "bLength", "bDescriptorType", "bcdUSB", "bDeviceClass", "bDeviceSubClass", "bDeviceProtocol",
            "bMaxPacketSize0", "idVendor", "idProduct", "bcdDevice", "iManufacturer", "iProduct",
            "iSerialNumber", "bNumConfigurations",
        )  # fmt: skip
        values = struct.unpack("<BBHBBBBHHHBBBB", device_descriptor())
        shoe, address = dev
        return SimpleNamespace(
            **dict(zip(names, values, strict=True)), bus=shoe.bus, address=address, port_number=1,
            port_numbers=(1,), speed=2,
        )  # fmt: skip

    def get_configuration_descriptor(self, dev: object, config: int) -> Any:
        """The only configuration."""
        if config:
            raise IndexError("configuration %d" % config)
        names = (
            "bLength", "bDescriptorType", "wTotalLength", "bNumInterfaces", "bConfigurationValue",
            "iConfiguration", "bmAttributes", "bMaxPower",
        )  # fmt: skip
        values = struct.unpack_from("<BBHBBBBB", configuration_descriptor())
        return SimpleNamespace(**dict(zip(names, values, strict=True)), extra_descriptors=[])

    def get_interface_descriptor(self, dev: object, intf: int, alt: int, config: int) -> Any:
        """The only interface."""
        if intf or alt or config:
            raise IndexError("interface %d, setting %d" % (intf, alt))
        names = (
            "bLength", "bDescriptorType", "bInterfaceNumber", "bAlternateSetting", "bNumEndpoints",
            "bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol", "iInterface",
        )  # fmt: skip
        values = struct.unpack_from("<9B", configuration_descriptor(), 9)
        return SimpleNamespace(**dict(zip(names, values, strict=True)), extra_descriptors=[])

    def get_endpoint_descriptor(self, dev: object, ep: int, intf: int, alt: int, config: int) -> Any:
        """The two endpoints."""
        if ep > 1:
            raise IndexError("endpoint %d" % ep)
        names = (
            "bLength", "bDescriptorType", "bEndpointAddress", "bmAttributes", "wMaxPacketSize", "bInterval",
        )  # fmt: skip
        values = struct.unpack_from("<BBBBHB", configuration_descriptor(), 18 + 7 * ep)
        return SimpleNamespace(
            **dict(zip(names, values, strict=True)), bRefresh=0, bSynchAddress=0, extra_descriptors=[]
        )

    def open_device(self, dev: tuple[EmulatedUsbDevice, int]) -> UsbHandle:
        """Open it."""
        shoe, address = dev
        if not shoe.plugged or address != shoe.address:
            raise _gone()
        return UsbHandle(shoe)

    def close_device(self, dev_handle: UsbHandle) -> None:
        """Close it; its interface is released."""
        dev_handle.open = False
        self._release(dev_handle)

    def set_configuration(self, dev_handle: UsbHandle, config_value: int) -> None:
        """There is one."""
        self._check(dev_handle)
        dev_handle.shoe.configured = config_value

    def get_configuration(self, dev_handle: UsbHandle) -> int:
        """Which configuration is set."""
        return self._check(dev_handle).configured

    def set_interface_altsetting(self, dev_handle: UsbHandle, intf: int, altsetting: int) -> None:
        """There is one."""
        self._check(dev_handle)

    def claim_interface(self, dev_handle: UsbHandle, intf: int) -> None:
        """One holder at a time; EBUSY for another. The device's end is alive while it is held."""
        shoe = self._check(dev_handle)
        with self._lock:
            if shoe.claimed_by not in (None, dev_handle):
                raise usb.core.USBError("Resource busy", -6, errno.EBUSY)
            shoe.claimed_by = dev_handle
            fresh = shoe.served is None
            served = shoe.served = shoe.served or DeviceServer(shoe.device, self._clock_rate)
            cable = shoe.cable = shoe.cable or InProcessCable(served)
        if fresh:
            served.plug(cable)

    def release_interface(self, dev_handle: UsbHandle, intf: int) -> None:
        """Let another one have it."""
        self._check(dev_handle)
        self._release(dev_handle)

    def _release(self, handle: UsbHandle) -> None:
        with self._lock:
            if handle.shoe.claimed_by is not handle:
                return
            handle.shoe.claimed_by = None
        self._stop()

    def bulk_write(self, dev_handle: UsbHandle, ep: int, intf: int, data: "array[int]", timeout: int) -> int:
        """Bytes to the device."""
        cable = self._claimed(dev_handle, ep, ENDPOINT_OUT)
        try:
            written = cable.write(data.tobytes(), timeout / 1000 if timeout else None)
        except Unplugged as error:
            raise _gone() from error
        if written < len(data):
            raise usb.core.USBTimeoutError("Operation timed out", -7, errno.ETIMEDOUT)
        return written

    def bulk_read(self, dev_handle: UsbHandle, ep: int, intf: int, buff: "array[int]", timeout: int) -> int:
        """Bytes from the device, up to the end of a short packet; ETIMEDOUT when none come."""
        cable = self._claimed(dev_handle, ep, ENDPOINT_IN)
        try:
            data = cable.read(len(buff), timeout / 1000 if timeout else None)
        except Unplugged as error:
            raise _gone() from error
        if not data:
            if not dev_handle.shoe.plugged:
                raise _gone()
            raise usb.core.USBTimeoutError("Operation timed out", -7, errno.ETIMEDOUT)
        buff[: len(data)] = array("B", data)
        return len(data)

    def ctrl_transfer(
        self, dev_handle: UsbHandle, bmRequestType: int, bRequest: int, wValue: int, wIndex: int,  # noqa: N803
        data: "array[int]", timeout: int,
    ) -> int:  # fmt: skip
        """Standard requests, and Microsoft's."""
        self._check(dev_handle)
        answer = self._answer(bmRequestType, bRequest, wValue, wIndex)
        if answer is None:
            raise usb.core.USBError("Pipe error", -9, errno.EPIPE)
        answer = answer[: len(data)]
        data[: len(answer)] = array("B", answer)
        return len(answer)

    def clear_halt(self, dev_handle: UsbHandle, ep: int) -> None:
        """Nothing halts."""
        self._check(dev_handle)

    def reset_device(self, dev_handle: UsbHandle) -> None:
        """The port is reset; the device keeps its power."""
        self._check(dev_handle)

    def is_kernel_driver_active(self, dev_handle: UsbHandle, intf: int) -> bool:
        """A vendor interface has no driver."""
        return False

    def _answer(self, kind: int, request: int, value: int, index: int) -> bytes | None:
        """What the device answers to a control request; None for a stall."""
        if kind == 0xC0 and request == MS_VENDOR_CODE and index == MS_DESCRIPTOR_INDEX:
            return ms_os_20_set()
        if kind != 0x80:
            return None
        if request == GET_CONFIGURATION:
            return bytes((self.shoe.configured,))
        if request == GET_STATUS:
            return b"\0\0"
        if request != GET_DESCRIPTOR:
            return None
        which, number = value >> 8, value & 0xFF
        if which == STRING:
            if number == 0:
                return struct.pack("<BBH", 4, STRING, ENGLISH)
            text = self.shoe.serial if number == SERIAL_STRING else STRINGS.get(number)
            return None if text is None else string_descriptor(text)
        found = {DEVICE: device_descriptor, CONFIGURATION: configuration_descriptor, BOS: bos_descriptor}
        return found[which]() if which in found else None

    def _check(self, handle: UsbHandle) -> EmulatedUsbDevice:
        if not handle.open or not handle.shoe.plugged:
            raise _gone()
        return handle.shoe

    def _claimed(self, handle: UsbHandle, endpoint: int, wanted: int) -> InProcessCable:
        shoe = self._check(handle)
        cable = shoe.cable
        if shoe.claimed_by is not handle or cable is None:
            raise usb.core.USBError("Input/Output Error: claim the interface first", -1, errno.EIO)
        if endpoint != wanted:
            raise usb.core.USBError("Entity not found", -5, errno.ENOENT)
        return cable


def _gone() -> usb.core.USBError:
    return usb.core.USBError("No such device (it may have been disconnected)", -4, errno.ENODEV)


_buses: dict[str, EmulatedUsbBackend] = {}
_buses_lock = threading.Lock()


def get_backend(settings: Mapping[str, Sequence[str]] | None = None) -> EmulatedUsbBackend:
    """A bus with a device of these settings; with ``bus=NAME`` all callers in this process share it."""
    given = dict(settings or {})
    name = list(given.pop("bus", [""]))[-1]
    with _buses_lock:
        bus = _buses.get(name) or EmulatedUsbBackend(DeviceSettings.from_query(given))
        if name:
            _buses[name] = bus
        announce("usb", name, bus.shoe.device)
        return bus
