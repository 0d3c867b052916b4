"""Stubs of MicroPython's modules over a ``StubbedChip``, enough to import the shipped board program."""

import builtins
import importlib
import io
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sabot_simulators.stubs.stubbed_chip import ALLOCATED_A_BYTE, NEVER, Dma, StubbedChip

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "sabot_firmware.boards.rp2040"
ALLOCATED_A_TURN = 64  # bytes that one turn of the loop leaves behind, about
SERIAL = b"STUBBED1"


class Streams:
    """The USB cable as MicroPython has it: ``sys.stdin`` and ``sys.stdout``."""

    def __init__(self, chip: StubbedChip) -> None:
        self._chip = chip
        self.buffer = self

    def readinto(self, data: bytearray) -> int:
        """Read the next byte into the buffer."""
        data[0] = self._chip.usb_in.pop(0)
        self._chip.heap.allocate(ALLOCATED_A_BYTE)
        return 1

    def write(self, data: "bytes | memoryview") -> int:
        """Write all bytes. Without a cable they are lost."""
        self._chip.heap.allocate(len(data) * ALLOCATED_A_BYTE)
        if self._chip.cable:
            self._chip.usb_out += data
        return len(data)

    def readable(self) -> bool:
        """Whether a byte can be read."""
        return bool(self._chip.usb_in)


