"""``pack`` and ``unpack`` of a typed message, compiled from its row of the schema.

``dataclasses`` writes an ``__init__`` for each class and compiles it; this module does the same for the two
methods that turn a message into bytes and back. Both are straight-line code: one ``struct`` call for each run
of fields of fixed size. They decide about plain values (exactly int, bytes, str, tuple or the field's own
enum) and leave everything else to the codec. A range that a field's ``struct`` code has by nature is left to
``struct``; only narrower ones are compared.

``compile_methods`` is called at the first ``pack`` or ``unpack`` of a class, so that a program pays only for
the messages it uses.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Flag
from typing import Any

CODES = {"u8": "B", "u16": "H", "u32": "I", "i8": "b", "i16": "h", "i32": "i"}
"""The ``struct`` code of each type of number."""
RANGES = {
    "u8": (0, 0xFF),
    "u16": (0, 0xFFFF),
    "u32": (0, 0xFFFFFFFF),
    "i8": (-0x80, 0x7F),
    "i16": (-0x8000, 0x7FFF),
    "i32": (-0x80000000, 0x7FFFFFFF),
}
"""The range each type of number has by nature."""
LOCAL_NAMES = {"cls", "self", "data", "type", "len", "set", "map", "str", "bytes", "min", "max", "tuple"}
"""Names that the compiled code uses itself; a field of such a name gets an underscore there."""


def source_of(rows: Iterable[tuple[Any, ...]], frozen: bool) -> str:
    """The source of ``pack(self)`` and ``unpack(cls, data)`` for fields given as rows of the schema.

    A ``frozen`` message ignores bytes after its fields; any other refuses them.
    """
    return "\n".join(_Writer(rows, frozen).lines()) + "\n"


def compile_methods(
    message: type, rows: Iterable[tuple[Any, ...]], frozen: bool, enums: Mapping[str, type]
) -> None:
    """Give the dataclass ``message`` its ``pack`` and ``unpack``; ``enums`` are the enums of its fields."""
    names: dict[str, Any] = {
        "Struct": struct.Struct,
        "StructError": struct.error,
        "new": object.__new__,
        "ONLY_INT": {int},
    }
    for number, field in enumerate(fields(message)):
        # Half the time of a frozen dataclass's __init__.
        names[f"set_{number}"] = vars(message)[field.name].__set__
    for row in rows:
        if row[1] in ("enum", "flags"):
            names[row[2]] = enums[row[2]]
            names[f"{row[2]}_members"] = _members(enums[row[2]])
    exec(compile(source_of(rows, frozen), f"<fields of {message.__name__}>", "exec"), names)
    for method in ("pack", "unpack"):
        made = names[method]
        made.__qualname__ = f"{message.__qualname__}.{method}"
        made.__doc__ = getattr(message, method).__doc__
        setattr(message, method, classmethod(made) if method == "unpack" else made)


def _members(enum: Any) -> dict[int, Any]:
    """Number to member; of a flag set, every combination of its bits."""
    if not issubclass(enum, Flag):
        return {member.value: member for member in enum}
    mask = 0
    for member in enum:
        mask |= member.value
    return {bits: enum(bits) for bits in range(mask + 1) if not bits & ~mask}


class _Field:
    """One field, and the conditions that decide about it."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        self.row = row
        self.name: str = row[0]
        self.type: str = row[1]
        self.local = self.name + ("_" if self.name in LOCAL_NAMES else "")
        self.variable = self.type in ("blob", "text", "array")
        self.members = f"{row[2]}_members" if self.type in ("enum", "flags") else ""

    @property
    def code(self) -> str:
        """Its ``struct`` code; that of its length byte if it has one."""
        if self.type == "bytes":
            return f"{self.row[2]}s"
        return {"enum": "B", "flags": "H"}.get(self.type) or CODES.get(self.type, "B")

    def plain(self) -> list[str]:
        """Conditions under which ``pack`` may go on without the codec."""
        local = self.local
        if self.type in CODES:
            return [f"type({local}) is int", *_within(local, self.row[2], self.row[3], RANGES[self.type])]
        if self.type == "enum":
            return [f"type({local}) is {self.row[2]}"]
        if self.type == "flags":
            return [f"type({local}) is {self.row[2]}", f"{local} in {self.members}"]
        if self.type == "bytes":
            return [f"type({local}) is bytes", f"len({local}) == {self.row[2]}"]
        if self.type == "blob":
            return [f"type({local}) is bytes", f"{self.row[2]} <= len({local}) <= {self.row[3]}"]
        if self.type == "text":
            size = f"len({local}_utf8 := {local}.encode())"
            return [f"type({local}) is str", f"{self.row[2]} <= {size} <= {self.row[3]}"]
        _, _, item, fewest, most, low, high = self.row
        conditions = [f"type({local}) is tuple", f"{fewest} <= len({local}) <= {most}"]
        return [*conditions, f"set(map(type, {local})) <= ONLY_INT", *self._items_within(item, low, high)]

    def wrong(self) -> list[str]:
        """Conditions under which ``unpack`` must refuse what it has read."""
        if self.type in CODES:
            allowed = _within(self.local, self.row[2], self.row[3], RANGES[self.type])
        elif self.type in ("blob", "text"):
            allowed = _within(f"size_of_{self.name}", self.row[2], self.row[3], RANGES["u8"])
        elif self.type == "array":
            allowed = _within(f"size_of_{self.name}", self.row[3], self.row[4], RANGES["u8"])
            allowed += self._items_within(self.row[2], self.row[5], self.row[6])
        else:
            allowed = []
        return [f"not {each}" for each in allowed]

    def _items_within(self, item: str, low: int, high: int) -> list[str]:
        conditions = []
        if low > RANGES[item][0]:
            conditions.append(f"min({self.local}, default={low}) >= {low}")
        if high < RANGES[item][1]:
            conditions.append(f"max({self.local}, default={high}) <= {high}")
        return conditions


