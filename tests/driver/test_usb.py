"""The emulated shoe on USB, by real pyusb calls: descriptors, claiming, bulk transfers, unplugging."""

import errno
import struct

import pytest
import usb.core
import usb.util

from sabot_driver import LinkState, connect
from sabot_driver.errors import AmbiguousDevice, LinkLost
from sabot_driver.usb import UsbTransport, serials
from sabot_driver.usb_ids import ENDPOINT_IN, ENDPOINT_OUT, PRODUCT, VENDOR
from sabot_protocol import frame
from sabot_protocol.codec import CODEC
from sabot_protocol.handshake import read_clear
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.endpoints import emulated_usb as emulated


def found(bus: emulated.EmulatedUsbBackend) -> "usb.core.Device":
    device = usb.core.find(idVendor=VENDOR, idProduct=PRODUCT, backend=bus)
    assert device is not None
    return device


def test_it_is_found_by_its_ids_and_says_who_it_is(bus: emulated.EmulatedUsbBackend) -> None:
    device = found(bus)
    assert device.serial_number == "SIM00007"
    assert device.manufacturer == "Sabot"
    assert "SIMULATOR" in device.product
    assert serials(bus) == ["SIM00007"]
    assert usb.core.find(idVendor=0x1234, backend=bus) is None


def test_it_has_one_vendor_interface_with_two_bulk_endpoints(bus: emulated.EmulatedUsbBackend) -> None:
    (configuration,) = found(bus)
    (interface,) = configuration
    assert interface.bInterfaceClass == 0xFF
    kinds = {each.bEndpointAddress: usb.util.endpoint_type(each.bmAttributes) for each in interface}
    assert kinds == {ENDPOINT_OUT: usb.util.ENDPOINT_TYPE_BULK, ENDPOINT_IN: usb.util.ENDPOINT_TYPE_BULK}
    assert configuration.wTotalLength == 9 + 9 + 7 + 7


def test_windows_is_told_to_bind_winusb(bus: emulated.EmulatedUsbBackend) -> None:
    """The BOS names the Microsoft OS 2.0 set, which asks for WINUSB; read as Windows reads it."""
    device = found(bus)
    assert device.bcdUSB >= 0x0201, "an older device is not asked for its BOS"
    head = bytes(device.ctrl_transfer(0x80, 6, 15 << 8, 0, 5))
    length, kind, total, capabilities = struct.unpack("<BBHB", head)
    assert (length, kind, capabilities) == (5, 15, 1)
    bos = bytes(device.ctrl_transfer(0x80, 6, 15 << 8, 0, total))
    assert len(bos) == total
    size, kind, capability = bos[5], bos[6], bos[7]
    assert (size, kind, capability) == (len(bos) - 5, 16, 5)
    assert bos[9:25] == bytes.fromhex("df60ddd88945c74c9cd2659d9e648a9f")
    version, set_size, vendor_code, alternate = struct.unpack("<IHBB", bos[25:33])
    assert (version, alternate) == (0x06030000, 0)
    said = bytes(device.ctrl_transfer(0xC0, vendor_code, 0, 7, set_size))
    assert len(said) == set_size
    assert struct.unpack("<HHIH", said[:10]) == (10, 0, 0x06030000, set_size)
    assert struct.unpack("<HH8s8s", said[10:30]) == (20, 3, b"WINUSB\0\0", bytes(8))
    size, kind, data_type, name_size = struct.unpack("<HHHH", said[30:38])
    assert (size, kind, data_type) == (len(said) - 30, 4, 7)
    assert said[38 : 38 + name_size].decode("utf-16-le") == "DeviceInterfaceGUIDs\0"
    (value_size,) = struct.unpack_from("<H", said, 38 + name_size)
    value = said[40 + name_size :].decode("utf-16-le")
    assert len(said) == 40 + name_size + value_size
    assert value.startswith("{")
    assert value.endswith("}\0\0")


def test_what_it_does_not_know_is_a_stall(bus: emulated.EmulatedUsbBackend) -> None:
    with pytest.raises(usb.core.USBError) as stalled:
        found(bus).ctrl_transfer(0xC0, 0x99, 0, 0, 8)
    assert stalled.value.errno == errno.EPIPE


def test_bulk_transfers_reach_the_wire(bus: emulated.EmulatedUsbBackend) -> None:
    device = found(bus)
    usb.util.claim_interface(device, 0)
    question = bytes(frame.encode(bytes((1, CODEC.named("identify").id))))
    assert device.write(ENDPOINT_OUT, question) == len(question)
    said = bytes(device.read(ENDPOINT_IN, 512, 5000))
    ((payload, _),) = frame.Decoder().feed(said)
    assert payload is not None
    answer = read_clear(CODEC, payload)
    assert answer is not None
    assert answer[0] == "identity"
    usb.util.dispose_resources(device)


def test_nothing_to_read_is_a_time_out(bus: emulated.EmulatedUsbBackend) -> None:
    device = found(bus)
    usb.util.claim_interface(device, 0)
    with pytest.raises(usb.core.USBTimeoutError) as late:
        device.read(ENDPOINT_IN, 64, 10)
    assert late.value.errno == errno.ETIMEDOUT
    usb.util.dispose_resources(device)


def test_two_handles_cannot_claim_it(bus: emulated.EmulatedUsbBackend) -> None:
    device, other = found(bus), found(bus)
    usb.util.claim_interface(device, 0)
    with pytest.raises(usb.core.USBError) as busy:
        usb.util.claim_interface(other, 0)
    assert busy.value.errno == errno.EBUSY
    usb.util.dispose_resources(device)
    usb.util.claim_interface(other, 0)
    usb.util.dispose_resources(other)


def test_an_unplugged_device_is_gone(bus: emulated.EmulatedUsbBackend) -> None:
    device = found(bus)
    usb.util.claim_interface(device, 0)
    bus.unplug()
    for transfer in (
        lambda: device.write(ENDPOINT_OUT, b"x"),
        lambda: device.read(ENDPOINT_IN, 64, 10),
        lambda: device.ctrl_transfer(0x80, 0, 0, 0, 2),
    ):
        with pytest.raises(usb.core.USBError) as gone:
            transfer()  # type: ignore[no-untyped-call]
        assert gone.value.errno == errno.ENODEV
    assert usb.core.find(idVendor=VENDOR, backend=bus) is None
    bus.plug()
    assert usb.core.find(idVendor=VENDOR, backend=bus) is not None


def test_a_client_finds_it_again_after_it_was_unplugged(bus: emulated.EmulatedUsbBackend) -> None:
    way = UsbTransport("usb://SIM00007", "SIM00007", bus)
    with connect("usb://SIM00007", transport=way, simulator=True) as client:
        assert client.status()
        bus.unplug()
        with pytest.raises(LinkLost):
            client.status(timeout=0.3)
        bus.plug()
        assert client.status(timeout=30)
        assert client.link is LinkState.UP


def test_two_shoes_on_the_bus_are_an_error_that_lists_them() -> None:
    class Two(emulated.EmulatedUsbBackend):
        def enumerate_devices(self) -> list[tuple[emulated.EmulatedUsbDevice, int]]:
            return super().enumerate_devices() + [(self.shoe, 9)]

    bus = Two(DeviceSettings(seed=1))
    with pytest.raises(AmbiguousDevice) as error:
        UsbTransport("usb://", None, bus).open()
    assert len(error.value.matches) == 2
