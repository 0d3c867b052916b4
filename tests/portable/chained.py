"""Follows a device's chain of events by docs/evidence.md alone, with nothing of the chain's own code."""

import struct
from hashlib import sha256

CHECKPOINT, LOST, BEGUN = 0xAB, 0xAF, 0xB0
HEAD = 20  # message id, clock quality, n, boot id, ticks, UTC seconds and milliseconds


class BrokenChain(Exception):
    """What the events say cannot be one chain; the text says where."""


def hmac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256."""
    padded = key + bytes(64 - len(key))
    inner = sha256(bytes([each ^ 0x36 for each in padded]) + data).digest()
    return sha256(bytes([each ^ 0x5C for each in padded]) + inner).digest()


def key_of(first_key: bytes, index: int) -> bytes:
    """The key of one chain index."""
    key = first_key
    for _ in range(index):
        key = sha256(key).digest()
    return key


def name_of(event: bytes) -> "tuple[int, int]":
    """An event's boot id and n."""
    n, boot_id = struct.unpack_from("<II", event, 2)
    return boot_id, n


def events_of(device) -> "list[bytes]":  # type: ignore[no-untyped-def]
    """Everything that a device's store still holds, as it is hashed."""
    store = device.events
    found = []
    for n in range(store.first, store.last + 1):
        message, quality, body = store.get(n)
        found.append(struct.pack("<BBI", message, quality, n) + body)
    return found


class Follower:
    """Takes every event that was ever seen of one chain, in order; BrokenChain where they do not fit."""

    def __init__(self, serial: bytes, first_key: "bytes | None" = None) -> None:
        self.serial = serial
        self.first_key = first_key
        self.hash: bytes | None = None  # up to the last event; None where a gap made it unknown
        self.index = 0
        self.seen: dict[int, bytes] = {}  # by chain index
        self.checkpoints: list[int] = []  # indexes that they proved
        self.gaps: list[tuple[int, ...]] = []  # what each events_lost says, without its hashes

    def boot(self, events: "list[bytes]") -> None:
        """All events seen of one boot, from its first one on."""
        events = list(events)
        names = [each[0] for each in events]
        if BEGUN in names:
            at = names.index(BEGUN)
            memory_id, boot_id = events[at][HEAD + 1 : HEAD + 5], events[at][6:10]
            self.hash = sha256(b"sabot event chain 1" + self.serial + memory_id + boot_id).digest()
            self.index = 0
            events = events[at:]
        elif CHECKPOINT in names:
            first = events[names.index(CHECKPOINT)]
            covered, index = struct.unpack_from("<II", first, HEAD + 4)
            begin = index - (covered - name_of(events[0])[1])  # chain index of the first event here
            if begin != self.index + 1:
                self._name_gap(events, begin)
        self.boot_goes_on(events)

    def boot_goes_on(self, events: "list[bytes]") -> None:
        """More events of the same boot, without a hole."""
        for event in events:
            self._take(event)

    def _name_gap(self, events: "list[bytes]", begin: int) -> None:
        for event in events:
            if event[0] == LOST:
                numbers = struct.unpack_from("<BIIIIII", event, HEAD)
                before, after = event[HEAD + 25 : HEAD + 57], event[HEAD + 57 : HEAD + 89]
                if numbers[6] != begin - 1 or numbers[6] - numbers[5] > self.index:
                    raise BrokenChain("the gap %r does not lead from %d to %d" % (numbers, self.index, begin))
                if numbers[6] - numbers[5] == self.index and before != self.hash and self.index:
                    raise BrokenChain("the hash before the gap after %d is another" % self.index)
                self.gaps.append(numbers)
                self.hash, self.index = after, begin - 1
                return
        raise BrokenChain("a hole after %d that no event names; the next is %d" % (self.index, begin))

    def _take(self, event: bytes) -> None:
        if event[0] == CHECKPOINT:
            boot_id, n, index = struct.unpack_from("<III", event, HEAD)
            hash, tag = event[HEAD + 12 : HEAD + 44], event[HEAD + 44 :]
            if (boot_id, n + 1) != name_of(event) or index != self.index or hash != self.hash:
                raise BrokenChain("a checkpoint at %r does not fit" % (name_of(event),))
            if self.first_key is not None:
                text = struct.pack("<I", index + 1) + hash + event[:-16]
                if hmac(key_of(self.first_key, index + 1), text)[:16] != tag:
                    raise BrokenChain("a tag at %r is wrong" % (name_of(event),))
            self.checkpoints.append(index)
        assert self.hash is not None
        self.index += 1
        self.hash = sha256(self.hash + event).digest()
        if self.seen.get(self.index, event) != event:
            raise BrokenChain("two events have chain index %d" % self.index)
        self.seen[self.index] = event
