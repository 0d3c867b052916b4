"""Worked examples for the protocol page: both ends exchange frames, and every byte is explained."""

import re
import struct
from collections.abc import Iterator
from hashlib import sha256
from textwrap import fill
from typing import TYPE_CHECKING

from sabot_protocol import session, wire_constants
from sabot_protocol.codec import CODEC, Codec, MessageCodec, enum_name, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import Caller, DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import Refusal
from sabot_protocol.frame import Decoder, encode
from sabot_protocol.generate.vectors import example_values
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import CABLE_LOST, HostProtocol
from sabot_protocol.mac import hmac_sha256
from sabot_protocol.record_store import RecordStore
from sabot_protocol.wire_constants import (
    ANSWER,
    BARE,
    CLOSE,
    DEVICE,
    EVENT,
    EVENT_ACK,
    EVENT_HEADER_SIZE,
    GAP,
    OBSERVERS,
    REQUEST,
    RESOLVE,
)

if TYPE_CHECKING:
    from sabot_protocol.codec import Value, Values

DEVICE_KEY = bytes(range(0x20))
OBSERVER_KEY = bytes(range(0x20, 0x40))
SERVICE_KEY = bytes(range(0x40, 0x60))
FLOOR_KEY = bytes(range(0x60, 0x80))
SERVICE_SLOT, SERVICE_PERSON = 2, 4711
FLOOR_SLOT, FLOOR_PERSON = 3, 1234
SHUFFLE_NONCE = bytes(range(0xA0, 0xC0))
SERIAL = b"SBT00042"
HOST_ID = b"BAC07-PC"
SERVICE = enum_number("Role", "service")
FLOOR = enum_number("Role", "floor")
WATCH = enum_number("AttachMode", "observer")
KINDS = {
    BARE: "BARE", REQUEST: "REQUEST", ANSWER: "ANSWER", EVENT: "EVENT", EVENT_ACK: "EVENT_ACK", GAP: "GAP",
    CLOSE: "CLOSE",
}
DIRECTIONS = {1: "clear, to device", 2: "clear, to host", 3: "sealed, to device", 4: "sealed, to host"}

NUMBERS = {
    REQUEST: "", ANSWER: "", EVENT: "event number n",
    EVENT_ACK: "event number n", GAP: "events lost, 0 if unknown",
}

_WIDTH = 118  # of the page's lines
_FRAME_DIGITS = 104  # of a frame on one line

Row = tuple[bytes, str, str]  # bytes as sent, name, value in words


def complete(name: str, *values: "Value") -> "Values":
    """All values of a message: a field after those given has its lowest value."""
    return values + tuple([example_values(field)[0] for field in CODEC.named(name).fields[len(values) :]])


class FixedRandom:
    """Stands for an end's random source, so that the examples are the same every time."""

    def __init__(self, name: bytes) -> None:
        self._name = name
        self._draws = 0

    def __call__(self, size: int) -> bytes:
        """The next draw."""
        self._draws += 1
        return sha256(b"sabot example %s %d" % (self._name, self._draws)).digest()[:size]


