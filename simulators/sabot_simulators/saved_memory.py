"""The memory chips of an emulated device in a file, so that it remembers over restarts of its program.

The chips' cells are the file itself, mapped into memory. What the device has written is in the file at once,
as in a real chip, so a program that is killed (-9) forgets nothing. After a power failure of the computer
the file may be older than what the device has told.

The file also has what the simulated people know: their decks, and the cards they saw in the last rounds.
Where cards lie is not in it: when the device starts again, the machine is empty and the people hold all
decks, as if somebody had emptied the machine while the power was off. The file holds the device's keys: only
its owner can read it. One program uses it at a time.

Layout: a header of HEADER_BYTES (MAGIC, then JSON padded with spaces: serial number, size of each chip), two
slots of SLOT_BYTES for what the people know (CRC-32, number, length, JSON; the newer whole one counts), and
the cells of each chip.
"""

import json
import mmap
import struct
import zlib
from pathlib import Path

from sabot_driver.private_files import make_folder, tighten, write_synced
from sabot_simulators.python_device import WiredPythonDevice
from sabot_simulators.simulated_people import PeoplesMemory

MAGIC = b"sabot memory 2\n"
HEADER_BYTES = 4096
SLOT_BYTES = 16384
SLOT_HEAD = struct.Struct("<III")  # CRC-32 of the rest of the slot, number, length


class BadMemoryFile(Exception):
    """A file that holds no saved memory of this device; the text says why."""


class MemoryFile:
    """One device's memory on disk."""

    def __init__(self, path: Path, device: WiredPythonDevice) -> None:
        self.path = path
        self._device = device
        self._people = 0  # number of the newest slot
        self.loaded = False
        """Whether the device was started with the memory of the file."""

    def open(self) -> None:
        """Make the file the device's memory. If it was there, the device starts with what it holds.

        BadMemoryFile if it cannot be read or is of another device; the file is left as it is then.
        """
        try:
            self.loaded = self.path.exists()
            if not self.loaded:
                make_folder(self.path.parent)
                write_synced(self.path, self._header() + bytes(2 * SLOT_BYTES) + self._cells())
            tighten(self.path)
            with self.path.open("r+b") as file:
                mapped = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as error:  # ValueError: the file is empty
            raise BadMemoryFile(f"{self.path} is no saved memory: {error}") from error
        self._check(mapped)
        self._attach(memoryview(mapped))

    def _header(self) -> bytes:
        sizes = {name: len(chip.cells) for name, chip in self._device.chips().items()}
        about = {"serial": self._device.serial.hex(), "chips": sizes}
        return (MAGIC + json.dumps(about).encode("ascii")).ljust(HEADER_BYTES)

    def _cells(self) -> bytes:
        return b"".join(bytes(chip.cells) for chip in self._device.chips().values())

    def _check(self, mapped: mmap.mmap) -> None:
        begins = mapped[: len(MAGIC)]
        if begins != MAGIC:
            raise BadMemoryFile(f"{self.path} is no saved memory: it begins with {begins!r}")
        try:
            about = json.loads(mapped[len(MAGIC) : HEADER_BYTES])
            serial, sizes = about["serial"], about["chips"]
        except (ValueError, KeyError, TypeError) as error:
            raise BadMemoryFile(f"{self.path} is no saved memory: {error!r}") from error
        if serial != self._device.serial.hex():
            raise BadMemoryFile(
                f"{self.path} is the memory of another device; name another file, or --serial"
            )
        if mapped[:HEADER_BYTES] != self._header():
            raise BadMemoryFile(f"{self.path} has chips of other sizes: {sizes}")
        if len(mapped) != HEADER_BYTES + 2 * SLOT_BYTES + len(self._cells()):
            raise BadMemoryFile(f"{self.path} is cut short: it has {len(mapped)} bytes")

    def _attach(self, mapped: memoryview) -> None:
        at = HEADER_BYTES + 2 * SLOT_BYTES
        for chip in self._device.chips().values():
            size = len(chip.cells)
            chip.cells = mapped[at : at + size]
            at += size
        people, known = self._device.people, self._newest(mapped)
        if self.loaded:
            self._device.reboot()
        if people is not None:
            if known is not None:
                people.remember(known)
            people.on_change = lambda: self._keep(mapped)

    def _newest(self, mapped: memoryview) -> PeoplesMemory | None:
        newest = None
        for at in (HEADER_BYTES, HEADER_BYTES + SLOT_BYTES):
            crc, number, length = SLOT_HEAD.unpack_from(mapped, at)
            rest = mapped[at + 4 : at + SLOT_HEAD.size + length]
            if number > self._people and length <= SLOT_BYTES - SLOT_HEAD.size and zlib.crc32(rest) == crc:
                self._people, newest = number, bytes(rest[SLOT_HEAD.size - 4 :])
        return None if newest is None else PeoplesMemory.from_json(newest)

    def _keep(self, mapped: memoryview) -> None:
        """Write what the people know into the older slot."""
        assert self._device.people is not None
        text = self._device.people.memory().to_json(SLOT_BYTES - SLOT_HEAD.size)
        self._people += 1
        at = HEADER_BYTES + self._people % 2 * SLOT_BYTES
        rest = struct.pack("<II", self._people, len(text)) + text
        mapped[at : at + 4 + len(rest)] = struct.pack("<I", zlib.crc32(rest)) + rest
