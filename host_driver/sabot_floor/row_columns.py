"""What the archive's columns say of a row, read from its body. A body of an unknown kind is kept as it is."""

import json
from dataclasses import dataclass
from typing import Any

from sabot_floor.names import DEVICE
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages

UNREADABLE = "unreadable"
SECOND_US = 1_000_000
_COMMANDS = ("C", "c")
_EVENTS = ("E", "e")


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Columns for searching."""

    kind: str
    at_us: int | None
    """None for a row without a time of its own."""
    round_id: int | None = None
    person: str | None = None


def columns_of(chain: str, level: str, body: str) -> RowColumns:
    """The columns of a row."""
    try:
        if chain != DEVICE:
            return _record(json.loads(body))
        return _link(body.split(" ")) if level == "all" else _device(json.loads(body))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return RowColumns(UNREADABLE, None)


def _record(row: dict[str, Any]) -> RowColumns:
    person = str(row.get("actor", {}).get("person") or "")[:128] or None
    kind, at_us = str(row["kind"])[:64], int(row["at_s"]) * SECOND_US
    return RowColumns(kind, at_us, int(row.get("round", 0)) or None, person)


def _device(row: dict[str, Any]) -> RowColumns:
    round_id = row["fields"].get("round_id")
    return RowColumns(str(row["event"])[:64], int(row["at_us"]), None if round_id is None else int(round_id))


def _link(words: list[str]) -> RowColumns:
    if words[0] == "O":
        return RowColumns("outcome", None)
    if words[0] in _COMMANDS:
        return RowColumns("command", int(words[5]))
    if words[0] not in _EVENTS:
        return RowColumns(UNREADABLE, None)
    at_us, number = int(words[14]), int(words[9])
    if words[5] == "1":
        return RowColumns("gap", at_us)
    message = messages.BY_ID.get(number)
    if message is None:
        return RowColumns(f"event_{number}", at_us)
    try:
        told = message.unpack(bytes.fromhex(words[10]))
    except (FieldError, ValueError):
        return RowColumns(message.NAME, at_us)
    round_id = getattr(told, "round_id", None)
    return RowColumns(message.NAME, at_us, int(round_id) if round_id else None)
