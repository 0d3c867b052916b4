"""Why a table needs a person: a pure function of what the table told, and of how long it has told nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from sabot_floor.payloads import ChainBeat, Heartbeat
from sabot_floor.wall.table_state import NeedOfTable, TableState
from sabot_serve import phrases

PERSON_NEEDED, MACHINE_STOPPED = "person_needed", "machine_stopped"
TABLE_SILENT, PUBLISHER_BEHIND, FLOOR_BLIND = "table_silent", "publisher_behind", "floor_blind"
ARCHIVE_SILENT = "archive_silent"
"""Kinds of alarms that a wall raises and ends. Every other kind is the archive's or a table's."""
DEALER = "dealer"
QUIET = ("open_table", "sign_in", "countersign", "player_arrives")
"""Needs for which nobody must come now."""


class Urgency(IntEnum):
    """When a person must look: now, or when the others are done."""

    NOW = 0
    LATER = 1


LATER_KINDS = (PUBLISHER_BEHIND, "archive_behind", "rows_missing", "unreadable")
"""Alarms about rows that are late: nobody waits at the table."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason to look at a table; ``kind`` is the kind of its alarm."""

    kind: str
    words: str

    @property
    def urgency(self) -> Urgency:
        """When a person must look."""
        return urgency_of(self.kind)


def urgency_of(kind: str) -> Urgency:
    """When a person must look, by the kind of alarm. An unknown kind is urgent."""
    return Urgency.LATER if kind in LATER_KINDS else Urgency.NOW


@dataclass(frozen=True, slots=True)
class Behind:
    """What a table has and the floor has not."""

    rows: int
    """Rows on the table's disk that are not published; below level `all` at most so many."""
    age_s: int
    """How long the oldest of them has waited, by the table's clock."""


def reasons_of(state: TableState) -> Iterator[Reason]:
    """What the table itself says. A closed table needs nobody."""
    if state.closed:
        return
    needs = [each for each in state.needs if comes_from_outside(each)]
    if state.called or needs:
        words = [words_of(each) for each in needs] or ["The dealer calls the floor"]
        yield Reason(PERSON_NEEDED, "; ".join(words))
    if not state.device.up:
        yield Reason(MACHINE_STOPPED, "The machine does not answer")
    elif state.device.faults:
        told = [f"{fault_name(each.fault)} ({place_name(each.place)})" for each in state.device.faults]
        yield Reason(MACHINE_STOPPED, "; ".join(told))


def comes_from_outside(need: NeedOfTable) -> bool:
    """Whether somebody who is not at the table must come for a need."""
    return bool(need.roles) and DEALER not in need.roles and need.kind not in QUIET


def words_of(need: NeedOfTable) -> str:
    """A need in words. Below level `all` a table tells only its kind."""
    who = str(phrases.ROLES.get(need.roles[0], phrases.plain(need.roles[0]))) if need.roles else ""
    what = need.words or phrases.plain(need.kind)
    return f"{who}: {what}" if who else what


def fault_name(fault: str) -> str:
    """What happened."""
    return phrases.FAULT_NAMES.get(fault, phrases.plain(fault))


def place_name(place: str) -> str:
    """Where it happened."""
    return phrases.PLACES.get(place, phrases.plain(place)).lower()


def behind_of(chains: Mapping[str, ChainBeat]) -> Behind:
    """How far the publisher is behind, over both chains."""
    waiting = [each for each in chains.values() if each.n > each.published]
    rows = sum(each.n - each.published for each in waiting)
    return Behind(rows, max((each.waiting_s for each in waiting), default=0))


def behind_reason(beat: Heartbeat, state_age_s: float, most_s: float) -> Reason | None:
    """A publisher that is too far behind; ``state_age_s`` is how long a newer state is announced."""
    behind = behind_of({str(name): each for name, each in beat.chains.items()})
    if behind.age_s > most_s:
        return Reason(
            PUBLISHER_BEHIND, f"{behind.rows} rows are not published, the oldest for {behind.age_s} s"
        )
    if state_age_s > most_s:
        return Reason(PUBLISHER_BEHIND, f"its state here is older than {int(state_age_s)} s")
    return None
