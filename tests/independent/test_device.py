"""The device, talked to as the page says and as it forbids."""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.independent import wire
from tests.independent.black_box import KEY, Bench, Device, dice
from tests.independent.page import ENUMS, FROZEN, IDS, MAJOR, MESSAGES, MINOR, SCHEMA, Field, Message
from tests.independent.peer import OBSERVER, Asked, Record, SabotError
from tests.independent.wire import FieldError, FrameDecoder, Keys, Packet, Value, Values

pytestmark = pytest.mark.slow

SERVICE_KEY = bytes(range(0x40, 0x60))
OBSERVERS_KEY = bytes(range(0x20, 0x40))
TABLE, FLOOR, SERVICE = 1, 3, 4  # roles; the people's slots have the same numbers here
PERSON = 4711
BY_SERVICE = (SERVICE, SERVICE_KEY)
LOCATE = b"\1"  # the fields of a locate of one second

# the device has two decks, one in the shoe, and somebody takes its stacks
at_a_table = pytest.mark.parametrize("bench", [("--table",)], indirect=True, ids=["table"])


def _open_round(bench: Bench) -> None:
    """Open round 7 of four hands on the first deck, and close the bets."""
    bench.do("set_clock", utc_s=1_800_000_000, utc_ms=0)
    assert bench.do("open_round", round_id=7, deck_id=1) == {}
    assert bench.do("close_bets", round_id=7, hands=4) == {}


def _flags(name: str, value: Value) -> set[str]:
    """The names of the flags that are set."""
    assert isinstance(value, int)
    return {flag for bit, flag in ENUMS[name].items() if value & bit}


# outside a session


def test_identification(bench: Bench) -> None:
    identity = bench.identify()
    assert (identity["major"], identity["minor"], identity["schema"]) == (MAJOR, MINOR, SCHEMA)
    assert _flags("IdentityFlag", identity["flags"]) == {"simulator", "test_rng"}
    assert identity["boot_id"] == 1


def test_provisioning(bench: Bench) -> None:
    """A new device takes one key, proves it, and takes no other."""
    with pytest.raises(SabotError, match="not_provisioned"):
        bench.connect()
    with pytest.raises(SabotError, match="bad_proof"):
        bench.provision(bytes(32))
    bench.driver.sent.clear()
    proof = bench.provision()
    nonce = FrameDecoder().feed(bytes(bench.driver.sent))[0][2:18]
    identity = bench.identify()
    assert proof == wire.provision_proof(KEY, nonce, identity.data("serial"))
    assert _flags("IdentityFlag", identity["flags"]) == {"provisioned", "simulator", "test_rng"}
    bench.provision()
    with pytest.raises(SabotError, match="already_provisioned"):
        bench.provision(bytes(31) + b"\1")


def test_handshake_and_status(bench: Bench) -> None:
    """Both ends prove the key; a query then needs nothing more, a command does."""
    bench.provision()
    bench.connect()
    assert bench.host.device["handshake"] == 1
    assert _flags("IdentityFlag", bench.host.device["flags"]) == {"provisioned", "simulator", "test_rng"}
    status = bench.do("status")
    assert (status["flags"], status["clock"]) == (0, 0)
    assert bench.refused(bench.host.ask("locate", seconds=1)) == ("not_owner", {"owner": bytes(8)})
    assert bench.host.events == []


def test_same_hello_gets_the_same_challenge(bench: Bench) -> None:
    """A repeated hello is answered by the very same bytes, another one by others."""
    bench.provision()
    bench.driver.deaf = True

    def challenges() -> list[bytes]:
        """What came, without an answer to provisioning that was asked for twice because it took long."""
        blocks = bytes(bench.driver.lost).split(b"\0")[:-1]
        return [each for each in blocks if wire.decode_clear(wire.decode_block(each))[0] == "challenge"]

    def answer(nonce: bytes) -> bytes:
        bench.driver.lost.clear()
        hello = wire.encode_clear("hello", bench.host.hello(nonce))
        bench.driver.write(wire.encode_frame(hello))
        bench.driver.wait(lambda: bool(challenges()))
        return challenges()[-1]

    first = answer(b"a" * 16)
    assert answer(b"a" * 16) == first
    assert answer(b"b" * 16) != first


def test_host_that_is_nobody(bench: Bench) -> None:
    bench.provision()
    bench.new_host(record=Record(bytes(8)))
    with pytest.raises(SabotError, match="bad_field"):
        bench.connect()


def test_wrong_key_at_the_host(bench: Bench) -> None:
    bench.provision()
    bench.new_host(bytes(range(1, 33)))
    with pytest.raises(SabotError, match="device_not_proved"):
        bench.connect()
    bench.new_host(serial=b"another1")
    with pytest.raises(SabotError, match="wrong_device"):
        bench.connect()
    assert bench.host.link is None


