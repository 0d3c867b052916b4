"""The client without its cable: requests, answers, events, reconnects. Bytes and ticks in and out.

It never sleeps, reads a clock, starts a thread or touches a port; the blocking and the asyncio client are two
thin shells over it. It decides when a cable should be opened again and what every failure is called.

It reads the journal when it is made, and never waits for the disk afterwards. What must be on disk before
something follows from it is handed to the shell as ``Work``: events before they are acknowledged, a command
and its number before it is sent. Meanwhile the command is *held*, and all commands behind it, because the
device takes them in the order of their numbers; queries are not. Its time-out goes on.

    shell: want_cable → cable_opening, open → cable_opened / cable_failed
    shell: bytes → receive;  poll → bytes;  deadline → when to poll again;  cable_lost when reading fails
    shell: ends → settle the futures;  take_work → put on disk, then on_disk or not_on_disk
    shell: mend, when somebody was interrupted in the midst of one of these
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
MAX_TOLD = 4096  # events in memory that are not on disk; then the cable is let go of
MAX_NOTICES = 1000  # while a listener does not return; then the oldest are dropped
CLOCK_TIMEOUT_MS = 10_000
UNRECORDED = frozenset({"set_clock", "locate"})  # commands whose repetition harms nobody
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
    """One client's side of one device."""

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
        self.ends: deque[Completion] = deque()
        """Requests that have ended; the shell settles the first and takes it away, until there is none."""
        self._notices: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._told: list[UnsavedEvent] = []
        self._given: list[CommandRecord] = []  # commands that wait to be put on disk
        self._held: dict[int, bool] = {}  # commands not sent yet, in order: whether for want of a record
        self._clock_unset = False  # in this session
        self._setting_clock: int | None = None  # the number of the command that does
        self._pause_ms = FIRST_PAUSE_MS
        self._retry_at: int | None = now
        self._drop_cable = False
        self._good_frames = 0  # of this cable, to tell a silent device from another kind of one
        self._bytes_in = 0
        self._fault: messages.FaultRaised | None = None

    @property
    def record(self) -> "HostProtocol":
        """The end of the wire, for its counters."""
        return self._end

    # -- the cable ------------------------------------------------------------------------------

    def want_cable(self, now: int) -> bool:
        """Whether the shell should open the cable now."""
        return (
            self.link is LinkState.DOWN
            and self._retry_at is not None
            and ticks.diff(now, self._retry_at) >= 0
        )

    def want_drop(self) -> bool:
        """Whether the shell should close the cable, which is of no use any more; asked once."""
        drop, self._drop_cable = self._drop_cable, False
        return drop

    def failed_permanently(self) -> bool:
        """Whether the first attempt has failed for a reason that trying again will not cure by itself."""
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

    def wants_attention(self, now: int) -> bool:
        """Whether a cable is to be opened or closed at this moment."""
        return self._drop_cable or self.want_cable(now)

    def has_dropped(self) -> bool:
        """Whether the cable is of no use any more and not yet closed."""
        return self._drop_cable

    def has_open(self) -> bool:
        """Whether any request has not ended."""
        return bool(self._open)

    def has_work(self) -> bool:
        """Whether something waits to be put on disk, or a journal that failed is to be tried again."""
        return (
            bool(self._told or self._given or self._journal.ended)
            or self.journal_error is not None
            or (self._numbers.are_few() and (self._mode == OWNER or bool(self._held)))
        )

    def cable_opening(self) -> None:
        """The cable is being opened; it is not wanted again until that has failed."""
        self._retry_at = None

    def cable_opened(self, now: int) -> None:
        """The cable is there: prove each other."""
        self.link = LinkState.PROVING
        self._retry_at = None
        self._drop_cable = False
        self._bytes_in = 0
        self._good_frames = self._end.diagnostics.frames_in
        self._end.connect(now, self._mode)

    def cable_failed(self, error: SabotError, now: int) -> None:
        """The cable could not be opened."""
        self._went_down(error, now)

    def cable_lost(self, error: SabotError, now: int) -> None:
        """The cable is gone."""
        if self.link in (LinkState.PROVING, LinkState.UP):
            self._end.disconnect()
            self.link = LinkState.DOWN
            self._take(now)
            self._went_down(error, now)

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the cable."""
        if self.link in (LinkState.PROVING, LinkState.UP):
            self._bytes_in += len(data)
            self._end.receive(data, now)
            self._take(now)

    def poll(self, now: int) -> bytes:
        """Bytes for the cable."""
        out = self._end.poll(now)
        self._take(now)
        return out if self.link in (LinkState.PROVING, LinkState.UP) else b""

    def failed(self, error: BaseException) -> None:
        """A thread of the driver failed by a mistake of its own; ``mend`` follows."""
        why = SabotError(f"the driver failed and begins anew: {error!r}", "Report this with 'sabot bundle'.")
        self._notices.append(Notice("driver_failed", str(why), why))

    def recover(self, now: int) -> None:
        """Somebody was interrupted in the midst of a call: go on in a new session, from what is certain.

        Requests wait for that session, events are told again from the last one that was kept. A request
        whose end was being dealt with has an end nobody knows.
        """
        self._end.disconnect()
        self._end.take_notifications()
        kept = _place(self._told[-1]) if self._told else self._handed
        if kept is None:
            self._end.position = (0, 0)
        else:
            self._memory_id = kept[0]
            self._end.resume_from(*kept)
        words = "somebody was interrupted while it was being answered"
        for number, found in list(self._open.items()):
            if self._end.is_pending(number):
                continue
            if self._give_up_held(number):
                self._finish(number, error=JournalBusy(f"{found.name}: not sent: {words}"))
            elif found.is_command:
                self._finish(number, error=DeviceTimeout(f"{found.name}: {words}", number, found.name))
            else:
                self._finish(number, error=SessionEnded(f"{found.name}: {words}"))
        going_down = self.link is LinkState.DOWN and self._retry_at is None  # it was interrupted amid that
        if going_down or self.link in (LinkState.PROVING, LinkState.UP):
            self._went_down(LinkLost(f"{self.url}: interrupted; beginning anew"), now)

    def has_pending_output(self, now: int) -> bool:
        """Whether ``poll`` is due: something waits to be said, or its time has come."""
        due = self._end.deadline()
        return self._end.has_pending_output() or due is None or ticks.diff(now, due) >= 0

    def deadline(self) -> int | None:
        """When ``poll`` or ``want_cable`` is due by itself."""
        due = self._end.deadline()
        retry = self._retry_at if self.link is LinkState.DOWN else None
        if due is None or (retry is not None and ticks.diff(retry, due) < 0):
            return retry
        return due

    @property
    def key(self) -> bytes:
        """The key that the device has, as far as this end knows."""
        return self._end.key

    def close(self, now: int | None = None) -> bytes:
        """Nobody wants the device any more; what is open ends as closed. The last bytes for the cable."""
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
        self,
        message: Request[AnswerT],
        now: int,
        timeout_ms: int,
        by: tuple[int, bytes] | None = None,
    ) -> "tuple[int, Future[AnswerT]]":
        """Ask; the future ends with the answer or one of our errors, at the latest when the time is up.

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
            self._given.append(
                CommandRecord(number, message.ID, kept, self._end.memory_id, self._utc_us(), None)
            )
        if held:
            self._held[number] = recorded
        return number, future

    def _release(self) -> None:
        """Let go of the commands that were held and need not be any more, in order."""
        for number, for_record in list(self._held.items()):
            if for_record or number >= self._numbers.reserved:
                break
            del self._held[number]
            self._end.release(number)

    def _give_up_held(self, number: int) -> bool:
        """A command is given up; whether it was held, so that it was never sent and never will be."""
        if self._held.pop(number, None) is None:
            return False
        found = self._open.get(number)
        if found is not None and found.recorded:
            self._journal.ended[number] = "not_executed"  # its record may be on its way to the disk
        self._release()
        return True

    def resolve(
        self, number: int, message: type[Request[AnswerT]], memory_id: bytes, now: int, timeout_ms: int
    ) -> "Future[AnswerT]":
        """Ask what became of an earlier command; the future ends as the command would have."""
        self._check("resolve", False)
        self.check_ended(number)
        future: Future[AnswerT] = InterruptSafeFuture()
        self._open[number] = _Open(future, message.NAME, message.ANSWER, True, True, resolving=True)
        self._end.resolve(number, message.ID, memory_id, now, timeout_ms)
        return future

    def check_ended(self, number: int) -> None:
        """SabotError for a request whose end somebody still waits for."""
        if number in self._open:
            raise SabotError(f"command {number} is still under way", "Wait for its own end.")

    def abandon(self, number: int) -> None:
        """Nobody waits for this answer any more. A command sent may still be executed."""
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
        """Something else that listeners are to be told."""
        self._notices.append(notice)

    def has_notices(self) -> bool:
        """Whether the driver has something to say of itself."""
        return bool(self._notices)

    def take_notices(self) -> list[Notice]:
        """What the driver has to say of itself since the last call."""
        notices = list(self._notices)
        self._notices.clear()
        return notices

    # -- the disk -------------------------------------------------------------------------------

    def take_work(self) -> JournalBatch | None:
        """What must go to disk now; None if nothing does. One piece of work at a time."""
        if not self.has_work():
            return None
        told, self._told = self._told, []
        if told:
            self._handed = _place(told[-1])
        given, self._given = [each for each in self._given if each.number in self._held], []
        # while the journal fails, this is also how it is tried
        more = self._numbers.are_few() or self.journal_error is not None
        return JournalBatch(told, given, self._numbers.ahead() if more else None)

    def requeue(self, work: JournalBatch) -> None:
        """It could not be put on disk: it waits, and nothing follows from it."""
        self._told[:0] = work.told
        self._given[:0] = work.given

    def on_disk(self, work: JournalBatch, now: int) -> None:
        """It is on disk: the device may forget these events, and is sent these commands."""
        if self.journal_error is not None:
            self.journal_error = None
            self._notices.append(Notice("journal_works", "the journal can be written again"))
        if work.told and self._mode == OWNER:
            memory_id, boot_id, n = _place(work.told[-1])
            if n and memory_id == self._end.memory_id:  # another memory has events of the same numbers
                self._end.acknowledge(boot_id, n)
        if work.reserve is not None:
            self._numbers.reserved = work.reserve
        for each in work.given:
            if each.number in self._held:
                self._held[each.number] = False
        self._release()
        self._set_clock(now)

    def not_on_disk(self, work: JournalBatch, error: JournalError) -> None:
        """The journal cannot be written: nothing is acknowledged, and no round is opened.

        Other commands go on without a record, as far as numbers are left that are on disk.
        """
        self.requeue(work)
        if self.journal_error is None:
            self._notices.append(Notice("journal_failed", str(error), error))
        self.journal_error = error
        self._given = []
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

    # -- what comes of it -----------------------------------------------------------------------

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
                self._told.append((self._memory_id, each))
            elif isinstance(each, SessionUp):
                self._went_up(each, now)
            elif isinstance(each, AttachRefused):
                self._end.disconnect()
                self._went_down(attach_error(self.url, each), now)
            elif isinstance(each, SessionDown) and self.link in (LinkState.PROVING, LinkState.UP):
                garbage = self._bytes_in > 0 and self._end.diagnostics.frames_in == self._good_frames
                self._went_down(link_error(self.url, each.reason, garbage), now)
        if len(self._told) > MAX_TOLD and self.link in (LinkState.PROVING, LinkState.UP):
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
        """Tell the device the time, if it was not told in this session and can be."""
        if not self._clock_unset or self._setting_clock is not None or self.link is not LinkState.UP:
            return
        seconds, us = divmod(self._utc_us(), 1_000_000)
        try:
            self._setting_clock, _ = self.request(SetClock(seconds, us // 1000), now, CLOCK_TIMEOUT_MS)
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
        self._drop_cable = True
        pause = self._jitter.randint(self._pause_ms // 2, self._pause_ms)
        self._retry_at = ticks.add(now, pause)  # from here on it is down, and ``mend`` has nothing to do
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        self._notices.append(Notice("down", f"{error}; trying again in {pause / 1000:.1f} s", error))

    def _event(self, event: EventReceived) -> None:
        self._told.append((self._memory_id, event))
        kind = messages.BY_ID.get(event.message)
        if kind is None:
            return
        if kind is messages.FaultRaised:
            with contextlib.suppress(FieldError):  # a fault this version does not know: the follower says so
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
        found = self._open.pop(number)
        if found.recorded:
            known = "done" if executed else outcome(error)
            if known is not None:
                self._journal.ended[number] = known
        if number == self._setting_clock:
            self._setting_clock = None
            if error is None or isinstance(error, Refused):
                self._clock_unset = False
        self.ends.append(Completion(found.future, answer, error))


def _reached(told: EventReceived | EventGap) -> tuple[int, int]:
    """The last event that is known of, or known to be lost, once this is: boot id and number."""
    if isinstance(told, EventReceived):
        return told.boot_id, told.n
    return told.before[0], told.before[1] - 1


def _place(told: UnsavedEvent) -> tuple[bytes, int, int]:
    return (told[0], *_reached(told[1]))
