"""The link: one session's messages, each delivered once and in order. Both ends use this class.

It takes packets and times and gives frames and messages; it never sleeps, reads a clock or touches a
port. It does not know which side it plays: sequence numbers, acknowledgements, timers and failures are
the same both ways.

Sending      at most ``window`` messages (advertised by the peer) are under way; the rest wait here.
Acknowledging  every packet carries ``ack`` (the next sequence number wanted) and ``sack`` (bit i: also
             have ack+1+i). A packet with nothing else to say is sent when none else is due in time.
Lost         a message is sent again when a later transmission of ours is acknowledged and it is not (the
             wire never reorders), or when the retransmission timer of RFC 6298 runs out. Every
             transmission has a new packet counter.
Ends         after MAX_SENDS transmissions of one message, after SILENCE_MS without an authentic packet,
             when the packet counter is spent, or when the peer says that it closes the session: ``failure``
             then holds the name, for good.
"""

from sabot_protocol import frame, ticks
from sabot_protocol.diagnostics import SENT, Diagnostics
from sabot_protocol.errors import FrameSize
from sabot_protocol.schema import MAX_WINDOW
from sabot_protocol.session import Session
from sabot_protocol.wire_constants import BARE, CLOSE, MAX_COUNTER, OVERHEAD

# Kinds of sealed packet.

# Timers, in milliseconds.
FIRST_RTO_MS = 300  # before a round trip has been measured
MIN_RTO_MS = 170  # two periods of the device's grid, a peer's ACK_DELAY_MS, a board's longest pause (50 ms)
MAX_RTO_MS = 2000
GRANULARITY_MS = 1
ACK_DELAY_MS = 20
KEEP_ALIVE_MS = 1000
SILENCE_MS = 5000

MAX_SENDS = 10

# How a link ends.
RETRIES_EXHAUSTED = "retries_exhausted"
PEER_SILENT = "peer_silent"
COUNTER_SPENT = "counter_spent"
CLOSED_BY_PEER = "closed_by_peer"

TYPE_CHECKING = False
if TYPE_CHECKING:
    # kind, message, flags, request_id, body; a body is good until the next packet is received
    Delivered = tuple[int, int, int, int, bytes | memoryview]


class _OutgoingMessage:
    """A message under way: how often it was sent, and when last."""

    def __init__(self, seq: int, kind: int, message: int, flags: int, request_id: int, body: bytes) -> None:
        self.seq = seq
        self.kind = kind
        self.message = message
        self.flags = flags
        self.request_id = request_id
        self.body = body
        self.sends = 0
        self.counter = 0
        self.at = 0