def test_wrong_proof_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that cannot prove the key is refused, and a prove of no handshake is not answered."""
    bench.provision()
    derive = Keys.derive
    with monkeypatch.context() as patch:
        patch.setattr(Keys, "derive", lambda *args: replace(derive(*args), host_proof=bytes(16)))
        with pytest.raises(SabotError, match="bad_proof"):
            bench.connect()
    bench.driver.deaf = True
    bench.driver.write(wire.encode_frame(wire.encode_clear("prove", {"session": 1, "proof": bytes(16)})))
    bench.driver.rest(200)
    assert not bench.driver.lost
    bench.driver.deaf = False
    bench.connect()
    assert bench.counter("bad_proofs") == 2


def test_no_session_is_said_rarely(bench: Bench) -> None:
    """Many packets of a session that is not there get few answers."""
    bench.provision()
    bench.driver.deaf = True
    packet = Packet(wire.SEALED_TO_DEVICE, 0x1234, 1, 0, 0, 0, wire.BARE).seal(KEY)
    fields = {"boot_id": 1, "session": 0x1234}
    answer = wire.encode_frame(wire.encode_clear("no_session", fields, wire.CLEAR_TO_HOST))

    def said() -> int:
        return bench.driver.lost.count(answer)

    began = bench.driver.now()
    bench.driver.write(wire.encode_frame(packet) * 40)
    bench.driver.rest(300)
    before = said()
    assert 1 <= before <= 1 + (bench.driver.now() - began) / 200
    bench.driver.write(wire.encode_frame(packet))
    bench.driver.wait(lambda: said() > before)


def test_forged_no_session(bench: Bench) -> None:
    """Anybody can say that a session is lost: the host keeps it until a new one is proved."""
    bench.own()
    link = bench.host.link
    assert link is not None
    forged = wire.encode_clear("no_session", {"boot_id": 9, "session": link.keys.session}, wire.CLEAR_TO_HOST)
    bench.host.receive(wire.encode_frame(forged), bench.driver.now())
    assert bench.host.link is link
    asked = bench.host.ask("locate", seconds=1)
    bench.driver.wait(lambda: bench.host.link is not link and asked.done)
    assert asked.result() == {}
    assert len(bench.events("located", 1)) == 1


# owners and events


def test_attach(bench: Bench) -> None:
    """The owner gets every event from the first on."""
    bench.own()
    host = bench.host
    assert host.attached == {"mode": 1, "known": 1, "newest_command": 0, "owner": host.record.host_id}
    names = [event.name for event in host.events]
    assert names[0] == "booted"
    assert names.count("self_tested") == 2  # both halves
    assert names[-3:] == ["key_changed", "owner_changed", "host_started"]
    assert [(event.boot, event.n) for event in host.events] == [(1, n + 1) for n in range(len(names))]
    assert host.events[-1].values == {"host_id": host.record.host_id, "run": host.run}
    command = host.ask("locate", seconds=1)
    assert bench.do("detach") == {}
    assert bench.give(command.number, "locate", LOCATE) == "not_owner"  # only an owner is told
    with pytest.raises(SabotError, match="not_owner"):
        bench.do("locate", seconds=1)


def test_host_started(bench: Bench) -> None:
    """A new session of the same run is no news; another run of the same host is."""
    bench.own()
    first = bench.host
    bench.connect()
    bench.do("locate", seconds=1)
    assert len(bench.events("located", 1)) == len(bench.named("host_started")) == 1
    bench.new_host(record=first.record)
    bench.attach()
    (started,) = bench.events("host_started", 1)
    assert started.values == {"host_id": first.record.host_id, "run": bench.host.run}


def test_positions_of_the_future(bench: Bench) -> None:
    bench.own()
    boot, n = bench.host.record.position
    for position, field in (((boot, n + 50), 2), ((boot + 1, 0), 1), ((boot + 1, 1), 1)):
        bench.host.record.position = position
        assert bench.refused(bench.host.attach()) == ("bad_field", {"field": field})
    bench.host.record.position = (boot, n)
    bench.driver.result(bench.host.attach())


def test_positions_of_long_ago(bench: Bench) -> None:
    """The size of a gap is known while it begins in the last eight boots, of which the present is one."""
    bench.own()
    host_id, memory_id = bench.host.record.host_id, bench.host.record.memory_id
    for boot in range(2, 11):
        bench.device.kill()
        bench.device.start()
        bench.new_host(record=Record(host_id, boot * 1000, memory_id, (1, 1)))
        bench.attach(OBSERVER)
        bench.events("booted", 1)
        gap = bench.host.events[0]
        assert (gap.name, gap.boot, gap.n, gap.values["reason"]) == ("gap", boot, 1, 2)
        lost = gap.values.number("lost")
        assert lost >= boot if boot <= 8 else lost == 0


def test_event_acknowledgement_and_overflow(bench: Bench) -> None:
    """An acknowledgement removes nothing; what is overwritten is a gap of known size for who comes late."""
    bench.own()
    bench.host.acknowledge()
    bench.driver.wait(lambda: bench.host.link and bench.host.link.idle)
    before = list(bench.host.events)
    bench.new_host(record=Record(bench.host.record.host_id, bench.host.record.next_number))
    bench.attach()
    bench.events("host_started", 2)
    assert bench.host.events[: len(before)] == before
    for _ in range(70):
        bench.do("locate", seconds=1)
        bench.host.acknowledge()  # else the device is busy after forty
    bench.events("located", 70)
    last = bench.host.record.position[1]
    bench.new_host()
    bench.attach(OBSERVER)
    bench.driver.wait(lambda: bench.host.record.position[1] > last)  # the owner is gone, which is an event
    bench.driver.rest(60)
    gap, *events = bench.host.events
    assert (gap.name, gap.values["reason"]) == ("gap", 1)
    assert gap.values["lost"] == gap.n - 1 == bench.host.record.position[1] - len(events)


def test_another_host_takes_the_cable(bench: Bench) -> None:
    """Another host's proved handshake ends the first one's ownership; its number range is its own."""
    bench.own()
    first = bench.host.record
    bench.do("locate", seconds=1)
    bench.new_host()
    attached = bench.attach(OBSERVER)
    assert attached == {"mode": 0, "known": 0, "newest_command": 0, "owner": bytes(8)}
    owners = [event.values["owner"] for event in bench.events("owner_changed", 2)]
    assert owners == [first.host_id, bytes(8)]
    with pytest.raises(SabotError, match="not_owner"):
        bench.do("locate", seconds=1)


# the link


def test_window_full_of_queries(bench: Bench) -> None:
    """Sixteen are under way at once; they are lost, sent again, and each gets its own answer."""
    bench.own()
    asked = [bench.host.ask("status") for _ in range(20)]
    assert bench.host.take_out().count(b"\0") == 16
    bench.driver.wait(lambda: all(item.done for item in asked))
    assert {item.answer for item in asked} == {"status_report"}
    assert bench.host.counters["late_answers"] == 0


def test_small_window(bench: Bench) -> None:
    """A host that takes one message at a time still gets them all."""
    bench.provision()
    bench.new_host(window=1)
    bench.attach()
    asked = [bench.host.ask("locate", seconds=seconds) for seconds in range(1, 21)]
    bench.driver.wait(lambda: all(item.done for item in asked))
    assert [event.values["seconds"] for event in bench.events("located", 20)] == list(range(1, 21))
    assert bench.host.counters["out_of_window"] == 0


@at_a_table
def test_lost_answer(bench: Bench) -> None:
    """The answer and the event are lost, the link repeats, and the stack is dispensed once."""
    bench.own()
    _open_round(bench)
    asked = bench.deafly("dispense_stack", round_id=7, stack=1)
    bench.driver.wait(lambda: bench.host.counters["retransmitted"] > 0)
    bench.driver.rest(50)
    assert not asked.done
    bench.driver.deaf = False
    assert bench.driver.result(asked) == {}
    assert len(bench.events("stack_dispensed", 1)) == 1
    assert bench.do("status")["stack"] == 1
    assert bench.counter("duplicates") >= 1


def test_bad_cable(bench: Bench) -> None:
    """Frames are lost both ways: every command is executed once and in order."""
    bench.own()
    bench.driver.dropped, deaf = dice(3, 0.25), dice(4, 0.25)
    asked = [bench.host.ask("locate", seconds=seconds) for seconds in range(1, 25)]

    def all_done() -> bool:
        bench.driver.deaf = deaf()
        return all(item.done for item in asked)

    bench.driver.wait(all_done)
    bench.driver.deaf, bench.driver.dropped = False, lambda: False
    assert [item.result() for item in asked] == [{}] * 24
    assert [event.values["seconds"] for event in bench.events("located", 24)] == list(range(1, 25))


def test_good_cable(bench: Bench) -> None:
    """Where nothing is lost, what an end has twice is what the other end sent again."""
    bench.own()
    for seconds in range(1, 25):
        bench.do("locate", seconds=seconds)
        bench.driver.rest(seconds)
    assert len(bench.events("located", 24)) == 24
    assert bench.host.counters["duplicates"] <= bench.counter("retransmitted")
    assert bench.counter("duplicates") <= bench.host.counters["retransmitted"]
    for name in ("bad_crc", "bad_length", "bad_overrun", "bad_encoding", "malformed", "foreign", "replayed"):
        assert bench.host.counters[name] == bench.counter(name) == 0, name


def test_the_chain_of_events(bench: Bench) -> None:
    """Hashes lead from event to event, and every checkpoint is tagged with the key of its place."""
    bench.own()
    given = bench.do("chain_key")
    key, hash = given.data("wrapped"), given.data("hash")
    for seconds in range(1, 21):
        bench.do("locate", seconds=seconds)
    bench.do("checkpoint")
    bench.events("chain_checkpoint", 3)
    events = [each for each in bench.host.events if each.n >= int(str(given["n"]))]
    assert events[0].name == "chain_begun"
    identity = bench.host.device
    begin = identity.data("serial") + identity.data("memory_id") + struct.pack("<I", events[0].boot)
    assert hash == hashlib.sha256(b"sabot event chain 1" + begin).digest()
    seen = 0
    for index, event in enumerate(events, 1):
        key = hashlib.sha256(key).digest()
        if event.name == "chain_checkpoint":
            assert (event.values["index"], event.values["hash"]) == (index - 1, hash)
            told = struct.pack("<I", index) + hash + event.hashed[:-16]
            assert hmac.new(key, told, "sha256").digest()[:16] == event.values["tag"]
            seen += 1
        hash = hashlib.sha256(hash + event.hashed).digest()
    assert seen >= 3
    assert bench.do("checkpoint")["event"] == bench.named("chain_checkpoint")[-1].hashed
    bench.driver.result(bench.host.ask("locate", seconds=1))
    assert bench.refused(bench.host.ask("chain_key"))[0] == "provisioning_closed"


def test_garbage_on_the_line(bench: Bench) -> None:
    """Noise costs a frame at most, and is counted by its reason."""
    bench.own()
    rng = random.Random(2)
    bench.driver.write(bytes(rng.randrange(256) for _ in range(3000)))
    bench.driver.write(b"\0" + b"\x55" * 1000 + b"\0\0\x09ab\0\x05abcd\0\x07abcdef\0\x55\x66")
    for seconds in range(1, 6):
        bench.do("locate", seconds=seconds)
    assert [event.values["seconds"] for event in bench.events("located", 5)] == [1, 2, 3, 4, 5]
    for name in ("bad_overrun", "bad_encoding", "bad_length", "bad_crc"):
        assert bench.counter(name) >= 1


def test_replayed_and_reflected_frames(bench: Bench) -> None:
    """All that was ever sent, sent again, and the device's own bytes: nothing happens twice."""
    bench.own()
    bench.driver.sent.clear()
    bench.do("locate", seconds=1)
    bench.do("locate", seconds=2)
    sealed = bytes(bench.driver.sent)
    bench.driver.write(sealed)
    assert len(bench.events("located", 2)) == 2
    assert bench.counter("replayed") == sealed.count(b"\0")
    changed = bytearray(wire.decode_block(sealed.split(b"\0")[0]))
    changed[6] = 0x7F  # a greater counter, so the MAC is wrong
    foreign = bytes([changed[0], changed[1] ^ 1]) + changed[2:]
    for payload in (changed, b"\x04" + bytes(30), foreign, changed[:25], b"\x03", b"\x07", b"\x01\xee"):
        bench.driver.write(wire.encode_frame(bytes(payload)))
    counts = {name: bench.counter(name) for name in ("bad_mac", "reflected", "foreign", "malformed")}
    assert counts == {"bad_mac": 1, "reflected": 1, "foreign": 1, "malformed": 4}


