"""The golden vectors, held against the typed classes and the construct objects.

``tests/portable/test_vectors.py`` holds them against codec and frame, on CPython and on MicroPython.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from construct import ConstructError

from sabot_protocol import schema
from sabot_protocol.errors import FieldError
from sabot_protocol.host import constructs
from sabot_protocol.host.message_base import MessageBody, astuple, from_values
from sabot_protocol.host.messages import BY_NAME, ERRORS_BY_CODE

VECTORS = Path(__file__).parents[2] / "protocol" / "vectors"
MESSAGES = json.loads((VECTORS / "messages.json").read_text(encoding="utf-8"))
FRAMES = json.loads((VECTORS / "frames.json").read_text(encoding="utf-8"))

Vector = dict[str, Any]


def typed(vector: Vector) -> type[MessageBody]:
    if vector["of"] == "message":
        return BY_NAME[vector["name"]]
    return next(each for each in ERRORS_BY_CODE.values() if vector["name"] == each.NAME)


def values(vector: Vector) -> list[Any]:
    return [bytes.fromhex(each["hex"]) if isinstance(each, dict) else each for each in vector["values"]]


def fields_of(vector: Vector) -> int:
    return len(typed(vector).__dataclass_fields__)  # type: ignore[attr-defined]


def test_every_message_and_error_has_vectors_of_each_sort() -> None:
    names = {("message", row[1], bool(row[5])) for row in schema.MESSAGES}
    names |= {("error", row[1], bool(row[2])) for row in schema.ERRORS}
    for sort in ("packed", "refused_values"):
        assert {(each["of"], each["name"]) for each in MESSAGES[sort]} == {name[:2] for name in names}
    refused = {(each["of"], each["name"]) for each in MESSAGES["refused_bytes"]}
    assert {name[:2] for name in names if name[2]} <= refused


def test_every_number_is_refused_below_and_above() -> None:
    rows: tuple[tuple[Any, ...], ...] = schema.MESSAGES
    for _, name, _, _, _, fields in rows:
        for index, field in enumerate(fields):
            if field[1] in ("u8", "u16", "u32", "i8", "i16", "i32"):
                tried = {
                    vector["values"][index]
                    for vector in MESSAGES["refused_values"]
                    if vector["name"] == name and vector["field"] == index
                    if not isinstance(vector["values"][index], dict)
                }
                assert {field[2] - 1, field[3] + 1} <= tried, (name, field[0])


def test_typed_classes_pack_and_unpack_to_the_byte() -> None:
    for vector in MESSAGES["packed"]:
        made = from_values(typed(vector), values(vector))
        assert made.pack().hex() == vector["packed"], vector
        assert typed(vector).unpack(bytes.fromhex(vector["packed"])) == made
        assert typed(vector)(*values(vector)).pack() == made.pack()
    for vector in MESSAGES["packed"] + MESSAGES["read_only"]:
        unpacked = astuple(typed(vector).unpack(bytes.fromhex(vector["packed"])))
        assert [list(each) if isinstance(each, tuple) else each for each in unpacked] == values(vector)


def test_typed_classes_refuse_with_the_field() -> None:
    for vector in MESSAGES["refused_values"]:
        if len(vector["values"]) != fields_of(vector):
            continue
        with pytest.raises(FieldError) as caught:
            from_values(typed(vector), values(vector)).pack()
        assert caught.value.index == vector["field"], vector
        assert caught.value.message == vector["name"]
    for vector in MESSAGES["refused_bytes"]:
        with pytest.raises(FieldError) as caught:
            typed(vector).unpack(bytes.fromhex(vector["packed"]))
        assert caught.value.index == vector["field"], vector


def test_constructs_agree() -> None:
    """Compiled ones too: a validator that is lost in compiling would take what is refused here."""
    for vector in MESSAGES["refused_bytes"]:
        if vector["of"] == "message":
            with pytest.raises(ConstructError):
                constructs.compiled(vector["name"]).parse(bytes.fromhex(vector["packed"]))
    for vector in MESSAGES["packed"]:
        if vector["of"] == "message":
            packed = bytes.fromhex(vector["packed"])
            tree = constructs.compiled(vector["name"]).parse(packed)
            assert constructs.compiled(vector["name"]).build(tree) == packed
            assert tree == constructs.MESSAGES[vector["name"]].parse(packed)


def test_frames_agree() -> None:
    for vector in FRAMES["frames"]:
        assert constructs.parse_frame(bytes.fromhex(vector["frame"])).hex() == vector["payload"]
