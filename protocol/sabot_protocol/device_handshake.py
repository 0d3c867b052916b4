"""Messages outside a session, at the device: identification, provisioning, handshake.

A handshake that was begun changes nothing. It replaces the running session only once the host has proved its
key.
"""

from sabot_protocol import frame, ticks
from sabot_protocol.codec import enum_number
from sabot_protocol.device_protocol import NO_SLOT
from sabot_protocol.errors import FieldError, MemoryFailed, Refusal
from sabot_protocol.mac import digests_equal
from sabot_protocol.schema import KEYS_DAMAGED_FLAG, PROVISIONED_FLAG
from sabot_protocol.session import (
    Session,
    device_proof,
    host_proof,
    provision_proof,
    session_id,
    transcript,
)
from sabot_protocol.wire_constants import (
    CLEAR_TO_HOST,
    DEVICE,
    FIRST_PERSON,
    KEY_SIZE,
    NO_HOST,
    NONCE_SIZE,
    PROOF_SIZE,
)

TABLE = enum_number("Role", "table")
PROVISIONED = enum_number("ChainReason", "provisioned")
AFTER_WRONG_PROOF_MS = 1000  # no handshake on the same cable
HINT_EVERY_MS = 200  # at most one "no session" in this time
MAX_CLEAR_REPLIES = 4  # replies outside a session that wait for the cable; more are dropped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Values
    from sabot_protocol.device_port import DevicePort
    from sabot_protocol.ed25519 import SignatureCheck