def test_link_lives_and_dies(bench: Bench, tmp_path: Path) -> None:
    """Keep-alives hold an idle link. One that is silent ends at both ends, and with it the ownership."""
    (tmp_path / "idle").mkdir()
    idle = Bench(Device(tmp_path / "idle"))
    try:
        idle.own()
        bench.own()
        idle.driver.rest(5400)
        idle.do("locate", seconds=1)
    finally:
        idle.device.close()
    assert idle.host.ends == []
    bench.driver.wait(lambda: bench.host.attached and bench.host.ends)
    assert bench.host.ends == ["peer_silent"]
    host_id = bench.host.record.host_id
    owners = [event.values["owner"] for event in bench.events("owner_changed", 3)]
    assert owners == [host_id, bytes(8), host_id]
    assert len(bench.named("host_started")) == 1


# commands


@at_a_table
def test_command_and_stale(bench: Bench) -> None:
    """A command is answered, its event follows, and one out of order is refused with where the machine is."""
    bench.own()
    _open_round(bench)
    assert bench.do("dispense_stack", round_id=7, stack=1) == {}
    (event,) = bench.events("stack_dispensed", 1)
    assert event.values == {"round_id": 7, "stack": 1, "cards": 3}
    bench.events("stack_taken", 1)
    refused = bench.host.ask("dispense_stack", round_id=7, stack=9)
    assert bench.refused(refused) == ("stale", {"round_id": 7, "stack": 1})


