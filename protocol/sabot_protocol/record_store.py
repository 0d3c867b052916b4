"""Critical memory, as the wire asks for it.

The device end keeps what must survive a power cut in an object with these two calls. Each record is
written whole: a cut at any moment leaves the old one or the new one.
"""

from sabot_protocol.errors import MemoryDamaged
from sabot_protocol.schema import MAX_REVOKED

# Every record of the device end: (name, greatest size in bytes).
COMMAND_SLOTS = 16
COMMAND_SIZE = 8 + 4 + 1 + 1 + 1 + 64 + 4  # host id, number, state, status, message, answer, order
RECORDS = (
    ("boot", 8),
    ("keys", 14 * (1 + 1 + 4 + 32)),  # slot, role, person, key
    ("events", 8 * 8),
    ("hosts", 9 * 12),
    ("proofs", 8),  # wrong proofs: in all, and those that no event has told
) + tuple([("command.%d" % slot, COMMAND_SIZE) for slot in range(COMMAND_SLOTS)])
# Placed behind the records of the firmware, so that those keep their places.
LATER_RECORDS = (
    ("chain", 6 * 4 + 3 * 32),  # event_chain
    ("checkpoint", 84),  # the newest, as its event is hashed
    ("revocations", 36 + 16 * MAX_REVOKED),  # the house's key, the list's number, ids
)
# Of these no slot may hold an older version once a save has returned.
SECRET_RECORDS = ("keys", "seed", "chain")


class RecordStore:
    """What a board's critical memory must offer; this one forgets everything at power-off."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}

    def load(self, name: str) -> bytes | None:
        """The record called ``name``, None if it was never saved; MemoryDamaged if it is unreadable."""
        return self._records.get(name)

    def save(self, name: str, data: bytes) -> None:
        """Keep ``data`` under ``name``. It is safe when this returns; MemoryFailed if it cannot be."""
        self._records[name] = bytes(data)


def load_all(memory: RecordStore, names: "tuple[str, ...]") -> "dict[str, bytes] | None":
    """Several records at once, leaving out those never saved; None if any is damaged."""
    found = {}
    for name in names:
        try:
            record = memory.load(name)
        except MemoryDamaged:
            return None
        if record:
            found[name] = record
    return found
