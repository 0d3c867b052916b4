"""Verify the evidence of a table: journals, records, checkpoints. This one file is the whole verifier.

It needs Python 3.11, its standard library and ``cryptography``, and no other file of the project. Copy it and
run ``python verifier.py FILES``; ``python verifier.py --help`` lists the options. The byte layouts are in
docs/evidence.md. The verifier never writes to the files it checks.

``verify`` checks in this order: each file's checkpoints (``check_checkpoints``), the hash of each of its rows
(``ChainCheck``), in journals the device's own chain (``DeviceCheck``), and copies of one file against each
other. Each result is a `Finding` in a `Report`; the kinds of findings give the exit code.

Exit codes: 0 everything fits, and an anchor shows the newest row of every file; 8 everything fits, and no
anchor shows the newest row of some file; 5 something does not fit; 1 a file cannot be read; 2 wrong usage.
"""

import argparse
import hashlib
import hmac
import json
import re
import sqlite3
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

OK, UNREADABLE, USAGE, WRONG, OPEN_END = 0, 1, 2, 5, 8
WRONG_KINDS = ("changed", "reordered", "backdated", "hole", "fork", "rollback", "unsigned", "other_key")
"""Findings of these kinds mean that a file is not what was written: exit code 5."""
SHOWN_KINDS = ("proved", "checked", "old", "gap", "clock", "restored", "complete", "tail")
MOST_TOLD = 20  # findings printed of one kind in one file; of more only the number is printed
MOST_COMPARED = 64  # with more misfits the search for exchanged rows, which compares all pairs, is left out
SIGNED_AS = b"sabot checkpoint 1\n"
COUNTERSIGNED_AS = b"sabot countersignature 1\n"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EVENT_TEXT = (
    "'%s %s %s %s %s %s %s %s %s %s %s %s %s %s %s', c.kind, e.id, hex(e.memory_id), e.boot_id, e.n, "
    "e.is_gap, e.ticks_ms, ifnull(e.utc_ms, '-'), e.quality, e.message, hex(e.body), "
    "ifnull(e.gap_size, '-'), ifnull(e.from_boot, '-'), ifnull(e.from_n, '-'), e.at_us"
)
COMMAND_TEXT = "'%s %s %s %s %s %s', c.kind, m.number, m.message, hex(m.body), hex(m.memory_id), m.at_us"
JOURNAL_ROWS = f"""
SELECT c.link, CASE
    WHEN e.id IS NOT NULL THEN printf({EVENT_TEXT})
    WHEN m.number IS NOT NULL THEN printf({COMMAND_TEXT})
    WHEN c.kind = 'O' THEN printf('O %s %s', c.id, c.outcome) END, c.hash, e.at_us
FROM chain c LEFT JOIN events e ON c.kind IN ('E', 'e') AND e.id = c.id
    LEFT JOIN commands m ON c.kind IN ('C', 'c') AND m.number = c.id ORDER BY c.link
"""
RECORD_ROWS = "SELECT number, CAST(body AS BLOB), hash, NULL FROM rows ORDER BY number"
RECORD_PAIRS = "SELECT CAST(body AS BLOB), hash FROM rows ORDER BY number"
DEVICE_EVENTS = """
SELECT link, memory_id, boot_id, n, is_gap, ticks_ms, utc_ms, quality, message, body, from_boot, from_n
FROM chain JOIN events USING (id) WHERE kind = 'E' ORDER BY link
"""
TYPES: dict[str, dict[str, tuple[str, ...]]] = {
    "events": {
        "integer": ("boot_id", "n", "is_gap", "ticks_ms", "quality", "message", "at_us"),
        "blob": ("memory_id", "body"),
    },
    "commands": {"integer": ("message", "at_us"), "blob": ("body", "memory_id")},
    "chain": {"integer": ("id",), "text": ("kind",), "blob": ("hash",)},
}
"""The type of each column. SQLite stores values of other types too, and ``printf`` can hide it."""

CHAIN_CHECKPOINT, EVENTS_LOST, CHAIN_BEGUN = 0xAB, 0xAF, 0xB0
ROUND_ENDED, ROUND_VOIDED = 0x95, 0x96
EVENT_HEAD = struct.Struct("<BBIIIIH")
CHECKPOINT_BODY = struct.Struct("<III32s16s")
LOST_BODY = struct.Struct("<BIIIIII32s32s")
BEGUN_BODY = struct.Struct("<B4sI32s")
LOST_REASONS = {1: "no room in the device", 2: "the device lost power", 3: "the device's memory was lost"}
GAP_REASONS = {1: "no room in the device", 2: "the device lost power"}
OPENING = (b',"kind":"open_bets",', b',"kind":"begin_simulated",')
OPENING_END = 84  # the last bytes of a row; they hold its kind, number and round
TIME, TIME_DIGITS = b',"at_s":', 11  # seconds since 1970: ten digits and a comma
MOST_STEPS = 2**28  # of the device's key: many years of events; a forged index would take an hour
LONGEST_CELL = 64 * 1024 * 1024
MOST_UNPACKED, MOST_RATIO = 64 * 1024 * 1024, 100  # a larger file in an archive, packed tighter, is a trap
PLAIN_TABLES = ("meta", "rows", "events", "commands", "chain", "checkpoints")
DAMAGED = (
    sqlite3.Error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    struct.error,
)  # fmt: skip
"""What a database with other columns, types or values than ours makes Python raise."""
AT_ONCE = 128  # rows read together: few enough to stay in the processor's cache


class Unreadable(Exception):
    """A file that cannot be read as what it was given as."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the verifier says of one file."""

    kind: str
    file: str
    text: str
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Anchor:
    """The hash of one row, from a source outside the file: the floor, or a checkpoint of the other file."""

    who: str  # the source, for the finding's text
    of: str
    chain: str  # the chain's id, or its first eight digits
    row: int
    hash: str  # hexadecimal digits, as many as were kept
    outside: bool  # whether it was kept outside of the table PC; only then can a file be ``complete``

    def fits(self, chain: str) -> bool:
        """Whether the anchor belongs to the chain with this id."""
        return chain.startswith(self.chain)


@dataclass(slots=True)
class Checkpoint:
    """One checkpoint of a file."""

    n: int
    text: str  # the statement as stored; the signature is over these bytes
    signature: bytes
    told: Mapping[str, Any]  # the same statement, decoded


@dataclass
class Report:
    """Everything that was found."""

    findings: list[Finding] = field(default_factory=list)
    rounds: int = 0
    gaps: int = 0
    rows: int = 0

    def add(self, kind: str, file: str, text: str, row: int | None = None) -> None:
        """Add a finding of this kind about this file."""
        self.findings.append(Finding(kind, file, text, row))

    @property
    def code(self) -> int:
        """The exit code: OK, WRONG or OPEN_END."""
        kinds = {each.kind for each in self.findings}
        if kinds & set(WRONG_KINDS):
            return WRONG
        return OPEN_END if "tail" in kinds or "complete" not in kinds else OK

    @property
    def gap_rate(self) -> float | None:
        """Gaps per 1,000 rounds; None if no round is on record."""
        return None if not self.rounds else 1000 * self.gaps / self.rounds


# -- one file -----------------------------------------------------------------------------------


