"""An archive with two rounds that were really played on an emulated machine, as the archive takes them."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.session.simulated_table import simulated_table

from sabot_evidence.chain import first_hash
from sabot_floor.archive_store import ArchiveStore, Delivered
from sabot_session.record import SqliteRecord
from sabot_session.record_chain import OF

SITE, TABLE = "harbour", "t07"


def play(folder: Path, rounds: int = 2) -> list[tuple[int, str, bytes]]:
    """Play rounds with simulated people; the record's rows: number, text and hash."""
    folder.mkdir(parents=True, exist_ok=True)
    record = SqliteRecord(folder / "record.db")
    with simulated_table(folder, record=record) as table:
        table.rounds(rounds)
        found = record.chained(0, 100_000)
    record.close()
    return found


def archive_rows(
    path: Path, rows: Sequence[tuple[int, str, bytes]], table: str = TABLE, level: str = "all"
) -> None:
    """Write rows of a record to an archive, as messages bring them."""
    store = ArchiveStore(str(path), SITE)
    first = first_hash(OF).hex()
    delivered = []
    for at in range(0, len(rows), 100):
        some = rows[at : at + 100]
        told = {
            "v": 1, "table": table, "chain": "record", "source": "aa", "level": level, "claim": 1,
            "sent_us": 1,
            "begins": {"prev": 0, "hash": first} if at == 0 else None,
            "rows": [{"n": n, "prev": n - 1, "hash": hash.hex(), "body": body} for n, body, hash in some],
        }  # fmt: skip
        delivered.append(Delivered(at + 1, f"sabot.{SITE}.row.{table}.record", json.dumps(told).encode()))
    taken = store.take(delivered)
    assert (taken.new, taken.found) == (len(rows), [])
    store.close()
