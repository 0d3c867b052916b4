"""The canonical bytes of a row: what a hash chain is computed over.

RFC 8785 (JSON Canonicalization Scheme): UTF-8, keys sorted, no blanks, integers without fraction. A row holds
no other numbers. The object of a row has these keys: ``act``, ``actor`` (``how``, ``person``, ``role``),
``at_s``, ``clause``, ``data``, ``follows`` (null, or ``boot``, ``memory_id``, ``number``, ``serial``),
``kind``, ``number``, ``round``.
"""

import json
from collections.abc import Mapping, Sequence

from sabot_session.errors import BadRow, RecordDamaged
from sabot_session.rows import Actor, Authentication, DeviceEventId, Json, NumberedRow, Row
from sabot_table.procedure import TableRole

LARGEST = 2**53 - 1  # up to here an integer is the same in every JSON reader (RFC 8785, 3.2.2.3)


def canonical_json(value: Json) -> bytes:
    """The canonical bytes of a value; `BadRow` for a value that has none."""
    _check(value)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"a text that is not Unicode: {error}") from error


def row_bytes(numbered: NumberedRow) -> bytes:
    """The canonical bytes of a row with its number."""
    row, follows = numbered.row, numbered.row.follows
    return canonical_json(
        {
            "act": row.act_id,
            "actor": {"how": row.actor.how, "person": row.actor.person, "role": row.actor.role},
            "at_s": row.at_s,
            "clause": row.clause,
            "data": row.data,
            "follows": None
            if follows is None
            else {
                "boot": follows.boot,
                "memory_id": follows.memory_id,
                "number": follows.number,
                "serial": follows.serial,
            },
            "kind": row.kind,
            "number": numbered.number,
            "round": row.round_id,
        }
    )


def read_row(body: bytes) -> NumberedRow:
    """The row that canonical bytes hold; `RecordDamaged` for any other bytes."""
    try:
        read = json.loads(body)
        follows = read["follows"]
        event = None
        if follows is not None:
            event = DeviceEventId(follows["serial"], follows["memory_id"], follows["boot"], follows["number"])
        actor = read["actor"]
        row = Row(
            kind=read["kind"],
            at_s=read["at_s"],
            actor=Actor(actor["person"], TableRole(actor["role"]), Authentication(actor["how"])),
            data=read["data"],
            round_id=read["round"],
            clause=read["clause"],
            act_id=read["act"],
            follows=event,
        )
        numbered = NumberedRow(read["number"], row)
        same = row_bytes(numbered) == body
    except (ValueError, KeyError, TypeError, AttributeError, BadRow) as error:
        raise RecordDamaged(f"a row that cannot be read: {error!r}") from error
    if not same:
        raise RecordDamaged(f"row {numbered.number}: its bytes are not canonical")
    return numbered


def _check(value: Json) -> None:
    """Integers that every reader reads alike, keys in ASCII, and no float."""
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, int):
        if abs(value) > LARGEST:
            raise BadRow(f"the integer {value} is not the same in every JSON reader")
    elif isinstance(value, (dict, Mapping)):
        for key, each in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise BadRow(f"a key that is not ASCII text: {key!r}")
            _check(each)
    elif isinstance(value, (list, Sequence)) and not isinstance(value, (bytes, bytearray)):
        for each in value:
            _check(each)
    else:
        raise BadRow(f"a value that a record does not hold: {value!r}")
