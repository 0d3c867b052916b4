"""MicroPython's heap as the emulated chip's RAM has it: read from outside, measuring changes nothing."""

import shlex
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sabot_image_build.build import BUILD
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.runner_messages import Called, Returned

INTO = BUILD / "rp2040"
RAM = 0x20000000
BLOCK = 16
QUESTION = """
#include <stddef.h>
#include "py/mpstate.h"
const unsigned offsets[] = { %s };
"""


def state_of(*fields: str) -> list[int]:
    """Where these fields of MicroPython's state lie in RAM, as the compiler that built the image says."""
    flags = (INTO / "CMakeFiles" / "firmware.dir" / "flags.make").read_text()
    options = [
        option
        for line in flags.splitlines()
        if line.startswith(("C_DEFINES", "C_INCLUDES", "C_FLAGS"))
        for option in shlex.split(line.partition("=")[2])
    ]
    with TemporaryDirectory() as folder:
        source = Path(folder) / "question.c"
        source.write_text(QUESTION % ", ".join(f"offsetof(mp_state_ctx_t, {field}) + 1" for field in fields))
        told = _said("arm-none-eabi-gcc", *options, "-S", "-o", "-", str(source))
    words = [int(line.split()[1]) - 1 for line in told.splitlines() if line.strip().startswith(".word")]
    assert len(words) == len(fields)
    return [address("mp_state_ctx") - RAM + word for word in words]


class Heap:
    """Where the allocation table is."""

    def __init__(self) -> None:
        self._table_at, self._length_at = state_of(
            "mem.area.gc_alloc_table_start", "mem.area.gc_alloc_table_byte_len"
        )

    def used(self, pico: Pico) -> tuple[int, int]:
        """Bytes of blocks that are taken, garbage included, and of all blocks."""
        (table,) = struct.unpack("<I", pico.read_ram(self._table_at, 4))
        (length,) = struct.unpack("<I", pico.read_ram(self._length_at, 4))
        kinds = pico.read_ram(table - RAM, length)
        taken = sum(1 for byte in kinds for shift in (0, 2, 4, 6) if byte >> shift & 3)
        return taken * BLOCK, length * 4 * BLOCK


@dataclass
class Collection:
    """One collection of garbage, and what moved meanwhile."""

    at_us: float
    us: float
    moved: list[str]
    asked_for: bool
    """By the firmware; if not, there was no room left and MicroPython did it by itself."""


class Garbage:
    """What was allocated, and when garbage was collected. The emulator tells it: the firmware does not know.

    The Pico must have been made with what ``watched`` gives. Allocations stop the emulator each time, so they
    are watched only where they are counted.
    """

    def __init__(self, device: HostedPico) -> None:
        self.collections: list[Collection] = []
        self.allocated: list[tuple[float, int]] = []  # when, how many bytes
        self.on_collection: Callable[[Collection], None] = lambda collection: None
        self._device = device
        self._asked, self._collect, self._allocate = watched(allocations=True)
        self._asked_for = False
        self._began: tuple[float, list[str], list[int]] | None = None
        device.wiring.on_watched = self._seen

    @staticmethod
    def blocks(size: int) -> int:
        """How many bytes of blocks are taken for so many."""
        return -(-size // BLOCK) * BLOCK

    def _seen(self, told: Called | Returned) -> None:
        wiring = self._device.wiring
        if told.function == self._allocate:
            if isinstance(told, Called):
                self.allocated.append((told.at_us, self.blocks(told.first)))
        elif told.function == self._asked:
            self._asked_for = isinstance(told, Called)
        elif isinstance(told, Called):
            self._began = (told.at_us, wiring.moving(), list(wiring._steps))
        elif self._began is not None:
            at_us, moved, steps = self._began
            axes = [f"axis {n}" for n, step in enumerate(wiring._steps) if step != steps[n]]
            self.collections.append(Collection(at_us, told.at_us - at_us, moved + axes, self._asked_for))
            self._began = None
            self.on_collection(self.collections[-1])


def watched(allocations: bool = False) -> tuple[int, ...]:
    """The functions whose calls ``Garbage`` wants to see."""
    functions = ("py_gc_collect", "gc_collect", "gc_alloc")
    return tuple(address(each) for each in functions[: 3 if allocations else 2])


def address(symbol: str) -> int:
    """Where something of the image lies."""
    symbols = _said("arm-none-eabi-nm", str(INTO / "firmware.elf")).splitlines()
    return next(int(line.split()[0], 16) for line in symbols if line.endswith(f" {symbol}"))


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
