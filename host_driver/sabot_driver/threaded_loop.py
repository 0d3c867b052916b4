"""The thread shell: an ``IoLoop`` run by the driver's own threads, and the waits of the programs that use it.

- A program's thread runs its request itself, under the lock, and writes to the port. Then it waits.
- The reader opens the port, which may take seconds, and steps the loop with what it reads.
- The timer steps the loop when something is due. It also logs notices and calls listeners.
- The journal writer writes batches without the lock. A slow disk delays neither the port nor a time-out.

Ctrl-C can end a program's call anywhere, also within the loop, which recovers at its next use. Locks are
entered directly, never through a condition: a condition's ``__enter__`` is Python code, and an interruption
there would leave the lock held. The driver's threads are never interrupted.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

from sabot_driver.clock import Clock
from sabot_driver.connection import Connection
from sabot_driver.errors import Closed, Forked
from sabot_driver.io_loop import BatchResult, IoLoop, PortLost, PortOpened
from sabot_driver.journal import Journal, JournalBatch, JournalEntry
from sabot_driver.link_state import Completion, LinkState, Notice
from sabot_driver.transports import Transport
from sabot_protocol import ticks

log = logging.getLogger("sabot")

JOIN_S = 10.0
RESTART_MS = 100  # the pause after a step that failed by a bug
LONGEST_SLEEP_S = 60.0

P = ParamSpec("P")
T = TypeVar("T")
Listener = Callable[[Notice], None]


class ReaderPort:
    """A transport with a thread that opens, reads and closes it, so that no one closes it under a read."""

    def __init__(self, transport: Transport, ready: Callable[[], None]) -> None:
        """``ready`` is called in the thread when ``take`` has something."""
        self._transport = transport
        self._ready = ready
        self._opening = 0  # counts openings, so that what a closed one still reports is dropped
        self._inputs: deque[tuple[int, bytes | PortOpened | PortLost]] = deque()
        self._thread: threading.Thread | None = None

    def start_open(self) -> None:
        """Open in a new thread, after the thread of the last opening has ended."""
        self._opening += 1
        args = (self._opening, self._thread)
        self._thread = threading.Thread(target=self._run, args=args, name="sabot-reader", daemon=True)
        self._thread.start()

    def start_close(self) -> None:
        """Have the thread close the transport."""
        self._opening += 1
        self._transport.wake()

    def take(self) -> list[bytes | PortOpened | PortLost]:
        """What the thread of this opening has reported."""
        taken = []
        while self._inputs:
            opening, each = self._inputs.popleft()
            if opening == self._opening:
                taken.append(each)
        return taken

    def write(self, data: bytes) -> None:
        """Write in the calling thread."""
        self._transport.write(data)

    def join(self) -> None:
        """Wait until the transport is closed."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _run(self, opening: int, before: threading.Thread | None) -> None:
        if before is not None:
            before.join(JOIN_S)
        try:
            self._transport.open()
            self._put(opening, PortOpened())
            while opening == self._opening:
                data = self._transport.read()
                if data:
                    self._put(opening, data)
        except Exception as error:  # noqa: BLE001 (the loop tells a lost port from a bug)
            self._put(opening, PortLost(error))
        finally:
            self._transport.close()

    def _put(self, opening: int, each: bytes | PortOpened | PortLost) -> None:
        self._inputs.append((opening, each))
        self._ready()


class JournalThread:
    """Writes batches in a thread of its own. The thread closes the journal when it ends."""

    def __init__(
        self, journal: Journal, clock: Clock, lock: threading.RLock, ready: Callable[[], None]
    ) -> None:
        """``ready`` is called in the thread when ``take`` has something, and when the loop should step."""
        self._journal = journal
        self._clock = clock
        self._ready = ready
        self._lock = lock
        self._wanted = threading.Condition(lock)
        self._step_wanted = False
        self._batch: JournalBatch | None = None
        self._result: BatchResult | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="sabot-journal", daemon=True)
        self.run = self._thread.start

    def start(self, batch: JournalBatch) -> None:
        """Begin to write. The lock is held."""
        self._batch = batch
        self._wanted.notify()

    def take(self) -> BatchResult | None:
        """The result, once. The lock is held."""
        result, self._result = self._result, None
        return result

    def wake(self) -> None:
        """Have the thread step the loop, which then has a batch for it. The lock is held."""
        self._step_wanted = True
        self._wanted.notify()

    def stop(self) -> bool:
        """End the thread; False if the disk does not answer, and the journal is closed when it does."""
        with self._lock:
            self._stopped = True
            self._wanted.notify()
        if self._thread.ident is None:  # it was never started
            self._journal.close()
        elif self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (self._batch or self._step_wanted or self._stopped):
                    self._wanted.wait()
                batch, self._batch = self._batch, None
                self._step_wanted = False
                if batch is None and self._stopped:
                    break
            if batch is not None:
                self._write(batch)
            self._ready()
        self._journal.close()

    def _write(self, batch: JournalBatch) -> None:
        try:
            result = BatchResult(batch, self._journal.write(batch, self._clock.utc_us()))
        except Exception as error:  # noqa: BLE001 (the loop tells a failed disk from a bug)
            result = BatchResult(batch, error=error)
        with self._lock:
            self._result = result


