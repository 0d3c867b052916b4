"""The wire as ``construct`` objects, built from the schema: for captures, inspection and golden vectors.

They share nothing with ``codec`` and ``frame`` but the schema and a few constants, so each is a check of
the other. What the schema does not allow is refused in both directions. Enums are parsed to their names
(``.intvalue`` is the number) and built from names or numbers; flag sets are parsed to a container of booleans
and built from one, or from a number.

``MESSAGES`` and ``DETAILS`` hold the fields of each message and error; ``CLEAR``, ``SEALED`` and ``PAYLOAD``
what a frame carries; ``FRAME`` a frame as it is on the wire. The functions below them are the way in for
tools: plain, typed values, and one kind of error.
"""

import functools
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import construct
from construct import (
    Byte,
    Bytes,
    Checksum,
    ConstructError,
    FocusedSeq,
    GreedyBytes,
    Int8sl,
    Int8ul,
    Int16sl,
    Int16ul,
    Int32sl,
    Int32ul,
    NullTerminated,
    Peek,
    Prefixed,
    PrefixedArray,
    StreamError,
    StringEncoded,
    Struct,
    Subconstruct,
    Switch,
    Terminated,
    Tunnel,
    Validator,
    this,
)

from sabot_protocol import schema, wire_constants
from sabot_protocol.errors import ProtocolError
from sabot_protocol.wire_constants import EVENT_HEADER, RESOLVE

_NUMBERS = {"u8": Int8ul, "u16": Int16ul, "u32": Int32ul, "i8": Int8sl, "i16": Int16sl, "i32": Int32sl}
_CODES = {"B": Int8ul, "H": Int16ul, "I": Int32ul}
_ENUMS = {name: dict(members) for name, members in schema.ENUMS}
_FLAGS = {name: dict(members) for name, members in schema.FLAGS}


class NotReadable(ProtocolError):
    """A payload that is not what the schema says; the text tells where."""


# -- fields -------------------------------------------------------------------------------------


class Within(Validator):
    """A whole number from ``low`` to ``high``."""

    def __init__(self, subcon: Any, low: int, high: int) -> None:
        super().__init__(subcon)
        self.low = low
        self.high = high

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        return _whole(obj) and self.low <= obj <= self.high


class OneOfThese(Validator):
    """A whole number that an enum has."""

    def __init__(self, subcon: Any, numbers: frozenset[int]) -> None:
        super().__init__(subcon)
        self.numbers = numbers

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        return _whole(obj) and obj in self.numbers


class OnlyBits(Validator):
    """A whole number with no bits but those of a flag set."""

    def __init__(self, subcon: Any, mask: int) -> None:
        super().__init__(subcon)
        self.mask = mask

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        return _whole(obj) and obj >= 0 and obj & ~self.mask == 0


class Sized(Validator):
    """Something of a type that has from ``low`` to ``high`` bytes or items."""

    def __init__(self, subcon: Any, types: tuple[type, ...], low: int, high: int) -> None:
        super().__init__(subcon)
        self.types = types
        self.low = low
        self.high = high

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        size = len(obj) if isinstance(obj, self.types) else -1  # type: ignore[arg-type]
        return self.low <= size <= self.high


class OnlyOf(Validator):
    """Something of these types, before construct tries to make sense of it."""

    def __init__(self, subcon: Any, *types: type) -> None:
        super().__init__(subcon)
        self.types = types

    def _validate(self, obj: Any, context: Any, path: str) -> bool:
        return isinstance(obj, self.types)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _field(row: tuple[Any, ...]) -> Any:
    kind = row[1]
    if kind in _NUMBERS:
        return Within(_NUMBERS[kind], row[2], row[3])
    if kind == "enum":
        members = _ENUMS[row[2]]
        return OnlyOf(construct.Enum(OneOfThese(Int8ul, frozenset(members.values())), **members), int, str)
    if kind == "flags":
        bits = _FLAGS[row[2]]
        allowed = OnlyBits(Int16ul, functools.reduce(int.__or__, bits.values()))
        return OnlyOf(construct.FlagsEnum(allowed, **bits), int, str, dict)
    if kind == "bytes":
        return Sized(Bytes(row[2]), (bytes, bytearray), row[2], row[2])
    if kind == "blob":
        return Sized(Prefixed(Byte, GreedyBytes), (bytes, bytearray), row[2], row[3])
    if kind == "text":
        encoded = Sized(Prefixed(Byte, GreedyBytes), (bytes,), row[2], row[3])
        return OnlyOf(StringEncoded(encoded, "utf8"), str)
    if kind == "array":
        items = PrefixedArray(Byte, Within(_NUMBERS[row[2]], row[5], row[6]))
        return Sized(items, (list, tuple), row[3], row[4])
    raise NotReadable(f"the schema has a field of type {kind}, which has no construct yet")


