"""What the two shells of an ``IoLoop`` share: listeners, and the journal's rows as programs see them."""

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

from sabot_driver.clock import Clock
from sabot_driver.connection import Connection
from sabot_driver.errors import Closed, Forked, JournalError
from sabot_driver.journal import Journal, JournalEntry
from sabot_driver.link_state import Completion, Notice
from sabot_driver.transports import Transport

log = logging.getLogger("sabot")

RESTART_MS = 100  # the pause after a step that failed by a bug
Listener = Callable[[Notice], None]


class LoopShell:
    """Base of both shells: one device's connection. A subclass has the loop and waits for results."""

    def __init__(self, connection: Connection, transport: Transport, journal: Journal, clock: Clock) -> None:
        self.connection = connection
        self.transport = transport
        self.journal = journal
        self.clock = clock
        self.listeners: list[Listener] = []
        """Called with each notice."""
        self.failure: BaseException | None = None
        """The last bug that ended a step."""
        self._pid = os.getpid()
        self._closing = False
        self._rows = journal.last_id()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closing

    @property
    def rows(self) -> int:
        """The id of the newest row of the journal that programs may read."""
        self.check_process()
        return self._rows

    def check_process(self) -> None:
        """Raise Forked in a child of the process that runs the loop: no thread would answer there."""
        if os.getpid() != self._pid:
            raise Forked(f"{self.connection.url}: this client belongs to process {self._pid}")

    def check_open(self) -> None:
        """Raise Closed after ``close``, and Forked in a child process."""
        self.check_process()
        if self._closing:
            raise Closed(f"{self.connection.url}: the client was closed")

    def rows_now(self, after: int) -> list[JournalEntry]:
        """The rows after ``after`` that programs may read. Raises Closed if it was closed meanwhile."""
        upto = self.rows
        try:
            return [row for row in self.journal.after(after) if row.id <= upto]
        except JournalError:
            self.check_open()  # ``close`` has closed the journal as well
            raise

    def set_reader_position(self, reader: str, at: int) -> None:
        """Store that a named reader has processed a row. Raises Closed after ``close``: it is not stored."""
        try:
            self.journal.set_reader_position(reader, at)
        except JournalError:
            self.check_open()  # ``close`` has closed the journal as well
            raise

    def _tell_listeners(self, notices: list[Notice]) -> None:
        """Log notices and call listeners; a listener that raises does not stop the others."""
        for notice in notices:
            grave = notice.error is not None or notice.kind == "step_not_allowed"
            log.log(logging.WARNING if grave else logging.INFO, "%s", notice.text)
            for listener in list(self.listeners):
                try:
                    listener(notice)
                except Exception:  # the program's own bug; the link goes on
                    log.exception("a listener failed at the notice '%s'", notice.kind)


def complete(completion: Completion) -> None:
    """Give a future its result or error. A future that was cancelled meanwhile stays cancelled."""
    future: Future[object] = completion.future
    try:
        if completion.error is not None:
            future.set_exception(completion.error)
        else:
            future.set_result(completion.answer)
    except InvalidStateError:
        pass
