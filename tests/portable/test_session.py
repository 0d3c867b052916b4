"""Sessions: what is replayed, reflected, cut, foreign or changed is dropped and counted, never used."""

from pair import Pair, frames, payload
from world import HOST_ID, KEY, SERIAL

from sabot_protocol import frame, ticks
from sabot_protocol.codec import CODEC
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.errors import RequestNotAllowed
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import OBSERVER, OWNER, HostProtocol
from sabot_protocol.mac import digests_equal_portable, hmac_sha256
from sabot_protocol.notifications import AttachRefused, RequestFailed, SessionDown, SessionUp
from sabot_protocol.session import Session, provision_proof
from sabot_protocol.wire_constants import OVERHEAD

OTHER_KEY = b"x" * 32


def test_hmac_against_rfc_4231():
    assert hmac_sha256(b"\x0b" * 20, b"Hi There") == bytes.fromhex(
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    )
    assert hmac_sha256(b"Jefe", b"what do ya want for nothing?") == bytes.fromhex(
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )
    long_key = b"\xaa" * 131
    assert hmac_sha256(long_key, b"Test Using Larger Than Block-Size Key - Hash Key First") == bytes.fromhex(
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    )


def test_constant_time_comparison_tells_equal_from_different():
    assert digests_equal_portable(b"abc", b"abc")
    assert not digests_equal_portable(b"abc", b"abd")
    assert not digests_equal_portable(b"abc", b"ab")
    assert digests_equal_portable(b"", b"")


def sessions():
    hash = bytes(range(32))
    return Session(KEY, hash, True), Session(KEY, hash, False)


def test_sealed_packets_open_once_at_the_other_end():
    host, device = sessions()
    packet = host.seal(1, 2, 3, 4, 5, 6, 7, b"body")
    assert len(packet) == OVERHEAD + 4
    assert device.open(packet)
    assert device.head[3:] == (1, 2, 3, 4, 5, 6, 7)
    assert device.body == b"body"
    assert not device.open(packet)
    assert device.dropped == "replayed"
    assert not host.open(packet)
    assert host.dropped == "reflected"


def test_a_packet_older_than_the_last_is_dropped():
    host, device = sessions()
    first = host.seal(0, 0, 0, 1, 0, 0, 0, b"1")
    second = host.seal(1, 0, 0, 1, 0, 0, 0, b"2")
    assert device.open(second)
    assert not device.open(first)
    assert device.dropped == "replayed"


def test_every_changed_or_missing_byte_is_noticed():
    host, device = sessions()
    packet = host.seal(1, 2, 3, 4, 5, 6, 7, b"body")
    for at in range(len(packet)):
        for bit in (1, 128):
            changed = bytearray(packet)
            changed[at] ^= bit
            assert not device.open(bytes(changed))
            assert device.dropped in ("bad_mac", "foreign", "malformed", "reflected")
    for size in range(len(packet)):
        assert not device.open(packet[:size])
    assert device.received == 0
    assert device.open(packet)


def test_another_key_or_another_session_opens_nothing():
    host, _ = sessions()
    packet = host.seal(1, 2, 3, 4, 5, 6, 7, b"body")
    stranger = Session(OTHER_KEY, bytes(range(32)), False)
    assert not stranger.open(packet)
    assert stranger.dropped == "bad_mac"
    later = Session(KEY, bytes(range(1, 33)), False)
    assert not later.open(packet)
    assert later.dropped == "foreign"


def test_a_retransmission_has_a_counter_of_its_own():
    pair = Pair().connect()
    pair.sent = []
    number = pair.host.request(CODEC.named("status").id, b"", pair.now)
    lost = pair.host.poll(pair.now)  # never arrives
    pair.now += 400
    pair.settle()
    assert pair.answer(number)[0] == "ok"
    first = payload(frames(lost)[-1])
    again = [payload(each) for each in pair.sent if len(each) == len(frames(lost)[-1])]
    repeats = [each for each in again if each[18:-8] == first[18:-8] and each[7] == first[7]]
    assert repeats
    assert repeats[0][3:7] != first[3:7]
    assert pair.host.diagnostics.retransmitted == 1
    pair.port.receive(bytes(frames(lost)[-1]), pair.now)  # now it comes, late
    assert pair.port.diagnostics.replayed == 1


