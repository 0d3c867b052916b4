"""Random edits of a day's files, by attackers who know more or less.

An edit changes what a reader of the file would be told. Each is a function of the two files and a source of
chance; it says what it did. ``rehash`` and ``sign_again`` are what an attacker does afterwards who knows the
format, and who has the PC's key too.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from sabot_evidence import chain
from sabot_evidence.pc_key import PcKey
from sabot_evidence.verifier import JOURNAL_ROWS, RECORD_ROWS

OTHER_KEY = PcKey(bytes(range(32)))
EVENT_CELLS = (
    "memory_id", "boot_id", "n", "ticks_ms", "utc_ms", "quality", "message", "body", "gap_size", "at_us",
)  # fmt: skip
COMMAND_CELLS = ("message", "body", "memory_id", "at_us", "outcome")
CHECKPOINT_CELLS = ("statement", "signature")

Edit = Callable[[Path, Path, Random], str]


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A file as somebody opens it who may write, without the triggers that stop mistakes."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=OFF")
        for trigger in ("rows_stay", "rows_last"):
            db.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for index in ("once", "rows_by_round", "rows_by_kind"):  # they refuse some edits
            db.execute(f"DROP INDEX IF EXISTS {index}")
        db.execute("BEGIN")
        yield db
        db.execute("COMMIT")
    finally:
        db.close()


def numbers(db: sqlite3.Connection, column: str, table: str) -> list[int]:
    """The numbers of a table's rows."""
    return [row[0] for row in db.execute(f"SELECT {column} FROM {table} ORDER BY {column}")]


def other_value(value: object, chance: Random) -> object:
    """A value of the same sort, and another one."""
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 60, 1_000_000))
    if isinstance(value, bytes):
        at = chance.randrange(len(value)) if value else 0
        return value[:at] + bytes(((value[at] if value else 0) ^ chance.randrange(1, 256),)) + value[at + 1 :]
    if isinstance(value, str):
        at = chance.randrange(len(value)) if value else 0
        new = chance.choice([each for each in "0123456789abcxyz {" if not value or each != value[at]])
        return value[:at] + new + value[at + 1 :]
    return chance.randrange(1, 1000)


def _change_cell(path: Path, table: str, number: str, cells: tuple[str, ...], chance: Random) -> str:
    with opened(path) as db:
        row = chance.choice(numbers(db, number, table))
        cell = chance.choice(cells)
        (before,) = db.execute(f"SELECT {cell} FROM {table} WHERE {number} = ?", (row,)).fetchone()
        db.execute(f"UPDATE {table} SET {cell} = ? WHERE {number} = ?", (other_value(before, chance), row))
    return f"{cell} of {table} {row} changed"


def change_row(journal: Path, record: Path, chance: Random) -> str:
    """One character of a row of the record. SQLite refuses a row that is no JSON any more."""
    with opened(record) as db:
        row = chance.choice(numbers(db, "number", "rows"))
        (body,) = db.execute("SELECT body FROM rows WHERE number = ?", (row,)).fetchone()
        while not _is_json(new := str(other_value(body, chance))):
            pass
        db.execute("UPDATE rows SET body = ? WHERE number = ?", (new, row))
    return f"body of row {row} changed"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def change_event(journal: Path, record: Path, chance: Random) -> str:
    """One cell of an event."""
    return _change_cell(journal, "events", "id", EVENT_CELLS, chance)


def change_command(journal: Path, record: Path, chance: Random) -> str:
    """One cell of a command."""
    return _change_cell(journal, "commands", "number", COMMAND_CELLS, chance)


def change_checkpoint(journal: Path, record: Path, chance: Random) -> str:
    """One character of a checkpoint, or one byte of its signature."""
    return _change_cell(chance.choice((journal, record)), "checkpoints", "n", CHECKPOINT_CELLS, chance)


def change_hash(journal: Path, record: Path, chance: Random) -> str:
    """One byte of a kept hash."""
    if chance.random() < 0.5:
        return _change_cell(record, "rows", "number", ("hash",), chance)
    return _change_cell(journal, "chain", "link", ("hash",), chance)


