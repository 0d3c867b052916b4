"""Messages of rows as a table sends them, made without the publisher."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sabot_floor.archive_store import Delivered

SITE = "harbour"
FIRST = hashlib.sha256(b"sabot record 1\n").hexdigest()


def record_body(n: int, kind: str = "sit", **more: Any) -> str:
    """A record row's text."""
    row = {
        "act": "", "actor": {"how": "pin", "person": "d1", "role": "dealer"}, "at_s": 1_700_000_000 + n,
        "clause": "", "data": {"seat": 1}, "follows": None, "kind": kind, "number": n, "round": 7, **more,
    }  # fmt: skip
    return json.dumps(row, sort_keys=True, separators=(",", ":"))


def chain(bodies: Sequence[str], first: str = FIRST) -> list[dict[str, Any]]:
    """Rows from number 1 with their hashes."""
    found, hash = [], bytes.fromhex(first)
    for n, body in enumerate(bodies, 1):
        hash = hashlib.sha256(hash + body.encode()).digest()
        found.append({"n": n, "prev": n - 1, "hash": hash.hex(), "body": body})
    return found


def message(rows: Sequence[dict[str, Any]], seq: int = 1, **more: Any) -> Delivered:
    """A message with these rows."""
    begins = {"prev": 0, "hash": FIRST} if rows and rows[0]["n"] == 1 else None
    told = {
        "v": 1, "table": "t01", "chain": "record", "source": "aa", "level": "all", "claim": 1,
        "sent_us": 1_700_000_000_000_000, "begins": begins, "rows": list(rows), **more,
    }  # fmt: skip
    return Delivered(seq, f"sabot.{SITE}.row.t01.record", json.dumps(told).encode())
