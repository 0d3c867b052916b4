"""Worked examples for the protocol page: both ends talk, and every byte they say is taken apart."""

import struct
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from sabot_protocol import session
from sabot_protocol.codec import CODEC, Codec, Message, enum_name, enum_number
from sabot_protocol.device_end import Caller, DeviceEnd, Executor, Identity
from sabot_protocol.device_port import RESOLVE, DevicePort
from sabot_protocol.errors import Refusal
from sabot_protocol.frame import Decoder, encode
from sabot_protocol.handshake import Question
from sabot_protocol.host_end import CABLE_LOST, EVENT_HEADER_SIZE, HostEnd
from sabot_protocol.keys import DEVICE, OBSERVERS
from sabot_protocol.link import ANSWER, BARE, CLOSE, EVENT, EVENT_ACK, GAP, REQUEST
from sabot_protocol.mac import hmac_sha256
from sabot_protocol.memory import Memory
from sabot_protocol.numbers import Numbers

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
WAYS = {1: "clear, to device", 2: "clear, to host", 3: "sealed, to device", 4: "sealed, to host"}

NUMBERS = {
    REQUEST: "request number", ANSWER: "request number", EVENT: "event number n",
    EVENT_ACK: "event number n", GAP: "events lost, 0 if unknown",
}

Row = tuple[bytes, str, str]  # bytes as sent, name, value in words


