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

_INTEGERS = {"u8": "B", "u16": "H", "u32": "I", "i8": "b", "i16": "h", "i32": "i"}
_SIZES = {"B": 1, "H": 2, "I": 4, "b": 1, "h": 2, "i": 4}


class Message:
    """One message of the schema, ready to pack and unpack."""

    def __init__(self, codec: "Codec", row: "Row") -> None:
        self.id: int = row[0]
        self.name: str = row[1]
        self.kind: str = row[2]
        self.answer: str = row[3]
        self.roles = codec.role_mask(row[4])
        self.fields = row[5]
        self.frozen = self.id < schema.FROZEN_BELOW and row[2] != "error"
        self.minor = 0
        self._steps = _plan(codec, row[5])

    def pack(self, values: "Sequence[Value]") -> bytes:
        """The message's fields as bytes; FieldError names the first value not allowed."""
        if len(values) != len(self.fields):
            raise FieldError(
                self.name, None, 255, "%d values for %d fields" % (len(values), len(self.fields))
            )
        out = b""
        index = 0
        for step in self._steps:
            count = len(step.checks)
            part = values[index : index + count]
            for check in step.checks:
                why = check.refuse(values[index])
                if why:
                    raise FieldError(self.name, check.name, index, why)
                index += 1
            out += step.pack(part)
        return out

    def unpack(self, data: bytes) -> "Values":
        """The values in ``data``; FieldError if it is not exactly this message's fields."""
        values: Values = ()
        at = 0
        index = 0
        for step in self._steps:
            part, at = step.unpack(self, data, at, index)
            for check in step.checks:
                why = check.refuse(part[index - len(values)])
                if why:
                    raise FieldError(self.name, check.name, index, why)
                index += 1
            values += part
        if at != len(data) and not self.frozen:
            raise FieldError(self.name, None, 255, "%d bytes too many" % (len(data) - at))
        return values


class _Check:
    """What one field allows."""

    def __init__(self, codec: "Codec", field: "Row") -> None:
        self.name: str = field[0]
        self.type: str = field[1]
        self.low = 0
        self.high = 0
        self.choices: tuple[int, ...] | None = None
        self.item: _Check | None = None
        if self.type in _INTEGERS:
            self.code = _INTEGERS[self.type]
            self.low, self.high = field[2], field[3]
        elif self.type == "enum":
            self.code = "B"
            self.choices = codec.enum_values(field[2])
        elif self.type == "flags":
            self.code = "H"
            self.high = codec.flag_mask(field[2])
        elif self.type == "bytes":
            self.code = "%ds" % field[2]
            self.low = self.high = field[2]
        elif self.type == "array":
            self.code = ""
            self.item = _Check(codec, (field[0], field[2], field[5], field[6]))
            self.low, self.high = field[3], field[4]
        else:  # blob, text
            self.code = ""
            self.low, self.high = field[2], field[3]

    def refuse(self, value: "Value") -> str | None:
        """Why ``value`` is not allowed here, or None if it is."""
        kind = self.type
        if kind in _INTEGERS or kind == "enum" or kind == "flags":
            if not isinstance(value, int) or value is True or value is False:
                return "not a whole number"
            if self.choices is not None:
                return None if value in self.choices else "%d is no %s" % (value, self.name)
            if kind == "flags":
                return "unknown flag in 0x%x" % value if value < 0 or value & ~self.high else None
            if value < self.low or value > self.high:
                return "%d is outside %d..%d" % (value, self.low, self.high)
            return None
        if self.item is not None:
            if not isinstance(value, (tuple, list)):
                return "not a list of numbers"
            for item in value:
                why = self.item.refuse(item)
                if why:
                    return why
            size = len(value)
        elif kind == "text":
            if not isinstance(value, str):
                return "not text"
            size = len(value.encode())
        else:
            if not isinstance(value, (bytes, bytearray)):
                return "not bytes"
            size = len(value)
        if size < self.low or size > self.high:
            return "length %d is outside %d..%d" % (size, self.low, self.high)
        return None


