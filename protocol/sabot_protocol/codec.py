"""Messages to bytes and back, straight from the schema, with ``struct``.

Values are plain ints, bytes and strings in the order of the schema's fields. What the schema
does not allow is refused in both directions: MicroPython's ``struct`` would truncate silently.
"""

import struct

from sabot_protocol import schema
from sabot_protocol.errors import FieldError, UnknownMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Value = Any  # what a field holds: int, bytes, str or a tuple of ints, as its type says
    Values = tuple[Value, ...]
    Row = tuple[Any, ...]  # a row of the schema

# Messages of a device's first minutes, and of a session's. They are prepared anew each time: a board has
# little memory, and keeps the others once they were used.
RARE = (
    "provision", "provisioned", "reset_statement", "reset_is", "set_key", "remove_key", "key_slots",
    "key_slots_are", "chain_key", "chain_key_is", "house_key", "certificate", "revocations",
    "revocations_are", "component", "component_is", "key_changed", "key_removed", "chain_begun",
    "chain_key_given", "house_changed", "revocations_taken", "booted", "owner_evicted", "evict_owner",
    "attach", "attached", "set_game", "game", "game_is", "game_changed",
    "register_deck", "deck_registered", "owner_changed", "host_started", "clock_changed", "self_tested",
    "certificate_used",
)  # fmt: skip
_INTEGERS = {"u8": "B", "u16": "H", "u32": "I", "i8": "b", "i16": "h", "i32": "i"}
_NO_NUMBER = "not a whole number"
_NOT_UTF8 = "not UTF-8"
_BYTES = (bytes, bytearray)
_LISTS = (tuple, list)
_SIZES = {"B": 1, "H": 2, "I": 4, "b": 1, "h": 2, "i": 4}


class MessageCodec:
    """One message of the schema, ready to pack and unpack."""

    def __init__(self, codec: "Codec", row: "Row") -> None:
        self.id: int = row[0]
        self.name: str = row[1]
        self.kind: str = row[2]
        self.answer: str = row[3]
        self.roles = codec.role_mask(row[4])
        self.fields = row[5]
        self.frozen = self.id < schema.FROZEN_BELOW or row[2] == "error"
        self.minor = 0
        self._checks = [codec.check_of(field[1:]) for field in row[5]]
        self._steps = _plan(self._checks, row[5])
        # Most messages are one run of fields of fixed size, or empty.
        self._format = _format(self._checks) if all(check.code for check in self._checks) else None

    def pack(self, values: "Sequence[Value]") -> bytes:
        """The message's fields as bytes; FieldError names the first value not allowed."""
        if len(values) != len(self.fields):
            raise FieldError(
                self.name, None, 255, "%d values for %d fields" % (len(values), len(self.fields))
            )
        checks = self._checks
        for index in range(len(checks)):
            why = checks[index].refuse(values[index])
            if why:
                raise FieldError(self.name, self.fields[index][0], index, why)
        if self._format is not None:
            return struct.pack(self._format, *values)
        out = bytearray()
        for step in self._steps:
            step.pack(self, values, out)
        return bytes(out)

    def unpack(self, data: bytes | memoryview) -> "Values":
        """The values in ``data``; FieldError if it is not exactly this message's fields."""
        values: Values = ()
        at = 0
        index = 0
        for step in self._steps:
            end = step.end(self, data, at)
            part = step.unpack(self, data, at, end)
            for value in part:
                why = self._checks[index].refuse(value)
                if why:
                    raise FieldError(self.name, self.fields[index][0], index, why)
                index += 1
            values = values + part if values else part
            at = end
        if at != len(data) and not self.frozen:
            raise FieldError(self.name, None, 255, "%d bytes too many" % (len(data) - at))
        return values


class _Check:
    """What a type of field allows; ``code`` is its ``struct`` code, empty if a length byte goes before it.

    All fields of one type share one check: a board prepares many messages and has little memory.
    """

    def __init__(self, code: str, low: int, high: int) -> None:
        self.code = code
        self.low = low
        self.high = high

    def refuse(self, value: "Value") -> str | None:
        """Why ``value`` is not allowed here, or None if it is."""
        raise NotImplementedError

    def refuse_size(self, size: int) -> str | None:
        """Why a value must not have this size."""
        if size < self.low or size > self.high:
            return "length %d is outside %d..%d" % (size, self.low, self.high)
        return None


class _Number(_Check):
    def refuse(self, value: "Value") -> str | None:
        if not isinstance(value, int) or value is True or value is False:
            return _NO_NUMBER
        if value < self.low or value > self.high:
            return "%d is outside %d..%d" % (value, self.low, self.high)
        return None


class _Enum(_Check):
    def __init__(self, enum: str, choices: tuple[int, ...]) -> None:
        super().__init__("B", 0, 255)
        self.enum = enum
        self.choices = choices

    def refuse(self, value: "Value") -> str | None:
        if not isinstance(value, int) or value is True or value is False:
            return _NO_NUMBER
        return None if value in self.choices else "%d is no %s" % (value, self.enum)