@at_a_table
def test_reconnect_with_the_same_number(bench: Bench) -> None:
    """A new session of the same boot: the command is sent again and answered from the ledger."""
    bench.own()
    _open_round(bench)
    asked = bench.deafly("dispense_stack", round_id=7, stack=1)
    number = asked.number
    bench.driver.deaf = False
    bench.connect()
    assert bench.driver.result(asked) == {}
    assert (asked.number, asked.resolve) == (number, False)
    assert bench.host.attached
    assert bench.host.attached["newest_command"] == number
    assert len(bench.events("stack_dispensed", 1)) == 1
    assert bench.counter("repeats") == 1
    assert not bench.named("gap")


@at_a_table
def test_power_cut_and_resolve(bench: Bench) -> None:
    """Executed, not answered, power cut: the ledger answers, and what is lost is a gap of known size."""
    bench.own()
    _open_round(bench)
    bench.driver.rest(100)
    boot, n = bench.host.record.position
    asked = bench.deafly("dispense_stack", round_id=7, stack=1)
    bench.device.kill()
    bench.driver.rest(50)
    lost = {packet.request_id for packet in bench.driver.lost_packets() if packet.kind == wire.EVENT}
    bench.driver.deaf = False
    bench.device.start()
    assert bench.driver.result(asked) == {}
    assert asked.resolve
    (gap,) = bench.events("gap", 1)
    assert gap.values == {"reason": 2, "lost": len(lost), "after_boot": boot, "after_n": n}
    assert (gap.boot, gap.n) == (2, 1)
    assert len(bench.events("booted", 2)) == 2
    assert not bench.named("stack_dispensed")
    (voided,) = bench.events("round_voided", 1)
    assert voided.values["round_id"] == 7


def test_power_cut_with_nothing_lost(bench: Bench) -> None:
    """Who has all events of a boot sees no gap after it."""
    bench.own()
    bench.driver.rest(100)
    bench.device.kill()
    bench.device.start()
    bench.host.ask("status")  # so that the device sees at once that it does not have the session
    bench.driver.wait(lambda: bench.host.boot_id == 2)
    bench.events("booted", 2)
    assert not bench.named("gap")
    assert "events_out_of_step" not in bench.host.ends


def test_commands_to_a_dead_device(bench: Bench) -> None:
    """Sent and never there: not_executed. Waiting and never sent: device_rebooted. An elevation: ended."""
    bench.own()
    bench.device.kill()
    named = Values(scheme=1, slot=SERVICE, request=1, request_number=1)
    named |= Values(body_sha256=bytes(32), proof=bytes(16))
    elevation = bench.host.ask("elevate", **named)
    asked = [bench.host.ask("locate", seconds=1) for _ in range(20)]
    bench.driver.rest(50)
    bench.device.start()
    bench.driver.wait(lambda: all(item.done for item in asked))
    assert [item.outcome for item in asked] == ["not_executed"] * 15 + ["device_rebooted"] * 5
    assert elevation.outcome == "session_ended"
    bench.do("locate", seconds=2)
    (located,) = bench.events("located", 1)
    assert located.values["seconds"] == 2
    assert bench.give(asked[0].number, "locate", LOCATE) == "not_executed"  # that was written down


def test_memory_lost(bench: Bench) -> None:
    """A device with a new memory: what was under way is forgotten, and the host itself names the gap."""
    bench.own()
    asked = bench.deafly("locate", seconds=1)
    bench.device.kill()
    bench.driver.rest(50)
    for path in bench.device.memory.parent.glob("memory*"):
        path.unlink()
    bench.driver.deaf = False
    bench.device.start()
    with pytest.raises(SabotError, match="not_provisioned"):
        bench.driver.wait(lambda: asked.done)
    bench.provision()
    bench.connect()
    with pytest.raises(SabotError, match="forgotten"):
        bench.driver.result(asked)
    bench.events("booted", 2)
    assert bench.named("gap")[0].values["reason"] == 3


