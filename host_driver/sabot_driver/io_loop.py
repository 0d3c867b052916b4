"""One connection run over a port and a journal, step by step, with no thread and no clock of its own.

``IoLoop.step`` takes what port and disk have ready, gives them their next work and returns the tick at which
it must be called again. Port, disk worker and wake-up are injected, so that the same loop runs in threads
(``threaded_loop``), in an event loop (``asyncio_loop``) and in virtual time, where a seed replays everything.

Two rules keep the journal ahead of the wire. An event is acknowledged only after the disk worker has reported
its batch as written. A command is sent only after its record and its number are written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sabot_driver.connection import Connection
from sabot_driver.errors import JournalError, SabotError
from sabot_driver.journal import JournalBatch
from sabot_protocol import ticks
from sabot_protocol.errors import ProtocolError

RETRY_DISK_MS = 1000

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PortOpened:
    """The port is open."""


@dataclass(frozen=True, slots=True)
class PortLost:
    """The port could not be opened, or failed since. A SabotError is an expected cause, others are bugs."""

    error: Exception


@dataclass(frozen=True, slots=True)
class BatchResult:
    """How the disk worker's batch ended."""

    batch: JournalBatch
    newest_row: int | None = None
    """The id of the newest row, if the batch added rows."""
    error: Exception | None = None
    """Why nothing was written. A JournalError is an expected cause, others are bugs."""


class Port(Protocol):
    """A port that never blocks the loop, apart from a write (at most 2 s)."""

    def start_open(self) -> None:
        """Begin to open; ``take`` reports PortOpened or PortLost."""

    def start_close(self) -> None:
        """Begin to close. ``take`` reports nothing more of this opening."""

    def take(self) -> Iterable[bytes | PortOpened | PortLost]:
        """What has happened since the last call, in order."""

    def write(self, data: bytes) -> None:
        """Send all of it, or raise LinkLost."""


class DiskWorker(Protocol):
    """Writes the journal, one batch at a time."""

    def start(self, batch: JournalBatch) -> None:
        """Begin to write a batch; ``take`` reports its result."""

    def take(self) -> BatchResult | None:
        """The result of the batch, once."""


class IoLoop:
    """Runs one connection. The caller sees to it that only one thread is inside at a time.

    ``step`` must not be interrupted. ``call`` may be: it is what a program's own thread runs, and Ctrl-C can
    end it anywhere. The next ``call`` or ``step`` notices that and recovers the connection first.
    """

    def __init__(
        self, connection: Connection, port: Port, disk: DiskWorker, wake: Callable[[int | None], None]
    ) -> None:
        """``wake`` is told after each ``call`` when the next step is due: a tick, or None for never."""
        self.connection = connection
        self.newest_row: int | None = None
        """The id of the newest row that this loop had written."""
        self._port = port
        self._disk = disk
        self._wake = wake
        self._writing = False
        self._starting: JournalBatch | None = None  # taken, and not yet given to the disk worker
        self._retry_disk_at: int | None = None
        self._inside = False  # a call is under way, or was interrupted

    def call(
        self, now: int, operation: Callable[Concatenate[int, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run an operation of the connection, then send what it caused. Its errors pass through."""
        self._enter(now)
        try:
            result = operation(now, *args, **named)
        except (SabotError, ProtocolError):
            self._inside = False
            raise
        self._transmit(now)
        self._wake(self.deadline(now))
        self._inside = False
        return result

    def step(self, now: int) -> int | None:
        """Do everything that is due; the tick of the next step, None if only port or disk can cause one.

        Exceptions other than those of a lost port or a failed disk are bugs; ``fail`` must follow them.
        """
        self._enter(now)
        connection = self.connection
        for each in self._port.take():
            if isinstance(each, bytes):
                connection.receive(each, now)
            elif isinstance(each, PortOpened):
                connection.port_opened(now)
            elif isinstance(each.error, SabotError):
                connection.port_lost(now, each.error)
            else:
                raise each.error
        self._take_result(now)
        if connection.take_port_drop():
            self._port.start_close()
        if connection.wants_port(now):
            connection.port_opening()
            self._port.start_open()
        self._transmit(now)
        if self.can_write(now):
            batch = connection.write_ahead.take_batch()
            if batch is not None:
                self._starting = batch
                self._writing = True
                self._disk.start(batch)
                self._starting = None
        self._inside = False
        return self.deadline(now)

    def can_write(self, now: int) -> bool:
        """Whether a step would give the disk worker a batch now."""
        return not self._writing and self.connection.write_ahead.has_batch() and self._disk_wait(now) is None

    def idle(self) -> bool:
        """Whether nothing is being written, or waits for it. False while a failed journal is retried."""
        return not self._writing and not self.connection.write_ahead.has_batch()

    def deadline(self, now: int) -> int | None:
        """The tick at which ``step`` is due by itself."""
        due = self.connection.deadline(now)
        if not self._writing and self.connection.write_ahead.has_batch():
            wait = self._disk_wait(now)
            if wait is None:
                wait = now
            if due is None or ticks.diff(wait, due) < 0:
                due = wait
        return due

    def close(self, now: int) -> None:
        """End the session in order, so that the device is free at once, and let go of the port.

        Open requests end as Closed. Steps go on until ``idle``, so that the journal has the last events.
        """
        out = self.connection.close(None if self._inside else now)
        self._inside = False
        if out:
            self._write(out, now)
        self._port.start_close()

    def fail(self, now: int, error: BaseException) -> None:
        """Report a bug that ended a step, and continue in a new session."""
        self.connection.report_bug(error)
        starting, self._starting = self._starting, None
        if starting is not None:  # else its events would be lost
            self._writing = False
            self.connection.write_ahead.requeue(starting)
        self._inside = True
        self._enter(now)
        self._inside = False

    def _enter(self, now: int) -> None:
        if self._inside:
            self.connection.recover(now)
        self._inside = True

    def _transmit(self, now: int) -> None:
        if self.connection.needs_poll(now):
            out = self.connection.poll(now)
            if out:
                self._write(out, now)

    def _write(self, out: bytes, now: int) -> None:
        try:
            self._port.write(out)
        except SabotError as error:
            self.connection.port_lost(now, error)

    def _disk_wait(self, now: int) -> int | None:
        """The tick before which a failed journal is not tried again; None if it may be."""
        at = self._retry_disk_at
        return at if at is not None and ticks.diff(at, now) > 0 else None

    def _take_result(self, now: int) -> None:
        result = self._disk.take()
        if result is None:
            return
        self._writing = False
        self._retry_disk_at = None
        if result.error is None:
            if result.newest_row is not None:
                self.newest_row = result.newest_row
            self.connection.batch_written(result.batch, now)
        elif isinstance(result.error, JournalError):
            self._retry_disk_at = ticks.add(now, RETRY_DISK_MS)
            self.connection.batch_failed(result.batch, result.error)
        else:
            self._retry_disk_at = ticks.add(now, RETRY_DISK_MS)
            self.connection.write_ahead.requeue(result.batch)
            raise result.error
