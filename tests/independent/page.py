"""The tables of docs/protocol.md and the worked examples beside it, read when this is imported.

The environment variable SABOT_PAGE names another page to read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATH = Path(os.environ.get("SABOT_PAGE", Path(__file__).parents[2] / "docs" / "protocol.md"))
TEXT = PATH.read_text(encoding="utf-8")
EXAMPLES_TEXT = PATH.with_name("protocol-examples.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Field:
    """A field: its type, and the least and greatest value, length or number of items.

    `names` is the enum or set of flags that it is of, or the type of an array's items.
    """

    name: str
    type: str
    low: int
    high: int
    names: str = ""


@dataclass(frozen=True)
class Message:
    """A message, or the details of an error: its name, what it is, its fields, who asks, and its answer."""

    name: str
    kind: str
    fields: tuple[Field, ...]
    roles: tuple[str, ...] = ()
    answer: str = ""


@dataclass(frozen=True)
class Example:
    """A frame of the page: who sends it, its bytes, and its payload part by part (name, bytes, text)."""

    section: str
    sender: str
    title: str
    frame: bytes
    parts: tuple[tuple[str, bytes, str], ...]

    def part(self, name: str) -> bytes:
        """The bytes of a part."""
        return next(data for part, data, _ in self.parts if part == name)

    def number(self, name: str) -> int:
        """The number that a part's bytes are."""
        return int.from_bytes(self.part(name), "little")


def _only(pattern: str, text: str = TEXT) -> re.Match[str]:
    """The one place that fits a pattern."""
    (found,) = re.finditer(pattern, text, re.MULTILINE | re.DOTALL)
    return found


def _chapter(title: str) -> str:
    """The text below a heading of the second level, to the next one."""
    return _only(rf"^## {title}\n(.*?)(?=^## |\Z)")[1]


def _sections(text: str, level: int) -> Iterator[tuple[str, str]]:
    """The headings of a level, and what is below each."""
    for section in re.split(rf"^{'#' * level} ", text, flags=re.MULTILINE)[1:]:
        heading, _, below = section.partition("\n")
        yield heading, below


def _rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, without their headings."""
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]
    heads = [at - 1 for at, row in enumerate(rows) if set(row) == {"---"}]
    return [row for at, row in enumerate(rows) if at not in heads and at - 1 not in heads]


def _field(name: str, kind: str, size: str, allowed: str) -> Field:
    """Read a field's row."""
    base, *rest = kind.split()
    limits = [int(limit) for limit in re.findall(r"-?\d+", allowed)]
    if base == "bytes":
        limits = [int(size), int(size)]
    elif base in ("enum", "flags"):
        limits = [0, 255 if base == "enum" else 65535]
    return Field(name, base, limits[0], limits[1], rest[-1] if rest else "")


def _messages() -> dict[int, Message]:
    """Read the tables of messages."""
    messages = {}
    for heading, text in _sections(_chapter("Messages"), 4):
        number, name = _only(r"^`(0x\w\w)` (\w+)$", heading).groups()
        what = _only(r"\*(\w+)(?:; asked by ([\w, ]+))?(?:; answered by `(\w+)`)?\.\*$", text)
        fields = tuple(_field(*row[:4]) for row in _rows(text))
        assert fields or "No fields." in text, name
        roles = tuple((what[2] or "").split(", "))
        messages[int(number, 16)] = Message(name, what[1], fields, roles, what[3] or "")
    return messages


def _errors() -> dict[int, Message]:
    """Read the errors and the tables of their details."""
    errors = {}
    for heading, text in _sections(_chapter("Errors"), 4):
        code, name = _only(r"^`(\d+)` (\w+)$", heading).groups()
        fields = []
        for field, type_, _ in _rows(text):
            kind, size = _only(r"^([a-z]+\d*)(?:\[(\d+)\])?$", type_).groups()
            allowed = "" if size else f"0 to {(1 << int(kind[1:])) - 1}"
            fields.append(_field(field, kind, size, allowed))
        errors[int(code)] = Message(name, "error", tuple(fields))
    return errors


def _examples() -> list[Example]:
    """Read the frames of the worked examples."""
    block = re.compile(
        r"^(host|device) -> \w+ +(.+)\n  frame  (\w+(?:\n {9}\w+)*)\n((?:    .+\n)+)", re.MULTILINE
    )
    found = []
    for section, text in _sections(EXAMPLES_TEXT, 3):
        for sender, title, frame, rows in block.findall(text):
            parts = []
            for row in rows.splitlines():
                name, data, *described = row.split(None, 2)
                parts.append((name, bytes.fromhex(data), described[0] if described else ""))
            found.append(Example(section, sender, title, bytes.fromhex(frame), tuple(parts)))
    return found


_VERSION = _only(r"This page describes version (\d+)\.(\d+), whose schema hash is `(\w{16})`")
MAJOR, MINOR, SCHEMA = int(_VERSION[1]), int(_VERSION[2]), bytes.fromhex(_VERSION[3])
_FROZEN = _only(r"\(ids (0x\w\w) to (0x\w\w)\)")
FROZEN = range(int(_FROZEN[1], 16), int(_FROZEN[2], 16) + 1)
MESSAGES = _messages()
IDS = {message.name: number for number, message in MESSAGES.items()}
ERRORS = _errors()
ENUMS = {
    heading.split()[0]: {int(row[0], 0): row[1] for row in _rows(text)}
    for heading, text in _sections(_chapter("Enums and flags"), 4)
}
COUNTERS = [row[1] for row in _rows(_chapter("Counters and the trace"))]
KINDS = [row[1] for row in _rows(_chapter("Sealed packets")) if row[1].isupper()]
LIMITS = {
    row[0]: [int(number) for number in re.findall(r"\d+", row[1])]
    for row in _rows(_chapter("Timers and limits"))
}
EXAMPLES = _examples()
SECTIONS = [heading for heading, _ in _sections(EXAMPLES_TEXT, 3)]
KEYS = dict(
    re.findall(
        r"^(device key|pad key|transcript|\w+ proof|key to \w+) +([0-9a-f]+)$", EXAMPLES_TEXT, re.MULTILINE
    )
)
