"""A device's keys: one for owners' sessions, one for observers', twelve for people."""

import struct

from sabot_protocol.codec import enum_number
from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import FIRST_PERSON, KEY_SIZE, SLOTS

OPEN_S = 600  # how long after provisioning its owner may fill empty slots

_HEAD = "<BBI"  # slot, role, person
_ROW = 6 + KEY_SIZE
_ROLES = (enum_number("Role", "table"), enum_number("Role", "observer"))  # of the first two slots
_PEOPLE = tuple([enum_number("Role", name) for name in ("dealer", "floor", "service", "lab")])


class KeyStore:
    """Keys by slot, in critical memory. A new device has none, and there is no default.

    ``open`` is true from provisioning until its owner is done. Meanwhile the owner may fill empty slots
    without an elevation. A restart ends this.
    """

    def __init__(self, memory: RecordStore) -> None:
        self._memory = memory
        self._rows: dict[int, tuple[int, int, bytes]] = {}  # role, person, key
        self.open = False
        self.damaged = False  # what keys there are cannot be told
        try:
            saved = memory.load("keys") or b""
        except (MemoryDamaged, MemoryFailed):
            saved = b""
            self.damaged = True
        if len(saved) % _ROW:
            saved = b""
            self.damaged = True
        for at in range(0, len(saved), _ROW):
            slot, role, person = struct.unpack_from(_HEAD, saved, at)
            if slot < SLOTS:  # the rest is filling
                self._rows[slot] = (role, person, saved[at + 6 : at + _ROW])

    def get(self, slot: int) -> bytes | None:
        """The key in a slot, or None."""
        row = self._rows.get(slot)
        return None if row is None else row[2]

    def holder(self, slot: int) -> tuple[int, int]:
        """The role and the person of a slot that is set."""
        role, person, _ = self._rows[slot]
        return role, person

    def slots(self) -> list[int]:
        """The slots that are set, in rising order."""
        return sorted(self._rows)

    def set(self, slot: int, key: bytes, role: int | None = None, person: int = 0) -> None:
        """Put a key in a slot, for good."""
        rows = dict(self._rows)
        rows[slot] = (_ROLES[slot] if role is None else role, person, bytes(key))
        self._save(rows)

    def remove(self, slot: int) -> None:
        """Empty a slot, for good."""
        rows = dict(self._rows)
        del rows[slot]
        self._save(rows)

    def clear(self, memory: RecordStore) -> None:
        """Forget every key, for good, in the memory that is kept from now on."""
        self._memory = memory
        self.open = False
        self._save({})
        self.damaged = False

    def _save(self, rows: "dict[int, tuple[int, int, bytes]]") -> None:
        """Write every row. The memory overwrites the rows before (``SECRET_RECORDS``).

        The record always has its full length, so that no slot keeps the end of a longer one.
        """
        packed = b""
        for slot in sorted(rows):
            role, person, key = rows[slot]
            packed += struct.pack(_HEAD, slot, role, person) + key
        packed += b"\xff" * (SLOTS * _ROW - len(packed))
        self._memory.save("keys", packed)
        self._rows = rows


def fits(slot: int, role: int, person: int) -> bool:
    """Whether a slot may give this role to this person."""
    if slot < FIRST_PERSON:
        return role == _ROLES[slot] and person == 0
    return role in _PEOPLE
