"""What must be in the journal before anything follows from it: events, commands and their numbers.

The driver acknowledges an event only after the event is on disk. It sends a command only after the command's
record and number are on disk. Until then the command is *held*, and so are all commands behind it, because
the device takes commands in the order of their numbers. Queries are not held.

``WriteAhead`` queues both and makes the batches of the journal. It writes nothing: ``io_loop`` gives the
batches to a disk worker, and ``Connection`` acknowledges and sends when they are written.
"""

from sabot_driver.errors import JournalError
from sabot_driver.journal import CommandRecord, Journal, JournalBatch, UnsavedEvent
from sabot_protocol.notifications import EventGap, EventReceived

MAX_UNSAVED = 4096  # events in memory that are not on disk


class WriteAhead:
    """Events and commands of one connection on their way to the journal."""

    def __init__(self, journal: Journal, owner: bool) -> None:
        """Read the journal's newest event and its command numbers. An ``owner`` always needs numbers."""
        self.numbers = journal.numbers()
        self.error: JournalError | None = None
        """Why the last batch could not be written; None if it was written."""
        self._journal = journal
        self._owner = owner
        self._events: list[UnsavedEvent] = []
        self._records: list[CommandRecord] = []
        self._held: dict[int, bool] = {}  # by number, in order; True until the command's record is on disk
        self._handed = journal.position()  # of the last event that is on disk or with the disk worker

    # -- what waits -----------------------------------------------------------------------------

    def add_event(self, memory_id: bytes, event: EventReceived | EventGap) -> None:
        """Queue an event or a gap of the device with this memory id."""
        self._events.append((memory_id, event))

    def has_overflowed(self) -> bool:
        """Whether more than MAX_UNSAVED events wait for the disk."""
        return len(self._events) > MAX_UNSAVED

    def newest_event(self) -> tuple[bytes, int, int] | None:
        """Memory id, boot id and number of the newest event that is queued, being written or on disk."""
        return position(self._events[-1]) if self._events else self._handed

    def must_hold(self, recorded: bool) -> bool:
        """Whether a new command must wait: for its record, its number, or a held command before it."""
        return recorded or bool(self._held) or not self.numbers.left()

    def add_record(self, record: CommandRecord) -> None:
        """Queue the record of a command that is held for it."""
        self._records.append(record)

    def add_outcome(self, number: int, outcome: str) -> None:
        """Queue how a command ended: ``done``, ``not_executed`` or ``unknown``."""
        self._journal.ended[number] = outcome

    def hold(self, number: int, recorded: bool) -> None:
        """Hold a command: with ``recorded`` until its record is on disk, in any case until its number is."""
        self._held[number] = recorded

    def held(self) -> list[int]:
        """The numbers of the held commands, in order."""
        return list(self._held)

    def next_free(self) -> int | None:
        """The number of the first held command, if its record and number are on disk; else None."""
        for number, for_record in self._held.items():
            return None if for_record or number >= self.numbers.reserved else number
        return None

    def drop(self, number: int) -> bool:
        """Stop holding a command; False if it was not held."""
        return self._held.pop(number, None) is not None

    # -- batches --------------------------------------------------------------------------------

    def has_batch(self) -> bool:
        """Whether something waits to be written, or a journal that failed is to be tried again."""
        return (
            bool(self._events or self._records or self._journal.ended)
            or self.error is not None
            or (self.numbers.are_few() and (self._owner or bool(self._held)))
        )

    def take_batch(self) -> JournalBatch | None:
        """What must be written now; None if nothing. The next batch comes after this one's result."""
        if not self.has_batch():
            return None
        events = self._events
        commands = [each for each in self._records if each.number in self._held]
        # After a failure the reservation is also the write that tries the journal again.
        more = self.numbers.are_few() or self.error is not None
        batch = JournalBatch(events, commands, self.numbers.ahead() if more else None)
        handed = position(events[-1]) if events else self._handed
        # Last, and in one statement: an exception before it leaves the events queued, so none is lost.
        self._events, self._records, self._handed = [], [], handed
        return batch

    def requeue(self, batch: JournalBatch) -> None:
        """Take back a batch that was not written."""
        self._events[:0] = batch.events
        self._records[:0] = batch.commands

    def written(self, batch: JournalBatch) -> bool:
        """The batch is on disk. True if this is the first one after a failure."""
        works_again, self.error = self.error is not None, None
        if batch.reserve is not None:
            self.numbers.reserved = batch.reserve
        for each in batch.commands:
            if each.number in self._held:
                self._held[each.number] = False
        return works_again

    def failed(self, batch: JournalBatch, error: JournalError) -> bool:
        """The batch is not on disk: its events wait again. True if this is the first failure.

        No held command waits for its record any more; ``next_free`` still keeps one without a number.
        """
        first, self.error = self.error is None, error
        self.requeue(batch)
        self._records = []
        for number in self._held:
            self._held[number] = False
        return first


def position(event: UnsavedEvent) -> tuple[bytes, int, int]:
    """Memory id, boot id and number of the last event that an event or a gap covers."""
    memory_id, each = event
    if isinstance(each, EventReceived):
        return memory_id, each.boot_id, each.n
    return memory_id, each.before[0], each.before[1] - 1
