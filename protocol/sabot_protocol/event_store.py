"""The event store: numbered events, replayed from any number. A new one overwrites the oldest if it is full.

An event's name is (boot id, n), n = 1, 2, … in each boot. The events themselves are lost in a reboot.
Critical memory holds how many events each of the last eight boots emitted, so the device reports the loss as
a gap with its size. Events overwritten before the owner acknowledged them are a gap as well.
"""

import struct

from sabot_protocol.codec import enum_number
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.record_store import RecordStore

OVERFLOW = enum_number("GapReason", "overflow")
REBOOT = enum_number("GapReason", "reboot")

RESERVE = 24  # places kept for what a command, once begun, and the machine itself may still report

_BOOTS = 8

TYPE_CHECKING = False
if TYPE_CHECKING:
    Stored = tuple[int, int, bytes]  # message, clock quality, body as sent
    Gap = tuple[int, int, int, int, int, int]  # reason, size (0 unknown), from boot, n, to boot, n


class EventStore:
    """This boot's latest events, and how many events each earlier boot emitted."""

    def __init__(self, memory: RecordStore, records: "dict[str, bytes]", boot_id: int, capacity: int) -> None:
        self._memory = memory
        self._capacity = capacity
        self._kept: list[Stored] = []
        self.boot_id = boot_id
        self.last = 0
        self.acknowledged = 0
        self.lost = 0  # overwritten before the owner acknowledged them
        self.unsaved = False  # critical memory failed: a later gap's size may be short
        self._boots: list[tuple[int, int]] = []  # earlier boots: (boot id, events emitted)
        saved = records.get("events", b"")
        for at in range(0, len(saved), 8):
            self._boots.append(struct.unpack_from("<II", saved, at))
        self._boots = self._boots[-(_BOOTS - 1) :]
        try:
            self._save(0)
        except MemoryFailed:
            self.unsaved = True

    @property
    def first(self) -> int:
        """The oldest number still here; ``last + 1`` if there is none."""
        return self.last - len(self._kept) + 1

    def add(self, message: int, quality: int, body: bytes) -> int:
        """Keep an event; return its number."""
        try:
            self._save(self.last + 1)
        except MemoryFailed:
            self.unsaved = True
        if len(self._kept) >= self._capacity:
            if self.first > self.acknowledged:
                self.lost += 1
            self._kept.pop(0)
        self._kept.append((message, quality, body))
        self.last += 1
        return self.last

    def get(self, n: int) -> "Stored":
        """The event with number ``n`` of this boot, which must be here."""
        return self._kept[n - self.first]

    def acknowledge(self, boot_id: int, n: int) -> None:
        """The owner has everything up to and including this event on disk."""
        if boot_id == self.boot_id and self.acknowledged < n <= self.last:
            self.acknowledged = n

    def unacknowledged(self) -> int:
        """How many events the owner has not acknowledged yet."""
        return self.last - self.acknowledged

    def free(self) -> int:
        """How many more events can be stored before one is lost that the owner has not acknowledged."""
        return max(self._capacity - self.unacknowledged(), 0)

    def is_nearly_full(self) -> bool:
        """Whether only the reserve is left: the owner must acknowledge events before anything begins."""
        return self._capacity >= 2 * RESERVE and self.free() < RESERVE  # a smaller store has none

    def gap_after(self, boot_id: int, n: int) -> "Gap | None":
        """The gap of a reader that has every event up to (boot_id, n); None if nothing after it is lost.

        A reader without a position gives (0, 0): before the first boot.
        """
        if boot_id == self.boot_id:
            missing = self.first - 1 - n
            if missing <= 0:
                return None
            return OVERFLOW, missing, boot_id, n, boot_id, self.first
        size = self._made_since(boot_id, n)
        if size == 0:
            return None
        return REBOOT, size or 0, boot_id, n, self.boot_id, 1

    def _made_since(self, boot_id: int, n: int) -> int | None:
        """Events of earlier boots after (boot_id, n); None if that is no longer known."""
        oldest = self._boots[0][0] if self._boots else self.boot_id
        if oldest > max(boot_id, 1):
            return None
        size = 0
        for boot, made in self._boots:
            if boot == boot_id:
                size += max(made - n, 0)
            elif boot > boot_id:
                size += made
        return size

    def _save(self, made: int) -> None:
        rows = self._boots + [(self.boot_id, made)]
        self._memory.save("events", b"".join([struct.pack("<II", boot, made) for boot, made in rows]))