class EvidenceFile:
    """A journal or a record, opened to read."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path = path
        self.name = name or path.name
        if not path.is_file():
            raise Unreadable(f"{path}: there is no such file")
        self.db = self._open(path)
        try:
            tables = {
                row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            made = self.db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE V%'")
            for (name,) in made:  # a view or virtual table, which could go on without end
                if str(name).lower() in PLAIN_TABLES:
                    raise Unreadable(f"{path}: {name} is no plain table")
            if "rows" in tables:
                self.of = "record"
            elif "events" in tables:
                self.of = "journal"
            else:
                raise Unreadable(f"{path}: neither a journal nor a record")
            self.has_chain = "checkpoints" in tables
            meta = dict(self.db.execute("SELECT name, value FROM meta").fetchall())
        except (sqlite3.Error, TypeError, ValueError) as error:
            self.db.close()
            raise Unreadable(f"{path}: {error}") from error
        except Unreadable:
            self.db.close()
            raise
        found = meta.get("chain_id", "")
        self.chain = bytes(found).hex() if isinstance(found, bytes) else str(found)
        serial = meta.get("serial")
        self.serial = bytes(serial) if isinstance(serial, bytes) else None

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        uri = path.resolve().as_uri()
        for options in ("mode=ro", "mode=ro&immutable=1"):  # the second on media that cannot be written
            db = sqlite3.connect(f"{uri}?{options}", uri=True, isolation_level=None)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            try:
                db.execute("BEGIN")  # all queries see one state, also while a program writes the file
                db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:
                db.close()
            except sqlite3.Error as error:
                db.close()
                raise Unreadable(f"{path}: {error}") from error
            else:
                return db
        raise Unreadable(f"{path}: SQLite cannot open this file")

    def rows(self) -> Iterator[tuple[int, bytes | str | None, bytes | None, int | None]]:
        """Number, bytes, stored hash and time in microseconds of every row.

        The bytes are None if a link's row is missing. Only events of a journal have a time here.
        """
        return iter(self.db.execute(JOURNAL_ROWS if self.of == "journal" else RECORD_ROWS))

    def numbers(self) -> tuple[int | None, int | None]:
        """The lowest and the highest number of a record's rows; (None, None) if there is none."""
        # two queries: SQLite uses the index for MIN or MAX alone, and scans the table for both together
        (low,) = self.db.execute("SELECT MIN(number) FROM rows").fetchone()
        (high,) = self.db.execute("SELECT MAX(number) FROM rows").fetchone()
        return low, high

    def hash_now(self, row: int) -> bytes | None:
        """The stored hash of a row at this moment, read with a new connection; None if there is no such row.

        A program may have added the row after this object began to read.
        """
        query = "SELECT hash FROM rows WHERE number = ?"
        if self.of == "journal":
            query = "SELECT hash FROM chain WHERE link = ?"
        with closing(self._open(self.path)) as db:
            found = db.execute(query, (row,)).fetchone()
        if found is None:
            return None
        return found[0] if isinstance(found[0], bytes) else b""

    def checkpoints(self) -> list[tuple[int, Any, Any]]:
        """The checkpoints as they are stored."""
        return self.db.execute("SELECT n, statement, signature FROM checkpoints ORDER BY n").fetchall()


# -- checkpoints --------------------------------------------------------------------------------

FIELDS: dict[str, type | tuple[type, ...]] = {
    "about": (dict, type(None)), "at_us": int, "before": str, "chain": str, "hash": str, "key": str, "n": int,
    "of": str, "row": int, "seen": (dict, type(None)), "since": int, "v": int, "why": str,
}  # fmt: skip
SEEN: dict[str, type | tuple[type, ...]] = {"of": str, "chain": str, "row": int, "hash": str}
ABOUT: dict[str, dict[str, type | tuple[type, ...]]] = {
    "cut": {"commands": int, "events": int, "hash": str, "link": int},
    "key": {"before": str},
}
"""What ``about`` must hold, by the reason of a checkpoint."""


