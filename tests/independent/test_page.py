"""The page's tables and worked examples, reproduced byte for byte by an implementation made from its text."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from tests.independent import peer, wire
from tests.independent.black_box import KEY
from tests.independent.page import (
    COUNTERS,
    ENUMS,
    ERRORS,
    EXAMPLES,
    EXAMPLES_TEXT,
    IDS,
    KEYS,
    KINDS,
    LIMITS,
    MESSAGES,
    SCHEMA,
    SECTIONS,
    TEXT,
    Example,
    Message,
)
from tests.independent.peer import Host, Record
from tests.independent.wire import FieldError, Keys, Packet, Value, Values


def _payload(example: Example) -> bytes:
    """The payload of an example."""
    return wire.decode_block(example.frame[:-1])


def _sealed(example: Example) -> bool:
    """Whether an example is a sealed packet."""
    return example.parts[0][1][0] in (wire.SEALED_TO_DEVICE, wire.SEALED_TO_HOST)


def _conversations() -> list[list[Example]]:
    """The sections of the page; one that begins with a sealed packet goes on with the one before."""
    found: list[list[Example]] = []
    for _, section in groupby(EXAMPLES, key=lambda example: example.section):
        words = list(section)
        if _sealed(words[0]):
            found[-1] += words
        else:
            found.append(words)
    return found


def _sessions() -> Iterator[tuple[Example, Keys | None]]:
    """Every example, with the keys of the last handshake of its conversation."""
    for words in CONVERSATIONS:
        keys, hello = None, b""
        for example in words:
            if example.title == "hello":
                hello = _payload(example)[2:]
            elif example.title == "challenge":
                keys = Keys.derive(_key_of(words), hello, _payload(example)[2:])
            yield example, keys


def _told(pattern: str) -> bytes:
    """A key that the text of the examples tells."""
    told = re.search(pattern.replace(" ", r"\s") + "`([0-9a-f]{64})`", EXAMPLES_TEXT)
    assert told, pattern
    return bytes.fromhex(told[1])


def _key_of(words: list[Example]) -> bytes:
    """The key that a conversation's session is proved with: the device's, or the observers'."""
    slots = [word.number("slot") for word in words if word.title == "hello"]
    return OBSERVERS_KEY if slots and slots[0] == 1 else KEY


OBSERVERS_KEY = _told(r"the observers' key, ")
SERVICE_KEY = _told(r"of role `service` has the key ")
OTHER_KEY = _told(r"Made with another key, ")
FLOOR_KEY = _told(r"with slot 3 and the key ")
NEW_KEY = _told(r"The new device key is ")
CONVERSATIONS = _conversations()
SESSIONS = list(_sessions())
FIRST = next(keys for _, keys in SESSIONS if keys)
LAST = {example.title: example for example in EXAMPLES}


def _number(text: str) -> int:
    """The number that a part's description begins with."""
    return int(text.split()[0], 0)


def _values(message: Message, example: Example) -> Values:
    """The described values of a message's fields."""
    parts = {name: (data, text) for name, data, text in example.parts}
    values = Values()
    for spec in message.fields:
        data, text = parts[spec.name]
        value: Value
        if spec.type in ("bytes", "blob"):
            value = data[spec.type == "blob" :]
        elif spec.type == "text":
            value = text.strip("'")
        elif spec.type == "enum":
            value = next(number for number, name in ENUMS[spec.names].items() if name == text)
        else:
            value = _number(text)
        values[spec.name] = value
    return values


def _flags(text: str) -> int:
    """The described flags of a packet."""
    names = {"RESOLVE": wire.RESOLVE, "status: ok": 0}
    names |= {f"status: {error.name}": code for code, error in ERRORS.items()}
    names |= {f"clock quality: {name}": code for code, name in ENUMS["ClockQuality"].items()}
    names |= {f"reason: {name}": code for code, name in ENUMS["GapReason"].items()}
    return names[text] if text in names else int(text)


