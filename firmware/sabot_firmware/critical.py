"""Critical memory on a small FRAM: a power cut after any byte leaves each record old or new, nothing else.

Each record has two slots at fixed addresses. A slot is a state, a sequence number, the length, a CRC-32 and
the data. A save fills the slot that is not in use while its state says OPEN, reads it back, makes it CURRENT
with one byte, and at last marks the other SUPERSEDED with one byte. So after a cut

- an OPEN slot is a save that never returned, and counts as if it had not begun;
- two CURRENT slots are a save that lacked only its last byte: the newer one counts.

That last byte is what tells a torn save from a record that went bad later. A record whose current slot no
longer holds is *damaged*, although an older one is still there: a SUPERSEDED slot is never returned. A caller
gets an older record only when the save of the newer one never returned.

Of a secret record (``SECRET_RECORDS``) the other slot's data is overwritten with zeros at the end of each
save. A cut before that leaves the older secret in the chip; the first use of the record at the next power-up
overwrites it.

Records are placed in the order given, and ``LATER_RECORDS`` behind all others. New ones may be added at the
end; changing the order or a size makes the records behind it damaged.
"""

import struct
from binascii import crc32

from sabot_protocol.errors import MemoryDamaged, MemoryFailed
from sabot_protocol.record_store import LATER_RECORDS, RECORDS, SECRET_RECORDS, RecordStore

FRAM_SIZE = 32768

# States of a slot: four bits apart from each other and from blank memory, so that no flipped bit, nor
# any three of them, makes one into another.
OPEN = 0x0F
CURRENT = 0xF0
SUPERSEDED = 0x3C
_CURRENT = bytes((CURRENT,))
_SUPERSEDED = bytes((SUPERSEDED,))

_HEAD = "<BHHI"  # state, sequence, length, CRC-32 of (name, greatest size, sequence, length, data)
HEAD_SIZE = 9
_BLANKS = (bytes(HEAD_SIZE), b"\xff" * HEAD_SIZE)
_CHUNK = 64  # read at a time where the data is only checked
_ZEROS = bytes(_CHUNK)

# What _look and _find say besides.
_BLANK = -1  # never written
_BAD = -2  # written once, and now unreadable
_NEVER = -1
_DAMAGED = -2


class LayoutRefused(Exception):
    """The records do not fit the chip, or one is invalid; the text says which and by how much."""


class Fram:
    """A byte-addressed memory that needs no erasing, implemented by a board's driver.

    The bytes of one write arrive in rising order, each complete. A failed call raises OSError.
    """

    size = FRAM_SIZE

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        raise NotImplementedError

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes from an address on; they are persistent once this returns."""
        raise NotImplementedError


class _Record:
    """The address of a record, and what is known of its slots."""

    def __init__(self, name: str, most: int, address: int) -> None:
        self.most = most
        self.address = address
        self.secret = name in SECRET_RECORDS
        self.seed = crc32(name.encode() + struct.pack("<H", most))  # no slot passes for another record's
        self.current = _NEVER  # the slot that holds it; below 0: not known
        self.sequence = 0
        self.target = 0  # the slot to write next

    def at(self, slot: int) -> int:
        """A slot's address."""
        return self.address + slot * (HEAD_SIZE + self.most)