def test_replays_of_a_whole_session_change_nothing():
    pair = Pair().connect()
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"
    recorded = list(pair.sent)
    state = (pair.device.ledger.newest(HOST_ID), len(pair.shoe.done), pair.device.events.last)
    for each in recorded:
        pair.port.receive(each, pair.now)
    assert (pair.device.ledger.newest(HOST_ID), len(pair.shoe.done), pair.device.events.last) == state
    assert pair.ask("status")[0] == "ok"
    # and after a reboot, with no session at all
    pair.boot()
    for each in recorded:
        pair.port.receive(each, pair.now)
    assert pair.port.link is None
    assert len(pair.shoe.done) == 1


def test_reflected_frames_are_dropped_at_both_ends():
    pair = Pair().connect()
    for each in list(pair.sent):
        pair.host.receive(each, pair.now)
    for each in list(pair.back):
        pair.port.receive(each, pair.now)
    assert pair.host.diagnostics.reflected == len(pair.sent)
    assert pair.port.diagnostics.reflected == len(pair.back)
    assert pair.ask("status")[0] == "ok"


def test_a_new_handshake_replaces_the_session_only_once_proved():
    pair = Pair().connect()
    stranger = HostProtocol(OTHER_KEY, CommandNumbers(b"STRANGER"), pair.rng.bytes)
    stranger.connect(pair.now)
    for _ in range(5):
        pair.port.receive(stranger.poll(pair.now), pair.now)
        stranger.receive(pair.port.poll(pair.now), pair.now)
    assert [each.reason for each in stranger.take_notifications()] == ["device_not_proved"]
    assert pair.ask("status")[0] == "ok"
    # the same with a prove that does not prove
    hello = CODEC.pack("hello", bytes(16), b"STRANGER", 0, 1, 1, 0, b"schema01", 16, 249)
    pair.port.receive(bytes(frame.encode(b"\x01\x05" + hello)), pair.now)
    challenge = payload(frames(pair.port.poll(pair.now))[-1])
    assert challenge[:2] == b"\x02\x06"
    hash = pair.port.handshake.pending[2]
    prove = CODEC.pack("prove", hash[0] | hash[1] << 8, bytes(16))
    pair.port.receive(bytes(frame.encode(b"\x01\x07" + prove)), pair.now)
    assert pair.port.diagnostics.bad_proofs == 1
    assert pair.ask("status")[0] == "ok"
    # and a proved one does, once the second after a wrong proof is over
    pair.wait(1000)
    second = HostProtocol(KEY, CommandNumbers(b"OTHER-PC"), pair.rng.bytes, schema_hash=b"schema01")
    second.connect(pair.now)
    for _ in range(5):
        pair.port.receive(second.poll(pair.now), pair.now)
        second.receive(pair.port.poll(pair.now), pair.now)
    assert [type(each) for each in second.take_notifications()][0] is SessionUp
    assert pair.port.host_id == b"OTHER-PC"
    assert pair.device.owner_id() == b"OTHER-PC"


