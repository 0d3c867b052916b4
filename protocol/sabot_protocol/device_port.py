"""One cable of a device: bytes in and out, at any time or on the grid, and the session that runs over it.

Bytes and times go in, bytes come out. What the frames hold is handled in three other modules:

``device_handshake``    messages outside a session: identification, provisioning, handshake
``device_requests``     requests of the session
``device_credentials``  who authorised a request, and requests about keys and owners
"""

import struct

from sabot_protocol import grid, ticks
from sabot_protocol.device_credentials import Credentials
from sabot_protocol.device_handshake import HandshakeResponder
from sabot_protocol.device_protocol import DeviceProtocol
from sabot_protocol.device_requests import RequestHandler
from sabot_protocol.frame_receiver import FrameReceiver
from sabot_protocol.link import CLOSED_BY_PEER, Link
from sabot_protocol.schema import MAX_WINDOW
from sabot_protocol.session import Session
from sabot_protocol.wire_constants import (
    ANSWER,
    DEVICE,
    EVENT,
    EVENT_ACK,
    GAP,
    NO_HOST,
    OVERHEAD,
    REQUEST,
)

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
        self.attached = False
        self.limited = False  # versions do not match: only frozen messages
        self.ending = False  # its key was changed by itself: it ends once that is answered
        self.position: tuple[int, int] = (0, 0)  # the last event sent: (boot id, n)
        self.answers: list[tuple[int, int, int, bytes]] = []  # message, status, request id, body
        self.handshake = HandshakeResponder(self)
        self.credentials = Credentials(self)
        self.requests = RequestHandler(self, self.credentials)
        self._room = True  # at the last poll: the cable takes output
        # on the grid
        self._tick: int | None = None  # the next tick at which there is something to do
        self._held = False  # the decoder holds a frame that found no place
        self._place_at: int | None = None  # the tick from which there is a place again for anybody's frame
        self._ready: list[tuple[int, bytes]] = []  # what is sent at which tick, ANSWERED_AFTER at most

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

        Without room on the cable (the host does not read) the port sends nothing, and its queues keep their
        bounds. A host that has been silent for too long loses its session all the same.
        """
        device = self.device
        device.tick(now)
        self._room = room
        on_grid = device.executor.on_grid()
        if not on_grid:
            self._leave_grid(now)
            if device.checking():
                device.work()
        self.handshake.wait_ms(now)
        if not room:
            if self.link is not None and self.link.ended(now):
                self._drop_session()
            if on_grid and self._tick is not None and ticks.diff(now, self._tick) >= 0:
                self._tick = device.grid.after(now)
            return b""
        if not on_grid:
            ready = self._take_ready(None)
            out = self._encode(now, 2 * MAX_WINDOW)
            return ready + out if ready else out
        if self._tick is None:
            if self.has_work(now):
                self._tick = device.grid.after(now)
            return b""
        if ticks.diff(now, self._tick) < 0:
            return b""
        self._tick = None
        tick = device.grid.floor(now)
        ready = self._take_ready(tick)
        said = self.run_tick(tick)
        if said:
            self._ready.append((ticks.add(tick, grid.ANSWERED_AFTER * grid.PERIOD_MS), said))
        if self._ready or self.has_work(now):
            self._tick = device.grid.after(now)
        return ready

    def deadline(self) -> int | None:
        """The tick at which ``poll`` is due by itself, or None."""
        if self._tick is not None:
            return self._tick
        if self.device.checking():
            return self.device.now()
        if self.link is None:
            return None
        due = self.link.deadline() if self._room else self.link.silence_deadline()
        return self.device.grid.after(due) if self.device.executor.on_grid() else due

    # -- the grid -------------------------------------------------------------------------------

    def _take_ready(self, tick: "int | None") -> bytes:
        """Take the frames that are due by a tick; without a tick, all of them."""
        ready = b""
        while self._ready and (tick is None or ticks.diff(tick, self._ready[0][0]) >= 0):
            ready += self._ready.pop(0)[1]
        return ready

    def run_tick(self, now: int) -> bytes:
        """Handle the bytes received up to a tick of the grid; return what is sent ANSWERED_AFTER ticks later.

        A board whose ticks are made by hardware calls this itself, once a tick, instead of ``poll``.
        """
        self.device.tick(now)
        decoder = self._decoder
        owns = self.device.owner is self
        if self._place_at is not None and ticks.diff(now, self._place_at) >= 0:
            self._place_at = None
        places = grid.PLACES if self._place_at is None else 0
        kept = grid.OWNER_PLACES if owns else 0
        for _ in range(grid.LOOKED_AT):
            if self._held:
                self._held = False
            elif not decoder.next_frame():
                break
            if decoder.error is not None:
                self._dispatch_frame(now)  # which counts it
                continue
            if kept and self._of_session():
                kept -= 1
            elif places:
                places -= 1
                self._place_at = ticks.add(now, grid.PLACE_EVERY * grid.PERIOD_MS)
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
        if link is None:
            return False
        payload = decoder.payload
        return (
            len(payload) >= OVERHEAD
            and payload[0] == self._sealed_direction
            and payload[1] | payload[2] << 8 == link.session.id
        )

    def waiting(self) -> int:
        """How many received bytes have not been decoded yet."""
        return self._decoder.unread()

    def has_work(self, now: int) -> bool:
        """Whether there is something to do at the next tick."""
        if self._held or self.answers or self.handshake.replies or self._decoder.unread():
            return True
        link = self.link
        if link is None:
            return False
        if link.has_pending_output() or ticks.diff(now, link.deadline()) >= 0:
            return True
        events = self.device.events
        if not self.attached or self.position == (events.boot_id, events.last):
            return False
        return link.room() > link.window // 4

    def _leave_grid(self, now: int) -> None:
        """Handle at once what waited for the next tick."""
        self._tick = None
        self._place_at = None
        if self._held:
            self._held = False
            self._dispatch_frame(now)
        if self._decoder.unread():
            super().receive(b"", now)

    def _encode(self, now: int, most: int) -> bytes:
        """The frames of what is due, with at most so many messages of the session."""
        frames = self.handshake.take_replies(now)
        link = self.link
        if link is not None:
            self._fill(link, most)
            frames += link.poll(now, most)
            if link.failure is not None:
                self._drop_session()
            elif self.ending and not self.answers and link.idle():
                frames.append(link.close(now))
                self._drop_session()
        if not frames:
            return b""
        return b"".join(frames)

    def close(self) -> None:
        """The cable is gone, and with it the session."""
        self._drop_session()
        self.device.drop_check(self)
        self.handshake.close()

    def _fill(self, link: Link, most: int) -> None:
        """Put at most so many messages into the window: answers, which always find a place, then events."""
        room = link.room()
        most -= link.waiting()
        while self.answers and room > 0 and most > 0:
            message, status, request_id, body = self.answers.pop(0)
            link.send(ANSWER, message, status, request_id, body)
            room -= 1
            most -= 1
        if not self.attached or self.ending:
            return
        events = self.device.events
        while room > link.window // 4 and most > 0:
            boot, n = self.position
            gap = events.gap_after(boot, n)
            if gap is not None:
                reason, size, from_boot, from_n, to_boot, to_n = gap
                link.send(GAP, 0, reason, size, struct.pack("<IIII", from_boot, from_n, to_boot, to_n))
                self.position = (to_boot, to_n - 1)
            elif boot != events.boot_id:
                self.position = (events.boot_id, 0)  # nothing was lost of the boots before
                continue
            elif n < events.last:
                message, quality, body = events.get(n + 1)
                link.send(EVENT, message, quality, n + 1, body)
                self.position = (boot, n + 1)
            else:
                return
            room -= 1
            most -= 1

    # -- frames -----------------------------------------------------------------------------------

    def _receive_clear(self, payload: bytes, now: int) -> None:
        self.handshake.receive(payload, now)

    def _receive_sealed(self, payload: memoryview, now: int) -> None:
        if len(payload) < OVERHEAD:
            self.diagnostics.malformed += 1
            return
        link = self.link
        session = payload[1] | payload[2] << 8
        if link is None or session != link.session.id:
            self.diagnostics.foreign += 1
            self.handshake.hint(session, now)
            return
        busy = len(self.answers) >= 2 * self.device.window  # the host does not take its answers
        for kind, message, flags, request_id, body in link.receive(payload, now, busy):
            if kind == REQUEST:
                self.requests.request(message, flags, request_id, body)
            elif kind == EVENT_ACK and len(body) >= 4:
                if self.owns():
                    self.device.acknowledge(struct.unpack_from("<I", body)[0], request_id)
            else:
                self.diagnostics.malformed += 1
        if link.failure == CLOSED_BY_PEER and self.link is link:
            self._end_provisioning()
            self._drop_session()

    # -- the session ------------------------------------------------------------------------------

    def replace_session(self, session: Session, proof: bytes, said: "Values", now: int) -> None:
        """A handshake was proved: its session replaces the one that runs here."""
        _, host_id, slot, run, major, minor, hash, window, max_payload = said
        if host_id != self.host_id or slot != self.slot:
            self._drop_session()
        device = self.device
        if self.link is None:
            device.sessions.append(self)
        device.drop_check(self)
        self.link = Link(session, device.window, window, max_payload, self.diagnostics, now)
        self.link.schedule_ack()
        self.diagnostics.sessions += 1
        self.slot = slot
        self.host_id = host_id
        self.host_run = run
        self.credentials.begin_session()
        self.ending = False
        self.attached = False
        self.requests.busy_up_to = 0
        self.answers = []
        self.handshake.proved = proof
        own_major, own_minor = device.codec.version
        self.limited = major != own_major or (minor == own_minor and hash != device.schema_hash)

    def _drop_session(self) -> None:
        if self.link is not None:
            self.device.sessions.remove(self)
            self.device.drop_check(self)
        self.link = None
        self.credentials.drop_grant()
        self.ending = False
        self.attached = False
        self.requests.busy_up_to = 0
        self.answers = []
        self.handshake.proved = b""
        if self.device.owner is self:
            self.device.set_owner(None)
        self.host_id = NO_HOST

    def on_key_changed(self, slot: int, now: int, answer_first: bool) -> None:
        """The key of a slot changed: end the session and the elevation that were proved with the old key."""
        if self.credentials.grant is not None and self.credentials.grant[0] == slot:
            self.credentials.grant = None
        if self.slot != slot or self.link is None:
            return
        if answer_first:
            self.ending = True
        else:
            self.handshake.replies.append(self.link.close(now))
            self._drop_session()

    def owns(self) -> bool:
        """Whether this session is attached as the owner."""
        return self.attached and self.device.owner is self

    def demote(self) -> None:
        """Another cable owns the device now, or none."""
        self.credentials.drop_grant()

    def detach(self) -> None:
        """End the attachment of the session; an owner gives the device up."""
        self.attached = False
        self.credentials.drop_grant()
        if self.device.owner is self:
            self._end_provisioning()
            self.device.set_owner(None)

    def _end_provisioning(self) -> None:
        """The owner of a new device is done: from now on empty key slots stay empty."""
        if self.device.owner is self:
            self.device.keys.open = False
