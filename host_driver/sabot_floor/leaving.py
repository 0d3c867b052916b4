"""What may leave a table below level ``all``: each row as it leaves, or None if it stays.

Everything here is a list of what may leave. What is not on it stays: an unknown event, kind or field never
leaves. Level ``all`` does not come here.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sabot_driver.journal_chain import EVENT
from sabot_protocol.errors import FieldError
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import Message
from sabot_session.canonical import canonical_json
from sabot_session.row_kinds import BY_NAME
from sabot_table.rule_texts import FloorLevel

MACHINE_EVENTS: Mapping[str, tuple[str, ...]] = {
    "booted": ("reason",),
    "clock_changed": ("step_s", "quality"),
    "shuffler_changed": ("state",),
    "shoe_changed": ("state",),
    "deck_counted": ("count", "expected"),
    "fault_raised": ("fault", "place", "cards"),
    "fault_cleared": ("fault",),
    "retried": ("fault", "place"),
    "self_tested": ("half", "passed"),
    "out_of_order_changed": ("on",),
    "calibrated": ("what", "value"),
    "roller_times": ("counts", "sums", "squares"),
    "emptied": ("cards",),
    "purged": ("cards",),
    "stopped": (),
    "proofs_refused": ("slot", "count", "total"),
}
"""Events that leave at ``machine``, with those of their fields that do."""
STAYING_EVENTS = frozenset(
    {"key_changed", "key_removed", "elevation_used", "certificate_used", "shuffle_revealable"}
)
"""Events of a machine's keys and shuffles. They leave at ``all`` only."""

MACHINE_KINDS: Mapping[str, tuple[str, ...]] = {
    "identify": ("serial", "model", "components", "name", "version"),
    "fault_raised": ("serial", "half", "fault", "place", "cards"),
    "fault_cleared": ("serial", "half", "fault"),
    "machine_started": ("reason",),
    "unit_failed": ("serial", "unit"),
    "mark_out_of_order": ("serial", "unit", "how"),
    "clear_jam": ("serial", "unit"),
    "clear_jam_with_tool": ("serial", "unit"),
    "repaired": ("serial", "unit"),
    "self_test": (),
    "calibrate": ("what", "value", "was"),
    "hours_warned": ("minutes",),
}
"""Kinds of a record's rows that leave at ``machine``, with those of their data that do."""
STAYING_KINDS = frozenset({"shuffle_revealed", "logged_before", "command_sent", "command_answered"})
ROUND_FIELDS = frozenset(
    {
        "advice", "back", "before", "bets", "burned", "by", "cents", "components", "count",
        "counted", "countersign", "countersignatures", "dealer", "dealer_how", "destination",
        "disputes", "draw", "expected", "fault", "from_top", "give_back", "half", "holds", "how",
        "last_s", "lines", "machine_wrong", "meters", "method", "minutes", "model", "name",
        "number", "outcome", "pack_id", "part", "pays_cents", "place", "reason", "relieved_by",
        "round_id", "row", "rows", "rule_text", "ruleset", "seat", "seats", "serial", "service",
        "settled", "shuffle_id", "simulated", "stack", "stacks", "stake_cents", "stub", "table",
        "unit", "until_s", "value", "verdict", "version", "vig_cents", "wager", "wagers", "was",
        "what",
    }
)  # fmt: skip
"""Fields of a row's data that leave at ``rounds``. Cards, hands, points, ranks, paytable lines, seeds and
what people wrote are not among them."""
NUMBERS_ONLY = frozenset({"cards"})
"""Fields that are a count in some rows and cards in others: only a count leaves."""


def device_body(kind: str, body: bytes, level: FloorLevel) -> str | None:
    """A link of a journal as it leaves the table at a level below ``all``."""
    if kind != EVENT:
        return None  # commands and outcomes are the table PC's; carried rows have left before
    words = body.decode().split(" ")
    id, memory_id, boot, n, is_gap, ticks, utc, _, number, raw, gap_size = words[1:12]
    found: dict[str, Any] = {
        "at_us": int(words[14]), "boot": int(boot), "id": int(id), "memory_id": memory_id.lower(),
        "n": int(n), "ticks_ms": int(ticks), "utc_ms": None if utc == "-" else int(utc),
    }  # fmt: skip
    if is_gap == "1":
        size = None if gap_size == "-" else int(gap_size)
        return _text({**found, "event": "gap", "fields": {"reason": int(number), "size": size}})
    message = messages.BY_ID.get(int(number))
    if message is None or message.NAME in STAYING_EVENTS:
        return None
    fields = MACHINE_EVENTS.get(message.NAME)
    if level is FloorLevel.MACHINE and fields is None:
        return None
    told = _fields(message, "" if raw == "-" else raw)
    if told is None:
        return None
    if level is FloorLevel.MACHINE:
        told = {name: told[name] for name in fields or () if name in told}
    return _text({**found, "event": message.NAME, "fields": told})


def record_body(body: str, level: FloorLevel) -> str | None:
    """A row of a record as it leaves the table at a level below ``all``."""
    row = json.loads(body)
    kind = row["kind"]
    if kind not in BY_NAME or kind in STAYING_KINDS:
        return None
    if level is FloorLevel.MACHINE:
        allowed = MACHINE_KINDS.get(kind)
        if allowed is None:
            return None
        data = _kept(row["data"], allowed.__contains__)
        return _text({"at_s": row["at_s"], "data": data, "kind": kind, "number": row["number"]})
    return _text({**row, "data": _kept(row["data"], ROUND_FIELDS.__contains__)})


def _kept(value: Any, allowed: Callable[[str], bool]) -> Any:
    """A value without the fields that stay; lists and objects are looked through."""
    if isinstance(value, dict):
        return {
            name: _kept(each, allowed)
            for name, each in value.items()
            if (isinstance(each, int) if name in NUMBERS_ONLY else allowed(name))
        }
    return [_kept(each, allowed) for each in value] if isinstance(value, list) else value


def _fields(message: type[Message], raw: str) -> dict[str, Any] | None:
    try:
        told = message.unpack(bytes.fromhex(raw))
    except (FieldError, ValueError):
        return None  # not what this version's schema says: it stays
    return {name: _plain(getattr(told, name)) for name in _names(message)}


def _names(message: type[Message]) -> tuple[str, ...]:
    return tuple(getattr(message, "__dataclass_fields__", {}))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _text(value: dict[str, Any]) -> str:
    return canonical_json(value).decode()
