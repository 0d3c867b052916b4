"""The golden vectors, held against codec and frame. Run from the root of the repository."""

import json

from sabot_protocol.codec import CODEC
from sabot_protocol.errors import FieldError, FrameSize
from sabot_protocol.frame import Decoder, encode, encode_by_parts, encode_in_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from sabot_protocol.codec import MessageCodec

    Vector = dict[str, Any]


def read(name: str, section: str) -> "Iterator[Vector]":
    """One section's vectors, read a line at a time: a board could not hold them all."""
    inside = False
    with open("protocol/vectors/" + name) as file:
        for line in file:
            line = line.strip()
            if line.startswith('"'):
                inside = line.startswith('"' + section + '"')
            elif inside and line.startswith("{"):
                yield json.loads(line[:-1] if line.endswith(",") else line)


def checked(vectors: "Iterable[Vector]") -> "Iterator[Vector]":
    """The vectors, of which there must be some."""
    count = 0
    for vector in vectors:
        count += 1
        yield vector
    assert count


def messages(section: str) -> "Iterator[Vector]":
    return checked(read("messages.json", section))


def frames(section: str) -> "Iterator[Vector]":
    return checked(read("frames.json", section))


def row(vector: "Vector") -> "MessageCodec":
    if vector["of"] == "error":
        return CODEC.error_named(vector["name"])
    return CODEC.named(vector["name"])


def untagged(value: "Any") -> "Any":
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def values(vector: "Vector") -> "list[Any]":
    return [untagged(each) for each in vector["values"]]


def as_sent(unpacked: "tuple[Any, ...]") -> "list[Any]":
    """Unpacked values as JSON has them: an array is a list there."""
    return [list(each) if isinstance(each, tuple) else each for each in unpacked]


def refused_field(call: "Callable[[Any], object]", argument: "Any") -> int | None:
    """The index of the field that is refused; None if nothing is."""
    try:
        call(argument)
    except FieldError as error:
        return error.index
    return None


def test_values_are_packed_to_the_byte() -> None:
    for vector in messages("packed"):
        assert row(vector).pack(values(vector)).hex() == vector["packed"], vector


def test_bytes_are_unpacked_to_the_values() -> None:
    for section in ("packed", "read_only"):
        for vector in messages(section):
            unpacked = row(vector).unpack(bytes.fromhex(vector["packed"]))
            assert as_sent(unpacked) == values(vector), vector


def test_values_the_schema_does_not_allow_are_refused_with_their_field() -> None:
    for vector in messages("refused_values"):
        assert refused_field(row(vector).pack, values(vector)) == vector["field"], vector


def test_bytes_the_schema_does_not_allow_are_refused_with_their_field() -> None:
    for vector in messages("refused_bytes"):
        found = refused_field(row(vector).unpack, bytes.fromhex(vector["packed"]))
        assert found == vector["field"], vector


def test_payloads_are_framed_to_the_byte() -> None:
    for vector in frames("frames"):
        for way in (encode, encode_by_parts, encode_in_place):
            assert bytes(way(bytes.fromhex(vector["payload"]))).hex() == vector["frame"], (way, vector)


def test_frames_give_their_payloads() -> None:
    for vector in frames("frames"):
        found = Decoder().feed(bytes.fromhex(vector["frame"]))
        assert found == [(bytes.fromhex(vector["payload"]), None)], vector


def test_a_payload_too_long_is_refused() -> None:
    for vector in frames("too_long"):
        try:
            encode(bytes.fromhex(vector["payload"]))
        except FrameSize:
            continue
        raise AssertionError("a payload of %d bytes was framed" % (len(vector["payload"]) // 2))


def test_streams_give_payloads_and_reasons_in_any_chunks() -> None:
    for vector in frames("streams"):
        stream = bytes.fromhex(vector["stream"])
        wanted = []
        for each in vector["gives"]:
            payload = bytes.fromhex(each["payload"]) if "payload" in each else None
            wanted.append((payload, each.get("bad")))
        for size in (1, 7, 1000000):
            decoder = Decoder()
            found: list[tuple[bytes | None, str | None]] = []
            for at in range(0, len(stream), size):
                found += decoder.feed(stream[at : at + size])
            assert found == wanted, (vector["about"], size)
