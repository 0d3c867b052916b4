"""What the conformance suite runs against: devices that can be reached, pulled and rebooted."""

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.board.crash import APART_US, OFTEN, crash

from sabot_driver import Client, Keyring, connect
from sabot_driver.clock import Clock
from sabot_driver.transports import SerialTransport, SocketTransport, Transport, is_simulator, transport_for
from sabot_driver.unsecured_exchange import UnsecuredExchange
from sabot_driver.usb import UsbTransport
from sabot_protocol import ticks
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import EmulatedDevice, emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.emulated_usb import EmulatedUsbBackend
from sabot_simulators.endpoints.pseudo_terminal import PseudoTerminal
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.endpoints.urls import protocol_sim
from sabot_simulators.python_device import WiredPythonDevice
from sabot_simulators.rp2040.pico_device import PicoDevice

ROOT = Path(__file__).parent.parent.parent
_names = itertools.count()
PROVISION_S = 60.0  # a limit for what fails, not a measure
KEY_SIZE = 32


class Target:
    """One device under test, with hands at its cable and its power."""

    name: str
    hands = True
    """Whether the suite can pull its cable and cut its power."""
    cables = True
    """Whether a second host can be connected at the same time; a USB interface has one holder."""
    simulator = True
    """Whether the firmware knows that it runs in a simulator; a board's image does not."""

    chips = False
    """Whether the suite can reach its memory chips and the contact in its logic compartment."""
    crashes = False
    """Whether it can be made to begin as after repeated crashes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keyring = Keyring(folder / "keys")
        self._clients: list[Client] = []

    def way(self) -> Transport:
        """A new way to the device."""
        raise NotImplementedError

    def second_way(self) -> Transport:
        """A way over another cable, while the first is in use."""
        return self.way()

    def connect(self, **named: Any) -> Client:
        """A client of the device; closed with the target."""
        way = named.pop("transport", None) or self.way()
        named.setdefault("simulator", self.simulator)
        client = connect(way.url, keyring=self.keyring, transport=way, **named)
        self._clients.append(client)
        return client

    def pull(self) -> None:
        """Pull the cable."""
        raise NotImplementedError

    def plug(self) -> None:
        """Plug it in again."""
        raise NotImplementedError

    def reboot(self) -> None:
        """Cut the power and give it back."""
        raise NotImplementedError

    def exchange(self) -> UnsecuredExchange:
        """Questions outside a session."""
        return UnsecuredExchange(self.way(), self.name, Clock(), PROVISION_S)

    def damage_memory(self, cause: str) -> None:
        """Something happens to critical memory, and the power comes back."""
        raise NotImplementedError

    def hold_contact(self, on: bool) -> None:
        """Somebody closes the contact in the logic compartment, or lets it go."""
        raise NotImplementedError

    def dispensed(self) -> list[tuple[int, int]] | None:
        """The truth about stacks, where somebody knows it."""
        return None

    def close(self) -> None:
        """Clean up."""
        for client in self._clients:
            client.close()


class Emulated(Target):
    """Targets whose device lives in this process."""

    device: EmulatedDevice
    chips = True
    crashes = True

    def _server(self) -> DeviceServer | None:
        """The device's thread, while it has one."""
        raise NotImplementedError

    def _there(self, what: Callable[[], object]) -> None:
        """Do something where the device lives."""
        served = self._server()
        if served is None:
            what()
        else:
            served.call(what)

    def damage_memory(self, cause: str) -> None:
        self._there(lambda: self.device.damage_memory(cause))
        served = self._server()
        if served is None:
            self.device.reboot(wire_ms())
        else:
            served.reboot()

    def hold_contact(self, on: bool) -> None:
        self._there(lambda: self.device.machine.hold_contact(on))

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        """Settings as in the query of ``sim://``."""
        super().__init__(folder)

    def dispensed(self) -> list[tuple[int, int]] | None:
        return self.device.stacks_dispensed

    @property
    def python(self) -> WiredPythonDevice:
        """The device, where its firmware is in this process and can be looked into."""
        assert isinstance(self.device, WiredPythonDevice)
        return self.device


class InProcess(Emulated):
    """``sim://``: pyserial's URL handler."""

    name = "in-process"

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        super().__init__(folder)
        self._url = f"sim://test{os.getpid()}x{next(_names)}?{settings}"
        self._bench = protocol_sim.bench(*DeviceSettings.from_url(self._url))
        self.device = self._bench.device

    def _server(self) -> DeviceServer | None:
        return self._bench.served

    def way(self) -> Transport:
        return SerialTransport(self._url)

    def pull(self) -> None:
        self._bench.unplugged = True
        if self._bench.served is not None:
            self._bench.served.pull_all()

    def plug(self) -> None:
        self._bench.unplugged = False

    def reboot(self) -> None:
        assert self._bench.served is not None
        self._bench.served.reboot()