class Link:
    """One session's reliable stream of messages, at one end."""

    def __init__(
        self,
        session: Session,
        own_window: int,
        peer_window: int,
        peer_max_payload: int,
        diagnostics: Diagnostics,
        now: int,
    ) -> None:
        self.session = session
        self.failure: str | None = None
        self.window = peer_window
        self.max_body = peer_max_payload - OVERHEAD
        self._diagnostics = diagnostics
        # sending
        self._waiting: list[_OutgoingMessage] = []
        self._in_flight: list[_OutgoingMessage] = []
        self._next_seq = 0
        self._timer_at: int | None = None
        self._srtt8 = 0  # eight times the smoothed round trip
        self._rttvar4 = 0  # four times its variation
        self._measured = False
        self.rto_ms = FIRST_RTO_MS
        self._newest_acked = 0  # the packet counter of the latest transmission known to have arrived
        self._resend = False
        # receiving
        self._own_window = own_window
        self._expected = 0
        self._out_of_order: dict[int, Delivered] = {}
        self._unacknowledged = 0
        self._ack_at: int | None = None
        # liveness
        self._last_received_at = now
        self._last_sent_at = now

    # -- sending --------------------------------------------------------------------------------

    def room(self) -> int:
        """How many more messages the peer's window takes now.

        The window reaches from the oldest message not acknowledged: what lies behind it, acknowledged out
        of order, still takes its place at the peer.
        """
        return self.window - (self._next_seq - self._oldest() & 255)

    def idle(self) -> bool:
        """Whether everything sent has been acknowledged."""
        return not self._in_flight and not self._waiting

    def waiting(self) -> int:
        """How many messages wait for ``poll``, those to be repeated apart."""
        return len(self._waiting)

    def _oldest(self) -> int:
        """The sequence number of the oldest message not acknowledged."""
        if self._in_flight:
            return self._in_flight[0].seq
        return self._waiting[0].seq if self._waiting else self._next_seq

    def send(self, kind: int, message: int, flags: int, request_id: int, body: bytes) -> None:
        """Put a message in line; ``poll`` gives its frames."""
        if len(body) > self.max_body:
            raise FrameSize("message of %d bytes; the peer takes %d" % (len(body), self.max_body))
        self._waiting.append(_OutgoingMessage(self._next_seq, kind, message, flags, request_id, body))
        self._next_seq = (self._next_seq + 1) & 255

    def schedule_ack(self) -> None:
        """Send at least a bare packet at the next poll."""
        self._ack_at = self._last_received_at

    def poll(self, now: int, most: int = 2 * MAX_WINDOW) -> list[bytearray]:
        """The frames to transmit now, at most so many messages; empty once the link has failed."""
        frames: list[bytearray] = []
        if self.failure is None:
            self._check_ends(now)
        if self.failure is not None:
            return frames
        in_flight = self._in_flight
        if self._timer_at is not None and ticks.diff(now, self._timer_at) >= 0:
            self._diagnostics.timeouts += 1
            self.rto_ms = min(self.rto_ms * 2, MAX_RTO_MS)
            self._timer_at = ticks.add(now, self.rto_ms)
            self._transmit(in_flight[0], now, frames)
        if self._resend:
            self._resend = False
            newest = self._newest_acked
            for sent in list(in_flight):
                if sent.counter < newest:
                    if len(frames) >= most:
                        self._resend = True
                        break
                    self._transmit(sent, now, frames)
        while (
            self._waiting
            and len(frames) < most
            and (self._waiting[0].seq - self._oldest() & 255) < self.window
        ):
            sent = self._waiting.pop(0)
            in_flight.append(sent)
            self._transmit(sent, now, frames)
        ack_due = self._ack_at is not None and ticks.diff(now, self._ack_at) >= 0
        if ack_due or ticks.diff(now, self._last_sent_at) >= KEEP_ALIVE_MS:
            self._bare(now, frames)
        return frames

    def close(self, now: int) -> bytearray:
        """The frame that tells the peer that this end has ended the session."""
        frames: list[bytearray] = []
        self._put(_OutgoingMessage(self._next_seq, CLOSE, 0, 0, 0, b""), now, frames)
        return frames[0]

    def silent_ms(self, now: int) -> int:
        """How long no authentic packet has come."""
        return ticks.diff(now, self._last_received_at)

    def has_pending_output(self) -> bool:
        """Whether messages wait for ``poll``, whatever the time."""
        return self._resend or bool(self._waiting)

    def deadline(self) -> int:
        """The tick at which ``poll`` must be called again, if nothing else happens before."""
        due = ticks.add(self._last_sent_at, KEEP_ALIVE_MS)
        silent = self.silence_deadline()
        if ticks.diff(silent, due) < 0:
            due = silent
        if self._ack_at is not None and ticks.diff(self._ack_at, due) < 0:
            due = self._ack_at
        if self._timer_at is not None and ticks.diff(self._timer_at, due) < 0:
            due = self._timer_at
        return due

    def silence_deadline(self) -> int:
        """The tick at which the link ends unless the peer says something."""
        return ticks.add(self._last_received_at, SILENCE_MS)

    def ended(self, now: int) -> bool:
        """Whether the link has failed by now, also where nothing can be sent."""
        if self.failure is None:
            self._check_ends(now)
        return self.failure is not None

    def _check_ends(self, now: int) -> None:
        if ticks.diff(now, self._last_received_at) >= SILENCE_MS:
            self.failure = PEER_SILENT
        elif self.session.sent >= MAX_COUNTER - 2 * MAX_WINDOW:
            self.failure = COUNTER_SPENT

    def _transmit(self, sent: _OutgoingMessage, now: int, frames: list[bytearray]) -> None:
        if sent.sends >= MAX_SENDS:
            self.failure = RETRIES_EXHAUSTED
            return
        if sent.sends:
            self._diagnostics.retransmitted += 1
        sent.sends += 1
        sent.at = now
        self._put(sent, now, frames)
        sent.counter = self.session.sent
        if self._timer_at is None:
            self._timer_at = ticks.add(now, self.rto_ms)

    def _bare(self, now: int, frames: list[bytearray]) -> None:
        self._diagnostics.bare_acks += 1
        self._put(_OutgoingMessage(self._next_seq, BARE, 0, 0, 0, b""), now, frames)

    def _put(self, sent: _OutgoingMessage, now: int, frames: list[bytearray]) -> None:
        expected = self._expected
        sack = 0
        for early in self._out_of_order:
            sack |= 1 << (early - expected - 1 & 255)
        session = self.session
        kind = sent.kind
        packet = session.seal(
            sent.seq, expected, sack, kind, sent.message, sent.flags, sent.request_id, sent.body
        )
        frames.append(frame.encode(packet))
        self._unacknowledged = 0
        self._ack_at = None
        self._last_sent_at = now
        self._diagnostics.frames_out += 1
        if kind != BARE:
            self._diagnostics.add_header(
                now, session.sent, sent.request_id, SENT | kind, sent.seq, expected, sent.message
            )

    # -- receiving ------------------------------------------------------------------------------

    def receive(self, packet: bytes | memoryview, now: int, busy: bool = False) -> "list[Delivered]":
        """Take one payload; return the messages it completes, in order.

        A busy end takes only the acknowledgement; the peer will send the message again.
        """
        delivered: list[Delivered] = []
        session = self.session
        if not session.open(packet):
            self._diagnostics.count(session.dropped)
            return delivered
        if self.failure is not None:
            return delivered
        _, _, _, seq, ack, sack, kind, message, flags, request_id = session.head
        self._last_received_at = now
        self._acknowledged(ack, sack, now)
        if kind == BARE:
            return delivered
        if kind == CLOSE:
            self.failure = CLOSED_BY_PEER
            return delivered
        if busy:
            self._diagnostics.busy += 1
            return delivered
        self._diagnostics.add_header(now, self.session.received, request_id, kind, seq, ack, message)
        ahead = seq - self._expected & 255
        if ahead == 0:
            delivered.append((kind, message, flags, request_id, session.body))
            self._expected = seq + 1 & 255
            while self._expected in self._out_of_order:
                delivered.append(self._out_of_order.pop(self._expected))
                self._expected = self._expected + 1 & 255
            self._unacknowledged += len(delivered)
            if self._out_of_order or self._unacknowledged * 2 >= self._own_window:
                self._ack_at = now
            elif self._ack_at is None:
                self._ack_at = ticks.add(now, ACK_DELAY_MS)
        else:
            self._ack_at = now
            if ahead < self._own_window:
                if seq in self._out_of_order:
                    self._diagnostics.duplicates += 1
                else:
                    self._out_of_order[seq] = (kind, message, flags, request_id, bytes(session.body))
            elif ahead >= 128:
                self._diagnostics.duplicates += 1
            else:
                self._diagnostics.out_of_window += 1
        return delivered

    def _acknowledged(self, ack: int, sack: int, now: int) -> None:
        in_flight = self._in_flight
        if not in_flight:
            return
        oldest = in_flight[0].seq
        unsent = self._waiting[0].seq if self._waiting else self._next_seq
        if (unsent - oldest & 255) < (ack - oldest & 255) < 128:
            return  # it names a message that was not sent yet
        left: list[_OutgoingMessage] = []
        newest = 0
        timed: _OutgoingMessage | None = None
        for sent in in_flight:
            ahead = sent.seq - ack & 255
            if ahead >= 128 or (ahead and sack >> (ahead - 1) & 1):
                if sent.counter > newest:
                    newest = sent.counter
                if sent.sends == 1:  # Karn: a repeated message tells nothing of the round trip
                    timed = sent
            else:
                left.append(sent)
        if not newest:
            return
        if timed is not None:  # one sample an acknowledgement: RFC 6298's gains are for one a round trip
            self._measure(ticks.diff(now, timed.at))
        self._in_flight = left
        self._timer_at = ticks.add(now, self.rto_ms) if left else None
        self._newest_acked = max(newest, self._newest_acked)
        for sent in left:
            if sent.counter < newest:
                self._resend = True
                break

    def _measure(self, round_trip_ms: int) -> None:
        """RFC 6298, section 2, in whole numbers."""
        if not self._measured:
            self._measured = True
            self._srtt8 = round_trip_ms * 8
            self._rttvar4 = round_trip_ms * 2
        else:
            error = round_trip_ms - (self._srtt8 >> 3)
            self._srtt8 += error
            self._rttvar4 += abs(error) - (self._rttvar4 >> 2)
        rto = (self._srtt8 >> 3) + max(GRANULARITY_MS, self._rttvar4)
        self.rto_ms = min(max(rto, MIN_RTO_MS), MAX_RTO_MS)