def _rebuilt(example: Example, keys: Keys | None) -> bytes:
    """An example's payload, made anew from the values that the page describes."""
    host = example.sender == "host"
    if not _sealed(example):
        direction = wire.CLEAR_TO_DEVICE if host else wire.CLEAR_TO_HOST
        return wire.encode_clear(example.title, _values(MESSAGES[IDS[example.title]], example), direction)
    assert keys
    text = {name: described for name, _, described in reversed(example.parts)}  # header first
    kind = KINDS.index(text["kind"])
    message = 0 if text["message"] == "-" else IDS[text["message"]]
    flags = _flags(text["flags"])
    body = b""
    if kind == wire.EVENT:
        body = struct.pack(
            "<IIIH", *(_number(text[name]) for name in ("boot_id", "ticks_ms", "utc_s", "utc_ms"))
        )
    if kind == wire.GAP:
        names = ("after_boot", "after_n", "before_boot", "before_n")
        body = struct.pack("<IIII", *(_number(text[name]) for name in names))
    elif kind == wire.EVENT_ACK:
        body = struct.pack("<I", _number(text["boot_id"]))
    elif kind == wire.ANSWER and flags:
        body = wire.encode_fields(ERRORS[flags], _values(ERRORS[flags], example))
    elif message and text["flags"] != "RESOLVE":
        body += wire.encode_fields(MESSAGES[message], _values(MESSAGES[message], example))
    direction = wire.SEALED_TO_DEVICE if host else wire.SEALED_TO_HOST
    session, counter, seq, ack, sack, number = (
        _number(text[name]) for name in ("session", "counter", "seq", "ack", "sack", "request_id")
    )
    packet = Packet(direction, session, counter, seq, ack, sack, kind, message, flags, number, body)
    return packet.seal(keys.to_device if host else keys.to_host)


@pytest.mark.parametrize(
    ("example", "keys"),
    SESSIONS,
    ids=[f"{number}-{example.title}" for number, example in enumerate(EXAMPLES)],
)
def test_frame_is_what_is_described(example: Example, keys: Keys | None) -> None:
    """A frame is its parts, and is made anew from their descriptions and the keys, with its MAC."""
    assert _payload(example) == b"".join(data for _, data, _ in example.parts)
    assert wire.encode_frame(_rebuilt(example, keys)) == example.frame
    assert keys is None or not _sealed(example) or example.number("session") == keys.session


def test_page_is_whole() -> None:
    assert len(EXAMPLES) >= 100
    assert len({keys.transcript for _, keys in SESSIONS if keys}) >= 5
    assert set(SECTIONS) == {example.section for example in EXAMPLES}
    assert TEXT.count("\n```") % 2 == EXAMPLES_TEXT.count("\n```") % 2 == 0


def test_tables_agree_with_each_other() -> None:
    assert {data for example in EXAMPLES for name, data, _ in example.parts if name == "schema"} == {SCHEMA}
    assert [getattr(wire, name) for name in KINDS] == list(range(7))
    roles = set(ENUMS["Role"].values()) | {"anyone"}
    for message in MESSAGES.values():
        asked = message.kind in ("query", "command")
        assert message.kind in ("clear", "answer", "event") or asked
        assert (message.answer in IDS) or not asked
        assert set(message.roles) <= roles or not asked
        assert {spec.names for spec in message.fields if spec.type in ("enum", "flags")} <= set(ENUMS)
    assert list(ERRORS) == sorted(ERRORS)


def test_limits_are_those_of_the_text() -> None:
    for what, numbers in {
        "payload of a frame": [1, wire.MAX_PAYLOAD, 192],
        "window": [1, peer.WINDOW],
        "first retransmission time-out": [peer.FIRST_RTO_MS],
        "retransmission time-out": [peer.MIN_RTO_MS, peer.MAX_RTO_MS],
        "transmissions of one message": [peer.TRANSMISSIONS],
        "acknowledgement delay": [peer.ACK_DELAY_MS],
        "keep-alive": [peer.KEEP_ALIVE_MS],
        "silence that ends a link": [peer.SILENCE_MS],
        "unanswered message outside a session": [peer.CLEAR_END_MS],
        "requests waiting at the host": [peer.WAITING_MAX],
    }.items():
        assert LIMITS[what] == numbers, what


def test_keys_are_those_of_the_page() -> None:
    assert {
        "device key": KEY.hex(),
        "transcript": FIRST.transcript.hex(),
        "device proof": FIRST.device_proof.hex(),
        "host proof": FIRST.host_proof.hex(),
        "key to device": FIRST.to_device.hex(),
        "key to host": FIRST.to_host.hex(),
        "pad key": FIRST.pad.hex(),
    } == KEYS


