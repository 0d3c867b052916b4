"""Every fuzz target holds for thousands of seeded frames, and would notice if the wire broke a promise."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.fuzz import campaign, corpus, monitored_wire, targets

from sabot_protocol import (
    codec,
    device_handshake,
    device_port,
    frame,
    key_store,
    ledger,
    session,
    wire_constants,
)
from sabot_protocol.device_requests import RequestHandler
from sabot_protocol.ledger import Ledger

pytestmark = pytest.mark.slow

ATTACKED = ("device", "host", "unprovisioned")


def some_input(source: random.Random, count: int = 60) -> bytes:
    """An input of random records."""
    sizes = (0, 3, 8, 8, 20, 60, 200)
    return b"".join(
        targets.record(source.randrange(targets.SETTLE), source.randbytes(source.choice(sizes)))
        for _ in range(count)
    )


def some_packets(source: random.Random, count: int = 60) -> bytes:
    """An input for ``inside``: mostly requests that will be delivered, so that many are executed."""
    deliver = targets.SEQ_NEXT | targets.ACK_NEXT | targets.A_REQUEST
    good = deliver | targets.GOOD_BODY | targets.NEAR_NUMBER
    ways = (good, good, good | targets.GOOD_PROOF, good | targets.LONG_TIME, deliver, source.randrange(256))
    return b"".join(
        targets.record(
            source.randrange(256), bytes((source.choice(ways),)) + source.randbytes(12 + source.randrange(24))
        )
        for _ in range(count)
    )


def same_always(one: bytes, other: bytes) -> bool:
    """A comparison that does not compare."""
    return True


def without_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions take every packet's MAC for right, under whatever name the comparison goes."""
    names = [name for name in ("mac_matches", "digests_equal") if hasattr(session, name)]
    assert names, "Session.open compares in some new way: name it here"
    for name in names:
        monkeypatch.setattr(session, name, lambda *compared: True)


def first_broken(name: str, inputs: int = 40) -> set[str]:
    """The promises that seeded inputs find broken."""
    source = random.Random(7)
    found = set()
    for _ in range(inputs):
        try:
            data = some_packets(source) if name.startswith("inside") else some_input(source)
            dict(targets.TARGETS)[name](data)
        except monitored_wire.Broken as broken:
            found.add(broken.promise)
    return found


# -- the promises hold --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["decoder", "codec"])
def test_pure_targets_hold(name: str) -> None:
    """Random chunks and fields."""
    source = random.Random(1)
    tally: Counter[str] = Counter()
    for _ in range(100):
        dict(targets.TARGETS)[name](some_input(source), tally)
    assert sum(tally.values()) >= 6000


def test_codec_holds_near_real_fields() -> None:
    """Real fields with a bit changed or a byte missing."""
    source = random.Random(2)
    for index, message in enumerate(monitored_wire.ALL_MESSAGES + monitored_wire.ALL_ERRORS):
        for _ in range(30):
            fields = bytearray(message.pack(monitored_wire.allowed(message, source)))
            targets.codec(targets.record(index, bytes(fields)) * 2)
            if fields:
                fields[source.randrange(len(fields))] ^= 1 << source.randrange(8)
            targets.codec(targets.record(index, bytes(fields)) * 2)
            targets.codec(targets.record(index, bytes(fields[:-1])) * 2)


@pytest.mark.parametrize("name", ATTACKED)
def test_forged_frames_change_nothing(name: str) -> None:
    """Every kind of forgery, and a genuine request answered after each input."""
    source = random.Random(3)
    tally: Counter[str] = Counter()
    attack = targets.ATTACKS[name](3, tally)
    for _ in range(50):
        targets.strike_all(attack, some_input(source))
    assert tally["genuine"] == 50
    assert {kind for kind, _ in targets.FORGERIES} <= set(tally)


def test_owner_gone_mad_executes_nothing_twice_and_nothing_forbidden() -> None:
    """Arbitrary sealed packets over sessions and reboots."""
    source = random.Random(4)
    tally: Counter[str] = Counter()
    for _ in range(60):
        targets.inside(some_packets(source), tally)
    assert tally["executed"] > 60
    assert tally["reboot"] > 60


def test_device_gone_mad_neither_stops_nor_fools_its_host() -> None:
    """Arbitrary sealed packets to the host."""
    source = random.Random(4)
    tally: Counter[str] = Counter()
    for _ in range(60):
        targets.inside_host(some_packets(source), tally)
    assert tally["genuine"] == 60


def test_attacks_reach_the_session() -> None:
    """Mutated payloads must get past the CRC: to the MAC, to the counter, to the handshake."""
    attack = targets.DeviceAttack(5)
    source = random.Random(5)
    for _ in range(20):
        targets.strike_all(attack, some_input(source))
    record = attack.wire.port.diagnostics
    for reason in ("bad_crc", "bad_encoding", "malformed", "foreign", "reflected", "bad_mac", "replayed"):
        assert getattr(record, reason) > 0, reason
    assert record.bad_mac > attack.strikes // 10
    assert record.handshakes > 2


# -- and the checks can fail ----------------------------------------------------------------------------


def test_without_the_mac_a_forged_command_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device's check is real."""
    without_mac(monkeypatch)
    assert monitored_wire.ACCEPTED_COMMAND in first_broken("device")


def test_without_the_mac_a_forged_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's check is real."""
    without_mac(monkeypatch)
    assert first_broken("host") == {monitored_wire.ACCEPTED_PACKET}


