"""The archive's database: takes messages of rows, each batch in one transaction.

What `take` returned from is committed. A row that came before with the same hash is ignored. One that came
with another hash is kept apart. A message that cannot be read goes to quarantine. Rows may come in any order:
the contiguous part of a source grows when its next row is there and the row's hash follows.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from sabot_evidence.chain import first_hash
from sabot_floor.archive_tables import (
    add_partition,
    alarms,
    conflicts,
    open_engine,
    quarantine,
    reconciliations,
    rows,
    sources,
)
from sabot_floor.errors import ArchiveFailed, BadPayload
from sabot_floor.names import DEVICE, SiteNames
from sabot_floor.payloads import ChainHead, FloorRow, RowMessage
from sabot_floor.row_columns import UNREADABLE, columns_of
from sabot_table.rule_texts import FloorLevel

WALK = 256


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message as the stream delivered it."""

    seq: int
    subject: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """Something that needs an alarm."""

    table: str
    kind: str
    words: str


@dataclass(slots=True)
class Taken:
    """What a batch was."""

    new: int = 0
    again: int = 0
    found: list[Found] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    """Tables whose rows were in it."""


@dataclass(slots=True)
class StoredSource:
    """A source as the archive's table has it."""

    id: int
    table: str
    chain: str
    source: str
    level: str
    begins_prev: int
    begins_hash: str | None
    n: int
    hash: str
    count: int = 0


def first_of(chain: str, source: str, level: FloorLevel) -> str:
    """The hash before the first row of a source that begins at its beginning."""
    if level is FloorLevel.ALL:
        return first_hash("journal" if chain == DEVICE else "record").hex()
    return hashlib.sha256(f"sabot floor 1\n{source}".encode()).hexdigest()


# Statements are made once: to build one takes longer than SQLite takes to execute it.
_SOURCES = select(
    sources.c.id, sources.c.table_name, sources.c.chain, sources.c.source, sources.c.level,
    sources.c.begins_prev, sources.c.begins_hash, sources.c.n, sources.c.hash, sources.c.count,
).order_by(sources.c.touched_us, sources.c.id)  # fmt: skip
_FIND = _SOURCES.where(
    sources.c.table_name == bindparam("table"),
    sources.c.chain == bindparam("chain"),
    sources.c.source == bindparam("source"),
)
_UPDATE = update(sources).where(sources.c.id == bindparam("of"))
_OF = rows.c.source_id == bindparam("of")
_THERE = select(rows.c.n, rows.c.hash).where(
    _OF, rows.c.n >= bindparam("first"), rows.c.n <= bindparam("last")
)
_BEHIND = (
    select(rows.c.n, rows.c.prev, rows.c.hash, rows.c.body)
    .where(_OF, rows.c.n > bindparam("after"))
    .order_by(rows.c.n)
    .limit(WALK)
)
_ADD = insert(rows)


