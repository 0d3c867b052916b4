"""The asyncio shell: an ``IoLoop`` stepped by an event loop, and the waits of the tasks that use it.

Everything runs in the event loop's thread, so there is no lock around the loop. Three threads wait for what
cannot be awaited on every system: one reads the port, one writes to it, one writes the journal. Each tells
the event loop when a step has something to take.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sabot_driver.clock import Clock
from sabot_driver.connection import Connection
from sabot_driver.io_loop import IoLoop, PortLost, PortOpened
from sabot_driver.io_threads import JOIN_S, JournalThread, ReaderPort
from sabot_driver.journal import Journal
from sabot_driver.link_state import LinkState
from sabot_driver.loop_shell import RESTART_MS, LoopShell, complete
from sabot_driver.transports import Transport
from sabot_protocol import ticks

log = logging.getLogger("sabot")

P = ParamSpec("P")
T = TypeVar("T")


class WriterPort:
    """A reader port that a thread opens, writes to and closes, in the order in which the loop asks for it."""

    def __init__(self, reader: ReaderPort, ready: Callable[[], None]) -> None:
        """``ready`` is called in a thread when ``take`` has something."""
        self._reader = reader
        self._ready = ready
        self._worker = ThreadPoolExecutor(1, "sabot-writer")
        self._asked = 0  # openings and closings that the loop has asked for
        self._done = 0  # how many of them the thread has done
        self._failures: deque[tuple[int, Exception]] = deque()

    def start_open(self) -> None:
        """Open after everything before it is done."""
        self._move(self._reader.start_open)

    def start_close(self) -> None:
        """Close after everything before it is written."""
        self._move(self._reader.start_close)

    def take(self) -> list[bytes | PortOpened | PortLost]:
        """What this opening has reported; nothing while an opening or closing waits for its turn."""
        if self._done != self._asked:
            return []
        taken = self._reader.take()
        while self._failures:
            asked, error = self._failures.popleft()
            if asked == self._asked:
                taken.append(PortLost(error))
        return taken

    def write(self, data: bytes) -> None:
        """Have the thread write it; ``take`` reports a failure."""
        self._worker.submit(self._write, self._asked, data)

    def stop(self) -> None:
        """Wait until everything is written and the transport is closed."""
        self._worker.shutdown()
        self._reader.join()

    def _move(self, what: Callable[[], None]) -> None:
        self._asked += 1
        self._worker.submit(self._do, what)

    def _do(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception as error:  # noqa: BLE001 (the loop tells a lost port from a bug)
            self._failures.append((self._done + 1, error))
        self._done += 1
        self._ready()

    def _write(self, asked: int, data: bytes) -> None:
        try:
            self._reader.write(data)
        except Exception as error:  # noqa: BLE001 (the loop tells a lost port from a bug)
            self._failures.append((asked, error))
            self._ready()


class AsyncioLoop(LoopShell):
    """One device's connection, stepped by the event loop in which it was made, until it is closed."""

    def __init__(self, connection: Connection, transport: Transport, journal: Journal, clock: Clock) -> None:
        super().__init__(connection, transport, journal, clock)
        self._events = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._ended = False
        self._reader = ReaderPort(transport, self._ready)
        self._port = WriterPort(self._reader, self._ready)
        self._disk = JournalThread(journal, clock, threading.RLock(), self._ready)
        self._loop = IoLoop(connection, self._port, self._disk, self._wake)

    def start(self) -> None:
        """Start the journal's thread and the first step."""
        self._disk.start_thread()
        self._step()

    def call(self, operation: Callable[Concatenate[int, P], T], *args: P.args, **named: P.kwargs) -> T:
        """Run an operation of the connection now, and send what it caused. Raises Closed after ``close``."""
        self.check_process()
        if asyncio.get_running_loop() is not self._events:
            raise RuntimeError(f"{self.connection.url}: this client belongs to another event loop")
        self.check_open()
        try:
            result = self._loop.call(self.clock.now_ms(), operation, *args, **named)
        except BaseException:
            self._events.call_soon(self._step)  # it recovers the connection if this was a bug
            raise
        if self.connection.completions or self.connection.has_notices():
            self._events.call_soon(self._step)
        return result

    async def _wait_for(self, reached: Callable[[], bool], timeout_s: float | None) -> None:
        """Wait until ``reached`` is true, or until time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                while not reached():
                    waiter = self._events.create_future()
                    self._waiters.add(waiter)
                    await waiter
        except TimeoutError:
            pass

    async def wait_up(self, timeout_s: float, unless_failed: bool = False) -> bool:
        """Wait until there is a session and listeners were told so; False when time is up or it is closed.

        ``unless_failed`` ends the wait also at a failure that trying again does not cure.
        """
        self.check_process()
        connection = self.connection

        def reached() -> bool:
            up = connection.link is LinkState.UP and not connection.has_notices()
            return up or self._closing or (unless_failed and connection.failed_permanently())

        await self._wait_for(reached, timeout_s)
        return connection.link is LinkState.UP

    async def wait_rows(self, after: int, timeout_s: float | None) -> bool:
        """Wait for a row of the journal after ``after``; False if none came in time, or before ``close``."""
        await self._wait_for(lambda: self.rows > after or self._closing, timeout_s)
        return self.rows > after

    async def close(self) -> None:
        """End the session, write what waits for the journal, end the threads; a second call waits for that.

        A task that is cancelled stops waiting; the closing goes on. In a forked child nothing happens.
        """
        if os.getpid() != self._pid:
            return
        if self._ending is None:
            self._closing = True
            self._loop.close(self.clock.now_ms())
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            self._step()
            await self._wait_for(
                lambda: self._loop.idle() or self.connection.write_ahead.error is not None, JOIN_S
            )
        finally:
            self._ended = True
            self._cancel_timer()
            if not await asyncio.to_thread(self._stop_threads):
                log.warning("the disk does not answer: the journal is closed when it does")

    def _stop_threads(self) -> bool:
        self._port.stop()
        return self._disk.stop()

    # -- steps ----------------------------------------------------------------------------------

    def _ready(self) -> None:
        """Have the event loop step. Any thread may call it."""
        try:
            self._events.call_soon_threadsafe(self._step)
        except RuntimeError:  # the event loop was closed before the client: the reader lets go of the port
            self._reader.start_close()

    def _step(self) -> None:
        """Step the loop, call listeners, complete requests and end waits."""
        if self._ended:
            return
        self._cancel_timer()
        self._timer = self._events.call_later(RESTART_MS / 1000, self._step)  # unless this step sets another
        now = self.clock.now_ms()
        try:
            due = self._loop.step(now)
        except BaseException as error:  # a bug, or Ctrl-C in the event loop's thread
            log.exception("the driver's step failed")
            self.failure = error
            if not self._closing:
                self._loop.fail(now, error)
            if not isinstance(error, Exception):
                raise
            due = ticks.add(now, RESTART_MS)
        if self._loop.newest_row is not None:
            self._rows = max(self._rows, self._loop.newest_row)
        self._wake(due)
        self._deliver()

    def _wake(self, due: int | None) -> None:
        """The next step is due then; None if only port or disk can cause one."""
        delay_s = None if due is None else self.clock.seconds_until(due)
        self._cancel_timer()
        if delay_s is not None:
            self._timer = self._events.call_later(delay_s, self._step)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _deliver(self) -> None:
        """Call listeners, then complete requests: a notice is told before any answer that came after it."""
        self._tell_listeners(self.connection.take_notices())
        completions = self.connection.completions
        while completions:
            complete(completions[0])
            completions.popleft()
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
