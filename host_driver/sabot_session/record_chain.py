"""The chain of a record's rows: a hash beside each row, and a signed checkpoint with each commit.

The hash of row n is SHA-256 of the hash before it and the row's canonical bytes (docs/evidence.md). All
functions work inside a transaction that the record opened.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sabot_evidence import chain
from sabot_evidence.chain import Chain, ChainHead
from sabot_evidence.errors import ChainDamaged
from sabot_evidence.pc_key import PcKey
from sabot_session.canonical import read_row, row_bytes
from sabot_session.rows import NumberedRow, Row

OF = "record"
CLOSING = "close_table"  # the row after which the floor keeps the newest checkpoints
SECOND_US = 1_000_000
STAY = (
    "CREATE TRIGGER rows_stay BEFORE UPDATE ON rows BEGIN SELECT RAISE(ABORT, 'rows are never changed'); END"
)


def add_chain(db: sqlite3.Connection) -> None:
    """The column and the table that a chain needs, in the transaction that is open."""
    db.execute("ALTER TABLE rows ADD COLUMN hash BLOB")
    db.execute(chain.TABLE)


class RecordChain:
    """Appends rows with their hashes, and checkpoints, to a record."""

    def __init__(self, db: sqlite3.Connection, chain_id: str, key: PcKey) -> None:
        """`ChainDamaged` if the newest row is not the one of the newest checkpoint."""
        self.chain = Chain(OF, chain_id, key)
        self.seen: Callable[[], ChainHead | None] = lambda: None
        """The newest link of the device's journal, for the next checkpoint."""
        self.head: ChainHead | None = None
        """The newest row that is on disk."""
        newest = chain.newest_checkpoint(db)
        there = (0, chain.first_hash(OF)) if newest is None else (newest.head.row, newest.head.hash)
        number, hash = _end(db)
        if there != (number, hash):
            raise ChainDamaged(f"the newest row is {number}, and the newest checkpoint is of row {there[0]}")
        self.head = None if newest is None else newest.head

    def append(self, db: sqlite3.Connection, rows: Iterable[Row], newest: int) -> ChainHead | None:
        """Append rows behind number ``newest`` and sign the last; None if there is no row at all."""
        number, hash = _end(db)
        at_us, why = self._begin(db, number, hash, None), chain.HEAD
        for number, row in enumerate(rows, newest + 1):
            row_us = row.at_s * SECOND_US
            if number == 1:
                at_us = self._begin(db, 0, hash, row_us)
            elif row_us < at_us:
                self.chain.turn_back(db, number - 1, hash, at_us, row_us)
            at_us = row_us
            why = chain.CLOSED if row.kind == CLOSING else why
            body = row_bytes(NumberedRow(number, row))
            hash = chain.next_hash(hash, body)
            db.execute(
                "INSERT INTO rows (number, body, hash) VALUES (?, ?, ?)", (number, body.decode(), hash)
            )
            if row.act_id:
                db.execute("INSERT OR IGNORE INTO acts VALUES (?, ?)", (row.act_id, number))
        return self.chain.seal(db, number, hash, at_us, why).head if number > newest else self.head

    def _begin(self, db: sqlite3.Connection, number: int, hash: bytes, at_us: int | None) -> int:
        """Prepare a checkpoint; the time of the newest row. ``at_us`` begins a chain that has no row."""
        self.chain.seen = self.seen()
        newest = chain.newest_checkpoint(db)
        if newest is not None:
            self.chain.check_key(db, newest.head.at_us)
            return newest.head.at_us
        if at_us is not None:
            self.chain.begin(db, number, hash, at_us)
        return 0

    @staticmethod
    def take_over(db: sqlite3.Connection, chain_id: str, key: PcKey, at_us: int) -> None:
        """Hashes for the rows of an older record, and the first checkpoint, which says how many they are."""
        hash, number = chain.first_hash(OF), 0
        db.execute("DROP TRIGGER rows_stay")
        for number, body in db.execute("SELECT number, body FROM rows ORDER BY number").fetchall():
            hash = chain.next_hash(hash, body.encode() if isinstance(body, str) else bytes(body))
            db.execute("UPDATE rows SET hash = ? WHERE number = ?", (hash, number))
        db.execute(STAY)
        if number:
            Chain(OF, chain_id, key).begin(db, number, hash, max(at_us, _newest_us(db, number)))

    def keep(
        self, db: sqlite3.Connection, why: str, at_us: int, about: Mapping[str, Any] | None = None
    ) -> ChainHead | None:
        """Keep a checkpoint of the newest row; None in a record without rows."""
        number, hash = _end(db)
        if not number:
            return None
        newest_us = self._begin(db, number, hash, at_us)
        return self.chain.seal(db, number, hash, max(at_us, newest_us), why, about).head


def _end(db: sqlite3.Connection) -> tuple[int, bytes]:
    found = db.execute("SELECT number, hash FROM rows ORDER BY number DESC LIMIT 1").fetchone()
    if found is None:
        return 0, chain.first_hash(OF)
    return int(found[0]), b"" if found[1] is None else bytes(found[1])


def _newest_us(db: sqlite3.Connection, number: int) -> int:
    (body,) = db.execute("SELECT body FROM rows WHERE number = ?", (number,)).fetchone()
    return read_row(body.encode()).row.at_s * SECOND_US
