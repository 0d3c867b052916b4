"""One cable of a device: frames in and out, one proved session at a time.

Bytes and times go in, bytes come out. A new handshake replaces the running session only once it is proved.
Each request is checked here against the schema (version, owner, role, values) before the device's core
sees it, and commands go through the ledger, so that a repeated one is answered and not executed again.
"""

import struct
from hashlib import sha256

from sabot_protocol import frame, grid, ledger, ticks, wire_constants
from sabot_protocol.codec import MessageCodec, enum_number
from sabot_protocol.device_protocol import OBSERVER, UNKNOWN_TIME, Caller, DeviceProtocol
from sabot_protocol.errors import FieldError, MemoryFailed, Refusal
from sabot_protocol.frame_receiver import FrameReceiver
from sabot_protocol.key_store import fits
from sabot_protocol.link import CLOSED_BY_PEER, SILENCE_MS, Link
from sabot_protocol.mac import digests_equal
from sabot_protocol.schema import (
    CLOCK_KNOWN_FLAG,
    KEYS_DAMAGED_FLAG,
    MAX_WINDOW,
    OWNED_FLAG,
    PROVISIONED_FLAG,
    ROUND_OPEN_FLAG,
)
from sabot_protocol.session import (
    Session,
    device_proof,
    elevation_proof,
    host_proof,
    provision_proof,
    session_id,
    transcript,
)
from sabot_protocol.wire_constants import (
    ANSWER,
    BY_SLOT_KEY,
    CLEAR_TO_HOST,
    DEVICE,
    EVENT,
    EVENT_ACK,
    FIRST_PERSON,
    GAP,
    KEY_SIZE,
    NO_HOST,
    NONCE_SIZE,
    OVERHEAD,
    PROOF_SIZE,
    REQUEST,
    RESOLVE,
    SLOTS,
)

TABLE = enum_number("Role", "table")
FLOOR = enum_number("Role", "floor")
SERVICE = enum_number("Role", "service")
OWNER_MODE = enum_number("AttachMode", "owner")
SHOE = enum_number("Half", "shoe")
AFTER_WRONG_PROOF_MS = 1000  # no handshake on the same cable
KEEP_SLOTS_OPEN = ("set_key", "remove_key", "set_clock")  # any other command ends provisioning
HINT_EVERY_MS = 200  # at most one "no session" in this time
TRACE_PAGE = 10
# What is executed although few places are left for events: it ends something, or lets an owner read
NEVER_BUSY = ("void_round", "stop", "mark_out_of_order", "clear_fault", "evict_owner")
QUERIES_THAT_REPORT = ("faces",)
MAX_CLEAR_REPLIES = 4  # replies outside a session that wait for the cable; more are dropped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Values


