"""The floor's messages as values: JSON with a version. What cannot be read is a `BadPayload`.

A reader ignores keys that it does not know, so that a newer table may say more. Another version is refused.
"""

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sabot_floor.errors import BadPayload
from sabot_table.rule_texts import FloorLevel

VERSION = 1
MOST_ROWS = 256
"""Rows in one message. One message of a chain is unacknowledged at a time."""
LARGEST = 256 * 1024
"""Bytes of one message."""
MOST_VALUE = 64 * 1024
"""Bytes of an entry in a bucket."""
MOST_NOTE = 8 * 1024
"""Bytes of a note, and of its answer."""

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0, le=2**53 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=128)]
Chain = Literal["device", "record"]
Level = Annotated[FloorLevel, Field(strict=False)]


class Payload(BaseModel):
    """A message; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, cache_strings="keys")
    most_bytes: ClassVar[int] = MOST_VALUE

    v: Literal[1] = 1

    def to_bytes(self) -> bytes:
        """The message as it is sent."""
        return self.model_dump_json().encode()

    @classmethod
    def read(cls, data: bytes) -> Self:
        """The message in some bytes; `BadPayload` says what is wrong."""
        if len(data) > cls.most_bytes:
            raise BadPayload(f"{len(data)} bytes, more than {cls.most_bytes}")
        try:
            version = json.loads(data).get("v")
        except (ValueError, AttributeError, RecursionError) as error:
            raise BadPayload(f"not a JSON object: {error}") from error
        if version != VERSION:
            raise BadPayload(f"version {version!r}; this program reads version {VERSION}")
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise BadPayload(f"{where}: {first['msg']}") from error


class FloorRow(BaseModel):
    """One row as it leaves a table. ``hash`` is SHA-256 of the hash of ``prev`` and the bytes of ``body``."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, cache_strings="keys")

    n: Annotated[int, Field(ge=1, le=2**53 - 1)]
    prev: Number
    hash: Hash
    body: Annotated[str, Field(min_length=1)]

    def follows(self, before: str) -> bool:
        """Whether the hash follows from the hash of the row before."""
        return self.hash == chained(before, self.body)


class Begins(BaseModel):
    """The place before a source's first row."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, cache_strings="keys")

    prev: Number
    hash: Hash


class RowMessage(Payload):
    """Rows of one source, in order, without a gap."""

    most_bytes: ClassVar[int] = LARGEST

    table: Name
    chain: Chain
    source: Name
    level: Level
    claim: Number
    sent_us: Number
    begins: Begins | None = None
    rows: Annotated[tuple[FloorRow, ...], Field(min_length=1, max_length=MOST_ROWS)]


class ChainHead(BaseModel):
    """How far a chain goes."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, cache_strings="keys")

    source: Name
    n: Number
    hash: Hash
    count: Number


class ChainBeat(ChainHead):
    """How far a chain goes at the table, and how far it is published."""

    published: Number
    waiting_s: Annotated[int, Field(ge=0)]


class Heartbeat(Payload):
    """A table lives."""

    table: Name
    claim: Number
    run: Name
    at_us: Number
    level: Level
    chains: dict[Chain, ChainBeat]
    state: Number


class Claim(Payload):
    """Which publisher has a table."""

    table: Name
    pc: str
    run: str
    number: Number
    at_us: Number


class Archived(Payload):
    """How far a table's rows are committed in the archive."""

    table: Name
    at_us: Number
    chains: dict[Chain, ChainHead]


class Ask(Payload):
    """The archive asks for rows again."""

    chain: Chain
    source: Name
    after: Number


class NoteSent(Payload):
    """A note for a table's screen. The table checks its words (`sabot_session.notes.check_note`)."""

    most_bytes: ClassVar[int] = MOST_NOTE

    note_id: Name
    sender: Name
    text: Annotated[str, Field(max_length=1000)]
    sent_us: Number


class NoteAnswer(Payload):
    """What became of a note at the table: taken (also if it came before), or why not."""

    most_bytes: ClassVar[int] = MOST_NOTE

    table: Name
    note_id: Name
    taken: bool
    reason: Annotated[str, Field(max_length=32)] = ""
    words: Annotated[str, Field(max_length=1000)] = ""


class TableAlarm(Payload):
    """An alarm of a table itself."""

    table: Name
    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,32}$")]
    words: Annotated[str, Field(max_length=1000)]
    details: dict[str, Any] = Field(default_factory=dict)


class Alarm(TableAlarm):
    """An entry of the alarms' bucket."""

    by: str
    since_us: Number
    taken_by: str | None = None
    taken_us: Number | None = None
    ended_us: Number | None = None


def chained(before: str, body: str) -> str:
    """The hash of a row behind the hash of the row before."""
    return hashlib.sha256(bytes.fromhex(before) + body.encode()).hexdigest()
