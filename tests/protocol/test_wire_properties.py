"""Properties of frames, sessions and the link, for whatever hypothesis thinks of."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from sabot_protocol.diagnostics import Diagnostics
from sabot_protocol.frame import MAX_BLOCK, MAX_PAYLOAD, Decoder, encode
from sabot_protocol.link import ACK_DELAY_MS, Link
from sabot_protocol.session import Session
from sabot_protocol.wire_constants import REQUEST

KEY = bytes(range(32))
payloads = st.binary(min_size=1, max_size=MAX_PAYLOAD)


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """Data cut at these places."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(payloads, max_size=6), st.lists(st.integers(0, 2000), max_size=20))
def test_frames_come_out_as_they_went_in_whatever_the_chunks(sent: list[bytes], cuts: list[int]) -> None:
    decoder = Decoder()
    stream = b"".join(bytes(encode(each)) for each in sent)
    found = [each for chunk in chunked(stream, cuts) for each in decoder.feed(chunk)]
    assert found == [(each, None) for each in sent]


@given(payloads)
def test_a_frame_holds_one_delimiter_and_fits_one_block(payload: bytes) -> None:
    frame = encode(payload)
    assert frame.count(0) == 1
    assert frame[-1] == 0
    assert 0xFF not in frame[:1]
    assert len(frame) == len(payload) + 6 <= MAX_BLOCK + 1


@given(st.binary(max_size=1500), payloads)
def test_after_any_garbage_and_a_delimiter_the_next_frame_is_found(garbage: bytes, payload: bytes) -> None:
    decoder = Decoder()
    found = decoder.feed(garbage + b"\x00" + bytes(encode(payload)))
    assert found[-1] == (payload, None)
    for inside, why in found[:-1]:
        assert (inside is None) == (why in ("crc", "length", "overrun", "encoding"))


@given(payloads, st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_never_gives_another_payload(payload: bytes, at: int, flip: int) -> None:
    frame = encode(payload)
    frame[at % (len(frame) - 1)] ^= flip
    got = [inside for inside, _ in Decoder().feed(bytes(frame)) if inside is not None]
    assert got == []


genuine = st.tuples(st.just("seal"), st.binary(max_size=40), st.integers(0, 255))
replayed = st.tuples(st.just("replay"), st.integers(0, 50), st.just(0))
tampered = st.tuples(st.just("tamper"), st.integers(0, 5000), st.integers(1, 255))
reflected = st.tuples(st.just("reflect"), st.integers(0, 50), st.just(0))
dropped = st.tuples(st.just("drop"), st.binary(max_size=4), st.just(0))
cut = st.tuples(st.just("cut"), st.integers(0, 100), st.just(0))


@given(st.lists(st.one_of(genuine, replayed, tampered, reflected, dropped, cut), max_size=40))
def test_a_session_takes_each_genuine_packet_once_and_nothing_else(
    steps: list[tuple[str, object, int]],
) -> None:
    host, device = Session(KEY, bytes(32), True), Session(KEY, bytes(32), False)
    sealed: list[bytes] = []
    for what, value, number in steps:
        if what in ("seal", "drop"):
            assert isinstance(value, bytes)
            sealed.append(bytes(host.seal(1, 2, 3, 4, 5, 6, number, value)))
            if what == "seal":
                assert device.open(sealed[-1])
                assert device.head[3:] == (1, 2, 3, 4, 5, 6, number)
                assert device.body == value
            continue
        if not sealed:
            continue
        assert isinstance(value, int)
        packet = bytearray(sealed[-1] if what in ("tamper", "cut") else sealed[value % len(sealed)])
        if what == "tamper":
            packet[value % len(packet)] ^= number
        elif what == "cut":
            packet = packet[: value % len(packet)]
        taken = device.received
        if what == "reflect":
            assert not host.open(bytes(packet))
        elif what == "replay" and int.from_bytes(packet[3:7], "little") > taken:
            continue  # not a replay: one that was dropped, delivered at last
        else:
            assert not device.open(bytes(packet))
            assert device.received == taken


class Joined:
    """Two links with a queue of frames each way, and what was sent and delivered."""

    def __init__(self, window_a: int, window_b: int) -> None:
        self.now = 0
        self.links = (
            Link(Session(KEY, bytes(32), True), window_a, window_b, 249, Diagnostics(), 0),
            Link(Session(KEY, bytes(32), False), window_b, window_a, 249, Diagnostics(), 0),
        )
        self.on_the_way: tuple[list[bytes], list[bytes]] = ([], [])  # to link 0, to link 1
        self.sent: tuple[list[int], list[int]] = ([], [])
        self.got: tuple[list[int], list[int]] = ([], [])

    def send(self, side: int) -> None:
        self.sent[side].append(len(self.sent[side]))
        self.links[side].send(REQUEST, 1, 0, self.sent[side][-1], b"x")

    def poll(self) -> None:
        for side in (0, 1):
            self.on_the_way[1 - side].extend(bytes(each) for each in self.links[side].poll(self.now))

    def deliver(self, side: int, lost: bool) -> None:
        if self.on_the_way[side]:
            frame = self.on_the_way[side].pop(0)
            if not lost:
                for payload, _ in Decoder().feed(frame):
                    assert payload is not None
                    delivered = self.links[side].receive(payload, self.now)
                    self.got[side].extend(number for _, _, _, number, _ in delivered)

    def check(self) -> None:
        for side in (0, 1):
            sent = self.sent[1 - side]
            assert self.got[side] == sent[: len(self.got[side])], "in order, none twice, none made up"


moves = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("deliver"), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("wait"), st.integers(1, 400), st.booleans()),
)


@settings(max_examples=3 * settings().max_examples)
@given(st.lists(moves, max_size=80), st.sampled_from([1, 2, 5, 16]), st.sampled_from([1, 3, 16]))
def test_the_link_delivers_once_and_in_order_or_ends_by_name(
    script: list[tuple[str, int, bool]], window_a: int, window_b: int
) -> None:
    joined = Joined(window_a, window_b)
    for what, value, lost in script:
        if what == "send":
            joined.send(value)
        elif what == "deliver":
            joined.deliver(value, lost)
        else:
            joined.now += value
        joined.poll()
        joined.check()
        for side in (0, 1):
            assert len(joined.links[side]._in_flight) <= (window_b, window_a)[side]
    # From here on nothing is lost: all arrives, unless a link has ended before, and that has a name.
    for _ in range(4000):
        for side in (0, 1):
            joined.deliver(side, lost=False)
        joined.now += ACK_DELAY_MS // 2
        joined.poll()
        joined.check()
        if all(link.idle() for link in joined.links) and not any(joined.on_the_way):
            break
    failures = [link.failure for link in joined.links if link.failure is not None]
    if failures:
        assert set(failures) <= {"peer_silent", "retries_exhausted"}
    else:
        assert joined.got == (joined.sent[1], joined.sent[0])
