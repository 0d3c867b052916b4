"""Which packs are where, and what is still open: holds, disputes, countersignatures. From rows alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from sabot_session import row_data as d
from sabot_session.row_kinds import data_of
from sabot_session.rows import NumberedRow

WARN_AT_S: tuple[tuple[Literal[10, 30], int], ...] = ((10, 600), (30, 1800))
"""The warnings before a pack's hours end, the latest first: minutes, seconds."""


class Where(StrEnum):
    """Where a pack is."""

    TABLE = "table"  # on the layout or in the dealer's hands, not in play
    SHUFFLER = "shuffler"
    SHOE = "shoe"  # or the dealer's hand, to be dealt from
    RACK = "rack"  # the discard rack
    GONE = "gone"  # it left the table for good


PLACES: Mapping[str, Where] = {
    "receive_pack": Where.TABLE,
    "inspect": Where.TABLE,
    "spread": Where.TABLE,
    "spread_idle": Where.TABLE,
    "stack": Where.TABLE,
    "stack_unwashed": Where.TABLE,
    "deliver": Where.TABLE,
    "cut": Where.TABLE,
    "order_recut": Where.TABLE,
    "load": Where.SHOE,
    "play": Where.SHOE,
    "discard": Where.RACK,
    "remove": Where.GONE,
}
"""Where a pack is after a row of this kind; a shuffle says it by who shuffles."""


@dataclass(frozen=True, slots=True)
class PackCustody:
    """One pack from its arrival until it left."""

    pack_id: int
    back: str
    cards: int
    bag: str
    received_s: int
    received_by: str
    brought_by: str
    where: Where = Where.TABLE
    verified_by: str = ""
    counted: int | None = None
    """Its number of cards by the newest count; None: not counted, or not proved."""
    warned: int | None = None
    """Minutes of the newest warning about its hours."""
    retired_s: int | None = None
    retired_by: str = ""
    reason: str = ""
    destination: d.Destination | None = None
    left_in_bag: str = ""


@dataclass(slots=True)
class MachineTrouble:
    """What people held or disputed at one machine."""

    holds: int = 0
    disputes: int = 0
    undecided: int = 0
    machine_wrong: int = 0


@dataclass(slots=True)
class Custody:
    """The packs of a table and what is open, as far as rows were taken in with `take`."""

    packs: dict[int, PackCustody] = field(default_factory=dict)
    machines: dict[str, MachineTrouble] = field(default_factory=dict)
    """By serial number; "" is play without a machine."""
    to_countersign: list[int] = field(default_factory=list)
    """Rows that the floor has not countersigned."""
    holds: dict[int, int] = field(default_factory=dict)
    """Rows that hold cards, with their rounds."""
    disputes: dict[int, str] = field(default_factory=dict)
    """Rows that opened disputes without a decision, with the machine."""
    serial: str = ""
    """The machine of the newest round."""

    def take(self, each: NumberedRow) -> None:
        """Take one more row in; rows come in their order."""
        row, data = each.row, data_of(each.row)
        if getattr(data, "countersign", False):
            self.to_countersign.append(each.number)
        match data:
            case d.RoundOpened():
                self.serial = data.serial
                self._move(data.pack_id, where=Where.SHOE)
            case d.PackReceived():
                self.packs[data.pack_id] = PackCustody(
                    data.pack_id, data.back, data.cards, data.bag, row.at_s, row.actor.person, data.brought_by
                )
            case d.PackRetired():
                self._move(
                    data.pack_id,
                    where=Where.GONE,
                    retired_s=row.at_s,
                    retired_by=row.actor.person,
                    reason=str(data.reason),
                    destination=data.destination,
                    left_in_bag=data.bag,
                )
            case d.ShuffleStarted():
                where = Where.SHUFFLER if data.by is d.ShuffledBy.MACHINE else Where.TABLE
                self._move(data.pack_id, where=where, counted=None)
            case d.ShuffleFinished() | d.PackCounted():
                self._move(data.pack_id, counted=data.cards)
            case d.HoursWarned():
                self._move(data.pack_id, warned=data.minutes)
            case d.DisputeOpened():
                serial = data.serial or self.serial
                self.disputes[each.number] = serial
                self._machine(serial).disputes += 1
                self._machine(serial).undecided += 1
            case d.DisputeDecided() if data.row in self.disputes:
                about = self._machine(self.disputes.pop(data.row))
                about.undecided -= 1
                about.machine_wrong += data.machine_wrong
            case d.OfRow() if row.kind == "countersign" and data.row in self.to_countersign:
                self.to_countersign.remove(data.row)
            case d.OfRow() if row.kind == "release":
                self.holds.pop(data.row, None)
            case d.Why() if row.kind == "hold":
                self.holds[each.number] = row.round_id
                self._machine(self.serial).holds += 1
            case d.OfPack() | d.PackCut() | d.CoverPlaced() | d.PackBurned():
                if row.kind == "verify":
                    self._move(data.pack_id, verified_by=row.actor.person)
                if row.kind in PLACES:
                    self._move(data.pack_id, where=PLACES[row.kind])

    def _move(self, pack_id: int, **changes: object) -> None:
        if pack_id in self.packs:
            self.packs[pack_id] = replace(self.packs[pack_id], **changes)  # type: ignore[arg-type]

    def _machine(self, serial: str) -> MachineTrouble:
        return self.machines.setdefault(serial, MachineTrouble())

    def here(self) -> list[PackCustody]:
        """The packs that are at the table, by their number."""
        return [each for _, each in sorted(self.packs.items()) if each.where is not Where.GONE]

    def at_closing(self) -> d.TableClosed:
        """What is still open, for the row that closes the table."""
        return d.TableClosed(
            countersignatures=tuple(self.to_countersign),
            disputes=tuple(self.disputes),
            holds=tuple(self.holds),
        )


def custody_of(rows: Iterable[NumberedRow]) -> Custody:
    """Custody after these rows, oldest first; begin with row 1."""
    found = Custody()
    for each in rows:
        found.take(each)
    return found


def hours_warning(left_s: int | None, warned: int | None) -> Literal[10, 30] | None:
    """The warning that is due when a pack may be used for ``left_s`` more seconds; None if none is.

    ``left_s`` None: the rule text sets no hours. ``warned`` is the warning given last. Each is given once; a
    table that was asleep at 30 minutes gets only the one of 10.
    """
    if left_s is None:
        return None
    for minutes, seconds in WARN_AT_S:
        if left_s <= seconds:
            return minutes if warned is None or minutes < warned else None
    return None


def may_open_round(left_s: int | None) -> bool:
    """Whether a round may begin with a pack. A round that has begun is finished, whatever its hours."""
    return left_s is None or left_s > 0