class _Flags(_Check):
    def refuse(self, value: "Value") -> str | None:
        if not isinstance(value, int) or value is True or value is False:
            return _NO_NUMBER
        return "unknown flag in 0x%x" % value if value < 0 or value & ~self.high else None


class _Array(_Check):
    def __init__(self, item: _Number, low: int, high: int) -> None:
        super().__init__("", low, high)
        self.item = item

    def refuse(self, value: "Value") -> str | None:
        if not isinstance(value, _LISTS):
            return "not a list of numbers"
        for item in value:
            why = self.item.refuse(item)
            if why:
                return why
        return self.refuse_size(len(value))


class _Text(_Check):
    def refuse(self, value: "Value") -> str | None:
        if not isinstance(value, str):
            return "not text"
        size = len(value)
        if size >= self.low and 4 * size <= self.high:
            return None  # it fits, however its letters are written
        data = utf8_of(value)
        return _NOT_UTF8 if data is None else self.refuse_size(len(data))


class _Bytes(_Check):
    def refuse(self, value: "Value") -> str | None:
        if not isinstance(value, _BYTES):
            return "not bytes"
        return self.refuse_size(len(value))


def _check(codec: "Codec", kind: "Row") -> _Check:
    """What a field of a type allows: the row of the field without its name."""
    type, limits = kind[0], kind[1:]
    if type in _INTEGERS:
        return _Number(_INTEGERS[type], limits[0], limits[1])
    if type == "enum":
        return _Enum(limits[0], codec.enum_values(limits[0]))
    if type == "flags":
        return _Flags("H", 0, codec.flag_mask(limits[0]))
    if type == "bytes":
        return _Bytes("%ds" % limits[0], limits[0], limits[0])
    if type == "array":
        return _Array(_Number(_INTEGERS[limits[0]], limits[3], limits[4]), limits[1], limits[2])
    if type == "text":
        return _Text("", limits[0], limits[1])
    return _Bytes("", limits[0], limits[1])


class _Fixed:
    """A run of fields of fixed size: one ``struct`` call."""

    def __init__(self, checks: "list[_Check]", index: int) -> None:
        self.format = _format(checks)
        self.size = struct.calcsize(self.format)
        self.index = index
        self.count = len(checks)

    def pack(self, message: MessageCodec, values: "Sequence[Value]", out: bytearray) -> None:
        out.extend(struct.pack(self.format, *values[self.index : self.index + self.count]))

    def end(self, message: MessageCodec, data: bytes | memoryview, at: int) -> int:
        end = at + self.size
        if end > len(data):
            raise FieldError(message.name, None, 255, "too short by %d bytes" % (end - len(data)))
        return end

    def unpack(self, message: MessageCodec, data: bytes | memoryview, at: int, end: int) -> "Values":
        return struct.unpack_from(self.format, data, at)


class _Variable:
    """One field with a length byte in front of it."""

    def __init__(self, name: str, check: _Check, index: int) -> None:
        self.name = name
        self.index = index
        self.is_text = isinstance(check, _Text)
        self.item_code = check.item.code if isinstance(check, _Array) else ""
        self.item_size = _SIZES[self.item_code] if self.item_code else 1

    def pack(self, message: MessageCodec, values: "Sequence[Value]", out: bytearray) -> None:
        value = values[self.index]
        if self.item_code:
            out.extend(struct.pack("<B%d%s" % (len(value), self.item_code), len(value), *value))
            return
        data = utf8_of(value) if self.is_text else value
        if data is None:
            raise FieldError(message.name, self.name, self.index, _NOT_UTF8)
        out.append(len(data))
        out.extend(data)

    def end(self, message: MessageCodec, data: bytes | memoryview, at: int) -> int:
        if at >= len(data):
            raise FieldError(message.name, self.name, self.index, "its length byte is missing")
        end = at + 1 + data[at] * self.item_size
        if end > len(data):
            raise FieldError(
                message.name, self.name, self.index, "too short by %d bytes" % (end - len(data))
            )
        return end

    def unpack(self, message: MessageCodec, data: bytes | memoryview, at: int, end: int) -> "Values":
        if self.item_code:
            return (struct.unpack_from("<%d%s" % (data[at], self.item_code), data, at + 1),)
        raw = data[at + 1 : end]
        if not self.is_text:
            return (bytes(raw),)
        try:
            if _STRICT_UTF8 or is_utf8(raw):
                return (str(raw, "utf-8"),)
        except UnicodeError:
            pass
        raise FieldError(message.name, self.name, self.index, _NOT_UTF8)


def _format(checks: "list[_Check]") -> str:
    return "<" + "".join([check.code for check in checks])


def is_utf8(data: bytes | memoryview) -> bool:
    """Whether bytes are UTF-8 as RFC 3629 has it; MicroPython itself takes a good deal more."""
    left = 0
    low, high = 0x80, 0xBF  # what the next byte of a letter may be
    for byte in data:
        if left:
            if byte < low or byte > high:
                return False
            left -= 1
            low, high = 0x80, 0xBF
        elif byte >= 0x80:
            if byte < 0xC2 or byte > 0xF4:
                return False
            left = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            if byte == 0xE0 or byte == 0xF0:
                low = 0xA0 if byte == 0xE0 else 0x90  # or it could be written shorter
            elif byte == 0xED or byte == 0xF4:
                high = 0x9F if byte == 0xED else 0x8F  # surrogates; past the last code point
    return left == 0


