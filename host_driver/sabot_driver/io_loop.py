"""A core with its cable: the threads that read, keep time and write the journal.

Both clients are shells over this. Whoever asks writes to the port itself; a keeper does what is due by time;
a reader thread opens the cable, which may take seconds, and takes what comes; a scribe puts on disk what must
be there, and only then has events acknowledged and commands sent. The scribe never writes to the disk with
the lock held: a disk that lets it wait holds up neither the cable nor a call beyond its time-out.

A thread that asks one thing after the other reads the cable itself while it waits (it *leads*), so that its
round trips cost no change of threads: the reader has stepped aside after the first answer, and comes back
when nobody has led for a moment, or when others wait for whom nobody reads.

Ctrl-C can end a call anywhere, also in the midst of the core. ``_unfinished`` is set while somebody is in
there; whoever comes next and finds it set has the core mended first. Locks are entered by themselves, never
through a condition: a condition's way in is Python, and an interruption on it would leave the lock held.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from sabot_driver.clock import Clock
from sabot_driver.connection import Connection
from sabot_driver.errors import Closed, Forked, JournalError, SabotError
from sabot_driver.journal import Journal, JournalBatch, JournalEntry
from sabot_driver.link_state import Completion, Notice
from sabot_driver.transports import Transport
from sabot_protocol import ticks
from sabot_protocol.errors import ProtocolError

log = logging.getLogger("sabot")

JOIN_S = 10.0
RETRY_DISK_S = 1.0
RESTART_S = 0.1  # before a thread that failed begins again
LONGEST_SLEEP_S = 60.0
ASIDE_S = 0.01  # how long the reader leaves the cable to others, after the last of them has gone

T = TypeVar("T")
Listener = Callable[[Notice], None]


class IoLoop:
    """One device's cable, kept open as long as it is wanted."""

    def __init__(self, core: Connection, transport: Transport, journal: Journal, clock: Clock) -> None:
        self.connection = core
        self.transport = transport
        self.journal = journal
        self.clock = clock
        self.listeners: list[Listener] = []
        self.row_listeners: list[Callable[[], None]] = []
        """Called when the journal has new rows, or when the line is closed; they must not wait."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # the link, or closing
        self._due = threading.Condition(self._lock)  # the keeper has something to do
        self._work = threading.Condition(self._lock)  # the scribe has
        self._keeper_until: int | None = 0  # the tick the keeper sleeps until; None for long
        self._rows_lock = threading.RLock()
        self._new_rows = threading.Condition(self._rows_lock)
        self._rows = journal.last_id()
        self._cable = 1  # counts cables, so that a reader knows when its own is gone
        self._readers: list[threading.Thread] = []
        self._closing = False
        self._unfinished = False  # somebody is in the core, or was interrupted there
        self._telling = False  # listeners are being told of notices
        self._aside = threading.Condition(self._lock)  # the reader waits here while others read
        self._stepped_aside = 0  # the cable whose reader does
        self._leader = 0  # the thread that reads in its place
        self._led = 0  # how often somebody has
        self._left = threading.Condition(self._lock)  # the leader of a cable that is gone has seen it
        self._followers: set[int] = set()  # threads that wait for an answer and do not read
        self._keeper = self._thread("keeper", self._keep)
        self._scribe = self._thread("scribe", self._write)
        self.failure: BaseException | None = None
        self._scribe_ended = False
        self._journal_left = False  # to the scribe, who could not end in time
        self._pid = os.getpid()

    def start(self) -> None:
        """Begin to keep the line."""
        self._keeper.start()
        self._scribe.start()

    # -- for the shells -------------------------------------------------------------------------

    def ask(self, what: Callable[[int], T], will_wait: bool = False) -> T:
        """Do something with the core at this moment, and send what comes of it.

        Who says ``will_wait`` calls ``wait`` next, and need not be read for.
        """
        self.check_process()
        with self._lock:
            if self._closing:
                raise Closed("the client was closed")
            self._enter()
            try:
                result = what(self.clock.now_ms())
            except (SabotError, ProtocolError):
                self._unfinished = False
                raise
            self._speak()
            self._hasten()
            self._unfinished = False
            if self._stepped_aside and not will_wait:
                self._aside.notify()
        self._settle()
        return result

    def check_process(self) -> None:
        """Forked, in a child of the process that has the line's threads: its calls would wait in vain."""
        if os.getpid() != self._pid:
            raise Forked(f"{self.connection.url}: this client belongs to process {self._pid}")

    def wait(self, future: "Future[T]", timeout_s: float) -> T:
        """What a future ends with; TimeoutError when it has not ended by then.

        The calling thread reads the cable itself if nobody else does.
        """
        self.check_process()
        ends = time.monotonic() + timeout_s
        left = timeout_s
        while left > 0 and not future.done():
            try:
                cable = self._begin_to_lead()
                if not cable:
                    return future.result(left)
                while left > 0 and self._take_in(cable, left) and not future.done():
                    left = ends - time.monotonic()
            finally:
                try:
                    self._stop_waiting()
                except KeyboardInterrupt:
                    self._stop_waiting()
                    raise
            left = ends - time.monotonic()
        return future.result(0)

    def expire(self, future: "Future[T]") -> None:
        """A request's time is up: end it now, without waiting for the keeper, who may be busy.

        It ends even if notices of before have not been told yet.
        """
        self.ask(lambda now: None)
        for end in self.look(lambda: list(self.connection.ends)):
            if end.future is future:
                settle(end)
                with suppress(ValueError):  # another thread has settled it too
                    self.connection.ends.remove(end)

    def look(self, what: Callable[[], T]) -> T:
        """Read something of the core."""
        self.check_process()
        with self._lock:
            return what()

    def wait_link(self, done: Callable[[Connection], bool], timeout_s: float) -> bool:
        """Wait until the link is as wanted and listeners were told so, or time is up; whether it is."""

        def reached() -> bool:
            return self._closing or (done(self.connection) and not self._has_untold())

        self.check_process()
        with self._lock:
            return self._changed.wait_for(reached, timeout_s)

    def rows_after(self, id: int, timeout_s: float | None) -> list[JournalEntry]:
        """Rows of the journal after one; waits for the first, none when time is up. Closed when it is."""
        self.check_process()
        with self._rows_lock:
            self._new_rows.wait_for(lambda: self._rows > id or self._closing, timeout_s)
            if self._rows <= id:
                if self._closing:
                    raise Closed("the client was closed")
                return []
        return self.rows_now(id)

    def rows_now(self, after: int) -> list[JournalEntry]:
        """Rows after one that are there at this moment, up to the newest that listeners were told of."""
        upto = self.rows
        return [row for row in self.journal.after(after) if row.id <= upto]

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait for the line's end, or until time is up; whether it is over."""
        with self._rows_lock:
            return self._new_rows.wait_for(lambda: self._closing, timeout_s)

    def notify(self, notice: Notice) -> None:
        """Have listeners told something of the driver."""
        with self._lock:
            self.connection.notify(notice)
            self._due.notify()

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self._closing

    @property
    def rows(self) -> int:
        """The newest row's id."""
        self.check_process()
        with self._rows_lock:
            return self._rows

    def close(self) -> None:
        """Let go of the device: threads end, files are closed. A second time does nothing.

        Nor does it in a forked child: cable and files are the parent's.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._say_goodbye()
            self._cable += 1
            self.transport.wake()
            self._wake_all()
        self._settle()  # nobody waits for the threads to end, one of which may wait for the disk
        with self._lock:
            self._wait_for_leader()
        me = threading.current_thread()
        for thread in (self._keeper, self._scribe, *self._readers):
            if thread is not me and thread.ident is not None:
                thread.join(JOIN_S)
        self.transport.close()
        self._tell()
        self._settle()
        self._call_row_listeners()
        with self._lock:
            self._journal_left = self._scribe.ident is not None and not self._scribe_ended
        if self._journal_left:
            log.warning("the disk does not answer: the journal is closed when it does")
        else:
            self.journal.close()

    def _say_goodbye(self) -> None:
        """End the session in order, so that the device is free at once. The lock is held."""
        out = self.connection.close(None if self._unfinished else self.clock.now_ms())
        if out:
            with suppress(SabotError):  # it is over either way; the device then notices the silence
                self.transport.write(out)

    # -- threads --------------------------------------------------------------------------------

    def _thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=self._guard, args=(work,), name=f"sabot-{name}", daemon=True)

    def _guard(self, work: Callable[[], None]) -> None:
        """Work, and begin again after a failure: its cause is told, and the session begins anew."""
        while True:
            try:
                work()
                return
            except Exception as error:  # a thread that dies must not leave others waiting
                log.exception("the driver's %s failed", threading.current_thread().name)
                self.failure = error
                with self._lock:
                    if self._closing:
                        return
                    self._telling = False
                    self.connection.failed(error)
                    self._recover()
            time.sleep(RESTART_S)

    def _wake_all(self) -> None:
        for condition in (self._changed, self._due, self._work, self._aside):
            condition.notify_all()
        with self._rows_lock:
            self._new_rows.notify_all()

    def _hasten(self) -> None:
        """Wake whoever has work now. The lock is held."""
        core = self.connection
        if core.has_work():
            self._work.notify()
        due = core.deadline()
        until = self._keeper_until
        sooner = due is not None and (until is None or ticks.diff(due, until) < 0)
        if sooner or core.has_dropped():
            self._due.notify()

    def _keep(self) -> None:
        """Have the cable opened when it is wanted, and poll when something is due."""
        while True:
            with self._lock:
                if self._closing:
                    return
                now = self.clock.now_ms()
                if self._unfinished:
                    self._recover()
                drop = self.connection.want_drop()
                wanted = self.connection.want_cable(now)
            if drop:
                self._hang_up()
            if wanted:
                self._pick_up()
            with self._lock:
                self._enter()
                self._speak()
                if self.connection.has_work():
                    self._work.notify()
                self._unfinished = False
            self._settle()
            with self._lock:
                idle = not self.connection.has_notices() and not self.connection.wants_attention(
                    self.clock.now_ms()
                )
                if idle and not self._closing:
                    self._keeper_until = self.connection.deadline()
                    until = self._keeper_until
                    self._due.wait(LONGEST_SLEEP_S if until is None else self.clock.seconds_until(until))

    def _hang_up(self) -> None:
        with self._lock:
            self._cable += 1
            self.transport.wake()
            self._aside.notify_all()
            self._wait_for_leader()
        self._join_readers()
        self.transport.close()

    def _join_readers(self) -> None:
        for thread in self._readers:
            thread.join(JOIN_S)
        self._readers = [each for each in self._readers if each.is_alive()]

    def _pick_up(self) -> None:
        with self._lock:
            if self._closing:
                return
            self.connection.cable_opening()
            cable = self._cable
            opened: list[bool] = []  # once, also if the thread fails and begins again
            reader = self._thread("reader", lambda: self._read(cable, opened))
            self._readers.append(reader)
            reader.start()

    def _open(self, cable: int) -> bool:
        """Open a cable; False if that fails, or if nobody wants it any more when it is open."""
        failed: SabotError | None = None
        try:
            self.transport.open()
        except SabotError as error:
            failed = error
        with self._lock:
            wanted = cable == self._cable and not self._closing
            if wanted:
                self._enter()
                now = self.clock.now_ms()
                if failed is None:
                    self.connection.cable_opened(now)
                    self._speak()
                else:
                    self.connection.cable_failed(failed, now)
                self._hasten()
                self._unfinished = False
        self._settle()
        return wanted and failed is None

    def _read(self, cable: int, opened: list[bool]) -> None:
        """Open one cable, and take what comes over it until it is gone."""
        if not opened:
            opened.append(self._open(cable))
        while opened[0] and self._take_in(cable, None):
            if self._followers and not self.connection.has_open():
                self._step_aside(cable)

    def _take_in(self, cable: int, seconds: float | None) -> bool:
        """Read once, for so long; False when the cable is gone."""
        if cable != self._cable:
            return False
        try:
            data = self.transport.read(seconds)
        except SabotError as error:
            with self._lock:
                if cable == self._cable and not self._closing:
                    self._enter()
                    self.connection.cable_lost(error, self.clock.now_ms())
                    self._hasten()
                    self._unfinished = False
            self._settle()
            return False
        if not data:
            return cable == self._cable
        with self._lock:
            if cable != self._cable or self._closing:
                return False
            self._enter()
            now = self.clock.now_ms()
            self.connection.receive(data, now)
            if self.connection.has_pending_output(now):
                self._speak()
            self._hasten()
            self._unfinished = False
        self._settle()
        return True

    # -- who reads ------------------------------------------------------------------------------

    def _step_aside(self, cable: int) -> None:
        """Leave the cable to those who ask, until none of them has read for a moment."""
        with self._lock:
            self._stepped_aside = cable
            led = -1
            while cable == self._cable and not self._closing:
                if not self._leader:
                    if led == self._led or self.connection.has_open():
                        break
                    led = self._led
                self._aside.wait(ASIDE_S)
            self._stepped_aside = 0

    def _begin_to_lead(self) -> int:
        """The cable to read, if its reader has stepped aside and nobody else leads; 0 makes a follower."""
        me = threading.get_ident()
        with self._lock:
            if self._leader in (0, me) and self._stepped_aside == self._cable and not self._closing:
                self._leader = me
                return self._stepped_aside
            self._followers.add(me)
            return 0

    def _stop_waiting(self) -> None:
        """No longer lead or follow."""
        me = threading.get_ident()
        with self._lock:
            self._followers.discard(me)
            if self._leader != me:
                return
            self._leader = 0
            self._led += 1
            if self.connection.has_open():
                self._aside.notify()  # others wait, and nobody reads
            if self._stepped_aside != self._cable or self._closing:
                self._left.notify_all()

    def _wait_for_leader(self) -> None:
        """A cable is about to be closed: whoever reads it has to leave it first. The lock is held."""
        if self._leader != threading.get_ident():
            self._left.wait_for(lambda: not self._leader, JOIN_S)

    # -- the core -------------------------------------------------------------------------------

    def _enter(self) -> None:
        """Begin to do something with the core; ``_unfinished`` is cleared after it. The lock is held."""
        if self._unfinished:
            self._recover()
        self._unfinished = True

    def _recover(self) -> None:
        self.connection.recover(self.clock.now_ms())
        self._unfinished = False
        self._due.notify()

    def _speak(self) -> None:
        """Put on the cable what the core has to say. The lock is held."""
        core = self.connection
        now = self.clock.now_ms()
        out = core.poll(now)
        if not out:
            return
        try:
            self.transport.write(out)
        except SabotError as error:
            core.cable_lost(error, now)
            self._due.notify()

    def _settle(self) -> None:
        """End futures, and see to it that listeners are told, with no lock held.

        A notice is told before any answer that came after it ends its call: a program that has the answer
        of a new session has been told of that session. While notices wait, the keeper ends the futures.
        """
        core = self.connection
        keeper = threading.current_thread() is self._keeper
        if keeper and core.has_notices():
            self._tell()
        settled = False
        while core.ends:
            try:
                end = core.ends[0]
            except IndexError:  # another thread has just settled the last one
                break
            if self._has_untold():  # asked after the end was seen: what came before it is told by now
                if not keeper:
                    break
                self._tell()
            settle(end)
            settled = True
            with suppress(ValueError):  # another thread has settled it too
                core.ends.remove(end)
        leader = self._leader
        if settled and leader and leader != threading.get_ident():
            self.transport.wake()  # its answer may be among them
        if not keeper and self._has_untold():
            with self._lock:
                self._due.notify()

    def _has_untold(self) -> bool:
        """Whether notices wait, or are being told, so that answers wait for them; none do at the end."""
        return (self.connection.has_notices() or self._telling) and not self._closing

    def _tell(self) -> None:
        """Log notices and tell listeners, with no lock held. Only the keeper does, whom no Ctrl-C strikes.

        The log's lock, too, would stay held after an interruption.
        """
        self._telling = True
        with self._lock:
            notices = self.connection.take_notices()
        for notice in notices:
            grave = notice.error is not None or notice.kind == "step_not_allowed"
            log.log(logging.WARNING if grave else logging.INFO, "%s", notice.text)
            for listener in list(self.listeners):
                try:
                    listener(notice)
                except Exception:  # the program's own mistake; the link goes on
                    log.exception("a listener failed at the notice '%s'", notice.kind)
        self._telling = False
        if notices:
            with self._lock:
                self._changed.notify_all()

    def _write(self) -> None:
        """Put on disk what must be there, much at a time, and have done what follows from it."""
        try:
            while self._write_once():
                pass
        finally:
            with self._lock:
                self._scribe_ended = self._closing
                left = self._journal_left
            if left:
                self.journal.close()

    def _write_once(self) -> bool:
        """Wait for work and do it; False when the line is closed."""
        with self._lock:
            self._work.wait_for(lambda: self.connection.has_work() or self._closing)
            work = self.connection.take_work()
        if work is None:
            return False
        if self._write_down(work):
            return True
        with self._lock:
            return not self._work.wait_for(lambda: self._closing, RETRY_DISK_S)

    def _write_down(self, work: JournalBatch) -> bool:
        """Write with no lock held; False if the journal cannot be written."""
        try:
            newest = self.journal.write(work, self.clock.utc_us())
        except JournalError as error:
            failed = error
        except Exception:
            with self._lock:
                self.connection.requeue(work)
            raise
        else:
            if newest is not None:
                with self._rows_lock:
                    self._rows = newest
                    self._new_rows.notify_all()
                self._call_row_listeners()
            self._follow_up(lambda now: self.connection.on_disk(work, now))
            return True
        self._follow_up(lambda now: self.connection.not_on_disk(work, failed))
        return False

    def _follow_up(self, what: Callable[[int], None]) -> None:
        """Do something with the core, and send what comes of it; also while the line is being closed."""
        with self._lock:
            self._enter()
            what(self.clock.now_ms())
            self._speak()
            self._hasten()
            self._unfinished = False
        self._settle()

    def _call_row_listeners(self) -> None:
        for listener in list(self.row_listeners):
            try:
                listener()
            except Exception:  # an event loop may end at this moment; the journal goes on
                log.exception("a listener of the journal failed")


def settle(end: Completion) -> None:
    """Give a future its end; one that was cancelled meanwhile stays so."""
    future: Future[object] = end.future
    try:
        if end.error is not None:
            future.set_exception(end.error)
        else:
            future.set_result(end.answer)
    except InvalidStateError:
        pass
