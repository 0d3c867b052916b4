"""The host's end of the wire: requests with their answers, events exactly once, across reconnects.

Bytes and times go in; bytes and notifications come out. The cable, the clock, the disk and the decision when
to try again belong to the caller.

What becomes of a request that was under way when the session ended:

  a query                          is asked again, but for ``elevate`` and ``detach``, which were for that
                                   session
  a command, the device still in
  the same boot                    is sent again with the same number: executed once, or already was
  a command, device rebooted       is sent again to be *resolved*: the device's ledger says executed (with
                                   the answer), not executed, or interrupted; it is never executed then
  a command the device forgot      fails as ``forgotten``: whether it was executed is unknown
  a command of a host that is no
  longer the owner                 waits until the host is the owner again, or its time is up

A request that a person authorises is sent right behind its elevation, in each session anew. What a request
must keep secret is hidden under a pad of the session it is sent in.
"""

import struct
from hashlib import sha256

from sabot_protocol import frame, ticks
from sabot_protocol.codec import CODEC, Codec, MessageCodec, enum_number
from sabot_protocol.command_numbers import CommandNumbers
from sabot_protocol.errors import FieldError, RequestNotAllowed, UnknownMessage
from sabot_protocol.frame_receiver import FrameReceiver
from sabot_protocol.handshake import DEVICE_NOT_PROVED, Handshake, read_clear
from sabot_protocol.link import Link
from sabot_protocol.notifications import (
    AttachRefused,
    EventGap,
    EventReceived,
    Notification,
    RequestAnswered,
    RequestFailed,
    SessionDown,
    SessionUp,
)
from sabot_protocol.pending_requests import PendingRequest, PendingRequests
from sabot_protocol.schema import HIDDEN, MAX_WINDOW
from sabot_protocol.schema_hash import SCHEMA_HASH
from sabot_protocol.session import elevation_proof, slot_key
from sabot_protocol.wire_constants import (
    ANSWER,
    BY_SLOT_KEY,
    DEVICE,
    EVENT,
    EVENT_ACK,
    EVENT_HEADER,
    EVENT_HEADER_SIZE,
    GAP,
    KEY_SIZE,
    LAST_COMMAND,
    MAX_AHEAD,
    NO_HOST,
    REQUEST,
    RESOLVE,
)

# Why a request fails without the device's answer.
TIMED_OUT = "timed_out"  # no answer in the time given; resolve() tells what became of a command
DEVICE_REBOOTED = "device_rebooted"  # it was never sent, and the device has rebooted: not executed
FORGOTTEN = "forgotten"  # the device no longer knows this host's commands
VERSION_MISMATCH = "version_mismatch"  # the device's version does not have this message: not executed
SESSION_ENDED = "session_ended"  # it was meant for the session that ended
TOO_LONG = "too_long"  # it does not fit the device's frames: not executed
NUMBER_USED = "number_used"  # the device knows its number from before: this host's disk is an old one

# Why a session ends, besides the names of link and handshake.
CLOSED = "closed"  # by this end
CABLE_LOST = "cable_lost"
BAD_ANSWER = "bad_answer"  # the device's answer to attach makes no sense
OUT_OF_STEP = "events_out_of_step"  # the device skipped an event without saying so

