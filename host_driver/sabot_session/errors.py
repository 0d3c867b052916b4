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

    advice = "Its record begins when the table is opened: with 'sabot play' or 'sabot table open'."


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


# -- people -------------------------------------------------------------------------------------


class PeopleFailed(SabotError, OSError):
    """The register of people cannot be read or written."""

    advice = "Check the disk and the rights of the folder; restore the newest copy of a damaged register."


class BadPerson(SabotError, ValueError):
    """An entry that the register does not take: an id, a PIN, a badge or roles that cannot be."""

    advice = "Correct the entry and repeat; the register is unchanged."


class PersonUnknown(SabotError, LookupError):
    """Nobody in the register has this id, badge or key."""

    advice = "Enrol the person, or use the badge or key that was enrolled."


class NotAuthenticated(SabotError, PermissionError):
    """Somebody did not prove who they are; nothing was done."""

    advice = "Try again with the right PIN and with what the person holds."


class CertificateRefused(NotAuthenticated):
    """A certificate that is forged, expired, revoked or for another site or role, or a bad proof."""


class WrongPin(NotAuthenticated):
    """The PIN is wrong; ``wait_s`` seconds must pass before the next try."""

    advice = "Enter the PIN again. The floor or service can set a new one."

    def __init__(self, person: str, wait_s: int) -> None:
        then = f"; the next try is possible in {wait_s} s" if wait_s else ""
        super().__init__(f"wrong PIN for {person}{then}")
        self.person = person
        self.wait_s = wait_s


class PinDelayed(NotAuthenticated):
    """Too many wrong PINs: this try was not looked at, whatever its PIN; ``wait_s`` seconds remain."""

    advice = "Wait, or have the floor or service set a new PIN."

    def __init__(self, person: str, wait_s: int) -> None:
        super().__init__(f"{person} entered wrong PINs; the next try is possible in {wait_s} s")
        self.person = person
        self.wait_s = wait_s


class NothingHeld(NotAuthenticated):
    """A PIN alone signs a dealer in; for anything else the person must also show what they hold."""

    advice = "Use the person's badge or key file together with the PIN."