class DevicePort(FrameReceiver):
    """One cable of the device, with the session that runs over it."""

    def __init__(self, device: DeviceProtocol) -> None:
        super().__init__(is_host=False)
        self.device = device
        self.link: Link | None = None
        self.slot = DEVICE  # whose key the session was proved with
        self.host_id = NO_HOST
        self.host_run = 0
        self._grant: tuple[int, int, int, bytes] | None = None  # slot, message, number, hash of the body
        self._granted = [0, 0]  # the newest number authorised in this session: of commands, of queries
        self._by = (0, 0, 0)  # slot, role and person that authorised the request in hand; 0 for nobody
        self._ending = False  # its key was changed by itself: it ends once that is answered
        self._attached = False
        self._busy_up_to = 0  # the highest command refused for now in this session; 0 if none waits
        self._busy_from = 0  # the lowest
        self._limited = False  # versions do not match: only frozen messages
        self._position: tuple[int, int] = (0, 0)  # the last event sent: (boot id, n)
        self._clear_out: list[bytearray] = []  # at most MAX_CLEAR_REPLIES
        self._room = True  # at the last poll: the cable takes what is said
        self._answers: list[tuple[int, int, int, bytes]] = []  # message, status, number, body
        # hello, challenge, hash, what the hello said, key
        self._pending: tuple[bytes, bytes, bytes, Values, bytes] | None = None
        self._proved = b""
        self._wrong_at: int | None = None  # when a wrong proof came, for a second
        self._hinted_at: int | None = None  # when a "no session" was sent, for a while
        # on the grid
        self._tick: int | None = None  # the next tick at which there is something to do
        self._held = False  # the decoder holds a frame that found no place
        self._ready = b""  # what is sent at the next tick

    # -- bytes in and out -----------------------------------------------------------------------

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes from the cable. On the grid they wait for its next tick; see ``room``."""
        device = self.device
        device.tick(now)
        if not device.executor.on_grid():
            self._leave_grid(now)
            super().receive(data, now)
            return
        if self._tick is None:
            self._tick = device.grid.after(now)
        room = self.room()
        if len(data) > room:
            self.diagnostics.busy += 1
            data = data[:room]
        self._decoder.append(data)

    def room(self) -> int:
        """How many bytes ``receive`` takes now; more are lost. Off the grid it takes any number."""
        if not self.device.executor.on_grid():
            return 1 << 16
        return max(grid.TAKEN_BYTES - self._decoder.unread(), 0)

    def poll(self, now: int, room: bool = True) -> bytes:
        """The bytes to put on the cable now. Call it after ``receive``, after ``emit`` and when due.

        Without room on the cable (the host does not read) nothing is said, and what waits here stays
        within its bounds; a host that has been silent for too long loses its session all the same.
        """
        device = self.device
        device.tick(now)
        self._room = room
        on_grid = device.executor.on_grid()
        if not on_grid:
            self._leave_grid(now)
        self._wait_ms(now)
        if not room:
            if self.link is not None and self.link.ended(now):
                self._drop_session()
            if on_grid and self._tick is not None and ticks.diff(now, self._tick) >= 0:
                self._tick = device.grid.after(now)
            return b""
        if not on_grid:
            ready, self._ready = self._ready, b""
            out = self._encode(now, 2 * MAX_WINDOW)
            return ready + out if ready else out
        if self._tick is None:
            if self.has_work(now):
                self._tick = device.grid.after(now)
            return b""
        if ticks.diff(now, self._tick) < 0:
            return b""
        self._tick = None
        ready = self._ready
        self._ready = self.run_tick(device.grid.floor(now))
        if self._ready or self.has_work(now):
            self._tick = device.grid.after(now)
        return ready

    def deadline(self) -> int | None:
        """The tick at which ``poll`` is due by itself, or None."""
        if self._tick is not None:
            return self._tick
        if self.link is None:
            return None
        due = self.link.deadline() if self._room else self.link.silence_deadline()
        return self.device.grid.after(due) if self.device.executor.on_grid() else due

    # -- the grid -------------------------------------------------------------------------------

    def run_tick(self, now: int) -> bytes:
        """Deal with what was taken up to a tick of the grid; return what is to be sent at the next one.

        A board whose ticks are made by hardware calls this itself, once a tick, instead of ``poll``.
        """
        self.device.tick(now)
        decoder = self._decoder
        owns = self.device.owner is self
        places, kept = grid.PLACES, grid.OWNER_PLACES if owns else 0
        for _ in range(grid.LOOKED_AT):
            if self._held:
                self._held = False
            elif not decoder.next_frame():
                break
            if kept and self._of_session():
                kept -= 1
            elif places:
                places -= 1
            elif owns and not self._of_session():
                self.diagnostics.busy += 1  # it would keep the owner's frames behind it waiting
                continue
            else:
                self._held = True
                break
            self._dispatch_frame(now)
        return self._encode(now, grid.OWNER_ANSWERS if self.device.owner is self else grid.ANSWERS)

    def _of_session(self) -> bool:
        """Whether the decoder holds a packet of the session that runs here, as far as its head says."""
        link, decoder = self.link, self._decoder
        if link is None or decoder.error is not None:
            return False
        payload = decoder.payload
        return (
            len(payload) >= OVERHEAD
            and payload[0] == self._sealed_direction
            and payload[1] | payload[2] << 8 == link.session.id
        )

    def waiting(self) -> int:
        """How many bytes were taken and have not been looked at."""
        return self._decoder.unread()

    def has_work(self, now: int) -> bool:
        """Whether there is something to do at the next tick."""
        if self._held or self._answers or self._clear_out or self._decoder.unread():
            return True
        link = self.link
        if link is None:
            return False
        if link.has_pending_output() or ticks.diff(now, link.deadline()) >= 0:
            return True
        events = self.device.events
        if not self._attached or self._position == (events.boot_id, events.last):
            return False
        return link.room() > link.window // 4

    def _leave_grid(self, now: int) -> None:
        """What had to wait for the next tick is dealt with at once."""
        self._tick = None
        if self._held:
            self._held = False
            self._dispatch_frame(now)
        if self._decoder.unread():
            super().receive(b"", now)

    def _encode(self, now: int, most: int) -> bytes:
        """The frames of what is due, with at most so many messages of the session."""
        if self._hinted_at is not None and ticks.diff(now, self._hinted_at) >= HINT_EVERY_MS:
            self._hinted_at = None
        frames = self._clear_out
        self._clear_out = []
        link = self.link
        if link is not None:
            self._fill(link, most)
            frames += link.poll(now, most)
            if link.failure is not None:
                self._drop_session()
            elif self._ending and not self._answers and link.idle():
                frames.append(link.close(now))
                self._drop_session()
        if not frames:
            return b""
        return b"".join(frames)

    def close(self) -> None:
        """The cable is gone, and with it the session."""
        self._drop_session()
        self._pending = None

    def _fill(self, link: Link, most: int) -> None:
        """Put at most so many messages into the window: answers, which always find a place, then events."""
        room = link.room()
        most -= link.waiting()
        while self._answers and room > 0 and most > 0:
            message, status, request_id, body = self._answers.pop(0)
            link.send(ANSWER, message, status, request_id, body)
            room -= 1
            most -= 1
        if not self._attached or self._ending:
            return
        events = self.device.events
        while room > link.window // 4 and most > 0:
            boot, n = self._position
            gap = events.gap_after(boot, n)
            if gap is not None:
                reason, size, from_boot, from_n, to_boot, to_n = gap
                link.send(GAP, 0, reason, size, struct.pack("<IIII", from_boot, from_n, to_boot, to_n))
                self._position = (to_boot, to_n - 1)
            elif boot != events.boot_id:
                self._position = (events.boot_id, 0)  # nothing was lost of the boots before
                continue
            elif n < events.last:
                message, quality, body = events.get(n + 1)
                link.send(EVENT, message, quality, n + 1, body)
                self._position = (boot, n + 1)
            else:
                return
            room -= 1
            most -= 1

    # -- handshake ------------------------------------------------------------------------------

    def _receive_clear(self, payload: bytes, now: int) -> None:
        if len(self._clear_out) >= MAX_CLEAR_REPLIES:
            self.diagnostics.busy += 1  # the host does not read; it asks again when it does
            return
        message = self.device.codec.find(payload[1]) if len(payload) > 1 else None
        if message is None or message.kind != "clear":
            self.diagnostics.malformed += 1
            return
        fields = payload[2:]
        try:
            values = message.unpack(fields)
        except FieldError:
            self.diagnostics.malformed += 1
            return
        if message.name == "identify":
            self._send_clear("identity", self._identity())
        elif self.device.provisioning.damaged:
            if message.name != "prove":  # which has no nonce, and belongs to no session here
                self._refuse(values[0], "keys_damaged")
        elif message.name == "provision":
            self._provision(values[0], values[1], values[2])
        elif message.name == "hello":
            self._hello(fields, values, now)
        elif message.name == "prove":
            self._prove(values[0], values[1], now)
        else:
            self.diagnostics.malformed += 1

    def _send_clear(self, name: str, values: "Values") -> None:
        message = self.device.codec.named(name)
        self._clear_out.append(frame.encode(bytes((CLEAR_TO_HOST, message.id)) + message.pack(values)))
        self.diagnostics.frames_out += 1

    def _refuse(self, nonce: bytes, error: str) -> None:
        self._send_clear("refused", (nonce, self.device.codec.error_named(error).id))

    def _flags(self) -> int:
        """What the device is, for everybody in ``identity`` and proved in ``challenge``."""
        flags = self.device.identity.flags & ~PROVISIONED_FLAG
        if self.device.keys.get(DEVICE) is not None:
            flags |= PROVISIONED_FLAG
        if self.device.provisioning.damaged:
            flags = flags & ~PROVISIONED_FLAG | KEYS_DAMAGED_FLAG
        return flags

    def _identity(self) -> "Values":
        device = self.device
        return (
            device.codec.version[0], device.codec.version[1], device.schema_hash, self._flags(),
            device.boot_id, device.memory_id, device.window, device.max_payload,
            device.identity.serial, device.identity.model, device.identity.version,
        )

    def _provision(self, nonce: bytes, key: bytes, entropy: bytes) -> None:
        held = self.device.keys.get(DEVICE)
        if held is None:
            if self.device.provisioning.is_closed():
                self._refuse(nonce, "provisioning_closed")
                return
            if digests_equal(key, bytes(len(key))):
                self._refuse(nonce, "bad_proof")  # an all-zero key is nobody's secret
                return
            try:
                self.device.executor.take_entropy(entropy)
                self.device.keys.set(DEVICE, key)
            except MemoryFailed:
                self._refuse(nonce, "memory_failed")
                return
            self.device.provisioning.key_given()
            self.device.open_slots()
            self.device.emit("key_changed", DEVICE, TABLE, 0, NO_HOST, 0)
        elif not digests_equal(held, key):
            self._refuse(nonce, "already_provisioned")
            return
        self._send_clear("provisioned", (provision_proof(key, nonce, self.device.identity.serial),))

    def _wait_ms(self, now: int) -> int:
        """How long no handshake is taken on this cable, because a wrong proof came."""
        if self._wrong_at is None:
            return 0
        left = AFTER_WRONG_PROOF_MS - ticks.diff(now, self._wrong_at)
        if left <= 0:
            self._wrong_at = None
        return max(left, 0)

    def _hello(self, fields: bytes, said: "Values", now: int) -> None:
        device = self.device
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
        if self._wait_ms(now):
            self._refuse(nonce, "too_soon")
            return
        if self._pending is None or self._pending[0] != fields or self._pending[4] != key:
            self.diagnostics.handshakes += 1
            device.handshakes += 1
            challenge = device.codec.named("challenge").pack((
                bytes(PROOF_SIZE), nonce, device.random(NONCE_SIZE), device.handshakes, device.boot_id,
                device.memory_id, device.identity.serial, device.codec.version[0],
                device.codec.version[1], device.schema_hash, device.window, device.max_payload,
                self._flags(),
            ))[PROOF_SIZE:]
            self._pending = (fields, challenge, transcript(fields, challenge), said, key)
        challenge = device_proof(key, self._pending[2]) + self._pending[1]
        id = device.codec.named("challenge").id
        self._clear_out.append(frame.encode(bytes((CLEAR_TO_HOST, id)) + challenge))
        self.diagnostics.frames_out += 1

    def _prove(self, session: int, proof: bytes, now: int) -> None:
        if self.link is not None and session == self.link.session.id and digests_equal(proof, self._proved):
            self.link.schedule_ack()  # our first packet was lost
            return
        if self._pending is None or session != session_id(self._pending[2]):
            self.diagnostics.bad_proofs += 1
            return
        _, _, hash, said, key = self._pending
        slot = said[2]
        self._pending = None
        if key != self.device.keys.get(slot):
            self._refuse(said[0], "bad_proof")  # the key was changed since
            return
        if not digests_equal(proof, host_proof(key, hash)):
            self.diagnostics.bad_proofs += 1
            self._wrong_at = now
            self.device.note_wrong_proof(slot)
            self._refuse(said[0], "bad_proof")
            return
        self._replace_session(Session(key, hash, False), proof, said, now)

    def _replace_session(self, session: Session, proof: bytes, said: "Values", now: int) -> None:
        _, host_id, slot, run, major, minor, hash, window, max_payload = said
        if host_id != self.host_id or slot != self.slot:
            self._drop_session()
        device = self.device
        if self.link is None:
            device.sessions.append(self)
        self.link = Link(session, device.window, window, max_payload, self.diagnostics, now)
        self.link.schedule_ack()
        self.diagnostics.sessions += 1
        self.slot = slot
        self.host_id = host_id
        self.host_run = run
        self._grant = None
        self._granted = [0, 0]
        self._ending = False
        self._attached = False
        self._busy_up_to = 0
        self._answers = []
        self._proved = proof
        own_major, own_minor = device.codec.version
        self._limited = major != own_major or (minor == own_minor and hash != device.schema_hash)

    def _drop_session(self) -> None:
        if self.link is not None:
            self.device.sessions.remove(self)
        self.link = None
        self._grant = None
        self._ending = False
        self._attached = False
        self._busy_up_to = 0
        self._answers = []
        self._proved = b""
        if self.device.owner is self:
            self.device.set_owner(None)
        self.host_id = NO_HOST

    def on_key_changed(self, slot: int, now: int, answer_first: bool) -> None:
        """A slot's key is no longer what it was: end what was proved with it."""
        if self._grant is not None and self._grant[0] == slot:
            self._grant = None
        if self.slot != slot or self.link is None:
            return
        if answer_first:
            self._ending = True
        else:
            self._clear_out.append(self.link.close(now))
            self._drop_session()

    # -- sealed packets -------------------------------------------------------------------------

    def _receive_sealed(self, payload: memoryview, now: int) -> None:
        if len(payload) < OVERHEAD:
            self.diagnostics.malformed += 1
            return
        link = self.link
        session = payload[1] | payload[2] << 8
        if link is None or session != link.session.id:
            self.diagnostics.foreign += 1
            if self._hinted_at is None or ticks.diff(now, self._hinted_at) >= HINT_EVERY_MS:
                self._hinted_at = now
                self._send_clear("no_session", (self.device.boot_id, session))
            return
        busy = len(self._answers) >= 2 * self.device.window  # the host does not take its answers
        for kind, message, flags, request_id, body in link.receive(payload, now, busy):
            if kind == REQUEST:
                self._request(message, flags, request_id, body)
            elif kind == EVENT_ACK and len(body) >= 4:
                if self._owns():
                    self.device.events.acknowledge(struct.unpack_from("<I", body)[0], request_id)
            else:
                self.diagnostics.malformed += 1
        if link.failure == CLOSED_BY_PEER and self.link is link:
            self._end_provisioning()
            self._drop_session()

    def _request(self, id: int, flags: int, request_id: int, body: bytes | memoryview) -> None:
        message = self.device.codec.find(id)
        if self._ending:
            return  # the host asks again in its next session
        if message is None or message.kind not in ("query", "command"):
            self._refuse_request(request_id, id, Refusal("unknown_message", (id,)))
        elif message.kind == "query":
            if (
                request_id <= wire_constants.LAST_COMMAND
            ):  # an elevation of a query must not count as one of a command
                self._refuse_request(request_id, id, Refusal("number_ahead", (0,)))
                return
            answer, outcome = self._decide(message, request_id, body)
            self._answer(request_id, answer, outcome)
        else:
            self._command(message, flags, request_id, body)

    def _answer(self, request_id: int, message: int, outcome: "tuple[int, bytes]") -> None:
        self._answers.append((message, outcome[0], request_id, outcome[1]))

    def _refuse_request(self, request_id: int, message: int, refusal: Refusal) -> None:
        self._answer(request_id, message, self._details(refusal))

    def _command(self, message: MessageCodec, flags: int, request_id: int, body: bytes | memoryview) -> None:
        """Execute a command once; whatever was decided of it is in the ledger before it is answered."""
        device = self.device
        book = device.ledger
        if not self._owns():
            self._refuse_request(request_id, message.id, Refusal("not_owner", (device.owner_id(),)))
            return
        newest = book.newest(self.host_id)
        skipped = max(request_id - newest - 1, 0)
        ahead = skipped >= wire_constants.MAX_AHEAD or not device.may_skip(skipped)
        if request_id == 0 or request_id > wire_constants.LAST_COMMAND or ahead:
            self._refuse_request(request_id, message.id, Refusal("number_ahead", (newest,)))
            return
        found = book.state_of(self.host_id, request_id)
        if found == ledger.EXECUTED:
            self.diagnostics.repeats += 1
            answer, status, details = book.answer(self.host_id, request_id)
            self._answer(request_id, answer, (status, details))
            return
        if found == ledger.INTERRUPTED:
            self._refuse_request(request_id, message.id, Refusal("interrupted"))
            return
        if found == ledger.FORGOTTEN:
            self._refuse_request(request_id, message.id, Refusal("forgotten"))
            return
        if found == ledger.SKIPPED:
            self._refuse_request(request_id, message.id, Refusal("not_executed"))
            return
        if not flags & RESOLVE and message.name not in NEVER_BUSY and self._is_busy(request_id):
            self._refuse_request(request_id, message.id, Refusal("busy", (device.events.free(),)))
            return  # undecided: the same number may be sent again
        device.skipped += skipped
        if flags & RESOLVE:  # from now on it is decided: it will never be executed
            answer, outcome = message.id, self._details(Refusal("not_executed"))
        else:
            answer, outcome = self._decide(message, request_id, body)
        try:
            book.finish(self.host_id, request_id, answer, outcome[0], outcome[1])
        except MemoryFailed:
            begun = book.state_of(self.host_id, request_id) == ledger.INTERRUPTED
            answer = message.id
            outcome = self._details(Refusal("interrupted" if begun else "memory_failed"))
        self._answer(request_id, answer, outcome)

    def _is_busy(self, request_id: int) -> bool:
        """Whether a command must wait: for the owner to acknowledge events, or behind others that waited.

        Those that were refused come again in their order. What was on its way behind them, and never was
        refused, would be executed before them, and they could never be.
        """
        if self.device.events.is_nearly_full() or 0 < self._busy_up_to < request_id:
            if not self._busy_up_to or request_id < self._busy_from:
                self._busy_from = request_id
            self._busy_up_to = max(self._busy_up_to, request_id)
            self._grant = None  # it is authorised anew when it comes again
            return True
        if request_id == self._busy_up_to:
            self._busy_up_to = 0
        return False

    def _decide(
        self, message: MessageCodec, request_id: int, body: bytes | memoryview
    ) -> "tuple[int, tuple[int, bytes]]":
        """Check a request and carry it out: the answer's id, status and body."""
        device = self.device
        try:
            values = self._check(message, request_id, body)
            if message.name in QUERIES_THAT_REPORT and device.events.is_nearly_full():
                raise Refusal("busy", (device.events.free(),))
            if message.kind == "command":
                device.ledger.begin(self.host_id, request_id)
                if message.name not in KEEP_SLOTS_OPEN:
                    device.keys.open = False
                if self._by[1]:
                    slot, role, person = self._by
                    device.emit("elevation_used", self.host_id, slot, role, person, message.id, request_id)
            answer = device.codec.named(message.answer)
            return answer.id, (0, answer.pack(self._carry_out(message, values, request_id)))
        except Refusal as refusal:
            return message.id, self._details(refusal)
        except MemoryFailed:
            return message.id, self._details(Refusal("memory_failed"))
        except Exception as error:
            # A query changes nothing: its failure must not restart the device, or who may ask could stop it.
            # A command that failed half-way has left the machine in an unknown state: the restart finds out.
            if message.kind == "query":
                return message.id, self._details(Refusal("device_fault", (0,)))
            if isinstance(error, FieldError):  # executed; only its answer could not be packed
                return message.id, self._details(Refusal("interrupted"))
            raise

    def _details(self, refusal: Refusal) -> "tuple[int, bytes]":
        error = self.device.codec.error_named(refusal.error)
        return error.id, error.pack(refusal.values)

    def _role(self) -> int:
        """The role of the request in hand: of the person who authorised it, or the session's own."""
        return self._by[1] or (TABLE if self._owns() else OBSERVER)

    def _owns(self) -> bool:
        """Whether this session is attached as the owner."""
        return self._attached and self.device.owner is self

    def _check(self, message: MessageCodec, request_id: int, body: bytes | memoryview) -> "Values":
        """The request's values, if version, role and schema allow it."""
        self._by = self._use_grant(message, request_id, body)
        if self._limited and not message.frozen:
            raise Refusal("version_mismatch", self.device.codec.version)
        may = 1 << self._role()
        if self._owns():
            may |= 1 << TABLE  # an elevation adds to what the owner may do
        if not message.roles & may:
            raise Refusal("wrong_role", (self._role(),))
        try:
            return message.unpack(body)
        except FieldError as error:
            raise Refusal("bad_field", (error.index,)) from None

    # -- requests the wire itself answers -------------------------------------------------------

    def _carry_out(self, message: MessageCodec, values: "Values", request_id: int) -> "Values":
        device = self.device
        name = message.name
        if name == "status":
            shuffler, shoe, fault, flags, round_id, stack = device.executor.status()
            seconds, _, quality = device.utc()
            flags |= OWNED_FLAG if device.owner is not None else 0
            flags |= CLOCK_KNOWN_FLAG if quality != UNKNOWN_TIME else 0
            return device.uptime_s(), seconds, quality, shuffler, shoe, fault, flags, round_id, stack
        if name == "attach":
            return self._attach(values[0], (values[1], values[2]))
        if name == "detach":
            self._detach()
            return ()
        if name == "elevate":
            return self._elevate(values)
        if name == "set_key":
            assert self.link is not None
            key = self.link.session.hide(message.id, request_id, values[3])
            self._set_key(values[0], values[1], values[2], key)
            return ()
        if name == "remove_key":
            self._remove_key(values[0])
            return ()
        if name == "key_slots":
            slots = device.keys.slots()
            held = [device.keys.holder(slot) for slot in slots]
            return (
                1 if device.keys.open else 0, tuple(slots), tuple([role for role, _ in held]),
                tuple([person for _, person in held]),
            )
        if name == "evict_owner":
            self._evict_owner(values[0])
            return ()
        if name == "set_clock":
            if self._by[1] not in (FLOOR, SERVICE) and device.is_leap(values[0]):
                raise Refusal("wrong_role", (self._role(),))
            device.set_clock(values[0], values[1])
            return ()
        if name == "counters":
            return (self.diagnostics.counters(),)
        if name == "trace":
            return self.diagnostics.header_count(), self.diagnostics.headers(values[0], TRACE_PAGE)
        if name == "shuffle_with":
            assert self.link is not None
            values = (values[0], self.link.session.hide(message.id, request_id, values[1]))
        caller = Caller(self.host_id, self._role(), self._owns(), self._by[2])
        return device.executor.execute(name, values, caller)

    def _attach(self, mode: int, position: "tuple[int, int]") -> "Values":
        device = self.device
        boot_id, n = position
        if boot_id > device.boot_id:
            raise Refusal("bad_field", (1,))  # a boot that has not been
        if boot_id == device.boot_id and n > device.events.last:
            raise Refusal("bad_field", (2,))  # an event that has not been
        if mode == OWNER_MODE:
            if self.slot != DEVICE:
                raise Refusal("wrong_role", (OBSERVER,))
            holder = device.owner
            if holder is not None and holder is not self and holder.host_id != self.host_id:
                raise Refusal("owner_held", (holder.host_id,))
            device.set_owner(self)
            device.note_host_run(self.host_id, self.host_run)
        elif device.owner is self:
            self._detach()
        self._attached = True
        self._position = position
        known, newest = 0, 0
        if mode == OWNER_MODE:
            known, newest = (
                1 if device.ledger.knows_host(self.host_id) else 0,
                device.ledger.newest(self.host_id),
            )
        return mode, known, newest, device.owner_id()

    def demote(self) -> None:
        """Another cable owns the device now, or none."""
        self._grant = None

    def _detach(self) -> None:
        self._attached = False
        self._grant = None
        if self.device.owner is self:
            self._end_provisioning()
            self.device.set_owner(None)

    def _end_provisioning(self) -> None:
        """The owner of a new device has done with it: slots that are empty now are closed."""
        if self.device.owner is self:
            self.device.keys.open = False

    # -- people ---------------------------------------------------------------------------------

    def _elevate(self, values: "Values") -> "Values":
        """Authorise one request: the one with this id, number and body."""
        scheme, slot, message, request_id, body_hash, proof = values
        device = self.device
        self._grant = None
        if self.slot != DEVICE:
            raise Refusal("wrong_role", (OBSERVER,))
        if scheme != BY_SLOT_KEY:
            raise Refusal("not_supported")
        key = device.keys.get(slot) if slot >= FIRST_PERSON else None
        if key is None:
            raise Refusal("no_such_key", (slot,))
        found = device.codec.find(message)
        kind = 1 if request_id > wire_constants.LAST_COMMAND else 0
        if request_id == 0 or (found is not None and (found.kind == "query") != bool(kind)):
            raise Refusal("bad_credential", (slot,))  # no such request can have this number
        again = kind == 0 and self._busy_up_to > 0 and self._busy_from <= request_id <= self._busy_up_to
        if request_id <= self._granted[kind] and not again:
            raise Refusal("bad_credential", (slot,))  # an old one, shown again
        assert self.link is not None
        wanted = elevation_proof(
            key, self.link.session.transcript, scheme, slot, message, request_id, body_hash
        )
        if not digests_equal(proof, wanted):
            device.note_wrong_proof(slot)
            raise Refusal("bad_credential", (slot,))
        self._granted[kind] = max(self._granted[kind], request_id)
        self._grant = (slot, message, request_id, body_hash)
        return device.keys.holder(slot)

    def _use_grant(
        self, message: MessageCodec, request_id: int, body: bytes | memoryview
    ) -> "tuple[int, int, int]":
        """Slot, role and person that authorised this request, which uses it up; zeros if none did."""
        grant = self._grant
        if grant is None or grant[1] != message.id or grant[2] != request_id:
            return 0, 0, 0
        self._grant = None
        if not digests_equal(sha256(body).digest(), grant[3]):
            return 0, 0, 0
        role, person = self.device.keys.holder(grant[0])
        return grant[0], role, person

    def _set_key(self, slot: int, role: int, person: int, key: bytes) -> None:
        """While a device is provisioned its owner may fill empty slots; all else takes service."""
        device = self.device
        if slot >= SLOTS:
            raise Refusal("no_such_key", (slot,))
        if self._by[1] != SERVICE and (not device.keys.open or device.keys.get(slot) is not None):
            raise Refusal("wrong_role", (self._role(),))
        if not fits(slot, role, person):
            raise Refusal("bad_field", (1,))
        if digests_equal(key, bytes(KEY_SIZE)):
            raise Refusal("bad_field", (3,))  # nobody's secret
        device.keys.set(slot, key, role, person)
        device.end_sessions(slot, self)
        device.emit("key_changed", slot, role, person, self.host_id, self._by[2])

    def _remove_key(self, slot: int) -> None:
        device = self.device
        if slot == DEVICE:
            raise Refusal("bad_field", (0,))  # only presence takes the device from its owner
        if device.keys.get(slot) is None:
            raise Refusal("no_such_key", (slot,))
        role, person = device.keys.holder(slot)
        device.keys.remove(slot)
        device.end_sessions(slot, self)
        device.emit("key_removed", slot, role, person, self.host_id, self._by[2])

    def _evict_owner(self, host_id: bytes) -> None:
        """Take the device from a host, between rounds or when it has been silent; again, it does nothing."""
        device = self.device
        owner = device.owner
        if owner is self:
            raise Refusal("bad_field", (0,))  # it may detach
        if owner is None or owner.host_id != host_id:
            return
        _, shoe, _, flags, _, _ = device.executor.status()
        silent_ms = 0 if owner.link is None else owner.link.silent_ms(device.now())
        if flags & ROUND_OPEN_FLAG and silent_ms < SILENCE_MS:
            raise Refusal("wrong_state", (shoe, 0, SHOE))
        device.emit("owner_evicted", host_id, self.host_id, self._by[2])
        device.set_owner(None)
