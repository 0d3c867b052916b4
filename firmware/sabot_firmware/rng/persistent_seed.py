"""The persistent seed: 32 bytes in critical memory that the generator mixes in at every start.

The noise alone gives the generator its strength. If the noise fails in a way that the health tests do not
see, this seed still makes every boot and every device different. It starts with 32 bytes of the host at
provisioning. A seed is used once: both slots of its record hold the next seed before any output made with it
leaves the generator. No entropy is credited for it.
"""

from hashlib import sha256

from sabot_protocol.errors import MemoryDamaged
from sabot_protocol.record_store import RecordStore

SIZE = 32
RECORD = ("seed", SIZE)
_LABEL = b"sabot carried seed 1"


class PersistentSeed:
    """The record in critical memory. All methods raise MemoryFailed if the memory cannot be used."""

    def __init__(self, memory: RecordStore) -> None:
        self._memory = memory

    def load(self) -> bytes:
        """The saved seed; empty if there is none or it is unreadable."""
        try:
            return self._memory.load(RECORD[0]) or b""
        except MemoryDamaged:
            return b""

    def replace(self, seed: "bytes | bytearray") -> None:
        """Save another seed; no slot of the record holds the old one when this returns."""
        self._memory.save(RECORD[0], bytes(seed))  # one of SECRET_RECORDS

    def mix(self, entropy: bytes) -> None:
        """Mix in bytes from outside."""
        digest = sha256(_LABEL)
        digest.update(self.load())
        digest.update(entropy)
        self.replace(digest.digest())

    def boot(self) -> bytes:
        """The raw boot record: memory id and boot number; empty if it is unreadable."""
        try:
            return self._memory.load("boot") or b""
        except MemoryDamaged:
            return b""
