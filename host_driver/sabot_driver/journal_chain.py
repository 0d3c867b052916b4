"""The chain of a journal: one link a row, in the order of writing.

A link has a kind and the id of its row. Its bytes are text (docs/evidence.md):

- ``E``: an event or a gap. ``e``: the same again, carried over a cut because the driver still needs it.
- ``C``: a command that is about to be sent. ``c``: the same, carried over a cut.
- ``O``: the outcome of a command. The text is in the link itself.

All functions work inside a transaction that the journal opened.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sabot_evidence import chain
from sabot_evidence.chain import Chain, ChainHead
from sabot_evidence.errors import ChainDamaged
from sabot_evidence.pc_key import PcKey

OF = "journal"
EVENT, COMMAND, OUTCOME, EVENT_CARRIED, COMMAND_CARRIED = "E", "C", "O", "e", "c"
TABLES = f"""
CREATE TABLE chain (
    link INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id INTEGER NOT NULL,
    outcome TEXT,
    hash BLOB NOT NULL
);
CREATE INDEX chain_by_id ON chain (id, kind);
{chain.TABLE};
"""
_EVENT_COLUMNS = (
    "id, memory_id, boot_id, n, is_gap, ticks_ms, utc_ms, quality, message, body, gap_size, "
    "from_boot, from_n, at_us"
)


def event_bytes(kind: str, row: Iterable[object]) -> bytes:
    """The bytes of an event's link: its columns in order, bytes as hexadecimal digits, ``-`` for none."""
    return " ".join([kind, *(_text(each) for each in row)]).encode()


def command_bytes(kind: str, number: int, message: int, body: bytes, memory_id: bytes, at_us: int) -> bytes:
    """The bytes of a command's link."""
    return f"{kind} {number} {message} {_text(body)} {_text(memory_id)} {at_us}".encode()


def outcome_bytes(number: int, outcome: str) -> bytes:
    """The bytes of an outcome's link."""
    return f"O {number} {outcome}".encode()


def _text(value: object) -> str:
    if value is None:
        return "-"
    return value.hex().upper() if isinstance(value, bytes) else str(value)


@dataclass(slots=True)
class _End:
    """Where the next link goes."""

    link: int
    hash: bytes