def _fields(rows: tuple[Any, ...], frozen: bool) -> Any:
    fields = [row[0] / _field(row) for row in rows]
    return Struct(*fields) if frozen else Struct(*fields, Terminated)


MESSAGES: dict[str, Any] = {
    name: _fields(rows, id < schema.FROZEN_BELOW) for id, name, _, _, _, rows in schema.MESSAGES
}
DETAILS: dict[str, Any] = {name: _fields(rows, True) for _, name, rows in schema.ERRORS}

_MESSAGE_NAMES = {row[0]: row[1] for row in schema.MESSAGES}
_ERROR_NAMES = {row[0]: row[1] for row in schema.ERRORS}


@functools.cache
def compiled(name: str) -> Any:
    """A message's construct, compiled when it is first asked for.

    Measured against ``MESSAGES[name]``: parsing takes 0.4 to 0.6 of the time, building 0.5 to 0.8; a long
    array 0.8 and 1.0, because the check of each item is not compiled. Compiling costs as much as parsing a
    hundred messages, so it pays for a capture, not for a look at one packet.
    """
    return MESSAGES[name].compile()


# -- packets ------------------------------------------------------------------------------------


class AllBut(Subconstruct):
    """Everything but the last ``tail`` bytes of the stream."""

    def __init__(self, tail: int, subcon: Any) -> None:
        super().__init__(subcon)
        self.tail = tail

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        rest = stream.read()
        if len(rest) < self.tail:
            raise StreamError(f"{self.tail - len(rest)} bytes too few", path=path)
        stream.seek(-self.tail, io.SEEK_CUR)
        return self.subcon._parsereport(io.BytesIO(rest[: len(rest) - self.tail]), context, path)


class Cobs(Tunnel):
    """Bytes without zeros: each group of others behind its length plus one, as the paper describes it."""

    def _encode(self, data: bytes, context: Any, path: str) -> bytes:
        encoded = bytearray()
        for group in data.split(b"\0"):
            if len(group) > 253:
                raise StreamError("a group that would need a second block", path=path)
            encoded.append(len(group) + 1)
            encoded += group
        return bytes(encoded)

    def _decode(self, data: bytes, context: Any, path: str) -> bytes:
        groups = []
        while data:
            length = data[0]
            if not 0 < length <= len(data):
                raise StreamError("a length that points past the end of the block", path=path)
            groups.append(data[1:length])
            data = data[length:]
        return b"\0".join(groups)


def _layout(names: str, format: str) -> list[Any]:
    """Named fields for a ``struct`` format."""
    return [name / _CODES[code] for name, code in zip(names.split(), format[1:], strict=True)]


_BY_ID = {id: MESSAGES[name] for id, name in _MESSAGE_NAMES.items()}
_BY_STATUS: dict[tuple[int, int | None], Any] = {(0, id): each for id, each in _BY_ID.items()}
_BY_STATUS |= {(code, None): DETAILS[name] for code, name in _ERROR_NAMES.items()}

CLEAR: Any = Struct(
    "direction" / Int8ul,
    "message" / Int8ul,
    "fields" / Switch(this.message, _BY_ID, default=GreedyBytes),
)
"""A datagram outside a session. Fields of a message this schema does not have are bytes."""