class OnServed(Emulated):
    """Targets with a server thread.

    Another kind of firmware is a subclass of one of these that names it; see ``simulators/README.md``.
    """

    firmware = "python"

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        super().__init__(folder)
        _, parsed = DeviceSettings.from_url(f"sim://?firmware={self.firmware}&{settings}")
        self.device = emulate(parsed, wire_ms())
        self.served = DeviceServer(self.device)

    def _server(self) -> DeviceServer | None:
        return self.served

    def pull(self) -> None:
        self.served.pull_all()

    def reboot(self) -> None:
        self.served.reboot()

    def close(self) -> None:
        super().close()
        self.served.close()
        self.device.close()
        assert self.served.failure is None, self.served.failure


class Pty(OnServed):
    """A pseudo-terminal, as a serial port."""

    name = "pty"

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        super().__init__(folder, settings)
        self.link = folder / "ttyACM0"
        self.plug()

    def way(self) -> Transport:
        return SerialTransport(str(self.link))

    def second_way(self) -> Transport:
        """A port of its own."""
        second = PseudoTerminal()
        self.served.plug(second)
        return SerialTransport(second.path)

    def plug(self) -> None:
        self.served.plug(PseudoTerminal(self.link))


class MicroPython(Pty):
    """The firmware on a real MicroPython, behind a pseudo-terminal."""

    name = "micropython"
    firmware = "micropython"


class BoardsClock(Clock):
    """The emulated board's own time, which may be faster or slower than the one on the wall."""

    LOOK_S = 0.01

    def __init__(self, device: EmulatedDevice) -> None:
        super().__init__()
        self._device = device

    def now_ms(self) -> int:
        return self._device.now_us // 1000 & ticks.MASK

    def seconds_until(self, tick: int) -> float:
        """Nobody knows: somebody looks again soon."""
        return min(super().seconds_until(tick), self.LOOK_S)


class Rp2040(Pty):
    """The board's image on an emulated Raspberry Pi Pico; its second cable is the UART."""

    name = "pico"
    firmware = "rp2040"
    simulator = False

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        """A real board is new until somebody gives it its key."""
        super().__init__(folder, settings)
        self._clock = BoardsClock(self.device)
        with UnsecuredExchange(self.way(), str(self.link), self._clock, PROVISION_S) as exchange:
            serial, key = exchange.identify().serial, os.urandom(KEY_SIZE)
            exchange.provision(serial, key)
        self.keyring.keep(serial, key)

    def damage_memory(self, cause: str) -> None:
        if cause != "crashes":
            return super().damage_memory(cause)
        device = self.device
        assert isinstance(device, PicoDevice)
        for _ in range(OFTEN):
            self.served.call(lambda: crash(device.pico))
            self.served.call(lambda: device.advance(device.now_us + APART_US, 1 << 30))
        return None

    def connect(self, **named: Any) -> Client:
        return super().connect(clock=self._clock, **named)

    def exchange(self) -> UnsecuredExchange:
        return UnsecuredExchange(self.way(), self.name, self._clock, PROVISION_S)


class Tcp(OnServed):
    """A TCP port."""

    name = "tcp"

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        super().__init__(folder, settings)
        self.listener = TcpListener()
        self.served.listen(self.listener)

    def way(self) -> Transport:
        return SocketTransport(self.listener.url)

    def pull(self) -> None:
        self.listener.unplugged = True
        super().pull()

    def plug(self) -> None:
        self.listener.unplugged = False


class Usb(Emulated):
    """Pyusb on an emulated bus."""

    name = "usb"
    cables = False

    def __init__(self, folder: Path, settings: str = "seed=1") -> None:
        super().__init__(folder)
        self.backend = EmulatedUsbBackend(DeviceSettings.from_url("sim://?" + settings)[1])
        self.device = self.backend.shoe.device

    def _server(self) -> DeviceServer | None:
        return self.backend.shoe.served

    def way(self) -> Transport:
        return UsbTransport("usb://SIM00001", "SIM00001", self.backend)

    def pull(self) -> None:
        self.backend.unplug()

    def plug(self) -> None:
        self.backend.plug()

    def reboot(self) -> None:
        assert self.backend.shoe.served is not None
        self.backend.shoe.served.reboot()

    def close(self) -> None:
        super().close()
        self.backend.close()


class AtUrl(Target):
    """Whatever is behind a URL, a real board included. Nobody pulls its cable."""

    hands = False
    cables = False
    simulator = False

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.name = url
        self._url = url
        self.keyring = Keyring(Path(os.environ.get("SABOT_KEYS", str(folder / "keys"))))
        self.simulator = is_simulator(url)

    def way(self) -> Transport:
        return transport_for(self._url)


EMULATED: dict[str, type[Emulated]] = {
    each.name: each for each in (InProcess, Pty, Tcp, Usb, MicroPython, Rp2040)
}
NAMES = tuple(name for name in EMULATED if name != Rp2040.name)
"""What the suite runs against unless it is told otherwise; the Pico has ``make test-board``."""


def eventually(what: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until something is so; the time is a limit for a test that fails, not a measure."""
    ends = time.monotonic() + seconds
    while not what():
        if time.monotonic() > ends:
            return False
        time.sleep(0.005)
    return True


@contextmanager
def closing(target: Target) -> Iterator[Target]:
    """A target that is cleaned up."""
    try:
        yield target
    finally:
        with contextlib.suppress(AssertionError) if sys.exc_info()[0] else contextlib.nullcontext():
            target.close()