def test_proofs_of_the_handshakes() -> None:
    for example, keys in SESSIONS:
        if keys and example.title == "challenge":
            assert example.part("proof") == keys.device_proof
        elif keys and example.title == "prove":
            assert (example.part("proof") == keys.host_proof) != _proves_nothing(example)
            assert example.number("session") == keys.session


def test_proof_of_provisioning() -> None:
    first = {example.title: example for example in reversed(EXAMPLES)}
    proof = wire.provision_proof(KEY, first["provision"].part("nonce"), first["identity"].part("serial"))
    assert first["provisioned"].part("proof") == proof
    assert f"= `{proof.hex()}`" in EXAMPLES_TEXT


def _nonce() -> bytes:
    """The nonce of the shuffle in the examples."""
    told = re.search(r"The host's nonce is `([0-9a-f]{64})`", EXAMPLES_TEXT)
    assert told
    return bytes.fromhex(told[1])


def _proves_nothing(word: Example) -> bool:
    """Whether a frame is the proof that is wrong on purpose."""
    return word.title == "prove" and not any(word.part("proof"))


def _lost(word: Example, later: list[Example]) -> bool:
    """Whether a device's message is one that the host's next packet does not acknowledge."""
    said = next((example for example in later if example.sender == "host"), word)
    if word.title == "BARE" or not (_sealed(word) and _sealed(said)) or said is word:
        return False
    return (said.number("ack") - word.number("seq") - 1) & 0xFF >= 128


def _act(host: Host, word: Example, later: list[Example]) -> None:
    """Let a host do what makes it send a frame: ask what is new, or wait."""
    name = word.title.split()[-1]
    is_request = word.title.startswith("REQUEST")
    query = is_request and word.number("request_id") >= peer.FIRST_QUERY
    newest = host._next_query if query else host.record.next_number
    if name == "identify":
        host.identify()
    elif name == "provision":
        host.provision(word.part("device_key"))
    elif name == "hello":
        host.connect()
    elif name == "EVENT_ACK":
        host.acknowledge()
    elif name == "CLOSE":
        host.close()
    elif not is_request or word.number("request_id") < newest:
        host.tick(host.deadline())
    elif name == "attach":
        host.attach(word.number("mode"))
    elif name == "elevate":
        _authorised(host, word, next(each for each in later if each.sender == "host"))
    else:
        _ask(host, name, word, None)


def _authorised(host: Host, elevation: Example, word: Example) -> None:
    """Ask what a person authorises; the elevation goes before it."""
    key = FLOOR_KEY if elevation.number("slot") == 3 else SERVICE_KEY
    name = word.title.split()[-1]
    if name == "remove_key":
        key = OTHER_KEY  # the one that proves nothing
    _ask(host, name, word, (elevation.number("slot"), key))


def _ask(host: Host, name: str, word: Example, by: tuple[int, bytes] | None) -> None:
    host.device["major"] = host.major  # so that a host of another version does not hold it back
    if name == "set_key":
        key = {0: NEW_KEY, 1: OBSERVERS_KEY}.get(word.number("slot"), SERVICE_KEY)
        host.set_key(word.number("slot"), key, word.number("role"), word.number("person"), by)
    elif name == "shuffle_with":
        host.ask(name, shuffle_id=word.number("shuffle_id"), nonce=_nonce())
    elif by is not None:
        host.ask_by(by, name, **_values(MESSAGES[IDS[name]], word))
    else:
        host.ask(name, **_values(MESSAGES[IDS[name]], word))


