"""A device's keys: one for sessions, one for each role that a person may be raised to."""

from sabot_protocol.codec import enum_number
from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.memory import Memory
from sabot_protocol.session import KEY_SIZE

DEVICE = enum_number("KeySlot", "device")


class Keys:
    """Keys by slot, in critical memory. A new device has none, and there is no default."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._keys: dict[int, bytes] = {}
        self.damaged = False  # what keys there are cannot be told
        try:
            saved = memory.load("keys") or b""
        except (MemoryDamaged, MemoryFailed):
            saved = b""
            self.damaged = True
        if len(saved) % (KEY_SIZE + 1):
            saved = b""
            self.damaged = True
        for at in range(0, len(saved), KEY_SIZE + 1):
            self._keys[saved[at]] = saved[at + 1 : at + 1 + KEY_SIZE]

    def get(self, slot: int) -> bytes | None:
        """The key in a slot, or None."""
        return self._keys.get(slot)

    def set(self, slot: int, key: bytes) -> None:
        """Put a key in a slot, for good."""
        keys = dict(self._keys)
        keys[slot] = bytes(key)
        self._memory.save("keys", b"".join([bytes((each,)) + keys[each] for each in sorted(keys)]))
        self._keys = keys

    def clear(self, memory: Memory) -> None:
        """Forget every key, for good, in the memory that is kept from now on."""
        self._memory = memory
        memory.save("keys", b"")
        self._keys = {}
        self.damaged = False
