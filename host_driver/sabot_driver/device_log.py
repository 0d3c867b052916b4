"""The device's own log in flash, row by row, as typed values.

The log keeps at least the last 1,000 events over power cuts, those too that no host has ever received. A row
is the event as it was reported: message id, clock quality, boot id, ticks, UTC, and the message's fields.
Evidence is kept once more in a ring of its own, which other events do not touch.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sabot_driver.client import Client
from sabot_driver.client_state import TIMEOUT_S
from sabot_driver.device_values import member_or_number
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import ClockQuality, Evidence, EvidenceIs, Log, LogIs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEAD = "<BBIIIH"  # message id, clock quality, boot id, ticks, UTC seconds and milliseconds
_HEAD_SIZE = struct.calcsize(_HEAD)
_GAP = b"\xffgap"  # then how many rows were dropped, u32


@dataclass(frozen=True, slots=True)
class LogRow:
    """One event in the device's log."""

    n: int
    """Its number in the log."""
    message: Message | None
    """The event; None if this version has no such event, or the row was too long for one answer."""
    message_id: int
    boot_id: int
    ticks_ms: int
    """The device's own clock."""
    at: datetime | None
    """UTC by the device's clock; None while that was not set."""
    quality: ClockQuality | int

    @property
    def name(self) -> str:
        """The name the schema gives the event, or its number."""
        known = messages.BY_ID.get(self.message_id)
        return f"event_0x{self.message_id:02x}" if known is None else known.NAME


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """A row that says how many rows the log had no room for."""

    n: int
    count: int

    name = "dropped_rows"


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """A row whose bytes are no row of a log."""

    n: int
    row: bytes

    name = "damaged_row"


AnyRow = LogRow | DroppedRows | DamagedRow


def parse_log_row(answer: LogIs | EvidenceIs) -> AnyRow:
    """One answer to ``Log`` or ``Evidence`` that holds a row."""
    row = answer.row
    if row.startswith(_GAP) and len(row) == len(_GAP) + 4:
        return DroppedRows(answer.n, struct.unpack_from("<I", row, len(_GAP))[0])
    if len(row) < _HEAD_SIZE:
        return DamagedRow(answer.n, row)
    number, quality, boot_id, ticks_ms, seconds, ms = struct.unpack_from(_HEAD, row)
    kind = messages.BY_ID.get(number)
    message = None
    if kind is not None:
        try:
            message = kind.unpack(row[_HEAD_SIZE:])
        except FieldError:
            message = None
    at = _EPOCH + timedelta(seconds=seconds, milliseconds=ms) if quality else None
    return LogRow(answer.n, message, number, boot_id, ticks_ms, at, member_or_number(ClockQuality, quality))


def read_log(
    client: Client, from_n: int = 0, timeout: float = TIMEOUT_S, evidence: bool = False
) -> Iterator[AnyRow]:
    """The rows of the device's log from a number on, oldest first, up to the row that is newest now.

    ``timeout`` is for each answer. ``evidence`` reads the ring of evidence, which has numbers of its own.
    """
    last: int | None = None
    while True:
        answer: LogIs | EvidenceIs
        answer = client.ask(Evidence(from_n), timeout) if evidence else client.ask(Log(from_n), timeout)
        last = answer.newest if last is None else last
        if not answer.n or answer.n > last:
            return
        yield parse_log_row(answer)
        from_n = answer.n + 1
