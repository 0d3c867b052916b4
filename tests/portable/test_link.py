"""The link: once and in order through a window, with RFC 6298's timer and a named end."""

from pair import Pair, frames
from world import KEY

from sabot_protocol import link as link_module
from sabot_protocol import ticks, wire_constants
from sabot_protocol.codec import CODEC
from sabot_protocol.diagnostics import Diagnostics, read_header
from sabot_protocol.errors import FrameSize
from sabot_protocol.frame import Decoder
from sabot_protocol.link import (
    ACK_DELAY_MS,
    FIRST_RTO_MS,
    KEEP_ALIVE_MS,
    MAX_RTO_MS,
    MAX_SENDS,
    MIN_RTO_MS,
    SILENCE_MS,
    Link,
)
from sabot_protocol.notifications import RequestAnswered, SessionDown
from sabot_protocol.schema import COUNTERS
from sabot_protocol.session import Session
from sabot_protocol.wire_constants import REQUEST

HASH = bytes(range(32))


def ends(window=4, now=0):
    a = Link(Session(KEY, HASH, True), window, window, 249, Diagnostics(), now)
    b = Link(Session(KEY, HASH, False), window, window, 249, Diagnostics(), now)
    return a, b


def packets(some_frames):
    return [Decoder().feed(bytes(each))[0][0] for each in some_frames]


def send(link, count, first=0):
    for n in range(first, first + count):
        link.send(REQUEST, 1, 0, n, b"")


def numbers(delivered):
    return [each[3] for each in delivered]


def give(link, some_frames, now):
    delivered = []
    for packet in packets(some_frames):
        delivered += link.receive(packet, now)
    return numbers(delivered)


def test_no_more_than_the_window_is_under_way():
    a, b = ends(4)
    send(a, 10)
    assert a.room() < 0
    out = a.poll(0)
    assert len(out) == 4
    assert a.poll(1) == []
    assert give(b, out, 1) == [0, 1, 2, 3]
    assert give(a, b.poll(1), 2) == []
    assert give(b, a.poll(2), 2) == [4, 5, 6, 7]


def test_in_order_though_the_first_is_lost():
    a, b = ends(4)
    send(a, 4)
    out = a.poll(0)
    assert give(b, out[1:], 1) == []
    acks = b.poll(1)
    assert len(acks) == 1  # something is missing: said at once
    give(a, acks, 2)
    again = a.poll(2)
    assert len(again) == 1  # only the one that was lost, without waiting for the timer
    assert give(b, again, 3) == [0, 1, 2, 3]
    assert a._diagnostics.retransmitted == 1
    assert a._diagnostics.timeouts == 0


def test_the_window_reaches_from_the_oldest_message_not_acknowledged():
    a, b = ends(4)
    send(a, 8)
    out = a.poll(0)
    give(b, out[1:], 1)  # the first is lost
    give(a, b.poll(1), 2)
    assert a.room() < 0
    again = a.poll(2)
    assert len(again) == 1  # only the first: the peer has no place for a fifth
    assert give(b, again, 3) == [0, 1, 2, 3]
    assert b._diagnostics.out_of_window == 0


def test_a_repeat_is_counted_and_acknowledged_again():
    a, b = ends(4)
    send(a, 1)
    assert give(b, a.poll(0), 0) == [0]
    again = a.poll(FIRST_RTO_MS)
    assert len(again) == 1
    assert give(b, again, FIRST_RTO_MS) == []
    assert b._diagnostics.duplicates == 1
    give(a, b.poll(FIRST_RTO_MS), FIRST_RTO_MS)
    assert a.idle()


def test_acknowledgements_ride_along_and_come_alone_only_when_late():
    a, b = ends(16)
    send(a, 1)
    give(b, a.poll(0), 0)
    b.send(wire_constants.ANSWER, 1, 0, 0, b"")
    out = b.poll(1)
    assert len(out) == 1
    give(a, out, 1)
    assert a.idle()
    assert a.poll(ACK_DELAY_MS) == []
    assert len(a.poll(1 + ACK_DELAY_MS)) == 1


