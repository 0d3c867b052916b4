"""The thread shell: an ``IoLoop`` run by the driver's own threads, and the waits of the programs that use it.

- A program's thread runs its request in the loop, under the lock, and writes it to the port. Then it waits
  for the answer's future.
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
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

from sabot_driver.clock import Clock, Deadline
from sabot_driver.connection import Connection
from sabot_driver.io_loop import IoLoop
from sabot_driver.io_threads import JOIN_S, JournalThread, ReaderPort
from sabot_driver.journal import Journal, JournalEntry
from sabot_driver.link_state import LinkState, Notice
from sabot_driver.loop_shell import RESTART_MS, LoopShell, complete
from sabot_driver.transports import Transport
from sabot_protocol import ticks

log = logging.getLogger("sabot")

LONGEST_SLEEP_S = 60.0
EXPIRE_AGAIN_S = 0.005

P = ParamSpec("P")
T = TypeVar("T")


class ThreadedLoop(LoopShell):
    """One device's connection, kept by threads until it is closed."""

    def __init__(self, connection: Connection, transport: Transport, journal: Journal, clock: Clock) -> None:
        super().__init__(connection, transport, journal, clock)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # the link, the newest row, or closing
        self._due = threading.Condition(self._lock)  # the timer has something to do
        self._timer_until: int | None = 0  # the tick until which the timer sleeps; None: LONGEST_SLEEP_S
        self._telling = False  # listeners are being called
        self._port = ReaderPort(transport, self._step)
        self._disk = JournalThread(journal, clock, self._lock, self._step)
        self._loop = IoLoop(connection, self._port, self._disk, self._wake)
        self._timer = threading.Thread(target=self._run_timer, name="sabot-timer", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._disk.start_thread()
        self._timer.start()

    # -- for programs' threads ------------------------------------------------------------------

    def call(self, operation: Callable[Concatenate[int, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Run an operation of the connection now, and send what it caused. Raises Closed after ``close``."""
        with self._lock:
            self.check_open()
            result = self._loop.call(self.clock.now_ms(), operation, *args, **named)
        self._deliver()
        return result

    def expire(self, future: "Future[T]", within_s: float) -> None:
        """End a request whose time is up, also if the timer is late or a listener does not return.

        The connection's time-out ends a little after the caller's, because it begins when the connection
        takes the request. So this waits for it, for ``within_s`` at most.
        """
        ends = Deadline(within_s)
        while True:
            self.call(_nothing)
            for each in list(self.connection.completions):
                if each.future is future:
                    complete(each)
                    with suppress(ValueError):  # another thread has completed it too
                        self.connection.completions.remove(each)
            if future.done() or not ends.left():
                return
            time.sleep(EXPIRE_AGAIN_S)

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
        """The journal's rows after ``id``. Waits for the first one; empty when time is up.

        Raises Closed after ``close``.
        """
        self.check_process()
        with self._lock:
            self._changed.wait_for(lambda: self._rows > id or self._closing, timeout_s)
            if self._rows <= id:
                self.check_open()
                return []
        return self.rows_now(id)

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait for ``close``, or until time is up. True if ``close`` was called."""
        with self._lock:
            return self._changed.wait_for(lambda: self._closing, timeout_s)

    def notify(self, notice: Notice) -> None:
        """Queue a notice for listeners, and wake the timer, which calls them."""
        with self._lock:
            self.connection.notify(notice)
            self._due.notify()

    def close(self) -> None:
        """End the session, write what waits for the journal, end the threads. A second call does nothing.

        In a forked child it does nothing either: port and files belong to the parent.
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
            ahead = self.connection.write_ahead
            self._changed.wait_for(
                lambda: not started or self._loop.idle() or ahead.error is not None, JOIN_S
            )
        if not self._disk.stop():
            log.warning("the disk does not answer: the journal is closed when it does")
        self._tell()
        self._deliver()

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
        """Whether a notice has not reached all listeners. Answers wait for that, except in ``close``."""
        return (self.connection.has_notices() or self._telling) and not self._closing

    def _tell(self) -> None:
        """Log notices and call listeners, without the lock.

        The timer calls this, because Ctrl-C never interrupts it: an interruption would leave the lock of
        ``logging`` held. ``close`` calls it once more after the timer has ended.
        """
        self._telling = True
        with self._lock:
            notices = self.connection.take_notices()
        self._tell_listeners(notices)
        self._telling = False
        if notices:
            with self._lock:
                self._changed.notify_all()


def _nothing(now: int) -> None:
    """The operation of a call that only lets the connection notice the time."""
