"""The host's end of the wire, written from the page's text: the link, the handshake, requests and events.

All of it is without input and output: bytes and the time in milliseconds are handed in.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.independent.page import COUNTERS, ERRORS, FROZEN, IDS, MAJOR, MESSAGES, MINOR, SCHEMA
from tests.independent.wire import (
    ANSWER,
    BARE,
    CLEAR_TO_DEVICE,
    CLEAR_TO_HOST,
    CLOSE,
    EVENT,
    EVENT_ACK,
    GAP,
    MAX_PAYLOAD,
    OVERHEAD,
    REQUEST,
    RESOLVE,
    SEALED_TO_DEVICE,
    SEALED_TO_HOST,
    FieldError,
    FrameDecoder,
    Keys,
    Packet,
    Value,
    Values,
    decode_clear,
    decode_fields,
    elevation_proof,
    encode_clear,
    encode_fields,
    encode_frame,
    hide,
    is_sealed_with,
    slot_key,
)

WINDOW = 16
FIRST_RTO_MS, MIN_RTO_MS, MAX_RTO_MS = 300.0, 220.0, 2000.0
TRANSMISSIONS = 10
ACK_DELAY_MS = 20.0
KEEP_ALIVE_MS = 1000.0
SILENCE_MS = 5000.0
CLEAR_FIRST_MS, CLEAR_MAX_MS, CLEAR_END_MS = 300.0, 2000.0, 16100.0
WAITING_MAX = 1024

OBSERVER, OWNER = 0, 1
FIRST_QUERY = 0x80000000
PERSON_SLOTS = range(2, 14)
MEMORY_LOST = 3


class SabotError(Exception):
    """Something ended by a name of the page: a refusal of the device, or an end that the host itself sees."""

    def __init__(self, name: str, details: Mapping[str, Value] | None = None) -> None:
        super().__init__(name, dict(details or {}))
        self.name = name
        self.details = dict(details or {})


@dataclass
class _Sent:
    """A message under way."""

    packet: Packet
    counter: int = 0
    sent_ms: float = 0.0
    times: int = 0
    there: bool = False


class Link:
    """Every message once and in order, or a named end."""

    def __init__(
        self, keys: Keys, challenge: Values, now: float, counters: dict[str, int], window: int
    ) -> None:
        self.keys = keys
        self.ended = ""
        self.opened = False
        self.out: list[bytes] = []
        self.rto = FIRST_RTO_MS
        self.srtt: float | None = None
        self._rttvar = 0.0
        self._counters = counters
        self._peer_window = challenge.number("window")
        self._max_body = challenge.number("max_payload") - OVERHEAD
        self._window = window
        self._counter = 0
        self._counter_in = 0
        self._next = 0
        self._flight: list[_Sent] = []  # from the oldest message not acknowledged on
        self._waiting: deque[_Sent] = deque()
        self._expected = 0
        self._early: dict[int, Packet] = {}
        self._owed = 0
        self._ack_at: float | None = None
        self._timer: float | None = None
        self._sent_at = now
        self._heard_at = now

    @property
    def idle(self) -> bool:
        """Whether all that was to be sent is acknowledged."""
        return not self._flight and not self._waiting

    def send(self, kind: int, message: int, flags: int, number: int, body: bytes, now: float) -> None:
        """Send a message, now or when the window allows it."""
        if len(body) > self._max_body:
            raise ValueError("the body is longer than the peer takes")
        self._waiting.append(_Sent(self._packet(kind, message, flags, number, body)))
        self._pump(now)

    def receive(self, payload: bytes, now: float) -> list[Packet]:
        """Take a payload of way 04 and this session; return the messages that are delivered by it."""
        if not is_sealed_with(payload, self.keys.to_host):
            self._counters["bad_mac"] += 1
            return []
        packet = Packet.read(payload)
        if packet.counter <= self._counter_in:
            self._counters["replayed"] += 1
            return []
        self._counter_in = packet.counter
        self._heard_at = now
        self.opened = True
        self._acknowledged(packet, now)
        if packet.kind == CLOSE:
            self.ended = "closed_by_peer"
        delivered = [] if packet.kind in (BARE, CLOSE) else self._take(packet, now)
        self._pump(now)
        return delivered

    def close(self, now: float) -> None:
        """Say that this end has ended the session."""
        self._put(self._packet(CLOSE), now)

    def tick(self, now: float) -> None:
        """Do what is due at this time."""
        if self.ended:
            return
        if now - self._heard_at >= SILENCE_MS:
            self.ended = "peer_silent"
            return
        if self._timer is not None and now >= self._timer:
            self._counters["timeouts"] += 1
            self.rto = min(MAX_RTO_MS, 2 * self.rto)
            self._timer = None
            self._transmit(next(item for item in self._flight if not item.there), now)
        if self._ack_at is not None and now >= self._ack_at:
            self._bare(now)
        if now - self._sent_at >= KEEP_ALIVE_MS:
            self._bare(now)

    def deadline(self) -> float:
        """When `tick` has something to do next."""
        times = [self._heard_at + SILENCE_MS, self._sent_at + KEEP_ALIVE_MS]
        return min(times + [at for at in (self._timer, self._ack_at) if at is not None])

    def _take(self, packet: Packet, now: float) -> list[Packet]:
        """Deliver, keep or drop a numbered message."""
        ahead = (packet.seq - self._expected) & 0xFF
        delivered = []
        if ahead == 0:
            self._early[packet.seq] = packet
            while self._expected in self._early:
                delivered.append(self._early.pop(self._expected))
                self._expected = (self._expected + 1) & 0xFF
            self._owed += len(delivered)
            if self._ack_at is None:
                self._ack_at = now + ACK_DELAY_MS
            if 2 * self._owed >= self._window:
                self._ack_at = now
        else:
            if ahead >= 128 or packet.seq in self._early:
                self._counters["duplicates"] += 1
            elif ahead < self._window:
                self._early[packet.seq] = packet
            else:
                self._counters["out_of_window"] += 1
            self._ack_at = now
        return delivered

    def _acknowledged(self, packet: Packet, now: float) -> None:
        """Use a packet's ack and sack."""
        base = self._flight[0].packet.seq if self._flight else self._next
        upto = (packet.ack - base) & 0xFF
        if upto > len(self._flight):
            return
        news = [item for item in self._flight[:upto] if not item.there]
        for item in self._flight[upto:]:
            bit = (item.packet.seq - packet.ack - 1) & 0xFF
            if not item.there and bit < 16 and packet.sack >> bit & 1:
                news.append(item)
        for item in news:
            item.there = True
        del self._flight[:upto]
        if not news:
            return
        once = [item for item in news if item.times == 1]
        if once:  # the one with the highest seq
            self._measure(now - once[-1].sent_ms)
        missing = [item for item in self._flight if not item.there]
        self._timer = now + self.rto if missing else None
        latest = max(item.counter for item in news)
        for item in missing:
            if item.counter < latest:
                self._transmit(item, now)

    def _measure(self, trip: float) -> None:
        """Take a round trip into the time-out, as RFC 6298 does."""
        if self.srtt is None:
            self.srtt, self._rttvar = trip, trip / 2
        else:
            error = trip - self.srtt
            self.srtt += error / 8
            self._rttvar += (abs(error) - self._rttvar) / 4
        self.rto = min(MAX_RTO_MS, max(MIN_RTO_MS, self.srtt + max(1.0, 4 * self._rttvar)))

    def _pump(self, now: float) -> None:
        """Send what waits, as far as the window allows, counted from the oldest message not acknowledged."""
        while self._waiting and len(self._flight) < self._peer_window and not self.ended:
            item = self._waiting.popleft()
            item.packet = replace(item.packet, seq=self._next)
            self._next = (self._next + 1) & 0xFF
            self._flight.append(item)
            self._transmit(item, now)
        if self._ack_at is not None and self._ack_at <= now:
            self._bare(now)

    def _transmit(self, item: _Sent, now: float) -> None:
        """Send a message, for the first time or again."""
        if item.times >= TRANSMISSIONS:
            self.ended = "retries_exhausted"
            return
        if item.times:
            self._counters["retransmitted"] += 1
        item.times += 1
        item.sent_ms = now
        item.counter = self._counter + 1
        if self._timer is None:
            self._timer = now + self.rto
        self._put(item.packet, now)

    def _bare(self, now: float) -> None:
        """Send a packet that only acknowledges or shows life."""
        self._counters["bare_acks"] += 1
        self._put(self._packet(BARE), now)

    def _packet(
        self, kind: int, message: int = 0, flags: int = 0, number: int = 0, body: bytes = b""
    ) -> Packet:
        """A packet of this session that is not yet numbered."""
        head = (SEALED_TO_DEVICE, self.keys.session, 0, self._next, 0, 0)
        return Packet(*head, kind, message, flags, number, body)

    def _put(self, packet: Packet, now: float) -> None:
        """Seal a packet with the current acknowledgement and put it on the line."""
        if self._counter >= 0xFFFFFFFF:
            self.ended = "counter_spent"
            return
        self._counter += 1
        sack = sum(1 << ((kept - self._expected - 1) & 0xFF) for kept in self._early)
        packet = replace(packet, counter=self._counter, ack=self._expected, sack=sack)
        self._owed = 0
        self._ack_at = None
        self._sent_at = now
        self.out.append(packet.seal(self.keys.to_device))


