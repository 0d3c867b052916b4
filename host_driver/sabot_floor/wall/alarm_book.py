"""The alarms of a site as the wall knows them, and what it wishes to write about them.

An alarm is an entry of a bucket; a wish replaces it by compare-and-set on its revision, so of two people who
take the same alarm exactly one has it. Nothing here writes: who carries out a wish hears of the new entry as
of any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sabot_floor.errors import FloorError
from sabot_floor.payloads import Alarm

WALL = "wall"
SECOND_US = 1_000_000
AGAIN_S = 5.0  # a wish of which nothing was heard is wished again
MOST_OLD_S = 30 * 86400.0


class AlarmRefused(FloorError):
    """An alarm that cannot be taken or given back."""


class AlarmGone(AlarmRefused):
    """The alarm has ended."""

    advice = "Nothing is left to do."


class AlarmTaken(AlarmRefused):
    """Another person has taken the alarm."""

    advice = "Speak with that person; who took an alarm may give it back."


class AlarmChanged(AlarmRefused):
    """The alarm is not the one that the person saw."""

    advice = "Look at it again, then take it."


@dataclass(frozen=True, slots=True)
class Wish:
    """An entry to write; ``expected`` is the revision of the one that it replaces, 0 if there is none."""

    alarm: Alarm
    expected: int


@dataclass(frozen=True, slots=True)
class Escalation:
    """When an alarm escalates, in seconds."""

    untaken_s: tuple[float, ...] = (60.0, 180.0)
    """Nobody has taken it for so long."""
    taken_s: float = 600.0
    """Somebody took it so long ago, and its cause is still there."""


@dataclass(frozen=True, slots=True)
class KnownAlarm:
    """An open alarm: its entry, and since when by the wall's own clock."""

    alarm: Alarm
    revision: int
    since_s: float
    taken_s: float | None

    def level(self, now_s: float, escalation: Escalation) -> int:
        """How often it has escalated."""
        if self.taken_s is not None:
            return int(now_s - self.taken_s >= escalation.taken_s)
        return sum(now_s - self.since_s >= each for each in escalation.untaken_s)

    def waits(self, now_s: float, escalation: Escalation) -> bool:
        """Whether it waits for a person: nobody has taken it, or whoever did has not ended its cause."""
        return self.taken_s is None or self.level(now_s, escalation) > 0


class AlarmBook:
    """Every alarm of the site, by table and kind."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], KnownAlarm] = {}
        self._revisions: dict[tuple[str, str], int] = {}
        self._wished: dict[tuple[str, str], tuple[int, float]] = {}

    def hear(self, alarm: Alarm, revision: int, now_s: float, utc_us: int) -> None:
        """An entry of the bucket. One that is older than what is known is ignored."""
        key = alarm.table, alarm.kind
        if revision <= self._revisions.get(key, 0):
            return
        self._revisions[key] = revision
        self._wished.pop(key, None)
        if alarm.ended_us is not None:
            self._open.pop(key, None)
            return
        before = self._open.get(key)
        # The writer's clock may be another one: an entry of this alarm that was heard before counts instead.
        since_s = now_s - _age_s(alarm.since_us, utc_us)
        if before is not None and before.alarm.since_us == alarm.since_us:
            since_s = before.since_s
        taken_s = None
        if alarm.taken_us is not None:
            taken_s = now_s - _age_s(alarm.taken_us, utc_us)
            if before is not None and before.alarm.taken_us == alarm.taken_us:
                taken_s = before.taken_s
        self._open[key] = KnownAlarm(alarm, revision, since_s, taken_s)

    def forget(self, table: str, kind: str, revision: int) -> None:
        """The entry was deleted."""
        key = table, kind
        if revision > self._revisions.get(key, 0):
            self._revisions[key] = revision
            self._open.pop(key, None)
            self._wished.pop(key, None)

    def get(self, table: str, kind: str) -> KnownAlarm | None:
        """An open alarm."""
        return self._open.get((table, kind))

    def of(self, table: str) -> list[KnownAlarm]:
        """The open alarms of a table, oldest first."""
        found = [each for (name, _), each in self._open.items() if name == table]
        return sorted(found, key=lambda each: (each.since_s, each.alarm.kind))

    def __iter__(self) -> Iterator[KnownAlarm]:
        return iter(list(self._open.values()))

    # -- wishes ---------------------------------------------------------------------------------

    def raise_(self, table: str, kind: str, words: str, since_us: int, now_s: float) -> Wish | None:
        """Raise an alarm of the wall; None if it is open, or was wished just now."""
        key = table, kind
        if key in self._open or not self._is_due(key, now_s):
            return None
        alarm = Alarm(table=table, kind=kind, words=words[:1000], by=WALL, since_us=since_us)
        return self._wish(key, alarm, now_s)

    def end(self, table: str, kind: str, utc_us: int, now_s: float) -> Wish | None:
        """End an alarm of the wall; None if it is not open, or not the wall's."""
        key = table, kind
        found = self._open.get(key)
        if found is None or found.alarm.by != WALL or not self._is_due(key, now_s):
            return None
        return self._wish(key, found.alarm.model_copy(update={"ended_us": utc_us}), now_s)

    def take(self, table: str, kind: str, revision: int, person: str, utc_us: int) -> Wish:
        """A person takes an alarm as they saw it; `AlarmRefused` says why that cannot be."""
        found = self._seen(table, kind)
        if found.alarm.taken_by is not None:
            raise AlarmTaken(f"{found.alarm.taken_by} has taken this alarm")
        if found.revision != revision:
            raise AlarmChanged("this alarm has changed since you saw it")
        return Wish(found.alarm.model_copy(update={"taken_by": person, "taken_us": utc_us}), revision)

    def give_back(self, table: str, kind: str, revision: int, person: str) -> Wish:
        """Who took an alarm gives it back."""
        found = self._seen(table, kind)
        if found.alarm.taken_by != person:
            raise AlarmTaken(f"{found.alarm.taken_by or 'nobody'} has this alarm, not {person}")
        if found.revision != revision:
            raise AlarmChanged("this alarm has changed since you saw it")
        return Wish(found.alarm.model_copy(update={"taken_by": None, "taken_us": None}), revision)

    def _seen(self, table: str, kind: str) -> KnownAlarm:
        found = self._open.get((table, kind))
        if found is None:
            raise AlarmGone("this alarm has ended")
        return found

    def _is_due(self, key: tuple[str, str], now_s: float) -> bool:
        revision, at_s = self._wished.get(key, (-1, 0.0))
        return revision != self._revisions.get(key, 0) or now_s - at_s >= AGAIN_S

    def _wish(self, key: tuple[str, str], alarm: Alarm, now_s: float) -> Wish:
        revision = self._revisions.get(key, 0)
        self._wished[key] = revision, now_s
        return Wish(alarm, revision)


def _age_s(at_us: int, utc_us: int) -> float:
    return min(max(0.0, (utc_us - at_us) / SECOND_US), MOST_OLD_S)
