"""A device and its owner joined by a cable in memory, watched closely, and what an attacker overheard.

Everything is made from one seed, so the same seed gives the same keys, nonces, session ids and frames.
"""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

from sabot_protocol import frame, schema
from sabot_protocol.codec import CODEC, MessageCodec, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import Caller, DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import FieldError, Refusal
from sabot_protocol.handshake import ClearExchange
from sabot_protocol.host_protocol import OWNER, HostProtocol
from sabot_protocol.ledger import Ledger
from sabot_protocol.link import Link
from sabot_protocol.notifications import EventReceived, Notification, RequestAnswered
from sabot_protocol.record_store import RecordStore
from sabot_protocol.schema import ERRORS, MESSAGES
from sabot_protocol.session import slot_key

if TYPE_CHECKING:
    from sabot_protocol.codec import Value, Values

HOST_ID = b"TABLE-PC"
SERIAL = b"FUZZED01"
TABLE = enum_number("Role", "table")
FLOOR = enum_number("Role", "floor")
KEPT = 96  # frames an attacker remembers of each direction

ALL_MESSAGES: tuple[MessageCodec, ...] = tuple(CODEC.named(row[1]) for row in MESSAGES)
ALL_ERRORS: tuple[MessageCodec, ...] = tuple(CODEC.error_named(row[1]) for row in ERRORS)
REQUESTS: tuple[MessageCodec, ...] = tuple(each for each in ALL_MESSAGES if each.kind in ("query", "command"))
COMMANDS = frozenset(each.name for each in REQUESTS if each.kind == "command")
_BEGUN = struct.Struct("<8sIB")  # how a command record begins: host id, number, state
_STATE_BEGUN = 1


class Broken(Exception):
    """A promise of the wire was broken; ``promise`` names it, the text says how."""

    def __init__(self, promise: str, how: str) -> None:
        super().__init__(promise, how)  # as given, so that it can be passed between processes
        self.promise = promise
        self.how = how

    def __str__(self) -> str:
        return "%s: %s" % (self.promise, self.how)


# Names of promises.
EXCEPTION = "exception"  # something was raised
ACCEPTED_COMMAND = "accepted_command"  # a command was executed that the owner did not send
ACCEPTED_PACKET = "accepted_packet"  # an answer, event or packet that the peer did not send was taken
CHANGED = "changed"  # keys, ledger, owner, role or session changed
UNANSWERED = "unanswered"  # a genuine request afterwards was not answered
WRONG = "wrong"  # a result that is not what the schema says


def _least(kind: str, *rest: Any) -> Value:
    """The least value a field may have."""
    if kind == "enum":
        return int(dict(schema.ENUMS)[rest[0]][0][1])
    if kind == "text":
        return "x" * int(rest[0])
    if kind == "array":
        return [rest[3]] * int(rest[1])
    if kind in ("bytes", "blob"):
        return bytes(rest[0])
    return 0 if kind == "flags" else int(rest[0])


LEAST = {row[1]: tuple(_least(*field[1:]) for field in row[5]) for row in schema.MESSAGES}


class WatchedMemory(RecordStore):
    """Critical memory that counts its writes and notes each command that was begun."""

    def __init__(self) -> None:
        super().__init__()
        self.saves = 0
        self.begun: list[tuple[bytes, int]] = []

    def save(self, name: str, data: bytes) -> None:
        """Keep ``data``, and note it."""
        self.saves += 1
        if name.startswith("command.") and data:
            host_id, number, state = _BEGUN.unpack_from(data)
            if state == _STATE_BEGUN:
                self.begun.append((host_id, number))
        super().save(name, data)


