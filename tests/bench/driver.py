"""The whole driver: round trips over pty and USB beside bare echoes and pymodbus, and its journal."""

import tempfile
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import quantiles
from typing import Any

import usb.core
import usb.util
from pymodbus.client import ModbusSerialClient
from tests.bench import ends
from tests.bench.far_end import ANSWER
from tests.bench.measure import Figure, Rates, Run, take_turns
from tests.bench.over_pty import far_end

from sabot_driver import Client, connect
from sabot_driver.usb import UsbTransport
from sabot_driver.usb_ids import ENDPOINT_IN, ENDPOINT_OUT, PRODUCT, VENDOR
from sabot_protocol import frame
from sabot_protocol.host.messages import Status, StatusReport
from sabot_simulators.device_settings import DeviceSettings
from sabot_simulators.emulated_device import emulate
from sabot_simulators.endpoints.device_server import DeviceServer, wire_ms
from sabot_simulators.endpoints.emulated_usb import EmulatedUsbBackend, UsbHandle
from sabot_simulators.endpoints.tcp import TcpListener
from sabot_simulators.python_device import WiredPythonDevice

PTY = "the driver over a pty"
USB = "the driver over emulated USB"
JOURNAL = "the journal"
REGISTERS = 16
MESSAGE = bytes(frame.encode(ANSWER))


class Timed:
    """A thing done many times, one after the other; keeps how long each took."""

    def __init__(self, once: Callable[[], object]) -> None:
        self._once = once
        self.took_s: list[float] = []

    def __call__(self, count: int) -> float:
        """A run."""
        clock = time.perf_counter
        once, took = self._once, self.took_s
        began = before = clock()
        for _ in range(count):
            once()
            now = clock()
            took.append(now - before)
            before = now
        return before - began

    def percentiles_us(self) -> tuple[float, float]:
        """The median and the 99th, in microseconds."""
        hundredths = quantiles(self.took_s, n=100) if len(self.took_s) > 1 else self.took_s * 99
        return hundredths[49] * 1e6, hundredths[98] * 1e6


@contextmanager
def driver_on_pty() -> Iterator[Timed]:
    """``Client.status`` on a device in another process."""
    with far_end("sabot", 16) as port:
        path = str(port.port)
        with connect(path, key=ends.KEY) as client:
            yield Timed(client.status)


@contextmanager
def many_on_pty(outstanding: int) -> Iterator[Run]:
    """The same with so many requests under way, as several threads or tasks have."""
    with far_end("sabot", 16) as port, connect(str(port.port), key=ends.KEY) as client:

        def run(count: int) -> float:
            began = time.perf_counter()
            under_way: deque[Future[StatusReport]] = deque()
            for _ in range(count):
                if len(under_way) >= outstanding:
                    under_way.popleft().result(10)
                under_way.append(client.submit(Status())[1])
            while under_way:
                under_way.popleft().result(10)
            return time.perf_counter() - began

        yield run


@contextmanager
def echo_on_pty() -> Iterator[Timed]:
    """A message of the size of our answer through a bare pyserial echo."""
    with far_end("echo", 1) as port:

        def once() -> None:
            port.write(MESSAGE)
            left = len(MESSAGE)
            while left:
                left -= len(port.read(port.in_waiting or 1))

        yield Timed(once)


@contextmanager
def modbus_on_pty() -> Iterator[Timed]:
    """Pymodbus reads sixteen registers; its far end answers with bytes made once, which costs it nothing."""
    with far_end("modbus", 1) as port:
        path = str(port.port)
        client = ModbusSerialClient(path, baudrate=115200, timeout=5)
        assert client.connect()

        def once() -> None:
            answer = client.read_holding_registers(0, count=REGISTERS)
            assert len(answer.registers) == REGISTERS

        yield Timed(once)
        client.close()  # type: ignore[no-untyped-call]


@contextmanager
def driver_on_usb() -> Iterator[Timed]:
    """``Client.status`` through real pyusb calls on the emulated bus."""
    bus = EmulatedUsbBackend(DeviceSettings(seed=1))
    with connect("usb://", transport=UsbTransport("usb://", None, bus), simulator=True) as client:
        yield Timed(client.status)
    bus.close()


class Echo(EmulatedUsbBackend):
    """A bus whose device says what it is told, at once."""

    _said = b""

    def bulk_write(self, dev_handle: UsbHandle, ep: int, intf: int, data: "array[int]", timeout: int) -> int:
        """Keep it."""
        self._claimed(dev_handle, ep, ENDPOINT_OUT)
        self._said += data.tobytes()
        return len(data)

    def bulk_read(self, dev_handle: UsbHandle, ep: int, intf: int, buff: "array[int]", timeout: int) -> int:
        """Say it."""
        self._claimed(dev_handle, ep, ENDPOINT_IN)
        said, self._said = self._said, b""
        buff[: len(said)] = array("B", said)
        return len(said)


