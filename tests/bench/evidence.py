"""Verification of a long record against one call of hashlib a row."""

import hashlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.bench.measure import Figure

from sabot_evidence import verifier
from sabot_evidence.chain import KEEP_EVERY, TABLE, Chain, first_hash, next_hash
from sabot_evidence.pc_key import PcKey

SECTION = "evidence"
AT_MOST = 3.0
BODY = (
    '{"act":"","actor":{"how":"sensed","person":"","role":"device"},"at_s":%d,"clause":"MD3 11.B","data":'
    '{"cards":3,"stack":%d},"follows":{"boot":3,"memory_id":"0badcafe","number":%d,"serial":"SB000123"},'
    '"kind":"deal_stack","number":%d,"round":%d}'
)


def figures(rows: int, turns: int = 5) -> Iterator[Figure]:
    """Rows a second: the whole verifier, and one call of hashlib for each row's bytes in memory, in turns."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "record.db"
        bodies = _write(path, rows)
        taken = [(_hash(bodies), _verify(path, rows)) for _ in range(turns)]
    ratio = statistics.median(took_s / plain_s for plain_s, took_s in taken)
    plain_s, took_s = (statistics.median(each) for each in zip(*taken, strict=True))
    yield Figure(
        SECTION, f"rows verified, of {rows:,}", rows / took_s, "one hashlib call a row", rows / plain_s,
        ratio, at_most=AT_MOST,
    )  # fmt: skip


def _hash(bodies: list[bytes]) -> float:
    """Processor seconds of one call of hashlib a row."""
    began = time.process_time()
    for body in bodies:
        hashlib.sha256(body).digest()
    return time.process_time() - began


def _verify(path: Path, rows: int) -> float:
    """Processor seconds of the whole verifier."""
    verifier.signature_fits.cache_clear()
    began = time.process_time()
    file = verifier.EvidenceFile(path)
    with closing(file.db):
        report = verifier.verify([file])
    took_s = time.process_time() - began
    assert report.code == verifier.OPEN_END, report.findings
    assert report.rows == rows
    return took_s


def _write(path: Path, rows: int) -> list[bytes]:
    """A record of so many rows, with the checkpoints that such a record has; the rows' bytes."""
    bodies = [
        (BODY % (1_789_000_000 + n // 3, n % 7, n, n, n // 40 + 1)).encode() for n in range(1, rows + 1)
    ]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=OFF")
        db.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        db.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB)")
        db.execute(TABLE)
        chain = Chain("record", "0" * 32, PcKey(bytes(range(32))))
        db.execute("INSERT INTO meta VALUES ('chain_id', ?)", (chain.id,))
        hash = first_hash("record")
        db.execute("BEGIN")
        chain.begin(db, 0, hash, 0)
        for number, body in enumerate(bodies, 1):
            hash = next_hash(hash, body)
            db.execute("INSERT INTO rows VALUES (?, ?, ?)", (number, body.decode(), hash))
            if number % KEEP_EVERY == 0 or number == rows:
                chain.seal(db, number, hash, (1_789_000_000 + number // 3) * 1_000_000)
        db.execute("COMMIT")
    return bodies