@lru_cache(maxsize=100_000)
def signature_fits(key: str, signature: bytes, text: str, signed_as: bytes = SIGNED_AS) -> bool:
    """Whether the signature is this key's, over this statement."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, signed_as + text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def read_checkpoint(n: int, text: Any, signature: Any) -> Checkpoint | None:
    """A checkpoint with all its fields, in canonical JSON; else None. The signature is not checked."""
    try:
        told = json.loads(text)
        whole = _has(told, FIELDS) and (told["seen"] is None or _has(told["seen"], SEEN))
        about = told["about"] or {}
        whole = whole and _has(about, ABOUT.get(told["why"], {}))
        whole = whole and isinstance(about.get("old_rows", 0), int)
        if told["why"] == "cut":
            bytes.fromhex(about["hash"])
        same = json.dumps(told, sort_keys=True, separators=(",", ":")) == text
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not whole or not same or told["n"] != n or not isinstance(signature, bytes):
        return None
    return Checkpoint(n, text, signature, told)


def _has(told: Mapping[str, Any], fields: Mapping[str, type | tuple[type, ...]]) -> bool:
    """Whether an object has these fields, of these types. KeyError if one is missing."""
    return all(isinstance(told[name], kinds) for name, kinds in fields.items())


def check_checkpoints(file: EvidenceFile, keys: Sequence[str], report: Report) -> list[Checkpoint]:
    """The checkpoints of this chain whose signature fits, oldest first.

    Adds a finding for each one that is missing, changed, out of order, or signed by another key. ``keys`` are
    the PC's keys that the reader trusts; if there are none, each checkpoint's own key is taken.
    """
    good: list[Checkpoint] = []
    before: Checkpoint | None = None
    expected = 1
    for n, text, signature in file.checkpoints():
        if n != expected:
            report.add("hole", file.name, f"checkpoint {_range(expected, n - 1)} missing")
            before = None
        expected = n + 1
        found = read_checkpoint(n, text, signature)
        if found is None or not signature_fits(found.told["key"], found.signature, found.text):
            report.add("changed", file.name, f"checkpoint {n} is changed: its signature does not fit")
            before = None
            continue
        told = found.told
        if told["of"] != file.of or told["chain"] != file.chain:
            report.add("changed", file.name, f"checkpoint {n} is of another chain, {told['chain'][:8]}")
            continue
        if before is not None:
            _check_successor(file, before, found, report)
        if keys and told["key"] not in keys:
            report.add(
                "other_key",
                file.name,
                f"checkpoint {n} is signed by {told['key'][:16]}, which is not trusted",
            )
        elif told["why"] == "key":
            about = f"{str((told['about'] or {}).get('before', ''))[:16]} to {told['key'][:16]}"
            kind = "restored" if keys else "other_key"
            report.add(
                kind, file.name, f"the PC's key changed from {about} at row {told['row']}", told["row"]
            )
        good.append(found)
        before = found
    if not good:
        report.add("unsigned", file.name, "no checkpoint fits: nothing in this file is signed")
    return good


def _check_successor(file: EvidenceFile, before: Checkpoint, found: Checkpoint, report: Report) -> None:
    """Check a checkpoint against the one before it: hash, row, time and key must follow."""
    told, older = found.told, before.told
    if told["before"] != hashlib.sha256(before.text.encode()).hexdigest():
        report.add("changed", file.name, f"checkpoint {found.n} does not follow checkpoint {before.n}")
    if told["row"] < older["row"]:
        report.add(
            "reordered", file.name, f"checkpoint {found.n} is of an older row than checkpoint {before.n}"
        )
    if told["at_us"] < older["at_us"] and told["why"] != "clock":
        words = (
            f"checkpoint {found.n} says {moment(told['at_us'])}, the one before it {moment(older['at_us'])}"
        )
        report.add("backdated", file.name, words)
    if told["key"] != older["key"] and told["why"] != "key":
        report.add(
            "other_key", file.name, f"checkpoint {found.n} is signed by another key, and does not say so"
        )
    if told["why"] == "clock":
        words = f"the PC's clock was set back from {moment(older['at_us'])} to {moment(told['at_us'])}"
        report.add("clock", file.name, f"{words} after row {told['row']}, as the PC says", told["row"])
    if told["why"] == "restored":
        report.add("restored", file.name, f"the file was moved or put back from a copy at row {told['row']}")


# -- the chain of one file ----------------------------------------------------------------------


@dataclass(slots=True)
class Misfit:
    """A row whose stored hash is not the one computed from its bytes."""

    number: int
    before: bytes  # the stored hash of the row before
    body: bytes
    hash: bytes  # as stored


class ChainCheck:
    """Checks the rows of one file: numbers, hashes and times, and the hashes in checkpoints and anchors."""

    def __init__(
        self, file: EvidenceFile, checkpoints: Sequence[Checkpoint], anchors: Sequence[Anchor], report: Report
    ) -> None:
        self.file = file
        self.report = report
        self.misfits: list[Misfit] = []
        self.last = 0
        self.rounds = 0
        self._hash = hashlib.sha256(f"sabot {file.of} 1\n".encode()).digest()
        self.cut = 0
        self._signed: dict[int, list[Checkpoint]] = {}
        self._clock = {each.told["row"] for each in checkpoints if each.told["why"] == "clock"}
        self._anchors: dict[int, list[Anchor]] = {}
        self.confirmed: list[Anchor] = []
        self._good_row = 0
        self.old_rows = 0
        for each in checkpoints:
            self._signed.setdefault(each.told["row"], []).append(each)
            about = each.told["about"] or {}
            if each.told["why"] == "begun":
                self.old_rows = int(about.get("old_rows", 0))
            if each.told["why"] == "cut":
                self.cut, self._hash = int(about["link"]), bytes.fromhex(about["hash"])
                pruned = f"{about['events']} events and {about['commands']} commands"
                at = moment(each.told["at_us"])
                words = f"{pruned} before link {self.cut + 1} were pruned by the PC at {at}"
                report.add("gap", file.name, words, self.cut)
        for anchor in anchors:
            if anchor.of == file.of and anchor.fits(file.chain):
                self._anchors.setdefault(anchor.row, []).append(anchor)
        self.newest = checkpoints[-1] if checkpoints else None
        self.last = self._good_row = self.cut

    def run(self) -> None:
        """Check every row, then the end."""
        if self.file.of != "record" or not self._fits_at_once():
            self._check_rows()
        self._tell_misfits()
        self._check_end()

    def _fits_at_once(self) -> bool:
        """Whether every row of a record fits its hash, number and time. If not, no state was changed.

        Almost every record fits. So this quick pass only answers yes or no, and ``_check_rows`` then goes
        through the rows again to find what is wrong.
        """
        sha256, before, last, rounds = hashlib.sha256, self._hash, 0, 0
        watched = sorted((row for row in {*self._signed, *self._anchors} if row >= 0), reverse=True)
        met = []
        newest = b""  # the time of the row before, as digits
        same, size = b"-", 1  # the row before up to its time, and the length of that; no row begins with "-"
        cells = self.file.db.execute(RECORD_PAIRS)
        while chunk := cells.fetchmany(AT_ONCE):
            bodies, hashes = zip(*chunk, strict=True)
            try:
                made = [before := sha256(before + body).digest() for body in bodies]
            except TypeError:  # a row without bytes
                return False
            if made != list(hashes):
                return False
            first, last = last + 1, last + len(chunk)
            while watched and watched[-1] <= last:
                row = watched.pop()
                met.append((row, made[row - first] if row else self._hash))
            for body in bodies:
                if body[:size] == same:
                    continue  # the same start up to the time, so the same time as the row before
                start, found, rest = body.partition(TIME)
                at = rest[:TIME_DIGITS]
                if not at[:-1].isdigit() or at[-1:] != b",":
                    return False
                if at < newest:
                    number = first + bodies.index(body)  # a body holds its number, so it occurs once
                    if number > self.old_rows + 1 and number - 1 not in self._clock:
                        return False
                newest = at
                same = start + found + at
                size = len(same)
            ends = b"\n".join([body[-OPENING_END:] for body in bodies])
            rounds += sum(map(ends.count, OPENING))
        if self.cut or self.file.numbers() != (1 if last else None, last or None):
            return False
        self.last, self.rounds = last, rounds
        for row, hash in met or [(0, self._hash)]:
            self._meet(row, hash)
        return True

    def _check_rows(self) -> None:
        """Check every row, and add a finding or a `Misfit` for each that does not fit.

        After a misfit the next row is checked against the stored hash, so that one change is reported once.
        After a hole the hash before is not known: the first row behind it is not checked.
        """
        expected, newest_us, sha256 = self.cut + 1, 0, hashlib.sha256
        is_record = self.file.of == "record"
        watched = set(self._signed) | set(self._anchors)
        before = self._hash
        self._meet(self.cut, before)
        for number, body, kept, at_us in self.file.rows():
            if number != expected:
                self._number(expected, number)
                expected = number
                before = b""
            expected += 1
            if body is None:
                self.report.add("hole", self.file.name, f"the row of link {number} is missing", number)
                before = kept if isinstance(kept, bytes) else b""
                continue
            if isinstance(body, str):
                body = body.encode()
            if not isinstance(kept, bytes):
                kept = None  # SQLite stores other types too
            made = sha256(before + body).digest()
            if made != kept:
                if before:
                    self.misfits.append(Misfit(number, before, body, kept or b""))
                made = kept or b""
            before = made
            if is_record:
                start = body.find(b',"at_s":') + 8
                end = body.find(b",", start)
                digits = body[start:end]
                at_us = int(digits) * 1_000_000 if digits.isdigit() else None
                if b'"open_bets"' in body or b'"begin_simulated"' in body:
                    self.rounds += any(each in body for each in OPENING)
            if isinstance(at_us, int):
                if at_us < newest_us and number > self.old_rows + 1 and number - 1 not in self._clock:
                    self._backdated(number, at_us, newest_us)
                newest_us = at_us
            if number in watched:
                self._meet(number, made)
            self.last = number

    def _number(self, expected: int, number: int) -> None:
        if number < expected:
            self.report.add(
                "reordered", self.file.name, f"row {number} comes after row {expected - 1}", number
            )
            return
        self.report.add(
            "hole", self.file.name, f"{self._what} {_range(expected, number - 1)} missing", expected
        )

    @property
    def _what(self) -> str:
        return "link" if self.file.of == "journal" else "row"

    def _backdated(self, number: int, at_us: int, newest_us: int) -> None:
        words = f"{self._what} {number} says {moment(at_us)}, and the one before it {moment(newest_us)}"
        self.report.add("backdated", self.file.name, words, number)

    def _meet(self, number: int, made: bytes) -> None:
        """Compare a row's hash with the hash in checkpoints and anchors of this row.

        A checkpoint that differs adds no finding if a misfit since the last good checkpoint explains it.
        """
        for each in self._signed.get(number, ()):
            if each.told["hash"] == made.hex():
                self._good_row = number
            elif not self.misfits or self.misfits[-1].number <= self._good_row:
                first = self._good_row + 1
                words = f"{self._what} {_range(first, number)} changed: checkpoint {each.n} signs others"
                self.report.add("changed", self.file.name, words, number)
                self._good_row = number
        for anchor in self._anchors.get(number, ()):
            if made.hex().startswith(anchor.hash):
                self.confirmed.append(anchor)
            else:
                words = f"two bodies for {self._what} {number}: {anchor.who} has another one than this file"
                self.report.add("fork", self.file.name, words, number)

    def _tell_misfits(self) -> None:
        """Add ``reordered`` for each misfit whose bytes fit another misfit's place, else ``changed``."""
        exchanged: set[int] = set()
        if 1 < len(self.misfits) <= MOST_COMPARED:
            for here in self.misfits:
                for there in self.misfits:
                    if here is not there and self._belongs(here.body, there):
                        exchanged |= {here.number, there.number}
        for each in self.misfits:
            if each.number in exchanged:
                words = f"{self._what} {each.number} is not in its place: the rows were reordered"
                self.report.add("reordered", self.file.name, words, each.number)
            else:
                words = f"{self._what} {each.number} is changed: its bytes do not give its hash"
                self.report.add("changed", self.file.name, words, each.number)

    def _belongs(self, body: bytes, there: Misfit) -> bool:
        """Whether these bytes, as they are or with the number of ``there``, give the hash stored there."""
        if self.file.of == "record":
            moved = re.sub(rb'"number":\d+(,"round":\d+\}$)', rb'"number":%d\1' % there.number, body)
        else:
            kind, id, _ = there.body.split(b" ", 2)
            moved = b" ".join((kind, id, body.split(b" ", 2)[2]))
        return any(hashlib.sha256(there.before + each).digest() == there.hash for each in (body, moved))

    def _check_end(self) -> None:
        """Compare the last row with the newest checkpoint, and with anchors of later rows."""
        if self.newest is None:
            return
        signed = self.newest.told["row"]
        if signed > self.last:
            words = f"{self._what} {_range(self.last + 1, signed)} missing at the end: checkpoint"
            self.report.add(
                "hole", self.file.name, f"{words} {self.newest.n} signs {self._what} {signed}", signed
            )
        elif signed < self.last:
            words = f"{self._what} {_range(signed + 1, self.last)} not signed by any checkpoint"
            self.report.add("unsigned", self.file.name, words, signed + 1)
        for row, found in sorted(self._anchors.items()):
            if row > self.last:
                now = self.file.hash_now(row)
                if now is not None and all(now.hex().startswith(each.hash) for each in found):
                    continue  # a program added the row to this file after reading had begun
                words = (
                    f"{found[0].who} knows {self._what} {row}, and this file ends at {self._what} {self.last}"
                )
                self.report.add("rollback", self.file.name, f"put back to an older state: {words}", row)


