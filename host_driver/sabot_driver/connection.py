"""The client's side of one device as a sans-IO state machine: requests, answers, events, reconnects.

``Connection`` never sleeps, reads a clock, starts a thread or touches a port. It decides when the port must
be opened again, and which error each failure is. ``io_loop.IoLoop`` runs it:

    port:     wants_port → port_opening, then port_opened or port_lost; take_port_drop → close the port
    bytes:    receive takes them, poll returns them; deadline is when to poll again
    requests: request, resolve, abandon; completions are the requests that have ended
    journal:  take_batch → write it, then batch_written or batch_failed
    recover:  after a call that was interrupted or failed half-way

The connection reads the journal when it is made, and never waits for the disk afterwards. A ``JournalBatch``
holds what must be on disk first: events before they are acknowledged, a command and its number before it is
sent. Until then the command is *held*, and so are all commands behind it, because the device takes them in
the order of their numbers. Queries are not held. The time-out of a held command runs on.
"""

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from random import Random
from typing import Any

from sabot_driver.credentials import without_secret
from sabot_driver.error_mapping import attach_error, link_error, outcome, request_error, wrong_kind
from sabot_driver.errors import (
    Closed,
    DeviceFaulted,
    DeviceTimeout,
    JournalBusy,
    JournalError,
    JournalFull,
    KeyMissing,
    KeysLost,
    LinkLost,
    NotProvisioned,
    OwnerHeld,
    PortBusy,
    PortDenied,
    Refused,
    SabotError,
    SessionEnded,
    VersionMismatch,
    WrongDevice,
    refusal,
)
from sabot_driver.interrupt_safe_future import InterruptSafeFuture
from sabot_driver.journal import CommandRecord, Journal, JournalBatch, UnsavedEvent
from sabot_driver.link_state import Completion, LinkState, Notice, Peer
from sabot_driver.serial_numbers import format_serial
from sabot_driver.state_tracker import StateTracker
from sabot_protocol import ticks
from sabot_protocol.errors import FieldError, RequestNotAllowed
from sabot_protocol.host import messages
from sabot_protocol.host.message_base import AnswerT, Message, Request
from sabot_protocol.host.messages import GapReason, KeySlot, SetClock
from sabot_protocol.host_protocol import OBSERVER, OWNER, HostProtocol
from sabot_protocol.notifications import (
    AttachRefused,
    EventGap,
    EventReceived,
    RequestAnswered,
    RequestFailed,
    SessionDown,
    SessionUp,
)

FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 5000
MAX_UNSAVED = 4096  # events in memory that are not on disk; with more, the session ends
MAX_NOTICES = 1000  # while a listener does not return; then the oldest are dropped
CLOCK_TIMEOUT_MS = 10_000
UNRECORDED = frozenset({"set_clock", "locate"})  # commands that do no harm when they are repeated
NEEDS_DISK = frozenset({"open_round"})


@dataclass(slots=True)
class _Open:
    """A request until it ends."""

    future: "Future[Any]"
    name: str
    answer: type[Message]
    is_command: bool
    recorded: bool
    resolving: bool = False