class ArchiveStore:
    """One archive. It is used by one thread at a time."""

    def __init__(self, url: str, site: str) -> None:
        """Open or create it; `ArchiveFailed` if that cannot be done."""
        self._names = SiteNames(site)
        self.engine = open_engine(url)
        self._known: dict[tuple[str, str, str], ChainHead] = {}
        self._latest: dict[str, dict[str, ChainHead]] = {}
        with self.engine.connect() as db:
            for each in self._sources(db):
                self._remember(each)

    def close(self) -> None:
        """Close its connections."""
        self.engine.dispose()

    def take(self, delivered: Sequence[Delivered]) -> Taken:
        """Commit messages, all or none; `ArchiveFailed` if nothing was committed."""
        taken = Taken()
        changed: list[StoredSource] = []
        now_us = time.time_ns() // 1000
        try:
            with self.engine.begin() as db:
                add_partition(db, now_us)
                for each in delivered:
                    source = self._take_one(db, each, now_us, taken)
                    if source is not None:
                        changed.append(source)
        except SQLAlchemyError as error:
            raise ArchiveFailed(f"the archive's database: {error}") from error
        for source in changed:
            self._remember(source)
        return taken

    def _remember(self, source: StoredSource) -> None:
        head = ChainHead(source=source.source, n=source.n, hash=source.hash, count=source.count)
        self._known[source.table, source.chain, source.source] = head
        self._latest.setdefault(source.table, {})[source.chain] = head

    def _take_one(
        self, db: Connection, delivered: Delivered, now_us: int, taken: Taken
    ) -> StoredSource | None:
        """Take one message; its source if that has changed."""
        table = self._names.table_of(delivered.subject) or "floor"
        try:
            message = RowMessage.read(delivered.data)
            if self._names.rows(message.table, message.chain) != delivered.subject:
                raise BadPayload(f"rows of {message.table}.{message.chain}")
        except BadPayload as error:
            self._quarantine(db, delivered, str(error), now_us)
            taken.found.append(Found(table, "unreadable", f"message {delivered.seq}: {error}"))
            return None
        taken.tables.add(message.table)
        source = self._source(db, message, now_us)
        new = self._insert(db, source, message, delivered.seq, now_us, taken)
        before = source.n
        if new or source.begins_hash is not None:
            self._advance(db, source, message, new, taken)
        if source.n == before and not new:
            return None
        values = {
            "of": source.id, "n": source.n, "hash": source.hash, "count": source.count, "touched_us": now_us,
            "begins_prev": source.begins_prev, "begins_hash": source.begins_hash,
        }  # fmt: skip
        db.execute(_UPDATE, values)
        return source

    def _quarantine(self, db: Connection, delivered: Delivered, why: str, now_us: int) -> None:
        named = f"{delivered.seq} {delivered.subject}\n".encode()
        digest = hashlib.sha256(named + delivered.data).hexdigest()
        if db.execute(select(quarantine.c.seq).where(quarantine.c.digest == digest)).first() is None:
            db.execute(
                insert(quarantine).values(
                    digest=digest, seq=delivered.seq, subject=delivered.subject, data=delivered.data, why=why,
                    at_us=now_us,
                )
            )  # fmt: skip

    def _source(self, db: Connection, message: RowMessage, now_us: int) -> StoredSource:
        found = self._find(db, message.table, message.chain, message.source)
        if found is None:
            values = {
                "table_name": message.table, "chain": message.chain, "source": message.source,
                "level": str(message.level), "begins_prev": 0, "begins_hash": None, "n": 0,
                "hash": first_of(message.chain, message.source, message.level), "count": 0,
                "touched_us": now_us,
            }  # fmt: skip
            db.execute(insert(sources).values(**values))
            found = self._find(db, message.table, message.chain, message.source)
            assert found is not None
        if found.begins_hash is None and message.begins is not None:
            begins = message.begins
            found.begins_prev, found.begins_hash = begins.prev, begins.hash
            found.n, found.hash = begins.prev, begins.hash
            found.count = begins.prev if message.level is FloorLevel.ALL else 0
        return found

    def _find(self, db: Connection, table: str, chain: str, source: str) -> StoredSource | None:
        found = db.execute(_FIND, {"table": table, "chain": chain, "source": source}).first()
        return None if found is None else StoredSource(*tuple(found))

    def _sources(self, db: Connection) -> list[StoredSource]:
        """Sources, the one that was written last at the end."""
        return [StoredSource(*tuple(each)) for each in db.execute(_SOURCES)]

    def _insert(
        self, db: Connection, source: StoredSource, message: RowMessage, seq: int, now_us: int, taken: Taken
    ) -> list[FloorRow]:
        """Insert what is new; those rows."""
        first, last = message.rows[0].n, message.rows[-1].n
        # also if it follows the newest row: rows behind a gap may be among them
        found = db.execute(_THERE, {"of": source.id, "first": first, "last": last})
        there = {each.n: each.hash for each in found}
        new: dict[int, FloorRow] = {}
        for row in message.rows:
            known = new[row.n].hash if row.n in new else there.get(row.n)
            if known is None:
                new[row.n] = row
            elif known == row.hash:
                taken.again += 1
            else:
                self._keep_apart(db, source, row, seq, now_us)
                words = f"{source.chain} row {row.n} of {source.source} came again with another hash"
                taken.found.append(Found(source.table, "row_differs", words))
        self._write(db, source, new.values(), message, now_us, taken)
        taken.new += len(new)
        return list(new.values())

    def _write(
        self, db: Connection, source: StoredSource, new: Iterable[FloorRow], message: RowMessage, now_us: int,
        taken: Taken,
    ) -> None:  # fmt: skip
        values: list[dict[str, Any]] = []
        at_us = message.sent_us
        for row in new:
            told = columns_of(message.chain, str(message.level), row.body)
            at_us = at_us if told.at_us is None else told.at_us
            if told.kind == UNREADABLE:
                words = f"{source.chain} row {row.n} of {source.source} cannot be read; it is kept"
                taken.found.append(Found(source.table, "unreadable", words))
            values.append(
                {
                    "source_id": source.id, "n": row.n, "committed_us": now_us, "prev": row.prev,
                    "hash": row.hash, "kind": told.kind, "at_us": at_us, "round_id": told.round_id,
                    "person": told.person, "body": row.body,
                }
            )  # fmt: skip
        if values:
            db.execute(_ADD, values)

    def _keep_apart(self, db: Connection, source: StoredSource, row: FloorRow, seq: int, now_us: int) -> None:
        key = (conflicts.c.source_id == source.id, conflicts.c.n == row.n, conflicts.c.hash == row.hash)
        if db.execute(select(conflicts.c.n).where(*key)).first() is None:
            db.execute(
                insert(conflicts).values(
                    source_id=source.id, n=row.n, hash=row.hash, prev=row.prev, body=row.body, seq=seq,
                    at_us=now_us,
                )
            )  # fmt: skip

    # -- the contiguous part --------------------------------------------------------------------

    def _advance(
        self, db: Connection, source: StoredSource, message: RowMessage, new: list[FloorRow], taken: Taken
    ) -> None:
        """Let the contiguous part grow as far as rows are there and their hashes follow."""
        if source.begins_hash is None:
            return
        if source.begins_prev == 0 and source.begins_hash != first_of(
            source.chain, source.source, message.level
        ):
            words = f"{source.chain} {source.source} begins with a hash that is not the beginning's"
            taken.found.append(Found(source.table, "chain_broken", words))
            return
        whole = len(new) == len(message.rows)  # else some of its rows are in the database, between these
        if whole and new[0].prev == source.n and not self._step(source, new, taken):
            return
        while True:
            page = db.execute(_BEHIND, {"of": source.id, "after": source.n}).all()
            found = [FloorRow(n=n, prev=prev, hash=hash, body=body) for n, prev, hash, body in page]
            before = source.n
            if not self._step(source, found, taken) or source.n == before:
                return

    def _step(self, source: StoredSource, found: Iterable[FloorRow], taken: Taken) -> bool:
        """Take rows into the contiguous part; False at a gap or at a hash that does not follow."""
        for row in found:
            if row.prev > source.n:
                return False
            if row.prev < source.n or not row.follows(source.hash):
                words = f"{source.chain} row {row.n} of {source.source} does not follow from row {source.n}"
                taken.found.append(Found(source.table, "chain_broken", words))
                return False
            source.n, source.hash, source.count = row.n, row.hash, source.count + 1
        return True

    # -- what others ask ------------------------------------------------------------------------

    def heads(self) -> dict[str, dict[str, ChainHead]]:
        """For each table and chain, the contiguous part of the source that was written last."""
        return {table: dict(chains) for table, chains in list(self._latest.items())}

    def head(self, table: str, chain: str, source: str) -> ChainHead | None:
        """The contiguous part of a source; None if it has no row here."""
        return self._known.get((table, chain, source))

    def compare(self, table: str, chain: str, told: ChainHead) -> str | None:
        """What is wrong with a source up to the row that its table tells; "" if nothing.

        None if the archive does not have all rows up to there yet. The result is kept.
        """
        with self.engine.begin() as db:
            source = self._find(db, table, chain, told.source)
            if source is None or source.n < told.n:
                return None
            counted = db.execute(
                select(func.count()).where(rows.c.source_id == source.id, rows.c.n <= told.n)
            ).scalar_one()
            base = source.begins_prev if source.level == FloorLevel.ALL else 0
            hash = db.execute(
                select(rows.c.hash).where(rows.c.source_id == source.id, rows.c.n == told.n)
            ).scalar()
            if hash is None and told.n == source.begins_prev:
                hash = source.begins_hash
            wrong = ""
            if counted + base != told.count:
                wrong = f"{counted + base} rows up to row {told.n}, and the table has {told.count}"
            elif hash != told.hash:
                wrong = f"the hash of row {told.n} is not the table's"
            values = {"source_id": source.id, "n": told.n, "at_us": time.time_ns() // 1000, "wrong": wrong}
            db.execute(insert(reconciliations).values(**values))
        return wrong

    def note_alarm(self, found: Found, ended: bool) -> None:
        """Keep that an alarm was raised, or that it has ended."""
        with self.engine.begin() as db:
            db.execute(
                insert(alarms).values(
                    table_name=found.table, kind=found.kind, words=found.words,
                    at_us=time.time_ns() // 1000, ended=int(ended),
                )
            )  # fmt: skip