def _within(what: str, low: int, high: int, natural: tuple[int, int]) -> list[str]:
    """The comparison ``what`` needs because its range is narrower than it is by nature."""
    if low > natural[0] and high < natural[1]:
        return [f"{low} <= {what} <= {high}"]
    if low > natural[0]:
        return [f"{what} >= {low}"]
    if high < natural[1]:
        return [f"{what} <= {high}"]
    return []


class _Writer:
    """Writes the two methods of one message."""

    def __init__(self, rows: Iterable[tuple[Any, ...]], frozen: bool) -> None:
        self.frozen = frozen
        self.fields = [_Field(row) for row in rows]
        # A run is the fields of fixed size up to the next field of variable size, whose length
        # byte is its last number.
        self.runs: list[tuple[list[_Field], _Field | None]] = []
        run: list[_Field] = []
        for field in self.fields:
            if field.variable:
                self.runs.append((run, field))
                run = []
            else:
                run.append(field)
        if run:
            self.runs.append((run, None))

    def lines(self) -> list[str]:
        return [*self._structs(), *self._pack(), *self._unpack()]

    def _format(self, number: int) -> str:
        run, variable = self.runs[number]
        return "<" + "".join(field.code for field in run) + ("B" if variable else "")

    def _lone_length(self, number: int) -> bool:
        """Whether a run is nothing but a length byte in the middle of a message."""
        return number > 0 and not self.runs[number][0]

    def _structs(self) -> list[str]:
        """What the methods call for each run."""
        lines = []
        for number, (_, variable) in enumerate(self.runs):
            if not self._lone_length(number):
                exact = len(self.runs) == 1 and not variable and not self.frozen
                lines.append(f'run_{number} = Struct("{self._format(number)}")')
                lines.append(f"pack_{number} = run_{number}.pack")
                lines.append(f"unpack_{number} = run_{number}.unpack{'' if exact else '_from'}")
            if variable is not None and variable.type == "array":
                sizes = f"for size in range({variable.row[4] + 1})]"
                made = f'Struct("<%d{CODES[variable.row[2]]}" % size)'
                lines.append(f"pack_{variable.name} = [{made}.pack {sizes}")
                lines.append(f"unpack_{variable.name} = [{made}.unpack_from {sizes}")
        return lines

    def _pack(self) -> list[str]:
        if not self.fields:
            return ["def pack(self):", '    return b""']
        text = any(field.type == "text" for field in self.fields)
        return [
            "def pack(self):",
            *[f"    {field.local} = self.{field.name}" for field in self.fields],
            "    try:",
            f"        if {' and '.join(each for field in self.fields for each in field.plain())}:",
            f"            return {self._packed()}",
            f"    except {'(StructError, UnicodeError)' if text else 'StructError'}:",
            "        pass",
            "    return self._pack_by_codec()",
        ]

    def _packed(self) -> str:
        """The fields as bytes."""
        parts: list[str] = []
        for number, (run, variable) in enumerate(self.runs):
            items = [field.local for field in run]
            if variable is None:
                parts.append(f"pack_{number}({', '.join(items)})")
                continue
            content = variable.local + ("_utf8" if variable.type == "text" else "")
            if self._lone_length(number):
                parts.append(f"bytes((len({content}),))")
            else:
                parts.append(f"pack_{number}({', '.join([*items, f'len({content})'])})")
            if variable.type == "array":
                parts.append(f"pack_{variable.name}[len({content})](*{content})")
            else:
                parts.append(content)
        return " + ".join(parts)

    def _unpack(self) -> list[str]:
        if not self.fields:
            refuse = [] if self.frozen else ["    if data:", "        raise cls._refused(data)"]
            return ["def unpack(cls, data):", *refuse, "    return cls()"]
        read, end = self._read()
        wrong = [f"{end} {'>' if self.frozen else '!='} len(data)"] if end else []
        wrong += [each for field in self.fields for each in field.wrong()]
        return [
            "def unpack(cls, data):",
            "    try:",
            *[f"        {line}" for line in read],
            "    except (StructError, IndexError, KeyError, UnicodeError):",
            "        raise cls._refused(data) from None",
            *([f"    if {' or '.join(wrong)}:", "        raise cls._refused(data)"] if wrong else []),
            "    self = new(cls)",
            *[
                f"    set_{number}(self, {field.local}{'_member' * bool(field.members)})"
                for number, field in enumerate(self.fields)
            ],
            "    return self",
        ]

    def _read(self) -> tuple[list[str], str]:
        """The statements that read the fields, and where they end unless ``struct`` has seen to that."""
        lines: list[str] = []
        at = ""  # where the next run begins, once that depends on a length
        known = 0  # how far behind that
        for number, (run, variable) in enumerate(self.runs):
            names = [field.local for field in run] + ([f"size_of_{variable.name}"] if variable else [])
            place = f"{at} + {known}" if at and known else at or str(known)
            if self._lone_length(number):
                lines.append(f"{names[0]} = data[{place}]")
            else:
                where = "" if place == "0" else f", {place}"
                lines.append(f"({', '.join(names)},) = unpack_{number}(data{where})")
            known += struct.calcsize(self._format(number))
            if variable is None:
                continue
            place = f"{at} + {known}" if at else str(known)
            at, known = f"end_of_{variable.name}", 0
            size = f"size_of_{variable.name}"
            if variable.type == "array":
                item = struct.calcsize("<" + CODES[variable.row[2]])
                lines.append(f"{at} = {place} + {item} * {size}")
                lines.append(f"{variable.local} = unpack_{variable.name}[{size}](data, {place})")
            else:
                lines.append(f"{at} = {place} + {size}")
                part = f"data[{place}:{at}]"
                made = f'str({part}, "utf-8")' if variable.type == "text" else f"bytes({part})"
                lines.append(f"{variable.local} = {made}")
        named = [field for field in self.fields if field.members]
        lines += [f"{field.local}_member = {field.members}[{field.local}]" for field in named]
        return lines, f"{at} + {known}" if at and known else at
