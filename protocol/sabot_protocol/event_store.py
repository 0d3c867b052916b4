"""The event store: numbered events, replayed from any number. A new one overwrites the oldest if it is full.

An event's name is (boot id, n), n = 1, 2, … in each boot. The events themselves are lost in a reboot.
Critical memory holds how many events each of the last eight boots emitted (the newest boot's in the record of
the event chain), so the device reports the loss as a gap with its size. Events overwritten before the owner
acknowledged them are a gap as well.
"""

import struct
from hashlib import sha256

from sabot_protocol.codec import enum_number
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.event_chain import EVENT_HEAD, EVENT_HEAD_SIZE, NO_HASH, EventChain
from sabot_protocol.record_store import RecordStore

OVERFLOW = enum_number("GapReason", "overflow")
REBOOT = enum_number("GapReason", "reboot")

RESERVE = 24  # places kept for what a command, once begun, and the machine itself may still report

_BOOTS = 8
_TO_REPORT = 3  # events that name a gap: a checkpoint, the gap, a checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    Stored = tuple[int, int, bytes]  # message, clock quality, body as sent
    from sabot_protocol.event_chain import Lost

    Gap = tuple[int, int, int, int, int, int]  # reason, size (0 unknown), from boot, n, to boot, n


class EventStore:
    """This boot's latest events, and how many events each earlier boot emitted."""

    def __init__(
        self, memory: RecordStore, records: "dict[str, bytes]", chain: EventChain, boot_id: int, capacity: int
    ) -> None:
        self.chain = chain
        self._capacity = capacity
        self._kept: list[bytes] = []  # as they are hashed: one object each, which spares a board 2 KB
        # Up to the newest event that was acknowledged or overwritten: its number, and the chain's hash. To go
        # on from here takes one hash an event; a hash for each event that is kept would take 2 KB of a board.
        self._done = 0
        self._done_hash = chain.hash
        self._overflow: Lost | None = None  # what was overwritten unacknowledged and is not reported yet
        self.boot_id = boot_id
        self.last = 0
        self.acknowledged = 0
        self.lost = 0  # overwritten before the owner acknowledged them
        self.unsaved = False  # critical memory failed: a later gap's size may be short
        self._boots: list[tuple[int, int]] = []  # earlier boots: (boot id, events emitted)
        saved = records.get("events", b"")
        for at in range(0, len(saved), 8):
            self._boots.append(struct.unpack_from("<II", saved, at))
        before, made = chain.last
        if 0 < before < boot_id and before not in [boot for boot, _ in self._boots]:
            self._boots.append((before, made))
        self._boots = self._boots[-(_BOOTS - 1) :]
        try:
            memory.save("events", b"".join([struct.pack("<II", boot, made) for boot, made in self._boots]))
        except MemoryFailed:
            self.unsaved = True

    def forget_boots(self, memory: RecordStore) -> None:
        """Earlier boots belong to a former memory id, whose hosts learn from the new id what they lost.

        MemoryFailed if that cannot be saved.
        """
        self._boots = [(0, 0)]  # so a host of the new id has missed nothing before the first boot
        memory.save("events", struct.pack("<II", 0, 0))

    @property
    def first(self) -> int:
        """The oldest number still here; ``last + 1`` if there is none."""
        return self.last - len(self._kept) + 1

    def add(self, message: int, quality: int, body: bytes, sure: bool = False) -> int:
        """Chain and keep an event; return its number.

        If it cannot be saved it is kept all the same, unless it must be ``sure``: then MemoryFailed.
        """
        chain, n = self.chain, self.last + 1
        before = chain.state() if sure else None
        event = struct.pack(EVENT_HEAD, message, quality, n) + body
        try:
            chain.extend(event, self.boot_id, n)
        except MemoryFailed:
            self.unsaved = True
            if before is not None:
                chain.abort(before)
                raise
        self.last = n
        if len(self._kept) >= self._capacity:
            overwritten = self._kept.pop(0)
            if n - self._capacity > self.acknowledged:
                self.lost += 1
                self._pass_over(overwritten)
                self._note_overflow(self._done, self._done_hash)
        self._kept.append(event)
        return n

    def get(self, n: int) -> "Stored":
        """The event with number ``n`` of this boot, which must be here."""
        event = self._kept[n - self.first]
        return event[0], event[1], event[EVENT_HEAD_SIZE:]

    def acknowledge(self, boot_id: int, n: int) -> None:
        """The owner has everything up to and including this event on disk."""
        if boot_id != self.boot_id or not self.acknowledged < n <= self.last:
            return
        self.acknowledged = n
        if n >= self.first:
            while self._done < n:
                self._pass_over(self._kept[self._done + 1 - self.first])
            self.chain.acknowledge(boot_id, n, self._index_of(n), self._done_hash)

    def _pass_over(self, event: bytes) -> None:
        """The event after ``_done`` is acknowledged or overwritten."""
        self._done += 1
        index = self._index_of(self._done)
        if index:
            before = self.chain.first_hash if index == 1 else self._done_hash
            self._done_hash = sha256(before + event).digest()
        else:
            self._done_hash = NO_HASH

    def _index_of(self, n: int) -> int:
        """The chain index of an event of this boot; 0 if it is in no chain or in the one before."""
        return max(self.chain.index - (self.last - n), 0)

    def _note_overflow(self, n: int, hash: bytes) -> None:
        """Event n is overwritten, and the owner has not acknowledged it."""
        lost = self.chain.lost_up_to(self.boot_id, n, self._index_of(n), hash)
        if lost is not None:
            begin = lost if self._overflow is None else self._overflow
            count = begin[4] + lost[5] - begin[5]
            self._overflow = begin[:2] + lost[2:4] + (count, lost[5], begin[6], hash)

    def take_overflow(self) -> "Lost | None":
        """The events that were overwritten, once there is room again to report them; then forget them."""
        lost = self._overflow
        if lost is None or self.is_nearly_full() or self.free() < _TO_REPORT:
            return None
        self._overflow = None
        return lost

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
