"""The client's side of one device as a sans-IO state machine: requests, answers, events, reconnects.

``Connection`` never sleeps, reads a clock, starts a thread or touches a port. It decides when the port must
be opened again, and which error each failure is. ``io_loop.IoLoop`` runs it:

    port:     wants_port → port_opening, then port_opened or port_lost; take_port_drop → close the port
    bytes:    receive takes them, poll returns them; deadline is when to poll again
    requests: request, resolve, abandon; completions are the requests that have ended
    journal:  write_ahead.take_batch → write it, then batch_written or batch_failed
    recover:  after a call that was interrupted or failed half-way

The connection reads the journal when it is made, and never waits for the disk afterwards. ``write_ahead``
keeps what must be on disk first. The time-out of a command runs also while ``write_ahead`` holds it.
"""

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from random import Random
from typing import Any

from sabot_driver.credentials import without_secret
from sabot_driver.error_mapping import PERMANENT, attach_error, link_error, outcome, request_error, wrong_kind
from sabot_driver.errors import (
    Closed,
    DeviceFaulted,
    DeviceTimeout,
    JournalBusy,
    JournalError,
    JournalFull,
    LinkLost,
    Refused,
    SabotError,
    SessionEnded,
    VersionMismatch,
    refusal,
)
from sabot_driver.interrupt_safe_future import InterruptSafeFuture
from sabot_driver.journal import CommandRecord, Journal, JournalBatch
from sabot_driver.link_state import Completion, LinkState, Notice, Peer
from sabot_driver.serial_numbers import format_serial
from sabot_driver.state_tracker import StateTracker
from sabot_driver.write_ahead import WriteAhead, position
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
MAX_NOTICES = 1000  # while a listener does not return; then the oldest are dropped
CLOCK_TIMEOUT_MS = 10_000
UNRECORDED = frozenset({"set_clock", "locate"})  # commands that do no harm when they are repeated
NEEDS_DISK = frozenset({"open_round"})


