"""What is fuzzed, as plain functions of bytes: one a target, each raising ``Broken`` or returning.

An input is a list of records, ``op u8, length u8, data``; any bytes at all are such a list. What an op means
is the target's own: a message, a chunk, a way to forge a frame, a sealed packet. So one input tries many
frames, a fuzzer finds its way by single bytes, and a mutated payload reaches the session because the frame is
built around it.

``decoder``        any chunks
``codec``          any bytes as the fields of every message
``device``         an attacker without the key against a device that has a session with its owner
``host``           the same attacker against the owner
``unprovisioned``  anybody against a device that has no key yet
``inside``         the owner itself, gone mad: anything at all inside correctly sealed packets, over several
                   sessions and reboots
``inside_host``    the device itself, gone mad, against its host
"""

from __future__ import annotations

import binascii
import random
import struct
from collections import Counter
from typing import TYPE_CHECKING

from tests.fuzz.monitored_wire import (
    ACCEPTED_COMMAND,
    ACCEPTED_PACKET,
    ALL_ERRORS,
    ALL_MESSAGES,
    CHANGED,
    EXCEPTION,
    REQUESTS,
    SERIAL,
    UNANSWERED,
    WRONG,
    Broken,
    WatchedExecutor,
    WatchedMemory,
    Wire,
    allowed,
)

