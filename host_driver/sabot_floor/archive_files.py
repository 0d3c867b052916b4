"""An archive as files: CSV for others, a backup, and a check of every chain in it."""

import csv
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from sabot_floor.archive_store import StoredSource, first_of
from sabot_floor.archive_tables import open_engine, rows, sources
from sabot_floor.errors import ArchiveFailed
from sabot_floor.payloads import chained
from sabot_table.rule_texts import FloorLevel

PAGE = 1000
COLUMNS = (
    "table", "chain", "source", "level", "n", "prev", "hash", "kind", "at_us", "round_id", "person",
    "committed_us", "body",
)  # fmt: skip


class ArchiveMissing(ArchiveFailed):
    """There is no such archive."""

    advice = "Name the file or the database that 'sabot floor archive --to' writes."


def open_existing(url: str) -> Engine:
    """The database of an archive that is there; `ArchiveMissing` if it is not."""
    if "://" not in url and not Path(url).is_file():
        raise ArchiveMissing(f"{url}: there is no such file")
    return open_engine(url)


def write_csv(engine: Engine, out: TextIO, table: str | None = None) -> int:
    """Write rows as CSV, source by source, in order; how many there were."""
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    count = 0
    for source in _sources(engine, table):
        for row in _rows(engine, source.id):
            writer.writerow(
                [source.table, source.chain, source.source, source.level, row.n, row.prev, row.hash, row.kind,
                 row.at_us, row.round_id, row.person, row.committed_us, row.body]
            )  # fmt: skip
            count += 1
    return count


@dataclass(frozen=True, slots=True)
class SourceChecked:
    """One source of an archive: how far its chain holds, and what is wrong with it ("": nothing)."""

    table: str
    chain: str
    source: str
    n: int
    hash: str
    wrong: str
    level: str = ""
    rows: int = 0
    """Rows whose hashes were computed again."""


def check_chains(engine: Engine, heard: Callable[[int], None] = lambda _: None) -> list[SourceChecked]:
    """Compute every chain of the archive anew from its rows; ``heard`` hears how many rows are done.

    The archive may go on meanwhile: rows after what it had reported at the beginning are not looked at.
    """
    found: list[SourceChecked] = []
    for each in _sources(engine, None):
        found.append(_check(engine, each))
        heard(sum(it.rows for it in found))
    return found


def _check(engine: Engine, source: StoredSource) -> SourceChecked:
    n, hash, wrong, count = source.begins_prev, source.begins_hash or "", "", 0
    if not hash:
        wrong = "its beginning is missing"
    elif n == 0 and hash != first_of(source.chain, source.source, FloorLevel(source.level)):
        wrong = "it does not begin at its beginning"
    else:
        for row in _rows(engine, source.id):
            if n >= source.n:
                break  # it came after the report
            if row.prev != n:
                wrong = f"rows after {n} are missing"
                break
            if row.hash != chained(hash, row.body):
                wrong = f"the hash of row {row.n} does not follow"
                break
            n, hash, count = row.n, row.hash, count + 1
    if not wrong and (n, hash) != (source.n, source.hash):
        wrong = f"the chain ends at row {n}, and the archive says {source.n}"
    return SourceChecked(source.table, source.chain, source.source, n, hash, wrong, source.level, count)


def back_up(path: Path, out: Path) -> None:
    """Copy a SQLite archive while it is written; PostgreSQL has ``pg_dump``. The copy is whole or absent."""
    if not path.is_file():
        raise ArchiveMissing(f"{path}: there is no such file")
    if out.exists():
        raise ArchiveFailed(f"{out}: there is a file already", "Give the backup a name of its own.")
    part = out.with_name(out.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            (found,) = copy.execute("PRAGMA integrity_check").fetchone()
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise ArchiveFailed(f"{path}: {error}") from error
    if found != "ok":
        raise ArchiveFailed(f"{path}: {found}")
    part.rename(out)


@dataclass(frozen=True, slots=True)
class _Row:
    n: int
    prev: int
    hash: str
    kind: str
    at_us: int
    round_id: int | None
    person: str | None
    committed_us: int
    body: str


def _sources(engine: Engine, table: str | None) -> list[StoredSource]:
    c = sources.c
    query = select(
        c.id, c.table_name, c.chain, c.source, c.level, c.begins_prev, c.begins_hash, c.n, c.hash
    ).order_by(c.table_name, c.chain, c.id)
    if table is not None:
        query = query.where(c.table_name == table)
    with engine.connect() as db:
        return [StoredSource(*tuple(each)) for each in db.execute(query)]


def _rows(engine: Engine, source_id: int) -> Iterator[_Row]:
    """Rows of a source in order, a page at a time."""
    c, after = rows.c, 0
    while True:
        query = (
            select(c.n, c.prev, c.hash, c.kind, c.at_us, c.round_id, c.person, c.committed_us, c.body)
            .where(c.source_id == source_id, c.n > after)
            .order_by(c.n)
            .limit(PAGE)
        )
        try:
            with engine.connect() as db:
                page = [_Row(*tuple(each)) for each in db.execute(query)]
        except SQLAlchemyError as error:
            raise ArchiveFailed(f"the archive's database: {error}") from error
        if not page:
            return
        yield from page
        after = page[-1].n