def make_modules(chip: StubbedChip, serial: bytes, reset_by_watchdog: bool) -> dict[str, ModuleType]:
    """The stub modules by name, all on one chip."""

    class Pin:
        IN, OUT, PULL_UP, PULL_DOWN, IRQ_RISING, IRQ_FALLING = 0, 1, 1, 2, 1, 2

        def __init__(self, number: int, mode: int = -1, pull: int = -1, value: int | None = None) -> None:
            self.number = number
            if value is not None:
                chip.drive(number, value)

        def value(self, level: int | None = None) -> int | None:
            if level is None:
                return chip.levels[self.number]
            chip.drive(self.number, level)
            return None

        def irq(self, handler: "Callable[[Any], None]", trigger: int, hard: bool = False) -> None:
            chip.handlers[self.number] = [(handler, trigger, self)]

    class Adc:
        def __init__(self, pin: int) -> None:
            self._channel = pin - 26 if pin >= 26 else pin

        def read_u16(self) -> int:
            sample = chip.analogue(self._channel)
            return sample << 4 | sample >> 8

    class I2c:
        def __init__(self, bus: int, **named: Any) -> None:
            pass

        def writeto(self, address: int, data: bytes) -> None:
            chip.show(bytes(data))

        def writeto_mem(self, address: int, register: int, data: bytes) -> None:
            chip.write_expander(address, register, data)

        def readfrom_mem_into(self, address: int, register: int, data: bytearray) -> None:
            word = chip.read_expander(address, register)
            data[0], data[1] = word & 0xFF, word >> 8

        def readfrom_into(self, address: int, data: bytearray) -> None:
            data[0] = chip.face

    class Spi:
        def __init__(self, bus: int, **named: Any) -> None:
            pass

        def write(self, data: bytes) -> None:
            chip.fram.write(data)

        def read(self, length: int) -> bytes:
            return chip.fram.read(length)

        def readinto(self, data: bytearray) -> None:
            data[:] = chip.fram.read(len(data))

    class Uart:
        """The second cable."""

        def __init__(self, number: int, **named: Any) -> None:
            pass

        def any(self) -> int:
            return len(chip.uart_in)

        def read(self, count: int) -> bytes:
            data = bytes(chip.uart_in[:count])
            del chip.uart_in[:count]
            chip.heap.allocate(len(data) * ALLOCATED_A_BYTE)
            return data

        def write(self, data: bytes) -> int:
            chip.heap.allocate(len(data) * ALLOCATED_A_BYTE)
            chip.uart_out += data
            return len(data)

        def readable(self) -> bool:
            return bool(chip.uart_in)

    class Timer:
        ONE_SHOT = 0

        def __init__(self, number: int = -1) -> None:
            self.due_us = NEVER
            self._callback: Callable[[Any], None] | None = None
            chip.timers.append(self)

        def init(self, mode: int, period: int, tick_hz: int, callback: "Callable[[Any], None]") -> None:
            self.due_us = chip.now_us + period * 1_000_000 // tick_hz
            self._callback = callback

        def deinit(self) -> None:
            self.due_us = NEVER

        def fire(self) -> None:
            self.due_us = NEVER
            if self._callback is not None:
                chip.scheduled.append((self._callback, self))

    class Wdt:
        def __init__(self, timeout: int) -> None:
            chip.watchdog_us = timeout * 1000
            self.feed()

        def feed(self) -> None:
            chip.fed_us = chip.now_us
            chip.heap.allocate(ALLOCATED_A_TURN)

    class Poll:
        def __init__(self) -> None:
            self._streams: list[Any] = []

        def register(self, stream: Any, events: int) -> None:
            self._streams.append(stream)

        def _ready(self) -> list[tuple[Any, int]]:
            found = []
            for stream in self._streams:
                if isinstance(stream, io.IOBase):
                    if stream.ioctl(3, 1):  # type: ignore[attr-defined]
                        found.append((stream, 1))
                elif stream.readable():
                    found.append((stream, 1))
            return found

        def ipoll(self, timeout_ms: int) -> Iterator[tuple[Any, int]]:
            chip.run_scheduled()
            ready = self._ready()
            if ready or not timeout_ms:
                return iter(ready)
            ends_us = chip.now_us + timeout_ms * 1000
            while not ready and chip.now_us < ends_us:
                chip.wait(ends_us)
                chip.run_scheduled()
                ready = self._ready()
            return iter(ready)

    class Flash:
        def __init__(self, start: int = 0, len: int | None = None) -> None:
            self._start = start
            self._size = builtins.len(chip.flash) if len is None else len

        def ioctl(self, what: int, argument: int) -> int:
            if what == 4:
                return self._size // 4096
            if what == 5:
                return 4096
            at = self._start + argument * 4096
            chip.flash[at : at + 4096] = b"\xff" * 4096
            return 0

        def readblocks(self, block: int, data: bytearray, offset: int = 0) -> None:
            at = self._start + block * 4096 + offset
            data[:] = chip.flash[at : at + len(data)]

        def writeblocks(self, block: int, data: bytearray, offset: int = 0) -> None:
            at = self._start + block * 4096 + offset
            for index, byte in enumerate(data):
                chip.flash[at + index] &= byte

    stream = Streams(chip)
    contents: dict[str, dict[str, Any]] = {
        "machine": {
            "Pin": Pin, "ADC": Adc, "I2C": I2c, "SPI": Spi, "UART": Uart, "Timer": Timer, "WDT": Wdt,
            "PWM": lambda pin: None, "mem32": chip.registers, "unique_id": lambda: serial,
            "PWRON_RESET": 1, "WDT_RESET": 3, "reset_cause": lambda: 3 if reset_by_watchdog else 1,
        },
        "select": {"poll": Poll, "POLLIN": 1, "POLLOUT": 4},
        "rp2": {"DMA": lambda: Dma(chip), "Flash": Flash},
        "uctypes": {"addressof": chip.addressof},
        "micropython": {
            "schedule": lambda function, argument: chip.scheduled.append((function, argument)),
            "viper": lambda function: function, "native": lambda function: function,
            "const": lambda value: value, "kbd_intr": lambda byte: None,
        },
        "gc": {
            "collect": chip.heap.collect, "allocated": lambda: chip.heap.allocated,
            "mem_alloc": lambda: 90_000, "threshold": lambda size: None,
        },
        "time": {
            "ticks_us": lambda: chip.now_us + chip.ticks_from_us & 0x3FFFFFFF,
            "ticks_ms": lambda: (chip.now_us + chip.ticks_from_us) // 1000 & 0x3FFFFFFF,
        },
        "sys": {"stdin": stream, "stdout": stream, "implementation": sys.implementation},
    }  # fmt: skip
    modules = {}
    for name, values in contents.items():
        modules[name] = ModuleType(name)
        modules[name].__dict__.update(values)
    return modules


def load_program(chip: StubbedChip, serial: bytes, reset_by_watchdog: bool) -> ModuleType:
    """Import ``boards.rp2040.program`` again over the stubs, and restore ``sys.modules`` afterwards."""
    stubs = make_modules(chip, serial, reset_by_watchdog)
    ours = [name for name in sys.modules if name.startswith(PREFIX)]
    before = {name: sys.modules.get(name) for name in [*stubs, *ours]}
    package = sys.modules["sabot_firmware.boards"]
    attribute = package.__dict__.get("rp2040")
    for name in ours:
        del sys.modules[name]
    sys.modules.update(stubs)
    try:
        return importlib.import_module(f"{PREFIX}.program")
    finally:
        for name in [each for each in sys.modules if each.startswith(PREFIX)]:
            del sys.modules[name]
        for name, module in before.items():
            if module is not None:
                sys.modules[name] = module
            else:
                sys.modules.pop(name, None)
        if attribute is not None:
            package.rp2040 = attribute  # type: ignore[attr-defined]


__all__ = ["SERIAL", "load_program", "make_modules"]