def check_file(
    file: EvidenceFile, keys: Sequence[str], anchors: Sequence[Anchor], report: Report
) -> ChainCheck | None:
    """Check checkpoints and rows of one file; if all fit, add ``checked``, and ``complete`` or ``tail``.

    None for a file without a chain.
    """
    if not file.has_chain:
        report.add("unsigned", file.name, "written without a chain: nothing in this file is signed")
        return None
    checkpoints = check_checkpoints(file, keys, report)
    check = ChainCheck(file, checkpoints, anchors, report)
    check.run()
    if file.of == "journal":
        _check_tables(file, check, report)
    report.rows += check.last
    if check.old_rows:
        words = f"{check._what}s 1 to {check.old_rows} are older than the chain: unchanged since it was begun"
        report.add("old", file.name, words, check.old_rows)
    wrong = any(each.file == file.name and each.kind in WRONG_KINDS for each in report.findings)
    if check.newest is not None and not wrong:
        _tell_end(file, check, checkpoints[-1], bool(keys), report)
    return check


def _tell_end(
    file: EvidenceFile, check: ChainCheck, newest: Checkpoint, trusted: bool, report: Report
) -> None:
    key = newest.told["key"][:16]
    whose = f"the trusted key {key}" if trusted else f"the key {key}, which the file itself names"
    words = f"{check._what}s {check.cut + 1} to {check.last} fit their hashes and the signature of {whose}"
    report.add("checked", file.name, words, check.last)
    at = f"{check._what} {check.last} of {moment(newest.told['at_us'])}"
    outside = [each for each in check.confirmed if each.outside]
    if any(each.row == check.last for each in outside):
        report.add("complete", file.name, f"complete up to {at}, as {outside[-1].who} shows", check.last)
        return
    shown = f"; {outside[-1].who} shows {check._what} {outside[-1].row}" if outside else ""
    report.add("tail", file.name, f"complete up to {at}, nothing known after{shown}", check.last)


def _check_tables(file: EvidenceFile, check: ChainCheck, report: Report) -> None:
    """Find rows without a link, cells of another type, and outcomes that differ from the chain's newest."""
    for table, kinds, number in (("events", "'E', 'e'", "id"), ("commands", "'C', 'c'", "number")):
        for (row,) in file.db.execute(
            f"SELECT {number} FROM {table} WHERE {number} NOT IN "
            f"(SELECT id FROM chain WHERE kind IN ({kinds})) ORDER BY {number} LIMIT {MOST_TOLD}"
        ):
            words = f"row {row} of {table} has no link: it was added, or its link was removed"
            report.add("changed", file.name, words, row)
    for table, columns in TYPES.items():
        wrong = " OR ".join(
            f"typeof({name}) != '{kind}'" for kind, names in columns.items() for name in names
        )
        (count,) = file.db.execute(f"SELECT COUNT(*) FROM {table} WHERE {wrong}").fetchone()
        if count:
            report.add("changed", file.name, f"{count} rows of {table} have cells of another type")
    told = dict(file.db.execute("SELECT id, outcome FROM chain WHERE kind = 'O' ORDER BY link").fetchall())
    for number, outcome in file.db.execute("SELECT number, outcome FROM commands ORDER BY number"):
        if told.get(number) != outcome:
            words = (
                f"command {number} is changed: its outcome is {outcome!r}, in the chain {told.get(number)!r}"
            )
            report.add("changed", file.name, words, number)


# -- the device's chain -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainKey:
    """K_0 of one device's chain, from the regulator's file."""

    serial: bytes
    hash: bytes  # h_0, which identifies the chain
    key: bytes


@dataclass(frozen=True, slots=True)
class DeviceAnchor:
    """A checkpoint as a device itself gave it: the chain's index and hash at that time."""

    serial: str  # as `sabot evidence ask-device` writes it
    index: int
    hash: bytes
    event: bytes = b""  # the whole event with its tag; files of older programs do not have it
    source: str = ""


