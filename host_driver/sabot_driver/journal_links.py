"""The links of a journal's chain in order, with the bytes that are hashed, from another connection.

Reading needs no lock: the driver may write meanwhile. What a link's bytes are is in docs/evidence.md.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sabot_driver.errors import JournalDamaged, JournalMissing
from sabot_driver.journal_chain import (
    COMMAND,
    COMMAND_CARRIED,
    EVENT,
    EVENT_CARRIED,
    OF,
    OUTCOME,
    command_bytes,
    event_bytes,
    outcome_bytes,
)
from sabot_evidence.chain import first_hash

_LINKS = """
SELECT link, kind, chain.id, chain.outcome, hash,
    e.id, e.memory_id, e.boot_id, e.n, e.is_gap, e.ticks_ms, e.utc_ms, e.quality, e.message, e.body,
    e.gap_size, e.from_boot, e.from_n, e.at_us, c.number, c.message, c.body, c.memory_id, c.at_us
FROM chain LEFT JOIN events e ON kind IN ('E', 'e') AND e.id = chain.id
    LEFT JOIN commands c ON kind IN ('C', 'c') AND c.number = chain.id
WHERE link > ? ORDER BY link LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class JournalLink:
    """One link: what the journal's chain is computed over."""

    link: int
    kind: str
    id: int
    """The event's id or the command's number."""
    hash: bytes
    body: bytes


class JournalLinks:
    """Reads the links of a journal file."""

    def __init__(self, path: Path) -> None:
        """JournalMissing if there is no such file, JournalDamaged if it is no journal with a chain."""
        if not path.exists():
            raise JournalMissing(f"{path}: there is no such journal")
        self._path = path
        self._db = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        self.chain_id = self._text("chain_id")
        self.serial = bytes.fromhex(self._text("serial"))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def after(self, link: int, most: int) -> list[JournalLink]:
        """The links after one, in order."""
        return [self._link(*row) for row in self._all(_LINKS, link, most)]

    def before_first(self) -> tuple[int, bytes]:
        """The place before the oldest link that is there: number and hash; number 0 unless it was cut."""
        found = self._all("SELECT link FROM chain ORDER BY link LIMIT 1")
        if not found or found[0][0] == 1:
            return 0, first_hash(OF)
        cut = self._all(
            "SELECT json_extract(statement, '$.about.hash') FROM checkpoints "
            "WHERE json_extract(statement, '$.why') = 'cut' AND json_extract(statement, '$.about.link') = ?",
            found[0][0] - 1,
        )
        if not cut:
            raise JournalDamaged(f"{self._path}: the chain begins at link {found[0][0]} without a cut")
        return int(found[0][0]) - 1, bytes.fromhex(cut[0][0])

    def newest(self) -> tuple[int, bytes]:
        """The newest link's number and hash."""
        found = self._all("SELECT link, hash FROM chain ORDER BY link DESC LIMIT 1")
        return (int(found[0][0]), bytes(found[0][1])) if found else (0, first_hash(OF))

    def version(self) -> int:
        """A number that is another one after any other connection has written."""
        return int(self._all("PRAGMA data_version")[0][0])

    def hash_of(self, link: int) -> bytes | None:
        """The hash of a link; None if it is not there."""
        found = self._all("SELECT hash FROM chain WHERE link = ?", link)
        return bytes(found[0][0]) if found else None

    def newest_event(self, link: int) -> int:
        """The id of the newest event whose link is not after this one; 0 if there is none."""
        found = self._all("SELECT MAX(id) FROM chain WHERE kind = 'E' AND link <= ?", link)
        return int(found[0][0] or 0)

    def _link(
        self, link: int, kind: str, id: int, outcome: str | None, hash: bytes, *row: Any
    ) -> JournalLink:
        event, command = row[:14], row[14:]
        if kind in (EVENT, EVENT_CARRIED) and event[0] is not None:
            body = event_bytes(kind, event)
        elif kind in (COMMAND, COMMAND_CARRIED) and command[0] is not None:
            body = command_bytes(kind, *command)
        elif kind == OUTCOME and outcome is not None:
            body = outcome_bytes(id, outcome)
        else:
            raise JournalDamaged(f"{self._path}: link {link} ({kind} {id}) has no row")
        return JournalLink(link, kind, id, bytes(hash), body)

    def _text(self, name: str) -> str:
        found = self._all("SELECT hex(value) FROM meta WHERE name = ?", name)
        if not found:
            raise JournalDamaged(f"{self._path}: the journal has no {name} yet")
        return str(found[0][0]).lower()

    def _all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise JournalDamaged(f"{self._path}: {error}") from error