def test_the_timer_is_rfc_6298():
    a, _ = ends()
    assert a.rto_ms == FIRST_RTO_MS
    a._measure(200)  # SRTT 200, RTTVAR 100: 200 + 4 * 100
    assert a.rto_ms == 600
    a._measure(200)  # RTTVAR 3/4 of 100
    assert a.rto_ms == 500
    a._measure(280)  # RTTVAR 75 * 3/4 + 80/4 = 76 (whole numbers), SRTT 210
    assert 505 <= a.rto_ms <= 520
    for _ in range(50):
        a._measure(1)
    assert a.rto_ms == MIN_RTO_MS
    for _ in range(50):
        a._measure(5000)
    assert a.rto_ms == MAX_RTO_MS


def test_the_timer_backs_off_and_a_fresh_round_trip_mends_it():
    a, b = ends()
    send(a, 1)
    a.poll(0)
    assert a.deadline() == FIRST_RTO_MS
    now = FIRST_RTO_MS
    assert len(a.poll(now)) == 1
    assert a.rto_ms == 2 * FIRST_RTO_MS
    assert a.poll(now + 2 * FIRST_RTO_MS - 1) == []
    out = a.poll(now + 2 * FIRST_RTO_MS)
    give(b, out, now)
    give(a, b.poll(now + ACK_DELAY_MS), now)
    assert a.rto_ms == 4 * FIRST_RTO_MS  # Karn: a repeated message is not measured
    send(a, 1, 1)
    give(b, a.poll(5000), 5000)
    give(a, b.poll(5000 + ACK_DELAY_MS), 5000 + ACK_DELAY_MS)
    assert a.rto_ms == MIN_RTO_MS


def run_alone(a, now, answer):
    """Poll a link at its deadlines; ``answer`` may let the peer speak. Returns when it ended."""
    sent = 0
    for _ in range(1000):
        sent += len(a.poll(now))
        if a.failure is not None:
            return sent, now
        answer(now)
        now = max(now + 1, a.deadline())
    raise AssertionError("it never ends")


def test_a_message_is_sent_a_bounded_number_of_times():
    a, b = ends()
    send(a, 1)

    def peer_speaks_but_never_hears(now):
        b._last_received_at = now
        b.schedule_ack()
        give(a, b.poll(now), now)

    run_alone(a, 0, peer_speaks_but_never_hears)
    assert a.failure == "retries_exhausted"
    assert a._diagnostics.retransmitted == MAX_SENDS - 1
    assert a.poll(10**6) == []


def test_silence_ends_the_link():
    a, _ = ends()
    sent, ended = run_alone(a, 0, lambda now: None)
    assert a.failure == "peer_silent"
    assert ended == SILENCE_MS
    assert sent == SILENCE_MS // KEEP_ALIVE_MS - 1


def test_keep_alives_keep_it():
    a, b = ends()
    now = 0
    for now in range(0, 60000, 250):
        give(b, a.poll(now), now)
        give(a, b.poll(now), now)
    assert a.failure is None
    assert b.failure is None
    assert a._diagnostics.bare_acks <= now // KEEP_ALIVE_MS + 1


def test_a_spent_counter_ends_it():
    a, _ = ends()
    a.session.sent = 0xFFFFFFFF - 20
    send(a, 1)
    assert a.poll(0) == []
    assert a.failure == "counter_spent"


def test_ticks_and_sequence_numbers_wrap():
    now = ticks.MASK - 500
    a, b = ends(4, now)
    got = []
    for n in range(1000):
        send(a, 1, n)
        got += give(b, a.poll(now), now)
        give(a, b.poll(ticks.add(now, ACK_DELAY_MS)), now)
        now = ticks.add(now, 3)
    assert got == list(range(1000))
    assert a.failure is None
    assert a._diagnostics.retransmitted == 0


def test_what_lies_outside_the_window_is_not_kept():
    a, b = ends(16)
    narrow = Link(b.session, 2, 16, 249, Diagnostics(), 0)
    send(a, 4)
    out = a.poll(0)
    assert give(narrow, out[1:], 0) == []
    assert narrow._diagnostics.out_of_window == 2
    assert len(narrow._out_of_order) == 1


def test_a_body_the_peer_cannot_take_is_refused():
    a = Link(Session(KEY, HASH, True), 4, 4, 192, Diagnostics(), 0)
    a.send(REQUEST, 1, 0, 1, bytes(166))
    try:
        a.send(REQUEST, 1, 0, 1, bytes(167))
    except FrameSize as error:
        assert "166" in str(error)
    else:
        raise AssertionError("taken")


