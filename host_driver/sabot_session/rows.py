"""Rows of a table's record: one thing that happened, who did it, and how that is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sabot_table.procedure import TableRole

Json = None | bool | int | str | Sequence["Json"] | Mapping[str, "Json"]


class Authentication(StrEnum):
    """How the record knows who did something."""

    KEY_AND_PIN = "key_and_pin"  # a key file on the person's medium, and the PIN
    BADGE_AND_PIN = "badge_and_pin"
    CERTIFICATE_AND_PIN = "certificate_and_pin"  # a certificate of the house with its key, and the PIN
    PIN = "pin"  # signs a dealer in; authorises nothing that the device guards
    SIGNED_IN = "signed_in"  # the dealer who is signed in at this table; no PIN again
    SIMULATED = "simulated"  # a simulated person at an emulated device
    SENSED = "sensed"  # the device's sensors
    PROGRAM = "program"  # the program itself, which stands for nobody


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something: a person of the register, the device, or the program."""

    person: str  # id in the register of people; "" for the device and the program
    role: TableRole
    how: Authentication


@dataclass(frozen=True, slots=True)
class DeviceEventId:
    """The event of a device that a row follows from."""

    serial: str
    memory_id: str  # hex
    boot: int
    number: int


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that happened. Rows are never changed; a correction is another row."""

    kind: str
    at_s: int  # UTC seconds
    actor: Actor
    data: Mapping[str, Json] = field(default_factory=dict)
    round_id: int = 0  # 0: outside a round
    clause: str = ""  # such as "MD3 11.B"; "" where no clause asks for it
    act_id: str = ""  # of the act that it records
    follows: DeviceEventId | None = None


@dataclass(frozen=True, slots=True)
class NumberedRow:
    """A row with its place in the record: numbers rise by one from 1, without a gap."""

    number: int
    row: Row


@dataclass(frozen=True, slots=True)
class SavedSession:
    """The session as it stood after its newest row, and how far the driver's journal was read."""

    state: str  # JSON of the session, with its version
    journal_at: int


class Record(Protocol):
    """Where a session keeps its rows. What ``commit`` returned from is on disk, all of it or nothing."""

    @property
    def record_id(self) -> str:
        """Random, drawn when the record was begun; a record restored from a copy gets another one."""

    def load(self) -> SavedSession | None:
        """The newest saved session; None in a new record."""

    def commit(self, rows: Sequence[Row], saved: SavedSession) -> int:
        """Append rows and replace the saved session in one transaction; the number of the newest row.

        Raises `RecordFailed` if they cannot be written, and `ActRepeated` if a row's act id is on record.
        """

    def act(self, act_id: str) -> NumberedRow | None:
        """The row of an act that was accepted before; None if there is none."""

    def rows(self, after: int = 0, most: int = 1000) -> Sequence[NumberedRow]:
        """Rows with higher numbers than ``after``, oldest first."""

    def round_rows(self, round_id: int) -> Sequence[NumberedRow]:
        """All rows of one round, oldest first."""