def key_after(key: bytes, steps: int) -> bytes:
    """The device's key so many events later."""
    for _ in range(steps):
        key = hashlib.sha256(key).digest()
    return key


def tag_fits(key: bytes, index: int, data: bytes, tag: bytes) -> bool:
    """Whether a tag is the HMAC of the data under K_index: the hash before, and the event without its tag."""
    return hmac.compare_digest(hmac.digest(key, struct.pack("<I", index) + data, "sha256")[:16], tag)


Place = tuple[bytes, int, int]
"""Memory id, boot id and n of an event."""


@dataclass(slots=True)
class DeviceEvent:
    """One event of a device in the order of the journal."""

    link: int
    place: Place
    message: int
    body: bytes
    data: bytes  # the bytes that the device hashed


class DeviceCheck:
    """Checks the device's chain in one journal: numbers, hashes, and tags if K_0 is given.

    ``_index`` and ``_hash`` are those of the newest event. A hole makes them unknown (``_index`` None) until
    an ``events_lost`` or a checkpoint gives them again. ``watched`` is a chain index whose hash is kept.
    """

    def __init__(
        self, file: EvidenceFile, keys: Sequence[ChainKey], report: Report, watched: int | None = None
    ) -> None:
        self.file = file
        self.report = report
        self._keys = [each for each in keys if each.serial == file.serial]
        self._watched = watched
        self._key: bytes | None = None  # K_i with i = ``_key_index``
        self._key_index = 0
        self._index: int | None = None  # of the newest event; None while the chain is not known
        self._hash = b""
        self._start: tuple[int, bytes] | None = None  # index and hash before the newest boot's first event
        # Link of the newest boot's first event, the event before it, and that event. None once an
        # ``events_lost`` or a checkpoint has shown whether events are missing there.
        self._boot: tuple[int, Place, Place] | None = None
        self._recent: dict[int, bytes] = {}  # hashes by index, of the newest checkpoint and what followed
        self._before_boot: dict[int, bytes] = {}  # the same at the newest boot
        self._since: list[DeviceEvent] = []  # events after the newest boot, hole or checkpoint
        self.begun = False
        self.events = self.rounds = 0
        self.unproved = 0  # events after a hole whose chain index was not known at the next checkpoint
        self.tail = 0  # the newest checkpoint and the events after it
        self.checked = self.proved = 0  # links of the newest checkpoint, and of the newest whose tag fits
        self.holes: list[tuple[int, Place, Place]] = []  # link, event before, event after
        # Both: link, event before the range, its end, reason. The end of a lost range is the last event lost;
        # of a gap on the wire it is the first event after the gap.
        self.lost: list[tuple[int, tuple[int, int], tuple[int, int], int]] = []
        self.wire_gaps: list[tuple[int, tuple[int, int], tuple[int, int], int]] = []
        self.newest: tuple[int, bytes] | None = None  # index and hash of the newest event
        self.hashes: dict[int, bytes] = {}
        """By chain index, of the newest chain: hashes from checkpoints, and that of the watched event."""

    def run(self) -> None:
        """Check every event, then add findings for holes, and one for how much is proved."""
        before: Place | None = None
        for row in self.file.db.execute(DEVICE_EVENTS):
            link, memory, boot, n, is_gap, ticks, utc, quality, message, body, from_boot, from_n = row
            if is_gap:
                self.wire_gaps.append((link, (from_boot or 0, from_n or 0), (boot, n), message))
                continue
            try:
                seconds, ms = (0, 0) if utc is None else divmod(utc, 1000)
                data = EVENT_HEAD.pack(message, quality, n, boot, ticks, seconds, ms) + body
                if not isinstance(memory, bytes):
                    raise TypeError("the memory id is not bytes")
                event = DeviceEvent(link, (memory, boot, n), message, bytes(body), data)
            except (struct.error, TypeError):
                self.report.add("changed", self.file.name, f"the event of link {link} cannot be one", link)
                continue
            self._follow(event, before)
            self._take(event)
            before = event.place
            self.events += 1
            self.rounds += message in (ROUND_ENDED, ROUND_VOIDED)
        self.newest = None if self._index is None else (self._index, self._hash)
        self._name_gaps()
        self._say()

    def _follow(self, event: DeviceEvent, before: Place | None) -> None:
        """Note a hole if this event's number does not follow ``before``; note a boot."""
        memory, boot, n = event.place
        if before is None or (memory, boot, n) == (before[0], before[1], before[2] + 1):
            return
        if n == 1 and (memory != before[0] or boot == before[1] + 1):
            # Events before a boot may be missing; an ``events_lost`` of this boot says so.
            self._start = None if self._index is None else (self._index, self._hash)
            self._before_boot = dict(self._recent)
            self._boot = (event.link, before, event.place)
            self._since.clear()
            return
        if memory == before[0] and (boot, n) <= before[1:]:
            words = f"event ({boot}, {n}) of link {event.link} comes after event ({before[1]}, {before[2]})"
            self.report.add("reordered", self.file.name, words, event.link)
        self.holes.append((event.link, before, event.place))
        self._index = self._boot = None
        self._since.clear()

    def _take(self, event: DeviceEvent) -> None:
        if event.message == CHAIN_BEGUN and len(event.body) == BEGUN_BODY.size:
            self._begin(event)
        elif event.message == EVENTS_LOST and len(event.body) == LOST_BODY.size:
            self._lose(event)
        elif event.message == CHAIN_CHECKPOINT and len(event.body) == CHECKPOINT_BODY.size:
            self._check(event)
        self._since.append(event)
        self._extend(event)

    def _extend(self, event: DeviceEvent) -> None:
        """Move index and hash over one event."""
        self.tail += 1
        if self._index is not None:
            self._index += 1
            self._hash = hashlib.sha256(self._hash + event.data).digest()
            self._recent[self._index] = self._hash
            if self._index == self._watched:
                self.hashes[self._index] = self._hash

    def _begin(self, event: DeviceEvent) -> None:
        """Start a new chain at ``chain_begun``: h_0 from serial, memory id and boot id, and its K_0."""
        memory = BEGUN_BODY.unpack(event.body)[1]
        start = (
            b"sabot event chain 1" + (self.file.serial or b"") + memory + struct.pack("<I", event.place[1])
        )
        self._index, self._hash, self.begun = 0, hashlib.sha256(start).digest(), True
        found = next((each for each in self._keys if each.hash == self._hash), None)
        self._key, self._key_index = (None if found is None else found.key), 0
        self.hashes.clear()
        self._boot = None
        self._since.clear()

    def _lose(self, event: DeviceEvent) -> None:
        """Take index and hash from an ``events_lost`` if events of its range are missing in the journal.

        Events between the lost range and this event are hashed again, because their indexes are known now.
        """
        reason, from_boot, from_n, to_boot, to_n, _, index, _, after = LOST_BODY.unpack(event.body)
        self.lost.append((event.link, (from_boot, from_n), (to_boot, to_n), reason))
        if self._index is not None:
            if self._boot is None or self._start == (index, after):
                return  # no event of the range is missing
            if self._start is not None and self._before_boot.get(index) == after:
                self._tell_unsaved(self._boot, (to_boot, to_n), self._start[0] - index)
            else:
                self.holes.append(self._boot)
            if self._start is not None and self._watched is not None and self._watched > self._start[0]:
                self.hashes.pop(self._watched, None)  # since the boot indexes did not count the lost events
        behind = [each for each in self._since if each.place[1:] > (to_boot, to_n)]
        first = (behind[0] if behind else event).place
        if (first[1], first[2]) == (to_boot, to_n + 1) or first[2] == 1:
            self._index, self._hash, self._boot = index, after, None
            if index == self._watched:
                self.hashes[index] = after
            self.tail -= len(behind)
            for each in behind:
                self._extend(each)

    def _tell_unsaved(self, boot: tuple[int, Place, Place], saved: tuple[int, int], count: int) -> None:
        """Say that events before a boot come after the last one that the device had in its chain."""
        link, last, _ = boot
        words = (
            f"{count} events after ({saved[0]}, {saved[1]}) up to ({last[1]}, {last[2]}) are in no chain of "
            "the device: it could not save them before its power was cut, or somebody added them"
        )
        self.report.add("unsigned", self.file.name, words, link)

    def _check(self, event: DeviceEvent) -> None:
        """Compare a checkpoint with the events before it, check its tag, go on from its index and hash."""
        _, _, index, told, tag = CHECKPOINT_BODY.unpack(event.body)
        if self._index is None:
            self.unproved += len(self._since)
        elif (index, told) != (self._index, self._hash):
            words = f"the device's checkpoint of link {event.link} has another hash than the events before it"
            self.report.add("changed", self.file.name, words, event.link)
        self._index, self._hash, self._boot, self.tail = index, told, None, 0
        self._recent = {index: told}
        self._since.clear()
        self.hashes[index] = told
        self.checked = event.link
        if not self._keys or (self.begun and self._key is None):
            return
        if self._tag_fits(index + 1, told + event.data[:-16], tag):
            self.proved = event.link
        else:
            words = (
                f"the device's checkpoint of link {event.link} has a wrong tag: the device did not make it"
            )
            self.report.add("changed", self.file.name, words, event.link)

    def _tag_fits(self, index: int, data: bytes, tag: bytes) -> bool:
        """Whether this tag is the HMAC of the data under K_index. Moves the kept key forward to K_index."""
        if self._key is None:  # ``chain_begun`` was pruned, so h_0 is not known: take the last key given
            self._key = self._keys[-1].key
        if index < self._key_index or index > MOST_STEPS:
            return False
        self._key = key_after(self._key, index - self._key_index)
        self._key_index = index
        return tag_fits(self._key, index, data, tag)

    def _name_gaps(self) -> None:
        """Add ``gap`` for each hole that the device names, else ``hole``."""
        for link, before, after in self.holes:
            start, end = before[1:], after[1:]
            causes = [
                LOST_REASONS.get(reason, f"reason {reason}")
                for _, first, last, reason in self.lost
                if first <= start and (last >= (end[0], end[1] - 1) or (end[1] == 1 and last >= start))
            ]
            cause = causes[-1] if causes else self._wire_cause(link, start, end)
            missing = f"events after ({start[0]}, {start[1]}) and before ({end[0]}, {end[1]}) are missing"
            if cause is None:
                self.report.add("hole", self.file.name, f"{missing}, and no gap names them", link)
            else:
                self.report.add("gap", self.file.name, f"{missing}: {cause}", link)
            self.report.gaps += 1

    def _wire_cause(self, link: int, start: tuple[int, int], end: tuple[int, int]) -> str | None:
        """The reason in a ``GAP`` packet for this hole, if it counts; else None.

        Such a packet is in no chain. It counts before the first chain, and at the journal's end, where the
        device has not made its ``events_lost`` yet.
        """
        for at, first, last, reason in self.wire_gaps:
            if at < link and first <= start and last >= end:
                if not self.begun:
                    return f"{GAP_REASONS.get(reason, f'reason {reason}')}, as the journal says; not proved"
                if link > self.checked and not any(each[0] > link for each in self.lost):
                    return (
                        f"{GAP_REASONS.get(reason, f'reason {reason}')}; the device has not confirmed it yet"
                    )
        return None

    def _say(self) -> None:
        """Add the finding that says which of the device's events are proved."""
        if not self.events:
            return
        name = self.file.name
        if not self.begun:
            self.report.add(
                "checked", name, f"{self.events} events of the device are in no chain of the device"
            )
        elif not self._keys:
            words = "their hashes fit; without K_0 nothing of the device is proved"
            self.report.add("checked", name, f"{self.events} events of the device: {words}", self.checked)
        elif self.proved:
            words = f"events of the device up to link {self.proved} are proved by its tags"
            rest = f"; the newest {self.tail - 1} are not yet" if self.tail > 1 else ""
            rest += f"; {self.unproved} beside gaps are not" if self.unproved else ""
            self.report.add("proved", name, words + rest, self.proved)
        else:
            self.report.add(
                "checked", name, "the chain key fits no checkpoint: nothing of the device is proved"
            )