class WatchedExecutor(Executor):
    """A core that does every request at once, counts it, and checks that the wire let it through rightly."""

    def __init__(self) -> None:
        self.device: DeviceProtocol | None = None
        self.commands = 0
        self.done: list[tuple[str, bytes]] = []  # name and fields of each command, newest last
        self.wrong = ""

    def execute(self, name: str, values: Values, caller: Caller) -> Values:
        """Do it; ``wrong`` says what the wire should have refused."""
        message = CODEC.named(name)
        fields = b""
        try:
            fields = message.pack(values)
        except FieldError as error:
            self.wrong = "the schema does not allow what was executed: %s" % error
        may = 1 << caller.role | (1 << TABLE if caller.is_owner else 0)
        if not message.roles & may:
            self.wrong = "%s executed for role %d" % (name, caller.role)
        if name in COMMANDS:
            if not caller.is_owner:
                self.wrong = "%s executed for a host that is not the owner" % name
            self.commands += 1
            self.done = self.done[-63:] + [(name, fields)]
        if name == "clear_fault":
            raise Refusal("wrong_state", (3, 0b110, 1))
        if name == "locate" and self.device is not None and not self.wrong:
            self.device.emit("located", values[0])
        if message.answer == "shuffle_begun":
            return (self.commands,)
        return (values[0], bytes(32), "1.0") if name == "component" else LEAST[message.answer]