@contextmanager
def echo_on_usb() -> Iterator[Timed]:
    """The same bytes through bare pyusb to a device that echoes them without a thread."""
    bus = Echo(DeviceSettings(seed=1))
    device: Any = usb.core.find(idVendor=VENDOR, idProduct=PRODUCT, backend=bus)
    usb.util.claim_interface(device, 0)

    def once() -> None:
        device.write(ENDPOINT_OUT, MESSAGE)
        assert len(device.read(ENDPOINT_IN, 512, 1000)) == len(MESSAGE)

    yield Timed(once)
    usb.util.dispose_resources(device)
    bus.close()


@contextmanager
def threaded_echo_on_usb() -> Iterator[Timed]:
    """The same to a device that lives in a thread of its own, as the emulated shoe does."""
    bus = EmulatedUsbBackend(DeviceSettings(seed=1))
    bus.shoe.device.plug = lambda: EchoPort()  # type: ignore[method-assign]
    device: Any = usb.core.find(idVendor=VENDOR, idProduct=PRODUCT, backend=bus)
    usb.util.claim_interface(device, 0)

    def once() -> None:
        device.write(ENDPOINT_OUT, MESSAGE)
        left = len(MESSAGE)
        while left:
            left -= len(device.read(ENDPOINT_IN, 512, 1000))

    yield Timed(once)
    usb.util.dispose_resources(device)
    bus.close()


class EchoPort:
    """A port of a device that says what it is told."""

    def __init__(self) -> None:
        self._said = b""
        self.device = None

    def receive(self, data: bytes, now: int) -> None:
        """Keep it."""
        self._said += data

    def poll(self, now: int, room: bool = True) -> bytes:
        """Say it."""
        said, self._said = self._said, b""
        return said

    def deadline(self) -> int | None:
        """Never due by itself."""
        return None

    def close(self) -> None:
        """Nothing to let go of."""


def _figure(rates: Rates, run: Run, section: str, name: str, other: str, goal: float | None) -> Figure:
    figure = rates.figure(section, name, other, goal)
    if not isinstance(run, Timed):
        return figure
    p50_us, p99_us = run.percentiles_us()
    return replace(figure, p50_us=p50_us, p99_us=p99_us)


@contextmanager
def journalling(folder: str) -> Iterator[tuple[Client, Run]]:
    """Events that a device in this process makes at once, until the last one is on disk."""
    device = emulate(DeviceSettings(seed=1, events_kept=100_000), wire_ms())
    assert isinstance(device, WiredPythonDevice)
    served = DeviceServer(device)
    listener = TcpListener()
    served.listen(listener)
    with connect(listener.url, journal=Path(folder) / "journal.db", simulator=True) as client:

        def run(count: int) -> float:
            began = time.perf_counter()
            served.call(lambda: [device.end.emit("located", 1) for _ in range(count)])
            after = client.loop.rows
            while after < device.end.events.last:
                after = client.loop.rows_after(after, 10)[-1].id
            return time.perf_counter() - began

        yield client, run
    served.close()


def figures(count: int, rounds: int) -> Iterator[Figure]:
    """Round trips with their percentiles, and events a second on disk."""
    on_pty: dict[str, AbstractContextManager[Run]] = {
        "Sabot's driver": driver_on_pty(),
        "Sabot's driver, 16 under way": many_on_pty(16),
        "bare pyserial echo": echo_on_pty(),
        "pymodbus": modbus_on_pty(),
    }
    on_usb: dict[str, AbstractContextManager[Run]] = {
        "Sabot's driver": driver_on_usb(),
        "bare pyusb echo": echo_on_usb(),
        "bare pyusb echo, a thread behind it": threaded_echo_on_usb(),
    }
    for section, parts, goals in (
        (PTY, on_pty, {"pymodbus": 2.0, "bare pyserial echo": 0.5}),
        (USB, on_usb, {"bare pyusb echo": None, "bare pyusb echo, a thread behind it": 0.5}),
    ):
        with ExitStack() as stack:
            runs = {name: stack.enter_context(part) for name, part in parts.items()}
            rates = take_turns(runs, count, rounds)
        for name in [each for each in parts if each.startswith("Sabot")]:
            for other, goal in goals.items():
                yield _figure(rates, runs[name], section, name, other, goal)
    with tempfile.TemporaryDirectory(dir=".") as folder, journalling(folder) as (_, run):
        run(10)
        seconds = run(count * 2)
    yield Figure(JOURNAL, "events on disk (WAL, synchronous=FULL)", count * 2 / seconds, least=2000.0)