@pytest.mark.parametrize("words", CONVERSATIONS, ids=lambda words: words[0].section)
def test_host_says_every_word_of_the_examples(words: list[Example]) -> None:
    """The whole host, fed with the device's frames of the page, sends the host's, byte for byte."""
    first = {name: data for word in words[::-1] for name, data, _ in word.parts if word.sender == "host"}
    randoms = [first.get("run", bytes(4))]
    drawn = {"hello": ("nonce",), "provision": ("nonce", "entropy")}
    randoms += [word.part(name) for word in words for name in drawn.get(word.title, ())]
    boot, n, major = (
        int.from_bytes(first.get(name, b""), "little") for name in ("from_boot", "from_n", "major")
    )
    numbers = [word.number("request_id") for word in words if word.title.startswith("REQUEST")]
    queries = [number for number in numbers if number >= peer.FIRST_QUERY] or [peer.FIRST_QUERY]
    commands = [number for number in numbers if number < peer.FIRST_QUERY] or [1]
    record = Record(first.get("host_id", b""), commands[0], position=(boot, n))
    slot = 1 if _key_of(words) == OBSERVERS_KEY else 0
    key, query = _key_of(words), queries[0]
    host = Host(record, key, random=lambda size: randoms.pop(0), major=major, slot=slot, next_query=query)
    heard, waiting = b"", b""
    for at, word in enumerate(words):
        if word.sender == "device":
            heard += b"" if _lost(word, words[at:]) else word.frame
            continue
        host.receive(heard, host.now)
        heard = b""
        waiting += host.take_out()
        if not waiting:
            _act(host, word, words[at + 1 :])
            waiting = host.take_out()
        said, _, waiting = waiting.partition(b"\0")
        assert said + b"\0" == word.frame or _proves_nothing(word)
    host.receive(heard, host.now)
    assert (waiting + host.take_out(), randoms) == (b"", [])
    assert host.failed == (ERRORS[words[-1].number("error")].name if words[-1].title == "refused" else "")
    dropped = ("malformed", "foreign", "reflected", "bad_mac", "replayed", "duplicates", "late_answers")
    assert not any(host.counters[name] for name in dropped)
    told = [word for word in words if word.title.startswith(("EVENT ", "GAP")) and word.sender == "device"]
    gaps = [event.values["lost"] for event in host.events if event.name == "gap"]
    assert gaps == [word.number("request_id") for word in told if word.title == "GAP"]
    names = [(event.boot, event.n) for event in host.events if event.name != "gap"]
    events = [(word.number("boot_id"), word.number("request_id")) for word in told if word.title != "GAP"]
    assert names == list(dict.fromkeys(events))


def _new_session(host: Host, boot: int = 1, window: int = 16) -> Keys:
    """Play the device's part of a handshake."""
    host.connect()
    hello = wire.decode_block(host.take_out()[:-1])[2:]
    nonce = wire.decode_fields(MESSAGES[IDS["hello"]], hello).data("nonce")
    fields = Values(proof=bytes(16), host_nonce=nonce, nonce=bytes(16), handshake=1, boot_id=boot)
    fields |= Values(memory_id=b"same", serial=b"a device", major=1, minor=0)
    fields |= Values(schema=SCHEMA, window=window, max_payload=249, flags=1)
    message = MESSAGES[IDS["challenge"]]
    keys = Keys.derive(KEY, hello, wire.encode_fields(message, fields))
    fields["proof"] = keys.device_proof
    _say(host, wire.encode_clear("challenge", fields, wire.CLEAR_TO_HOST))
    prove = wire.encode_clear("prove", {"session": keys.session, "proof": keys.host_proof})
    assert host.take_out() == wire.encode_frame(prove)
    _say(host, Packet(wire.SEALED_TO_HOST, keys.session, 1, 0, 0, 0, wire.BARE).seal(keys.to_host))
    assert host.counters["sessions"] == 1
    return keys


def _say(host: Host, payload: bytes) -> None:
    """Let a host hear a payload."""
    host.receive(wire.encode_frame(payload), host.now)


def _said(host: Host) -> list[Packet]:
    """The packets that a host sends."""
    return [Packet.read(wire.decode_block(frame)) for frame in host.take_out().split(b"\0")[:-1]]


def test_events_out_of_step_end_the_session() -> None:
    header = struct.pack("<IIIH", 2, 0, 0, 0)
    gap = struct.Struct("<IIII")
    for position, kind, number, body, follows in (
        ((2, 3), wire.EVENT, 4, header, True),
        ((2, 3), wire.EVENT, 5, header, False),
        ((2, 3), wire.EVENT, 3, header, False),
        ((1, 3), wire.EVENT, 1, header, True),
        ((1, 3), wire.EVENT, 2, header, False),
        ((3, 3), wire.EVENT, 1, header, False),
        ((2, 3), wire.GAP, 4, gap.pack(2, 3, 2, 8), True),
        ((2, 3), wire.GAP, 3, gap.pack(2, 4, 2, 8), False),
        ((1, 3), wire.GAP, 7, gap.pack(2, 0, 2, 8), True),
        ((1, 3), wire.GAP, 6, gap.pack(2, 1, 2, 8), False),
    ):
        host = Host(Record(b"the host", position=position), KEY)
        keys = _new_session(host)
        packet = Packet(wire.SEALED_TO_HOST, keys.session, 2, 0, 0, 0, kind, 0xFF, 1, number, body)
        _say(host, packet.seal(keys.to_host))
        assert host.ends == ([] if follows else ["events_out_of_step"])
        assert len(host.events) == follows


