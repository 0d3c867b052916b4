"""The seed that is carried forward: 32 bytes in critical memory that the generator takes in at every start.

The noise alone gives the generator its strength. Should it fail in a way that the health tests do not see,
this seed, begun with 32 bytes of the host at provisioning, still makes every boot and every device different.
A seed is used once: both slots of its record hold the next one before anything made with it leaves the
generator. No entropy is credited for it.
"""

from hashlib import sha256

from sabot_protocol.errors import MemoryDamaged
from sabot_protocol.record_store import RecordStore

SIZE = 32
RECORD = ("seed", SIZE)
_LABEL = b"sabot carried seed 1"


class PersistentSeed:
    """The record in critical memory. Its methods raise MemoryFailed if the memory cannot be used."""

    def __init__(self, memory: RecordStore) -> None:
        self._memory = memory

    def load(self) -> bytes:
        """The seed that was carried here; empty if there is none, or it can no longer be read."""
        try:
            return self._memory.load(RECORD[0]) or b""
        except MemoryDamaged:
            return b""

    def replace(self, seed: "bytes | bytearray") -> None:
        """Carry another one: the one before is in neither slot of the record when this returns."""
        for _ in range(2):  # a save fills the slot that is not in use
            self._memory.save(RECORD[0], bytes(seed))

    def mix(self, entropy: bytes) -> None:
        """Add bytes from outside."""
        digest = sha256(_LABEL)
        digest.update(self.load())
        digest.update(entropy)
        self.replace(digest.digest())

    def boot(self) -> bytes:
        """The boot record as it is: memory id and number of the boot."""
        try:
            return self._memory.load("boot") or b""
        except MemoryDamaged:
            return b""