def test_ledger(bench: Bench) -> None:
    """Numbers that come again, and numbers older than those the ledger has."""
    bench.own()
    assert bench.give(50, "locate", LOCATE) == "done"
    assert bench.give(50, "locate", LOCATE) == "done"
    assert bench.give(40, "locate", LOCATE) == "not_executed"
    for number in range(51, 70):
        assert bench.give(number, "locate", LOCATE) == "done"
    assert bench.give(45, "locate", LOCATE) == "forgotten"
    assert bench.give(50, "locate", LOCATE) == "forgotten"
    assert bench.give(60, "locate", LOCATE) == "done"
    assert bench.give(70, "locate", b"") == bench.give(70, "locate", LOCATE) == "bad_field"
    assert len(bench.events("located", 20)) == 20
    assert bench.counter("repeats") >= 3


def _keep_up(bench: Bench) -> None:
    """Acknowledge what has come, so that the device is not too busy for commands."""
    bench.driver.rest(60)
    bench.host.acknowledge()
    bench.driver.wait(lambda: bench.host.link and bench.host.link.idle)


def _many_hosts(bench: Bench) -> list[bytes]:
    """Let so many hosts give a command that the device has to forget the first one; return their ids."""
    bench.provision()
    hosts = [os.urandom(8) for _ in range(25)]
    for host_id in hosts:
        bench.new_host(record=Record(host_id, position=bench.host.record.position))
        attached = bench.attach()
        assert (attached["known"], attached["newest_command"]) == (1, 0)
        _keep_up(bench)
        assert bench.give(100, "locate", LOCATE) == "done"
    return hosts


def test_ledger_of_many_hosts(bench: Bench) -> None:
    """The commands of the last 16 hosts are in the ledger, and of hosts before the newest number is kept."""
    hosts = _many_hosts(bench)
    for at, known, outcome in ((24, 1, "done"), (9, 1, "done"), (8, 1, "forgotten"), (2, 1, "forgotten")):
        bench.new_host(record=Record(hosts[at], 200, position=bench.host.record.position))
        attached = bench.attach()
        assert (at, attached["known"], attached["newest_command"]) == (at, known, 100)
        assert (at, bench.give(100, "locate", LOCATE)) == (at, outcome)
    bench.new_host(record=Record(hosts[0], 200, position=bench.host.record.position))
    attached = bench.attach()
    assert (attached["known"], attached["newest_command"]) == (0, 100)  # the highest that was dropped


