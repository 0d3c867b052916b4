"""Three ways to read and write messages, which must agree on everything: codec, typed classes, construct."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabot_protocol import schema
from sabot_protocol.codec import CODEC, MessageCodec
from sabot_protocol.errors import FieldError
from sabot_protocol.host import constructs
from sabot_protocol.host.message_base import MessageBody, astuple, from_values
from sabot_protocol.host.messages import BY_ID, ERRORS_BY_CODE

T = TypeVar("T")
Row = tuple[Any, ...]
NUMBERS = {"u8": (0, 8), "u16": (0, 16), "u32": (0, 32), "i8": (1, 8), "i16": (1, 16), "i32": (1, 32)}
ENUMS: dict[str, list[int]] = {name: [number for _, number in members] for name, members in schema.ENUMS}
MASKS = {name: sum(bit for _, bit in members) for name, members in schema.FLAGS}


class Trio:
    """One message, or one error's details, in the three ways."""

    def __init__(
        self, of: str, name: str, fields: Row, row: MessageCodec | None, typed: type[MessageBody]
    ) -> None:
        assert row is not None
        self.of = of
        self.name = name
        self.fields = fields
        self.row = row
        self.typed = typed

    def __repr__(self) -> str:
        return f"{self.of} {self.name}"

    def construct_packs(self, values: list[Any]) -> bytes:
        build = constructs.build_fields if self.of == "message" else constructs.build_details
        return build(self.name, values)

    def construct_reads(self, data: bytes) -> tuple[Any, ...]:
        parse = constructs.parse_fields if self.of == "message" else constructs.parse_details
        return parse(self.name, data)

    def packed(self, values: list[Any]) -> bytes | None:
        """The values' bytes, on which all three agree; None if all refuse them, for the same field."""
        packed, error = outcome(lambda: self.row.pack(values))
        assert outcome(lambda: from_values(self.typed, values).pack()) == (packed, error)
        assert outcome(lambda: self.typed(*values).pack()) == (packed, error)
        if error is not None:
            with pytest.raises(constructs.NotReadable):
                self.construct_packs(values)
            return None
        assert self.construct_packs(values) == packed
        return packed

    def unpacked(self, data: bytes) -> tuple[Any, ...] | None:
        """The values in ``data``, on which all three agree; None if all refuse it, for the same field."""
        values, error = outcome(lambda: self.row.unpack(data))
        assert outcome(lambda: astuple(self.typed.unpack(data))) == (values, error)
        if values is None:
            with pytest.raises(constructs.NotReadable):
                self.construct_reads(data)
            return None
        assert self.construct_reads(data) == values
        assert repr(self.typed.unpack(data)) == repr(from_values(self.typed, values))
        return values


def outcome(call: Callable[[], T]) -> tuple[T | None, dict[str, Any] | None]:
    """What a call returns, or everything its FieldError says."""
    try:
        return call(), None
    except FieldError as error:
        return None, vars(error)