# -- anchors and keys ---------------------------------------------------------------------------

LINE = re.compile(
    r"(?P<of>journal|record) (?P<chain>[0-9a-f]{8}) row (?P<row>\d+) \S+Z\s+"
    r"(?P<hash>(?:[0-9a-f]{4}-){7}[0-9a-f]{4})"
)


def read_anchors(path: Path, trusted: Sequence[str]) -> list[Anchor]:
    """Anchors from a file that the floor keeps: printed lines, or checkpoints as JSON objects, one a line.

    ``trusted`` are public keys that may countersign. Unreadable if one line is no checkpoint, has a signature
    that does not fit, or is countersigned by another key; and if the file has no anchor.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: {error}") from error
    found = [
        Anchor(
            "the floor's line",
            each["of"],
            each["chain"],
            int(each["row"]),
            each["hash"].replace("-", ""),
            True,
        )
        for each in LINE.finditer(text)
    ]
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("{"):
            found.append(_read_kept(f"{path}, line {number}", line, trusted))
    if not found:
        raise Unreadable(f"{path}: no checkpoint is in this file")
    return found


def _read_kept(where: str, line: str, trusted: Sequence[str]) -> Anchor:
    try:
        kept = json.loads(line)
        if "statement" not in kept:  # a line of 'sabot evidence show --json'
            kept = json.loads(kept["checkpoint"])
        text, signature = kept["statement"], bytes.fromhex(kept["signature"])
        found = read_checkpoint(json.loads(text)["n"], text, signature)
        second = kept.get("countersigned")
        who = (
            "the checkpoint that the floor keeps" if second is None else _countersigned(second, text, trusted)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{where}: not a checkpoint: {error!r}") from error
    if found is None or not signature_fits(found.told["key"], signature, text):
        raise Unreadable(f"{where}: the checkpoint's signature does not fit")
    if who is None:
        raise Unreadable(f"{where}: the countersignature is of no trusted key, or does not fit")
    told = found.told
    return Anchor(who, told["of"], told["chain"], told["row"], told["hash"], True)


def _countersigned(second: Any, text: str, trusted: Sequence[str]) -> str | None:
    """Who countersigned a checkpoint, and when; None unless a trusted key signed it for this statement."""
    told = json.loads(second["statement"])
    fits = (
        told["key"] in trusted
        and told["checkpoint"] == hashlib.sha256(text.encode()).hexdigest()
        and signature_fits(
            told["key"], bytes.fromhex(second["signature"]), second["statement"], COUNTERSIGNED_AS
        )
    )
    return f"the checkpoint countersigned by {told['by']} at {moment(told['at_us'])}" if fits else None


def read_chain_key(path: Path) -> ChainKey:
    """K_0 of a device, from the regulator's file."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != "sabot chain key 1":
            raise ValueError("another format")
        return ChainKey(*(bytes.fromhex(told[name]) for name in ("serial", "hash", "key")))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable(f"{path}: not a chain key: {error}") from error


