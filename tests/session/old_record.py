"""A table's record as the program of version 1 wrote it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

OLD_TABLES = """
CREATE TABLE log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at_s INTEGER NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL,
    what TEXT NOT NULL
);
CREATE TABLE saved (one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT NOT NULL, at INTEGER NOT NULL);
CREATE TABLE shuffles (
    memory_id BLOB NOT NULL, shuffle_id INTEGER NOT NULL, deck_id INTEGER NOT NULL,
    commitment BLOB NOT NULL, nonce BLOB NOT NULL, seed BLOB, wrong TEXT,
    PRIMARY KEY (memory_id, shuffle_id)
) WITHOUT ROWID;
"""
LOG = [
    (100, "table", "floor", "open_table"),
    (101, "Ana", "dealer", "inspect"),
    (90, "", "device", "deal_stack"),
]
STATE: dict[str, Any] = {"ruleset_sha256": "00", "state": "between", "rounds": 41, "round": None}


def old_record(path: Path, state: dict[str, Any] | str | None = STATE) -> None:
    """Write such a record."""
    path.parent.mkdir(exist_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.executescript(f"BEGIN; {OLD_TABLES} PRAGMA user_version=1; COMMIT;")
    db.executemany("INSERT INTO log (at_s, who, role, what) VALUES (?,?,?,?)", LOG)
    if state is not None:
        text = state if isinstance(state, str) else json.dumps(state)
        db.execute("INSERT INTO saved VALUES (1, ?, 77)", (text,))
    db.execute(
        "INSERT INTO shuffles VALUES (?,?,?,?,?,?,?)", (b"m", 3, 1, b"c" * 32, b"n" * 32, b"s" * 32, "")
    )
    db.execute("INSERT INTO shuffles VALUES (?,?,?,?,?,?,?)", (b"m", 4, 2, b"d" * 32, b"o" * 32, None, None))
    db.close()