def test_the_flags_of_identity_are_proved():
    pair = Pair().connect()
    (up,) = [each for each in pair.heard if type(each) is SessionUp]
    assert up.flags == 3  # provisioned, simulator
    pair = Pair()
    pair.host.connect(pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    challenge = bytearray(payload(frames(pair.port.poll(pair.now))[-1]))
    challenge[-2] ^= 2  # somebody on the cable makes a simulator a machine
    pair.host.receive(bytes(frame.encode(challenge)), pair.now)
    assert [each.reason for each in pair.host.take_notifications()] == ["device_not_proved"]


def test_a_lost_first_packet_of_the_session_is_asked_for_again():
    pair = Pair()
    pair.host.connect(pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    pair.port.poll(pair.now)  # the device's first sealed packet is lost
    pair.wait(500)
    assert pair.host.up
    assert pair.port.diagnostics.sessions == 1


def test_there_is_no_default_key():
    pair = Pair(provisioned=False)
    pair.host.connect(pair.now)
    pair.settle()
    assert [each.reason for each in pair.happened(SessionDown)] == ["not_provisioned"]
    for id in range(256):
        for head in (b"\x01", b"\x03"):
            pair.port.receive(bytes(frame.encode(head + bytes((id,)) + bytes(60))), pair.now)
    assert pair.shoe.done == []
    assert pair.port.link is None


def ask_clear(pair, name, *values):
    question = ClearExchange(CODEC, name, values, pair.now)
    pair.port.receive(question.poll(pair.now), pair.now)
    question.receive(pair.port.poll(pair.now))
    return question


def test_provisioning_once_and_then_no_other_key():
    pair = Pair(provisioned=False)
    flags = ask_clear(pair, "identify").answer[3]
    assert flags & 1 == 0
    nonce = b"n" * 16
    for _ in range(2):  # a lost answer may be asked for again
        proof = ask_clear(pair, "provision", nonce, KEY, b"e" * 32).answer[0]
        assert proof == provision_proof(KEY, nonce, SERIAL)
    assert ask_clear(pair, "provision", nonce, OTHER_KEY, b"e" * 32).failure == "already_provisioned"
    assert ask_clear(pair, "identify").answer[3] & 1 == 1
    pair.connect()
    assert pair.host.up


def test_provisioning_gives_the_generator_bytes_of_the_host_once():
    pair = Pair(provisioned=False)
    pair.shoe.memory_fails = True
    assert ask_clear(pair, "provision", b"n" * 16, KEY, b"e" * 32).failure == "memory_failed"
    assert ask_clear(pair, "identify").answer[3] & 1 == 0  # no key without them
    pair.shoe.memory_fails = False
    for entropy in (b"e" * 32, b"f" * 32):
        assert ask_clear(pair, "provision", b"n" * 16, KEY, entropy).failure is None
    assert pair.shoe.entropy == [b"e" * 32]


def test_a_shuffles_nonce_is_hidden_on_the_wire_and_shown_to_the_device():
    pair = Pair().connect()
    nonce = bytes(range(0xA0, 0xC0))
    hidden = []
    for _ in range(2):
        pair.sent = []
        pair.ask("shuffle_with", 5, nonce)
        assert pair.shoe.done[-1] == ("shuffle_with", (5, nonce))
        payload = [each for each in pair.sent if len(each) > 60][0]
        assert payload.find(nonce[8:16]) < 0
        hidden.append(payload[28:48])  # of the nonce alone
    assert hidden[0] != hidden[1]  # a pad is used once


def test_an_all_zero_key_is_refused():
    pair = Pair(provisioned=False)
    assert ask_clear(pair, "provision", b"n" * 16, bytes(32), b"e" * 32).failure == "bad_proof"


def test_a_question_nobody_answers_ends():
    question = ClearExchange(CODEC, "identify", (), 0)
    now = 0
    sends = 0
    while question.failure is None:
        sends += 1 if question.poll(now) else 0
        now += 50
        assert now < 60000
    assert question.failure == "no_answer"
    assert sends == 10


def test_the_wrong_key_and_the_wrong_device_have_names():
    assert [each.reason for each in Pair(key=OTHER_KEY).connect().happened(SessionDown)] == [
        "device_not_proved"
    ]
    pair = Pair()
    pair.host = HostProtocol(KEY, CommandNumbers(HOST_ID), pair.rng.bytes, b"ANOTHER1")
    pair.connect()
    assert [each.reason for each in pair.happened(SessionDown)] == ["wrong_device"]


def test_one_owner_and_any_number_of_observers():
    pair = Pair().connect()
    watcher = HostProtocol(KEY, CommandNumbers(b"WATCHER1"), pair.rng.bytes, schema_hash=b"schema01")
    port = type(pair.port)(pair.device)

    def talk():
        for _ in range(10):
            port.receive(watcher.poll(pair.now), pair.now)
            watcher.receive(port.poll(pair.now), pair.now)
        return watcher.take_notifications()

    watcher.connect(pair.now, OWNER)
    refused = [each for each in talk() if isinstance(each, AttachRefused)]
    error = CODEC.error(refused[0].status)
    assert error.name == "owner_held"
    assert error.unpack(refused[0].body) == (HOST_ID,)
    watcher.attach(OBSERVER)
    talk()
    assert watcher.up
    number = watcher.request(CODEC.named("dispense_stack").id, CODEC.pack("dispense_stack", 1, 1), pair.now)
    answers = [each for each in talk() if getattr(each, "request_id", 0) == number]
    assert CODEC.error(answers[0].status).name == "not_owner"
    assert pair.shoe.done == []
    # the observer sees what the owner sees, and its acknowledgements count for nothing
    pair.device.emit("located", 3)
    seen = [each.n for each in talk() if hasattr(each, "n")]
    assert seen == [pair.device.events.last]
    watcher.acknowledge(pair.device.boot_id, pair.device.events.last)
    talk()
    assert pair.device.events.acknowledged == 0
    # once the owner is gone the device may be taken over
    pair.port.close()
    try:
        watcher.attach(OWNER)
    except RequestNotAllowed as error:
        assert "connect again" in str(error)
    else:
        raise AssertionError("asked twice in one session")
    watcher.connect(pair.now, OWNER)
    talk()
    assert pair.device.owner_id() == b"WATCHER1"


def test_no_session_is_said_at_most_once_in_a_while_and_only_to_its_session():
    pair = Pair().connect()
    stale = list(pair.sent)[-1]
    pair.boot()
    for _ in range(5):
        pair.port.receive(stale, pair.now)
    assert len(frames(pair.port.poll(pair.now))) == 1
    pair.now += 250
    pair.port.poll(pair.now)
    pair.port.receive(stale, pair.now)
    hint = pair.port.poll(pair.now)
    assert len(frames(hint)) == 1
    session = pair.host._link.session
    pair.port.handshake.send("no_session", (2, session.id ^ 1))
    pair.host.receive(pair.port.poll(pair.now), pair.now)
    assert pair.host._handshake is None
    pair.host.receive(hint, pair.now)
    assert pair.host._handshake is not None
    pair.port.receive(bytes(frame.encode(b"\x03" + bytes(10))), pair.now)
    assert pair.port.diagnostics.malformed == 1


def test_a_session_that_ends_leaves_no_answer_behind():
    pair = Pair().connect()
    pair.host.request(CODEC.named("status").id, b"", pair.now)
    pair.port.receive(pair.host.poll(pair.now), pair.now)
    assert pair.port.has_work(pair.now)
    pair.port.close()
    assert not pair.port.has_work(pair.now)


def test_no_session_is_said_when_the_ticks_have_wrapped_since_the_last_time():
    pair = Pair().connect()
    stale = list(pair.sent)[-1]
    pair.boot()
    for _ in range(2):
        pair.port.receive(stale, pair.now)
        assert len(frames(pair.port.poll(pair.now))) == 1
        pair.now = ticks.add(pair.now, ticks.HALF + 1000)  # nobody used this cable for more than six days


def test_answers_find_a_place_among_many_events():
    pair = Pair().connect()
    for n in range(60):
        pair.device.emit("located", 1 + n)
    pair.port.poll(pair.now)  # as many events as may be under way, all lost
    assert pair.port.link.room() == pair.port.link.window // 4


def test_a_detach_belongs_to_its_session():
    pair = Pair().connect()
    number = pair.host.request(CODEC.named("detach").id, b"", pair.now)
    pair.host.poll(pair.now)  # lost with the cable
    pair.connect()
    assert [(each.request_id, each.reason) for each in pair.happened(RequestFailed)] == [
        (number, "session_ended")
    ]
    assert pair.ask("dispense_stack", 5, 1)[0] == "ok"


def test_an_observers_acknowledgement_is_ignored_and_not_counted_as_damage():
    pair = Pair().connect(OBSERVER)
    pair.host.acknowledge(1, 1)
    pair.settle()
    assert pair.device.events.acknowledged == 0
    assert pair.port.diagnostics.malformed == 0