def delete_rows(journal: Path, record: Path, chance: Random) -> str:
    """Some rows in a row: of the record, the events, the commands, the links or the checkpoints."""
    path, table, number = chance.choice(
        (
            (record, "rows", "number"),
            (journal, "events", "id"),
            (journal, "commands", "number"),
            (journal, "chain", "link"),
            (chance.choice((journal, record)), "checkpoints", "n"),
        )
    )
    with opened(path) as db:
        there = numbers(db, number, table)
        first = chance.randrange(len(there))
        gone = there[first : first + chance.randint(1, 5)]
        db.executemany(f"DELETE FROM {table} WHERE {number} = ?", [(each,) for each in gone])
    return f"{table} {gone} deleted"


def delete_with_links(journal: Path, record: Path, chance: Random) -> str:
    """An event with its link."""
    with opened(journal) as db:
        row = chance.choice(numbers(db, "id", "events"))
        db.execute("DELETE FROM events WHERE id = ?", (row,))
        db.execute("DELETE FROM chain WHERE id = ? AND kind = 'E'", (row,))
    return f"event {row} deleted with its link"


def exchange(journal: Path, record: Path, chance: Random) -> str:
    """Two rows of the record, or two events, in each other's place, with numbers that fit."""
    if chance.random() < 0.5:
        with opened(record) as db:
            first, second = chance.sample(numbers(db, "number", "rows"), 2)
            bodies = dict(db.execute("SELECT number, body FROM rows WHERE number IN (?, ?)", (first, second)))
            for to, of in ((first, second), (second, first)):
                told = {**json.loads(bodies[of]), "number": to}
                text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                db.execute("UPDATE rows SET body = ? WHERE number = ?", (text, to))
        return f"rows {first} and {second} exchanged"
    with opened(journal) as db:
        first, second = chance.sample(numbers(db, "id", "events"), 2)
        for to, of in ((-1, first), (first, second), (second, -1)):
            db.execute("UPDATE events SET id = ? WHERE id = ?", (to, of))
    return f"events {first} and {second} exchanged"


def add_row(journal: Path, record: Path, chance: Random) -> str:
    """A row more: at the record's end, or an event without a link."""
    if chance.random() < 0.5:
        with opened(record) as db:
            number, body = db.execute("SELECT number, body FROM rows ORDER BY number DESC").fetchone()
            new = json.dumps(
                {**json.loads(body), "number": number + 1}, sort_keys=True, separators=(",", ":")
            )
            db.execute("INSERT INTO rows (number, body) VALUES (?, ?)", (number + 1, new))
        return f"row {number + 1} added"
    with opened(journal) as db:
        row = db.execute("SELECT * FROM events ORDER BY id DESC").fetchone()
        db.execute(
            f"INSERT INTO events VALUES ({','.join('?' * len(row))})", (row[0] + 1, *row[1:3], 9999, *row[4:])
        )
    return f"event {row[0] + 1} added"


def truncate(journal: Path, record: Path, chance: Random) -> str:
    """The end of a file, with the checkpoints that sign it."""
    path, table, number = chance.choice(((record, "rows", "number"), (journal, "chain", "link")))
    with opened(path) as db:
        last = chance.choice(numbers(db, number, table)[:-1])
        db.execute(f"DELETE FROM {table} WHERE {number} > ?", (last,))
        db.execute("DELETE FROM checkpoints WHERE json_extract(statement, '$.row') > ?", (last,))
        if table == "chain":
            _delete_unlinked(db)
    return f"{table} cut off after {last}"