TRIOS = [Trio("message", row[1], row[5], CODEC.find(row[0]), BY_ID[row[0]]) for row in schema.MESSAGES]
TRIOS += [Trio("error", row[1], row[2], CODEC.error(row[0]), ERRORS_BY_CODE[row[0]]) for row in schema.ERRORS]
EXAMPLES = max(4, settings().max_examples // 3)  # of each message; there are more than a hundred
every_message = pytest.mark.parametrize("trio", TRIOS, ids=repr)


def text_of(low: int, high: int) -> st.SearchStrategy[str]:
    """Text of so many bytes."""
    characters = st.characters(exclude_categories=["Cs"])
    return st.text(characters, max_size=high).filter(lambda text: low <= len(text.encode()) <= high)


def allowed(field: Row) -> st.SearchStrategy[Any]:
    """Values a field takes."""
    kind = field[1]
    if kind in NUMBERS:
        return st.integers(field[2], field[3])
    if kind == "enum":
        return st.sampled_from(ENUMS[field[2]])
    if kind == "flags":
        return st.integers(0, 0xFFFF).map(lambda bits: bits & MASKS[field[2]])
    if kind == "bytes":
        return st.binary(min_size=field[2], max_size=field[2])
    if kind == "blob":
        return st.binary(min_size=field[2], max_size=field[3])
    if kind == "text":
        return text_of(field[2], min(field[3], 30)) | st.just("x" * field[3])
    return st.lists(st.integers(field[5], field[6]), min_size=field[3], max_size=field[4])


def refused(field: Row) -> st.SearchStrategy[Any]:
    """Values a field does not take."""
    kind = field[1]
    numbers = kind in NUMBERS or kind in ("enum", "flags")
    wrong: list[st.SearchStrategy[Any]] = [st.none(), st.just(math.nan), st.floats(0, 9), st.just(object)]
    if numbers:
        wrong += [st.booleans(), st.sampled_from(["0", "no such name"]), st.binary(max_size=4)]
        wrong += [st.just([]), st.integers(-(2**70), -(2**32)), st.integers(2**32, 2**70)]
    if kind in NUMBERS:
        wrong += [st.integers(max_value=field[2] - 1), st.integers(field[3] + 1)]
    elif kind == "enum":
        wrong += [st.integers(-5, 300).filter(lambda number: number not in ENUMS[field[2]])]
    elif kind == "flags":
        wrong += [st.integers(-5, 0x1FFFF).filter(lambda bits: bits < 0 or bool(bits & ~MASKS[field[2]]))]
    else:
        wrong += [st.integers(0, 3), st.booleans()]
        low, high = {"bytes": (field[2], field[2]), "array": field[3:5]}.get(kind, field[2:4])
        sizes = st.integers(high + 1, high + 300) | (st.integers(0, low - 1) if low else st.nothing())
        if kind == "text":
            wrong += [sizes.map(lambda size: "x" * size), st.binary(min_size=1, max_size=4)]
            wrong += [st.integers(high // 2 + 1, high).map(lambda size: "é" * size)]
        elif kind == "array":
            wrong += [sizes.map(lambda size: [field[5]] * size)]
            wrong += [st.just([True]), st.just([1.0]), st.just("1")]
            wrong += [st.just([field[6] + 1]), st.just([field[5] - 1]), st.just([None]), st.just(b"\x01")]
        else:
            wrong += [sizes.map(bytes), sizes.map(bytearray), st.text(min_size=1, max_size=3)]
    return st.one_of(wrong)


@every_message
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_allowed_values_come_back_as_they_went(trio: Trio, data: st.DataObject) -> None:
    values = [data.draw(allowed(field)) for field in trio.fields]
    packed = trio.packed(values)
    assert packed is not None
    unpacked = trio.unpacked(packed)
    assert unpacked is not None
    assert [list(each) if isinstance(each, tuple) else each for each in unpacked] == values
    assert trio.typed.unpack(packed).pack() == packed
    received: Any = bytearray(packed)  # as a port may give it
    assert trio.typed.unpack(received) == trio.typed.unpack(packed)


@pytest.mark.slow
@pytest.mark.parametrize("trio", [trio for trio in TRIOS if trio.fields], ids=repr)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_a_value_that_is_not_allowed_is_refused_by_all(trio: Trio, data: st.DataObject) -> None:
    values = [data.draw(allowed(field)) for field in trio.fields]
    index = data.draw(st.integers(0, len(values) - 1))
    values[index] = data.draw(refused(trio.fields[index]))
    assert trio.packed(values) is None


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.sweep(every=3)
@every_message
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_judged_alike_by_all(trio: Trio, data: st.DataObject) -> None:
    """Starts from good bytes, because random ones are nearly always refused for their length."""
    packed = trio.packed([data.draw(allowed(field)) for field in trio.fields])
    assert packed is not None
    damaged = bytearray(packed)
    for _ in range(data.draw(st.integers(1, 3))):
        how = data.draw(st.sampled_from(["change", "change", "cut", "lose", "put", "append"]))
        at = data.draw(st.integers(0, len(damaged)))
        if how == "cut":
            del damaged[at:]
        elif how == "put" or at == len(damaged):
            damaged[at:at] = data.draw(st.binary(min_size=1, max_size=3))
        elif how == "lose":
            del damaged[at]
        elif how == "append":
            damaged += data.draw(st.binary(max_size=3))
        else:
            damaged[at] = data.draw(st.integers(0, 255))
    trio.unpacked(bytes(damaged))


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.sweep(every=3)
@every_message
@settings(max_examples=15, deadline=None)
@given(noise=st.binary(max_size=300))
def test_any_bytes_are_judged_alike_by_all(trio: Trio, noise: bytes) -> None:
    trio.unpacked(noise)


@pytest.mark.parametrize("trio", [trio for trio in TRIOS if trio.row.frozen], ids=repr)
@given(data=st.data(), more=st.binary(min_size=1, max_size=8))
@settings(max_examples=5, deadline=None)
def test_frozen_messages_ignore_what_is_added(trio: Trio, data: st.DataObject, more: bytes) -> None:
    packed = trio.packed([data.draw(allowed(field)) for field in trio.fields])
    assert packed is not None
    assert trio.unpacked(packed + more) == trio.unpacked(packed)


@pytest.mark.slow
@pytest.mark.parametrize("trio", [trio for trio in TRIOS if not trio.row.frozen], ids=repr)
@given(data=st.data(), more=st.binary(min_size=1, max_size=8))
@settings(max_examples=5, deadline=None)
def test_all_others_refuse_bytes_too_many(trio: Trio, data: st.DataObject, more: bytes) -> None:
    packed = trio.packed([data.draw(allowed(field)) for field in trio.fields])
    assert packed is not None
    assert trio.unpacked(packed + more) is None
