"""The wall without input and output: what it hears goes in, the sorted tables and its wishes come out.

Time is the wall's own monotonic clock, given with each call. A table's clock is shown and never compared.

Three things are told apart. *Table silent*: the wall hears others, and this table has sent no heartbeat for
`WallSettings.silent_s`. *Publisher behind*: the table lives, and its rows or its state do not come. *Floor
blind*: the wall hears no server, or more than half of the tables at once fell silent. A blind floor is one
banner: no table is called silent then, and nothing is said of the tables that are not heard.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sabot_floor.names import WHOLE_FLOOR
from sabot_floor.payloads import Alarm, Archived, Heartbeat
from sabot_floor.wall.alarm_book import SECOND_US, WALL, AlarmBook, Escalation, KnownAlarm, Wish
from sabot_floor.wall.attention import (
    ARCHIVE_SILENT,
    FLOOR_BLIND,
    TABLE_SILENT,
    Behind,
    Reason,
    Urgency,
    behind_of,
    behind_reason,
    reasons_of,
    urgency_of,
)
from sabot_floor.wall.table_state import TableState

MOST_TABLES = 2000
OLDER_S = 1.0  # an entry's UTC and the monotonic clock agree less well than causes that come together
MOST_WISHES = 50
"""Entries that one look may write, so that a bad minute does not flood the bucket."""


@dataclass(frozen=True, slots=True)
class WallSettings:
    """How long the wall waits before it says something."""

    silent_s: float = 10.0
    """Five heartbeats."""
    behind_s: float = 30.0
    archive_s: float = 30.0
    """An archive beats every second, but may wait for its database."""
    least_blind: int = 3
    """Of fewer tables each is told alone."""
    escalation: Escalation = field(default_factory=Escalation)


class Hearing(StrEnum):
    """How the wall knows of a table."""

    LIVE = "live"
    SILENT = "silent"  # others are heard, this one is not
    UNKNOWN = "unknown"  # the floor is blind, or the wall listens only since a moment
    OFF = "off"  # it was closed when it fell silent


class Rank(StrEnum):
    """In which part of the wall a table stands, in this order."""

    WAITS = "waits"  # for a person, now
    TAKEN = "taken"  # a person has taken everything that is urgent
    LATER = "later"
    UNKNOWN = "unknown"
    FINE = "fine"
    CLOSED = "closed"


RANKS = list(Rank)


@dataclass(slots=True)
class _Table:
    name: str
    state: TableState | None = None
    beat: Heartbeat | None = None
    beat_s: float | None = None
    """When the newest heartbeat came."""
    announced: tuple[str, int] | None = None
    """Run and number of a state that heartbeats announce and that has not come."""
    announced_s: float = 0.0
    archived: Archived | None = None
    claim: int = 0
    reasons: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Each reason of now by its kind: when the wall first saw it, and its words."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A reason with its age, and its alarm if it has one."""

    kind: str
    words: str
    since_s: float
    alarm: KnownAlarm | None
    escalated: int

    @property
    def urgency(self) -> Urgency:
        """When a person must look."""
        return urgency_of(self.kind)

    @property
    def taken_by(self) -> str | None:
        """Who has taken it."""
        return None if self.alarm is None else self.alarm.alarm.taken_by


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """One table as the wall shows it."""

    name: str
    rank: Rank
    since_s: float | None
    """Since when it waits, or since when it is not heard; None if neither."""
    hearing: Hearing
    state: TableState | None
    attentions: tuple[Attention, ...]
    behind: Behind
    archived: Archived | None
    beat: Heartbeat | None
    heard_s: float | None


@dataclass(frozen=True, slots=True)
class Blind:
    """Why the floor is blind, and since when."""

    words: str
    since_s: float


