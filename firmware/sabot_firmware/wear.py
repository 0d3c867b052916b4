"""Wear counters, saved in critical memory between shuffles and rounds."""

import struct

from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.record_store import RecordStore
from sabot_protocol.schema import WEAR

_FORMAT = "<%dI" % len(WEAR)


class WearCounters:
    """Counters by name, in the order of the schema."""

    def __init__(self, memory: RecordStore) -> None:
        self._memory = memory
        self.values = [0] * len(WEAR)
        try:
            record = memory.load("wear")
        except (MemoryDamaged, MemoryFailed):
            record = None  # only statistics: they begin anew
        if record and len(record) == struct.calcsize(_FORMAT):
            self.values = list(struct.unpack(_FORMAT, record))

    def add(self, name: str, more: int = 1) -> None:
        """Increase a counter. It ends at its highest value: one that began anew would tell of a new part."""
        at = WEAR.index(name)
        self.values[at] = min(self.values[at] + more, 0xFFFFFFFF)

    def put(self, name: str, value: int) -> None:
        """Set a value that is not a counter."""
        self.values[WEAR.index(name)] = value & 0xFFFFFFFF

    def save(self) -> None:
        """Save the counters; MemoryFailed if that fails."""
        self._memory.save("wear", struct.pack(_FORMAT, *self.values))