def read_device_anchor(path: Path) -> DeviceAnchor:
    """The checkpoint that a device itself gave, from the JSON object of `sabot evidence ask-device`."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        index, hash = int(told["index"]), bytes.fromhex(told["hash"])
        event = bytes.fromhex(told.get("event_hex", ""))
        if event and _checkpoint_of(event) != (index, hash):
            raise ValueError("its event is another one")
        return DeviceAnchor(str(told["serial"]), index, hash, event, str(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Unreadable(f"{path}: not a device's checkpoint: {error}") from error


def _checkpoint_of(event: bytes) -> tuple[int, bytes] | None:
    """Index and hash in the bytes of a ``chain_checkpoint``; None for any other bytes."""
    if len(event) != EVENT_HEAD.size + CHECKPOINT_BODY.size or event[0] != CHAIN_CHECKPOINT:
        return None
    _, _, index, hash, _ = CHECKPOINT_BODY.unpack(event[EVENT_HEAD.size :])
    return index, hash


def check_device_anchor(anchor: DeviceAnchor, keys: Sequence[ChainKey]) -> None:
    """`Unreadable` if K_0 of this device is given, and the checkpoint's tag does not fit it.

    Without K_0 nothing shows that the device made the checkpoint.
    """
    mine = [each for each in keys if anchor.serial in _serial_texts(each.serial)]
    if not mine:
        return
    if not anchor.event:
        words = "no tag is in this file, so K_0 cannot check it; ask the device again"
        raise Unreadable(f"{anchor.source}: {words}")
    index = anchor.index + 1
    data, tag = anchor.hash + anchor.event[:-16], anchor.event[-16:]
    if index > MOST_STEPS or not any(tag_fits(key_after(each.key, index), index, data, tag) for each in mine):
        words = "its tag fits no K_0 that was given: the device did not make it, or not in that chain"
        raise Unreadable(f"{anchor.source}: {words}")


# -- several files ------------------------------------------------------------------------------


def verify(
    files: Sequence[EvidenceFile],
    keys: Sequence[str] = (),
    anchors: Sequence[Anchor] = (),
    chain_keys: Sequence[ChainKey] = (),
    devices: Sequence[DeviceAnchor] = (),
) -> Report:
    """Check files, each alone and against the others.

    ``keys`` are trusted public keys of PCs in lower-case hexadecimal, ``anchors`` the floor's, ``chain_keys``
    the K_0 of devices, ``devices`` the checkpoints that devices gave themselves. Each is compared with the
    journals of its device; `Unreadable` if its tag does not fit K_0. A damaged database is a finding, not an
    error.
    """
    for each in devices:
        check_device_anchor(each, chain_keys)
    report = Report()
    known = [*anchors, *_seen(files)]
    checks = []
    for file in files:
        try:
            checks.append(check_file(file, keys, known, report))
            if file.of == "journal" and file.has_chain:
                _check_device(file, chain_keys, devices, report)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            report.add("changed", file.name, f"the database is damaged: {error}")
        except DAMAGED as error:
            words = f"the file has values that no program of the table writes: {error}"
            report.add("changed", file.name, words)
    rounds = [each.rounds for each in checks if each is not None and each.file.of == "record"]
    report.rounds = sum(rounds) if rounds else report.rounds
    _check_copies(files, report)
    return report


def _seen(files: Iterable[EvidenceFile]) -> Iterator[Anchor]:
    """Anchors from the ``seen`` of each signed checkpoint: the other file's newest row at that time."""
    for file in files:
        if not file.has_chain:
            continue
        try:
            kept = file.checkpoints()
        except DAMAGED:
            continue  # checking the file says so
        for n, text, signature in kept:
            found = read_checkpoint(n, text, signature)
            if found is None or not signature_fits(found.told["key"], found.signature, found.text):
                continue
            seen = found.told["seen"]
            if seen is not None:
                who = f"checkpoint {n} of {file.name}"
                yield Anchor(who, seen["of"], seen["chain"], seen["row"], seen["hash"], False)


def _check_device(
    file: EvidenceFile, keys: Sequence[ChainKey], devices: Sequence[DeviceAnchor], report: Report
) -> None:
    """Check the device's chain in a journal, and compare it with the device's own newest checkpoint."""
    given = [each for each in devices if each.serial in _serial_texts(file.serial)]
    newest_given = max(given, key=lambda each: each.index, default=None)
    check = DeviceCheck(file, keys, report, None if newest_given is None else newest_given.index)
    check.run()
    report.rounds += check.rounds
    if newest_given is None:
        if devices:
            report.add("checked", file.name, "no device's checkpoint that was given is of this file's device")
        return
    index, told = newest_given.index, newest_given.hash
    newest = max([*check.hashes, 0 if check.newest is None else check.newest[0]])
    if check.hashes.get(index, told) != told:
        report.add(
            "fork",
            file.name,
            f"two bodies for event {index} of the device's chain: the device has another one",
        )
    elif index > newest:
        words = f"the device has event {index} of its chain, and this file ends at event {newest}"
        report.add("rollback", file.name, f"put back to an older state: {words}", index)
    elif index not in check.hashes:
        words = f"the device's checkpoint is of event {index} of its chain, and that event is in a gap"
        report.add("checked", file.name, f"{words}: nothing is compared")
    elif newest > index + 1:  # the checkpoint itself is event index + 1
        words = f"the device's checkpoint fits event {index} of its chain; this file ends at event {newest}"
        report.add("checked", file.name, words)
    else:
        words = f"the device itself knew no event after event {index} of its chain when it was asked"
        report.add("complete", file.name, words)


def _serial_texts(serial: bytes | None) -> tuple[str, ...]:
    """How a serial number may be written: in hexadecimal, and as text where it is letters and digits."""
    if serial is None:
        return ()
    text = (serial.decode("ascii"),) if serial.isascii() and serial.isalnum() else ()
    return (serial.hex().upper(), *text)


def _check_copies(files: Sequence[EvidenceFile], report: Report) -> None:
    """Compare each two files of one chain, and each two journals of one device, row by row."""
    for at, first in enumerate(files):
        for second in files[at + 1 :]:
            try:
                if (
                    first.has_chain
                    and second.has_chain
                    and (first.of, first.chain) == (second.of, second.chain)
                ):
                    _check_copy(first, second, report)
                elif first.of == second.of == "journal" and first.serial and first.serial == second.serial:
                    _check_events(first, second, report)
            except DAMAGED:
                continue  # checking the file has said so