@dataclass(frozen=True, slots=True)
class JudgedFloor:
    """Everything that the wall shows."""

    tables: tuple[JudgedTable, ...]
    """Sorted: who waits for a person first, longest first."""
    blind: Blind | None
    connected: bool
    alarms: tuple[Attention, ...]
    """Alarms of the whole floor."""
    archive_silent_s: float | None = None
    """Since when the site's archive is not heard; None if it is, or if the site has none."""


class WallModel:
    """What the wall has heard. Every call names the time: seconds of one monotonic clock."""

    def __init__(self, settings: WallSettings | None = None, now_s: float = 0.0) -> None:
        self.settings = settings or WallSettings()
        self.alarms = AlarmBook()
        self.refused = 0
        """Tables that came when there were too many."""
        self._tables: dict[str, _Table] = {}
        self._up_s: float | None = None
        self._down: Blind | None = Blind("The wall has not reached a server yet", now_s)
        self._mute_s: float | None = None
        """Since when more than half of the tables are not heard."""
        self._archive_s: float | None = None
        """When the archive's newest heartbeat came."""

    # -- in -------------------------------------------------------------------------------------

    def connected(self, now_s: float) -> None:
        """A server is heard. Silence counts from here: what was missed meanwhile is nobody's silence."""
        self._up_s, self._down = now_s, None

    def disconnected(self, why: str, now_s: float) -> None:
        """No server is heard."""
        self._down = Blind(why, now_s if self._down is None else self._down.since_s)
        self._up_s = None

    def hear_state(self, state: TableState, now_s: float) -> None:
        """A table's entry. That of a publisher which another one has replaced is ignored."""
        table = self._table(state.table)
        if table is None or state.claim < table.claim:
            return
        table.claim, table.state = state.claim, state
        if table.announced is not None and _covers(state, table.announced):
            table.announced = None

    def hear_beat(self, beat: Heartbeat, now_s: float) -> None:
        """A heartbeat. That of a publisher which another one has replaced is ignored."""
        table = self._table(beat.table)
        if table is None or beat.claim < table.claim:
            return
        table.claim, table.beat, table.beat_s = beat.claim, beat, now_s
        if table.state is None or not _covers(table.state, (beat.run, beat.state)):
            if table.announced is None and beat.state:
                table.announced, table.announced_s = (beat.run, beat.state), now_s
        else:
            table.announced = None

    def hear_archive(self, now_s: float) -> None:
        """A heartbeat of the archive."""
        self._archive_s = now_s

    def hear_archived(self, archived: Archived) -> None:
        """How far a table's rows are archived."""
        table = self._table(archived.table)
        if table is not None:
            table.archived = archived

    def hear_alarm(self, alarm: Alarm, revision: int, now_s: float, utc_us: int) -> None:
        """An entry of the alarms' bucket; ``utc_us`` is the wall's UTC, for alarms older than the wall."""
        if alarm.table == WHOLE_FLOOR or self._table(alarm.table) is not None:
            self.alarms.hear(alarm, revision, now_s, utc_us)

    def _table(self, name: str) -> _Table | None:
        found = self._tables.get(name)
        if found is None:
            if len(self._tables) >= MOST_TABLES:
                self.refused += 1
                return None
            found = self._tables[name] = _Table(name)
        return found

    # -- out ------------------------------------------------------------------------------------

    def judge(self, now_s: float) -> JudgedFloor:
        """The floor at this moment."""
        silent = {name for name, each in self._tables.items() if self._is_silent(each, now_s)}
        blind = self._blind(silent, now_s)
        judged = [
            self._judged(each, self._hearing(each, name in silent, blind is not None), now_s)
            for name, each in self._tables.items()
        ]
        silent_s = self._archive_silent(now_s)
        lasts = silent_s is not None
        whole = tuple(
            self._attention(each, now_s)
            for each in self.alarms.of(WHOLE_FLOOR)
            if blind is not None or each.alarm.by != WALL or (lasts and each.alarm.kind == ARCHIVE_SILENT)
        )  # else its cause is gone, and it is about to end
        return JudgedFloor(tuple(sorted(judged, key=_order)), blind, self._down is None, whole, silent_s)

    def wishes(self, floor: JudgedFloor, now_s: float, utc_us: int) -> list[Wish]:
        """The alarms that the wall raises and ends, given what it has judged just now."""
        if not floor.connected:
            return []
        found: list[Wish | None] = []
        if floor.blind is not None:
            since_us = utc_us - int((now_s - floor.blind.since_s) * SECOND_US)
            found.append(self.alarms.raise_(WHOLE_FLOOR, FLOOR_BLIND, floor.blind.words, since_us, now_s))
        else:
            found.append(self.alarms.end(WHOLE_FLOOR, FLOOR_BLIND, utc_us, now_s))
        if floor.archive_silent_s is not None:
            since_us = utc_us - int((now_s - floor.archive_silent_s) * SECOND_US)
            words = "No archive is heard; rows wait in the stream and at the tables"
            found.append(self.alarms.raise_(WHOLE_FLOOR, ARCHIVE_SILENT, words, since_us, now_s))
        elif self._archive_s is not None:
            found.append(self.alarms.end(WHOLE_FLOOR, ARCHIVE_SILENT, utc_us, now_s))
        for table in floor.tables:
            if table.hearing is Hearing.UNKNOWN:
                continue  # nothing is known of it, so nothing is said
            for each in table.attentions:
                if each.alarm is None:
                    since_us = utc_us - int((now_s - each.since_s) * SECOND_US)
                    found.append(self.alarms.raise_(table.name, each.kind, each.words, since_us, now_s))
            for known in self.alarms.of(table.name):
                if known.alarm.kind not in self._tables[table.name].reasons:
                    found.append(self.alarms.end(table.name, known.alarm.kind, utc_us, now_s))
        return [each for each in found if each is not None][:MOST_WISHES]

    def _is_silent(self, table: _Table, now_s: float) -> bool:
        if self._up_s is None:
            return False
        heard_s = self._up_s if table.beat_s is None else max(self._up_s, table.beat_s)
        return now_s - heard_s > self.settings.silent_s

    def _archive_silent(self, now_s: float) -> float | None:
        """Since when the archive is not heard. A site where none has ever reported has none."""
        has_one = self._archive_s is not None or any(it.archived is not None for it in self._tables.values())
        if self._up_s is None or not has_one:
            return None
        heard_s = self._up_s if self._archive_s is None else max(self._up_s, self._archive_s)
        return heard_s if now_s - heard_s > self.settings.archive_s else None

    def _blind(self, silent: set[str], now_s: float) -> Blind | None:
        if self._down is not None:
            self._mute_s = None
            return self._down
        expected = [each for each in self._tables.values() if not _is_off(each)]
        mute = [each for each in expected if each.name in silent]
        if len(expected) < self.settings.least_blind or 2 * len(mute) <= len(expected):
            self._mute_s = None
            return None
        if self._mute_s is None:
            self._mute_s = now_s
        return Blind(f"{len(mute)} of {len(expected)} tables are not heard at once", self._mute_s)

    def _hearing(self, table: _Table, silent: bool, blind: bool) -> Hearing:
        if silent and _is_off(table):
            return Hearing.OFF
        if silent:
            return Hearing.UNKNOWN if blind else Hearing.SILENT
        fresh = self._up_s is not None and table.beat_s is not None and table.beat_s >= self._up_s
        return Hearing.LIVE if fresh else Hearing.UNKNOWN

    def _judged(self, table: _Table, hearing: Hearing, now_s: float) -> JudgedTable:
        self._follow(table, hearing, now_s)
        attentions = tuple(
            sorted(self._attentions(table, hearing, now_s), key=lambda each: (each.urgency, each.since_s))
        )
        rank = self._rank(table, hearing, attentions, now_s)
        since_s = None
        if rank in (Rank.WAITS, Rank.TAKEN, Rank.LATER):
            urgency = Urgency.LATER if rank is Rank.LATER else Urgency.NOW
            since_s = min(each.since_s for each in attentions if each.urgency is urgency)
        elif rank is Rank.UNKNOWN:
            since_s = table.beat_s
        behind = Behind(0, 0)
        if table.beat is not None:
            behind = behind_of({str(name): each for name, each in table.beat.chains.items()})
        return JudgedTable(
            table.name, rank, since_s, hearing, table.state, attentions, behind, table.archived, table.beat,
            table.beat_s,
        )  # fmt: skip

    def _follow(self, table: _Table, hearing: Hearing, now_s: float) -> None:
        """Which reasons there are now, and since when."""
        reasons: list[Reason] = [] if table.state is None else list(reasons_of(table.state))
        if hearing is Hearing.SILENT:
            reasons.append(Reason(TABLE_SILENT, "No heartbeat; what is shown may be old"))
        elif hearing is Hearing.LIVE and table.beat is not None:
            age_s = 0.0 if table.announced is None else now_s - table.announced_s
            behind = behind_reason(table.beat, age_s, self.settings.behind_s)
            reasons += [] if behind is None else [behind]
        elif hearing is Hearing.OFF:
            reasons = []
        table.reasons = {
            each.kind: (table.reasons.get(each.kind, (now_s, ""))[0], each.words) for each in reasons
        }

    def _attentions(self, table: _Table, hearing: Hearing, now_s: float) -> list[Attention]:
        alarms = {each.alarm.kind: each for each in self.alarms.of(table.name)}
        found = [
            self._attention(alarms[kind], now_s, words, since_s) if kind in alarms
            else Attention(kind, words, since_s, None, 0)
            for kind, (since_s, words) in table.reasons.items()
        ]  # fmt: skip
        over = WALL if hearing is not Hearing.UNKNOWN else ""  # its cause is gone, and it is about to end
        for kind, each in alarms.items():
            if kind not in table.reasons and each.alarm.by != over:
                found.append(self._attention(each, now_s))
        return found

    def _attention(
        self, known: KnownAlarm, now_s: float, words: str = "", seen_s: float | None = None
    ) -> Attention:
        """An alarm; ``seen_s`` is when the wall saw its cause, which counts unless the alarm is older."""
        since_s = known.since_s
        if seen_s is not None and seen_s - since_s < OLDER_S:
            since_s = seen_s
        escalated = known.level(now_s, self.settings.escalation)
        return Attention(known.alarm.kind, words or known.alarm.words, since_s, known, escalated)

    def _rank(self, table: _Table, hearing: Hearing, found: Sequence[Attention], now_s: float) -> Rank:
        urgent = [each for each in found if each.urgency is Urgency.NOW]
        waiting = [
            each for each in urgent
            if each.alarm is None or each.alarm.waits(now_s, self.settings.escalation)
        ]  # fmt: skip
        if waiting:
            return Rank.WAITS
        if urgent:
            return Rank.TAKEN
        if hearing is Hearing.UNKNOWN:
            return Rank.UNKNOWN
        if found:
            return Rank.LATER
        return Rank.CLOSED if _is_off(table) or hearing is Hearing.OFF else Rank.FINE


def _covers(state: TableState, announced: tuple[str, int]) -> bool:
    return state.run == announced[0] and state.number >= announced[1]


def _is_off(table: _Table) -> bool:
    return table.state is not None and table.state.closed


def _order(table: JudgedTable) -> tuple[int, float, tuple[tuple[int, str], ...]]:
    return RANKS.index(table.rank), 0.0 if table.since_s is None else table.since_s, natural(table.name)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key by which t2 comes before t10."""
    return tuple(
        (int(each), "") if each.isdigit() else (-1, each) for each in re.split(r"([0-9]+)", name) if each
    )