def _delete_unlinked(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM events WHERE id NOT IN (SELECT id FROM chain WHERE kind = 'E')")
    db.execute("DELETE FROM commands WHERE number NOT IN (SELECT id FROM chain WHERE kind = 'C')")
    db.execute(
        "UPDATE commands SET outcome = (SELECT outcome FROM chain WHERE kind = 'O' AND id = number "
        "ORDER BY link DESC LIMIT 1)"
    )


def backdate(journal: Path, record: Path, chance: Random) -> str:
    """A row of the record, with a time from before the one before it."""
    with opened(record) as db:
        row = chance.choice(numbers(db, "number", "rows"))
        (body,) = db.execute("SELECT body FROM rows WHERE number = ?", (row,)).fetchone()
        told = json.loads(body)
        told["at_s"] -= chance.randint(1, 86_400)
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        db.execute("UPDATE rows SET body = ? WHERE number = ?", (text, row))
    return f"row {row} backdated"


EDITS: tuple[Edit, ...] = (
    change_row, change_event, change_command, change_checkpoint, change_hash, delete_rows, delete_with_links,
    exchange, add_row, truncate, backdate,
)  # fmt: skip
CONTENT: tuple[Edit, ...] = (change_row, change_event, exchange, backdate, truncate)
"""Edits after which an attacker may make all hashes anew: those of rows, not of hashes and checkpoints."""


# -- what an attacker does afterwards -----------------------------------------------------------


def rehash(path: Path) -> None:
    """Compute every hash of a file anew."""
    with opened(path) as db:
        of, query, table, number = _kind(db)
        hash = chain.first_hash(of)
        for row, body, _, _ in db.execute(query).fetchall():
            hash = chain.next_hash(hash, body.encode() if isinstance(body, str) else body)
            db.execute(f"UPDATE {table} SET hash = ? WHERE {number} = ?", (hash, row))


def sign_again(path: Path, key: PcKey) -> None:
    """Sign every checkpoint of a file anew, over the hashes that its rows have now."""
    with opened(path) as db:
        _, _, table, number = _kind(db)
        hashes = dict(db.execute(f"SELECT {number}, hash FROM {table}").fetchall())
        before = ""
        for n, text in db.execute("SELECT n, statement FROM checkpoints ORDER BY n").fetchall():
            told = json.loads(text)
            if told["row"] in hashes:
                told["hash"] = hashes[told["row"]].hex()
            told["before"], told["key"] = before, key.public.hex()
            new = json.dumps(told, sort_keys=True, separators=(",", ":"))
            before = hashlib.sha256(new.encode()).hexdigest()
            signature = key.sign(chain.SIGNED_AS + new.encode())
            db.execute("UPDATE checkpoints SET statement = ?, signature = ? WHERE n = ?", (new, signature, n))


def sign_end(path: Path, key: PcKey) -> None:
    """Sign the newest row of a file that was cut off, as its own program would have done."""
    with opened(path) as db:
        of, _, table, number = _kind(db)
        row, hash = db.execute(f"SELECT {number}, hash FROM {table} ORDER BY {number} DESC").fetchone()
        newest = chain.newest_checkpoint(db)
        if newest is None or newest.head.row != row:
            chain_id = "" if newest is None else newest.head.chain
            at_us = 0 if newest is None else newest.head.at_us
            chain.Chain(of, chain_id, key).seal(db, row, hash, at_us)


def _kind(db: sqlite3.Connection) -> tuple[str, str, str, str]:
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone():
        return "record", RECORD_ROWS, "rows", "number"
    return "journal", JOURNAL_ROWS, "chain", "link"


def one_edit(journal: Path, record: Path, key: PcKey, seed: int) -> str:
    """One random edit of these files by a random attacker; what was done."""
    chance = Random(seed)
    knows = chance.choice(("nothing", "nothing", "format", "key"))
    edit = chance.choice(EDITS if knows == "nothing" else CONTENT)
    done = edit(journal, record, chance)
    if knows != "nothing":
        for path in (journal, record):
            rehash(path)
            sign_again(path, key if knows == "key" else OTHER_KEY)
            if edit is truncate:
                sign_end(path, key if knows == "key" else OTHER_KEY)
    return f"{edit.__name__}, attacker knows {knows}: {done}"