def _check_copy(first: EvidenceFile, second: EvidenceFile, report: Report) -> None:
    """Add ``fork`` for the first row with two hashes; else ``rollback`` for the copy that ends earlier."""
    what = ("link", "chain") if first.of == "journal" else ("number", "rows")
    query = f"SELECT {what[0]}, hash FROM {what[1]} ORDER BY {what[0]}"
    there = dict(second.db.execute(query).fetchall())
    here = dict(first.db.execute(query).fetchall())
    for number in sorted(here.keys() & there.keys()):
        if here[number] != there[number]:
            row = "link" if first.of == "journal" else "row"
            words = f"two bodies for {row} {number}: {second.name} has another one"
            report.add("fork", first.name, words, number)
            return
    shorter, longer = sorted(
        (first, second), key=lambda each: max(here if each is first else there, default=0)
    )
    last, most = (
        max(here if shorter is first else there, default=0),
        max(here if longer is first else there, default=0),
    )
    if last < most:
        words = f"{longer.name} knows row {most}, and this file ends at row {last}"
        report.add("rollback", shorter.name, f"put back to an older state: {words}", most)


def _check_events(first: EvidenceFile, second: EvidenceFile, report: Report) -> None:
    """Add ``fork`` for each event that two journals of one device hold with different content."""
    query = "SELECT memory_id, boot_id, n, message, body, ticks_ms FROM events WHERE NOT is_gap"
    here = {tuple(row[:3]): row[3:] for row in first.db.execute(query)}
    for memory, boot, n, *rest in second.db.execute(query):
        if here.get((memory, boot, n), tuple(rest)) != tuple(rest):
            words = f"two bodies for event ({boot}, {n}): {second.name} has another one"
            report.add("fork", first.name, words, n)


# -- words --------------------------------------------------------------------------------------


def moment(at_us: int) -> str:
    """A time in UTC as ISO 8601, in whole seconds, from microseconds since 1970."""
    try:
        return (EPOCH + timedelta(microseconds=at_us)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return f"{at_us} us"


def _range(first: int, last: int) -> str:
    return f"{first} is" if first >= last else f"{first} to {last} are"


def lines(report: Report) -> Iterator[str]:
    """The report for a person: findings file by file, then the verdict."""
    told: dict[tuple[str, str], int] = {}
    for each in report.findings:
        at = (each.file, each.kind)
        told[at] = told.get(at, 0) + 1
        if told[at] <= MOST_TOLD:
            kind = each.kind.replace("_", " ")
            yield f"{each.file}: {kind.upper() if each.kind in WRONG_KINDS else kind}: {each.text}"
    for (file, kind), count in told.items():
        if count > MOST_TOLD:
            yield f"{file}: {kind}: {count - MOST_TOLD} more"
    if report.gap_rate is None:
        yield f"gaps: {report.gaps}; no round is on record"
    else:
        yield f"gaps: {report.gaps} in {report.rounds} rounds, {report.gap_rate:.1f} per 1,000 rounds"
    yield VERDICTS[report.code]


VERDICTS = {
    OK: "everything fits, and an anchor shows the newest row",
    OPEN_END: "everything fits; nothing is known after the newest row, because no anchor shows it",
    WRONG: "something does not fit: this is not what was written",
}


def as_json(report: Report) -> str:
    """The report as one JSON object."""
    findings = [asdict(each) for each in report.findings]
    return json.dumps(
        {
            "code": report.code,
            "verdict": VERDICTS[report.code],
            "findings": findings,
            "rows": report.rows,
            "rounds": report.rounds,
            "gaps": report.gaps,
            "gaps_per_1000_rounds": report.gap_rate,
        }
    )


# -- command ------------------------------------------------------------------------------------


def open_files(paths: Sequence[Path], stack: ExitStack) -> tuple[list[EvidenceFile], list[Path]]:
    """Open journals, records and exported archives; also return paths of devices' checkpoints in archives.

    ``stack`` closes the files and removes the unpacked archives. Unreadable if a file cannot be opened.
    """
    files: list[EvidenceFile] = []
    devices: list[Path] = []
    for path in paths:
        if path.is_file() and zipfile.is_zipfile(path):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            try:
                with zipfile.ZipFile(path) as archive:
                    for name in sorted(archive.namelist()):
                        if "/" in name or "\\" in name or not name.endswith((".db", ".json")):
                            continue
                        _check_packed(path, archive, name)
                        archive.extract(name, folder)
                        if name.endswith(".db"):
                            files.append(EvidenceFile(folder / name, f"{path.name}:{name}"))
                        elif name == "device-checkpoint.json":
                            devices.append(folder / name)
            except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, zlib.error) as error:
                raise Unreadable(f"{path}: {error}") from error
        else:
            files.append(EvidenceFile(path))
    names = [each.name for each in files]
    for each in files:
        if names.count(each.name) > 1:
            each.name = str(each.path)
        stack.enter_context(closing(each.db))
    return files, devices


def _check_packed(path: Path, archive: zipfile.ZipFile, name: str) -> None:
    """`Unreadable` for a file that is there twice, or that would fill the disk when it is unpacked."""
    about = archive.getinfo(name)
    if archive.namelist().count(name) > 1:
        raise Unreadable(f"{path}: {name} is in this archive twice")
    if about.file_size > max(MOST_UNPACKED, MOST_RATIO * about.compress_size):
        raise Unreadable(
            f"{path}: {name} would unpack to {about.file_size:,} bytes from {about.compress_size:,}"
        )


def run(arguments: Sequence[str], write: Callable[[str], object]) -> int:
    """Verify as the command line's arguments say, write each line of the report, return the exit code."""
    parser = argparse.ArgumentParser(prog="verifier.py", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="journals, records, exported archives"
    )
    parser.add_argument(
        "--chain-key", action="append", default=[], type=Path, help="the regulator's file with K_0"
    )
    parser.add_argument(
        "--pc-key", action="append", default=[], metavar="HEX", help="a PC's public key you trust"
    )
    parser.add_argument(
        "--trust", action="append", default=[], metavar="HEX", help="a key that may countersign"
    )
    parser.add_argument(
        "--anchor", action="append", default=[], type=Path, help="lines or checkpoints of the floor"
    )
    parser.add_argument(
        "--device-checkpoint", action="append", default=[], type=Path, help="a checkpoint as a device gave it"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    chosen = parser.parse_args(arguments)
    with ExitStack() as stack:
        try:
            files, devices = open_files(chosen.files, stack)
            anchors = [anchor for path in chosen.anchor for anchor in read_anchors(path, chosen.trust)]
            keys = [read_chain_key(path) for path in chosen.chain_key]
            given = [read_device_anchor(path) for path in [*chosen.device_checkpoint, *devices]]
            report = verify(files, [each.lower() for each in chosen.pc_key], anchors, keys, given)
        except Unreadable as error:
            write(json.dumps({"code": UNREADABLE, "error": str(error)}) if chosen.json else str(error))
            return UNREADABLE
    for line in [as_json(report)] if chosen.json else lines(report):
        write(line)
    return report.code


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process, because it may hold K_0. Windows writes none."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(run(sys.argv[1:], lambda line: sys.stdout.write(line + "\n")))
