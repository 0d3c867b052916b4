"""Checks the evidence chains of every table in the archive: each row's hash must follow from the row before.

The archive checks each row when it comes. This checks the database as it is now: a row that was changed,
removed or added afterwards breaks its chain here. What the archive never had is not seen by it; the newest
rows that tables announce are compared beside it.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from sabot_floor.archive_tables import conflicts, quarantine, rows, sources
from sabot_floor.errors import ArchiveFailed
from sabot_floor.payloads import chained

AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """One source of rows, checked."""

    table: str
    chain: str
    source: str
    level: str
    rows: int
    """Rows whose hashes were computed again."""
    newest: int
    conflicts: int
    wrong: str
    """What does not fit; "" if everything does."""


@dataclass(frozen=True, slots=True)
class CheckedFloor:
    """Every source, and the messages that the archive could not read."""

    sources: tuple[CheckedSource, ...]
    quarantined: int

    @property
    def rows(self) -> int:
        """Rows that were checked."""
        return sum(each.rows for each in self.sources)

    @property
    def wrong(self) -> int:
        """Sources in which something does not fit."""
        return sum(bool(each.wrong) for each in self.sources)

    def to_json(self) -> dict[str, Any]:
        """For a page."""
        return {
            "sources": [asdict(each) for each in self.sources],
            "quarantined": self.quarantined,
            "rows": self.rows,
            "wrong": self.wrong,
        }


def check_floor(engine: Engine, progress: Callable[[int], None] = lambda _: None) -> CheckedFloor:
    """Compute every hash again; `ArchiveFailed` if the archive cannot be read. ``progress`` hears rows."""
    try:
        with engine.connect() as db:
            found = db.execute(select(sources).order_by(sources.c.table_name, sources.c.id)).mappings().all()
            counted = select(conflicts.c.source_id, func.count()).group_by(conflicts.c.source_id)
            differing = {each[0]: each[1] for each in db.execute(counted)}
            quarantined = db.execute(select(func.count()).select_from(quarantine)).scalar() or 0
        done = 0
        checked = []
        for each in found:
            one = _check(engine, dict(each), int(differing.get(each["id"], 0)))
            done += one.rows
            progress(done)
            checked.append(one)
    except SQLAlchemyError as error:
        raise ArchiveFailed(f"the archive cannot be read: {error}") from error
    return CheckedFloor(tuple(checked), int(quarantined))


def _check(engine: Engine, source: dict[str, Any], differing: int) -> CheckedSource:
    count, wrong = 0, ""
    n, before = int(source["begins_prev"]), source["begins_hash"]
    if before is None:
        wrong = "its first rows have not come"
    else:
        for row in _rows(engine, int(source["id"])):
            if row.prev != n:
                wrong = f"row {n} is followed by row {row.n}, which names row {row.prev} before it"
                break
            if chained(before, row.body) != row.hash:
                wrong = f"row {row.n} does not follow from the row before"
                break
            n, before, count = row.n, row.hash, count + 1
        wrong = wrong or _compare(source, n, before, count)
    if differing:
        wrong = "; ".join(filter(None, (wrong, f"{differing} rows came again with another hash")))
    return CheckedSource(
        source["table_name"], source["chain"], source["source"], source["level"], count, n, differing, wrong
    )


def _compare(source: dict[str, Any], n: int, hash: str, count: int) -> str:
    """What differs between the rows and what the archive has reported of them."""
    if n < source["n"]:
        return f"rows {n + 1} to {source['n']} were reported as archived and are not there"
    if n == source["n"] and (hash != source["hash"] or count != source["count"]):
        return f"up to row {n} the archive reported {source['count']} rows with another hash"
    return ""


def _rows(engine: Engine, source_id: int) -> Iterator[Any]:
    after = -1
    while True:
        with engine.connect() as db:
            page = db.execute(
                select(rows.c.n, rows.c.prev, rows.c.hash, rows.c.body)
                .where(rows.c.source_id == source_id, rows.c.n > after)
                .order_by(rows.c.n)
                .limit(AT_ONCE)
            ).all()
        if not page:
            return
        yield from page
        after = page[-1].n