class ExampleShoe(Executor):
    """Dispenses the stacks of round 7 in order."""

    def __init__(self) -> None:
        self.device: DeviceProtocol | None = None
        self.stack = 0

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Take the next stack; refuse any other."""
        assert self.device is not None
        if name == "dispense_stack":
            if values != (7, self.stack + 1):
                raise Refusal("stale", (7, self.stack))
            self.stack += 1
            self.device.emit("stack_dispensed", *complete("stack_dispensed", 7, self.stack, 3))
        if name == "shuffle_with":
            return (values[0],)
        return ()


class ExampleExchange:
    """Two ends and the frames between them, oldest first, as (to device?, frame)."""

    def __init__(self, beside: "ExampleExchange | None" = None, host: HostProtocol | None = None) -> None:
        self.frames: list[tuple[bool, bytes]] = []
        self.host = host or HostProtocol(DEVICE_KEY, CommandNumbers(HOST_ID, 100), FixedRandom(b"host"), SERIAL)
        if beside is not None:  # another cable of the same device
            self.now: int = beside.now
            self.device: DeviceProtocol = beside.device
            self.port = DevicePort(self.device)
            return
        self.now = 1000
        self.memory = RecordStore()
        self.shoe = ExampleShoe()
        self.boot()

    def boot(self) -> None:
        """Power on."""
        identity = DeviceIdentity(SERIAL, "Sabot", "1.0.0")
        self.device = DeviceProtocol(identity, self.memory, self.shoe, FixedRandom(b"device"), self.now, event_capacity=6)
        self.shoe.device = self.device
        self.port = DevicePort(self.device)

    def poll_host(self) -> bytes:
        """What the host has to say now; noted, and not yet delivered."""
        return self._note(True, self.host.poll(self.now))

    def poll_device(self) -> bytes:
        """What the device has to say now; noted, and not yet delivered."""
        return self._note(False, self.port.poll(self.now))

    def _note(self, to_device: bool, data: bytes) -> bytes:
        for one in bytes(data).split(b"\x00")[:-1]:
            self.frames.append((to_device, one + b"\x00"))
        return bytes(data)

    def settle(self) -> None:
        """Let both talk until neither has anything to say."""
        for _ in range(20):
            out = self.poll_host()
            self.port.receive(out, self.now)
            back = self.poll_device()
            self.host.receive(back, self.now)
            if not out and not back:
                return

    def take_frames(self) -> list[tuple[bool, bytes]]:
        """What was said since the last call."""
        frames, self.frames = self.frames, []
        return frames

    def hand_over(self, name: str, *values: "Value", by: tuple[int, bytes] | None = None) -> None:
        """Give the host a request, which it has not sent yet."""
        self.host.request(CODEC.named(name).id, CODEC.pack(name, *complete(name, *values)), self.now, by=by)

    def request(
        self, name: str, *values: "Value", by: tuple[int, bytes] | None = None
    ) -> list[tuple[bool, bytes]]:
        """One request and everything that follows from it."""
        self.hand_over(name, *values, by=by)
        self.settle()
        return self.take_frames()

    def send_payload(self, payload: bytes) -> None:
        """One payload to the device, whoever it is from, and what that says to it."""
        self.port.receive(self._note(True, bytes(encode(payload))), self.now)
        self.poll_device()

    def clear_exchange(self, name: str, *values: "Value") -> list[tuple[bool, bytes]]:
        """One clear question and its answer."""
        clear_exchange = ClearExchange(CODEC, name, complete(name, *values), self.now)
        self.port.receive(self._note(True, clear_exchange.poll(self.now)), self.now)
        self.poll_device()
        return self.take_frames()


# -- taking frames apart ------------------------------------------------------------------------


def payload_of(frame: bytes) -> bytes:
    """What a good frame holds."""
    ((payload, _),) = Decoder().feed(frame)
    assert payload is not None
    return payload


def dissect(frame: bytes) -> tuple[str, list[Row]]:
    """A frame's title and its payload's bytes, part by part."""
    payload = payload_of(frame)
    direction = payload[0]
    rows: list[Row] = [(payload[:1], "direction", DIRECTIONS[direction])]
    if direction <= wire_constants.CLEAR_TO_HOST:
        message = CODEC.find(payload[1])
        assert message is not None
        rows.append((payload[1:2], "message", message.name))
        rows += _fields(message.fields, message.unpack(payload[2:]))
        return message.name, rows
    head = struct.unpack_from(wire_constants.HEADER, payload)
    _, sid, counter, seq, ack, sack, kind, message_id, flags, request_id = head
    body = payload[wire_constants.HEADER_SIZE : -wire_constants.MAC_SIZE]
    found = CODEC.find(message_id)
    name = found.name if found is not None else "-"
    spans = (
        ("session", 2, f"{sid:#06x}"),
        ("counter", 4, str(counter)),
        ("seq", 1, str(seq)),
        ("ack", 1, str(ack)),
        ("sack", 2, f"{sack:#06x}"),
        ("kind", 1, KINDS[kind]),
        ("message", 1, name),
        ("flags", 1, _flags_in_words(kind, flags)),
        ("request_id", 4, f"{request_id}  {NUMBERS.get(kind, '')}".strip()),
    )
    at = 1
    for label, size, words in spans:
        rows.append((payload[at : at + size], label, words))
        at += size
    rows += _body(kind, found, flags, body)
    rows.append((payload[-wire_constants.MAC_SIZE :], "mac", "HMAC-SHA-256 of all above, first 8 bytes"))
    return f"{KINDS[kind]} {name}" if kind not in (BARE, EVENT_ACK, GAP, CLOSE) else KINDS[kind], rows


def _flags_in_words(kind: int, flags: int) -> str:
    if kind == ANSWER:
        error = CODEC.error(flags)
        return "status: ok" if error is None else f"status: {error.name}"
    if kind == EVENT:
        return f"clock quality: {enum_name('ClockQuality', flags)}"
    if kind == GAP:
        return f"reason: {enum_name('GapReason', flags)}"
    return "RESOLVE" if kind == REQUEST and flags == RESOLVE else str(flags)


def _body(kind: int, message: MessageCodec | None, flags: int, body: bytes) -> list[Row]:
    if kind == EVENT_ACK:
        return [(body, "boot_id", str(struct.unpack("<I", body)[0]))]
    if kind == GAP:
        return _numbers(("after_boot", "after_n", "before_boot", "before_n"), (4, 4, 4, 4), body)
    rows: list[Row] = []
    if kind == EVENT:
        rows = _numbers(("boot_id", "ticks_ms", "utc_s", "utc_ms"), (4, 4, 4, 2), body)
        body = body[EVENT_HEADER_SIZE:]
    if kind == ANSWER and flags:
        message = CODEC.error(flags)
    if message is None or (kind == REQUEST and flags == RESOLVE):
        return rows  # (a question what became of it has no fields)
    return [*rows, *_fields(message.fields, message.unpack(body))]


def _numbers(names: tuple[str, ...], sizes: tuple[int, ...], data: bytes) -> list[Row]:
    rows: list[Row] = []
    at = 0
    for name, size in zip(names, sizes, strict=True):
        part = data[at : at + size]
        rows.append((part, name, str(int.from_bytes(part, "little"))))
        at += size
    return rows


def _fields(fields: tuple[tuple[object, ...], ...], values: "Values") -> Iterator[Row]:
    for field, value in zip(fields, values, strict=True):
        one = MessageCodec(CODEC, (0, "", "", "", "", (field,)))
        yield one.pack((value,)), str(field[0]), _words(field, value)


def _words(field: tuple[object, ...], value: "Value") -> str:
    if field[1] == "enum":
        return enum_name(str(field[2]), value)
    if isinstance(value, str):
        return repr(value)
    return "" if isinstance(value, bytes) else str(value)


def shown(frames: list[tuple[bool, bytes]]) -> str:
    """Frames as a block of text, taken apart."""
    lines = ["```text"]
    for to_device, frame in frames:
        title, rows = dissect(frame)
        lines.append(f"{'host -> device' if to_device else 'device -> host'}   {title}")
        digits = frame.hex()
        pieces = [digits[at : at + _FRAME_DIGITS] for at in range(0, len(digits), _FRAME_DIGITS)]
        lines.append("  frame  " + "\n         ".join(pieces))
        for data, name, words in rows:
            lines.append(f"    {name:<13} {data.hex():<34} {words}".rstrip())
        lines.append("")
    return "\n".join(lines[:-1] + ["```"])


# -- the examples -------------------------------------------------------------------------------


def examples() -> str:
    """All worked exchanges, as sections of the page."""
    example = ExampleExchange()
    parts: list[str] = []

    def section(title: str, text: str, frames: list[tuple[bool, bytes]]) -> None:
        parts.append(_titled(title, text, frames))

    section(
        "Identification",
        "A new device has no key, so its `flags` lack `provisioned`.",
        example.clear_exchange("identify"),
    )
    nonce, entropy = FixedRandom(b"factory")(16), FixedRandom(b"entropy")(32)
    proof = session.provision_proof(DEVICE_KEY, nonce, SERIAL)
    section(
        "Provisioning",
        f'`proof` = HMAC(device key, `"provisioned"` + nonce + serial)[:16] = `{proof.hex()}`.',
        example.clear_exchange("provision", nonce, DEVICE_KEY, entropy),
    )
    section(
        "Provisioning again, with another key",
        "`refused` echoes the nonce; error 16.",
        example.clear_exchange("provision", nonce, bytes(31) + b"\x01", entropy),
    )
    example.host.connect(example.now)
    example.settle()
    frames = example.take_frames()
    section("Handshake and attach", _keys_of(example, frames), frames)
    section("A query", "Asked by anyone in a session.", example.request("status"))
    section(
        "A command and its event",
        "The answer says that the command was accepted and begun. The event reports its result.",
        example.request("dispense_stack", 7, 1),
    )
    example.host.acknowledge(example.device.boot_id, example.device.events.last)
    example.settle()
    section(
        "Acknowledging events",
        "Everything up to event n of that boot is on the host's disk.",
        example.take_frames(),
    )
    section(
        "A command refused",
        "Stack 9 is not the next one: error 8 with its details.",
        example.request("dispense_stack", 7, 9),
    )
    section(
        "A bare packet",
        "Nothing else was due within 20 ms, so the acknowledgement goes alone. `seq` is the next one to be used. "
        "It has no meaning here.",
        _later(example, 20),
    )
    section(
        "A lost answer",
        "The device's answer and the event after it do not arrive. The host sends the request again when its timer "
        "runs out, with the same `seq` and number, a new counter and so a new MAC. The device knows the `seq`, "
        "executes nothing and acknowledges. It sends its own messages again when their timer runs out.",
        _lost_answer(example),
    )
    section(
        "Setting a person's key",
        "The slots are still open after provisioning, so the owner may fill an empty one. "
        f"Person {SERVICE_PERSON} of role `service` has the key `{SERVICE_KEY.hex()}`. "
        f"The device stores HMAC(that key, serial + slot {SERVICE_SLOT} as u8) = "
        f"`{session.slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT).hex()}`. On the wire the pad "
        f"HMAC(pad key, message 1d + number {example.host.next_number} as u32) hides it. "
        'The pad key is HMAC(device key, `"pad"` + transcript).',
        example.request(
            "set_key", SERVICE_SLOT, SERVICE, SERVICE_PERSON,
            session.slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT),
        ),
    )
    example.device.keys.set(FLOOR_SLOT, session.slot_key(FLOOR_KEY, SERIAL, FLOOR_SLOT), FLOOR, FLOOR_PERSON)
    section(
        "Elevation",
        f"Person {SERVICE_PERSON} sets the observers' key, `{OBSERVER_KEY.hex()}`. The elevation names the command "
        "by its id, number and the SHA-256 of its body. The command follows at once. "
        f'`proof` = HMAC(key in slot {SERVICE_SLOT}, `"elevation"` + transcript + scheme u8 + slot u8 + request u8 + '
        "request_number u32 + body_sha256)[:16].",
        example.request("set_key", OBSERVERS, 0, 0, OBSERVER_KEY, by=(SERVICE_SLOT, SERVICE_KEY)),
    )
    section(
        "An elevation that proves nothing",
        f"Made with another key, `{FLOOR_KEY.hex()}`, the elevation is refused (error 12), and so is the command "
        "it was for (error 3).",
        example.request("remove_key", OBSERVERS, by=(SERVICE_SLOT, FLOOR_KEY)),
    )
    request_id = example.host.next_number
    section(
        "A shuffle with the host's nonce",
        f"The host's nonce is `{SHUFFLE_NONCE.hex()}`. The session's pad "
        f"HMAC(pad key, message c2 + number {request_id} as u32) hides it.",
        example.request("shuffle_with", 5, SHUFFLE_NONCE),
    )
    _reboot_with_command_under_way(example)
    section(
        "A reboot with a command under way",
        "The device executed the command and lost its power before it could answer. The host's next packet meets "
        "a device without a session. `no_session` makes the host begin a new handshake at once. The new boot's "
        "ledger still has the answer, and the events lost with the power are a gap of known size. The host sends "
        "the command again marked RESOLVE, which never executes it.",
        example.take_frames(),
    )
    example.host.disconnect(CABLE_LOST)
    example.port.close()
    example.port = DevicePort(example.device)
    for seconds in range(1, 10):
        example.device.emit("located", *complete("located", seconds))
    example.host.connect(example.now)
    example.settle()
    section(
        "Overflow",
        "While no host was connected, the device made more events than the six it keeps. A gap names the lost ones.",
        _since_hello(example.take_frames()),
    )
    parts += [_observer(example), _owner_held(example), _evicted(example)]
    parts += [_not_provisioned(), _wrong_proof(), _version_mismatch(), _device_key(), _closed()]
    return "\n\n".join(parts)


def _since_hello(frames: list[tuple[bool, bytes]]) -> list[tuple[bool, bytes]]:
    hello = max(index for index, (_, frame) in enumerate(frames) if dissect(frame)[0] == "hello")
    return frames[hello:]


def _titled(title: str, text: str, frames: list[tuple[bool, bytes]]) -> str:
    return f"### {title}\n\n{_wrapped(text)}\n\n{shown(frames)}"


def _wrapped(text: str) -> str:
    """A paragraph in lines; code in backquotes stays on one line. Text with a block is left as it is."""
    if "```" in text:
        return text
    kept = re.sub(r"`[^`]*`", lambda found: found.group().replace(" ", "\0"), text)
    return fill(kept, _WIDTH, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def _observer(example: ExampleExchange) -> str:
    watcher = ExampleExchange(
        example, HostProtocol(OBSERVER_KEY, CommandNumbers(b"WALL-PC1"), FixedRandom(b"observer"), SERIAL, slot=OBSERVERS)
    )
    watcher.host.connect(watcher.now, WATCH)
    watcher.settle()
    frames = watcher.take_frames()[:8]
    watcher.host.close(watcher.now)
    watcher.port.close()
    return _titled(
        "An observer",
        "A session on another cable of the same device, proved with the observers' key: `hello` names slot 1. It "
        "gets the same events. `known` and `newest_command` are 0 for it.",
        frames,
    )


def _owner_held(example: ExampleExchange) -> str:
    second = ExampleExchange(example, HostProtocol(DEVICE_KEY, CommandNumbers(b"BAC08-PC", 1), FixedRandom(b"second host"), SERIAL))
    second.host.connect(second.now)
    second.settle()
    frames = second.take_frames()
    second.port.close()
    return _titled(
        "A second host",
        "It has the device key, but another host owns the device: error 6, with the owner's id.",
        frames,
    )


def _evicted(example: ExampleExchange) -> str:
    second = ExampleExchange(example, HostProtocol(DEVICE_KEY, CommandNumbers(b"BAC08-PC", 1), FixedRandom(b"third host"), SERIAL))
    second.host.resume_from(example.device.memory_id, example.device.boot_id, example.device.events.last)
    second.host.connect(second.now, WATCH)
    second.settle()
    frames = second.take_frames() + second.request("evict_owner", HOST_ID, by=(FLOOR_SLOT, FLOOR_KEY))
    second.port.close()
    return _titled(
        "The floor takes the device from its owner",
        "The second host again, attached as observer with the device key. "
        f"Person {FLOOR_PERSON} of role `floor` authorises the eviction, with slot {FLOOR_SLOT} and the key "
        f"`{FLOOR_KEY.hex()}`. No round is open.",
        frames,
    )


def _closed() -> str:
    example = _provisioned()
    example.host.connect(example.now)
    example.settle()
    example._note(True, example.host.close(example.now))
    return _titled(
        "The end of a session",
        "A device just provisioned with the same key. The host's program ends in order. Its last packet is CLOSE, "
        "and the device ends the session at once.",
        example.take_frames(),
    )


def _not_provisioned() -> str:
    example = ExampleExchange()
    example.host.connect(example.now)
    example.settle()
    return _titled("A device without a key", "Another device, new from the factory, answers every `hello` with error 15.", example.take_frames())


def _provisioned() -> ExampleExchange:
    example = ExampleExchange()
    example.clear_exchange("provision", FixedRandom(b"factory")(16), DEVICE_KEY, FixedRandom(b"entropy")(32))
    return example


def _wrong_proof() -> str:
    example = _provisioned()
    example.host.connect(example.now)
    example.port.receive(example.poll_host(), example.now)
    example.poll_device()
    frames = example.take_frames()
    hash = session.transcript(payload_of(frames[0][1])[2:], payload_of(frames[1][1])[2 + wire_constants.PROOF_SIZE :])
    prove = CODEC.pack("prove", session.session_id(hash), bytes(wire_constants.PROOF_SIZE))
    example.send_payload(bytes((wire_constants.CLEAR_TO_DEVICE, CODEC.named("prove").id)) + prove)
    return _titled(
        "A proof that proves nothing",
        "A device just provisioned with the same key. The host sends the right session and 16 zeros as proof. The "
        "device answers with error 17 and the nonce of the hello.",
        frames + example.take_frames(),
    )


def _version_mismatch() -> str:
    example = _provisioned()
    host = HostProtocol(DEVICE_KEY, CommandNumbers(HOST_ID, 100), FixedRandom(b"host"), SERIAL, codec=Codec(version=(2, 0)))
    example.host = host
    host.connect(example.now)
    example.settle()
    frames = example.take_frames()
    host._limited = False  # as one would that takes no notice
    return _titled(
        "Versions that differ",
        "A device just provisioned with the same key. A host of version 2.0 has a session and may use frozen "
        "messages. The device refuses a command that is not frozen: error 7, with the device's version.",
        frames + example.request("dispense_stack", 7, 1) + example.request("status"),
    )


def _device_key() -> str:
    example = _provisioned()
    example.device.keys.set(
        SERVICE_SLOT, session.slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT), SERVICE, SERVICE_PERSON
    )
    example.host.connect(example.now)
    example.settle()
    frames = example.take_frames()
    new = bytes(range(0x80, 0xA0))
    frames += example.request("set_key", DEVICE, 1, 0, new, by=(SERVICE_SLOT, SERVICE_KEY))
    frames += _later(example, 20)
    return _titled(
        "Another device key",
        f"A device just provisioned with the same key, with a service key. The new device key is `{new.hex()}`. "
        "Once its answer is acknowledged, the device ends the session that was proved with the old one.",
        frames,
    )


def _keys_of(example: ExampleExchange, frames: list[tuple[bool, bytes]]) -> str:
    hello = payload_of(frames[0][1])[2:]
    challenge = payload_of(frames[1][1])[2:]
    transcript = session.transcript(hello, challenge[wire_constants.PROOF_SIZE :])
    rows = (
        ("device key", DEVICE_KEY),
        ("transcript", transcript),
        ("device proof", session.device_proof(DEVICE_KEY, transcript)),
        ("host proof", session.host_proof(DEVICE_KEY, transcript)),
        ("key to device", hmac_sha256(DEVICE_KEY, b"to device" + transcript)),
        ("key to host", hmac_sha256(DEVICE_KEY, b"to host" + transcript)),
        ("pad key", hmac_sha256(DEVICE_KEY, b"pad" + transcript)),
    )
    assert transcript == example.host.transcript
    lines = "\n".join(f"{name:<14} {value.hex()}" for name, value in rows)
    return f"The keys of this and the following examples, up to the reboot:\n\n```text\n{lines}\n```"


def _later(example: ExampleExchange, ms: int) -> list[tuple[bool, bytes]]:
    example.now += ms
    example.settle()
    return example.take_frames()


def _lost_answer(example: ExampleExchange) -> list[tuple[bool, bytes]]:
    example.hand_over("dispense_stack", 7, 2)
    example.port.receive(example.poll_host(), example.now)
    example.poll_device()  # lost
    example.now += 200
    example.settle()
    return example.take_frames() + _later(example, 20)


def _reboot_with_command_under_way(example: ExampleExchange) -> None:
    example.hand_over("dispense_stack", 7, 3)
    example.port.receive(example.poll_host(), example.now)
    example.now += 50
    example.boot()
    example.now += 400
    example.settle()