class Wire:
    """A provisioned device and its owner with a session up. Everything said is kept for attackers.

    ``to_device`` and ``to_host`` hold the payloads of this session, ``old_to_…`` those of the one before,
    which has the provisioning too. ``worked`` False leaves out all but the first handshake.
    """

    def __init__(self, seed: int = 0, worked: bool = True) -> None:
        source = random.Random(seed)
        self.now = 1000
        self.random = source.randbytes
        self.key = source.randbytes(32)
        self.floor_key = source.randbytes(32)
        self.memory = WatchedMemory()
        self.executor = WatchedExecutor()
        self.device = DeviceProtocol(
            DeviceIdentity(SERIAL, "fuzzed", "1.0", 2), self.memory, self.executor, self.random, self.now
        )
        self.executor.device = self.device
        self.port = DevicePort(self.device)
        self.host = HostProtocol(self.key, CommandNumbers(HOST_ID), self.random)
        self.to_device: list[bytes] = []
        self.to_host: list[bytes] = []
        self.old_to_device: list[bytes] = []
        self.old_to_host: list[bytes] = []
        self.happened: list[Notification] = []
        self._decoder_out = frame.Decoder()
        self._decoder_in = frame.Decoder()
        given = (source.randbytes(16), self.key, source.randbytes(32))
        for name, values in (("identify", ()), ("provision", given)):
            question = ClearExchange(CODEC, name, values, self.now)
            said = question.poll(self.now)
            self.note(said, self.to_device, self._decoder_out)
            self.port.receive(said, self.now)
            said = self.port.poll(self.now)
            self.note(said, self.to_host, self._decoder_in)
            question.receive(said)
            if question.answer is None:
                raise Broken(UNANSWERED, "a new device did not answer %s: %s" % (name, question.failure))
        self.connect()
        if not worked:
            return
        self._work()
        self.old_to_device, self.to_device = self.to_device, []
        self.old_to_host, self.to_host = self.to_host, []
        self.host.disconnect()
        self.connect()
        self._work()

    # -- genuine traffic --------------------------------------------------------------------------

    def connect(self) -> None:
        """Begin a session as owner."""
        self.now += 10
        self.host.connect(self.now)
        self.pump()
        if not self.host.up and self.host.position > (self.device.boot_id, self.device.events.last):
            self.host.position = (0, 0)  # a device gone mad told of events that the real one never made
            self.host.attach(OWNER)
            self.pump()
        if not self.host.up:
            raise Broken(UNANSWERED, "no session could be made")

    def note(self, said: bytes, heard: list[bytes], decoder: frame.Decoder) -> None:
        """Keep what an attacker overhears."""
        for payload, _ in decoder.feed(said):
            if payload is not None:
                heard.append(payload)
        if len(heard) > KEPT:
            del heard[KEPT // 2 : len(heard) - KEPT // 2]  # the first ones are the handshake

    def pump(self, withheld: bytes = b"") -> None:
        """Carry bytes both ways until neither end has more to say; notifications are kept."""
        try:
            self._pump(withheld)
        except Exception as error:
            raise Broken(EXCEPTION, "in genuine traffic: %r" % error) from error

    def _pump(self, said: bytes) -> None:
        while True:
            if said:
                self.note(said, self.to_device, self._decoder_out)
                self.port.receive(said, self.now)
            answered = self.port.poll(self.now)
            if answered:
                self.note(answered, self.to_host, self._decoder_in)
                self.host.receive(answered, self.now)
            said = self.host.poll(self.now)
            if not said and not answered:
                break
        self.happened += self.host.take_notifications()

    def until_answered(self, number: int, withheld: bytes = b"") -> RequestAnswered:
        """Let time go on until the request is answered, within what retransmission may take."""
        self.pump(withheld)
        for _ in range(60):
            happened, self.happened = self.happened, []
            answer = None
            for each in happened:
                if isinstance(each, EventReceived):
                    self.host.acknowledge(each.boot_id, each.n)
                elif isinstance(each, RequestAnswered):
                    if each.request_id != number:
                        raise Broken(ACCEPTED_PACKET, "an answer to %d, which nobody asked" % each.request_id)
                    answer = each
            if answer is not None:
                return answer
            self.now += 50
            self.pump()
        raise Broken(UNANSWERED, "request %d had no answer in %d ms" % (number, 60 * 50))

    def ask(self, name: str, *values: Value, by: tuple[int, bytes] | None = None) -> int:
        """Put a request in line at the host; returns its number."""
        message = CODEC.named(name)
        return self.host.request(message.id, message.pack(values), self.now, by=by)

    def _work(self) -> None:
        """A little of everything, so that there are real frames of many kinds."""
        self.until_answered(self.ask("status"))
        self.until_answered(self.ask("set_clock", 1800000000, 250))
        if self.device.keys.get(FLOOR) is None:  # a slot that has the number of its role
            derived = slot_key(self.floor_key, SERIAL, FLOOR)
            self.until_answered(self.ask("set_key", FLOOR, FLOOR, 7, derived))
        self.until_answered(self.ask("shuffle", 7))
        self.until_answered(self.ask("open_round", 1, 7))
        self.until_answered(self.ask("dispense_stack", 1, 1))
        self.until_answered(self.ask("end_round", 1))
        self.until_answered(self.ask("remove_deck", 1, 1))  # refused: not the floor's role
        floor = (FLOOR, self.floor_key)
        self.until_answered(self.ask("register_deck", 7, 1, 1800000000, by=floor))
        self.until_answered(self.ask("clear_fault", 3, by=floor))  # refused by the core
        self.until_answered(self.ask("locate", 5))
        self.until_answered(self.ask("component", 1))
        self.until_answered(self.ask("counters"))
        self.until_answered(self.ask("trace", 0))
        self.now += 30
        self.pump()

    # -- the truth --------------------------------------------------------------------------------

    def link(self) -> Link:
        """The device's running link."""
        if self.port.link is None:
            raise Broken(CHANGED, "the device has lost its session")
        return self.port.link

    def ledger(self) -> Ledger:
        """The device's command ledger."""
        return self.device.ledger


def allowed(message: MessageCodec, source: random.Random) -> list[Value]:
    """Values that the schema allows for a message: mostly ordinary, often at a limit."""
    return [_allowed(field, source) for field in message.fields]


def _allowed(field: tuple[Value, ...], source: random.Random) -> Value:
    kind = field[1]
    if kind == "enum":
        return source.choice(CODEC.enum_values(field[2]))
    if kind == "flags":
        return source.randrange(0x10000) & CODEC.flag_mask(field[2])
    if kind == "bytes":
        return source.randbytes(field[2])
    if kind == "blob":
        return source.randbytes(source.choice((field[2], field[3], source.randint(field[2], field[3]))))
    if kind == "text":
        return "".join(source.choice("abc 0.é")[: field[3]] for _ in range(field[2])) or "x" * (field[3] // 2)
    if kind == "array":
        count = source.randint(field[3], field[4])
        return tuple(source.randint(field[5], field[6]) for _ in range(count))
    low, high = field[2], field[3]
    return source.choice((low, high, source.randint(low, high), min(low + source.randrange(4), high)))
