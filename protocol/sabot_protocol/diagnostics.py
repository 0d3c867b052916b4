"""What each end keeps for a fault report: counters, and the headers of the last hundred messages."""

import struct

from sabot_protocol.schema import COUNTERS

TRACE_LENGTH = 100
HEADER_SIZE = 16
_HEADER = "<IIIBBBB"
TYPE_CHECKING = False
SENT = 0x80  # or-ed to the kind of a packet this end sent


class Diagnostics:
    """Counters by name, and a ring of message headers in memory set aside once."""

    def __init__(self) -> None:
        self._ring = bytearray(TRACE_LENGTH * HEADER_SIZE)
        self._seen = 0
        for name in COUNTERS:
            setattr(self, name, 0)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...  # the counters

        def __setattr__(self, name: str, value: "int | bytearray") -> None: ...

    def count(self, name: str) -> None:
        """Add one to a counter."""
        setattr(self, name, getattr(self, name) + 1)

    def counters(self) -> tuple[int, ...]:
        """All counters, in the order of the schema."""
        return tuple([getattr(self, name) & 0xFFFFFFFF for name in COUNTERS])

    def add_header(
        self, now: int, counter: int, request_id: int, kind: int, seq: int, ack: int, message: int
    ) -> None:
        """Keep one message's header: its time, packet counter, number, kind, seq, ack and id."""
        at = self._seen % TRACE_LENGTH * HEADER_SIZE
        struct.pack_into(_HEADER, self._ring, at, now, counter, request_id, kind, seq, ack, message)
        self._seen += 1

    def header_count(self) -> int:
        """How many headers are kept."""
        return min(self._seen, TRACE_LENGTH)

    def headers(self, skip: int, most: int) -> bytes:
        """Up to ``most`` headers of 16 bytes, newest first, leaving out the newest ``skip``."""
        out = b""
        for back in range(skip + 1, min(skip + most, self.header_count()) + 1):
            at = (self._seen - back) % TRACE_LENGTH * HEADER_SIZE
            out += bytes(self._ring[at : at + HEADER_SIZE])
        return out


def read_header(headers: bytes, index: int) -> tuple[int, int, int, int, int, int, int]:
    """One header as (at_ms, counter, number, kind, seq, ack, message)."""
    return struct.unpack_from(_HEADER, headers, index * HEADER_SIZE)