class Connection:
    """The client's side of one device: session, open requests, events on their way to the journal."""

    def __init__(
        self,
        url: str,
        key: bytes,
        serial: bytes | None,
        journal: Journal,
        now: int,
        *,
        owner: bool,
        simulator: bool | None = None,
        slot: int = KeySlot.DEVICE,
        other_key: bytes | None = None,
        utc_us: Callable[[], int],
        random: Callable[[int], bytes],
    ) -> None:
        self.url = url
        self.link = LinkState.DOWN
        self.problem: SabotError | None = None
        """Why the link is down; None before the first attempt and while it is up."""
        self.peer: Peer | None = None
        self.tracker = StateTracker()
        self.journal_error: JournalError | None = None
        self._simulator = simulator
        self._journal = journal
        self._utc_us = utc_us
        self._mode = OWNER if owner else OBSERVER
        self._numbers = journal.numbers()
        self._end = HostProtocol(key, self._numbers, random, serial, slot=slot, other_key=other_key)
        self._jitter = Random(random(8))
        position = journal.position()
        if position is not None:
            self._end.resume_from(*position)
        self._memory_id = b"" if position is None else position[0]
        self._handed = position  # the last event that was given away to be put on disk
        self._open: dict[int, _Open] = {}
        self.completions: deque[Completion] = deque()
        """Requests that have ended. The shell completes the first one's future, then removes it."""
        self._notices: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._unsaved: list[UnsavedEvent] = []
        self._unrecorded: list[CommandRecord] = []  # commands whose record waits to be written
        self._held: dict[int, bool] = {}  # commands not sent, in order: whether for want of a record
        self._clock_unset = False  # in this session
        self._setting_clock: int | None = None  # the number of the command that does
        self._pause_ms = FIRST_PAUSE_MS
        self._retry_at: int | None = now
        self._drop_port = False
        self._good_frames = 0  # of this opening, to tell a silent device from another kind of device
        self._bytes_in = 0
        self._fault: messages.FaultRaised | None = None

    @property
    def protocol(self) -> "HostProtocol":
        """The host's end of the wire protocol, for its counters."""
        return self._end

    # -- the port -------------------------------------------------------------------------------

    def wants_port(self, now: int) -> bool:
        """Whether the port should be opened now."""
        return (
            self.link is LinkState.DOWN
            and self._retry_at is not None
            and ticks.diff(now, self._retry_at) >= 0
        )

    def take_port_drop(self) -> bool:
        """Whether the port should be closed; True once for each session that ended."""
        drop, self._drop_port = self._drop_port, False
        return drop

    def failed_permanently(self) -> bool:
        """Whether the first attempt has failed for a reason that trying again does not cure."""
        lasting = (
            WrongDevice
            | NotProvisioned
            | KeyMissing
            | KeysLost
            | OwnerHeld
            | PortDenied
            | PortBusy
            | JournalError
        )
        return self.peer is None and isinstance(self.problem, lasting)

    def has_batch(self) -> bool:
        """Whether something waits to be written, or a journal that failed is to be tried again."""
        return (
            bool(self._unsaved or self._unrecorded or self._journal.ended)
            or self.journal_error is not None
            or (self._numbers.are_few() and (self._mode == OWNER or bool(self._held)))
        )

    def port_opening(self) -> None:
        """The port is being opened; it is not wanted again until that has failed."""
        self._retry_at = None

    def port_opened(self, now: int) -> None:
        """The port is open: begin the handshake."""
        self.link = LinkState.PROVING
        self._retry_at = None
        self._drop_port = False
        self._bytes_in = 0
        self._good_frames = self._end.diagnostics.frames_in
        self._end.connect(now, self._mode)

    def port_lost(self, now: int, error: SabotError) -> None:
        """The port could not be opened, or is gone."""
        if self.link in (LinkState.PROVING, LinkState.UP):
            self._end.disconnect()
            self.link = LinkState.DOWN
            self._retry_at = None
            self._take(now)
        if self.link is LinkState.DOWN and self._retry_at is None:
            self._went_down(error, now)

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes from the port."""
        if self.link in (LinkState.PROVING, LinkState.UP):
            self._bytes_in += len(data)
            self._end.receive(data, now)
            self._take(now)

    def poll(self, now: int) -> bytes:
        """Bytes for the port."""
        out = self._end.poll(now)
        self._take(now)
        return out if self.link in (LinkState.PROVING, LinkState.UP) else b""

    def failed(self, error: BaseException) -> None:
        """Report a bug in the driver; ``recover`` must follow."""
        words = f"the driver failed and opens a new session: {error!r}"
        why = SabotError(words, "Report this with 'sabot bundle'.")
        self._notices.append(Notice("driver_failed", str(why), why))

    def recover(self, now: int) -> None:
        """Continue in a new session after a call that was interrupted, or failed, half-way.

        Open requests wait for that session. The device repeats events after the last one that this side
        kept. A request that was just being completed ends with an unknown outcome.
        """
        self._end.disconnect()
        self._end.take_notifications()
        kept = _position(self._unsaved[-1]) if self._unsaved else self._handed
        if kept is None:
            self._end.position = (0, 0)
        else:
            self._memory_id = kept[0]
            self._end.resume_from(*kept)
        words = "the call was interrupted while its answer was processed"
        for number, found in list(self._open.items()):
            if self._end.is_pending(number):
                continue
            if self._give_up_held(number):
                self._finish(number, error=JournalBusy(f"{found.name}: not sent: {words}"))
            elif found.is_command:
                self._finish(number, error=DeviceTimeout(f"{found.name}: {words}", number, found.name))
            else:
                self._finish(number, error=SessionEnded(f"{found.name}: {words}"))
        # interrupted while the port was being opened or lost
        going_down = self.link is LinkState.DOWN and self._retry_at is None
        if going_down or self.link in (LinkState.PROVING, LinkState.UP):
            self._went_down(LinkLost(f"{self.url}: interrupted; opening a new session"), now)

    def needs_poll(self, now: int) -> bool:
        """Whether ``poll`` is due: something waits to be sent, or a deadline has passed."""
        due = self._end.deadline()
        return self._end.has_pending_output() or due is None or ticks.diff(now, due) >= 0

    def deadline(self, now: int) -> int | None:
        """The tick at which the port must be opened or closed, or ``poll`` is due, without other input."""
        if self._drop_port:
            return now
        due = self._end.deadline()
        retry = self._retry_at if self.link is LinkState.DOWN else None
        if due is None or (retry is not None and ticks.diff(retry, due) < 0):
            return retry
        return due

    @property
    def key(self) -> bytes:
        """The key that the device has, as far as this side knows."""
        return self._end.key

    def close(self, now: int | None = None) -> bytes:
        """End the session; open requests end as Closed. Returns the last bytes for the port.

        Without ``now`` nothing is sent: the connection may be in the middle of an interrupted call.
        """
        out = b""
        if now is not None and self.link in (LinkState.PROVING, LinkState.UP):
            out = self._end.close(now)
        else:
            self._end.disconnect()
        self._end.take_notifications()
        self.link = LinkState.CLOSED
        self._retry_at = None
        for number in list(self._open):
            self._give_up_held(number)
            self._finish(number, error=Closed("the client was closed"))
        return out

    # -- requests -------------------------------------------------------------------------------

    def request(
        self, now: int, message: Request[AnswerT], timeout_ms: int, by: tuple[int, bytes] | None = None
    ) -> "tuple[int, Future[AnswerT]]":
        """Send a request: its number, and a future of the answer that ends within the time-out.

        ``by`` is the slot and the key of the person who authorises it.
        """
        body = message.pack()
        name, is_command = message.NAME, message.KIND == "command"
        self._check(name, is_command)
        # A round that is open goes on without a record if the journal has failed.
        recorded = is_command and name not in UNRECORDED and self.journal_error is None
        held = is_command and (recorded or bool(self._held) or not self._numbers.left())
        try:
            number = self._end.request(message.ID, body, now, timeout_ms, by, held)
        except RequestNotAllowed as error:
            if self.peer is not None and self.peer.limited:
                raise VersionMismatch(str(error)) from error
            raise SabotError(str(error), "Take the answers that wait, then ask again.") from error
        future: Future[AnswerT] = InterruptSafeFuture()
        self._open[number] = _Open(future, name, message.ANSWER, is_command, recorded)
        if recorded:
            kept = without_secret(name, body)
            self._unrecorded.append(
                CommandRecord(number, message.ID, kept, self._end.memory_id, self._utc_us(), None)
            )
        if held:
            self._held[number] = recorded
        return number, future

    def _release(self) -> None:
        """Send the held commands that need not wait any more, in order."""
        for number, for_record in list(self._held.items()):
            if for_record or number >= self._numbers.reserved:
                break
            del self._held[number]
            self._end.release(number)

    def _give_up_held(self, number: int) -> bool:
        """Give up a command; True if it was held, so that it was never sent and never will be."""
        if self._held.pop(number, None) is None:
            return False
        found = self._open.get(number)
        if found is not None and found.recorded:
            self._journal.ended[number] = "not_executed"  # its record may be on its way to the disk
        self._release()
        return True

    def resolve(
        self, now: int, number: int, message: type[Request[AnswerT]], memory_id: bytes, timeout_ms: int
    ) -> "Future[AnswerT]":
        """Ask the device for the outcome of an earlier command; the future ends as the command would have."""
        self._check("resolve", False)
        self.check_ended(number)
        future: Future[AnswerT] = InterruptSafeFuture()
        self._open[number] = _Open(future, message.NAME, message.ANSWER, True, True, resolving=True)
        self._end.resolve(number, message.ID, memory_id, now, timeout_ms)
        return future

    def check_ended(self, number: int) -> None:
        """SabotError if the request is still open."""
        if number in self._open:
            raise SabotError(f"command {number} is still under way", "Wait for its own end.")

    def abandon(self, now: int, number: int) -> None:
        """Stop waiting for an answer. A command that was sent may still be executed."""
        self._end.abandon(number)
        self._give_up_held(number)
        self._open.pop(number, None)

    def _check(self, name: str, is_command: bool) -> None:
        if self.link is LinkState.CLOSED:
            raise Closed("the client was closed")
        if self.journal_error is not None:
            if name in NEEDS_DISK:
                raise JournalFull(f"{name}: not sent: {self.journal_error}")
            if is_command and not self._numbers.left():
                raise JournalFull(f"{name}: not sent: no command number is left: {self.journal_error}")

    def notify(self, notice: Notice) -> None:
        """Queue a notice for listeners."""
        self._notices.append(notice)

    def has_notices(self) -> bool:
        """Whether notices wait for listeners."""
        return bool(self._notices)

    def take_notices(self) -> list[Notice]:
        """The notices since the last call."""
        notices = list(self._notices)
        self._notices.clear()
        return notices

    # -- the journal ----------------------------------------------------------------------------

    def take_batch(self) -> JournalBatch | None:
        """What must be written now; None if nothing. The next batch comes after this one's result."""
        if not self.has_batch():
            return None
        events = self._unsaved
        commands = [each for each in self._unrecorded if each.number in self._held]
        # while the journal fails, this is also how it is tried
        more = self._numbers.are_few() or self.journal_error is not None
        batch = JournalBatch(events, commands, self._numbers.ahead() if more else None)
        handed = _position(events[-1]) if events else self._handed
        # Last, and in one go: an exception before leaves the events here, else they would be lost.
        self._unsaved, self._unrecorded, self._handed = [], [], handed
        return batch

    def requeue(self, batch: JournalBatch) -> None:
        """Take back a batch that could not be written; nothing follows from it."""
        self._unsaved[:0] = batch.events
        self._unrecorded[:0] = batch.commands

    def batch_written(self, batch: JournalBatch, now: int) -> None:
        """The batch is on disk: acknowledge its events and send its commands."""
        if self.journal_error is not None:
            self.journal_error = None
            self._notices.append(Notice("journal_works", "the journal can be written again"))
        if batch.events and self._mode == OWNER:
            memory_id, boot_id, n = _position(batch.events[-1])
            if n and memory_id == self._end.memory_id:  # another memory has events of the same numbers
                self._end.acknowledge(boot_id, n)
        if batch.reserve is not None:
            self._numbers.reserved = batch.reserve
        for each in batch.commands:
            if each.number in self._held:
                self._held[each.number] = False
        self._release()
        self._set_clock(now)

    def batch_failed(self, batch: JournalBatch, error: JournalError) -> None:
        """The journal cannot be written: nothing is acknowledged, and no round is opened.

        Other commands are sent without a record, as long as numbers are left that are on disk.
        """
        self.requeue(batch)
        if self.journal_error is None:
            self._notices.append(Notice("journal_failed", str(error), error))
        self.journal_error = error
        self._unrecorded = []
        for number in list(self._held):
            found = self._open[number]
            found.recorded = False
            if found.name in NEEDS_DISK or number >= self._numbers.reserved:
                del self._held[number]
                self._end.abandon(number)
                self._finish(number, error=JournalFull(f"{found.name}: not sent: {error}"))
            else:
                self._held[number] = False
        self._release()

    # -- what the device sends ------------------------------------------------------------------

    def _take(self, now: int) -> None:
        for each in self._end.take_notifications():
            if isinstance(each, RequestAnswered):
                self._answered(each)
            elif isinstance(each, RequestFailed):
                self._failed(each)
            elif isinstance(each, EventReceived):
                self._event(each)
            elif isinstance(each, EventGap):
                if each.reason == GapReason.MEMORY_LOST:
                    self._memory_id = self._end.memory_id
                self.tracker.forget_states()
                self._unsaved.append((self._memory_id, each))
            elif isinstance(each, SessionUp):
                self._went_up(each, now)
            elif isinstance(each, AttachRefused):
                self._end.disconnect()
                self._went_down(attach_error(self.url, each), now)
            elif isinstance(each, SessionDown) and self.link in (LinkState.PROVING, LinkState.UP):
                garbage = self._bytes_in > 0 and self._end.diagnostics.frames_in == self._good_frames
                self._went_down(link_error(self.url, each.reason, garbage), now)
        if len(self._unsaved) > MAX_UNSAVED and self.link in (LinkState.PROVING, LinkState.UP):
            self._end.disconnect()
            self._end.take_notifications()
            error = self.journal_error or JournalFull("the journal does not keep up with the device's events")
            self._went_down(error, now)

    def _went_up(self, up: SessionUp, now: int) -> None:
        emulated = bool(up.flags & messages.IdentityFlag.SIMULATOR)
        if self._simulator is not None and emulated != self._simulator:
            self._end.disconnect()
            self._end.take_notifications()
            self._went_down(wrong_kind(self.url, up.serial, emulated), now)
            return
        self.peer = Peer(up.serial, up.boot_id, up.memory_id, up.version, up.limited, up.owner, up.flags)
        self._memory_id = up.memory_id
        self.link = LinkState.UP
        self.problem = None
        self._pause_ms = FIRST_PAUSE_MS
        if up.rebooted:
            self.tracker.forget_states()
            self._fault = None
            self._notices.append(Notice("rebooted", f"the device has restarted: boot {up.boot_id}"))
        who = format_serial(up.serial)
        self._notices.append(Notice("up", f"{self.url}: session with {who}, boot {up.boot_id}"))
        self._clock_unset = up.owner and not up.limited
        self._setting_clock = None  # one of an earlier session tells an old time
        self._set_clock(now)

    def _set_clock(self, now: int) -> None:
        """Set the device's clock, if it was not set in this session and can be."""
        if not self._clock_unset or self._setting_clock is not None or self.link is not LinkState.UP:
            return
        seconds, us = divmod(self._utc_us(), 1_000_000)
        try:
            self._setting_clock, _ = self.request(now, SetClock(seconds, us // 1000), CLOCK_TIMEOUT_MS)
        except SabotError as error:  # it is tried again when the journal works
            self._notices.append(Notice("clock_not_set", str(error), error))
        except FieldError as error:
            self._clock_unset = False
            why = SabotError(
                f"the device's clock is not set: this computer's is wrong ({error})",
                "Set this computer's date and time.",
            )
            self._notices.append(Notice("clock_not_set", str(why), why))

    def _went_down(self, error: SabotError, now: int) -> None:
        if self.link is LinkState.CLOSED:
            return
        self.link = LinkState.DOWN
        self.problem = error
        self._drop_port = True
        pause = self._jitter.randint(self._pause_ms // 2, self._pause_ms)
        self._retry_at = ticks.add(now, pause)  # from here on ``recover`` has nothing to do
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        self._notices.append(Notice("down", f"{error}; trying again in {pause / 1000:.1f} s", error))

    def _event(self, event: EventReceived) -> None:
        self._unsaved.append((self._memory_id, event))
        kind = messages.BY_ID.get(event.message)
        if kind is None:
            return
        if kind is messages.FaultRaised:
            with contextlib.suppress(FieldError):  # an unknown fault: the tracker says so
                self._fault = messages.FaultRaised.unpack(event.body)
        for words in self.tracker.observe(kind.NAME, event.body):
            self._notices.append(Notice("step_not_allowed", words))

    def _answered(self, answered: RequestAnswered) -> None:
        found = self._open.get(answered.request_id)
        if found is None:
            return
        if answered.status:
            error: SabotError = refusal(found.name, answered.status, answered.body)
            fault = self._fault
            if isinstance(error, DeviceFaulted) and fault is not None and fault.fault == error.fault:
                error = error.located(fault.place, fault.steps)
            self._finish(answered.request_id, error=error)
            return
        try:
            answer = found.answer.unpack(answered.body)
        except FieldError as error:
            why = VersionMismatch(f"{found.name}: executed, but its answer does not fit the schema: {error}")
            self._finish(answered.request_id, error=why, executed=True)
            return
        self._finish(answered.request_id, answer=answer)

    def _failed(self, failed: RequestFailed) -> None:
        found = self._open.get(failed.request_id)
        if found is None:
            return
        if self._give_up_held(failed.request_id):
            words = "the journal was not written in the time given; the command is not executed"
            self._finish(failed.request_id, error=JournalBusy(f"{found.name}: not sent: {words}"))
            return
        problem = None if self.link is LinkState.UP else self.problem
        command = failed.request_id if found.is_command else None
        self._finish(failed.request_id, error=request_error(found.name, failed.reason, command, problem))

    def _finish(
        self, number: int, answer: Any = None, error: SabotError | None = None, executed: bool = False
    ) -> None:
        found = self._open[number]
        if found.recorded:
            known = "done" if executed else outcome(error)
            if known is not None:
                self._journal.ended[number] = known
        if number == self._setting_clock:
            self._setting_clock = None
            if error is None or isinstance(error, Refused):
                self._clock_unset = False
        self.completions.append(Completion(found.future, answer, error))
        del self._open[number]  # last: a request that leaves here without a completion would wait for ever


def _reached(event: EventReceived | EventGap) -> tuple[int, int]:
    """Where reading goes on after an event or a gap: boot id and number of the last event that it covers."""
    if isinstance(event, EventReceived):
        return event.boot_id, event.n
    return event.before[0], event.before[1] - 1


def _position(event: UnsavedEvent) -> tuple[bytes, int, int]:
    return (event[0], *_reached(event[1]))
