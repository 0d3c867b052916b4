"""Frames: any chunks in, good frames out, and a reason for every bad one."""

from world import Rng

from sabot_protocol.errors import FrameSize
from sabot_protocol.frame import MAX_BLOCK, MAX_PAYLOAD, Decoder, encode


def decoded(data, sizes=(1000,)):
    decoder = Decoder()
    found = []
    at = 0
    turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        turn += 1
        found += decoder.feed(data[at : at + size])
        at += size
    return found


def test_a_known_frame_to_the_byte():
    frame = bytes(encode(b"123456789"))
    assert frame == b"\x0e123456789\x26\x39\xf4\xcb\x00"  # check value 0xCBF43926


def test_round_trip_of_every_length_with_and_without_zeros():
    for size in range(1, MAX_PAYLOAD + 1):
        for payload in (bytes(size), b"\xff" * size, bytes([n & 3 for n in range(size)])):
            frame = bytes(encode(payload))
            assert frame.find(b"\x00") == len(frame) - 1
            assert len(frame) <= MAX_BLOCK + 1
            assert decoded(frame) == [(payload, None)]


def test_chunks_of_any_size():
    rng = Rng(3)
    payloads = [rng.bytes(1 + rng.below(MAX_PAYLOAD)) for _ in range(20)]
    stream = b"".join([bytes(encode(each)) for each in payloads])
    for sizes in ((1,), (2, 3), (255,), (7, 1, 300), (10000,)):
        assert decoded(stream, sizes) == [(each, None) for each in payloads]


def test_too_long_a_payload_is_refused():
    try:
        encode(bytes(MAX_PAYLOAD + 1))
    except FrameSize as error:
        assert "250" in str(error)
    else:
        raise AssertionError("accepted")


def test_every_bad_frame_has_its_reason():
    good = bytes(encode(b"hello"))
    flipped = bytes([good[0], good[1] ^ 1]) + good[2:]
    assert decoded(flipped) == [(None, "crc")]
    assert decoded(b"\x03\x01\x01\x00") == [(None, "length")]
    assert decoded(b"\x01\x01\x01\x01\x01\x00") == [(None, "length")]  # room for a CRC, but no payload
    assert decoded(b"\x09abc\x00") == [(None, "encoding")]
    assert decoded(b"\xff" + b"a" * 100 + b"\x00") == [(None, "encoding")]
    assert decoded(b"\x05" + b"a" * 2000 + b"\x00", (17,)) == [(None, "overrun")]


def test_in_step_again_after_garbage():
    good = bytes(encode(b"hello"))
    for garbage in (b"\x00", b"\x07\x00", b"noise\x00", b"n" * 5000 + b"\x00", good[3:], b"\x00\x00\x00"):
        assert decoded(garbage + good)[-1] == (b"hello", None)


def test_memory_is_bounded():
    decoder = Decoder()
    for _ in range(50):
        decoder.feed(b"x" * 1000)
    assert len(decoder._block) == MAX_BLOCK
    assert decoder.feed(b"\x00") == [(None, "overrun")]
