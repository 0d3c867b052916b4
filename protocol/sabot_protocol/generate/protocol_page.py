"""Renders the protocol page and its worked examples: prose from templates, the rest from the code."""

import textwrap
from pathlib import Path

from sabot_protocol import (
    device_handshake,
    device_protocol,
    device_requests,
    diagnostics,
    event_store,
    frame,
    host_protocol,
    key_store,
    ledger,
    link,
    meanings,
    pending_requests,
    record_store,
    schema,
    wire_constants,
)
from sabot_protocol.codec import CODEC
from sabot_protocol.generate.exchanges import examples
from sabot_protocol.schema_hash import SCHEMA_HASH

_TEMPLATE = Path(__file__).with_name("protocol_page.md")
_EXAMPLES = Path(__file__).with_name("examples_page.md")

_WIDTHS = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4}


def render() -> str:
    """The whole page."""
    text = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in _figures().items():
        text = text.replace("{" + name + "}", str(value))
    return text


def render_examples() -> str:
    """The page of worked examples."""
    return _EXAMPLES.read_text(encoding="utf-8").replace("{EXAMPLES}", examples())


def _figures() -> dict[str, object]:
    return {
        "MAX_PAYLOAD": frame.MAX_PAYLOAD,
        "MAX_RAW": frame.MAX_PAYLOAD + frame.CRC_SIZE,
        "MAX_BLOCK": frame.MAX_BLOCK,
        "MAX_BODY": frame.MAX_PAYLOAD - wire_constants.OVERHEAD,
        "OVERHEAD": wire_constants.OVERHEAD,
        "MAX_WINDOW": schema.MAX_WINDOW,
        "MAX_SENDS": link.MAX_SENDS,
        "FIRST_RTO_MS": link.FIRST_RTO_MS,
        "MIN_RTO_MS": link.MIN_RTO_MS,
        "MAX_RTO_MS": link.MAX_RTO_MS,
        "GRANULARITY_MS": link.GRANULARITY_MS,
        "ACK_DELAY_MS": link.ACK_DELAY_MS,
        "KEEP_ALIVE_MS": link.KEEP_ALIVE_MS,
        "SILENCE_MS": link.SILENCE_MS,
        "HINT_EVERY_MS": device_handshake.HINT_EVERY_MS,
        "EVENT_RESERVE": event_store.RESERVE,
        "BUSY_MS": pending_requests.BUSY_MS,
        "HANDSHAKE_BOUND_MS": _handshake_bound_ms(),
        "STALE_AFTER_S": device_protocol.STALE_AFTER_S,
        "LEAP_S": device_protocol.LEAP_S,
        "FOLD_S": device_protocol.FOLD_S,
        "LONGEST_FOLD_S": device_protocol.LONGEST_FOLD_S,
        "AFTER_WRONG_PROOF_MS": device_handshake.AFTER_WRONG_PROOF_MS,
        "OPEN_S": key_store.OPEN_S,
        "MAX_AHEAD": wire_constants.MAX_AHEAD,
        "MAX_REQUESTS": host_protocol.MAX_REQUESTS,
        "LEDGER_SLOTS": record_store.COMMAND_SLOTS,
        "MAX_ANSWER": ledger.MAX_ANSWER,
        "TRACE_LENGTH": diagnostics.TRACE_LENGTH,
        "TRACE_PAGE": device_requests.TRACE_PAGE,
        "SCHEMA_HASH": SCHEMA_HASH.hex(),
        "VERSION": f"{schema.MAJOR}.{schema.MINOR}",
        "MESSAGES": _messages(),
        "ENUMS": _enums(),
        "ERRORS": _errors(),
        "COUNTERS": _named(schema.COUNTERS, meanings.COUNTERS),
        "WEAR": _named(schema.WEAR, meanings.WEAR),
        "EVIDENCE": _names(device_protocol.EVIDENCE),
        "MOST_CHEAP": device_protocol.MOST_CHEAP,
        "CHATTER": ", ".join(f"`{name}`" for name in device_protocol.CHATTER),
        "MOST_CHATTER": device_protocol.MOST_CHATTER,
        "RESERVED": "\n".join(f"- 0x{id:02x} {name}" for id, name in schema.RESERVED),
    }


def _handshake_bound_ms() -> int:
    """How long a message outside a session is repeated before it counts as unanswered."""
    total, pause = 0, link.FIRST_RTO_MS
    for _ in range(link.MAX_SENDS):
        total += pause
        pause = min(pause * 2, link.MAX_RTO_MS)
    return total


