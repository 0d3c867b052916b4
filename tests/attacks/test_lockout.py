"""Attacks that use the protection against guessing to keep others out."""

from pair import BY_FLOOR, FLOOR_SLOT, Pair, frames, payload
from tests.attacks.two_hosts import beside
from world import KEY

from sabot_protocol import frame
from sabot_protocol.codec import CODEC
from sabot_protocol.device_port import DevicePort
from sabot_protocol.host_protocol import OWNER

WRONG = (FLOOR_SLOT, b"w" * 32)


def _wrong_prove(pair: Pair, port: DevicePort) -> None:
    hello = CODEC.pack("hello", pair.rng.bytes(16), b"STRANGER", 0, 1, 1, 0, b"schema01", 16, 249)
    port.receive(bytes(frame.encode(b"\x01\x05" + hello)), pair.now)
    if port.handshake.pending is not None:
        hash = port.handshake.pending[2]
        prove = CODEC.pack("prove", hash[0] | hash[1] << 8, bytes(16))
        port.receive(bytes(frame.encode(b"\x01\x07" + prove)), pair.now)


def test_wrong_proofs_lock_nobody_out() -> None:
    """Five wrong proofs, from whatever session, refused every person's elevation for a minute.

    Nothing was reported, and it could be repeated for ever.
    """
    pair = Pair().people().connect()
    for _ in range(50):
        assert pair.ask("mark_out_of_order", by=WRONG)[0] == "bad_credential"
    assert pair.ask("mark_out_of_order", by=BY_FLOOR)[0] == "ok"
    assert pair.events("proofs_refused")[0] == (FLOOR_SLOT, 1, 1)


def test_wrong_handshakes_delay_only_their_own_cable() -> None:
    """A wrong proof had no cost at all: a stranger could try as fast as the cable allows."""
    pair = Pair().people().connect()
    cable = DevicePort(pair.device)
    tried = 0
    for _ in range(100):  # five seconds
        pair.now += 50
        before = cable.diagnostics.bad_proofs
        _wrong_prove(pair, cable)
        tried += cable.diagnostics.bad_proofs - before
        cable.poll(pair.now)
        assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    assert tried == 5
    assert beside(pair, KEY, b"SPARE-PC").host.up


def test_wrong_proofs_are_counted_and_do_not_fill_the_log() -> None:
    """Wrong proofs left no trace after the next start."""
    pair = Pair().people().connect()
    for _ in range(40):
        pair.ask("mark_out_of_order", by=WRONG)
    pair.wait(60_000, 1000)
    assert pair.events("proofs_refused") == [(FLOOR_SLOT, 1, 1), (FLOOR_SLOT, 39, 40)]
    pair.ask("mark_out_of_order", by=WRONG)
    pair.boot()
    pair.connect(OWNER)
    pair.ask("mark_out_of_order", by=WRONG)
    assert [total for _, _, total in pair.events("proofs_refused")][-1] >= 41


def test_wrong_proofs_without_a_key_do_not_flush_what_happened() -> None:
    """One wrong proof a minute made 1,532 events in a day, without any key.

    They overwrote the 64 events that wait for an owner within an hour, and the log of 1,000 rows in a night.
    """
    pair = Pair().people().connect()
    cable = DevicePort(pair.device)
    before = pair.device.events.last
    for _ in range(24 * 60):
        pair.now += 60_000
        _wrong_prove(pair, cable)
        cable.poll(pair.now)
    assert cable.diagnostics.bad_proofs == 24 * 60
    assert 24 <= pair.device.events.last - before < 40
    for _ in range(3):  # the rest is told, and then it is quiet
        pair.now += 7_200_000
        cable.poll(pair.now)
    for _ in range(3):  # the first is told at once, the others together after a minute
        _wrong_prove(pair, cable)
        pair.now += 2_000
        cable.poll(pair.now)
    pair.now += 60_000
    cable.poll(pair.now)
    assert [count for _, count, _ in pair.events("proofs_refused")][-2:] == [1, 2]


def test_a_stranger_does_not_end_the_owners_session_on_its_cable() -> None:
    """A handshake that is never proved must not touch the session that runs; it held before as well."""
    pair = Pair().connect()
    _wrong_prove(pair, pair.port)
    said = [payload(each)[:2] for each in frames(pair.port.poll(pair.now))]
    assert b"\x02\x08" in said
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