def utf8_of(text: str) -> bytes | None:
    """Text as UTF-8; None if it holds half of a surrogate pair, which has no UTF-8."""
    try:
        data = text.encode()
    except UnicodeError:
        return None
    return data if _STRICT_UTF8 or is_utf8(data) else None


def _decoder_is_strict() -> bool:
    try:
        bytes((0xC0, 0x80)).decode()
    except UnicodeError:
        return True
    return False


_STRICT_UTF8 = _decoder_is_strict()


def _plan(checks: "list[_Check]", fields: "Row") -> "list[_Fixed | _Variable]":
    """The steps that take all fields in order: runs of fixed size, and each other field by itself."""
    steps: list[_Fixed | _Variable] = []
    start = 0
    for index in range(len(checks) + 1):
        if index < len(checks) and checks[index].code:
            continue
        if index > start:
            steps.append(_Fixed(checks[start:index], start))
        if index < len(checks):
            steps.append(_Variable(fields[index][0], checks[index], index))
        start = index + 1
    return steps


class Codec:
    """A schema's messages by id and by name; each is prepared when it is first used, or each time (RARE)."""

    def __init__(
        self,
        messages: "Row" = schema.MESSAGES,
        since: "tuple[tuple[str, int], ...]" = schema.SINCE,
        version: "tuple[int, int]" = (schema.MAJOR, schema.MINOR),
    ) -> None:
        self.version = version
        self._rows = messages
        self._since = since
        self._ready: dict[int, MessageCodec] = {}
        self._named: dict[str, MessageCodec] = {}
        self._errors: dict[int, MessageCodec] = {}
        self._checks: dict[Row, _Check] = {}

    def find(self, id: int) -> MessageCodec | None:
        """The message with this id, or None if this schema has none."""
        ready = self._ready.get(id)
        if ready is None:
            for row in self._rows:
                if row[0] == id:
                    ready = self._prepare(row)
                    break
        return ready

    def named(self, name: str) -> MessageCodec:
        """The message with this name; UnknownMessage if there is none."""
        ready = self._named.get(name)
        if ready is not None:
            return ready
        for row in self._rows:
            if row[1] == name:
                return self._prepare(row)
        raise UnknownMessage("no message is called '%s'" % name)

    def pack(self, name: str, *values: "Value") -> bytes:
        """The fields of the message called ``name`` as bytes."""
        return self.named(name).pack(values)

    def error(self, code: int) -> MessageCodec | None:
        """The details of the error with this code, or None if it is unknown here."""
        ready = self._errors.get(code)
        if ready is None:
            for row in schema.ERRORS:
                if row[0] == code:
                    ready = MessageCodec(self, (row[0], row[1], "error", "", "", row[2]))
                    self._errors[code] = ready
                    break
        return ready

    def error_named(self, name: str) -> MessageCodec:
        """The details of the error called ``name``."""
        for row in schema.ERRORS:
            if row[1] == name:
                found = self.error(row[0])
                if found is not None:
                    return found
        raise UnknownMessage("no error is called '%s'" % name)

    def check_of(self, kind: "Row") -> _Check:
        """The check of a type of field; the same one for every field of that type."""
        check = self._checks.get(kind)
        if check is None:
            check = self._checks[kind] = _check(self, kind)
        return check

    def enum_values(self, name: str) -> tuple[int, ...]:
        """The numbers of an enum."""
        for each, members in schema.ENUMS:
            if each == name:
                return tuple([number for _, number in members])
        raise UnknownMessage("no enum is called '%s'" % name)

    def flag_mask(self, name: str) -> int:
        """All flags of a set, or-ed."""
        for each, members in schema.FLAGS:
            if each == name:
                mask = 0
                for _, bit in members:
                    mask |= bit
                return mask
        raise UnknownMessage("no flag set is called '%s'" % name)

    def role_mask(self, roles: str) -> int:
        """Roles named in a string as one bit each (1 << role)."""
        if roles == "any":
            return 0xFF
        mask = 0
        for role in roles.split():
            mask |= 1 << enum_number("Role", role)
        return mask

    def _prepare(self, row: "Row") -> MessageCodec:
        message = MessageCodec(self, row)
        for name, minor in self._since:
            if name == message.name:
                message.minor = minor
        if message.name not in RARE:
            self._ready[message.id] = message
            self._named[message.name] = message
        return message


def enum_number(enum: str, member: str) -> int:
    """The number of an enum's member."""
    for each, members in schema.ENUMS:
        if each == enum:
            for name, value in members:
                if name == member:
                    return value
    raise UnknownMessage("%s has no member '%s'" % (enum, member))


def enum_name(enum: str, value: int) -> str:
    """The name of an enum's number, or the number itself if this schema does not know it."""
    for each, members in schema.ENUMS:
        if each == enum:
            for name, member in members:
                if member == value:
                    return name
    return "%s(%d)" % (enum, value)


CODEC = Codec()
