"""A device and a host joined by a perfect cable, for tests that look at one behaviour at a time."""

from world import HOST_ID, KEY, SERIAL, Rng

from sabot_protocol import schema, ticks
from sabot_protocol.codec import CODEC, Codec, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.device_port import DevicePort
from sabot_protocol.device_protocol import DeviceIdentity, DeviceProtocol, Executor
from sabot_protocol.errors import MemoryFailed, Refusal
from sabot_protocol.frame import Decoder
from sabot_protocol.host_protocol import OWNER, HostProtocol
from sabot_protocol.key_store import KeyStore
from sabot_protocol.notifications import RequestAnswered
from sabot_protocol.record_store import RecordStore
from sabot_protocol.session import slot_key
from sabot_protocol.wire_constants import DEVICE

SERVICE_KEY = b"service key of thirty-two bytes!"


SERVICE_ROLE = enum_number("Role", "service")
FLOOR_ROLE = enum_number("Role", "floor")
FLOOR_KEY = b"the floor's key, of thirty-two b"
SERVICE_SLOT, FLOOR_SLOT = 4, 3
SERVICE_PERSON, FLOOR_PERSON = 4711, 1234
BY_SERVICE = (SERVICE_SLOT, SERVICE_KEY)
BY_FLOOR = (FLOOR_SLOT, FLOOR_KEY)


class Shoe(Executor):
    """Counts what it is told to do."""

    flags = 0

    def status(self) -> "tuple[int, int, int, int, int, int]":
        return 1, 3, 0, self.flags, 0, 0

    def __init__(self) -> None:
        self.done: list = []  # type: ignore[type-arg]
        self.callers: list = []  # type: ignore[type-arg]
        self.entropy: list = []  # type: ignore[type-arg]
        self.memory_fails = False
        self.refuse: Refusal | None = None

    def take_entropy(self, entropy: bytes) -> None:
        if self.memory_fails:
            raise MemoryFailed("dead")
        self.entropy.append(entropy)

    def execute(self, name: str, values: tuple, caller: object) -> tuple:  # type: ignore[type-arg]
        if self.refuse is not None:
            raise self.refuse
        self.done.append((name, values))
        self.callers.append(caller)
        if name == "rng_samples":
            return values[0], bytes(values[1])
        if name == "shuffle_with":
            return (values[0],)
        return ()