@dataclass(slots=True)
class _OpenRequest:
    """A request that has not ended."""

    future: "Future[Any]"
    name: str
    answer: type[Message]
    is_command: bool
    recorded: bool
    may_be_sent: bool = True
    """False until there is a session in which it is not held: then it was certainly never sent."""


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
        self.write_ahead = WriteAhead(journal, owner)
        """Events and commands on their way to the journal."""
        self._simulator = simulator
        self._utc_us = utc_us
        self._mode = OWNER if owner else OBSERVER
        self.protocol = HostProtocol(
            key, self.write_ahead.numbers, random, serial, slot=slot, other_key=other_key
        )
        """The host's end of the wire protocol: numbers, retries and time-outs of requests."""
        self._jitter = Random(random(8))
        newest = self.write_ahead.newest_event()
        if newest is not None:
            self.protocol.resume_from(*newest)
        self._memory_id = b"" if newest is None else newest[0]
        self._open: dict[int, _OpenRequest] = {}
        self.completions: deque[Completion] = deque()
        """Requests that have ended. The shell completes the first one's future, then removes it."""
        self._notices: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._clock_unset = False  # in this session
        self._setting_clock: int | None = None  # the number of the command that does
        self._pause_ms = FIRST_PAUSE_MS
        self._retry_at: int | None = now
        self._drop_port = False
        self._good_frames = 0  # of this opening, to tell a silent device from another kind of device
        self._bytes_in = 0
        self._fault: messages.FaultRaised | None = None

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
        return self.peer is None and isinstance(self.problem, PERMANENT)

    def port_opening(self) -> None:
        """The port is being opened; it is not wanted again until that has failed."""
        self._retry_at = None

    def port_opened(self, now: int) -> None:
        """The port is open: begin the handshake."""
        self.link = LinkState.PROVING
        self._retry_at = None
        self._drop_port = False
        self._bytes_in = 0
        self._good_frames = self.protocol.diagnostics.frames_in
        self.protocol.connect(now, self._mode)

    def port_lost(self, now: int, error: SabotError) -> None:
        """The port could not be opened, or is gone."""
        if self.link in (LinkState.PROVING, LinkState.UP):
            self.protocol.disconnect()
            self.link = LinkState.DOWN
            self._retry_at = None
            self._take_notifications(now)
        if self.link is LinkState.DOWN and self._retry_at is None:
            self._went_down(error, now)

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes from the port."""
        if self.link in (LinkState.PROVING, LinkState.UP):
            self._bytes_in += len(data)
            self.protocol.receive(data, now)
            self._take_notifications(now)

    def poll(self, now: int) -> bytes:
        """Bytes for the port."""
        out = self.protocol.poll(now)
        self._take_notifications(now)
        return out if self.link in (LinkState.PROVING, LinkState.UP) else b""

    def report_bug(self, error: BaseException) -> None:
        """Report a bug in the driver; ``recover`` must follow."""
        words = f"the driver failed and opens a new session: {error!r}"
        why = SabotError(words, "Report this with 'sabot bundle'.")
        self._notices.append(Notice("driver_failed", str(why), why))

    def recover(self, now: int) -> None:
        """Continue in a new session after a call that was interrupted, or failed, half-way.

        Open requests wait for that session. The device repeats events after the last one that this side
        kept. A request that was just being completed ends with an unknown outcome.
        """
        self.protocol.disconnect()
        self.protocol.take_notifications()
        kept = self.write_ahead.newest_event()
        if kept is None:
            self.protocol.position = (0, 0)
        else:
            self._memory_id = kept[0]
            self.protocol.resume_from(*kept)
        words = "the call was interrupted while its answer was processed"
        for number, found in list(self._open.items()):
            if self.protocol.is_pending(number):
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
        due = self.protocol.deadline()
        return self.protocol.has_pending_output() or due is None or ticks.diff(now, due) >= 0

    def deadline(self, now: int) -> int | None:
        """The tick at which the port must be opened or closed, or ``poll`` is due, without other input."""
        if self._drop_port:
            return now
        due = self.protocol.deadline()
        retry = self._retry_at if self.link is LinkState.DOWN else None
        if due is None or (retry is not None and ticks.diff(retry, due) < 0):
            return retry
        return due

    def close(self, now: int | None = None) -> bytes:
        """End the session; open requests end as Closed. Returns the last bytes for the port.

        Without ``now`` nothing is sent: the connection may be in the middle of an interrupted call.
        """
        out = b""
        if now is not None and self.link in (LinkState.PROVING, LinkState.UP):
            out = self.protocol.close(now)
        else:
            self.protocol.disconnect()
        self.protocol.take_notifications()
        self.link = LinkState.CLOSED
        self._retry_at = None
        for number in list(self._open):
            self._give_up_held(number)
            self._finish(number, error=Closed(f"{self.url}: the client was closed"))
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
        recorded = is_command and name not in UNRECORDED and self.write_ahead.error is None
        held = is_command and self.write_ahead.must_hold(recorded)
        try:
            number = self.protocol.request(message.ID, body, now, timeout_ms, by, held)
        except RequestNotAllowed as error:
            if self.peer is not None and self.peer.limited:
                raise VersionMismatch(str(error)) from error
            advice = "Wait until some of the open requests have ended, then ask again."
            raise SabotError(str(error), advice) from error
        future: Future[AnswerT] = InterruptSafeFuture()
        goes_out = self.link is LinkState.UP and not held
        self._open[number] = _OpenRequest(future, name, message.ANSWER, is_command, recorded, goes_out)
        if recorded:
            kept = without_secret(name, body)
            self.write_ahead.add_record(
                CommandRecord(number, message.ID, kept, self.protocol.memory_id, self._utc_us(), None)
            )
        if held:
            self.write_ahead.hold(number, recorded)
        return number, future

    def _release(self) -> None:
        """Send the held commands that need not wait any more, in order."""
        while (number := self.write_ahead.next_free()) is not None:
            self.write_ahead.drop(number)
            self.protocol.release(number)
            if self.link is LinkState.UP and number in self._open:
                self._open[number].may_be_sent = True

    def _give_up_held(self, number: int) -> bool:
        """Give up a command; True if it was held, so that it was never sent and never will be."""
        if not self.write_ahead.drop(number):
            return False
        found = self._open.get(number)
        if found is not None and found.recorded:
            self.write_ahead.add_outcome(number, "not_executed")  # its record may be on its way to the disk
        self._release()
        return True

    def resolve(
        self, now: int, number: int, message: type[Request[AnswerT]], memory_id: bytes, timeout_ms: int
    ) -> "Future[AnswerT]":
        """Ask the device for the outcome of an earlier command; the future ends as the command would have."""
        self._check("resolve", False)
        self.check_ended(number)
        future: Future[AnswerT] = InterruptSafeFuture()
        self._open[number] = _OpenRequest(future, message.NAME, message.ANSWER, True, True)
        self.protocol.resolve(number, message.ID, memory_id, now, timeout_ms)
        return future

    def check_ended(self, number: int) -> None:
        """SabotError if the request is still open."""
        if number in self._open:
            raise SabotError(f"command {number} is still under way", "Wait for its own end.")

    def abandon(self, now: int, number: int) -> None:
        """Stop waiting for an answer. A command that was sent may still be executed."""
        self.protocol.abandon(number)
        self._give_up_held(number)
        self._open.pop(number, None)

    def _check(self, name: str, is_command: bool) -> None:
        if self.link is LinkState.CLOSED:
            raise Closed(f"{self.url}: the client was closed")
        error = self.write_ahead.error
        if error is not None:
            if name in NEEDS_DISK:
                raise JournalFull(f"{name}: not sent: {error}")
            if is_command and not self.write_ahead.numbers.left():
                raise JournalFull(f"{name}: not sent: no command number is left: {error}")

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

    def batch_written(self, batch: JournalBatch, now: int) -> None:
        """The batch is on disk: acknowledge its events and send its commands."""
        if self.write_ahead.written(batch):
            self._notices.append(Notice("journal_works", "the journal can be written again"))
        if batch.events and self._mode == OWNER:
            memory_id, boot_id, n = position(batch.events[-1])
            if n and memory_id == self.protocol.memory_id:  # another memory has events of the same numbers
                self.protocol.acknowledge(boot_id, n)
        self._release()
        self._set_clock(now)

    def batch_failed(self, batch: JournalBatch, error: JournalError) -> None:
        """The journal cannot be written: nothing is acknowledged, and no round is opened.

        Other commands are sent without a record, as long as numbers are left that are on disk.
        """
        if self.write_ahead.failed(batch, error):
            self._notices.append(Notice("journal_failed", str(error), error))
        for number in self.write_ahead.held():
            found = self._open[number]
            found.recorded = False
            if found.name in NEEDS_DISK or number >= self.write_ahead.numbers.reserved:
                self.write_ahead.drop(number)
                self.protocol.abandon(number)
                self._finish(number, error=JournalFull(f"{found.name}: not sent: {error}"))
        self._release()

    # -- what the device sends ------------------------------------------------------------------

    def _take_notifications(self, now: int) -> None:
        for each in self.protocol.take_notifications():
            if isinstance(each, RequestAnswered):
                self._answered(each)
            elif isinstance(each, RequestFailed):
                self._request_failed(each)
            elif isinstance(each, EventReceived):
                self._event(each)
            elif isinstance(each, EventGap):
                if each.reason == GapReason.MEMORY_LOST:
                    self._memory_id = self.protocol.memory_id
                self.tracker.forget_states()
                self.write_ahead.add_event(self._memory_id, each)
            elif isinstance(each, SessionUp):
                self._went_up(each, now)
            elif isinstance(each, AttachRefused):
                self.protocol.disconnect()
                self._went_down(attach_error(self.url, each), now)
            elif isinstance(each, SessionDown) and self.link in (LinkState.PROVING, LinkState.UP):
                garbage = self._bytes_in > 0 and self.protocol.diagnostics.frames_in == self._good_frames
                self._went_down(link_error(self.url, each.reason, garbage), now)
        if self.write_ahead.has_overflowed() and self.link in (LinkState.PROVING, LinkState.UP):
            self.protocol.disconnect()
            self.protocol.take_notifications()
            slow = JournalFull("the journal does not keep up with the device's events")
            self._went_down(self.write_ahead.error or slow, now)

    def _went_up(self, up: SessionUp, now: int) -> None:
        emulated = bool(up.flags & messages.IdentityFlag.SIMULATOR)
        if self._simulator is not None and emulated != self._simulator:
            self.protocol.disconnect()
            self.protocol.take_notifications()
            self._went_down(wrong_kind(self.url, up.serial, emulated), now)
            return
        self.peer = Peer(up.serial, up.boot_id, up.memory_id, up.version, up.limited, up.owner, up.flags)
        self._memory_id = up.memory_id
        self.link = LinkState.UP
        held = self.write_ahead.held()
        for number, each in self._open.items():
            each.may_be_sent = each.may_be_sent or number not in held
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
        self._retry_at = ticks.add(now, pause)  # once this is set, ``recover`` sees the link as down
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        self._notices.append(Notice("down", f"{error}; trying again in {pause / 1000:.1f} s", error))

    def _event(self, event: EventReceived) -> None:
        self.write_ahead.add_event(self._memory_id, event)
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

    def _request_failed(self, failed: RequestFailed) -> None:
        found = self._open.get(failed.request_id)
        if found is None:
            return
        if self._give_up_held(failed.request_id):
            words = "the journal was not written in the time given; the command is not executed"
            self._finish(failed.request_id, error=JournalBusy(f"{found.name}: not sent: {words}"))
            return
        problem = None if self.link is LinkState.UP else self.problem
        command = failed.request_id if found.is_command else None
        error = request_error(found.name, failed.reason, command, problem, found.may_be_sent)
        self._finish(failed.request_id, error=error)

    def _finish(
        self, number: int, answer: Any = None, error: SabotError | None = None, executed: bool = False
    ) -> None:
        found = self._open[number]
        if found.recorded:
            known = "done" if executed else outcome(error)
            if known is not None:
                self.write_ahead.add_outcome(number, known)
        if number == self._setting_clock:
            self._setting_clock = None
            if error is None or isinstance(error, Refused):
                self._clock_unset = False
        self.completions.append(Completion(found.future, answer, error))
        del self._open[number]  # last: a request that leaves here without a completion would wait for ever
