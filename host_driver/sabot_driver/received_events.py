"""Events as the driver hands them to programs, with types."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sabot_driver.device_values import member_or_number
from sabot_driver.journal import JournalEntry
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message
from sabot_protocol.host.messages import ClockQuality, GapReason

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event of a device. The journal holds each one exactly once."""

    id: int
    """Its position in the journal. Store it with what you make of the event, to continue after it."""
    message: Message | None
    """The event's message; None if this version has no such event."""
    boot_id: int
    n: int
    """Its number in that boot, from 1."""
    ticks_ms: int
    """The device's own clock."""
    at: datetime | None
    """UTC by the device's clock; None while that is not set."""
    quality: ClockQuality | int
    """How good the device's time is; a number if this version has no such quality."""
    received: datetime
    """UTC when the driver wrote it."""
    raw: tuple[int, bytes]
    """The message's number and its bytes."""

    @property
    def name(self) -> str:
        """The name the schema gives it, or its number."""
        return f"event_0x{self.raw[0]:02x}" if self.message is None else self.message.NAME


@dataclass(frozen=True, slots=True)
class LostEvents:
    """A gap: events that the device no longer has."""

    id: int
    reason: GapReason | int
    """Why; a number if this version has no such reason."""
    size: int | None
    """How many; None if the device does not know."""
    after: tuple[int, int]
    """The last event before: (boot id, n)."""
    before: tuple[int, int]
    """The first event after."""
    received: datetime

    name = "lost_events"


def parse_entry(entry: JournalEntry) -> ReceivedEvent | LostEvents:
    """A row of the journal as a typed event or gap."""
    received = _EPOCH + timedelta(microseconds=entry.at_us)
    if entry.is_gap:
        return LostEvents(
            entry.id, member_or_number(GapReason, entry.message), entry.gap_size, entry.gap_from or (0, 0),
            (entry.boot_id, entry.n), received,
        )  # fmt: skip
    kind = messages.BY_ID.get(entry.message)
    try:
        message = None if kind is None else kind.unpack(entry.body)
    except FieldError:
        message = None
    at = None if entry.utc_ms is None else _EPOCH + timedelta(milliseconds=entry.utc_ms)
    quality = member_or_number(ClockQuality, entry.quality)
    return ReceivedEvent(
        entry.id, message, entry.boot_id, entry.n, entry.ticks_ms, at, quality, received,
        (entry.message, entry.body),
    )  # fmt: skip
