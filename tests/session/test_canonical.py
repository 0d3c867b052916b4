"""A row has one sequence of bytes, which anybody can compute from the standard."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabot_session.canonical import LARGEST, canonical_json, read_row, row_bytes
from sabot_session.errors import BadRow, RecordDamaged
from sabot_session.rows import Actor, Authentication, DeviceEventId, NumberedRow, Row
from sabot_table.procedure import TableRole

ROW = NumberedRow(
    3,
    Row(
        "void",
        1_789_000_000,
        Actor("d7", TableRole.DEALER, Authentication.SIGNED_IN),
        {"why": "Karte verklemmt „jam“", "give_back": None, "countersign": True},
        12,
        "MD3 13.D",
        "a-1",
        DeviceEventId("SABOT001", "00ff", 2, 9),
    ),
)
BYTES = (
    '{"act":"a-1","actor":{"how":"signed_in","person":"d7","role":"dealer"},"at_s":1789000000,'
    '"clause":"MD3 13.D","data":{"countersign":true,"give_back":null,"why":"Karte verklemmt „jam“"},'
    '"follows":{"boot":2,"memory_id":"00ff","number":9,"serial":"SABOT001"},"kind":"void","number":3,'
    '"round":12}'
).encode()


def test_the_bytes_of_a_row() -> None:
    """They never change: a chain over old records is computed from them."""
    assert row_bytes(ROW) == BYTES
    assert read_row(BYTES) == ROW


def test_the_standards_example_of_texts() -> None:
    """RFC 8785, 3.2.2.2 and 3.2.3: which characters are escaped, and how."""
    assert canonical_json({"b": '\u20ac$\u000f\nA\'B"\\\\"/', "a": [None, True, False]}) == (
        b'{"a":[null,true,false],"b":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.dictionaries(st.sampled_from("klm"), JSON, max_size=3), number=st.integers(1, LARGEST))
def test_rows_come_back_as_they_were(data: dict[str, Any], number: int) -> None:
    numbered = NumberedRow(number, Row("idle", 5, ROW.row.actor, data))
    body = row_bytes(numbered)
    assert read_row(body) == numbered
    shuffled = json.dumps(dict(reversed(list(json.loads(body).items()))), separators=(",", ":"))
    assert row_bytes(NumberedRow(number, Row("idle", 5, ROW.row.actor, json.loads(shuffled)["data"]))) == body


@pytest.mark.parametrize("value", [1.5, LARGEST + 1, {"ä": 1}, b"x", {1: 2}, "\ud800", [{"a": 0.0}]])
def test_values_without_one_form_are_refused(value: Any) -> None:
    with pytest.raises(BadRow):
        canonical_json(value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        BYTES[:-1],
        BYTES.replace(b'"round":12', b'"round": 12'),
        BYTES.replace(b'"round":12', b'"round":12.0'),
        BYTES.replace(b'"round":12', b'"round":12,"more":1'),
        BYTES.replace(b"signed_in", b"trusted"),
        BYTES.replace(b'"kind":"void",', b""),
    ],
)
def test_other_bytes_are_no_row(body: bytes) -> None:
    with pytest.raises(RecordDamaged):
        read_row(body)
