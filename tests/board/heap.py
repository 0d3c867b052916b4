"""MicroPython's heap as the emulated chip's RAM has it: read from outside, measuring changes nothing."""

import shlex
import struct
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from sabot_image.build import BUILD
from sabot_simulators.rp2040.pico import Pico

INTO = BUILD / "rp2040"
RAM = 0x20000000
BLOCK = 16
QUESTION = """
#include <stddef.h>
#include "py/mpstate.h"
const unsigned offsets[] = {
    offsetof(mp_state_ctx_t, mem.area.gc_alloc_table_start),
    offsetof(mp_state_ctx_t, mem.area.gc_alloc_table_byte_len),
};
"""


class Heap:
    """Where the allocation table is, as the compiler that built the image says."""

    def __init__(self) -> None:
        flags = (INTO / "CMakeFiles" / "firmware.dir" / "flags.make").read_text()
        options = [
            option
            for line in flags.splitlines()
            if line.startswith(("C_DEFINES", "C_INCLUDES", "C_FLAGS"))
            for option in shlex.split(line.partition("=")[2])
        ]
        with TemporaryDirectory() as folder:
            source = Path(folder) / "question.c"
            source.write_text(QUESTION)
            told = _said("arm-none-eabi-gcc", *options, "-S", "-o", "-", str(source))
        words = [int(line.split()[1]) for line in told.splitlines() if line.strip().startswith(".word")]
        symbols = _said("arm-none-eabi-nm", str(INTO / "firmware.elf")).splitlines()
        state = next(int(line.split()[0], 16) for line in symbols if line.endswith(" mp_state_ctx"))
        self._table_at, self._length_at = (state - RAM + words[0], state - RAM + words[1])

    def used(self, pico: Pico) -> tuple[int, int]:
        """Bytes of blocks that are taken, garbage included, and of all blocks."""
        (table,) = struct.unpack("<I", pico.read_ram(self._table_at, 4))
        (length,) = struct.unpack("<I", pico.read_ram(self._length_at, 4))
        kinds = pico.read_ram(table - RAM, length)
        taken = sum(1 for byte in kinds for shift in (0, 2, 4, 6) if byte >> shift & 3)
        return taken * BLOCK, length * 4 * BLOCK


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
