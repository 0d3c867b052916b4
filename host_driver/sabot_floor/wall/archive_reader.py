"""Reads the archive for the wall: rounds, faults, wear. It never writes.

Every answer is bounded. A search for rounds looks at the newest `MOST_LOOKED` rounds of its time and says
whether there were more, so that a page never takes a part for the whole.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from sabot_driver.device_values import parse_roller_times
from sabot_driver.errors import SabotError
from sabot_driver.roller_trends import RollerTrend
from sabot_floor.archive_tables import open_reader, rows, sources
from sabot_floor.errors import ArchiveFailed
from sabot_floor.names import DEVICE, RECORD
from sabot_protocol.errors import FieldError
from sabot_protocol.host.messages import RollerTimes
from sabot_session.canonical import read_row
from sabot_session.round_export import round_json
from sabot_session.round_history import Round, build_round

SECOND_US = 1_000_000
OPENED = ("open_bets", "begin_simulated")
"""Kinds of rows that open a round."""
ENDS = {"collect": "settled", "void": "void", "return_bets": "returned"}
MOST_LOOKED = 2000
MOST_FOUND = 200
MOST_FAULTS = 200
MOST_SHUFFLES = 200
AT_ONCE = 100
ALL = "all"


@dataclass(frozen=True, slots=True)
class RoundSearch:
    """Which rounds are wanted; what is left empty does not filter. Times are UTC seconds."""

    table: str = ""
    from_s: int = 0
    until_s: int = 2**43
    deck: int | None = None
    seat: int | None = None
    result: str = ""
    """How the round ended (settled, void, returned, open), or what became of a wager (win, lose, push …)."""


@dataclass(frozen=True, slots=True)
class FoundRound:
    """One round in a list."""

    table: str
    source_id: int
    round_id: int
    opened_s: int | None
    ended_s: int | None
    dealer: str
    deck: int
    end: str
    lines: tuple[tuple[int, str, str], ...]
    """Seat, wager and outcome of each wager that is known."""
    whole: bool
    """Whether the archive has all of the round; below level `all` it has no cards."""

    def fits(self, wanted: RoundSearch) -> bool:
        """Whether a search wants it. A seat and a result are looked for in the same wager."""
        if wanted.deck is not None and self.deck != wanted.deck:
            return False
        lines = [each for each in self.lines if wanted.seat in (None, each[0])]
        if wanted.seat is not None and not lines:
            return False
        return not wanted.result or self.end == wanted.result or any(it[2] == wanted.result for it in lines)


@dataclass(frozen=True, slots=True)
class FoundRounds:
    """What a search found, newest first."""

    rounds: tuple[FoundRound, ...]
    looked: int
    more: bool
    """Whether older rounds of this time were not looked at."""


@dataclass(frozen=True, slots=True)
class FaultRate:
    """How often the machine of a table stopped."""

    table: str
    rounds: int | None
    """None where the rule text lets no round leave the table."""
    faults: int

    @property
    def per_thousand(self) -> float | None:
        """Faults per 1,000 rounds; None without rounds."""
        return None if not self.rounds else 1000 * self.faults / self.rounds


class ArchiveReader:
    """An archive, for any thread. `ArchiveFailed` if it cannot be read."""

    def __init__(self, url: str) -> None:
        self.engine = open_reader(url)

    def close(self) -> None:
        """Close its connections."""
        self.engine.dispose()

    def rounds(self, wanted: RoundSearch) -> FoundRounds:
        """Rounds by the time of their opening, newest first."""
        opened = (
            select(rows.c.source_id, rows.c.round_id, sources.c.table_name, sources.c.level)
            .join(sources, sources.c.id == rows.c.source_id)
            .where(sources.c.chain == RECORD, rows.c.kind.in_(OPENED), *_times(wanted.from_s, wanted.until_s))
            .order_by(rows.c.at_us.desc(), rows.c.source_id, rows.c.n.desc())
            .limit(MOST_LOOKED + 1)
        )
        if wanted.table:
            opened = opened.where(sources.c.table_name == wanted.table)
        found: list[FoundRound] = []
        looked = 0
        try:
            with self.engine.connect() as db:
                listed = db.execute(opened).all()
                more = len(listed) > MOST_LOOKED
                wholly = listed[:MOST_LOOKED]
                for begin in range(0, len(wholly), AT_ONCE):
                    some = wholly[begin : begin + AT_ONCE]
                    bodies = _bodies(db, [(each[0], each[1]) for each in some])
                    for source_id, round_id, table, level in some:
                        looked += 1
                        each = _found(table, source_id, round_id, level, bodies[source_id, round_id])
                        if each.fits(wanted):
                            found.append(each)
                        if len(found) == MOST_FOUND:
                            return FoundRounds(tuple(found), looked, looked < len(listed))
        except SQLAlchemyError as error:
            raise _failed(error) from error
        return FoundRounds(tuple(found), looked, more)

    def round(self, table: str, source_id: int, round_id: int) -> dict[str, Any] | None:
        """All that the archive has of a round; None if it has none."""
        try:
            with self.engine.connect() as db:
                there = select(sources.c.level).where(
                    sources.c.id == source_id, sources.c.table_name == table
                )
                level = db.execute(there).scalar()
                bodies = _bodies(db, [(source_id, round_id)])[source_id, round_id] if level else []
        except SQLAlchemyError as error:
            raise _failed(error) from error
        if not bodies:
            return None
        whole = _whole(level or "", bodies)
        if whole is not None:
            return dict(round_json(whole))
        return {"round": round_id, "rows": [json.loads(each) for each in bodies]}

    def faults(self, table: str, from_s: int = 0, until_s: int = 2**43) -> list[dict[str, Any]]:
        """The newest faults of a table, newest first."""
        wanted = (
            select(rows.c.at_us, rows.c.round_id, rows.c.body)
            .join(sources, sources.c.id == rows.c.source_id)
            .where(sources.c.chain == RECORD, sources.c.table_name == table, rows.c.kind == "fault_raised")
            .where(*_times(from_s, until_s))
            .order_by(rows.c.at_us.desc(), rows.c.n.desc())
            .limit(MOST_FAULTS)
        )
        found = []
        for at_us, round_id, body in self._all(wanted):
            data = _object(body).get("data", {})
            told = {name: data.get(name) for name in ("fault", "place", "half", "cards")}
            found.append({"at_s": at_us // SECOND_US, "round": round_id, **told})
        return found

    def fault_rates(self, from_s: int = 0, until_s: int = 2**43) -> list[FaultRate]:
        """Faults and rounds of each table, by table."""
        counted = (
            select(sources.c.table_name, rows.c.kind, func.count())
            .join(sources, sources.c.id == rows.c.source_id)
            .where(sources.c.chain == RECORD, rows.c.kind.in_((*OPENED, "fault_raised")))
            .where(*_times(from_s, until_s))
            .group_by(sources.c.table_name, rows.c.kind)
        )
        levels: dict[str, set[str]] = {}
        there = select(sources.c.table_name, sources.c.level).where(sources.c.chain == RECORD)
        for table, level in self._all(there):
            levels.setdefault(table, set()).add(level)
        counts: dict[str, dict[str, int]] = {table: {} for table in levels}
        for table, kind, count in self._all(counted):
            counts[table][kind] = count
        return [
            FaultRate(
                table,
                None if levels[table] == {"machine"} else sum(told.get(each, 0) for each in OPENED),
                told.get("fault_raised", 0),
            )
            for table, told in sorted(counts.items())
        ]

    def wear(self, table: str) -> list[dict[str, Any]]:
        """How long cards take at each roller over the newest shuffles: the first, the last, the trend."""
        wanted = (
            select(rows.c.body, sources.c.level)
            .join(sources, sources.c.id == rows.c.source_id)
            .where(sources.c.chain == DEVICE, sources.c.table_name == table, rows.c.kind == RollerTimes.NAME)
            .order_by(rows.c.at_us.desc(), rows.c.n.desc())
            .limit(MOST_SHUFFLES)
        )
        told = [each for each in (_roller_times(*found) for found in self._all(wanted)) if each is not None]
        timings = [parse_roller_times(each) for each in reversed(told)]
        trends = [RollerTrend(names[0].roller, names) for names in zip(*timings, strict=True)]
        return [
            {
                "roller": each.roller,
                "shuffles": len(each.means),
                "mean_ms": round(each.means[-1], 1) if each.means else None,
                "change_percent": None if each.change_percent is None else round(each.change_percent, 1),
                "rounds_left": each.rounds_left,
            }
            for each in trends
        ]

    def _all(self, wanted: Any) -> Sequence[Any]:
        try:
            with self.engine.connect() as db:
                return db.execute(wanted).all()
        except SQLAlchemyError as error:
            raise _failed(error) from error


def _times(from_s: int, until_s: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return rows.c.at_us >= from_s * SECOND_US, rows.c.at_us < until_s * SECOND_US


def _failed(error: SQLAlchemyError) -> ArchiveFailed:
    return ArchiveFailed(f"the archive cannot be read: {error}")


def _bodies(db: Connection, wanted: Sequence[tuple[int, int]]) -> Mapping[tuple[int, int], list[str]]:
    """The rows of some rounds, oldest first."""
    found: dict[tuple[int, int], list[str]] = {each: [] for each in wanted}
    by_source: dict[int, list[int]] = {}
    for source_id, round_id in wanted:
        by_source.setdefault(source_id, []).append(round_id)
    which = [
        and_(rows.c.source_id == source_id, rows.c.round_id.in_(ids)) for source_id, ids in by_source.items()
    ]
    query = select(rows.c.source_id, rows.c.round_id, rows.c.body).where(or_(*which)).order_by(rows.c.n)
    for source_id, round_id, body in db.execute(query):
        found[source_id, round_id].append(body)
    return found


def _whole(level: str, bodies: Sequence[str]) -> Round | None:
    """The round out of its rows; None if they leave something out, or a kind is not known here."""
    if level != ALL:
        return None
    try:
        return build_round([read_row(each.encode()) for each in bodies])
    except (SabotError, ValueError, KeyError, TypeError):
        return None


def _found(table: str, source_id: int, round_id: int, level: str, bodies: Sequence[str]) -> FoundRound:
    whole = _whole(level, bodies)
    if whole is not None:
        lines = tuple((each.seat, each.wager, str(each.outcome)) for each in whole.lines)
        return FoundRound(
            table, source_id, round_id, whole.opened_s, whole.ended_s, whole.dealer, whole.pack_id,
            str(whole.end), lines, True,
        )  # fmt: skip
    told = [_object(each) for each in bodies]
    opened = next((each for each in told if each.get("kind") in OPENED), {})
    data = opened.get("data", {})
    end = next((ENDS[each["kind"]] for each in told if each.get("kind") in ENDS), "open")
    end = "void" if any(each.get("kind") == "void" for each in told) else end
    ended = next((each["at_s"] for each in told if each.get("kind") in ENDS), None)
    lines = tuple(
        (int(line.get("seat", 0)), str(line.get("wager", "")), str(line.get("outcome", "")))
        for each in told
        for line in each.get("data", {}).get("lines") or ()
        if isinstance(line, dict)
    )
    return FoundRound(
        table, source_id, round_id, opened.get("at_s"), ended, str(data.get("dealer", "")),
        int(data.get("pack_id", 0)), end, lines, False,
    )  # fmt: skip


def _object(body: str) -> dict[str, Any]:
    """The object that a body holds; empty if it is none: rows of unknown kinds are archived as they are."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _roller_times(body: str, level: str) -> RollerTimes | None:
    """The event of a device row; None if this version cannot read it."""
    try:
        if level == ALL:
            return RollerTimes.unpack(bytes.fromhex(body.split(" ")[10]))
        fields = _object(body)["fields"]
        return RollerTimes(0, tuple(fields["counts"]), tuple(fields["sums"]), tuple(fields["squares"]))
    except (FieldError, ValueError, KeyError, IndexError, TypeError):
        return None
