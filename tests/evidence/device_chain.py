"""A device's event chain, made by docs/evidence.md alone, and a journal that received it."""

import hashlib
import hmac
import json
import struct
from pathlib import Path

from sabot_driver.journal import Journal
from sabot_protocol.notifications import EventGap, EventReceived

SERIAL, MEMORY, K_0 = b"SB000123", b"mem7", bytes(range(7, 39))
LOCATED, ROUND_ENDED, BOOTED = 0x85, 0x95, 0x80


class ChainedDevice:
    """Makes events as a device does; those in ``lost`` never reach the host."""

    def __init__(self) -> None:
        self.sent: list[EventReceived | EventGap] = []
        self.boot, self.n = 1, 0
        self.hashes: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.begin(0, bytes(32))

    def begin(self, last_index: int, last_hash: bytes) -> None:
        """Begin a chain; the arguments are index and hash of the last event of the chain before."""
        start = b"sabot event chain 1" + SERIAL + MEMORY + struct.pack("<I", self.boot)
        self.index, self.hash, self.key = 0, hashlib.sha256(start).digest(), K_0
        self.first = self.hash
        self.event(0xB0, struct.pack("<B4sI32s", 1, MEMORY, last_index, last_hash))
        self.checkpoint()

    def event(self, message: int, body: bytes = b"", *, tagged: bool = False, arrives: bool = True) -> None:
        """One event; a tagged one gets its tag here."""
        self.n += 1
        head = struct.pack("<BBIIIIH", message, 1, self.n, self.boot, self.index * 10, 1_700_000_000, 5)
        self.key = hashlib.sha256(self.key).digest()
        if tagged:
            made = struct.pack("<I", self.index + 1) + self.hash + head + body
            body += hmac.digest(self.key, made, "sha256")[:16]
        self.index += 1
        self.hash = hashlib.sha256(self.hash + head + body).digest()
        self.hashes[self.boot, self.n] = (self.index, self.hash)
        if arrives:
            ticks = (self.index - 1) * 10
            self.sent.append(EventReceived(self.boot, self.n, ticks, 1_700_000_000, 5, 1, message, body))

    def checkpoint(self, arrives: bool = True) -> None:
        """A checkpoint of the event before it."""
        told = struct.pack("<III", self.boot, self.n, self.index) + self.hash
        self.event(0xAB, told, tagged=True, arrives=arrives)

    def located(self, count: int, arrives: bool = True) -> None:
        """Some chatter."""
        for _ in range(count):
            self.event(LOCATED, b"\x01", arrives=arrives)

    def name_gap(self, reason: int, start: tuple[int, int], end: tuple[int, int]) -> None:
        """``events_lost`` for a range."""
        index, after = self.hashes[end]
        before_index, before = self.hashes[start]
        body = struct.pack("<BIIIIII", reason, *start, *end, index - before_index, index) + before + after
        self.event(0xAF, body)

    def reboot(self) -> None:
        """Power is cut and comes back; ``booted`` is the next event."""
        self.boot, self.n = self.boot + 1, 0
        self.event(BOOTED, b"\x01")

    def wire_gap(self, reason: int, after: tuple[int, int], before: tuple[int, int]) -> None:
        """What the wire says of a gap; it is not chained."""
        self.sent.append(EventGap(reason, None, after, before))

    def journal(self, path: Path) -> Path:
        """A journal with everything that arrived."""
        with Journal(path, SERIAL) as journal:
            for at_us, each in enumerate(self.sent, 1):
                journal.append([(MEMORY, each)], at_us)
        return path

    def key_file(self, path: Path) -> Path:
        """The regulator's file."""
        about = {"serial": SERIAL.hex(), "begun": {"boot_id": 1, "n": 1}, "hash": self.first.hex()}
        path.write_text(json.dumps({"format": "sabot chain key 1", **about, "key": K_0.hex()}))
        return path