@dataclass
class Record:
    """What a host must keep: its id, the numbers it has used, and how far it has the events.

    With a path it is kept in a file. Numbers are set aside there a block at a time, so that none is used
    twice, also after a crash.
    """

    host_id: bytes
    next_number: int = 1
    memory_id: bytes | None = None
    position: tuple[int, int] = (0, 0)
    path: Path | None = None
    _reserved: int = 0

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read the record of a path, or make a new one there."""
        if not path.exists():
            return cls(os.urandom(8), path=path)
        data = json.loads(path.read_text(encoding="ascii"))
        number, (boot, n) = int(data["reserved"]), data["position"]
        memory_id = bytes.fromhex(data["memory_id"]) or None
        return cls(bytes.fromhex(data["host_id"]), number, memory_id, (boot, n), path, number)

    def number(self) -> int:
        """A command number that was never used before."""
        if self.next_number >= self._reserved:
            self._reserved = self.next_number + 256
            self.save()
        self.next_number += 1
        return self.next_number - 1

    def save(self) -> None:
        """Write the record to its file, if it has one."""
        if self.path is None:
            return
        data = {
            "host_id": self.host_id.hex(),
            "reserved": max(self._reserved, self.next_number),
            "memory_id": (self.memory_id or b"").hex(),
            "position": self.position,
        }
        new = self.path.with_suffix(".new")
        with new.open("w", encoding="ascii") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)


@dataclass
class Asked:
    """A request and what became of it."""

    message: int
    number: int
    command: bool
    body: bytes = b""
    boot: int | None = None
    by: tuple[int, bytes] | None = None
    secret: bytes = b""
    elevated: bool = False
    refused: SabotError | None = None
    held: bool = False
    sessions: int = 0
    sent: bool = False
    resolve: bool = False
    done: bool = False
    answer: str = ""
    values: Values = field(default_factory=Values)
    error: SabotError | None = None

    def result(self) -> Values:
        """The answer's fields; raises the error it ended by."""
        if self.error is not None:
            raise self.error
        if not self.done:
            raise SabotError("not_answered")
        return self.values

    @property
    def outcome(self) -> str:
        """The name of the answer, or of the error it ended by."""
        return self.error.name if self.error else self.answer