from sabot_protocol import frame
from sabot_protocol.codec import CODEC
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol
from sabot_protocol.errors import FieldError
from sabot_protocol.host_protocol import HostProtocol
from sabot_protocol.link import SILENCE_MS
from sabot_protocol.notifications import EventGap, EventReceived, RequestAnswered
from sabot_protocol.session import Session, elevation_proof
from sabot_protocol.wire_constants import (
    ANSWER,
    BARE,
    CLEAR_TO_DEVICE,
    CLEAR_TO_HOST,
    DEVICE,
    EVENT,
    GAP,
    HEADER,
    HEADER_SIZE,
    MAC_SIZE,
    MAX_AHEAD,
    NONCE_SIZE,
    REQUEST,
    SEALED_TO_DEVICE,
    SEALED_TO_HOST,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tally = Counter[str]
    Target = Callable[..., None]

SETTLE = 255  # an op of the attacks: a genuine request must be answered now


def records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The records in an input; the last one may be cut short."""
    at = 0
    while at < len(data):
        size = data[at + 1] if at + 1 < len(data) else 0
        yield data[at], data[at + 2 : at + 2 + size]
        at += 2 + size


def record(op: int, data: bytes) -> bytes:
    """One record as bytes."""
    return bytes((op, min(len(data), 255))) + data[:255]


EMPTY_FRAME = b"\x01\x01\x01\x01\x01\x00"  # no payload and its CRC; no sender makes it


def framed(payload: bytes | bytearray) -> bytes:
    """The frame around a payload."""
    if not payload:
        return EMPTY_FRAME
    return bytes(frame.encode(payload))


# -- frames -----------------------------------------------------------------------------------------


def _expected(stream: bytes) -> list[tuple[bytes | None, str | None]]:
    """What a decoder must find in a stream, worked out block by block in the plainest way."""
    found: list[tuple[bytes | None, str | None]] = []
    for block in stream.split(frame.DELIMITER)[:-1]:
        if not block:
            continue
        if len(block) > frame.MAX_BLOCK:
            found.append((None, frame.BAD_OVERRUN))
            continue
        plain = b""
        at = 0
        while at < len(block):
            plain += block[at + 1 : at + block[at]] + b"\x00"
            at += block[at]
        plain = plain[:-1]
        if at != len(block):
            found.append((None, frame.BAD_ENCODING))
        elif len(plain) < frame.CRC_SIZE + 1:
            found.append((None, frame.BAD_LENGTH))
        elif plain[-4:] != struct.pack("<I", binascii.crc32(plain[:-4])):
            found.append((None, frame.BAD_CRC))
        else:
            found.append((plain[:-4], None))
    return found


def decoder(data: bytes, tally: Tally | None = None) -> None:
    """Chunks of any bytes: the right frames are found, nothing is raised, memory does not grow.

    An even op is a chunk as it is; an odd one is a good frame around it.
    """
    machine = frame.Decoder()
    stream = b""
    found: list[tuple[bytes | None, str | None]] = []
    size = len(machine._block)
    for op, body in records(data):
        chunk = framed(body[: frame.MAX_PAYLOAD]) if op & 1 else body
        stream += chunk
        try:
            found += machine.feed(chunk)
        except Exception as error:
            raise Broken(EXCEPTION, "decoder, chunk %s: %r" % (chunk.hex(), error)) from error
        if tally is not None:
            tally["chunk"] += 1
    if len(machine._block) != size or machine._used > size:
        raise Broken(WRONG, "the decoder's memory grew to %d bytes" % len(machine._block))
    if found != _expected(stream):
        raise Broken(WRONG, "in %s it found %r, not %r" % (stream.hex(), found, _expected(stream)))
    good = b"\x00 still in step \x00"
    machine.feed(frame.DELIMITER)
    if machine.feed(framed(good)) != [(good, None)]:
        raise Broken(WRONG, "after %s and a delimiter a good frame was not found" % stream.hex())


# -- messages ---------------------------------------------------------------------------------------

_PACKED = ALL_MESSAGES + ALL_ERRORS


def codec(data: bytes, tally: Tally | None = None) -> None:
    """Any fields: refused with FieldError, or values that pack to the same bytes again.

    A frozen message may be followed by bytes of a later version; they are not packed again. The op names the
    message; each record is tried with that one, and an input of a single record with all of them.
    """
    tried = list(records(data))
    for op, body in tried:
        messages = _PACKED if len(tried) == 1 else (_PACKED[op % len(_PACKED)],)
        for message in messages:
            if tally is not None:
                tally["fields"] += 1
            try:
                values = message.unpack(body)
            except FieldError:
                continue
            except Exception as error:
                raise Broken(EXCEPTION, "%s.unpack(%s): %r" % (message.name, body.hex(), error)) from error
            try:
                packed = message.pack(values)
            except Exception as error:
                raise Broken(EXCEPTION, "%s.pack(%r): %r" % (message.name, values, error)) from error
            if packed != body and not (message.frozen and body.startswith(packed)):
                how = "%s unpacks to %r, which packs to %s" % (body.hex(), values, packed.hex())
                raise Broken(WRONG, "%s: %s" % (message.name, how))


# -- forged frames ----------------------------------------------------------------------------------


_HELLO = bytes((CLEAR_TO_DEVICE, CODEC.named("hello").id))


class Overheard:
    """What an attacker has to work with against one end: payloads, and no key."""

    def __init__(self, wire: Wire, against_device: bool) -> None:
        self.sealed = SEALED_TO_DEVICE if against_device else SEALED_TO_HOST
        self.clear = CLEAR_TO_DEVICE if against_device else CLEAR_TO_HOST
        self.towards = wire.to_device if against_device else wire.to_host
        self.reflected = wire.to_host if against_device else wire.to_device
        self.old = wire.old_to_device if against_device else wire.old_to_host
        self.session = wire.link().session.id
        self.other = Session(bytes(32), wire.link().session.transcript, against_device)
        self.withheld = b""  # the payload of a genuine frame that has not arrived yet

    def pick(self, choice: int) -> bytes:
        """One of the payloads that were on their way to this end; often the one withheld."""
        if choice & 1 and self.withheld:
            return self.withheld
        return self.towards[(choice >> 1) % len(self.towards)]

    def nonce(self) -> bytes:
        """The nonce of the latest hello on the cable."""
        for payload in reversed(self.reflected + self.towards):
            if payload[:2] == _HELLO:
                return payload[2 : 2 + NONCE_SIZE]
        return bytes(NONCE_SIZE)


def _bytes(heard: Overheard, data: bytes) -> bytes:
    return data + frame.DELIMITER if data[:1] > b"\x7f" else data


def _payload(heard: Overheard, data: bytes) -> bytes:
    return framed(data[: frame.MAX_PAYLOAD])


def _headed(heard: Overheard, data: bytes) -> bytes:
    """Random behind a header that this end looks at: sealed for its session, or clear."""
    if data[:1] < b"\xc0":
        return framed(struct.pack("<BH", heard.sealed, heard.session) + data[1 : frame.MAX_PAYLOAD - 3])
    return framed(bytes((heard.clear,)) + data[1 : frame.MAX_PAYLOAD - 1])


def _flip(payload: bytes, data: bytes) -> bytearray:
    """Change a few bytes: each pair of ``data`` says which one and how."""
    changed = bytearray(payload)
    size = len(changed)
    for at in range(0, len(data) - 1, 2):
        changed[data[at] % size] ^= data[at + 1]
    return changed


def _flipped(heard: Overheard, data: bytes) -> bytes:
    return bytes(_flip(framed(heard.pick(data[0])), data[1:9]))


def _flipped_fixed(heard: Overheard, data: bytes) -> bytes:
    return framed(_flip(heard.pick(data[0]), data[1:9]))


def _truncated(heard: Overheard, data: bytes) -> bytes:
    whole = framed(heard.pick(data[0]))
    return whole[: data[1] % len(whole)] + frame.DELIMITER


def _truncated_fixed(heard: Overheard, data: bytes) -> bytes:
    payload = heard.pick(data[0])
    return framed(payload[: data[1] % len(payload)])


def _spliced(heard: Overheard, data: bytes) -> bytes:
    one, two = heard.pick(data[0]), heard.pick(data[1])
    return framed((one[: data[2] % len(one)] + two[data[3] % len(two) :])[: frame.MAX_PAYLOAD])


def _extended(heard: Overheard, data: bytes) -> bytes:
    return framed((heard.pick(data[0]) + data[1:])[: frame.MAX_PAYLOAD])


def _replayed(heard: Overheard, data: bytes) -> bytes:
    return framed(heard.towards[data[0] % len(heard.towards)])


def _replayed_old(heard: Overheard, data: bytes) -> bytes:
    """A genuine packet of an earlier session, as it was or with this session's id."""
    payload = heard.old[data[0] % len(heard.old)]
    if data[1] & 1 and payload[0] == heard.sealed:
        payload = payload[:1] + struct.pack("<H", heard.session) + payload[3:]
    return framed(payload)


def _reflected(heard: Overheard, data: bytes) -> bytes:
    """A packet of this end come back, as it was or with its direction turned."""
    payload = heard.reflected[data[0] % len(heard.reflected)]
    if data[1] & 1:
        turned = heard.sealed if payload[0] in (SEALED_TO_DEVICE, SEALED_TO_HOST) else heard.clear
        payload = bytes((turned,)) + payload[1:]
    return framed(payload)


def _other_key(heard: Overheard, data: bytes) -> bytes:
    """A perfect packet for this session, sealed under another key; often just what is expected next."""
    heard.other.sent = data[1] << 24 | data[2] << 16 | 0xFFFE
    if heard.withheld and data[0] & 1:
        genuine = heard.withheld
        _, _, _, seq, ack, sack, kind, message, flags, number = struct.unpack_from(HEADER, genuine)
        body = genuine[HEADER_SIZE:-MAC_SIZE]
        return framed(heard.other.seal(seq, ack, sack, kind, message, flags, number + data[3] % 3, body))
    request = REQUESTS[data[4] % len(REQUESTS)]
    body = request.pack(allowed(request, random.Random(data[5])))[:160]
    kind = REQUEST if heard.sealed == SEALED_TO_DEVICE else (ANSWER, EVENT, GAP)[data[6] % 3]
    return framed(heard.other.seal(data[3], data[6], 0, kind, request.id, 0, data[7] << 8, body))


_CLEAR = tuple(each for each in ALL_MESSAGES if each.kind == "clear")


def _clear_message(heard: Overheard, data: bytes) -> bytes:
    """A well-formed message outside the session, which names this session and the nonces that were used."""
    message = _CLEAR[data[0] % len(_CLEAR)]
    values = allowed(message, random.Random(data[1] << 8 | data[2]))
    for index, field in enumerate(message.fields):
        if field[0] == "session" and data[3] & 1:
            values[index] = heard.session
        elif field[0] in ("nonce", "host_nonce") and data[3] & 2:
            values[index] = heard.nonce()
    return framed(bytes((heard.clear, message.id)) + message.pack(values))


FORGERIES: tuple[tuple[str, Callable[[Overheard, bytes], bytes]], ...] = (
    ("random_bytes", _bytes),
    ("random_payload", _payload),
    ("random_behind_header", _headed),
    ("flipped", _flipped),
    ("flipped_crc_fixed", _flipped_fixed),
    ("truncated", _truncated),
    ("truncated_crc_fixed", _truncated_fixed),
    ("spliced", _spliced),
    ("extended", _extended),
    ("replayed", _replayed),
    ("replayed_old_session", _replayed_old),
    ("reflected", _reflected),
    ("other_key", _other_key),
    ("clear_message", _clear_message),
)
_LEAST = bytes(8)  # every forgery reads at most this many bytes without asking


def forge(heard: Overheard, op: int, data: bytes) -> bytes:
    """The frame that ``op`` and ``data`` describe; never the genuine frame that is being withheld."""
    name, make = FORGERIES[op % len(FORGERIES)]
    made = make(heard, data if name.startswith("random") or len(data) >= 8 else data + _LEAST)
    if heard.withheld and framed(heard.withheld)[:-1] in made:
        return frame.DELIMITER
    return made


class DeviceAttack:
    """An attacker without the key against a device that has a session with its owner.

    While it strikes, a genuine command is withheld, so that it knows a frame the device would accept.
    """

    def __init__(self, seed: int = 0, tally: Tally | None = None) -> None:
        self.wire = Wire(seed)
        self.tally: Tally = Counter() if tally is None else tally
        self.heard = Overheard(self.wire, True)
        self.strikes = 0
        self._frame = b""
        self._number = 0
        self._withhold()

    def strike(self, op: int, data: bytes) -> None:
        """One forged frame: nothing is raised, nothing accepted, nothing changed."""
        name = FORGERIES[op % len(FORGERIES)][0]
        forged = forge(self.heard, op, data)
        self.tally[name] += 1
        self.strikes += 1
        wire = self.wire
        try:
            wire.port.receive(forged, wire.now)
            if self.strikes & 15 == 0:
                wire.port.poll(wire.now)
        except Exception as error:
            raise Broken(EXCEPTION, "device, %s frame %s: %r" % (name, forged.hex(), error)) from error
        if self._truth() != self._before:
            self._accuse(name, forged)

    def settle(self) -> None:
        """The genuine command arrives: it is executed once and answered."""
        wire = self.wire
        wire.now += 5
        commands = wire.executor.commands
        wire.until_answered(self._number, self._frame)
        if wire.executor.commands != commands + 1 or wire.executor.wrong:
            how = wire.executor.wrong or "%d executions" % (wire.executor.commands - commands)
            raise Broken(WRONG, "one genuine command: " + how)
        self.tally["genuine"] += 1
        self._withhold()

    def _withhold(self) -> None:
        wire = self.wire
        self._number = wire.ask("locate", 1 + self.strikes % 60)
        self._frame = wire.host.poll(wire.now)
        payloads = [payload for payload, _ in frame.Decoder().feed(self._frame) if payload is not None]
        self.heard.withheld = payloads[-1]
        self._before = self._truth()

    def _truth(self) -> tuple[object, ...]:
        wire = self.wire
        link = wire.port.link
        return (
            wire.executor.commands,
            wire.memory.saves,
            link,
            link and link.session.received,
            wire.device.owner,
            wire.port.slot,
        )

    def _accuse(self, name: str, forged: bytes) -> None:
        what = "device, %s frame %s" % (name, forged.hex())
        commands, _, link, taken, _, _ = self._before
        if self.wire.executor.commands != commands:
            raise Broken(ACCEPTED_COMMAND, "%s executed %s" % (what, self.wire.executor.done[-1][0]))
        if self.wire.port.link is link and link is not None and self.wire.link().session.received != taken:
            raise Broken(ACCEPTED_PACKET, what)
        raise Broken(CHANGED, "%s: keys, ledger, events, owner, role or session changed" % what)


class HostAttack:
    """An attacker without the key against the owner, which waits for an answer meanwhile."""

    def __init__(self, seed: int = 0, tally: Tally | None = None) -> None:
        self.wire = Wire(seed)
        self.tally: Tally = Counter() if tally is None else tally
        self.strikes = 0
        self._answer = b""
        self._number = 0
        self.heard = Overheard(self.wire, False)
        self._withhold()

    def strike(self, op: int, data: bytes) -> None:
        """One forged frame: nothing is raised, and nothing that the device did not say is passed on."""
        name = FORGERIES[op % len(FORGERIES)][0]
        forged = forge(self.heard, op, data)
        self.tally[name] += 1
        self.strikes += 1
        host = self.wire.host
        try:
            host.receive(forged, self.wire.now)
            if self.strikes & 15 == 0:
                said = host.poll(self.wire.now)  # never arrives, but is overheard
                self.wire.note(said, self.wire.to_device, frame.Decoder())
        except Exception as error:
            raise Broken(EXCEPTION, "host, %s frame %s: %r" % (name, forged.hex(), error)) from error
        if host._notifications or self._truth() != self._before:
            passed_on = [type(each).__name__ for each in host.take_notifications()]
            raise Broken(ACCEPTED_PACKET, "host, %s frame %s: %s" % (name, forged.hex(), passed_on))

    def settle(self) -> None:
        """The genuine answer arrives. Forged hints may have made the host ask for a new session first."""
        wire = self.wire
        wire.now += 5
        wire.note(self._answer, wire.to_host, frame.Decoder())
        wire.host.receive(self._answer, wire.now)
        wire.until_answered(self._number)
        wire.now += 400
        wire.pump()
        self.tally["genuine"] += 1
        self._withhold()

    def _withhold(self) -> None:
        wire = self.wire
        if self.heard.session != wire.link().session.id:  # a forged hint has led to a new session
            self.heard = Overheard(wire, False)
        self._number = wire.ask("locate", 1 + self.strikes % 60)
        asked = wire.host.poll(wire.now)
        wire.port.receive(asked, wire.now)
        self._answer = wire.port.poll(wire.now)
        payloads = [payload for payload, _ in frame.Decoder().feed(self._answer) if payload is not None]
        self.heard.withheld = payloads[self.strikes % len(payloads)]
        wire.note(asked, wire.to_device, frame.Decoder())
        self._before = self._truth()

    def _truth(self) -> tuple[object, ...]:
        host = self.wire.host
        link = host._link
        return link, link and link.session.received, host.position, host.up, host.waiting()


class UnprovisionedAttack:
    """Anybody against a device that has no key: it identifies itself, takes a key, and nothing else."""

    MAY_SAY = frozenset(("identity", "provisioned", "refused", "no_session", "reset_is"))

    def __init__(self, seed: int = 0, tally: Tally | None = None) -> None:
        self.tally: Tally = Counter() if tally is None else tally
        self.heard = Overheard(Wire(seed), True)
        self.heard.towards = self.heard.old + self.heard.towards  # with the provisioning
        self.strikes = 0
        self._new()

    def _new(self) -> None:
        self.memory = WatchedMemory()
        self.executor = WatchedExecutor()
        identity = DeviceIdentity(SERIAL, "fuzzed", "1.0", 2)
        self.device = DeviceProtocol(identity, self.memory, self.executor, random.Random(1).randbytes, 0)
        self.port = DevicePort(self.device)
        self.saves = self.memory.saves

    def strike(self, op: int, data: bytes) -> None:
        """One frame of any kind: nothing is raised or executed; at most a key is taken, as it was sent."""
        name = FORGERIES[op % len(FORGERIES)][0]
        forged = forge(self.heard, op, data)
        self.tally[name] += 1
        self.strikes += 1
        what = "new device, %s frame %s" % (name, forged.hex())
        try:
            self.port.receive(forged, 0)
            said = self.port.poll(0)
        except Exception as error:
            raise Broken(EXCEPTION, "%s: %r" % (what, error)) from error
        if self.executor.commands or self.memory.begun:
            raise Broken(ACCEPTED_COMMAND, what)
        if self.port.link is not None or self.device.owner is not None:
            raise Broken(CHANGED, what + ": it has a session")
        for payload, _ in frame.Decoder().feed(said):
            message = CODEC.find(payload[1]) if payload is not None and payload[0] == CLEAR_TO_HOST else None
            if message is None or message.name not in self.MAY_SAY:
                raise Broken(WRONG, "%s: it said %s" % (what, said.hex()))
        key = self.device.keys.get(DEVICE)
        if key is not None:
            if not any(payload and key in payload for payload, _ in _expected(forged)):
                raise Broken(CHANGED, what + ": it took a key that nobody sent")
            self._new()
        elif self.memory.saves != self.saves:
            raise Broken(CHANGED, what + ": critical memory was written")

    def settle(self) -> None:
        """It identifies itself as new, and takes a proper key."""
        self.port.receive(frame.DELIMITER, 0)
        for name, values, answer in (
            ("identify", (), "identity"),
            ("provision", (bytes(16), b"k" * 32, bytes(32)), "provisioned"),
        ):
            message = CODEC.named(name)
            self.port.receive(framed(bytes((CLEAR_TO_DEVICE, message.id)) + message.pack(values)), 0)
            said = frame.Decoder().feed(self.port.poll(0))
            if not said or said[-1][0] is None or said[-1][0][1] != CODEC.named(answer).id:
                raise Broken(UNANSWERED, "a new device did not answer " + name)
        self.tally["genuine"] += 1
        self._new()


Attack = DeviceAttack | HostAttack | UnprovisionedAttack


def strike_all(attack: Attack, data: bytes) -> None:
    """All forged frames of an input, then a genuine request."""
    for op, body in records(data):
        if op == SETTLE:
            attack.settle()
        else:
            attack.strike(op, body)
    attack.settle()


def device(data: bytes, tally: Tally | None = None, attack: DeviceAttack | None = None) -> None:
    """Forged frames against a device in a session; ``attack`` goes on with one begun earlier."""
    strike_all(DeviceAttack(0, tally) if attack is None else attack, data)


def host(data: bytes, tally: Tally | None = None, attack: HostAttack | None = None) -> None:
    """Forged frames against a host in a session; ``attack`` goes on with one begun earlier."""
    strike_all(HostAttack(0, tally) if attack is None else attack, data)


def unprovisioned(data: bytes, tally: Tally | None = None, attack: UnprovisionedAttack | None = None) -> None:
    """Frames of all kinds against a new device; ``attack`` goes on with one begun earlier."""
    strike_all(UnprovisionedAttack(0, tally) if attack is None else attack, data)


def joined(inputs: list[bytes]) -> bytes:
    """Several inputs of one attack as a single one."""
    settle = record(SETTLE, b"")
    return settle.join(b"".join(record(op, body) for op, body in records(each)) for each in inputs)


# -- inside a session -------------------------------------------------------------------------------

_HEADER = struct.Struct("<BBBHBBBIB")  # how, seq, ack, sack, kind, message, mark, number, time
INSIDE_HEADER_SIZE = _HEADER.size

# How the bytes of a packet record are meant; what is not said is taken as it stands.
SEQ_NEXT = 0x01  # seq is the one expected; above 200, so many later
ACK_NEXT = 0x02  # ack is for all that was sent; above 200, for so many less
A_REQUEST = 0x04  # the kind is REQUEST and the message one of the schema's requests
GOOD_BODY = 0x08  # the body is one the schema allows, chosen by the bytes given
NEAR_NUMBER = 0x10  # the number counts from the newest used
GOOD_PROOF = 0x20  # an elevation proves its key
LONG_TIME = 0x40  # time goes on by seconds, not milliseconds

# Ops of the target, in the low four bits; the others are packets.
AGAIN = 13  # the inside of an earlier packet once more, as a new message
RECONNECT = 14
REBOOT = 15


def inside_record(how: int, message: int, number: int, body: bytes) -> bytes:
    """A packet record for ``inside`` with nothing strange in it but what ``how`` says."""
    return record(0, _HEADER.pack(how, 0, 0, 0, REQUEST, message, 0, number, 0) + body)


HOST_IDS = (b"TABLE-PC", b"OTHER-PC")
_U32 = 0xFFFFFFFF
_STATUS_ID = CODEC.named("status").id
_STATUS_NUMBER = 0x7FFFFFF0
LONGEST_STEP_MS = SILENCE_MS // 2


class Owner:
    """The authenticated owner gone mad, and a device that survives it through reboots."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.wire = Wire(0, worked=False)
        self.host_id = HOST_IDS[0]
        self.newest = 1
        self.sent: list[tuple[int, int, int, int, bytes]] = []  # kind, message, mark, number, body
        self.offered: dict[tuple[bytes, int], set[tuple[int, bytes]]] = {}
        self.answers: dict[int, int] = {}  # number: status
        self._decoder = frame.Decoder()
        self._commands = 0
        self._begun = 0
        self.session = self._session()

    def _session(self) -> Session:
        link = self.wire.host._link
        assert link is not None
        return link.session

    def reconnect(self, which: int) -> None:
        """A new session, of this host id or another."""
        wire = self.wire
        self.host_id = HOST_IDS[which % len(HOST_IDS)]
        self.newest = max(wire.device.ledger.newest(self.host_id), 1)
        key = wire.device.keys.get(DEVICE)
        assert key is not None
        wire.now += 10
        wire.port.receive(frame.DELIMITER, wire.now)
        wire.host = HostProtocol(key, CommandNumbers(self.host_id), wire.random)
        self.answers.clear()
        wire.connect()
        wire.happened.clear()
        self.session = self._session()
        self._decoder = frame.Decoder()
        self.tally["reconnect"] += 1

    def reboot(self, which: int) -> None:
        """The power goes and comes back; critical memory stays."""
        wire = self.wire
        wire.now += 10
        identity = DeviceIdentity(SERIAL, "fuzzed", "1.0", 2)
        wire.device = DeviceProtocol(identity, wire.memory, wire.executor, wire.random, wire.now)
        wire.executor.device = wire.device
        wire.port = DevicePort(wire.device)
        self.tally["reboot"] += 1
        self.reconnect(which)

    def packet(self, data: bytes) -> None:
        """A sealed packet with anything inside."""
        head = data[:INSIDE_HEADER_SIZE]
        head += bytes(INSIDE_HEADER_SIZE - len(head))
        how, seq, ack, sack, kind, id, flags, number, time = _HEADER.unpack(head)
        body = data[INSIDE_HEADER_SIZE:]
        link = self.wire.port.link
        if how & SEQ_NEXT and link is not None:
            seq = link._expected + max(seq - 200, 0) & 255
        if how & ACK_NEXT and link is not None:
            ack = link._next_seq - max(ack - 200, 0) & 255
        if how & NEAR_NUMBER:
            number = self.newest + number % 8 - 2 & _U32
        if how & A_REQUEST:
            kind = REQUEST
            message = REQUESTS[id % len(REQUESTS)]
            id = message.id
            if how & GOOD_BODY:
                values = allowed(message, random.Random(body))
                if message.name == "elevate" and how & GOOD_PROOF:
                    values[:2] = 1, 2 + body[0] % 4 if body else 3
                    key = self.wire.device.keys.get(values[1]) or bytes(32)
                    values[5] = elevation_proof(key, self.session.transcript, *values[:5])
                body = message.pack(values)
        self._pass_time(time, how)
        self._send(seq, ack, sack, kind, id, flags, number, body)

    def again(self, data: bytes) -> None:
        """An earlier message once more: a host that repeats what may have been lost."""
        link = self.wire.port.link
        if not self.sent or link is None:
            return
        kind, id, flags, number, body = self.sent[(data[0] if data else 0) % len(self.sent)]
        self._send(link._expected, link._next_seq, 0, kind, id, flags, number, body, "again")

    def _pass_time(self, time: int, how: int) -> None:
        step = min(time * 20, LONGEST_STEP_MS) if how & LONG_TIME else time
        self.wire.now += step
        if step:
            self._hear("time")

    def _send(
        self,
        seq: int,
        ack: int,
        sack: int,
        kind: int,
        id: int,
        flags: int,
        number: int,
        body: bytes,
        name: str = "sealed",
    ) -> None:
        body = body[: frame.MAX_PAYLOAD - HEADER_SIZE - MAC_SIZE]
        self.sent = self.sent[-31:] + [(kind, id, flags, number, body)]
        if kind == REQUEST:
            if number <= self.newest + MAX_AHEAD:  # another one is refused, and decides nothing
                self.newest = max(self.newest, number)
            self.offered.setdefault((self.host_id, number), set()).add((id, body))
        packet = self.session.seal(seq, ack, sack, kind, id, flags, number, body)
        what = "packet seq %d ack %d sack %d kind %d message 0x%02x mark %d number %d body %s" % (
            seq,
            ack,
            sack,
            kind,
            id,
            flags,
            number,
            body.hex(),
        )
        self.tally[name] += 1
        try:
            self.wire.port.receive(framed(packet), self.wire.now)
        except Exception as error:
            raise Broken(EXCEPTION, "device, %s: %r" % (what, error)) from error
        self._hear(what)

    def _hear(self, what: str) -> None:
        """Everything the device says is of the schema, and it executed only what was offered, once."""
        wire = self.wire
        try:
            said = wire.port.poll(wire.now)
        except Exception as error:
            raise Broken(EXCEPTION, "device, after %s: %r" % (what, error)) from error
        for payload, _ in self._decoder.feed(said):
            if payload is not None and self.session.open(payload):
                kind, message, flags, number = self.session.head[6:]
                self._said(kind, message, flags, number, bytes(self.session.body))
        if wire.executor.wrong:
            raise Broken(ACCEPTED_COMMAND, "%s: %s" % (what, wire.executor.wrong))
        begun = wire.memory.begun
        if len(begun) > self._begun:
            fresh = begun[self._begun :]
            if len(set(begun)) != len(begun):
                raise Broken(ACCEPTED_COMMAND, "%s: executed twice, %r" % (what, fresh))
            for each in fresh:
                if not any(self._fits(id, body) for id, body in self.offered.get(each, ())):
                    raise Broken(ACCEPTED_COMMAND, "%s: %r executed, but never sent so" % (what, each))
                self.tally["executed"] += 1
            self._begun = len(begun)
        if wire.executor.commands > len(begun):
            raise Broken(ACCEPTED_COMMAND, "%s: executed without a record in the ledger" % what)

    def _fits(self, id: int, body: bytes) -> bool:
        message = CODEC.find(id)
        if message is None or message.kind != "command":
            return False
        try:
            message.unpack(body)
        except FieldError:
            return False
        return True

    def _said(self, kind: int, id: int, flags: int, number: int, body: bytes) -> None:
        what = "the device said kind %d message 0x%02x mark %d body %s" % (kind, id, flags, body.hex())
        if kind == ANSWER:
            self.answers[number] = flags
            message = CODEC.find(id) if flags == 0 else CODEC.error(flags)
            if message is None:
                raise Broken(WRONG, what)
        elif kind == EVENT:
            message = CODEC.find(id)
            body = body[14:]
        elif kind in (BARE, GAP):
            return
        else:
            message = None
        try:
            if message is None:
                raise Broken(WRONG, what)
            message.unpack(body)
        except FieldError as error:
            raise Broken(WRONG, "%s: %s" % (what, error)) from error

    def settle(self) -> None:
        """The device can be asked its status: in this session, or in a new one once this one is given up."""
        for attempt in range(2):
            link = self.wire.port.link
            if link is None or attempt:
                self.wire.now += SILENCE_MS
                self._hear("silence")
                self.reconnect(HOST_IDS.index(self.host_id))
            self.answers.pop(_STATUS_NUMBER, None)
            asked = False
            for _ in range(24):  # take what is under way, then ask
                link = self.wire.port.link
                if link is None:
                    break
                ask = not asked and link.room() > 0 and not self.wire.port.answers
                asked = asked or ask
                kind, id, number = (REQUEST, _STATUS_ID, _STATUS_NUMBER) if ask else (BARE, 0, 0)
                self._send(link._expected, link._next_seq, 0, kind, id, 0, number, b"", "genuine")
                if _STATUS_NUMBER in self.answers:
                    return
        raise Broken(UNANSWERED, "the device did not answer a status request")


def inside(data: bytes, tally: Tally | None = None) -> None:
    """Anything inside sealed packets of the authenticated owner, over sessions and reboots.

    Nothing is raised, all the device says is of the schema, and no command is executed that the schema
    forbids, or twice.
    """
    owner = Owner(Counter() if tally is None else tally)
    for op, body in records(data):
        turn = op & 15
        if turn == REBOOT:
            owner.reboot(op >> 4)
        elif turn == RECONNECT or owner.wire.port.link is None:
            owner.reconnect(op >> 4)
        elif turn == AGAIN:
            owner.again(body)
        else:
            owner.packet(body)
    owner.settle()


class Impostor:
    """The authenticated device gone mad, and a host that survives it."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.wire = Wire(0, worked=False)
        self.asked: set[int] = set()
        self.position = self.wire.host.position

    def ask(self) -> None:
        """The host asks something; the mad device hears it and does not pass it on."""
        if len(self.asked) < 32:
            self.asked.add(self.wire.ask("status"))
        self._poll()

    def packet(self, data: bytes) -> None:
        """A sealed packet with anything inside."""
        wire = self.wire
        link = wire.host._link
        if link is None or wire.port.link is None:
            self.reconnect()
            return
        head = data[:INSIDE_HEADER_SIZE]
        head += bytes(INSIDE_HEADER_SIZE - len(head))
        how, seq, ack, sack, kind, id, flags, number, time = _HEADER.unpack(head)
        body = data[INSIDE_HEADER_SIZE:]
        if how & SEQ_NEXT:
            seq = link._expected + max(seq - 200, 0) & 255
        if how & ACK_NEXT:
            ack = link._next_seq - max(ack - 200, 0) & 255
        if how & A_REQUEST:
            kind = (ANSWER, EVENT, GAP)[kind % 3]
        if how & GOOD_BODY:
            message = ALL_MESSAGES[id % len(ALL_MESSAGES)]
            id, body = message.id, message.pack(allowed(message, random.Random(body)))
        if how & NEAR_NUMBER and kind == ANSWER:
            near = [*sorted(self.asked), 0, (wire.host._attaching or 0)]
            number = near[number % len(near)]
        if how & NEAR_NUMBER and kind == EVENT:
            boot, n = wire.host.position
            number = max(n + number % 4 - 1, 0) & _U32
            body = struct.pack("<IIIH", boot + flags // 128 & _U32, wire.now, 0, 0) + body
        wire.now += time
        body = body[: frame.MAX_PAYLOAD - HEADER_SIZE - MAC_SIZE]
        packet = wire.port.link.session.seal(seq, ack, sack, kind, id, flags, number, body)
        what = "packet kind %d message 0x%02x mark %d number %d body %s" % (
            kind,
            id,
            flags,
            number,
            body.hex(),
        )
        self.tally["sealed"] += 1
        try:
            wire.host.receive(framed(packet), wire.now)
        except Exception as error:
            raise Broken(EXCEPTION, "host, %s: %r" % (what, error)) from error
        self._poll()
        self._taken(what)

    def reconnect(self) -> None:
        """A new session with the device, which is its old self for as long as that takes."""
        wire = self.wire
        for number in self.asked:
            wire.host.abandon(number)
        self.asked.clear()
        wire.host.disconnect()
        wire.now += 10
        wire.connect()
        wire.happened.clear()
        self.position = wire.host.position
        self.tally["reconnect"] += 1

    def settle(self) -> None:
        """With a sane device the host works again."""
        self.reconnect()
        self.wire.until_answered(self.wire.ask("status"))
        self.tally["genuine"] += 1

    def _poll(self) -> None:
        try:
            self.wire.host.poll(self.wire.now)
        except Exception as error:
            raise Broken(EXCEPTION, "host, poll: %r" % error) from error

    def _taken(self, what: str) -> None:
        """Answers only to what was asked, once; events only in order, or after a gap."""
        for each in self.wire.host.take_notifications():
            if isinstance(each, RequestAnswered):
                if each.request_id not in self.asked:
                    raise Broken(ACCEPTED_PACKET, "host, %s: answer to %d" % (what, each.request_id))
                self.asked.remove(each.request_id)
            elif isinstance(each, EventGap):
                self.position = (0, 0)  # anything may follow
            elif isinstance(each, EventReceived):
                boot, n = self.position
                if boot and each.n != (n + 1 if each.boot_id == boot else 1):
                    raise Broken(ACCEPTED_PACKET, "host, %s: event out of order" % what)
                self.position = (each.boot_id, each.n)


def inside_host(data: bytes, tally: Tally | None = None) -> None:
    """Anything inside sealed packets of the authenticated device.

    Nothing is raised, no answer is passed on twice or unasked, no event out of order, and afterwards the host
    works with a sane device.
    """
    impostor = Impostor(Counter() if tally is None else tally)
    for op, body in records(data):
        turn = op & 15
        if turn == RECONNECT:
            impostor.reconnect()
        elif turn == AGAIN:
            impostor.ask()
        else:
            impostor.packet(body)
    impostor.settle()


TARGETS: tuple[tuple[str, Target], ...] = (
    ("decoder", decoder),
    ("codec", codec),
    ("device", device),
    ("host", host),
    ("unprovisioned", unprovisioned),
    ("inside", inside),
    ("inside_host", inside_host),
)
ATTACKS: dict[str, Callable[[int, Tally], Attack]] = {
    "device": DeviceAttack,
    "host": HostAttack,
    "unprovisioned": UnprovisionedAttack,
}
