"""The chain of a device's events: each event moves a hash and a key forward (docs/evidence.md).

``extend`` saves index, hash and the next key before its caller shows the event to anybody. So a power cut
leaves a chain in which the event was never seen, or one in which its index is used up. A key makes one tag at
most.

While critical memory cannot be written, events go on and ``saved`` is False: then no tag may be made, because
the next boot would use the same keys again.
"""

import struct
from hashlib import sha256

from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.mac import hmac_sha256
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import KEY_SIZE

EVENT_HEAD = "<BBI"  # message id, clock quality, n; then the event's body as sent
EVENT_HEAD_SIZE = 6
TAG_SIZE = 16
CHECKPOINT_EVERY = 16
NO_HASH = bytes(32)
RECORD = "chain"

_LABEL = b"sabot event chain 1"
_NUMBERS = "<IIIIII"  # index, boot id, n of the last event; the same of the newest acknowledged one
_HASH_AT = 24
_ACKNOWLEDGED_AT = 56
_KEY_AT = 88
_SIZE = 120
_NO_KEY = bytes(KEY_SIZE)

TYPE_CHECKING = False
if TYPE_CHECKING:
    # from boot, n; to boot, n; count; index; hash before, hash after
    Lost = tuple[int, int, int, int, int, int, bytes, bytes]
    State = tuple[int, bytes, bytes, tuple[int, int], bytes, int, bytes]


def first_hash(serial: bytes, memory_id: bytes, boot_id: int) -> bytes:
    """The hash before a chain's first event."""
    return sha256(_LABEL + serial + memory_id + struct.pack("<I", boot_id)).digest()


class EventChain:
    """Index, hash and key of one device's chain, in critical memory."""

    def __init__(self, memory: RecordStore) -> None:
        """Read the record. One that is unreadable leaves no chain, and ``damaged`` set."""
        self._memory = memory
        self.damaged = False
        self.saved = True
        self.index = 0  # of the last event; 0 while it is in no chain
        self.hash = NO_HASH  # up to the last event
        self.first_hash = NO_HASH  # before the first event of a chain that began in this boot
        self._key = _NO_KEY  # for the next event
        self.last = (0, 0)  # boot id and n of the last event
        self.acknowledged = (0, 0)
        self._acknowledged_index = 0
        self._acknowledged_hash = NO_HASH
        record = b""
        try:
            record = memory.load(RECORD) or b""
        except MemoryDamaged:
            self.damaged = True
        except MemoryFailed:
            self.saved = False
        if len(record) == _SIZE:
            numbers = struct.unpack_from(_NUMBERS, record)
            self.index, self.last, self.acknowledged = numbers[0], numbers[1:3], numbers[4:6]
            self._acknowledged_index = numbers[3]
            self.hash = record[_HASH_AT:_ACKNOWLEDGED_AT]
            self._acknowledged_hash = record[_ACKNOWLEDGED_AT:_KEY_AT]
            self._key = record[_KEY_AT:]

    def begun(self) -> bool:
        """Whether events are chained."""
        return self._key != _NO_KEY

    def begin(self, key: bytes, hash: bytes) -> None:
        """Let the next event be the first of a new chain with this first key and first hash.

        Nothing is saved before that event. ``abort`` goes back to the chain before.
        """
        self.index = 0
        self.hash = self.first_hash = hash
        self._key = sha256(key).digest()
        self._acknowledged_index = 0
        self._acknowledged_hash = NO_HASH

    def state(self) -> "State":
        """What ``begin`` and ``extend`` change, for ``abort``."""
        return (
            self.index, self.hash, self._key, self.last, self.first_hash,
            self._acknowledged_index, self._acknowledged_hash,
        )  # fmt: skip

    def abort(self, state: "State") -> None:
        """Go back to a state whose next event was never shown to anybody."""
        self.index, self.hash, self._key, self.last, self.first_hash = state[:5]
        self._acknowledged_index, self._acknowledged_hash = state[5:]

    def tag(self, event: bytes) -> bytes:
        """The tag of the next event, given without its tag. ``extend`` must succeed before it is shown."""
        return hmac_sha256(self._key, struct.pack("<I", self.index + 1) + self.hash + event)[:TAG_SIZE]

    def extend(self, event: bytes, boot_id: int, n: int) -> None:
        """Move on over an event, and save.

        MemoryFailed if that fails: then the event is in the chain all the same, and ``saved`` is False.
        """
        if self._key != _NO_KEY:
            digest = sha256(self.hash)
            digest.update(event)
            self.hash = digest.digest()
            self._key = sha256(self._key).digest()
            self.index += 1
        self.last = (boot_id, n)
        self.saved = False
        self._memory.save(RECORD, bytes(self._pack()))
        self.saved = True

    def acknowledge(self, boot_id: int, n: int, index: int, hash: bytes) -> None:
        """The owner has this event; saved with the next one. ``index`` is 0 for one that is in no chain."""
        self.acknowledged = (boot_id, n)
        self._acknowledged_index = index
        self._acknowledged_hash = hash

    def lost_up_to(self, boot_id: int, n: int, index: int, hash: bytes) -> "Lost | None":
        """What may be lost after the acknowledged event, up to this one; None if nothing of the chain is."""
        count = index - self._acknowledged_index
        if count <= 0:
            return None
        return self.acknowledged + (boot_id, n, count, index, self._acknowledged_hash, hash)

    def lost_in_reboot(self) -> "Lost | None":
        """What may be lost of the boots before: called before the first event of this boot."""
        return self.lost_up_to(self.last[0], self.last[1], self.index, self.hash)

    def _pack(self) -> bytearray:
        record = bytearray(_SIZE)
        struct.pack_into(
            _NUMBERS, record, 0, self.index, self.last[0], self.last[1],
            self._acknowledged_index, self.acknowledged[0], self.acknowledged[1],
        )  # fmt: skip
        record[_HASH_AT:_ACKNOWLEDGED_AT] = self.hash
        record[_ACKNOWLEDGED_AT:_KEY_AT] = self._acknowledged_hash
        record[_KEY_AT:] = self._key
        return record