class HandshakeResponder:
    """Answers the clear messages of one cable."""

    def __init__(self, port: "DevicePort") -> None:
        self._port = port
        self._device = port.device
        self._diagnostics = port.diagnostics
        self.replies: list[bytearray] = []  # at most MAX_CLEAR_REPLIES
        # hello, challenge, transcript hash, values of the hello, key
        self.pending: tuple[bytes, bytes, bytes, Values, bytes] | None = None
        self.proved = b""  # the proof that began the running session
        self._shown = b""  # the statement that is being checked
        self._wrong_at: int | None = None  # when a wrong proof came, for a second
        self._hinted_at: int | None = None  # when a "no session" was sent, for a while

    def receive(self, payload: bytes, now: int) -> None:
        """Handle a clear message: count it as malformed, or queue a reply."""
        if len(self.replies) >= MAX_CLEAR_REPLIES:
            self._diagnostics.busy += 1  # the host does not read; it asks again when it does
            return
        message = self._device.codec.find(payload[1]) if len(payload) > 1 else None
        if message is None or message.kind != "clear":
            self._diagnostics.malformed += 1
            return
        fields = payload[2:]
        try:
            values = message.unpack(fields)
        except FieldError:
            self._diagnostics.malformed += 1
            return
        if message.name == "identify":
            self.send("identity", self._identity())
        elif message.name == "reset_statement" and not values[1]:
            self._send_reset(values[0])
        elif self._device.provisioning.damaged:
            if message.name != "prove":  # which has no nonce, and belongs to no session here
                self._refuse(values[0], "keys_damaged")
        elif message.name == "reset_statement":
            self._reset(values[0], values[1], now)
        elif message.name == "provision":
            self._provision(values[0], values[1], values[2])
        elif message.name == "hello":
            self._hello(fields, values, now)
        elif message.name == "prove":
            self._prove(values[0], values[1], now)
        else:
            self._diagnostics.malformed += 1

    def send(self, name: str, values: "Values") -> None:
        """Queue a clear message for the cable."""
        message = self._device.codec.named(name)
        self.replies.append(frame.encode(bytes((CLEAR_TO_HOST, message.id)) + message.pack(values)))
        self._diagnostics.frames_out += 1

    def _refuse(self, nonce: bytes, error: str) -> None:
        self.send("refused", (nonce, self._device.codec.error_named(error).id))

    def _flags(self) -> int:
        """What the device is, for everybody in ``identity`` and proved in ``challenge``."""
        flags = self._device.identity.flags & ~PROVISIONED_FLAG
        if self._device.keys.get(DEVICE) is not None:
            flags |= PROVISIONED_FLAG
        if self._device.provisioning.damaged:
            flags = flags & ~PROVISIONED_FLAG | KEYS_DAMAGED_FLAG
        return flags

    def _identity(self) -> "Values":
        device = self._device
        return (
            device.codec.version[0],
            device.codec.version[1],
            device.schema_hash,
            self._flags(),
            device.boot_id,
            device.memory_id,
            device.window,
            device.max_payload,
            device.identity.serial,
            device.identity.model,
            device.identity.version,
        )

    def _send_reset(self, nonce: bytes) -> None:
        """House, reset count, and whether a statement was accepted."""
        house, accepted = self._device.house, self._device.provisioning.reset_accepted
        bound = 1 if house.is_bound() else 0
        self.send("reset_is", (nonce, bound, house.key or bytes(32), house.count, 1 if accepted else 0))

    def _reset(self, nonce: bytes, proof: bytes, now: int) -> None:
        """Check the house's statement for this reset; the answer follows when that is done."""
        device = self._device
        house, provisioning = device.house, device.provisioning
        if device.keys.get(DEVICE) is not None:
            self._refuse(nonce, "already_provisioned")
        elif provisioning.is_closed():
            self._refuse(nonce, "provisioning_closed")
        elif not provisioning.needs_statement():
            self._send_reset(nonce)
        elif self._shown == proof:
            return  # sent again while it is checked
        elif self.wait_ms(now):
            self._refuse(nonce, "too_soon")
        elif not house.key:
            self._refuse(nonce, "reset_required")  # the record is damaged: nobody can sign for it
        else:
            from sabot_protocol.house_lines import reset_line

            key = house.key
            line = reset_line(key, device.identity.serial, house.count)

            def begin() -> "SignatureCheck":
                return device.executor.check_signature(key, proof, (line,))

            try:
                device.check_signature(self._port, begin, lambda fits: self._reset_checked(nonce, fits))
            except Refusal as refusal:
                self._refuse(nonce, refusal.error)
                return
            self._shown = proof

    def close(self) -> None:
        """The cable is gone: forget what was begun on it."""
        self.pending = None
        self._shown = b""

    def _reset_checked(self, nonce: bytes, fits: bool) -> None:
        device = self._device
        self._shown = b""
        if device.provisioning.is_closed() or device.keys.get(DEVICE) is not None:
            self._refuse(nonce, "provisioning_closed")  # meanwhile
        elif fits:
            device.provisioning.reset_accepted = True
            self._send_reset(nonce)
        else:
            self._wrong_at = device.now()
            self._diagnostics.bad_proofs += 1
            device.note_wrong_proof(NO_SLOT)
            self._refuse(nonce, "bad_proof")

    def _provision(self, nonce: bytes, key: bytes, entropy: bytes) -> None:
        held = self._device.keys.get(DEVICE)
        if held is None:
            if self._device.provisioning.is_closed():
                self._refuse(nonce, "provisioning_closed")
                return
            if self._device.provisioning.needs_statement():
                self._refuse(nonce, "reset_required")
                return
            if digests_equal(key, bytes(len(key))):
                self._refuse(nonce, "bad_proof")  # an all-zero key is nobody's secret
                return
            try:
                self._device.executor.take_entropy(entropy)
                first_key = self._device.executor.draw_key() or self._device.random(KEY_SIZE)
                self._device.begin_chain(PROVISIONED, first_key)
                self._device.keys.set(DEVICE, key)
            except MemoryFailed:
                self._refuse(nonce, "memory_failed")
                return
            except Refusal as refusal:
                self._refuse(nonce, refusal.error)
                return
            house, count = self._device.house.key, self._device.house.count
            self._device.provisioning.key_given()
            if house:
                self._device.emit("reset_used", house, count)
            self._device.open_slots()
            self._device.emit("key_changed", DEVICE, TABLE, 0, NO_HOST, 0)
        elif not digests_equal(held, key):
            self._refuse(nonce, "already_provisioned")
            return
        self.send("provisioned", (provision_proof(key, nonce, self._device.identity.serial),))

    def wait_ms(self, now: int) -> int:
        """How long no handshake is taken on this cable, because a wrong proof came."""
        if self._wrong_at is None:
            return 0
        passed = ticks.diff(now, self._wrong_at)
        if 0 <= passed < AFTER_WRONG_PROOF_MS:
            return AFTER_WRONG_PROOF_MS - passed
        self._wrong_at = None  # below 0: nobody used this cable for so many days that the ticks wrapped
        return 0

    def _hello(self, fields: bytes, said: "Values", now: int) -> None:
        device = self._device
        nonce, host_id, slot = said[0], said[1], said[2]
        key = device.keys.get(slot) if slot < FIRST_PERSON else None
        if device.keys.get(DEVICE) is None:
            self._refuse(nonce, "not_provisioned")
            return
        if key is None:
            self._refuse(nonce, "no_such_key")
            return
        if host_id == NO_HOST:
            self._refuse(nonce, "bad_field")
            return
        if self.wait_ms(now):
            self._refuse(nonce, "too_soon")
            return
        if self.pending is None or self.pending[0] != fields or self.pending[4] != key:
            self._diagnostics.handshakes += 1
            device.handshakes += 1
            challenge = device.codec.named("challenge").pack(
                (
                    bytes(PROOF_SIZE),
                    nonce,
                    device.random(NONCE_SIZE),
                    device.handshakes,
                    device.boot_id,
                    device.memory_id,
                    device.identity.serial,
                    device.codec.version[0],
                    device.codec.version[1],
                    device.schema_hash,
                    device.window,
                    device.max_payload,
                    self._flags(),
                )
            )[PROOF_SIZE:]
            self.pending = (fields, challenge, transcript(fields, challenge), said, key)
        challenge = device_proof(key, self.pending[2]) + self.pending[1]
        id = device.codec.named("challenge").id
        self.replies.append(frame.encode(bytes((CLEAR_TO_HOST, id)) + challenge))
        self._diagnostics.frames_out += 1

    def _prove(self, session: int, proof: bytes, now: int) -> None:
        link = self._port.link
        if link is not None and session == link.session.id and digests_equal(proof, self.proved):
            link.schedule_ack()  # our first packet was lost
            return
        if self.pending is None or session != session_id(self.pending[2]):
            self._diagnostics.bad_proofs += 1
            return
        _, _, hash, said, key = self.pending
        slot = said[2]
        self.pending = None
        if key != self._device.keys.get(slot):
            self._refuse(said[0], "bad_proof")  # the key was changed since
            return
        if not digests_equal(proof, host_proof(key, hash)):
            self._diagnostics.bad_proofs += 1
            self._wrong_at = now
            self._device.note_wrong_proof(slot)
            self._refuse(said[0], "bad_proof")
            return
        self._port.replace_session(Session(key, hash, False), proof, said, now)

    def hint(self, session: int, now: int) -> None:
        """Tell the host, now and then, that the session of its packet does not run here."""
        if len(self.replies) >= MAX_CLEAR_REPLIES:
            self._diagnostics.busy += 1  # the host does not read
            return
        self._forget_hint(now)
        if self._hinted_at is None:
            self._hinted_at = now
            self.send("no_session", (self._device.boot_id, session))

    def _forget_hint(self, now: int) -> None:
        """Another hint may follow. Below 0 the ticks wrapped: nobody used this cable for days."""
        if self._hinted_at is not None and not 0 <= ticks.diff(now, self._hinted_at) < HINT_EVERY_MS:
            self._hinted_at = None

    def take_replies(self, now: int) -> "list[bytearray]":
        """Take the frames that wait for the cable."""
        self._forget_hint(now)
        replies = self.replies
        self.replies = []
        return replies