def test_numbers_far_ahead(bench: Bench) -> None:
    """Such a command is refused and not written down, also one that is only asked about."""
    bench.own()
    assert bench.give(50, "locate", LOCATE) == "done"
    for number in (50 + 4097, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        asked = bench.host.ask_raw(IDS["locate"], LOCATE, command=True, number=number)
        assert bench.refused(asked) == ("number_ahead", {"newest": 50})
    assert bench.give(50 + 4096, "locate", LOCATE) == "done"


# what a device refuses


def _sample(message: Message) -> list[bytes]:
    """The bytes of each field of a message, the least that is allowed."""
    samples = []
    for spec in message.fields:
        value: Value = max(0, spec.low)
        if spec.type in ("bytes", "blob"):
            value = bytes(spec.low)
        elif spec.type == "text":
            value = "x" * spec.low
        elif spec.type == "enum":
            value = min(ENUMS[spec.names])
        samples.append(wire.encode_fields(replace(message, fields=(spec,)), {spec.name: value}))
    return samples


def _wrong(spec: Field, sample: bytes) -> Iterator[bytes]:
    """Bytes of a field that its table does not allow."""
    if spec.type in ("text", "blob"):
        lengths = [spec.high + 1] + [spec.low - 1] * (spec.low > 0)
        yield from (bytes([length]) + b"x" * length for length in lengths)
    elif spec.type == "enum":
        yield from (bytes([number]) for number in range(256) if number not in ENUMS[spec.names])
    elif spec.type != "bytes":
        most = (1 << 8 * len(sample)) - 1
        numbers = [spec.low - 1] * (spec.low > 0) + [spec.high + 1] * (spec.high < most)
        yield from (number.to_bytes(len(sample), "little") for number in numbers)


def _people(bench: Bench, *roles: int) -> None:
    """Give roles their keys, each in the slot of its number."""
    for role in roles:
        bench.driver.result(bench.host.set_key(role, SERVICE_KEY, role, PERSON))


def test_every_request_is_for_its_roles(bench: Bench) -> None:
    """Each request that is not for the owner's role is refused by it, and all others are not."""
    bench.own()
    for number, message in MESSAGES.items():
        if message.kind in ("query", "command") and message.name not in ("attach", "detach", "set_key"):
            asked = bench.host.ask_raw(number, b"", command=message.kind == "command")
            if set(message.roles) & {"anyone", "table"}:
                assert bench.outcome(asked) in ("bad_field", "not_supported", message.answer), message.name
            else:
                assert bench.refused(asked) == ("wrong_role", {"role": TABLE}), message.name


@pytest.mark.parametrize("role", [FLOOR, SERVICE])
def test_every_field_has_its_limits(bench: Bench, role: int) -> None:
    """What a table does not allow is refused by the field's index, a wrong length by 255 or the index."""
    bench.own()
    _people(bench, role)
    roles = {"anyone", "table", ENUMS["Role"][role]}
    checked = 0
    for number, message in MESSAGES.items():
        if message.kind not in ("query", "command") or not roles & set(message.roles) or not message.fields:
            continue
        right = _sample(message)
        bodies = [] if number in FROZEN else [(255, b"".join(right) + b"\0")]
        named = message.fields[-1].type in ("text", "blob")
        bodies.append((len(right) - 1 if named else 255, b"".join(right)[:-1]))
        for index, spec in enumerate(message.fields):
            for wrong in _wrong(spec, right[index]):
                bodies.append((index, b"".join(right[:index] + [wrong] + right[index + 1 :])))
        for index, body in bodies[:12]:
            by = None if set(message.roles) & {"anyone", "table"} else (role, SERVICE_KEY)
            asked = bench.host.ask_raw(number, body, command=message.kind == "command", by=by)
            assert bench.refused(asked) == ("bad_field", {"field": index}), (message.name, body)
            checked += 1
    assert checked > 40


def test_frozen_messages_may_be_longer(bench: Bench) -> None:
    bench.own()
    assert bench.driver.result(bench.host.ask_raw(IDS["status"], b"from the future"))
    cut = bench.host.ask_raw(IDS["dispense_stack"], struct.pack("<I", 0), command=True)
    assert bench.refused(cut) == ("bad_field", {"field": 255})  # fixed fields are read in one piece
    with pytest.raises(FieldError):
        bench.host.ask("locate", seconds=61)


def test_the_ring_of_evidence(bench: Bench) -> None:
    """Its rows have the log's form; chatter is not among them."""
    bench.own()
    _people(bench, SERVICE)
    assert bench.do("locate", seconds=1) == {}
    names, n = [], 0
    while True:
        row = bench.do("evidence", from_n=n + 1)
        if not row["n"]:
            break
        n = row.number("n")
        names.append(MESSAGES[row.data("row")[0]].name)
    assert names
    assert "key_changed" in names
    assert not {"located", "owner_changed", "booted"} & set(names)


def test_unknown_and_unsupported(bench: Bench) -> None:
    """A request that the device does not know, and one it cannot do."""
    bench.own()
    for message in (0x7F, IDS["booted"], IDS["hello"]):
        refused = bench.refused(bench.host.ask_raw(message, b""))
        assert refused == ("unknown_message", {"message": message})
    with pytest.raises(SabotError, match="not_supported"):
        bench.do("component", component=1)


def test_versions(bench: Bench) -> None:
    """With another schema hash frozen requests work, and all others are refused."""
    bench.provision()
    bench.new_host(schema=b"another1")
    bench.attach()
    bench.do("status")
    with pytest.raises(SabotError, match="version_mismatch"):
        bench.do("locate", seconds=1)
    bench.host.device["schema"] = bench.host.schema  # so that the host does not hold it back
    refused = bench.refused(bench.host.ask("locate", seconds=1))
    assert refused == ("version_mismatch", {"major": MAJOR, "minor": MINOR})


# roles, keys, time and trace


def test_elevation(bench: Bench) -> None:
    """A person's key is set while the device is provisioned, and authorises one request at a time."""
    bench.own()
    host = bench.host
    for slot in (SERVICE, 0, 1, 13, 99):
        refused = bench.refused(host.ask_by((slot, SERVICE_KEY), "remove_key", slot=SERVICE))
        assert refused == ("no_such_key", {"slot": slot})
    _people(bench, SERVICE)
    assert bench.refused(host.set_key(SERVICE, KEY, SERVICE, PERSON))[0] == "wrong_role"
    assert bench.refused(host.set_key(0, KEY, TABLE))[0] == "wrong_role"
    assert bench.refused(host.set_key(FLOOR, bytes(32), FLOOR, 1)) == ("bad_field", {"field": 3})
    assert bench.refused(host.set_key(FLOOR, KEY, TABLE, 1)) == ("bad_field", {"field": 1})
    refused = bench.refused(host.ask_by((SERVICE, KEY), "remove_key", slot=1))
    assert refused == ("bad_credential", {"slot": SERVICE})
    assert bench.driver.result(host.set_key(FLOOR, KEY, FLOOR, 12)) == {}
    held = bench.do("key_slots")
    assert held == {"open": 1, "slots": (0, 3, 4), "roles": (1, 3, 4), "persons": (0, 12, PERSON)}
    assert bench.do("set_clock", utc_s=1_800_000_000, utc_ms=0) == {}
    assert bench.do("locate", seconds=1) == {}  # the device is in use: the slots are closed
    assert bench.do("key_slots")["open"] == 0
    assert bench.refused(host.set_key(5, KEY, FLOOR, 13)) == ("wrong_role", {"role": TABLE})
    assert bench.driver.result(host.set_key(5, KEY, FLOOR, 13, BY_SERVICE)) == {}
    assert bench.driver.result(host.ask_by(BY_SERVICE, "remove_key", slot=5)) == {}
    assert bench.refused(host.ask("remove_key", slot=FLOOR)) == ("wrong_role", {"role": TABLE})
    assert bench.refused(host.ask_by(BY_SERVICE, "remove_key", slot=0)) == ("bad_field", {"field": 0})
    used = [(event.values["person"], event.values["request"]) for event in bench.events("elevation_used", 2)]
    assert used[:2] == [(PERSON, IDS["set_key"]), (PERSON, IDS["remove_key"])]
    assert [event.values["slot"] for event in bench.events("key_removed", 1)] == [5]


def test_house(bench: Bench) -> None:
    """A device is bound to a house once; only the house's key names another one."""
    old, new = (Ed25519PrivateKey.from_private_bytes(bytes([each] * 32)) for each in (1, 2))
    house, other = (key.public_key().public_bytes_raw() for key in (old, new))
    state = bench.reset()
    assert (state["bound"], state["house"], state["count"], state["accepted"]) == (0, bytes(32), 0, 0)
    bench.own()
    host = bench.host
    _people(bench, SERVICE)
    bound: dict[str, Value] = {"key": house, "site": "MAIN", "number": 0, "old_until_s": 0, "proof": b""}
    assert bench.refused(host.ask("house_key", **{**bound, "key": bytes(32)})) == ("bad_field", {"field": 0})
    assert bench.refused(host.ask("house_key", **{**bound, "site": "\\"})) == ("bad_field", {"field": 1})
    assert bench.do("house_key", **bound) == {}
    assert bench.refused(host.ask("house_key", **{**bound, "site": "CLUB"}))[0] == "wrong_role"
    told = f'{{"from":"{house.hex()}","number":1,"old_until_s":7,"to":"{other.hex()}","v":1}}'
    proof = old.sign(b"sabot rotation 1\n" + told.encode())
    rotated: dict[str, Value] = {"key": other, "site": "MAIN", "number": 1, "old_until_s": 7, "proof": proof}
    assert bench.refused(host.ask("house_key", **rotated))[0] == "wrong_role"
    wrong: dict[str, Value] = {**rotated, "number": 2}
    assert bench.refused(host.ask_by(BY_SERVICE, "house_key", **wrong)) == ("bad_proof", {})
    assert bench.driver.result(host.ask_by(BY_SERVICE, "house_key", **rotated)) == {}
    changed = [(event.values["key"], event.values["person"]) for event in bench.events("house_changed", 2)]
    assert changed == [(house, 0), (other, PERSON)]
    bench.new_host()
    state = bench.reset()
    assert (state["bound"], state["house"], state["count"], state["accepted"]) == (1, other, 0, 0)
    with pytest.raises(SabotError, match="already_provisioned"):
        bench.reset(proof)


def test_certificates(bench: Bench) -> None:
    """A person with a certificate authorises one request; the house revokes it, in a list of two parts."""
    office, dana = (Ed25519PrivateKey.from_private_bytes(bytes([each] * 32)) for each in (1, 3))
    house, key = (each.public_key().public_bytes_raw() for each in (office, dana))
    now_s, site, reasons = 1_800_000_000, "MAIN", ENUMS["CertificateReason"]
    bench.own()
    host = bench.host
    assert bench.do("house_key", key=house, site=site, number=0, old_until_s=0, proof=b"") == {}
    assert bench.do("set_clock", utc_s=now_s, utc_ms=0) == {}

    def reason(asked: Asked) -> str:
        name, details = bench.refused(asked)
        assert name == "certificate_refused"
        return reasons[int(str(details["reason"]))]

    text = wire.certificate_text(house, key, now_s + 60, "dana", ["dealer", "floor"], site)
    signature = office.sign(b"sabot certificate 1\n" + text)
    shown: dict[str, Value] = {"key": key, "not_after_s": now_s + 60, "person": "dana", "roles": 12}
    shown |= {"site": site, "signature": signature}

    def hand_over(number: int, ids: list[bytes]) -> Asked:
        for first in range(0, max(len(ids), 1), 9):
            part = b"".join(ids[first : first + 9])
            fields: dict[str, Value] = {"number": number, "count": len(ids), "first": first, "ids": part}
            asked = host.ask("revocations", **fields, signature=b"")
            if bench.outcome(asked) != "revocations_are":
                return asked
        signed = office.sign(wire.revocations_text(house, number, ids))
        return host.ask(
            "revocations", number=number, count=len(ids), first=len(ids), ids=b"", signature=signed
        )

    def elevate(number: int, body: bytes) -> Asked:
        assert host.link
        message = IDS["play_one_deck"]
        text = wire.certificate_proof(host.link.keys.transcript, FLOOR, message, number, body)
        fields = Values(scheme=2, slot=FLOOR, request=message, request_number=number, proof=dana.sign(text))
        return host.ask("elevate", **fields, body_sha256=hashlib.sha256(body).digest())

    assert reason(host.ask("certificate", **shown)) == "no_revocations"
    assert bench.driver.result(hand_over(1, [])) == {"known": 1, "number": 1, "taken": 0}
    assert bench.driver.result(host.ask("certificate", **shown)) == {}
    who = int.from_bytes(hashlib.sha256(text).digest()[:4], "little")
    assert bench.driver.result(elevate(1, bytes([1]))) == {"role": FLOOR, "person": who}
    assert bench.refused(host.ask("play_one_deck", on=0))[0] == "wrong_role"
    bench.outcome(host.ask("play_one_deck", on=1))
    assert bench.refused(host.ask("play_one_deck", on=1))[0] == "wrong_role"
    (used,) = bench.events("certificate_used", 1)
    assert (used.values["person"], used.values["role"]) == ("dana", FLOOR)
    assert used.values["certificate"] == hashlib.sha256(text).digest()[:16]
    assert reason(elevate(1, bytes([1]))) == "shown_before"
    ids = sorted([hashlib.sha256(text).digest()[:16], *(bytes([each] * 16) for each in range(10))])
    assert bench.driver.result(hand_over(2, ids)) == {"known": 1, "number": 2, "taken": 0}
    assert reason(elevate(2, bytes([1]))) == "revoked"
    assert reason(hand_over(1, [])) == "old_list"
    taken = [(each.values["number"], each.values["count"]) for each in bench.events("revocations_taken", 2)]
    assert taken == [(1, 0), (2, 11)]


def test_elevation_is_for_what_it_names(bench: Bench) -> None:
    """Another body, number or session, and a proof shown again, are refused."""
    bench.own()
    _people(bench, SERVICE)
    host = bench.host
    assert host.link
    serial = host.device.data("serial")
    remove, number, body = IDS["remove_key"], host.record.next_number, bytes([5])

    def elevate(transcript: bytes, scheme: int = 1) -> str:
        key = wire.slot_key(SERVICE_KEY, serial, SERVICE)
        proof = wire.elevation_proof(key, transcript, SERVICE, remove, number, body)
        fields = Values(scheme=scheme, slot=SERVICE, request=remove, request_number=number)
        fields |= Values(body_sha256=hashlib.sha256(body).digest(), proof=proof)
        return bench.outcome(host.ask("elevate", **fields))

    first = host.link.keys.transcript
    assert elevate(first, 3) == "not_supported"
    assert elevate(bytes(32)) == "bad_credential"
    assert elevate(first) == "elevated"
    assert elevate(first) == "bad_credential"
    number += 7
    assert elevate(first) == "elevated"
    assert bench.give(number, "remove_key", bytes([6])) == "wrong_role"
    number += 1
    assert elevate(first) == "elevated"
    assert bench.give(number, "remove_key", body) == "no_such_key"  # authorised: the slot is empty
    assert bench.give(number + 1, "remove_key", body) == "wrong_role"
    host.record.next_number = number + 2
    bench.connect()
    number += 10
    assert elevate(first) == "bad_credential"


def test_wrong_proofs_lock_nobody_out(bench: Bench) -> None:
    """They are told by events, the first at once."""
    bench.own()
    _people(bench, SERVICE)
    for _ in range(7):
        refused = bench.refused(bench.host.ask_by((SERVICE, KEY), "remove_key", slot=9))
        assert refused == ("bad_credential", {"slot": SERVICE})
    assert bench.refused(bench.host.ask_by(BY_SERVICE, "remove_key", slot=9))[0] == "no_such_key"
    (told,) = bench.events("proofs_refused", 1)
    assert told.values == {"slot": SERVICE, "count": 1, "total": 1}


def test_new_device_key(bench: Bench) -> None:
    """Service sets a new device key; it is answered, and then the session ends."""
    bench.own()
    _people(bench, SERVICE)
    new = bytes(range(100, 132))
    bench.driver.result(bench.host.set_key(0, new, TABLE, by=BY_SERVICE))
    bench.driver.wait(lambda: bench.host.ends == ["closed_by_peer"])
    with pytest.raises(SabotError, match="device_not_proved"):
        bench.connect()
    bench.host.key = new
    bench.connect()
    bench.do("status")


def test_observers(bench: Bench) -> None:
    """They have a key of their own, see the same events, and decide nothing."""
    bench.own()
    bench.new_host(OBSERVERS_KEY, slot=1)
    with pytest.raises(SabotError, match="no_such_key"):
        bench.connect()
    bench.new_host()
    bench.attach()
    bench.driver.result(bench.host.set_key(1, OBSERVERS_KEY, 0))
    owner = bench.host.record
    bench.new_host(KEY, slot=1)
    with pytest.raises(SabotError, match="device_not_proved"):
        bench.connect()
    bench.new_host(OBSERVERS_KEY, Record(owner.host_id, 5), slot=1)
    bench.connect()
    assert bench.refused(bench.host.attach()) == ("wrong_role", {"role": 0})
    attached = bench.driver.result(bench.host.attach(OBSERVER))
    assert (attached["known"], attached["newest_command"]) == (0, 0)
    assert bench.give(5, "locate", LOCATE) == "not_owner"
    assert bench.refused(bench.host.ask_by(BY_SERVICE, "remove_key", slot=1))[0] == "not_owner"
    assert bench.events("key_changed", 2)


def test_close(bench: Bench) -> None:
    """A host that ends in order leaves the device free at once."""
    bench.own()
    bench.host.close()
    bench.driver.step()
    bench.new_host()
    bench.attach(OBSERVER)
    assert bench.host.attached
    assert bench.host.attached["owner"] == bytes(8)
    owners = [event.values["owner"] for event in bench.events("owner_changed", 2)]
    assert owners[-1] == bytes(8)


def test_handshake_after_a_wrong_proof(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused for a second, and then taken."""
    bench.provision()
    derive = Keys.derive
    with monkeypatch.context() as patch:
        patch.setattr(Keys, "derive", lambda *args: replace(derive(*args), host_proof=bytes(16)))
        with pytest.raises(SabotError, match="bad_proof"):
            bench.connect()
    bench.driver.sent.clear()
    bench.connect()
    hellos = [each for each in FrameDecoder().feed(bytes(bench.driver.sent)) if each[1] == IDS["hello"]]
    assert len(hellos) > 1


def test_set_clock(bench: Bench) -> None:
    """The device takes the time, says so, and dates its events."""
    bench.own()
    now = 1_800_000_000
    assert bench.do("set_clock", utc_s=now, utc_ms=250) == {}
    (changed,) = bench.events("clock_changed", 1)
    assert changed.values == {"step_s": 0, "quality": 1}
    assert changed.quality == 1
    assert changed.utc_s >= now
    status = bench.do("status")
    assert status["clock"] == 1
    assert _flags("StatusFlag", status["flags"]) == {"owned", "clock_known"}
    assert status.number("utc_s") >= now
    bench.do("set_clock", utc_s=now + 1000, utc_ms=0)
    assert 0 < bench.events("clock_changed", 2)[1].values.number("step_s") <= 1000


def test_trace(bench: Bench) -> None:
    """The newest header is that of the request itself."""
    bench.own()
    asked = bench.host.ask("trace", skip=0)
    headers = bench.driver.result(asked).data("headers")
    assert len(headers) % 16 == 0
    _, _, number, kind, _, _, message = struct.unpack_from("<IIIBBBB", headers)
    assert (number, kind, message) == (asked.number, wire.REQUEST, IDS["trace"])


# hosts that were forgotten, and packets of another session


def test_new_host_after_many(bench: Bench) -> None:
    """What it asks above the numbers that were dropped is new; what it may have asked before is forgotten."""
    _many_hosts(bench)
    bench.new_host(record=Record(os.urandom(8), 50, position=bench.host.record.position))
    attached = bench.attach()
    assert (attached["known"], attached["newest_command"]) == (0, 100)
    _keep_up(bench)
    assert bench.give(49, "locate", LOCATE) == "forgotten"
    assert bench.give(101, "locate", LOCATE) == "done"


def test_newest_number_of_eight_hosts(bench: Bench) -> None:
    """Sixteen of 25 hosts are in the ledger and one is dropped: eight are left."""
    hosts = _many_hosts(bench)
    bench.new_host(record=Record(hosts[1], 200, position=bench.host.record.position))
    assert bench.attach()["known"] == 1


def test_short_packet_of_another_session(bench: Bench) -> None:
    """A packet shorter than 26 bytes is malformed, before anything else."""
    bench.own()
    bench.driver.write(wire.encode_frame(b"\x03" + bytes(24)))
    assert bench.counter("malformed") == 1
