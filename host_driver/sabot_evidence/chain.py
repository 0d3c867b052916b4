"""The chain of a file's rows, and the checkpoints that sign it.

hash_n = SHA-256(hash_(n-1) || bytes of row n); hash_0 is SHA-256 of the kind's name. Each commit leaves a
signed checkpoint of the newest row in the same transaction, so a crash at any statement leaves rows, hashes
and signature of one commit. A checkpoint whose ``why`` is ``head`` is replaced by the next commit's; every
other one is kept. The layout is in docs/evidence.md; ``verifier`` reads it with code of its own.
"""

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sabot_evidence.errors import ChainDamaged
from sabot_evidence.pc_key import PcKey

KEEP_EVERY = 2048
"""A checkpoint is kept at least every so many rows. Ed25519 takes as long as 250 rows' hashes to verify."""
SIGNED_AS = b"sabot checkpoint 1\n"
TABLE = "CREATE TABLE checkpoints (n INTEGER PRIMARY KEY, statement TEXT NOT NULL, signature BLOB NOT NULL)"
BEGUN, HEAD, ROWS, CLOCK, CUT, RESTORED, KEY, CLOSED = (
    "begun", "head", "rows", "clock", "cut", "restored", "key", "closed",
)  # fmt: skip


def first_hash(of: str) -> bytes:
    """The hash before row 1 of a journal or a record."""
    return hashlib.sha256(f"sabot {of} 1\n".encode()).digest()


def next_hash(before: bytes, row: bytes) -> bytes:
    """The hash of a row's bytes behind the hash before it."""
    return hashlib.sha256(before + row).digest()


@dataclass(frozen=True, slots=True)
class ChainHead:
    """How far a chain goes: what another chain, a person or the floor can keep of it."""

    of: str
    """``journal`` or ``record``."""
    chain: str
    """The chain's id: 32 hexadecimal digits, drawn when the chain was begun."""
    row: int
    hash: bytes
    at_us: int

    def line(self) -> str:
        """One line to write down or print; the verifier takes it as an anchor."""
        at = datetime.fromtimestamp(self.at_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        digits = self.hash.hex()[:32]
        groups = "-".join(digits[each : each + 4] for each in range(0, 32, 4))
        return f"{self.of} {self.chain[:8]} row {self.row} {at} {groups}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One signed statement; ``text`` is the canonical JSON whose bytes are signed."""

    n: int
    text: str
    signature: bytes
    head: ChainHead
    """The row it is about."""
    why: str
    key: str
    before: str
    """SHA-256 of the kept checkpoint before it, in hexadecimal."""
    since: int
    """The row of the kept checkpoint before it."""


class Chain:
    """Appends to the chain of one file, inside transactions that its owner opens and ends."""

    def __init__(self, of: str, chain_id: str, key: PcKey) -> None:
        self.of = of
        self.id = chain_id
        self._key = key
        self.seen: ChainHead | None = None
        """The other file's newest row as this one knows it; every checkpoint names it."""

    @property
    def public(self) -> str:
        """The public key of the table PC that signs, in hexadecimal."""
        return self._key.public.hex()

    def newest(self, db: sqlite3.Connection) -> Checkpoint | None:
        """The newest checkpoint; None before the first."""
        return newest_checkpoint(db)

    def begin(self, db: sqlite3.Connection, row: int, hash: bytes, at_us: int) -> Checkpoint:
        """The first checkpoint: rows up to this one were there before the chain."""
        return self._put(db, None, row, hash, at_us, BEGUN, {"old_rows": row})

    def check_key(self, db: sqlite3.Connection, at_us: int) -> Checkpoint | None:
        """Say that the key is another one than before, if it is; what was said."""
        newest = self.newest(db)
        if newest is None or newest.key == self._key.public.hex():
            return None
        head = newest.head
        about = {"before": newest.key}
        return self._put(db, newest, head.row, head.hash, max(at_us, head.at_us), KEY, about)

    def seal(
        self,
        db: sqlite3.Connection,
        row: int,
        hash: bytes,
        at_us: int,
        why: str = HEAD,
        about: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Sign the newest row; a head becomes a kept checkpoint when enough rows have come since the last."""
        newest = self.newest(db)
        if newest is not None and why == HEAD:
            kept = newest.since if newest.why == HEAD else newest.head.row
            why = ROWS if row - kept >= KEEP_EVERY else HEAD
        return self._put(db, newest, row, hash, at_us, why, about)

    def turn_back(self, db: sqlite3.Connection, row: int, hash: bytes, from_us: int, to_us: int) -> None:
        """The clock went back before the next row. Named here, it is not taken for a backdated row."""
        self.seal(db, row, hash, to_us, CLOCK, {"from_us": from_us, "to_us": to_us})

    def _put(
        self,
        db: sqlite3.Connection,
        newest: Checkpoint | None,
        row: int,
        hash: bytes,
        at_us: int,
        why: str,
        about: Mapping[str, Any] | None,
    ) -> Checkpoint:
        if newest is None:
            n, before, since = 1, "", row
        elif newest.why == HEAD:
            n, before, since = newest.n, newest.before, newest.since
        else:
            n, before = newest.n + 1, hashlib.sha256(newest.text.encode()).hexdigest()
            since = newest.head.row
        seen = self.seen
        statement = {
            "about": None if about is None else dict(about),
            "at_us": at_us,
            "before": before,
            "chain": self.id,
            "hash": hash.hex(),
            "key": self._key.public.hex(),
            "n": n,
            "of": self.of,
            "row": row,
            "seen": None
            if seen is None
            else {"chain": seen.chain, "hash": seen.hash.hex(), "of": seen.of, "row": seen.row},
            "since": since,
            "v": 1,
            "why": why,
        }
        text = json.dumps(statement, sort_keys=True, separators=(",", ":"))
        signature = self._key.sign(SIGNED_AS + text.encode())
        db.execute(
            "INSERT OR REPLACE INTO checkpoints (n, statement, signature) VALUES (?, ?, ?)",
            (n, text, signature),
        )
        head = ChainHead(self.of, self.id, row, hash, at_us)
        return Checkpoint(n, text, signature, head, why, self._key.public.hex(), before, since)


def newest_checkpoint(db: sqlite3.Connection) -> Checkpoint | None:
    """The newest checkpoint of a file; None before the first. `ChainDamaged` for one that cannot be read."""
    found = db.execute("SELECT n, statement, signature FROM checkpoints ORDER BY n DESC LIMIT 1").fetchone()
    if found is None:
        return None
    n, text, signature = found
    try:
        told = json.loads(text)
        head = ChainHead(
            told["of"], told["chain"], int(told["row"]), bytes.fromhex(told["hash"]), int(told["at_us"])
        )
        return Checkpoint(
            n, text, bytes(signature), head, told["why"], told["key"], told["before"], int(told["since"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ChainDamaged(f"checkpoint {n} cannot be read: {error!r}") from error