class Dice:
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
        self.device: DeviceEnd | None = None
        self.stack = 0

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Take the next stack; refuse any other."""
        assert self.device is not None
        if name == "dispense_stack":
            if values != (7, self.stack + 1):
                raise Refusal("stale", (7, self.stack))
            self.stack += 1
            self.device.emit("stack_dispensed", 7, self.stack, 3)
        if name == "shuffle_with":
            return (values[0],)
        return ()


class Talk:
    """Two ends and the frames between them, oldest first, as (to device?, frame)."""

    def __init__(self, beside: "Talk | None" = None, host: HostEnd | None = None) -> None:
        self.said: list[tuple[bool, bytes]] = []
        self.host = host or HostEnd(DEVICE_KEY, Numbers(HOST_ID, 100), Dice(b"host"), SERIAL)
        if beside is not None:  # another cable of the same device
            self.now: int = beside.now
            self.device: DeviceEnd = beside.device
            self.port = DevicePort(self.device)
            return
        self.now = 1000
        self.memory = Memory()
        self.shoe = ExampleShoe()
        self.boot()

    def boot(self) -> None:
        """Power on."""
        identity = Identity(SERIAL, "Sabot", "1.0.0")
        self.device = DeviceEnd(identity, self.memory, self.shoe, Dice(b"device"), self.now, event_capacity=6)
        self.shoe.device = self.device
        self.port = DevicePort(self.device)

    def host_says(self) -> bytes:
        """What the host has to say now; noted, and not yet delivered."""
        return self._note(True, self.host.poll(self.now))

    def device_says(self) -> bytes:
        """What the device has to say now; noted, and not yet delivered."""
        return self._note(False, self.port.poll(self.now))

    def _note(self, to_device: bool, data: bytes) -> bytes:
        for one in bytes(data).split(b"\x00")[:-1]:
            self.said.append((to_device, one + b"\x00"))
        return bytes(data)

    def settle(self) -> None:
        """Let both talk until neither has anything to say."""
        for _ in range(20):
            out = self.host_says()
            self.port.receive(out, self.now)
            back = self.device_says()
            self.host.receive(back, self.now)
            if not out and not back:
                return

    def heard(self) -> list[tuple[bool, bytes]]:
        """What was said since the last call."""
        said, self.said = self.said, []
        return said

    def ask(
        self, name: str, *values: "Value", by: tuple[int, bytes] | None = None
    ) -> list[tuple[bool, bytes]]:
        """One request and everything that follows from it."""
        self.host.request(CODEC.named(name).id, CODEC.pack(name, *values), self.now, by=by)
        self.settle()
        return self.heard()

    def tell(self, payload: bytes) -> None:
        """One payload to the device, whoever it is from, and what that says to it."""
        self.port.receive(self._note(True, bytes(encode(payload))), self.now)
        self.device_says()

    def question(self, name: str, *values: "Value") -> list[tuple[bool, bytes]]:
        """One clear question and its answer."""
        question = Question(CODEC, name, values, self.now)
        self.port.receive(self._note(True, question.poll(self.now)), self.now)
        self.device_says()
        return self.heard()


# -- taking frames apart ------------------------------------------------------------------------


def payload_of(frame: bytes) -> bytes:
    """What a good frame holds."""
    ((payload, _),) = Decoder().feed(frame)
    assert payload is not None
    return payload


def dissect(frame: bytes) -> tuple[str, list[Row]]:
    """A frame's title and its payload's bytes, part by part."""
    payload = payload_of(frame)
    way = payload[0]
    rows: list[Row] = [(payload[:1], "way", WAYS[way])]
    if way <= session.CLEAR_TO_HOST:
        message = CODEC.find(payload[1])
        assert message is not None
        rows.append((payload[1:2], "message", message.name))
        rows += _fields(message.fields, message.unpack(payload[2:]))
        return message.name, rows
    head = struct.unpack_from(session.HEADER, payload)
    _, sid, counter, seq, ack, sack, kind, message_id, mark, number = head
    body = payload[session.HEADER_SIZE : -session.MAC_SIZE]
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
        ("mark", 1, _mark(kind, mark)),
        ("number", 4, f"{number}  {NUMBERS.get(kind, '')}".strip()),
    )
    at = 1
    for label, size, words in spans:
        rows.append((payload[at : at + size], label, words))
        at += size
    rows += _body(kind, found, mark, body)
    rows.append((payload[-session.MAC_SIZE :], "mac", "HMAC-SHA-256 of all above, first 8 bytes"))
    return f"{KINDS[kind]} {name}" if kind not in (BARE, EVENT_ACK, GAP, CLOSE) else KINDS[kind], rows


def _mark(kind: int, mark: int) -> str:
    if kind == ANSWER:
        error = CODEC.error(mark)
        return "status: ok" if error is None else f"status: {error.name}"
    if kind == EVENT:
        return f"clock quality: {enum_name('ClockQuality', mark)}"
    if kind == GAP:
        return f"reason: {enum_name('GapReason', mark)}"
    return "RESOLVE" if kind == REQUEST and mark == RESOLVE else str(mark)


def _body(kind: int, message: Message | None, mark: int, body: bytes) -> list[Row]:
    if kind == EVENT_ACK:
        return [(body, "boot_id", str(struct.unpack("<I", body)[0]))]
    if kind == GAP:
        return _numbers(("after_boot", "after_n", "before_boot", "before_n"), (4, 4, 4, 4), body)
    rows: list[Row] = []
    if kind == EVENT:
        rows = _numbers(("boot_id", "ticks_ms", "utc_s", "utc_ms"), (4, 4, 4, 2), body)
        body = body[EVENT_HEADER_SIZE:]
    if kind == ANSWER and mark:
        message = CODEC.error(mark)
    if message is None or (kind == REQUEST and mark == RESOLVE):
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
        one = Message(CODEC, (0, "", "", "", "", (field,)))
        yield one.pack((value,)), str(field[0]), _words(field, value)


def _words(field: tuple[object, ...], value: "Value") -> str:
    if field[1] == "enum":
        return enum_name(str(field[2]), value)
    if isinstance(value, str):
        return repr(value)
    return "" if isinstance(value, bytes) else str(value)


def shown(said: list[tuple[bool, bytes]]) -> str:
    """Frames as a block of text, taken apart."""
    lines = ["```text"]
    for to_device, frame in said:
        title, rows = dissect(frame)
        lines.append(f"{'host -> device' if to_device else 'device -> host'}   {title}")
        lines.append(f"  frame  {frame.hex()}")
        for data, name, words in rows:
            lines.append(f"    {name:<13} {data.hex():<34} {words}".rstrip())
        lines.append("")
    return "\n".join(lines[:-1] + ["```"])


# -- the examples -------------------------------------------------------------------------------


def examples() -> str:
    """All worked exchanges, as sections of the page."""
    talk = Talk()
    parts: list[str] = []

    def section(title: str, text: str, said: list[tuple[bool, bytes]]) -> None:
        parts.append(f"### {title}\n\n{text}\n\n{shown(said)}")

    section(
        "Identification",
        "A new device: it has no key, so `flags` does not say `provisioned`.",
        talk.question("identify"),
    )
    nonce, entropy = Dice(b"factory")(16), Dice(b"entropy")(32)
    proof = session.provision_proof(DEVICE_KEY, nonce, SERIAL)
    section(
        "Provisioning",
        f'`proof` = HMAC(device key, `"provisioned"` + nonce + serial)[:16] = `{proof.hex()}`.',
        talk.question("provision", nonce, DEVICE_KEY, entropy),
    )
    section(
        "Provisioning again, with another key",
        "`refused` echoes the nonce; error 16.",
        talk.question("provision", nonce, bytes(31) + b"\x01", entropy),
    )
    talk.host.connect(talk.now)
    talk.settle()
    said = talk.heard()
    section("Handshake and attach", _keys_of(talk, said), said)
    section("A query", "Asked by anyone in a session.", talk.ask("status"))
    section(
        "A command and its event",
        "The answer says that the command was accepted and begun; the event tells what came of it.",
        talk.ask("dispense_stack", 7, 1),
    )
    talk.host.acknowledge(talk.device.boot_id, talk.device.events.last)
    talk.settle()
    section(
        "Acknowledging events",
        "Everything up to event n of that boot is on the host's disk.",
        talk.heard(),
    )
    section(
        "A command refused",
        "Stack 9 is not the next one: error 8 with its details.",
        talk.ask("dispense_stack", 7, 9),
    )
    section(
        "A bare packet",
        "Nothing else was due within 20 ms, so the acknowledgement goes alone. `seq` is the next one to be used "
        "and means nothing here.",
        _later(talk, 20),
    )
    section(
        "A lost answer",
        "The device's answer (and the event after it) do not arrive. The request is sent again when its timer runs "
        "out: the same `seq` and number, a new counter and so a new MAC. The device knows the `seq`, executes "
        "nothing and acknowledges; its own messages are sent again when their timer runs out.",
        _lost_answer(talk),
    )
    section(
        "Setting a person's key",
        f"Provisioning is not over, so the owner may fill an empty slot. Person {SERVICE_PERSON} of role `service` has the key "
        f"`{SERVICE_KEY.hex()}`. The device stores HMAC(that key, serial + slot {SERVICE_SLOT} as u8) = "
        f"`{session.slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT).hex()}`, which is hidden by the pad "
        f'HMAC(pad key, message 1d + number {talk.host.next_number} as u32), with pad key = HMAC(device key, `"pad"` + transcript).',
        talk.ask(
            "set_key", SERVICE_SLOT, SERVICE, SERVICE_PERSON,
            session.slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT),
        ),
    )
    talk.device.keys.set(FLOOR_SLOT, session.slot_key(FLOOR_KEY, SERIAL, FLOOR_SLOT), FLOOR, FLOOR_PERSON)
    section(
        "Elevation",
        f"Person {SERVICE_PERSON} sets the observers' key, `{OBSERVER_KEY.hex()}`. The elevation names the command by its id, "
        "number and the SHA-256 of its body, and the command follows at once. "
        f'`proof` = HMAC(key in slot {SERVICE_SLOT}, `"elevation"` + transcript + scheme u8 + slot u8 + request u8 + '
        "request_number u32 + body_sha256)[:16].",
        talk.ask("set_key", OBSERVERS, 0, 0, OBSERVER_KEY, by=(SERVICE_SLOT, SERVICE_KEY)),
    )
    section(
        "An elevation that proves nothing",
        f"Shown with another key, `{FLOOR_KEY.hex()}`, the elevation is refused (error 12), and so is the command it was for "
        "(error 3).",
        talk.ask("remove_key", OBSERVERS, by=(SERVICE_SLOT, FLOOR_KEY)),
    )
    number = talk.host.next_number
    section(
        "A shuffle with the host's nonce",
        f"The host's nonce `{SHUFFLE_NONCE.hex()}` is hidden by the session's pad "
        f"HMAC(pad key, message c2 + number {number} as u32).",
        talk.ask("shuffle_with", 5, SHUFFLE_NONCE),
    )
    _reboot_with_command_under_way(talk)
    section(
        "A reboot with a command under way",
        "The device executed the command and lost its power before it could answer. The host's next packet meets "
        "a device without a session; `no_session` makes it begin a new handshake at once. The new boot's ledger "
        "still has the answer, and the events lost with the power are a gap of known size. The command is sent "
        "again marked RESOLVE, which never executes it.",
        talk.heard(),
    )
    talk.host.disconnect(CABLE_LOST)
    talk.port.close()
    talk.port = DevicePort(talk.device)
    for seconds in range(1, 10):
        talk.device.emit("located", seconds)
    talk.host.connect(talk.now)
    talk.settle()
    section(
        "Overflow",
        "While no host was there more events were made than the six this device keeps: what was overwritten is a gap.",
        _since_hello(talk.heard()),
    )
    parts += [_observer(talk), _owner_held(talk), _evicted(talk)]
    parts += [_not_provisioned(), _wrong_proof(), _version_mismatch(), _device_key(), _closed()]
    return "\n\n".join(parts)


def _since_hello(said: list[tuple[bool, bytes]]) -> list[tuple[bool, bytes]]:
    hello = max(index for index, (_, frame) in enumerate(said) if dissect(frame)[0] == "hello")
    return said[hello:]


def _titled(title: str, text: str, said: list[tuple[bool, bytes]]) -> str:
    return f"### {title}\n\n{text}\n\n{shown(said)}"


def _observer(talk: Talk) -> str:
    watcher = Talk(
        talk, HostEnd(OBSERVER_KEY, Numbers(b"WALL-PC1"), Dice(b"observer"), SERIAL, slot=OBSERVERS)
    )
    watcher.host.connect(watcher.now, WATCH)
    watcher.settle()
    said = watcher.heard()[:8]
    watcher.host.close(watcher.now)
    watcher.port.close()
    return _titled(
        "An observer",
        "On another cable of the same device, a session proved with the observers' key: `hello` names slot 1. It sees the same "
        "events; `known` and `newest_command` are 0 for it.",
        said,
    )


def _owner_held(talk: Talk) -> str:
    second = Talk(talk, HostEnd(DEVICE_KEY, Numbers(b"BAC08-PC", 1), Dice(b"second host"), SERIAL))
    second.host.connect(second.now)
    second.settle()
    said = second.heard()
    second.port.close()
    return _titled(
        "A second host",
        "It has the device key, and may not own what another host owns: error 6, with the holder's id.",
        said,
    )


def _evicted(talk: Talk) -> str:
    second = Talk(talk, HostEnd(DEVICE_KEY, Numbers(b"BAC08-PC", 1), Dice(b"third host"), SERIAL))
    second.host.start_from(talk.device.memory_id, talk.device.boot_id, talk.device.events.last)
    second.host.connect(second.now, WATCH)
    second.settle()
    said = second.heard() + second.ask("evict_owner", HOST_ID, by=(FLOOR_SLOT, FLOOR_KEY))
    second.port.close()
    return _titled(
        "The floor takes the device from its owner",
        f"The second host again, attached as observer with the device key. Person {FLOOR_PERSON} of role `floor`, whose key is "
        f"`{FLOOR_KEY.hex()}` and slot {FLOOR_SLOT}, authorises it; no round is open.",
        said,
    )


def _closed() -> str:
    talk = _provisioned()
    talk.host.connect(talk.now)
    talk.settle()
    talk._note(True, talk.host.close(talk.now))
    return _titled(
        "The end of a session",
        "A device just provisioned with the same key. The host's program ends in order: its last packet says so, and the device "
        "gives up the session at once.",
        talk.heard(),
    )


def _not_provisioned() -> str:
    talk = Talk()
    talk.host.connect(talk.now)
    talk.settle()
    return _titled("A device without a key", "Another device, fresh from the factory: error 15 to whoever says hello.", talk.heard())


def _provisioned() -> Talk:
    talk = Talk()
    talk.question("provision", Dice(b"factory")(16), DEVICE_KEY, Dice(b"entropy")(32))
    return talk


def _wrong_proof() -> str:
    talk = _provisioned()
    talk.host.connect(talk.now)
    talk.port.receive(talk.host_says(), talk.now)
    talk.device_says()
    said = talk.heard()
    hash = session.transcript(payload_of(said[0][1])[2:], payload_of(said[1][1])[2 + session.PROOF_SIZE :])
    prove = CODEC.pack("prove", session.session_id(hash), bytes(session.PROOF_SIZE))
    talk.tell(bytes((session.CLEAR_TO_DEVICE, CODEC.named("prove").id)) + prove)
    return _titled(
        "A proof that proves nothing",
        "A device just provisioned with the same key. The right session and 16 zeros for a proof: error 17, with the "
        "nonce of the hello.",
        said + talk.heard(),
    )


def _version_mismatch() -> str:
    talk = _provisioned()
    host = HostEnd(DEVICE_KEY, Numbers(HOST_ID, 100), Dice(b"host"), SERIAL, codec=Codec(version=(2, 0)))
    talk.host = host
    host.connect(talk.now)
    talk.settle()
    said = talk.heard()
    host._limited = False  # as one would that takes no notice
    return _titled(
        "Versions that differ",
        "A device just provisioned with the same key. A host of version 2.0 has a session, and may use frozen messages. A command that is not frozen is "
        "refused: error 7, with the device's version.",
        said + talk.ask("dispense_stack", 7, 1) + talk.ask("status"),
    )


def _device_key() -> str:
    talk = _provisioned()
    talk.device.keys.set(
        SERVICE_SLOT, session.slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT), SERVICE, SERVICE_PERSON
    )
    talk.host.connect(talk.now)
    talk.settle()
    said = talk.heard()
    new = bytes(range(0x80, 0xA0))
    said += talk.ask("set_key", DEVICE, 1, 0, new, by=(SERVICE_SLOT, SERVICE_KEY))
    said += _later(talk, 20)
    return _titled(
        "Another device key",
        f"A device just provisioned with the same key, with a service key. The new device key is `{new.hex()}`. Once its answer is "
        "acknowledged, the device ends the session that was proved with the old one.",
        said,
    )


def _keys_of(talk: Talk, said: list[tuple[bool, bytes]]) -> str:
    hello = payload_of(said[0][1])[2:]
    challenge = payload_of(said[1][1])[2:]
    transcript = session.transcript(hello, challenge[session.PROOF_SIZE :])
    rows = (
        ("device key", DEVICE_KEY),
        ("transcript", transcript),
        ("device proof", session.device_proof(DEVICE_KEY, transcript)),
        ("host proof", session.host_proof(DEVICE_KEY, transcript)),
        ("key to device", hmac_sha256(DEVICE_KEY, b"to device" + transcript)),
        ("key to host", hmac_sha256(DEVICE_KEY, b"to host" + transcript)),
        ("pad key", hmac_sha256(DEVICE_KEY, b"pad" + transcript)),
    )
    assert transcript == talk.host.transcript
    lines = "\n".join(f"{name:<14} {value.hex()}" for name, value in rows)
    return f"The keys of this and the following examples, up to the reboot:\n\n```text\n{lines}\n```"


def _later(talk: Talk, ms: int) -> list[tuple[bool, bytes]]:
    talk.now += ms
    talk.settle()
    return talk.heard()


def _lost_answer(talk: Talk) -> list[tuple[bool, bytes]]:
    talk.host.request(CODEC.named("dispense_stack").id, CODEC.pack("dispense_stack", 7, 2), talk.now)
    talk.port.receive(talk.host_says(), talk.now)
    talk.device_says()  # lost
    talk.now += 200
    talk.settle()
    return talk.heard() + _later(talk, 20)


def _reboot_with_command_under_way(talk: Talk) -> None:
    talk.host.request(CODEC.named("dispense_stack").id, CODEC.pack("dispense_stack", 7, 3), talk.now)
    talk.port.receive(talk.host_says(), talk.now)
    talk.now += 50
    talk.boot()
    talk.now += 400
    talk.settle()