class CriticalMemory(RecordStore):
    """The records of the device end and ``others`` (name, greatest size), on one chip."""

    def __init__(
        self,
        chip: Fram,
        others: "tuple[tuple[str, int], ...]" = (),
        records: "tuple[tuple[str, int], ...]" = RECORDS,
    ) -> None:
        self._chip = chip
        self._head = bytearray(HEAD_SIZE)
        self._checked = memoryview(self._head)[1:5]  # sequence and length
        self._layout: dict[str, _Record] = {}
        self.used = 0  # bytes of the chip that belong to a record
        later = LATER_RECORDS if records is RECORDS else ()
        for name, most in records + others + later:
            if name in self._layout:
                raise LayoutRefused("two records are called %s" % name)
            if not 0 <= most <= 0xFFFF:
                raise LayoutRefused("a record has up to 65535 bytes; %s has %d" % (name, most))
            self._layout[name] = _Record(name, most, self.used)
            self.used += 2 * (HEAD_SIZE + most)
        if self.used > chip.size:
            raise LayoutRefused("the records need %d bytes; the chip has %d" % (self.used, chip.size))

    def load(self, name: str) -> bytes | None:
        """The record saved last, or the one being saved when the power was lost; None if none was ever saved.

        MemoryDamaged if a record existed and is no longer valid: nothing is known of it, and the next save
        repairs it. MemoryFailed if the chip does not answer or does not take a byte: nothing is known at all.
        """
        record = self._layout[name]
        try:
            for _ in range(2):  # one wrong reading damages nothing
                slot = record.current if record.current >= 0 else self._find(record)
                data = self._read(record, slot) if slot >= 0 else None
                if data is not None or slot == _NEVER:
                    return data
                record.current = _NEVER
        except OSError as error:
            raise MemoryFailed("%s cannot be read: %s" % (name, error)) from None
        raise MemoryDamaged(name)

    def save(self, name: str, data: bytes) -> None:
        """Save ``data`` under ``name`` and read it back.

        After MemoryFailed the record is the old or the new one; ``load`` says which.
        """
        record = self._layout[name]
        if len(data) > record.most:
            raise MemoryFailed("%s has %d bytes; there is room for %d" % (name, len(data), record.most))
        try:
            if record.current < 0:
                self._find(record)
            record.current = _NEVER  # not known, should this fail
            slot = record.target
            sequence = record.sequence + 1 & 0xFFFF
            self._fill(record.at(slot), record.seed, sequence, data)
            self._mark(record.at(slot), _CURRENT)
            self._mark(record.at(1 - slot), _SUPERSEDED)
            if record.secret:
                self._wipe(record, 1 - slot)
        except OSError as error:
            raise MemoryFailed("%s cannot be written: %s" % (name, error)) from None
        record.current = slot
        record.sequence = sequence
        record.target = 1 - slot

    # -- reading --------------------------------------------------------------------------------

    def _find(self, record: _Record) -> int:
        """The slot of a record, _NEVER or _DAMAGED; completes a save that lacked its last byte."""
        first, sequence = self._look(record, 0)
        second, other_sequence = self._look(record, 1)
        record.current = _NEVER
        record.sequence = 0
        if first != CURRENT and second != CURRENT:
            # Write an unfinished slot again rather than open the other one too: a record that was
            # damaged must not look as if there had never been one.
            record.target = 1 if second in (OPEN, _BLANK) and first not in (OPEN, _BLANK) else 0
            never = (first, second) in ((_BLANK, _BLANK), (OPEN, _BLANK))
            return _NEVER if never else _DAMAGED
        both = first == second
        slot = 1 if first != CURRENT or (both and _newer(other_sequence, sequence)) else 0
        if both:
            self._mark(record.at(1 - slot), _SUPERSEDED)
        if record.secret:
            self._wipe(record, 1 - slot, True)  # an older secret, if a cut came before the end of a save
        record.current = slot
        record.sequence = other_sequence if slot else sequence
        record.target = 1 - slot
        return slot

    def _look(self, record: _Record, slot: int) -> tuple[int, int]:
        """A slot's state (or _BLANK or _BAD) and sequence; bad only if two readings are bad."""
        at = record.at(slot)
        for _ in range(2):
            head = self._chip.read(at, HEAD_SIZE)
            if head in _BLANKS:
                return _BLANK, 0
            state, sequence, length, crc = struct.unpack(_HEAD, head)
            if state == OPEN:
                return OPEN, 0
            known = state in (CURRENT, SUPERSEDED) and length <= record.most
            if known and self._crc_there(at + HEAD_SIZE, length, crc32(head[1:5], record.seed)) == crc:
                return state, sequence
        return _BAD, 0

    def _read(self, record: _Record, slot: int) -> bytes | None:
        """The data of a slot known as current; None if it is no longer valid."""
        at = record.at(slot)
        head = self._chip.read(at, HEAD_SIZE)
        state, _, length, crc = struct.unpack(_HEAD, head)
        if state != CURRENT or length > record.most:
            return None
        data = self._chip.read(at + HEAD_SIZE, length) if length else b""
        return data if crc32(data, crc32(head[1:5], record.seed)) == crc else None

    def _crc_there(self, at: int, length: int, crc: int) -> int:
        """A CRC-32, continued over bytes in the chip."""
        while length > 0:
            crc = crc32(self._chip.read(at, min(length, _CHUNK)), crc)
            at += _CHUNK
            length -= _CHUNK
        return crc

    # -- writing --------------------------------------------------------------------------------

    def _fill(self, at: int, seed: int, sequence: int, data: bytes) -> None:
        """Open a slot and write it, without making it current; MemoryFailed if it cannot be read back."""
        head = self._head
        struct.pack_into("<BHH", head, 0, OPEN, sequence, len(data))
        seed = crc32(self._checked, seed)
        crc = crc32(data, seed)
        struct.pack_into("<I", head, 5, crc)
        self._chip.write(at, head)  # its first byte opens the slot
        if data:
            self._chip.write(at + HEAD_SIZE, data)
        same = self._chip.read(at, HEAD_SIZE) == head
        if not same or self._crc_there(at + HEAD_SIZE, len(data), seed) != crc:
            raise MemoryFailed("what was written at %d is not there" % at)

    def _wipe(self, record: _Record, slot: int, look: bool = False) -> None:
        """Overwrite the data of a slot that is not in use; MemoryFailed if it cannot be read back.

        ``look`` first, and write only what is not overwritten yet.
        """
        at, left = record.at(slot) + HEAD_SIZE, record.most
        while left > 0:
            zeros = _ZEROS if left >= _CHUNK else _ZEROS[:left]
            done = look and self._chip.read(at, len(zeros)) == zeros
            if not done:
                self._chip.write(at, zeros)
            if not done and self._chip.read(at, len(zeros)) != zeros:
                raise MemoryFailed("the secret at %d cannot be overwritten" % at)
            at += _CHUNK
            left -= _CHUNK

    def _mark(self, at: int, mark: bytes) -> None:
        """Change a slot's state; MemoryFailed if it cannot be read back."""
        self._chip.write(at, mark)
        if self._chip.read(at, 1) != mark:
            raise MemoryFailed("the mark written at %d is not there" % at)


def _newer(sequence: int, than: int) -> bool:
    """Whether a sequence number comes after another; they wrap."""
    return 0 < (sequence - than & 0xFFFF) < 0x8000