def test_without_the_counter_a_replay_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Genuine packets sent once more are tried."""
    opened = session.Session.open

    def forgetful(self: session.Session, packet: bytes) -> object:
        self.received = 0
        return opened(self, packet)

    monkeypatch.setattr(session.Session, "open", forgetful)
    assert monitored_wire.ACCEPTED_PACKET in first_broken("device")


def test_without_the_host_s_proof_a_stolen_session_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that nobody proved is noticed."""
    attack = targets.DeviceAttack()
    monkeypatch.setattr(device_handshake, "digests_equal", same_always)
    hello = codec.CODEC.named("hello")
    values = monitored_wire.allowed(hello, random.Random(0))
    values[2] = wire_constants.DEVICE
    fields = hello.pack(values)
    port = attack.wire.port
    port.receive(targets.framed(bytes((wire_constants.CLEAR_TO_DEVICE, hello.id)) + fields), attack.wire.now)
    assert port.handshake.pending is not None
    prove = codec.CODEC.named("prove")
    said = prove.pack((session.session_id(port.handshake.pending[2]), bytes(16)))
    op = [name for name, _ in targets.FORGERIES].index("random_payload")
    with pytest.raises(monitored_wire.Broken, match=monitored_wire.CHANGED):
        attack.strike(op, bytes((wire_constants.CLEAR_TO_DEVICE, prove.id)) + said)


def test_without_the_ledger_a_second_execution_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same (host id, number) twice is noticed."""

    def always_new(self: Ledger, host_id: bytes, number: int) -> int:
        return ledger.NEW

    monkeypatch.setattr(Ledger, "state_of", always_new)
    assert monitored_wire.ACCEPTED_COMMAND in first_broken("inside")


def test_without_the_schema_s_check_a_forbidden_command_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the core is checked once more, outside the wire."""

    def unchecked(
        self: RequestHandler, message: codec.MessageCodec, number: int, body: bytes
    ) -> tuple[object, ...]:
        return (0,) * len(message.fields)

    owner = targets.Owner(Counter())
    monkeypatch.setattr(RequestHandler, "_check", unchecked)
    how = targets.SEQ_NEXT | targets.ACK_NEXT | targets.A_REQUEST | targets.NEAR_NUMBER
    locate = [message.name for message in monitored_wire.REQUESTS].index("locate")
    with pytest.raises(monitored_wire.Broken, match=r"locate\.seconds"):
        owner.packet(targets.inside_record(how, locate, 3, b"\x00")[2:])


def test_an_unprovisioned_device_that_took_a_default_key_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that nobody sent is noticed."""

    def a_default(self: object, slot: int) -> bytes:
        return b"default!" * 4

    attack = targets.UnprovisionedAttack()
    monkeypatch.setattr(key_store.KeyStore, "get", a_default)
    with pytest.raises(monitored_wire.Broken, match=monitored_wire.CHANGED):
        attack.strike(0, b"anything")


def test_a_decoder_out_of_step_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A good frame that is not found is noticed."""
    monkeypatch.setattr(frame, "_GOOD_RESIDUE", 0)
    with pytest.raises(monitored_wire.Broken, match=monitored_wire.WRONG):
        targets.decoder(targets.record(1, b"a good frame"))


def test_an_exception_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised in an end is a broken promise."""

    def raises(self: object, payload: bytes, now: int) -> None:
        raise IndexError(len(payload))

    attack = targets.DeviceAttack()
    monkeypatch.setattr(device_port.DevicePort, "_receive_sealed", raises)
    with pytest.raises(monitored_wire.Broken, match="IndexError"):
        targets.strike_all(attack, some_input(random.Random(8)))


# -- the tools around them ------------------------------------------------------------------------------


def test_campaign_counts_every_frame_and_says_held(capsys: pytest.CaptureFixture[str]) -> None:
    """Its figures are those asked for."""
    assert campaign.main(["--frames", "9000", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert '"frames": 9000' in said
    assert "held: 9000 frames" in said


def test_campaign_fails_when_a_command_is_accepted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its status says so."""
    without_mac(monkeypatch)
    assert campaign.main(["--frames", "3000"]) == 1
    assert "BROKEN" in capsys.readouterr().out


def test_campaign_is_the_same_for_the_same_seed() -> None:
    """What it finds can be found again."""
    assert campaign.shard(5, 3000, False) == campaign.shard(5, 3000, False)


def test_a_broken_promise_passes_between_processes() -> None:
    """Else a campaign of several processes would wait for ever instead of failing."""
    broken = pickle.loads(pickle.dumps(monitored_wire.Broken(monitored_wire.CHANGED, "how")))
    assert (broken.promise, str(broken)) == (monitored_wire.CHANGED, "changed: how")


def test_joined_inputs_do_the_same_as_one_after_the_other() -> None:
    """So a crash that needs its history can be replayed."""
    source = random.Random(9)
    inputs = [some_input(source, 20) + b"\x01\xff cut short" for _ in range(4)]
    apart: Counter[str] = Counter()
    attack = targets.DeviceAttack(0, apart)
    for each in inputs:
        targets.strike_all(attack, each)
    together: Counter[str] = Counter()
    targets.device(targets.joined(inputs), together)
    assert apart == together


def test_corpus_has_every_seed_and_holds() -> None:
    """If a seed is missing: ``python tests/fuzz/fuzz_wire.py --write-corpus``."""
    kept = {path.name: path.read_bytes() for path in corpus.FOLDER.iterdir()}
    assert kept.keys() == corpus.inputs().keys()
    for data in kept.values():
        dict(targets.TARGETS)[targets.TARGETS[data[0]][0]](data[1:])


def test_write_corpus_makes_a_small_folder(tmp_path: Path) -> None:
    """Fewer than a hundred tiny files, and nothing stale."""
    (tmp_path / "stale").write_bytes(b"x")
    count = corpus.write_corpus(tmp_path)
    files = list(tmp_path.iterdir())
    assert count == len(files) < 100
    assert sum(path.stat().st_size for path in files) < 20_000
    assert not (tmp_path / "stale").exists()