# What a packet holds behind its header, by kind; ``_`` is the packet.
_BODIES = {
    wire_constants.BARE: Struct(Terminated),
    wire_constants.CLOSE: Struct(Terminated),
    # A question what became of a command need not say again what the command was.
    wire_constants.REQUEST: Struct(
        "fields" / Switch(
            lambda body: None if body._.flags & RESOLVE else body._.message, _BY_ID, default=GreedyBytes
        ),
    ),
    # flags is the status: 0, or an error's code.
    wire_constants.ANSWER: Struct(
        "fields" / Switch(
            lambda body: (body._.flags, None if body._.flags else body._.message),
            _BY_STATUS,
            default=GreedyBytes,
        ),
    ),
    # flags is the quality of the clock.
    wire_constants.EVENT: Struct(
        *_layout("boot_id ticks_ms utc_s utc_ms", EVENT_HEADER),
        "fields" / Switch(this._.message, _BY_ID, default=GreedyBytes),
    ),
    wire_constants.EVENT_ACK: Struct("boot_id" / Int32ul),
    # flags is the reason, request_id how many are missing.
    wire_constants.GAP: Struct(*_layout("from_boot from_n to_boot to_n", "<IIII")),
}

_HEADER = "direction session counter seq ack sack kind message flags request_id"

SEALED: Any = Struct(
    *_layout(_HEADER, wire_constants.HEADER),
    "body"
    / AllBut(wire_constants.MAC_SIZE, Switch(this.kind, _BODIES, default=Struct("fields" / GreedyBytes))),
    "mac" / Bytes(wire_constants.MAC_SIZE),
)
"""A packet of a session. The MAC is shown, not checked: that takes the key."""

PAYLOAD: Any = FocusedSeq(
    "packet",
    "direction" / Peek(Int8ul),
    "packet" / Switch(
        lambda payload: payload.direction if payload._parsing else payload.packet["direction"],
        {
            wire_constants.CLEAR_TO_DEVICE: CLEAR,
            wire_constants.CLEAR_TO_HOST: CLEAR,
            wire_constants.SEALED_TO_DEVICE: SEALED,
            wire_constants.SEALED_TO_HOST: SEALED,
        },
        default=construct.Error,
    ),
)
"""What one frame carries."""

FRAME: Any = NullTerminated(
    Cobs(Struct(
        "payload" / AllBut(4, GreedyBytes),
        "crc" / Checksum(Int32ul, zlib.crc32, this.payload),
    )),
)
"""A frame as it is on the wire, with its delimiter; the payload as bytes."""


# -- for tools ----------------------------------------------------------------------------------

DIRECTIONS = {
    wire_constants.CLEAR_TO_DEVICE: "clear to device",
    wire_constants.CLEAR_TO_HOST: "clear to host",
    wire_constants.SEALED_TO_DEVICE: "sealed to device",
    wire_constants.SEALED_TO_HOST: "sealed to host",
}
KINDS = {
    wire_constants.BARE: "bare",
    wire_constants.REQUEST: "request",
    wire_constants.ANSWER: "answer",
    wire_constants.EVENT: "event",
    wire_constants.EVENT_ACK: "event ack",
    wire_constants.GAP: "gap",
    wire_constants.CLOSE: "close",
}

Value = int | bytes | str | tuple[int, ...]
_ROWS = {row[1]: row[5] for row in schema.MESSAGES}
_DETAIL_ROWS = {row[1]: row[2] for row in schema.ERRORS}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A payload as a tree of plain values."""

    direction: str
    """Which way it goes, and whether it is sealed."""
    kind: str
    """``clear``, or the kind of the sealed packet."""
    header: dict[str, int]
    """The numbers before the fields: the packet's, then those of an event, gap or acknowledgement."""
    name: str | None
    """The message; of a refusal the error; None where there is neither, or this schema has not got it."""
    refused: bool
    """Whether it is an answer that refuses."""
    fields: dict[str, Value | tuple[str, ...]]
    """The fields by name; an enum's member and a flag set's flags by their names."""
    rest: bytes
    """Fields this schema cannot read."""
    mac: bytes
    """The packet's MAC, not checked; empty if it is not sealed."""