class JournalChain:
    """Appends links and checkpoints to a journal."""

    def __init__(self, db: sqlite3.Connection, chain_id: str, key: PcKey) -> None:
        """`ChainDamaged` if the newest link is not the one of the newest checkpoint."""
        self.chain = Chain(OF, chain_id, key)
        self.seen: Callable[[], ChainHead | None] = lambda: None
        """The newest row of the table's record, for the next checkpoint."""
        self.head: ChainHead | None = None
        """The newest link that is on disk."""
        newest = chain.newest_checkpoint(db)
        end = _end(db)
        there = (0, chain.first_hash(OF)) if newest is None else (newest.head.row, newest.head.hash)
        if there != (end.link, end.hash):
            raise ChainDamaged(
                f"the newest link is {end.link}, and the newest checkpoint is of link {there[0]}"
            )
        self.head = None if newest is None else newest.head

    def append(
        self,
        db: sqlite3.Connection,
        events: Sequence[tuple[object, ...]],
        first_id: int,
        commands: Sequence[Any],
        outcomes: Mapping[int, str],
        at_us: int,
    ) -> ChainHead:
        """Links for rows of one transaction, and their checkpoint. ``first_id`` is the first event's id."""
        end = self._begin(db, at_us)
        for id, row in enumerate(events, first_id):
            _link(db, end, EVENT, id, event_bytes(EVENT, (id, *row)))
        for each in commands:
            found = command_bytes(COMMAND, each.number, each.message, each.body, each.memory_id, each.at_us)
            _link(db, end, COMMAND, each.number, found)
            if each.outcome is not None:
                _link(db, end, OUTCOME, each.number, outcome_bytes(each.number, each.outcome), each.outcome)
        for number, outcome in outcomes.items():
            _link(db, end, OUTCOME, number, outcome_bytes(number, outcome), outcome)
        return self.chain.seal(db, end.link, end.hash, at_us).head

    def _begin(self, db: sqlite3.Connection, at_us: int) -> _End:
        self.chain.seen = self.seen()
        end, newest = _end(db), chain.newest_checkpoint(db)
        if newest is None:
            self.chain.begin(db, end.link, end.hash, at_us)
        else:
            self.chain.check_key(db, at_us)
            if at_us < newest.head.at_us:
                self.chain.turn_back(db, end.link, end.hash, newest.head.at_us, at_us)
        return end

    def take_over(self, db: sqlite3.Connection, at_us: int) -> None:
        """Links for the rows of an older journal, and the first checkpoint, which says how many they are."""
        end = _end(db)
        for row in db.execute(f"SELECT {_EVENT_COLUMNS} FROM events ORDER BY id").fetchall():
            _link(db, end, EVENT, row[0], event_bytes(EVENT, row))
        for number, *rest, outcome in db.execute(_COMMANDS).fetchall():
            _link(db, end, COMMAND, number, command_bytes(COMMAND, number, *rest))
            if outcome is not None:
                _link(db, end, OUTCOME, number, outcome_bytes(number, outcome), outcome)
        self.head = self.chain.begin(db, end.link, end.hash, at_us).head

    def cut(self, db: sqlite3.Connection, link: int, at_us: int, events: int, commands: int) -> ChainHead:
        """Delete links up to this one, after rows behind it were deleted; what stays is carried over.

        The checkpoint of the cut is kept and says at which hash the chain goes on.
        """
        end = self._begin(db, at_us)
        (at_cut,) = db.execute("SELECT hash FROM chain WHERE link = ?", (link,)).fetchone()
        about = {"commands": commands, "events": events, "hash": bytes(at_cut).hex(), "link": link}
        self.chain.seal(db, end.link, end.hash, at_us, chain.CUT, about)
        for (id,) in db.execute(
            "SELECT DISTINCT id FROM chain JOIN events USING (id) WHERE link <= ? AND kind IN ('E', 'e')",
            (link,),
        ).fetchall():
            row = db.execute(f"SELECT {_EVENT_COLUMNS} FROM events WHERE id = ?", (id,)).fetchone()
            _link(db, end, EVENT_CARRIED, id, event_bytes(EVENT_CARRIED, row))
        for (number,) in db.execute(
            "SELECT DISTINCT number FROM chain JOIN commands ON number = id "
            "WHERE link <= ? AND kind IN ('C', 'c', 'O')",
            (link,),
        ).fetchall():
            row = db.execute(_COMMANDS + " WHERE number = ?", (number,)).fetchone()
            _link(db, end, COMMAND_CARRIED, number, command_bytes(COMMAND_CARRIED, *row[:-1]))
            if row[-1] is not None:
                _link(db, end, OUTCOME, number, outcome_bytes(number, row[-1]), row[-1])
        db.execute("DELETE FROM chain WHERE link <= ?", (link,))
        return self.chain.seal(db, end.link, end.hash, at_us).head


_COMMANDS = "SELECT number, message, body, memory_id, at_us, outcome FROM commands"


def _end(db: sqlite3.Connection) -> _End:
    found = db.execute("SELECT link, hash FROM chain ORDER BY link DESC LIMIT 1").fetchone()
    return _End(0, chain.first_hash(OF)) if found is None else _End(int(found[0]), bytes(found[1]))


def _link(
    db: sqlite3.Connection, end: _End, kind: str, id: int, row: bytes, outcome: str | None = None
) -> None:
    end.link, end.hash = end.link + 1, chain.next_hash(end.hash, row)
    db.execute("INSERT INTO chain VALUES (?, ?, ?, ?, ?)", (end.link, kind, id, outcome, end.hash))
