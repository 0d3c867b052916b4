"""The archive's tables in SQL: SQLite by default, PostgreSQL where there is one (docs/floor.md)."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from sabot_floor.errors import ArchiveFailed

VERSION = "1"
POSTGRESQL = "postgresql"
MONTHS = 24
"""Partitions that a new archive has: the archive's own role may add rows only, and no partition."""
SQLITE = "sqlite:///"
metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "meta",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)
sources = Table(
    "sources",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("table_name", String(32), nullable=False),
    Column("chain", String(8), nullable=False),
    Column("source", String(128), nullable=False),
    Column("level", String(8), nullable=False),
    Column("begins_prev", BigInteger, nullable=False),
    Column("begins_hash", String(64)),  # null until the source's first message has come
    Column("n", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("touched_us", BigInteger, nullable=False),
    UniqueConstraint("table_name", "chain", "source"),
)
"""One line a source; ``n``, ``hash`` and ``count`` are its contiguous part."""
rows = Table(
    "rows",
    metadata,
    Column("source_id", _Id, primary_key=True, autoincrement=False),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("committed_us", BigInteger, nullable=False),
    Column("prev", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("round_id", BigInteger),
    Column("person", String(128)),
    Column("body", Text, nullable=False),
    Index("rows_by_kind", "kind", "at_us"),
    Index("rows_by_time", "source_id", "at_us"),
    Index("rows_by_round", "source_id", "round_id"),
)
conflicts = Table(
    "conflicts",
    metadata,
    Column("source_id", _Id, primary_key=True, autoincrement=False),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", String(64), primary_key=True),
    Column("prev", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)
"""Rows with the key of another row and another hash."""
quarantine = Table(
    "quarantine",
    metadata,
    Column("digest", String(64), primary_key=True),  # of subject and data: a message delivered again is one
    Column("seq", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("why", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)
alarms = Table(
    "alarms",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("table_name", String(32), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("words", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("ended", Integer, nullable=False),  # 0: it was raised; 1: it has ended
)
reconciliations = Table(
    "reconciliations",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("source_id", _Id, nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("wrong", Text, nullable=False),  # "": count and hash are the table's
)


def open_engine(url: str) -> Engine:
    """The database of a URL, with its tables; a path without a scheme is a SQLite file.

    `ArchiveFailed` if it cannot be opened or is not an archive of this version.
    """
    url = _driver_url(url)
    engine = None
    try:
        engine = create_engine(url, pool_pre_ping=True)
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _durable)
        with engine.begin() as db:
            if not inspect(db).has_table(meta.name):
                _create(db)
            found = db.execute(select(meta.c.value).where(meta.c.name == "version")).scalar()
            if found is None:
                db.execute(meta.insert().values(name="version", value=VERSION))
            elif found != VERSION:
                raise ArchiveFailed(f"an archive of version {found}; this program writes version {VERSION}")
    except ArchiveFailed:
        assert engine is not None
        engine.dispose()
        raise
    except (SQLAlchemyError, ArgumentError, ImportError) as error:
        if engine is not None:
            engine.dispose()
        raise ArchiveFailed(f"{_without_password(url)}: {error}") from error
    return engine


def open_reader(url: str) -> Engine:
    """The database of an archive for reading only: nothing is created, and SQLite opens the file so.

    `ArchiveFailed` if it cannot be opened or is not an archive of this version.
    """
    url = _driver_url(url)
    try:
        if url.startswith(SQLITE):
            path = Path(url.removeprefix(SQLITE)).resolve()
            url = f"{SQLITE}file:{quote(str(path))}?mode=ro&uri=true"
        engine = create_engine(url, pool_pre_ping=True)
        with engine.connect() as db:
            found = db.execute(select(meta.c.value).where(meta.c.name == "version")).scalar()
    except ArchiveFailed:
        assert engine is not None
        engine.dispose()
        raise
    except (SQLAlchemyError, ArgumentError, ImportError) as error:
        if engine is not None:
            engine.dispose()
        raise ArchiveFailed(f"{_without_password(url)}: {error}") from error
    if found != VERSION:
        raise ArchiveFailed(f"an archive of version {found}; this program reads version {VERSION}")
    return engine


def _driver_url(url: str) -> str:
    """The URL with the driver that we install."""
    if "://" not in url:
        return f"{SQLITE}{url}"
    return (
        url.replace("postgresql://", "postgresql+psycopg://", 1) if url.startswith("postgresql://") else url
    )


def _durable(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=5000")


def _create(db: Connection) -> None:
    if db.dialect.name != POSTGRESQL:
        metadata.create_all(db)
        return
    metadata.create_all(db, [each for each in metadata.sorted_tables if each is not rows])
    db.execute(text(_PARTITIONED))
    for index in ("rows_by_kind ON rows (kind, at_us)", "rows_by_time ON rows (source_id, at_us)",
                  "rows_by_round ON rows (source_id, round_id)"):  # fmt: skip
        db.execute(text(f"CREATE INDEX IF NOT EXISTS {index}"))
    at_us = time.time_ns() // 1000
    for _ in range(MONTHS):
        add_partition(db, at_us)
        at_us = month_of(at_us)[2]


_PARTITIONED = """
CREATE TABLE IF NOT EXISTS rows (
    source_id BIGINT NOT NULL, n BIGINT NOT NULL, committed_us BIGINT NOT NULL, prev BIGINT NOT NULL,
    hash VARCHAR(64) NOT NULL, kind VARCHAR(64) NOT NULL, at_us BIGINT NOT NULL, round_id BIGINT,
    person VARCHAR(128), body TEXT NOT NULL, PRIMARY KEY (source_id, n, committed_us)
) PARTITION BY RANGE (committed_us)
"""


def month_of(at_us: int) -> tuple[str, int, int]:
    """The month of a time in UTC: its name, its first microsecond, and that of the month after."""
    at = datetime.fromtimestamp(at_us / 1e6, UTC)
    first = datetime(at.year, at.month, 1, tzinfo=UTC)
    after = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
    return f"{at:%Y_%m}", int(first.timestamp()) * 1_000_000, int(after.timestamp()) * 1_000_000


def add_partition(db: Connection, at_us: int) -> None:
    """On PostgreSQL, the partition of a month, if it is missing. Only the tables' owner can add one."""
    if db.dialect.name == POSTGRESQL:
        name, first, after = month_of(at_us)
        if db.execute(text("SELECT to_regclass(:name)"), {"name": f"rows_{name}"}).scalar() is not None:
            return
        bounds = f"FOR VALUES FROM ({first}) TO ({after})"
        db.execute(text(f"CREATE TABLE IF NOT EXISTS rows_{name} PARTITION OF rows {bounds}"))


def add_reader_roles(db: Connection, writer: str, reader: str) -> None:
    """On PostgreSQL, rights of two roles that exist: one that only adds and reads rows, one that only reads.

    The archive updates ``sources``; a row, a conflict or a quarantined message is never changed or deleted.
    """
    for role in (writer, reader):
        if not role.isidentifier():
            raise ArchiveFailed(f"the role '{role}'", "Use letters, digits and underscores.")
    everything = ", ".join(each.name for each in metadata.sorted_tables)
    db.execute(text(f"GRANT SELECT ON {everything} TO {reader}, {writer}"))
    db.execute(text(f"GRANT INSERT ON {everything} TO {writer}"))
    db.execute(text(f"GRANT UPDATE ON sources TO {writer}"))
    db.execute(text(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {writer}"))


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url