def test_window_counts_from_the_oldest_message_not_acknowledged() -> None:
    host = Host(Record(b"the host"), KEY)
    keys = _new_session(host, window=4)
    link = host.link
    assert link
    for number in range(8):
        link.send(wire.EVENT_ACK, 0, 0, number, bytes(4), host.now)
    assert [packet.seq for packet in _said(host)] == [0, 1, 2, 3]
    answer = Packet(
        wire.SEALED_TO_HOST, keys.session, 2, 0, 0, 0b11, wire.BARE
    )  # 1 and 2 are there, 0 is not
    _say(host, answer.seal(keys.to_host))
    assert [packet.seq for packet in _said(host)] == [0]
    _say(host, replace(answer, counter=3, ack=3, sack=0).seal(keys.to_host))
    assert [packet.seq for packet in _said(host)] == [3, 4, 5, 6]


def test_link_ends_after_ten_transmissions() -> None:
    host = Host(Record(b"the host"), KEY)
    keys = _new_session(host)
    link = host.link
    assert link
    link.send(wire.EVENT_ACK, 0, 0, 1, bytes(4), host.now)
    times, counter = 0, 1
    while host.link is link:
        times += len([packet for packet in _said(host) if packet.kind == wire.EVENT_ACK])
        host.tick(host.now + 500)
        counter += 1
        _say(host, Packet(wire.SEALED_TO_HOST, keys.session, counter, 0, 0, 0, wire.BARE).seal(keys.to_host))
    assert (times, host.ends) == (10, ["retries_exhausted"])


def test_one_round_trip_is_measured_for_a_packet() -> None:
    host = Host(Record(b"the host"), KEY)
    keys = _new_session(host)
    link = host.link
    assert link
    for _ in range(3):
        link.send(wire.EVENT_ACK, 0, 0, 1, bytes(4), host.now)
        host.tick(host.now + 80)
    _say(host, Packet(wire.SEALED_TO_HOST, keys.session, 2, 0, 3, 0, wire.BARE).seal(keys.to_host))
    assert (link.srtt, link.rto, link.idle) == (80, 240, True)


def test_fields() -> None:
    """Where a message is cut, too long or wrong, the index is the one that the text tells."""
    message = MESSAGES[IDS["identity"]]
    identity = _payload(LAST["identity"])[2:]
    assert wire.encode_fields(message, wire.decode_fields(message, identity)) == identity
    wrong = bytearray(identity)
    wrong[20] = 0  # window
    for data, index in (
        (bytes(wrong), 6),
        (bytes(wrong[:29]), 255),
        (identity[:-1], 10),  # a field with a length byte is named itself
        (identity + b"more", 255),
        (identity[:30] + b"\0" + identity[36:], 9),
        (identity[:31] + b"\xff" + identity[32:], 9),
    ):
        with pytest.raises(FieldError) as refused:
            wire.decode_fields(message, data)
        assert refused.value.index == index
    assert wire.decode_fields(message, identity + b"more", longer=True)


def test_frames_of_all_lengths_and_chunks() -> None:
    """What is framed comes back, in whatever chunks, and damage is counted by its reason."""
    rng = random.Random(1)
    payloads = [bytes(rng.choice((0, 0, 1, 255)) for _ in range(size)) for size in range(1, 250)]
    decoder = wire.FrameDecoder()
    stream = b"\0".join(wire.encode_frame(payload) for payload in payloads)
    found = []
    while stream:
        size = rng.randrange(1, 40)
        found += decoder.feed(stream[:size])
        stream = stream[size:]
    assert found == payloads
    assert decoder.feed(b"\x01" * 255 + b"\0" + b"\x09ab\0" + b"\x05abcd\0" + b"\x07abcdef\0") == []
    reasons = [name for name in COUNTERS if name.startswith("bad_") and decoder.counters[name] == 1]
    assert sorted(reasons) == ["bad_crc", "bad_encoding", "bad_length", "bad_overrun"]


def test_record_never_gives_a_number_twice(tmp_path: Path) -> None:
    """Also after a crash."""
    first = Record.load(tmp_path / "record")
    numbers = [first.number() for _ in range(300)]
    second = Record.load(tmp_path / "record")
    assert second.host_id == first.host_id
    assert second.number() > max(numbers)
