"""The host's side of messages outside a session: ``identify``, ``provision`` and the handshake."""

from sabot_protocol import frame, ticks
from sabot_protocol.codec import Codec
from sabot_protocol.errors import FieldError
from sabot_protocol.link import FIRST_RTO_MS, MAX_RTO_MS, MAX_SENDS
from sabot_protocol.mac import digests_equal
from sabot_protocol.session import Session, device_proof, host_proof, transcript
from sabot_protocol.wire_constants import CLEAR_TO_DEVICE, CLEAR_TO_HOST, NONCE_SIZE, PROOF_SIZE

# How it can fail, besides the names of errors a device refuses with.
NO_ANSWER = "no_answer"
TOO_SOON = "too_soon"  # an error's name: a wrong proof was shown on this cable a moment ago
DEVICE_NOT_PROVED = "device_not_proved"  # it has not our key: another device, or an impostor
WRONG_DEVICE = "wrong_device"  # it has our key but another serial number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_protocol.codec import Values


def read_clear(codec: Codec, payload: bytes) -> "tuple[str, bytes, Values] | None":
    """A clear payload from a device as (name, fields, values); None if it is not one."""
    if len(payload) < 2 or payload[0] != CLEAR_TO_HOST:
        return None
    message = codec.find(payload[1])
    if message is None or message.kind != "clear":
        return None
    try:
        return message.name, payload[2:], message.unpack(payload[2:])
    except FieldError:
        return None


class Retransmitter:
    """A clear message sent again, with growing pauses, until answered or MAX_SENDS times."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._frame: bytearray | None = None
        self._sends = 0
        self._pause_ms = FIRST_RTO_MS
        self._due = 0

    def say(self, name: str, values: "Values", now: int) -> bytes:
        """Begin with this message; returns its fields as they go out."""
        message = self._codec.named(name)
        fields = message.pack(values)
        self._frame = frame.encode(bytes((CLEAR_TO_DEVICE, message.id)) + fields)
        self._sends = 0
        self._pause_ms = FIRST_RTO_MS
        self._due = now
        return fields

    def stop(self) -> None:
        """It was answered."""
        self._frame = None

    def poll(self, now: int) -> bytearray | None:
        """The frame, if it is due."""
        if self._frame is None or ticks.diff(now, self._due) < 0 or self._sends >= MAX_SENDS:
            return None
        self._sends += 1
        self._due = ticks.add(now, self._pause_ms)
        self._pause_ms = min(self._pause_ms * 2, MAX_RTO_MS)
        return self._frame

    def exhausted(self, now: int) -> bool:
        """Whether it was sent as often as allowed and the last pause is over."""
        return self._frame is not None and self._sends >= MAX_SENDS and ticks.diff(now, self._due) >= 0

    def deadline(self) -> int | None:
        """The tick at which ``poll`` or ``exhausted`` may return something else."""
        return None if self._frame is None else self._due


class ClearExchange:
    """One clear question and its answer: ``identify`` or ``provision``."""

    def __init__(self, codec: Codec, name: str, values: "Values", now: int) -> None:
        self._codec = codec
        self._decoder = frame.Decoder()
        self._repeater = Retransmitter(codec)
        self._repeater.say(name, values, now)
        self._wanted = codec.named(name).answer
        self._nonce = values[0] if values else b""
        self._echoed = codec.named(self._wanted).fields[0][0] == "nonce"  # so no older answer passes for it
        self.answer: Values | None = None
        self.failure: str | None = None

    def receive(self, data: bytes) -> None:
        """Take bytes from the cable."""
        for payload, _ in self._decoder.feed(data):
            said = None if payload is None else read_clear(self._codec, payload)
            if said is None or self.answer is not None or self.failure is not None:
                continue  # the first answer counts: a question that was sent again may be refused otherwise
            name, _, values = said
            if name == self._wanted and (not self._echoed or values[0] == self._nonce):
                self.answer = values
                self._repeater.stop()
            elif name == "refused" and values[0] == self._nonce:
                error = self._codec.error(values[1])
                self.failure = error.name if error is not None else "error_%d" % values[1]
                self._repeater.stop()

    def poll(self, now: int) -> bytes:
        """The bytes to send now; sets ``failure`` when the device does not answer."""
        if self._repeater.exhausted(now):
            self.failure = NO_ANSWER
            self._repeater.stop()
        return bytes(self._repeater.poll(now) or b"")

    def deadline(self) -> int | None:
        """The tick at which ``poll`` is due."""
        return self._repeater.deadline()


class Handshake:
    """The host's half of the mutual proof; ``session`` is set once the device has proved itself."""

    def __init__(
        self,
        codec: Codec,
        schema_hash: bytes,
        key: bytes,
        host_id: bytes,
        slot: int,
        run: int,
        window: int,
        random: "Callable[[int], bytes]",
        serial: bytes | None,
        now: int,
    ) -> None:
        self._codec = codec
        self._key = key
        self._serial = serial
        self._repeater = Retransmitter(codec)
        self._nonce = random(NONCE_SIZE)
        major, minor = codec.version
        self._hello = self._repeater.say(
            "hello",
            (self._nonce, host_id, slot, run, major, minor, schema_hash, window, frame.MAX_PAYLOAD),
            now,
        )
        self.session: Session | None = None
        self.failure: str | None = None
        self._unanswered = NO_ANSWER
        # what the device said of itself, proved:
        self.boot_id = 0
        self.memory_id = b""
        self.serial = b""
        self.version = (0, 0)
        self.schema_hash = b""
        self.window = 1
        self.max_payload = 0
        self.flags = 0

    def receive(self, name: str, fields: bytes, values: "Values", now: int) -> None:
        """Take a clear message of the device."""
        if name == "challenge" and self.session is None and values[1] == self._nonce:
            self._challenged(fields, values, now)
        elif name == "refused" and values[0] == self._nonce:
            error = self._codec.error(values[1])
            why = error.name if error is not None else "error_%d" % values[1]
            if why == TOO_SOON:
                self._unanswered = why  # another host caused it: the hello is repeated until it is accepted
            else:
                self.failure = why
                self._repeater.stop()

    def _challenged(self, fields: bytes, values: "Values", now: int) -> None:
        hash = transcript(self._hello, fields[PROOF_SIZE:])
        if not digests_equal(values[0], device_proof(self._key, hash)):
            self.failure = DEVICE_NOT_PROVED
            return
        _, _, _, _, boot_id, memory_id, serial, major, minor, schema_hash, window, max_payload, flags = values
        if self._serial is not None and serial != self._serial:
            self.failure = WRONG_DEVICE
            return
        self.boot_id = boot_id
        self.memory_id = memory_id
        self.serial = serial
        self.version = (major, minor)
        self.schema_hash = schema_hash
        self.window = window
        self.max_payload = max_payload
        self.flags = flags
        self.session = Session(self._key, hash, True)
        self._repeater.say("prove", (self.session.id, host_proof(self._key, hash)), now)

    def poll(self, now: int) -> bytearray | None:
        """The frame to send now; sets ``failure`` when the device does not answer."""
        if self._repeater.exhausted(now):
            self.failure = self._unanswered
            self._repeater.stop()
        return self._repeater.poll(now)

    def deadline(self) -> int | None:
        """The tick at which ``poll`` is due."""
        return self._repeater.deadline()