def parse_payload(payload: bytes) -> Parsed:
    """A frame's payload as a tree; NotReadable if it is not what the schema says."""
    if payload[:1] not in [bytes((direction,)) for direction in DIRECTIONS]:
        raise NotReadable(f"a payload that begins with {payload[:1]!r} is neither clear nor sealed")
    try:
        tree = PAYLOAD.parse(payload)
    except ConstructError as error:
        raise NotReadable(_said(error)) from error
    sealed = "mac" in tree
    body = tree.body if sealed else tree
    header = {key: value for key, value in tree.items() if key in _HEADER.split()}
    if sealed:
        header |= {key: value for key, value in body.items() if isinstance(value, int)}
    refused = sealed and tree.kind == wire_constants.ANSWER and tree.flags != 0
    names, rows = (_ERROR_NAMES, _DETAIL_ROWS) if refused else (_MESSAGE_NAMES, _ROWS)
    name = names.get(tree.flags if refused else tree.message) if "fields" in body else None
    unread = isinstance(body.get("fields", b""), bytes)
    return Parsed(
        direction=DIRECTIONS[tree.direction],
        kind=KINDS.get(tree.kind, f"kind {tree.kind}") if sealed else "clear",
        header=header,
        name=name,
        refused=refused,
        fields={} if unread or name is None else _named(rows[name], body.fields),
        rest=body.get("fields", b"") if unread else b"",
        mac=tree.mac if sealed else b"",
    )


def build_fields(name: str, values: Sequence[Value]) -> bytes:
    """The fields of a message as bytes; NotReadable if one is not allowed."""
    return _build(MESSAGES[name], _ROWS[name], values)


def parse_fields(name: str, data: bytes) -> tuple[Value, ...]:
    """The values of a message's fields, enums and flags as numbers; NotReadable if they are not its."""
    return _parse(MESSAGES[name], _ROWS[name], data)


def build_field(row: tuple[Any, ...], value: Value) -> bytes:
    """One field of the schema alone as bytes; NotReadable if the value is not allowed."""
    return _build(Struct(row[0] / _field(row)), (row,), (value,))


def build_details(name: str, values: Sequence[Value]) -> bytes:
    """The details of an error as bytes; NotReadable if one is not allowed."""
    return _build(DETAILS[name], _DETAIL_ROWS[name], values)


def parse_details(name: str, data: bytes) -> tuple[Value, ...]:
    """The values of an error's details; NotReadable if they are not its."""
    return _parse(DETAILS[name], _DETAIL_ROWS[name], data)


def build_frame(payload: bytes) -> bytes:
    """The frame for a payload, with its delimiter. Has no opinion on how long a payload may be."""
    built: bytes = FRAME.build({"payload": payload})
    return built


def parse_frame(frame: bytes) -> bytes:
    """The payload in a frame; NotReadable if the frame is damaged."""
    try:
        payload: bytes = FRAME.parse(frame).payload
    except ConstructError as error:
        raise NotReadable(_said(error)) from error
    return payload


def _build(fields: Any, rows: tuple[Any, ...], values: Sequence[Value]) -> bytes:
    if len(values) != len(rows):
        raise NotReadable(f"{len(values)} values for {len(rows)} fields")
    try:
        built: bytes = fields.build({row[0]: value for row, value in zip(rows, values, strict=True)})
    except ConstructError as error:
        raise NotReadable(_said(error)) from error
    return built


def _parse(fields: Any, rows: tuple[Any, ...], data: bytes) -> tuple[Value, ...]:
    try:
        tree = fields.parse(data)
    except ConstructError as error:
        raise NotReadable(_said(error)) from error
    return tuple([_number(row, tree[row[0]]) for row in rows])


def _number(row: tuple[Any, ...], value: Any) -> Value:
    """A parsed value as the codec has it."""
    if row[1] == "enum":
        return int(value)
    if row[1] == "flags":
        return sum(bit for flag, bit in _FLAGS[row[2]].items() if value[flag])
    return tuple(value) if row[1] == "array" else value


def _named(rows: Iterable[tuple[Any, ...]], tree: Any) -> dict[str, Value | tuple[str, ...]]:
    """Parsed fields as a person reads them."""
    named: dict[str, Value | tuple[str, ...]] = {}
    for row in rows:
        value = tree[row[0]]
        if row[1] == "enum":
            named[row[0]] = str(value)
        elif row[1] == "flags":
            named[row[0]] = tuple(flag for flag in _FLAGS[row[2]] if value[flag])
        else:
            named[row[0]] = _number(row, value)
    return named


def _said(error: ConstructError) -> str:
    """A construct error on one line."""
    return " ".join(str(error).split())
