"""The threads that wait for the port and the disk, so that ``IoLoop`` never waits. Both shells use them."""

import threading
from collections import deque
from collections.abc import Callable

from sabot_driver.clock import Clock
from sabot_driver.io_loop import BatchResult, PortLost, PortOpened
from sabot_driver.journal import Journal, JournalBatch
from sabot_driver.transports import Transport

JOIN_S = 10.0


class ReaderPort:
    """A transport with a thread that opens, reads and closes it, so that it is never closed during a read."""

    def __init__(self, transport: Transport, ready: Callable[[], None]) -> None:
        """``ready`` is called in the thread when ``take`` has something."""
        self._transport = transport
        self._ready = ready
        self._opening = 0  # counts openings and closings; inputs with an older count are dropped
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
        self.start_thread = self._thread.start

    def start(self, batch: JournalBatch) -> None:
        """Begin to write."""
        with self._lock:
            self._batch = batch
            self._wanted.notify()

    def take(self) -> BatchResult | None:
        """The result, once."""
        with self._lock:
            result, self._result = self._result, None
        return result

    def wake(self) -> None:
        """Have the thread call ``ready``, so that the loop steps and gives it a batch."""
        with self._lock:
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