def _messages() -> str:
    parts = []
    title = ""
    for row in schema.MESSAGES:
        group = _group(row[0], row[2])
        if group != title:
            title = group
            parts.append(f"### {title}")
        parts.append(_message(row))
    return "\n\n".join(parts)


def _group(id: int, kind: str) -> str:
    if kind == "clear":
        return "Outside a session (frozen)"
    if kind == "event":
        return "Events"
    return "In a session (frozen)" if id < schema.FROZEN_BELOW else "Requests and answers"


def _message(row: tuple) -> str:  # type: ignore[type-arg]
    id, name, kind, answer, roles, fields = row
    facts = [f"{kind}"]
    if kind in ("query", "command"):
        facts.append("asked by " + ("anyone" if roles == "any" else ", ".join(roles.split())))
    if answer:
        facts.append(f"answered by `{answer}`")
    lines = [f"#### `0x{id:02x}` {name}", "", meanings.MESSAGES[name], f"*{'; '.join(facts)}.*"]
    if fields:
        lines += ["", "| field | type | bytes | allowed | meaning |", "| --- | --- | --- | --- | --- |"]
        lines += [_field(f"{name}.{field[0]}", field, meanings.FIELDS) for field in fields]
    else:
        lines += ["", "No fields."]
    return "\n".join(lines)


def _field(key: str, field: tuple, words: dict[str, str]) -> str:  # type: ignore[type-arg]
    kind, size, allowed = field[1], "", ""
    if kind in _WIDTHS:
        size, allowed = str(_WIDTHS[kind]), _span(field[2], field[3])
    elif kind == "enum":
        kind, size, allowed = f"enum {field[2]}", "1", "its numbers"
    elif kind == "flags":
        kind, size, allowed = f"flags {field[2]}", "2", "its bits"
    elif kind == "bytes":
        size = str(field[2])
    elif kind == "array":
        width = _WIDTHS[field[2]]
        kind, size = f"array of {field[2]}", f"1 + {width} each"
        allowed = f"{field[3]} to {field[4]} items"
        if (field[5], field[6]) != _range(field[2]):
            allowed += f", each {_span(field[5], field[6])}"
    else:
        size, allowed = "1 + length", f"{field[2]} to {field[3]} bytes"
    unit = meanings.UNITS.get(key)
    meaning = words[key] + (f" ({unit})" if unit else "")
    return f"| {field[0]} | {kind} | {size} | {allowed} | {meaning} |"


def _range(kind: str) -> tuple[int, int]:
    """The least and the greatest number of a type."""
    bits = 8 * _WIDTHS[kind]
    return (0, (1 << bits) - 1) if kind[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _span(low: int, high: int) -> str:
    return f"{low} to {high}"


def _enums() -> str:
    parts = []
    for name, members in schema.ENUMS:
        rows = [
            f"| {number} | {member} | {meanings.MEMBERS[f'{name}.{member}']} |" for member, number in members
        ]
        parts.append(_named_table(name, meanings.ENUMS[name], "number", rows))
    for name, bits in schema.FLAGS:
        rows = [
            f"| 0x{bit:04x} | {member} | {meanings.FLAG_MEMBERS[f'{name}.{member}']} |"
            for member, bit in bits
        ]
        parts.append(_named_table(f"{name} (flags)", meanings.FLAGS[name], "bit", rows))
    return "\n\n".join(parts)


def _named_table(title: str, meaning: str, first: str, rows: list[str]) -> str:
    head = [f"#### {title}", "", meaning, "", f"| {first} | name | meaning |", "| --- | --- | --- |"]
    return "\n".join(head + rows)


def _errors() -> str:
    parts = []
    for code, name, fields in schema.ERRORS:
        assert CODEC.error(code) is not None
        lines = [f"#### `{code}` {name}", "", meanings.ERRORS[name]]
        lines.append(f"*What to do:* {meanings.REMEDIES[name]}")
        if fields:
            lines += ["", "| detail | type | meaning |", "| --- | --- | --- |"]
        for field in fields:
            kind = f"bytes[{field[2]}]" if field[1] == "bytes" else field[1]
            lines.append(f"| {field[0]} | {kind} | {meanings.DETAILS[f'{name}.{field[0]}']} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _named(names: tuple[str, ...], said: dict[str, str]) -> str:
    lines = ["| index | name | counts |", "| --- | --- | --- |"]
    for index, name in enumerate(names):
        lines.append(f"| {index} | {name} | {said[name]} |")
    return "\n".join(lines)


def _names(names: tuple[str, ...]) -> str:
    """Names as one list of the page, in lines of its width."""
    return "\n".join(textwrap.wrap(", ".join(f"`{name}`" for name in names) + ".", 118))