class _Fixed:
    """A run of fields of fixed size: one ``struct`` call."""

    def __init__(self, checks: "list[_Check]") -> None:
        self.checks = checks
        self.format = "<" + "".join([check.code for check in checks])
        self.size = struct.calcsize(self.format)

    def pack(self, values: "Sequence[Value]") -> bytes:
        return struct.pack(self.format, *values)

    def unpack(self, message: Message, data: bytes, at: int, index: int) -> "tuple[Values, int]":
        end = at + self.size
        if end > len(data):
            raise FieldError(message.name, None, 255, "too short by %d bytes" % (end - len(data)))
        return struct.unpack_from(self.format, data, at), end


class _Variable:
    """One field with a length byte in front of it."""

    def __init__(self, check: _Check) -> None:
        self.checks = [check]
        self.type = check.type
        self.item_code = check.item.code if check.item else "B"
        self.item_size = _SIZES[self.item_code]

    def pack(self, values: "Sequence[Value]") -> bytes:
        value = values[0]
        if self.type == "array":
            return bytes((len(value),)) + struct.pack("<%d%s" % (len(value), self.item_code), *value)
        data = value.encode() if isinstance(value, str) else bytes(value)
        return bytes((len(data),)) + data

    def unpack(self, message: Message, data: bytes, at: int, index: int) -> "tuple[Values, int]":
        name = self.checks[0].name
        if at >= len(data):
            raise FieldError(message.name, name, index, "its length byte is missing")
        count = data[at]
        start = at + 1
        end = start + count * self.item_size
        if end > len(data):
            raise FieldError(message.name, name, index, "too short by %d bytes" % (end - len(data)))
        if self.type == "array":
            format = "<%d%s" % (count, self.item_code)
            return (struct.unpack_from(format, data, start),), end
        raw = bytes(data[start:end])
        if self.type == "text":
            try:
                return (raw.decode(),), end
            except UnicodeError:
                raise FieldError(message.name, name, index, "not UTF-8") from None
        return (raw,), end


def _plan(codec: "Codec", fields: "Row") -> "list[_Fixed | _Variable]":
    steps: list[_Fixed | _Variable] = []
    run: list[_Check] = []
    for field in fields:
        check = _Check(codec, field)
        if check.code:
            run.append(check)
            continue
        if run:
            steps.append(_Fixed(run))
            run = []
        steps.append(_Variable(check))
    if run:
        steps.append(_Fixed(run))
    return steps


class Codec:
    """A schema's messages by id and by name; each is prepared when it is first used."""

    def __init__(
        self,
        messages: "Row" = schema.MESSAGES,
        since: "tuple[tuple[str, int], ...]" = schema.SINCE,
        version: "tuple[int, int]" = (schema.MAJOR, schema.MINOR),
    ) -> None:
        self.version = version
        self._rows = messages
        self._since = since
        self._ready: dict[int, Message] = {}
        self._errors: dict[int, Message] = {}

    def find(self, id: int) -> Message | None:
        """The message with this id, or None if this schema has none."""
        ready = self._ready.get(id)
        if ready is None:
            for row in self._rows:
                if row[0] == id:
                    ready = self._prepare(row)
                    break
        return ready

    def named(self, name: str) -> Message:
        """The message with this name; UnknownMessage if there is none."""
        for row in self._rows:
            if row[1] == name:
                ready = self._ready.get(row[0])
                return ready if ready is not None else self._prepare(row)
        raise UnknownMessage("no message is called '%s'" % name)

    def pack(self, name: str, *values: "Value") -> bytes:
        """The fields of the message called ``name`` as bytes."""
        return self.named(name).pack(values)

    def error(self, code: int) -> Message | None:
        """The details of the error with this code, or None if it is unknown here."""
        ready = self._errors.get(code)
        if ready is None:
            for row in schema.ERRORS:
                if row[0] == code:
                    ready = Message(self, (row[0], row[1], "error", "", "", row[2]))
                    self._errors[code] = ready
                    break
        return ready

    def error_named(self, name: str) -> Message:
        """The details of the error called ``name``."""
        for row in schema.ERRORS:
            if row[1] == name:
                found = self.error(row[0])
                if found is not None:
                    return found
        raise UnknownMessage("no error is called '%s'" % name)

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

    def _prepare(self, row: "Row") -> Message:
        message = Message(self, row)
        for name, minor in self._since:
            if name == message.name:
                message.minor = minor
        self._ready[message.id] = message
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