def test_requests_keep_to_the_devices_window():
    pair = Pair(window=3).connect()
    status = CODEC.named("status").id
    asked = [pair.host.request(status, b"", pair.now) for _ in range(20)]
    out = frames(pair.host.poll(pair.now))
    assert len(out) == 3
    for each in out:
        pair.port.receive(each, pair.now)
    pair.settle()
    assert [pair.answer(number)[0] for number in asked] == ["ok"] * 20


def test_a_late_answer_matches_no_newer_request():
    pair = Pair().connect()
    status = CODEC.named("status").id
    old = pair.host.request(status, b"", pair.now, 50)
    out = pair.host.poll(pair.now)
    pair.port.receive(out, pair.now)
    late = pair.port.poll(pair.now)
    pair.now += 60
    pair.host.poll(pair.now)
    pair.heard += pair.host.take_notifications()
    ended = [(each.request_id, each.reason) for each in pair.heard if hasattr(each, "reason")]
    assert ended == [(old, "timed_out")]
    new = pair.host.request(status, b"", pair.now)
    pair.host.receive(late, pair.now)
    assert [each for each in pair.host.take_notifications() if isinstance(each, RequestAnswered)] == []
    assert pair.host.diagnostics.late_answers == 1
    pair.settle()
    assert pair.answer(new)[0] == "ok"


def test_a_rebooted_device_is_noticed_at_once():
    pair = Pair().connect()
    first_boot = pair.device.boot_id
    pair.boot()
    pair.host.request(CODEC.named("status").id, b"", pair.now)
    pair.settle()
    assert pair.host.up
    assert pair.device.boot_id == first_boot + 1
    assert pair.heard[-1].status == 0
    ups = [each for each in pair.heard if hasattr(each, "rebooted")]
    assert [each.rebooted for each in ups] == [False, True]


def test_a_forged_no_session_ends_nothing():
    pair = Pair().connect()
    session = pair.host._link.session
    pair.port.handshake.send("no_session", (99, session.id))
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    assert pair.host._link.session is session
    assert pair.ask("status")[0] == "ok"
    assert pair.happened(SessionDown) == []


def test_counters_and_the_last_hundred_headers_are_kept_at_each_end():
    pair = Pair().connect()
    for _ in range(80):
        pair.ask("status")
    pair.port.receive(b"noise\x00", pair.now)
    values = pair.ask("counters")[1][0]
    named = dict(zip(COUNTERS, values))
    assert named["bad_encoding"] == 1
    assert named["frames_in"] >= 80
    assert pair.host.diagnostics.header_count() == 100
    seen = []
    skip = 0
    while skip < 100:
        kept, headers = pair.ask("trace", skip)[1]
        assert kept == 100
        seen += [read_header(headers, index) for index in range(len(headers) // 16)]
        skip += 10
    assert len(seen) == 100
    assert seen[0][6] == CODEC.named("trace").id
    record = Diagnostics()
    assert [name for name in COUNTERS if not hasattr(record, name)] == []


def test_an_acknowledgement_of_what_was_not_sent_is_ignored():
    a, b = ends(4)
    send(a, 6)
    a.poll(0)
    packet = b.session.seal(0, 5, 0xFFFF, wire_constants.BARE, 0, 0, 0, b"")
    a.receive(bytes(packet), 1)
    assert not a.idle()
    assert a.room() < 0
    packet = b.session.seal(0, 4, 0, wire_constants.BARE, 0, 0, 0, b"")
    a.receive(bytes(packet), 2)
    assert len(a.poll(2)) == 2


def test_what_was_acknowledged_out_of_order_does_not_make_the_rest_the_future():
    a, b = ends(4)
    send(a, 4)
    out = a.poll(0)
    give(b, out[2:], 1)
    give(a, b.poll(1), 2)  # the last two are there
    give(b, a.poll(2), 3)
    give(a, b.poll(3), 4)
    assert a.idle()


def test_a_closing_packet_ends_the_link_by_name():
    a, b = ends(4)
    b.receive(packets([a.close(1)])[0], 2)
    assert b.failure == link_module.CLOSED_BY_PEER
    assert b.poll(3) == []