class Pair:
    """Both ends; ``settle`` lets them talk until neither has anything to say."""

    def __init__(
        self,
        provisioned: bool = True,
        codec: Codec = CODEC,
        host_codec: Codec | None = None,
        schema_hash: bytes = b"schema01",
        host_schema_hash: bytes = b"schema01",
        window: int = 16,
        capacity: int = 64,
        memory: RecordStore | None = None,
        key: bytes = KEY,
    ) -> None:
        self.rng = Rng(1)
        self.now = 1000
        self.memory = memory or RecordStore()
        if provisioned:
            KeyStore(self.memory).set(DEVICE, KEY)
        self.shoe = Shoe()
        self.codec = codec
        self.schema_hash = schema_hash
        self.window = window
        self.capacity = capacity
        self.boot()
        self.host = HostProtocol(
            key,
            CommandNumbers(HOST_ID),
            self.rng.bytes,
            SERIAL,
            codec=host_codec or codec,
            schema_hash=host_schema_hash,
        )
        self.heard: list = []  # type: ignore[type-arg]
        self.sent: list[bytes] = []  # every frame the host sent
        self.back: list[bytes] = []  # every frame the device sent

    def boot(self) -> None:
        self.device = DeviceProtocol(
            DeviceIdentity(SERIAL, "Sabot test", "0.0", 2),
            self.memory,
            self.shoe,
            self.rng.bytes,
            self.now,
            window=self.window,
            event_capacity=self.capacity,
            codec=self.codec,
            schema_hash=self.schema_hash,
        )
        self.port = DevicePort(self.device)

    def connect(self, mode: int = OWNER) -> "Pair":
        self.host.connect(self.now, mode)
        self.settle()
        return self

    def settle(self) -> None:
        for _ in range(5000):  # a signature is checked in hundreds of slices
            out = self.host.poll(self.now)
            self.sent += frames(out)
            if out:
                self.port.receive(out, self.now)
            back = self.port.poll(self.now)
            self.back += frames(back)
            if back:
                self.host.receive(back, self.now)
            if not out and not back and not self.device.checking():
                break
        else:
            raise AssertionError("the ends never stop talking")
        self.heard += self.host.take_notifications()

    def wait(self, ms: int, step: int = 50) -> None:
        for _ in range(0, ms, step):
            self.now = ticks.add(self.now, step)
            self.settle()

    def people(self) -> "Pair":
        """Give service and the floor their keys, as provisioning does."""
        keys = self.device.keys
        keys.set(SERVICE_SLOT, slot_key(SERVICE_KEY, SERIAL, SERVICE_SLOT), SERVICE_ROLE, SERVICE_PERSON)
        keys.set(FLOOR_SLOT, slot_key(FLOOR_KEY, SERIAL, FLOOR_SLOT), FLOOR_ROLE, FLOOR_PERSON)
        return self

    def ask(self, name: str, *values: object, by: "tuple[int, bytes] | None" = None) -> "tuple[str, tuple]":  # type: ignore[type-arg]
        """A request and what came back: ("ok", values) or (the error's name, details)."""
        message = CODEC.named(name)
        return self.ask_packed(message.id, message.pack(values), by)

    def ask_packed(self, id: int, body: bytes, by: "tuple[int, bytes] | None" = None) -> "tuple[str, tuple]":  # type: ignore[type-arg]
        number = self.host.request(id, body, self.now, by=by)
        self.settle()
        return self.answer(number)

    def answer(self, number: int) -> "tuple[str, tuple]":  # type: ignore[type-arg]
        for each in self.heard:
            if isinstance(each, RequestAnswered) and each.request_id == number:
                self.heard.remove(each)
                if each.status:
                    error = CODEC.error(each.status)
                    assert error is not None
                    return error.name, error.unpack(each.body)
                answer = CODEC.find(each.message)
                assert answer is not None
                return "ok", answer.unpack(each.body)
        raise AssertionError("request %d was not answered" % number)

    def events(self, name: str) -> list:  # type: ignore[type-arg]
        """The values of the events of one name that the device still has."""
        message = CODEC.named(name)
        found = []
        for n in range(self.device.events.first, self.device.events.last + 1):
            id, _, body = self.device.events.get(n)
            if id == message.id:
                found.append(message.unpack(body[14:]))
        return found

    def happened(self, kind: type) -> list:  # type: ignore[type-arg]
        """Happenings of one kind so far."""
        return [each for each in self.heard if isinstance(each, kind)]


def other(
    pair: Pair, key: bytes = KEY, host_id: bytes = b"OTHER-PC", slot: int = DEVICE, mode: int = OWNER
) -> Pair:
    """Another host on another cable of the same device; its pair shares the device."""
    twin = object.__new__(Pair)
    twin.rng, twin.now, twin.device, twin.shoe, twin.memory = (
        pair.rng,
        pair.now,
        pair.device,
        pair.shoe,
        pair.memory,
    )
    twin.heard, twin.sent, twin.back = [], [], []
    twin.port = DevicePort(pair.device)
    twin.host = HostProtocol(
        key, CommandNumbers(host_id), pair.rng.bytes, SERIAL, schema_hash=b"schema01", slot=slot
    )
    twin.host.connect(twin.now, mode)
    twin.settle()
    return twin


def frames(data: bytes) -> "list[bytes]":
    """Bytes cut after each delimiter."""
    return [each + b"\x00" for each in bytes(data).split(b"\x00") if each]


def payload(frame: bytes) -> bytes:
    """What is in a good frame."""
    found = Decoder().feed(frame)
    assert len(found) == 1
    inside, why = found[0]
    assert inside is not None, why
    return inside


def newer_codec() -> Codec:
    """The schema of a later minor, with one more query."""
    row = (0x7E, "polish_roller", "query", "done", "any", ())
    return Codec(schema.MESSAGES + (row,), (("polish_roller", 1),), (schema.MAJOR, schema.MINOR + 1))
