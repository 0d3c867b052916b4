"""A disk in memory that keeps apart what the system has been given and what is really on it.

A write is on the disk when the file has been synchronised. When the computer loses its power, each sector
that was written since is kept or lost by chance, so a write can be torn. The disk can be slow, full, failing,
or locked by another program. ``sqlite_vfs`` joins it to SQLite.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

SECTOR = 512
FAST_US = (100, 3_000)


class DiskFull(Exception):
    """No space is left."""


class DiskFailed(Exception):
    """The disk does not answer, or the computer has no power."""


@dataclass
class SimulatedFile:
    """One file: as the system has it, and as the disk has it."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes, and truncations (None) to a size, since the file was synchronised."""


class SimulatedDisk:
    """The files of one computer."""

    def __init__(self, random: Random, now_us: Callable[[], int]) -> None:
        self._random = random
        self._now_us = now_us
        self.files: dict[str, SimulatedFile] = {}
        self.powered = True
        self.full = False
        self.failing = False
        self.slow_us: tuple[int, int] | None = None
        self.locked_until_us = 0
        """Until then another program holds the write lock."""
        self.waited_us = 0
        """How long SQLite has waited in its busy handler since this was set to 0."""
        self.fails_after: int | None = None
        """The computer loses its power after so many more writes and synchronisations."""
        self.generation = 0
        """Rises when the program is gone: handles of an earlier one do nothing."""
        self.on_lost_power: Callable[[], None] = lambda: None

    def delay_us(self) -> int:
        """How long the next batch waits for the disk."""
        return self._random.randint(*(self.slow_us or FAST_US))

    # -- files ----------------------------------------------------------------------------------

    def check(self) -> None:
        """DiskFailed if nothing can be read or written."""
        if not self.powered:
            raise DiskFailed

    def write(self, file: SimulatedFile, at: int, data: bytes) -> None:
        """Give the system bytes; they are on the disk after ``sync``."""
        self._operation()
        if self.full and at + len(data) > len(file.data):
            raise DiskFull
        _apply(file.data, at, data)
        file.unsynced.append((at, data))

    def truncate(self, file: SimulatedFile, size: int) -> None:
        """Make a file shorter."""
        self._operation()
        del file.data[size:]
        file.unsynced.append((size, None))

    def sync(self, file: SimulatedFile) -> None:
        """Have everything of a file on the disk."""
        self._operation()
        for at, data in file.unsynced:
            _apply(file.durable, at, data)
        file.unsynced.clear()

    def locked(self) -> bool:
        """Whether another program holds the write lock at this moment."""
        return self._now_us() + self.waited_us < self.locked_until_us

    def _operation(self) -> None:
        self.check()
        if self.failing:
            raise DiskFailed
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.lose_power()
                self.on_lost_power()
                raise DiskFailed

    # -- power ----------------------------------------------------------------------------------

    def lose_power(self) -> None:
        """The computer loses its power: what was not synchronised may be lost, sector by sector."""
        if not self.powered:
            return
        self.powered = False
        self.fails_after = None
        kept = self._random.choice((0.0, 0.5, 0.9, 1.0))
        for name in sorted(self.files):
            file = self.files[name]
            for at, data in file.unsynced:
                self._keep_some(file.durable, at, data, kept)
            file.unsynced.clear()
            file.data[:] = file.durable

    def _keep_some(self, durable: bytearray, at: int, data: bytes | None, kept: float) -> None:
        if data is None:
            if self._random.random() < kept:
                _apply(durable, at, None)
            return
        begin = 0
        while begin < len(data):
            end = min(begin + SECTOR - (at + begin) % SECTOR, len(data))
            if self._random.random() < kept:
                _apply(durable, at + begin, data[begin:end])
            begin = end

    def come_back(self) -> None:
        """The power is back."""
        self.powered = True
        self.fails_after = None

    def let_go(self, close: Callable[[], None]) -> None:
        """Close what a program that is gone had open: nothing is written any more."""
        before, self.powered = self.powered, False
        close()
        self.powered = before
        self.generation += 1


def _apply(cells: bytearray, at: int, data: bytes | None) -> None:
    """Write bytes, or make it shorter where there are none."""
    if data is None:
        del cells[at:]
        return
    if len(cells) < at:
        cells += bytes(at - len(cells))
    cells[at : at + len(data)] = data