MEMORY_LOST = enum_number("GapReason", "memory_lost")
OWNER = enum_number("AttachMode", "owner")
OBSERVER = enum_number("AttachMode", "observer")
OF_ONE_SESSION = ("elevate", "detach")
WITH_SECRET = tuple([name for name, _ in HIDDEN])  # the last 32 bytes of their bodies
MAX_REQUESTS = 1024

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class HostProtocol(FrameReceiver):
    """One host's end of one device's wire."""

    def __init__(
        self,
        key: bytes,
        numbers: CommandNumbers,
        random: "Callable[[int], bytes]",
        serial: bytes | None = None,
        window: int = MAX_WINDOW,
        codec: Codec = CODEC,
        schema_hash: bytes = SCHEMA_HASH,
        slot: int = DEVICE,
        other_key: bytes | None = None,
    ) -> None:
        """``other_key`` is tried if the device does not have ``key``: one of them is not confirmed yet."""
        if numbers.host_id == NO_HOST:
            raise RequestNotAllowed("a host id of eight zeros means no host: draw one at random and store it")
        super().__init__(is_host=True)
        self.boot_id = 0
        self.memory_id = b""
        self.position = (0, 0)  # the last event or gap passed on: (boot id, n)
        self.key = key
        self.other_key = other_key
        self._tried_other = False
        self._slot = slot
        self._numbers = numbers
        self._next_query = LAST_COMMAND + 1
        self._random = random
        self._serial = serial
        self._window = window
        self._codec = codec
        self._schema_hash = schema_hash
        self._run = struct.unpack("<I", random(4))[0]
        self._mode = OWNER
        self._handshake: Handshake | None = None
        self._peer: Handshake | None = None  # the one that made the running session
        self._candidate: Link | None = None  # proved by the device, not yet by a packet of it
        self._link: Link | None = None
        self._limited = False
        self._rebooted = False
        self._known = False  # the device's ledger holds the truth of this host
        self._newest = 0  # the newest command of this host that the device knows from before this session
        self._attaching: int | None = None  # the attach request's number while it is not answered
        self._catching_up: int | None = None  # the number passed over while the device's newest is far behind
        self._elevations: dict[int, PendingRequest] = {}  # by the elevation's request id
        self._up = False
        self._requests = PendingRequests()
        self._unanswered = 0  # in this session
        self._busy_code = codec.error_named("busy").id
        self._acknowledged: tuple[int, int] | None = None
        self._ack_pending = False
        self._notifications: list[Notification] = []

    # -- the session ----------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        """Whether the device takes requests now."""
        return self._up

    @property
    def transcript(self) -> bytes:
        """The running session's transcript hash, which elevations are bound to."""
        if self._link is None:
            raise RequestNotAllowed("there is no session: connect first")
        return self._link.session.transcript

    @property
    def next_number(self) -> int:
        """The number the next command will have."""
        return self._numbers.next

    def resume_from(self, memory_id: bytes, boot_id: int, n: int) -> None:
        """Before the first connect: the last event that is on disk, and whose memory it came from."""
        self.memory_id = memory_id
        self.boot_id = boot_id
        self.position = (boot_id, n)

    def connect(self, now: int, mode: int = OWNER) -> None:
        """A cable is there: start a session. ``SessionUp``, ``AttachRefused`` or ``SessionDown`` follows."""
        self._mode = mode
        self._tried_other = False
        self._forget_session()
        self._decoder = frame.Decoder()
        self._start_handshake(now)

    def disconnect(self, reason: str = CLOSED) -> None:
        """The cable is gone, or the caller closes it. Requests wait for the next session."""
        had_one = self._link is not None or self._handshake is not None
        self._forget_session()
        if had_one:
            self._notifications.append(SessionDown(reason))

    def close(self, now: int) -> bytes:
        """End the session and say so: the bytes to put on the cable before it is closed."""
        frames = self.poll(now)
        link = self._link
        if link is not None:
            frames += bytes(link.close(now))
        self.disconnect()
        return frames

    def attach(self, mode: int) -> None:
        """After ``AttachRefused``: ask again, in this mode."""
        if self._link is None:
            raise RequestNotAllowed("there is no session: connect first")
        if self._up:
            raise RequestNotAllowed("this host is attached: connect again to change its mode")
        self._mode = mode
        self._ask_to_attach(self._link)

    def _forget_session(self) -> None:
        self._link = None
        self._candidate = None
        self._handshake = None
        self._attaching = None
        self._catching_up = None
        self._elevations = {}
        self._up = False

    def _take_query(self) -> int:
        request_id = self._next_query
        self._next_query = request_id + 1 if request_id < 0xFFFFFFFF else LAST_COMMAND + 1
        return request_id

    def _start_handshake(self, now: int) -> None:
        self.diagnostics.handshakes += 1
        self._candidate = None
        self._handshake = Handshake(
            self._codec, self._schema_hash, self.key, self._numbers.host_id, self._slot, self._run,
            self._window, self._random, self._serial, now,
        )

    def _check_handshake(self, now: int) -> None:
        """A failed handshake ends the attempt; a running session goes on without it."""
        handshake = self._handshake
        if handshake is not None and handshake.failure is not None:
            other = None if self._tried_other else self.other_key
            if other is not None and handshake.failure == DEVICE_NOT_PROVED:
                self._tried_other = True
                self.key, self.other_key = other, self.key
                self._start_handshake(now)
                return
            self._handshake = None
            self._candidate = None
            if self._link is None:
                self._notifications.append(SessionDown(handshake.failure))

    def _adopt(self, link: Link) -> None:
        """The device has spoken in the new session: it replaces the old one."""
        said = self._handshake
        assert said is not None
        self._forget_session()
        self._link = link
        self.diagnostics.sessions += 1
        if self.memory_id and said.memory_id != self.memory_id:
            self._notifications.append(EventGap(MEMORY_LOST, None, self.position, (said.boot_id, 1)))
            self.position = (0, 0)
            self._acknowledged = None
        before = (self.memory_id, self.boot_id)
        self._rebooted = self.boot_id != 0 and before != (said.memory_id, said.boot_id)
        self.memory_id = said.memory_id
        self.boot_id = said.boot_id
        self._peer = said
        own_major, own_minor = self._codec.version
        major, minor = said.version
        self._limited = major != own_major or (minor == own_minor and said.schema_hash != self._schema_hash)
        self._unanswered = 0
        self._ack_pending = self._acknowledged is not None and self._acknowledged[0] == self.boot_id
        self._ask_to_attach(link)

    def _ask_to_attach(self, link: Link) -> None:
        attach = self._codec.named("attach")
        self._attaching = self._take_query()
        link.send(REQUEST, attach.id, 0, self._attaching, attach.pack((self._mode,) + self.position))

    def _attached(self, status: int, body: bytes) -> None:
        self._attaching = None
        if status:
            self._notifications.append(AttachRefused(status, body))
            return
        try:
            mode, known, newest, _ = self._codec.named("attached").unpack(body)
        except FieldError:
            self._link_failed(BAD_ANSWER)
            return
        self._known = known == 1
        if mode == OWNER:
            self._newest = newest
            self._numbers.skip_to(newest)
            if self._catch_up():
                return
        self._report_up(mode)

    def _catch_up(self) -> bool:
        """Bring the device's newest number nearer to this host's, whether that is needed; one step at a time.

        The device takes no number far ahead. Each step asks what became of a number that was never given,
        which decides that it is not executed.
        """
        needed = self._numbers.next
        for asked in self._requests.by_id.values():
            if asked.message.kind == "command" and asked.request_id > self._newest:
                needed = min(needed, asked.request_id)
        self._catching_up = None
        if needed > self._newest + MAX_AHEAD and self._link is not None:
            self._catching_up = self._newest + MAX_AHEAD
            self._link.send(REQUEST, self._codec.named("set_clock").id, RESOLVE, self._catching_up, b"")
            return True
        return False

    def _report_up(self, mode: int) -> None:
        said = self._peer
        assert said is not None
        self._up = True
        self._requests.begin_session()
        self._notifications.append(
            SessionUp(
                said.serial, said.boot_id, said.memory_id, said.version, self._rebooted, self._limited,
                mode == OWNER, said.flags,
            )
        )

    # -- requests -------------------------------------------------------------------------------

    def request(
        self, message: int, body: bytes, now: int, timeout_ms: int | None = None,
        by: tuple[int, bytes] | None = None, held: bool = False,
    ) -> int:
        """Ask the device; the request id returned comes back in ``RequestAnswered`` or ``RequestFailed``.

        Asked while there is no session, it is sent in the next one. ``by`` is the slot and the key (as the
        person has it) of who authorises it. Secrets are given as they are, and hidden on the wire. One that
        is ``held`` has its number and its time-out, and is not sent before ``release``. Commands must be
        released in the order of their numbers; one given while another is held must be held as well.
        """
        found = self._codec.find(message)
        if found is None or found.kind not in ("query", "command"):
            raise UnknownMessage("message 0x%02x is not a request" % message)
        if self._up and not self._in_version(found):
            raise RequestNotAllowed(self._mismatch(found))
        if len(self._requests.by_id) >= MAX_REQUESTS:
            raise RequestNotAllowed(
                "%d requests are waiting already: take their answers first" % MAX_REQUESTS
            )
        request_id = self._numbers.take() if found.kind == "command" else self._take_query()
        asked = PendingRequest(request_id, found, body)
        asked.by = by
        asked.held = held
        if self.boot_id:
            asked.asked_of = (self.memory_id, self.boot_id)
        self._requests.add(asked, now, timeout_ms)
        return request_id

    def release(self, request_id: int) -> None:
        """A request that was held may be sent; one that has ended meanwhile is not."""
        self._requests.release(request_id)

    def resolve(
        self, request_id: int, message: int, memory_id: bytes, now: int, timeout_ms: int | None = None
    ) -> None:
        """Ask what became of an earlier command: its number, and the memory id of the device then."""
        found = self._codec.find(message)
        if found is None or found.kind != "command":
            raise UnknownMessage("message 0x%02x is not a command" % message)
        asked = PendingRequest(request_id, found, b"")
        asked.flags = RESOLVE
        asked.memory_id = memory_id
        self._requests.add(asked, now, timeout_ms)

    def abandon(self, request_id: int) -> None:
        """Drop a request: its answer is not reported. A command that was sent may still be executed."""
        self._requests.by_id.pop(request_id, None)

    def waiting(self) -> int:
        """How many requests have not ended."""
        return len(self._requests.by_id)

    def is_pending(self, request_id: int) -> bool:
        """Whether this request has not ended."""
        return request_id in self._requests.by_id

    def acknowledge(self, boot_id: int, n: int) -> None:
        """Everything up to this event is on disk; the device is told, also after a reconnect."""
        self._acknowledged = (boot_id, n)
        self._ack_pending = True

    def take_notifications(self) -> list[Notification]:
        """What has happened since the last call, in order."""
        happened = self._notifications
        self._notifications = []
        return happened

    def _in_version(self, message: MessageCodec) -> bool:
        assert self._peer is not None
        return message.frozen or (not self._limited and message.minor <= self._peer.version[1])

    def _mismatch(self, message: MessageCodec) -> str:
        assert self._peer is not None
        theirs, ours = self._peer.version, self._codec.version
        if theirs == ours:
            words = "'%s' may differ: the device's %d.%d has another schema than ours; update one of them"
            return words % ((message.name,) + ours)
        words = "the device speaks version %d.%d, which may not have '%s' as %d.%d does: update one of them"
        return words % (theirs + (message.name,) + ours)

    def _reason_not_to_send(self, asked: PendingRequest) -> str | None:
        """Why a request must not be sent in this session, or None. A command may become a question."""
        sent_before = bool(asked.memory_id)
        if asked.message.kind == "command" and sent_before:
            if asked.memory_id != self.memory_id or not self._known:
                return FORGOTTEN
            if asked.boot_id != self.boot_id:
                asked.flags = RESOLVE
            return None
        if not self._in_version(asked.message):
            return VERSION_MISMATCH
        if asked.message.kind == "query":
            return SESSION_ENDED if sent_before and asked.message.name in OF_ONE_SESSION else None
        if asked.asked_of and asked.asked_of != (self.memory_id, self.boot_id):
            return DEVICE_REBOOTED
        return NUMBER_USED if not asked.flags and asked.request_id <= self._newest else None

    def _send_requests(self, link: Link) -> None:
        requests = self._requests
        while self._unanswered < link.window and link.room() > 0:
            asked = requests.next_unsent()
            if asked is None:
                break
            if asked.message.kind == "command" and asked.memory_id and self._mode != OWNER:
                requests.take_unsent()  # only an owner is told what became of it
                continue
            why = self._reason_not_to_send(asked)
            body = b"" if asked.flags else asked.body  # a question what became of it needs none
            if why is None and len(body) > link.max_body:
                why = TOO_LONG
            if why is not None:
                requests.take_unsent()
                self._fail(asked.request_id, why)
                continue
            if len(body) >= KEY_SIZE and asked.message.name in WITH_SECRET:
                body = self._hide(link, asked)
            self._unanswered += 1
            if asked.by is not None and not asked.elevated and not asked.flags:
                asked.elevated = True
                self._elevate(link, asked, asked.by, body)
                continue  # the request itself is next
            requests.take_unsent()
            link.send(REQUEST, asked.message.id, asked.flags, asked.request_id, body)
            asked.sent_here = not asked.memory_id
            asked.memory_id = self.memory_id
            if not asked.flags:
                asked.boot_id = self.boot_id
        if self._ack_pending and self._acknowledged is not None and link.room() > 0:
            self._ack_pending = False
            boot_id, n = self._acknowledged
            link.send(EVENT_ACK, 0, 0, n, struct.pack("<I", boot_id))

    def _hide(self, link: Link, asked: PendingRequest) -> bytes:
        """The body with its secret under this session's pad."""
        secret = asked.body[-KEY_SIZE:]
        if asked.message.name == "set_key" and asked.body[0] == DEVICE and self._slot == DEVICE:
            self.other_key = secret  # until the answer tells, the device has this one or the one before
        return asked.body[:-KEY_SIZE] + link.session.hide(asked.message.id, asked.request_id, secret)

    def _elevate(self, link: Link, asked: PendingRequest, by: tuple[int, bytes], body: bytes) -> None:
        said = self._peer
        assert said is not None
        slot, person_key = by
        elevate = self._codec.named("elevate")
        hash = sha256(body).digest()
        proof = elevation_proof(
            slot_key(person_key, said.serial, slot), link.session.transcript, BY_SLOT_KEY, slot,
            asked.message.id, asked.request_id, hash,
        )
        request_id = self._take_query()
        self._elevations[request_id] = asked
        fields = elevate.pack((BY_SLOT_KEY, slot, asked.message.id, asked.request_id, hash, proof))
        link.send(REQUEST, elevate.id, 0, request_id, fields)

    def _fail(self, request_id: int, why: str) -> None:
        del self._requests.by_id[request_id]
        self._notifications.append(RequestFailed(request_id, why))

    # -- bytes in and out -----------------------------------------------------------------------

    def poll(self, now: int) -> bytes:
        """The bytes to put on the cable now. Call it after ``receive``, after a request and when due."""
        for request_id in self._requests.expired(now):
            self._fail(request_id, TIMED_OUT)
        self._requests.retry(now)
        frames: list[bytearray] = []
        if self._handshake is not None:
            hello = self._handshake.poll(now)
            if hello is not None:
                frames.append(hello)
                self.diagnostics.frames_out += 1
            self._check_handshake(now)
        link = self._link
        if link is not None:
            if self._up:
                self._send_requests(link)
            frames += link.poll(now)
            if link.failure is not None:
                self._link_failed(link.failure)
        if not frames:
            return b""
        return b"".join(frames)

    def has_pending_output(self) -> bool:
        """Whether ``poll`` may have something at once, and not only when ``deadline`` has come."""
        link = self._link
        return (
            link is None
            or self._handshake is not None
            or self._ack_pending
            or self._requests.has_work()
            or link.has_pending_output()
        )

    def deadline(self) -> int | None:
        """The tick at which ``poll`` is due by itself, or None."""
        due = self._requests.deadline()
        for each in (self._link, self._handshake):
            other = None if each is None else each.deadline()
            if other is not None and (due is None or ticks.diff(other, due) < 0):
                due = other
        return due

    def _link_failed(self, reason: str) -> None:
        """The session is over; a handshake that was begun already goes on."""
        self._link = None
        self._attaching = None
        self._up = False
        self._notifications.append(SessionDown(reason))

    def _receive_clear(self, payload: bytes, now: int) -> None:
        said = read_clear(self._codec, payload)
        if said is None:
            self.diagnostics.malformed += 1
            return
        name, fields, values = said
        handshake = self._handshake
        if name == "no_session":
            # Anybody could say this, so it ends nothing: it only makes us ask for a new session now.
            if self._link is not None and values[1] == self._link.session.id and handshake is None:
                self._start_handshake(now)
        elif handshake is not None:
            handshake.receive(name, fields, values, now)
            if handshake.session is not None and self._candidate is None:
                self._candidate = Link(
                    handshake.session,
                    self._window,
                    handshake.window,
                    handshake.max_payload,
                    self.diagnostics,
                    now,
                )
            self._check_handshake(now)

    def _receive_sealed(self, payload: memoryview, now: int) -> None:
        link = self._link
        session = payload[1] | payload[2] << 8 if len(payload) > 2 else -1
        candidate = self._candidate
        if candidate is not None and candidate.session.id == session:
            delivered = candidate.receive(payload, now)
            if not candidate.session.received:
                return
            self._adopt(candidate)
        elif link is not None:
            delivered = link.receive(payload, now)
        else:
            self.diagnostics.foreign += 1
            return
        link = self._link
        for kind, message, flags, request_id, body in delivered:
            if self._link is not link:
                return  # it failed on the way
            if kind == ANSWER:
                self._answered(message, flags, request_id, bytes(body))
            elif kind == EVENT and len(body) >= EVENT_HEADER_SIZE:
                self._event(message, flags, request_id, bytes(body))
            elif kind == GAP and len(body) >= 16:
                self._gap(flags, request_id, bytes(body))
            else:
                self.diagnostics.malformed += 1

    def _answered(self, message: int, status: int, request_id: int, body: bytes) -> None:
        if request_id == self._attaching:
            self._attached(status, body)
            return
        if request_id == self._catching_up:
            self._newest = request_id
            if not self._catch_up():
                self._report_up(OWNER)
            return
        self._unanswered = max(self._unanswered - 1, 0)
        elevated = self._elevations.pop(request_id, None)
        if elevated is not None:
            elevated.refused = (status, body) if status else None
            return
        asked = self._requests.by_id.get(request_id)
        if asked is not None and status == self._busy_code and not asked.flags:
            self._requests.device_busy(asked)
            return
        if asked is None:
            self.diagnostics.late_answers += 1
            return
        error = self._codec.error(status) if status else None
        if error is not None and error.name == "not_owner" and asked.memory_id and not asked.sent_here:
            return  # it was sent in an earlier session: only an owner is told what became of it
        del self._requests.by_id[request_id]
        if asked.message.name == "set_key" and asked.body and asked.body[0] == DEVICE and self.other_key:
            if not status:
                self.key = self.other_key
            self.other_key = None
        answer = self._codec.find(message)
        if not status and answer is not None and answer.name in WITH_SECRET and len(body) >= KEY_SIZE:
            assert self._link is not None
            secret = self._link.session.hide(message, request_id, body[-KEY_SIZE:])
            body = body[:-KEY_SIZE] + secret
        if error is not None and error.name == "wrong_role" and asked.refused is not None:
            message, (status, body) = self._codec.named("elevate").id, asked.refused
        self._notifications.append(RequestAnswered(request_id, message, status, body))

    def _gap(self, reason: int, size: int, body: bytes) -> None:
        from_boot, from_n, to_boot, to_n = struct.unpack_from("<IIII", body)
        after, before = (from_boot, from_n), (to_boot, to_n)
        # It begins where we are, or at a later boot of which we have nothing, and it leads on.
        joins = after == self.position or (from_boot > self.position[0] and from_n == 0)
        if not joins or to_boot != self.boot_id or to_n < 1 or before <= after:
            self._link_failed(OUT_OF_STEP)
            return
        self._notifications.append(EventGap(reason, size or None, after, before))
        self.position = (to_boot, to_n - 1)

    def _event(self, message: int, quality: int, n: int, body: bytes) -> None:
        boot_id, ticks_ms, utc_s, utc_ms = struct.unpack_from(EVENT_HEADER, body)
        boot, last = self.position
        if boot_id != self.boot_id or n != (last + 1 if boot_id == boot else 1):
            self._link_failed(OUT_OF_STEP)
            return
        self.position = (boot_id, n)
        self._notifications.append(
            EventReceived(boot_id, n, ticks_ms, utc_s, utc_ms, quality, message, body[EVENT_HEADER_SIZE:])
        )