@dataclass(frozen=True)
class Event:
    """An event, or a gap where events are lost (its name is then `gap`)."""

    name: str
    boot: int
    n: int
    ticks_ms: int = 0
    utc_s: int = 0
    utc_ms: int = 0
    quality: int = 0
    values: Values = field(default_factory=Values)
    hashed: bytes = b""  # what the device's chain is made of


@dataclass
class _Clear:
    """A clear message that is repeated until it is answered."""

    name: str
    payload: bytes
    nonce: bytes
    began: float
    next_at: float
    wait: float = CLEAR_FIRST_MS
    times: int = 1
    unanswered: str = "no_answer"


class Host:
    """The host's end of a cable."""

    def __init__(
        self,
        record: Record,
        key: bytes = bytes(32),
        serial: bytes | None = None,
        random: Callable[[int], bytes] = os.urandom,
        window: int = WINDOW,
        schema: bytes = SCHEMA,
        major: int = MAJOR,
        slot: int = 0,
        next_query: int = FIRST_QUERY,
    ) -> None:
        """Take the host's record, the device's key, and the serial number that is expected, if any.

        Another schema hash or major than the page's makes a host of another version, for tests.
        """
        self.record = record
        self.key = key
        self.schema = schema
        self.major = major
        self.slot = slot
        self._next_query = next_query
        self._elevations: dict[int, Asked] = {}
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.run = int.from_bytes(random(4), "little")
        self.link: Link | None = None
        self.boot_id: int | None = None
        self.device = Values()
        self.identity: Values | None = None
        self.provisioned: bytes | None = None
        self.reset_state: Values | None = None
        self.failed = ""
        self.ends: list[str] = []
        self.events: list[Event] = []
        self.attached: Values | None = None
        self.now = 0.0
        self._serial = serial
        self._random = random
        self._window = window
        self._decoder = FrameDecoder(self.counters)
        self._out = bytearray()
        self._clear: _Clear | None = None
        self._hello = b""
        self._challenge = Values()
        self._pending: Link | None = None
        self._mode: int | None = None
        self._attach: Asked | None = None
        self._asked: dict[int, Asked] = {}
        self._under_way: set[int] = set()

    # what a program calls

    def identify(self) -> None:
        """Ask who is there; the answer will be in `identity`."""
        self.identity = None
        self._begin("identify", {}, b"")

    def provision(self, key: bytes) -> None:
        """Give a new device its key; its proof will be in `provisioned`."""
        self.provisioned = None
        nonce = self._random(16)
        self._begin("provision", {"nonce": nonce, "device_key": key, "entropy": self._random(32)}, nonce)

    def reset(self, proof: bytes = b"") -> None:
        """Ask for house and reset count, or show a house's signature; the answer will be in `reset_state`."""
        self.reset_state = None
        nonce = self._random(16)
        self._begin("reset_statement", {"nonce": nonce, "proof": proof}, nonce)

    def connect(self) -> None:
        """Begin a handshake, beside the session that is running, if any."""
        self._pending = None
        hello = self.hello(self._random(16))
        self._begin("hello", hello, hello.data("nonce"))

    def hello(self, nonce: bytes) -> Values:
        """The fields of a hello."""
        hello = Values(nonce=nonce, host_id=self.record.host_id, slot=self.slot, run=self.run)
        hello |= Values(major=self.major, minor=MINOR)
        return Values(hello, schema=self.schema, window=self._window, max_payload=MAX_PAYLOAD)

    def attach(self, mode: int = OWNER) -> Asked:
        """Ask for events after the record's position, in this session and in every later one."""
        self._mode = mode
        self.attached = None
        self._attach = self._new("attach")
        self._flush()
        return self._attach

    def ask(self, name: str, **fields: Value) -> Asked:
        """Make a request; it is sent when it may be."""
        return self._ready(self._new(name), fields)

    def ask_by(self, by: tuple[int, bytes], name: str, **fields: Value) -> Asked:
        """Make a request that the person with this slot and key authorises."""
        asked = self._new(name)
        asked.by = by
        return self._ready(asked, fields)

    def ask_raw(
        self,
        message: int,
        body: bytes,
        command: bool = False,
        number: int = 0,
        by: tuple[int, bytes] | None = None,
    ) -> Asked:
        """Make a request out of any bytes, right or wrong, and under any number."""
        number = number or (self.record.number() if command else self._query())
        asked = Asked(message, number, command, body, self.boot_id, by)
        self._asked[asked.number] = asked
        self._flush()
        return asked

    def set_key(
        self, slot: int, key: bytes, role: int, person: int = 0, by: tuple[int, bytes] | None = None
    ) -> Asked:
        """Put a key into a slot; a person's is derived for this device and slot."""
        asked = self._new("set_key")
        asked.by = by
        is_person = slot in PERSON_SLOTS and any(key)
        asked.secret = slot_key(key, self.device.data("serial"), slot) if is_person else key
        fields = Values(slot=slot, role=role, person=person, wrapped=bytes(32))
        return self._ready(asked, fields)

    def close(self) -> None:
        """End the session in order."""
        if self.link:
            self.link.close(self.now)
            out = self.take_out()
            self._drop()
            self._out += out

    def acknowledge(self) -> None:
        """Keep the position of the last event, and as owner tell the device that it is kept."""
        self.record.save()
        if self.link and self.attached and self.attached["mode"] == OWNER:
            boot, n = self.record.position
            self.link.send(EVENT_ACK, 0, 0, n, struct.pack("<I", boot), self.now)

    # what a driver calls

    def receive(self, chunk: bytes, now: float) -> None:
        """Take bytes of the line."""
        self.now = now
        for payload in self._decoder.feed(chunk):
            self._payload(payload)
        self._flush()

    def tick(self, now: float) -> None:
        """Do what is due at this time."""
        self.now = now
        if self.link:
            self.link.tick(now)
            if self.link.ended == "closed_by_peer":
                self.ends.append(self.link.ended)  # when to make a new one is up to the program
                self._drop()
            elif self.link.ended:
                self._end(self.link.ended)
        clear = self._clear
        if clear is None:
            return
        if now - clear.began >= CLEAR_END_MS:
            self._fail(clear.unanswered)
        elif now >= clear.next_at and clear.times < TRANSMISSIONS:
            clear.times += 1
            clear.wait = min(CLEAR_MAX_MS, 2 * clear.wait)
            clear.next_at = now + clear.wait
            self._write(clear.payload)

    def deadline(self) -> float:
        """When `tick` has something to do next."""
        times = [self.now + 1000.0]
        if self.link:
            times.append(self.link.deadline())
        if self._clear:
            times.append(min(self._clear.next_at, self._clear.began + CLEAR_END_MS))
        return min(times)

    def take_out(self) -> bytes:
        """The bytes that are to go on the line."""
        if self.link:
            for payload in self.link.out:
                self._write(payload)
            self.link.out.clear()
        out = bytes(self._out)
        self._out.clear()
        return out

    # outside a session

    def _write(self, payload: bytes) -> None:
        self.counters["frames_out"] += 1
        self._out += encode_frame(payload)

    def _begin(self, name: str, fields: Mapping[str, Value], nonce: bytes) -> None:
        """Send a clear message, and again until it is answered."""
        self.failed = ""
        payload = encode_clear(name, fields)
        if name == "hello":
            self._hello = payload[2:]
            self.counters["handshakes"] += 1
        self._clear = _Clear(name, payload, nonce, self.now, self.now + CLEAR_FIRST_MS)
        self._write(payload)

    def _fail(self, name: str) -> None:
        """End an attempt outside a session."""
        self.failed = name
        self._clear = None
        self._pending = None

    def _payload(self, payload: bytes) -> None:
        """Take a good frame's payload."""
        direction = payload[0]
        if direction in (CLEAR_TO_DEVICE, SEALED_TO_DEVICE):
            self.counters["reflected"] += 1
        elif direction == SEALED_TO_HOST:
            self._sealed(payload)
        else:
            try:
                if direction != CLEAR_TO_HOST:
                    raise ValueError("malformed")
                name, fields = decode_clear(payload)
            except ValueError:
                self.counters["malformed"] += 1
                return
            self._clear_message(name, fields, payload)

    def _clear_message(self, name: str, fields: Values, payload: bytes) -> None:
        """Take a clear message of the device."""
        clear = self._clear
        if name == "no_session":
            if self.link and fields["session"] == self.link.keys.session and clear is None:
                self.connect()
        elif clear is None:
            return
        elif name == "refused":
            if fields["nonce"] == clear.nonce:
                code = fields.number("error")
                name = ERRORS[code].name if code in ERRORS else str(code)
                if name == "too_soon":
                    clear.unanswered = name  # the hello is repeated
                else:
                    self._fail(name)
        elif name == "identity" and clear.name == "identify":
            self.identity = fields
            self._clear = None
        elif name == "provisioned" and clear.name == "provision":
            self.provisioned = fields.data("proof")
            self._clear = None
        elif name == "reset_is" and clear.name == "reset_statement" and fields["nonce"] == clear.nonce:
            self.reset_state = fields
            self._clear = None
        elif name == "challenge" and clear.name == "hello" and fields["host_nonce"] == clear.nonce:
            self._challenged(fields, payload[2:], clear.nonce)

    def _challenged(self, fields: Values, raw: bytes, nonce: bytes) -> None:
        """Check the device's proof, and prove that we have the key too."""
        keys = Keys.derive(self.key, self._hello, raw)
        if not hmac.compare_digest(keys.device_proof, fields.data("proof")):
            self.counters["bad_proofs"] += 1
            self._fail("device_not_proved")
        elif self._serial is not None and fields["serial"] != self._serial:
            self._fail("wrong_device")
        else:
            self._challenge = fields
            self._pending = Link(keys, fields, self.now, self.counters, self._window)
            self._begin("prove", {"session": keys.session, "proof": keys.host_proof}, nonce)

    # the session

    def _sealed(self, payload: bytes) -> None:
        """Take a sealed packet: of the session that is being proved, or of the one that runs."""
        if len(payload) < OVERHEAD:
            self.counters["malformed"] += 1
            return
        session = Packet.read(payload).session
        links = [link for link in (self._pending, self.link) if link and link.keys.session == session]
        if not links:
            self.counters["foreign"] += 1
            return
        sealed = [link for link in links if is_sealed_with(payload, link.keys.to_host)]
        link = (sealed or links)[0]  # two sessions may happen to have the same id: the MAC tells them apart
        delivered = link.receive(payload, self.now)
        if link is self._pending and link.opened:
            self._adopt(link)
        if link is self.link and link.ended == "closed_by_peer":
            self.tick(self.now)
        for packet in delivered:
            if self.link is None:
                break
            if packet.kind == ANSWER:
                self._answer(packet)
            elif packet.kind == EVENT and len(packet.body) >= 14:
                self._event(packet)
            elif packet.kind == GAP and len(packet.body) == 16:
                self._gap(packet)
            else:
                self.counters["malformed"] += 1

    def _adopt(self, link: Link) -> None:
        """Use the session that is now proved, and give up the older one."""
        if self.link:
            self.ends.append("replaced")
        self._drop()
        self.counters["sessions"] += 1
        self.link, self._pending, self._clear = link, None, None
        self.device = self._challenge
        self.boot_id = self.device.number("boot_id")
        memory_id = self.device.data("memory_id")
        if self.record.memory_id not in (None, memory_id):
            self.record.position = (0, 0)
            self.events.append(Event("gap", 0, 0, values=Values(lost=0, reason=MEMORY_LOST)))
            for asked in list(self._asked.values()):
                if asked.command:
                    self._finish(asked, error=SabotError("forgotten" if asked.sent else "device_rebooted"))
        self.record.memory_id = memory_id
        self.record.save()
        self._elevations.clear()
        for asked in self._asked.values():
            asked.elevated, asked.held, asked.refused = False, False, None
        for asked in list(self._asked.values()):
            if asked.message in (IDS["elevate"], IDS["detach"]):
                self._finish(asked, error=SabotError("session_ended"))
        if self._mode is not None:
            open_one = self._attach if self._attach and not self._attach.done else None
            self._attach = self._new("attach")
            if open_one:  # the caller's attach goes on, under the new number
                del self._asked[open_one.number]
                open_one.number, open_one.sent = self._attach.number, False
                self._attach = self._asked[open_one.number] = open_one

    def _end(self, name: str) -> None:
        """End the session by name, and make a new one."""
        self.ends.append(name)
        self._drop()
        if self._clear is None:
            self.connect()

    def _drop(self) -> None:
        """Be without a session."""
        self.link = None
        self.attached = None
        self._under_way.clear()

    # requests

    def _new(self, name: str) -> Asked:
        """Give a request its number."""
        message = MESSAGES[IDS[name]]
        if message.kind not in ("query", "command"):
            raise ValueError(f"{name} is not a request")
        if len(self._asked) >= WAITING_MAX:
            raise SabotError("too_many_waiting")
        number = self.record.number() if message.kind == "command" else self._query()
        asked = Asked(IDS[name], number, message.kind == "command", boot=self.boot_id)
        self._asked[asked.number] = asked
        return asked

    def _query(self) -> int:
        """The number of the next query."""
        self._next_query += 1
        return self._next_query - 1

    def _ready(self, asked: Asked, fields: Mapping[str, Value]) -> Asked:
        """Give a request its fields, and send it if it may be sent."""
        try:
            asked.body = encode_fields(MESSAGES[asked.message], fields)
        except FieldError:
            del self._asked[asked.number]
            raise
        self._flush()
        return asked

    def _flush(self) -> None:
        """Send the requests that may be sent now: attach first, then the others by their numbers."""
        if self.link is None:
            return
        if self._attach and not self._attach.done and not self._attach.sent:
            boot, n = self.record.position
            fields = {"mode": self._mode or OBSERVER, "from_boot": boot, "from_n": n}
            self._attach.body = encode_fields(MESSAGES[IDS["attach"]], fields)
            self._send(self._attach)
        if self._mode is not None and self.attached is None:
            return
        for number in sorted(self._asked):
            if len(self._under_way) >= self.device.number("window"):
                break
            asked = self._asked[number]
            if number in self._under_way or asked is self._attach or asked.held:
                continue
            if asked.command and asked.sent and not (self.attached and self.attached["mode"] == OWNER):
                continue  # only an owner is told what became of it
            if self._frozen_only() and asked.message not in FROZEN:
                self._finish(asked, error=SabotError("version_mismatch"))
            elif asked.command and asked.boot not in (None, self.boot_id) and not asked.sent:
                self._finish(asked, error=SabotError("device_rebooted"))
            elif asked.command and asked.sent and self.attached and not self.attached["known"]:
                self._finish(asked, error=SabotError("forgotten"))
            else:
                asked.resolve = asked.command and asked.sent and asked.boot != self.boot_id
                self._send(asked)

    def _frozen_only(self) -> bool:
        """Whether the versions differ so far that only frozen messages may be used."""
        if self.device["major"] != self.major:
            return True
        return self.device["minor"] == MINOR and self.device["schema"] != self.schema

    def _send(self, asked: Asked) -> None:
        """Send a request; one that is to be resolved goes without its fields."""
        assert self.link is not None
        if not asked.sent:
            asked.boot = self.boot_id
        asked.sent = True
        asked.sessions += 1
        self._under_way.add(asked.number)
        flags, body = (RESOLVE, b"") if asked.resolve else (0, asked.body)
        secret = asked.secret or (body[-32:] if asked.message == IDS["shuffle_with"] else b"")
        if body and secret:
            body = body[:-32] + hide(self.link.keys.pad, asked.message, asked.number, secret)
        if asked.by and not asked.resolve:
            self._elevate(asked, asked.by, body)
        self.link.send(REQUEST, asked.message, flags, asked.number, body, self.now)

    def _elevate(self, asked: Asked, by: tuple[int, bytes], body: bytes) -> None:
        """Let a person authorise the request that is sent next."""
        assert self.link is not None
        slot, key = by
        derived = slot_key(key, self.device.data("serial"), slot)
        proof = elevation_proof(derived, self.link.keys.transcript, slot, asked.message, asked.number, body)
        fields = {"scheme": 1, "slot": slot, "request": asked.message, "request_number": asked.number}
        hashed = {"body_sha256": hashlib.sha256(body).digest(), "proof": proof}
        number = self._query()
        self._elevations[number] = asked
        elevate = encode_fields(MESSAGES[IDS["elevate"]], {**fields, **hashed})
        self.link.send(REQUEST, IDS["elevate"], 0, number, elevate, self.now)

    def _finish(
        self, asked: Asked, answer: str = "", values: Values | None = None, error: SabotError | None = None
    ) -> None:
        """End a request."""
        asked.done, asked.answer, asked.values, asked.error = True, answer, values or Values(), error
        self._asked.pop(asked.number, None)
        self._under_way.discard(asked.number)

    def _answer(self, packet: Packet) -> None:
        """Take an answer: find its request by the number."""
        elevated = self._elevations.pop(packet.request_id, None)
        if elevated is not None:
            if packet.flags:
                error = ERRORS[packet.flags]
                elevated.refused = SabotError(error.name, decode_fields(error, packet.body, True))
            return
        asked = self._asked.get(packet.request_id)
        if asked is None or packet.request_id not in self._under_way:
            self.counters["late_answers"] += 1
            return
        message = (ERRORS if packet.flags else MESSAGES).get(packet.flags or packet.message)
        try:
            if message is None:
                raise FieldError(255)
            values = decode_fields(message, packet.body, packet.flags != 0 or packet.message in FROZEN)
        except FieldError:
            self.counters["malformed"] += 1
            self._finish(asked, error=SabotError(f"error {packet.flags}" if packet.flags else "malformed"))
            return
        if packet.flags and message.name == "not_owner" and asked.command and asked.sessions > 1:
            asked.held = True  # nobody has told what became of it
            self._under_way.discard(asked.number)
            return
        if packet.flags and message.name == "wrong_role" and asked.refused:
            self._finish(asked, error=asked.refused)
        elif packet.flags:
            self._finish(asked, error=SabotError(message.name, values))
        else:
            if message.name == "chain_key_is":
                assert self.link is not None
                number, hidden = packet.request_id, values.data("wrapped")
                values["wrapped"] = hide(self.link.keys.pad, packet.message, number, hidden)
            self._finish(asked, message.name, values)
        if asked is self._attach and asked.error is None:
            self.attached = values
        elif asked is self._attach:
            self._mode = None
        elif asked.message == IDS["detach"] and asked.error is None:
            self._mode = self.attached = None

    # events

    def _event(self, packet: Packet) -> None:
        """Take an event, if it follows the last one."""
        boot, ticks_ms, utc_s, utc_ms = struct.unpack_from("<IIIH", packet.body)
        last_boot, last_n = self.record.position
        if boot < last_boot or packet.request_id != (last_n + 1 if boot == last_boot else 1):
            self._out_of_step()
            return
        message = MESSAGES.get(packet.message)
        name, values = str(packet.message), Values(raw=packet.body[14:])
        if message is not None and message.kind == "event":
            try:
                name, values = message.name, decode_fields(message, packet.body[14:])
            except FieldError:
                self.counters["malformed"] += 1
        self.record.position = (boot, packet.request_id)
        hashed = struct.pack("<BBI", packet.message, packet.flags, packet.request_id) + packet.body
        self.events.append(
            Event(name, boot, packet.request_id, ticks_ms, utc_s, utc_ms, packet.flags, values, hashed)
        )

    def _gap(self, packet: Packet) -> None:
        """Take a gap: the next event is the one it ends before."""
        after_boot, after_n, boot, n = struct.unpack("<IIII", packet.body)
        position = self.record.position
        begins = (after_boot, after_n) == position or (after_boot > position[0] and after_n == 0)
        if not begins or n == 0 or (boot, n - 1) < (after_boot, after_n):
            self._out_of_step()
            return
        values = Values(reason=packet.flags, lost=packet.request_id, after_boot=after_boot, after_n=after_n)
        self.record.position = (boot, n - 1)
        self.events.append(Event("gap", boot, n, values=values))

    def _out_of_step(self) -> None:
        """End the session, for good: a new one would only bring the same events again."""
        self.ends.append("events_out_of_step")
        self._drop()
        self._fail("events_out_of_step")