class ThreadedLoop:
    """One device's connection, kept by threads until it is closed."""

    def __init__(self, connection: Connection, transport: Transport, journal: Journal, clock: Clock) -> None:
        self.connection = connection
        self.transport = transport
        self.journal = journal
        self.clock = clock
        self.listeners: list[Listener] = []
        """Called by the timer's thread with each notice."""
        self.row_listeners: list[Callable[[], None]] = []
        """Called when the journal has new rows, or when the loop is closed; they must not wait."""
        self.failure: BaseException | None = None
        """The last bug that ended a step."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # the link, the newest row, or closing
        self._due = threading.Condition(self._lock)  # the timer has something to do
        self._timer_until: int | None = 0  # the tick until which the timer sleeps; None for long
        self._closing = False
        self._telling = False  # listeners are being called
        self._rows = journal.last_id()
        self._port = ReaderPort(transport, self._step)
        self._disk = JournalThread(journal, clock, self._lock, self._step)
        self._loop = IoLoop(connection, self._port, self._disk, self._wake)
        self._timer = threading.Thread(target=self._run_timer, name="sabot-timer", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._disk.run()
        self._timer.start()

    # -- for programs' threads ------------------------------------------------------------------

    def call(self, operation: Callable[Concatenate[int, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Run an operation of the connection at this moment and send what it caused. Closed if it is."""
        self.check_process()
        with self._lock:
            if self._closing:
                raise Closed("the client was closed")
            result = self._loop.call(self.clock.now_ms(), operation, *args, **named)
        self._deliver()
        return result

    def check_process(self) -> None:
        """Forked, in a child of the process that has the threads: its calls would wait in vain."""
        if os.getpid() != self._pid:
            raise Forked(f"{self.connection.url}: this client belongs to process {self._pid}")

    def expire(self, future: "Future[T]") -> None:
        """End a request whose time is up now, also if the timer is late or a listener does not return."""
        self.call(_nothing)
        for each in list(self.connection.completions):
            if each.future is future:
                complete(each)
                with suppress(ValueError):  # another thread has completed it too
                    self.connection.completions.remove(each)

    def wait_up(self, timeout_s: float, unless_failed: bool = False) -> bool:
        """Wait until there is a session and listeners were told so; False when time is up or it is closed.

        ``unless_failed`` ends the wait also at a failure that trying again does not cure.
        """
        connection = self.connection

        def reached() -> bool:
            up = connection.link is LinkState.UP or (unless_failed and connection.failed_permanently())
            return self._closing or (up and not self._has_untold())

        self.check_process()
        with self._lock:
            self._changed.wait_for(reached, timeout_s)
            return connection.link is LinkState.UP

    def rows_after(self, id: int, timeout_s: float | None) -> list[JournalEntry]:
        """Rows of the journal after one; waits for the first, none when time is up. Closed when it is."""
        self.check_process()
        with self._lock:
            self._changed.wait_for(lambda: self._rows > id or self._closing, timeout_s)
            if self._rows <= id:
                if self._closing:
                    raise Closed("the client was closed")
                return []
        return self.rows_now(id)

    def rows_now(self, after: int) -> list[JournalEntry]:
        """Rows after one that are there at this moment, up to the newest that was announced."""
        upto = self.rows
        return [row for row in self.journal.after(after) if row.id <= upto]

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait for the end, or until time is up; whether it is over."""
        with self._lock:
            return self._changed.wait_for(lambda: self._closing, timeout_s)

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
        return self._rows

    def close(self) -> None:
        """End the session, write what waits for the journal, end the threads. A second time does nothing.

        Nor does it in a forked child: port and files belong to the parent.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._loop.close(self.clock.now_ms())
            self._disk.wake()
            self._due.notify_all()
            self._changed.notify_all()
        self._deliver()  # programs do not wait for the threads to end, one of which may wait for the disk
        self._port.join()
        if self._timer.ident is not None and self._timer is not threading.current_thread():
            self._timer.join(JOIN_S)
        with self._lock:
            started = self._timer.ident is not None
            self._changed.wait_for(
                lambda: not started or self._loop.idle() or self.connection.journal_error is not None, JOIN_S
            )
        if not self._disk.stop():
            log.warning("the disk does not answer: the journal is closed when it does")
        self._tell()
        self._deliver()
        self._call_row_listeners()

    # -- for the driver's threads ---------------------------------------------------------------

    def _step(self) -> None:
        """Step the loop, then complete requests and announce rows without the lock."""
        try:
            with self._lock:
                self._wake(self._loop.step(self.clock.now_ms()))
        except Exception as error:  # a bug must not leave programs waiting
            log.exception("the driver's %s failed", threading.current_thread().name)
            self.failure = error
            with self._lock:
                now = self.clock.now_ms()
                if not self._closing:
                    self._loop.fail(now, error)
                self._wake(ticks.add(now, RESTART_MS))
        newest = self._loop.newest_row
        if newest is not None and newest > self._rows:
            with self._lock:
                self._rows = max(self._rows, newest)
                self._changed.notify_all()
            self._call_row_listeners()
        if self._closing:
            with self._lock:
                self._changed.notify_all()
        self._deliver()

    def _wake(self, due: int | None) -> None:
        """The next step is due then: wake the thread that has to do it, if it would sleep longer."""
        if self._loop.can_write(self.clock.now_ms()):
            self._disk.wake()
        until = self._timer_until
        if due is not None and (until is None or ticks.diff(due, until) < 0):
            self._timer_until = due
            self._due.notify()

    def _run_timer(self) -> None:
        while not self._closing:
            self._step()
            with self._lock:
                if self._closing or self.connection.has_notices():
                    continue
                now = self.clock.now_ms()
                self._timer_until = due = self._loop.deadline(now)
                if due is None or ticks.diff(due, now) > 0:
                    self._due.wait(LONGEST_SLEEP_S if due is None else self.clock.seconds_until(due))

    def _deliver(self) -> None:
        """Complete requests, and see to it that listeners are told, without the lock.

        A notice is told before any answer that came after it ends its call: a program that has the answer
        of a new session has been told of that session. While notices wait, the timer completes requests.
        """
        connection = self.connection
        timer = threading.current_thread() is self._timer
        if timer and connection.has_notices():
            self._tell()
        while connection.completions:
            try:
                each = connection.completions[0]
            except IndexError:  # another thread has just completed the last one
                break
            if self._has_untold():  # asked after the completion was seen: what came before it is told by now
                if not timer:
                    break
                self._tell()
            complete(each)
            with suppress(ValueError):  # another thread has completed it too
                connection.completions.remove(each)
        if not timer and self._has_untold():
            with self._lock:
                self._due.notify()

    def _has_untold(self) -> bool:
        """Whether notices wait, or are being told, so that answers wait for them; none do at the end."""
        return (self.connection.has_notices() or self._telling) and not self._closing

    def _tell(self) -> None:
        """Log notices and call listeners, without the lock. Only the timer does, which Ctrl-C never ends.

        An interruption would leave the log's lock held, too.
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
                except Exception:  # the program's own bug; the link goes on
                    log.exception("a listener failed at the notice '%s'", notice.kind)
        self._telling = False
        if notices:
            with self._lock:
                self._changed.notify_all()

    def _call_row_listeners(self) -> None:
        for listener in list(self.row_listeners):
            try:
                listener()
            except Exception:  # an event loop may end at this moment; the journal goes on
                log.exception("a listener of the journal failed")


def _nothing(now: int) -> None:
    """The operation of a call that only lets the connection notice the time."""


def complete(completion: Completion) -> None:
    """Give a future its result or error; one that was cancelled meanwhile stays so."""
    future: Future[object] = completion.future
    try:
        if completion.error is not None:
            future.set_exception(completion.error)
        else:
            future.set_result(completion.answer)
    except InvalidStateError:
        pass
