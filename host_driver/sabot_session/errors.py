"""What can be wrong with a table's record and with its people, as typed errors.

The message says what happened and where; ``advice`` says what to do.
"""

from sabot_driver.errors import SabotError


class BadRow(SabotError, ValueError):
    """A row that no record takes: its kind is unknown, or its data or its actor do not fit the kind."""

    advice = "This is a defect of the program: nothing was recorded. Report it with the log."


# -- the record ---------------------------------------------------------------------------------


class RecordFailed(SabotError, OSError):
    """The table's record cannot be read or written."""

    advice = "Check the disk and the rights of the folder the record is in."


class RecordFull(RecordFailed):
    """The record cannot be written: no act is accepted."""

    advice = "Free space on the disk and repeat the act; the record continues with the next number."


class RecordBusy(RecordFailed, TimeoutError):
    """Another program kept the record's write lock for too long; nothing was written."""

    advice = "Repeat the act; if it fails again, find the program that locks the file, or check the disk."


class RecordHeld(RecordFailed, BlockingIOError):
    """Another program runs this table."""

    advice = "Use the program that runs the table, or close it. Reading the record needs no lock."


class RecordDamaged(RecordFailed):
    """The file is no record, or parts of it cannot be read, or rows are missing."""

    advice = "Keep the file for whoever examines it, move it away, and restore the newest copy."


class RecordVersion(RecordFailed):
    """The record has a version that this program does not write; ``version`` is it."""

    advice = "A newer program wrote this record: update this one."
    older = "Migrate the record: a copy of the old file is kept beside it."

    def __init__(self, message: str, version: int, is_older: bool) -> None:
        super().__init__(message, self.older if is_older else None)
        self.version = version


class RecordMissing(RecordFailed, FileNotFoundError):
    """There is no record at this place."""

    advice = "Open the table first: its record begins then."


class ActRepeated(SabotError, ValueError):
    """An act with this id is on record, in row ``number``."""

    advice = "The act was accepted before: read its row, and do nothing again."

    def __init__(self, act_id: str, number: int) -> None:
        super().__init__(f"act {act_id} is on record in row {number}")
        self.act_id = act_id
        self.number = number


class MigrationRefused(RecordFailed):
    """An older record cannot be taken over now; nothing was changed."""

    advice = "Finish or void the round with the older program, then migrate."
