"""Verify the evidence of a table: journals, records, checkpoints. This one file is the whole verifier.

It needs Python 3.11, its standard library and ``cryptography``, and no other file of the project. Copy it and
run ``python verifier.py FILES``; ``python verifier.py --help`` lists the options. The byte layouts are in
docs/evidence.md. It reads and never writes.

Exit codes: 0 everything fits, and an anchor shows the newest row; 8 everything fits, and nothing is known
after the newest row; 5 something does not fit; 1 a file cannot be read; 2 wrong usage.
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
"""Kinds of findings that mean: this is not what was written. Every other kind is told and accepted."""
SHOWN_KINDS = ("proved", "checked", "old", "gap", "clock", "restored", "complete", "tail")
MOST_TOLD = 20  # findings of one kind in one file; the rest is counted
MOST_COMPARED = 64  # misfitting rows among which exchanged ones are looked for
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
"""What each column of a journal holds. SQLite would also keep another type there."""

CHAIN_CHECKPOINT, EVENTS_LOST, CHAIN_BEGUN = 0xAB, 0xAF, 0xB0
ROUND_ENDED, ROUND_VOIDED = 0x95, 0x96
EVENT_HEAD = struct.Struct("<BBIIIIH")
CHECKPOINT_BODY = struct.Struct("<III32s16s")
LOST_BODY = struct.Struct("<BIIIIII32s32s")
BEGUN_BODY = struct.Struct("<B4sI32s")
LOST_REASONS = {1: "no room in the device", 2: "the device lost power", 3: "the device's memory was lost"}
GAP_REASONS = {1: "no room in the device", 2: "the device lost power"}
OPENING = (b',"kind":"open_bets",', b',"kind":"begin_simulated",')
OPENING_END = 84  # bytes at a row's end that hold its kind, number and round
TIME, TIME_DIGITS = b',"at_s":', 11  # seconds since 1970: ten digits and a comma
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
    """What something outside a file knows of it: the hash of one row, or its first digits."""

    who: str
    of: str
    chain: str  # the chain's id, or its first eight digits
    row: int
    hash: str  # hexadecimal digits, as many as were kept
    outside: bool  # whether it was kept outside of the table PC

    def fits(self, chain: str) -> bool:
        """Whether it is about this chain."""
        return chain.startswith(self.chain)


@dataclass(slots=True)
class Checkpoint:
    """One checkpoint of a file, as it was read."""

    n: int
    text: str
    signature: bytes
    told: Mapping[str, Any]


@dataclass
class Report:
    """Everything that was found."""

    findings: list[Finding] = field(default_factory=list)
    rounds: int = 0
    gaps: int = 0
    rows: int = 0

    def add(self, kind: str, file: str, text: str, row: int | None = None) -> None:
        """Say something."""
        self.findings.append(Finding(kind, file, text, row))

    @property
    def code(self) -> int:
        """The exit code."""
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
            if "rows" in tables:
                self.of = "record"
            elif "events" in tables:
                self.of = "journal"
            else:
                raise Unreadable(f"{path}: neither a journal nor a record")
            self.has_chain = "checkpoints" in tables
            meta = dict(self.db.execute("SELECT name, value FROM meta").fetchall())
        except sqlite3.Error as error:
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
            try:
                db.execute("BEGIN")  # one moment of a file that a program may be writing
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
        """Number, bytes, kept hash and time (of journals only) of every row."""
        return iter(self.db.execute(JOURNAL_ROWS if self.of == "journal" else RECORD_ROWS))

    def numbers(self) -> tuple[int | None, int | None]:
        """The lowest and the highest number of a record's rows; (None, None) if there is none."""
        # SQLite would read every row if it were asked for both at once
        (low,) = self.db.execute("SELECT MIN(number) FROM rows").fetchone()
        (high,) = self.db.execute("SELECT MAX(number) FROM rows").fetchone()
        return low, high

    def hash_now(self, row: int) -> bytes | None:
        """The hash of a row in the file as it is now, perhaps later than it was read; or None."""
        query = "SELECT hash FROM rows WHERE number = ?"
        if self.of == "journal":
            query = "SELECT hash FROM chain WHERE link = ?"
        with closing(self._open(self.path)) as db:
            found = db.execute(query, (row,)).fetchone()
        return None if found is None else bytes(found[0] or b"")

    def checkpoints(self) -> list[tuple[int, Any, Any]]:
        """The checkpoints as they are stored."""
        return self.db.execute("SELECT n, statement, signature FROM checkpoints ORDER BY n").fetchall()


# -- checkpoints --------------------------------------------------------------------------------

FIELDS: dict[str, type | tuple[type, ...]] = {
    "about": (dict, type(None)), "at_us": int, "before": str, "chain": str, "hash": str, "key": str, "n": int,
    "of": str, "row": int, "seen": (dict, type(None)), "since": int, "v": int, "why": str,
}  # fmt: skip


@lru_cache(maxsize=100_000)
def signature_fits(key: str, signature: bytes, text: str, signed_as: bytes = SIGNED_AS) -> bool:
    """Whether the signature is this key's, over this statement."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, signed_as + text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def read_checkpoint(n: int, text: Any, signature: Any) -> Checkpoint | None:
    """A checkpoint that is whole and canonical; None for anything else."""
    try:
        told = json.loads(text)
        whole = all(isinstance(told[name], kinds) for name, kinds in FIELDS.items())
        same = json.dumps(told, sort_keys=True, separators=(",", ":")) == text
    except (ValueError, KeyError, TypeError):
        return None
    if not whole or not same or told["n"] != n or not isinstance(signature, bytes):
        return None
    return Checkpoint(n, text, signature, told)


def check_checkpoints(file: EvidenceFile, keys: Sequence[str], report: Report) -> list[Checkpoint]:
    """Those that fit, oldest first; what does not fit is said."""
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
            about = f"{str(told['about'].get('before', ''))[:16]} to {told['key'][:16]}"
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
    """A row whose bytes do not give its hash."""

    number: int
    before: bytes
    body: bytes
    hash: bytes


class ChainCheck:
    """Goes through the rows of one file once."""

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
        """Whether every row of a record fits its hash, number and time. If not, nothing was noted.

        Most records are honest, so this pass does only what each row needs, and the other pass finds words.
        """
        sha256, before, last, rounds = hashlib.sha256, self._hash, 0, 0
        watched = sorted((row for row in {*self._signed, *self._anchors} if row >= 0), reverse=True)
        met = []
        newest, same, size = b"", b"-", 1
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
                    continue  # the actor and the second of the row before
                start, found, rest = body.partition(TIME)
                at = rest[:TIME_DIGITS]
                if not at[:-1].isdigit() or at[-1:] != b",":
                    return False
                if at < newest:
                    number = first + bodies.index(body)
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
                before = kept or b""
                continue
            if isinstance(body, str):
                body = body.encode()
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
            if at_us is not None:
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
        """Compare a row's hash with what checkpoints and anchors say of it."""
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
        """Say which rows were changed, and which were exchanged with each other."""
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
        """Whether bytes are those that were written at another place, but for their number."""
        if self.file.of == "record":
            moved = re.sub(rb'"number":\d+(,"round":\d+\}$)', rb'"number":%d\1' % there.number, body)
        else:
            first, _, rest = there.body.split(b" ", 2)[0], *body.split(b" ", 2)[1:]
            moved = b" ".join((first, there.body.split(b" ", 2)[1], rest))
        return any(hashlib.sha256(there.before + each).digest() == there.hash for each in (body, moved))

    def _check_end(self) -> None:
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
                    continue  # a program writes the files while they are read
                words = (
                    f"{found[0].who} knows {self._what} {row}, and this file ends at {self._what} {self.last}"
                )
                self.report.add("rollback", self.file.name, f"put back to an older state: {words}", row)


def check_file(
    file: EvidenceFile, keys: Sequence[str], anchors: Sequence[Anchor], report: Report
) -> ChainCheck | None:
    """Check checkpoints and rows of one file, and say how far it is known."""
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
    """Rows of a journal that have no link, cells of another type, and outcomes other than the chain's."""
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
    hash: bytes
    key: bytes


Place = tuple[bytes, int, int]
"""Memory id, boot id and n of an event."""


@dataclass(slots=True)
class DeviceEvent:
    """One event of a device in the order of the journal."""

    link: int
    place: Place
    message: int
    body: bytes
    data: bytes


class DeviceCheck:
    """Goes through a device's events once: numbers, hashes, and tags if K_0 is there."""

    def __init__(self, file: EvidenceFile, keys: Sequence[ChainKey], report: Report) -> None:
        self.file = file
        self.report = report
        self._keys = [each for each in keys if each.serial == file.serial]
        self._key: bytes | None = None  # K of index ``_key_index``
        self._key_index = 0
        self._index: int | None = None  # of the newest event; None while the chain is not known
        self._hash = b""
        self._start: tuple[int, bytes] | None = None  # index and hash before the newest boot's first event
        self._boot: tuple[int, Place, Place] | None = None  # link, event before, first event of that boot
        self._since: list[DeviceEvent] = []  # events since that boot or a hole, until the next checkpoint
        self.begun = False
        self.events = self.rounds = self.unproved = self.tail = 0
        self.proved = self.checked = 0  # links of the newest checkpoints that fit
        self.holes: list[tuple[int, Place, Place]] = []
        self.lost: list[tuple[int, tuple[int, int], tuple[int, int], int]] = []
        self.wire_gaps: list[tuple[int, tuple[int, int], tuple[int, int], int]] = []
        self.newest: tuple[int, bytes] | None = None  # index and hash of the newest event
        self.hashes: dict[int, bytes] = {}
        """By chain index: the hashes that checkpoints in this journal tell."""

    def run(self) -> None:
        """Check every event and name the gaps."""
        before: Place | None = None
        for row in self.file.db.execute(DEVICE_EVENTS):
            link, memory, boot, n, is_gap, ticks, utc, quality, message, body, from_boot, from_n = row
            if is_gap:
                self.wire_gaps.append((link, (from_boot or 0, from_n or 0), (boot, n), message))
                continue
            try:
                seconds, ms = (0, 0) if utc is None else divmod(utc, 1000)
                data = EVENT_HEAD.pack(message, quality, n, boot, ticks, seconds, ms) + body
                event = DeviceEvent(link, (bytes(memory), boot, n), message, bytes(body), data)
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
        """Whether the event's number follows the one before it."""
        memory, boot, n = event.place
        if before is None or (memory, boot, n) == (before[0], before[1], before[2] + 1):
            return
        if n == 1 and (
            memory != before[0] or boot == before[1] + 1
        ):  # ``events_lost`` says if some are missing
            self._start = None if self._index is None else (self._index, self._hash)
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
        self.tail += 1
        if self._index is not None:
            self._index += 1
            self._hash = hashlib.sha256(self._hash + event.data).digest()

    def _begin(self, event: DeviceEvent) -> None:
        """A chain begins: h_0 from serial number, memory id and boot."""
        memory = BEGUN_BODY.unpack(event.body)[1]
        start = (
            b"sabot event chain 1" + (self.file.serial or b"") + memory + struct.pack("<I", event.place[1])
        )
        self._index, self._hash, self.begun = 0, hashlib.sha256(start).digest(), True
        found = next((each for each in self._keys if each.hash == self._hash), None)
        self._key, self._key_index = (None if found is None else found.key), 0
        self._boot = None
        self._since.clear()

    def _lose(self, event: DeviceEvent) -> None:
        """A gap that the device names: the chain goes on behind it."""
        reason, from_boot, from_n, to_boot, to_n, _, index, _, after = LOST_BODY.unpack(event.body)
        self.lost.append((event.link, (from_boot, from_n), (to_boot, to_n), reason))
        if self._index is not None:
            if self._boot is None or self._start == (index, after):
                return  # the owner holds all of the range
            self.holes.append(self._boot)
        behind = [each for each in self._since if each.place[1:] > (to_boot, to_n)]
        first = (behind[0] if behind else event).place
        if (first[1], first[2]) == (to_boot, to_n + 1) or first[2] == 1:
            self._index, self._hash, self._boot = index, after, None
            self.tail -= len(behind)
            for each in behind:
                self._extend(each)

    def _check(self, event: DeviceEvent) -> None:
        """A checkpoint: what it says of the chain before it, and its tag."""
        _, _, index, told, tag = CHECKPOINT_BODY.unpack(event.body)
        if self._index is None:
            self.unproved += len(self._since)
        elif (index, told) != (self._index, self._hash):
            words = f"the device's checkpoint of link {event.link} has another hash than the events before it"
            self.report.add("changed", self.file.name, words, event.link)
        self._index, self._hash, self._boot, self.tail = index, told, None, 0
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
        """Whether a tag is made with the key of this index."""
        if self._key is None:  # the journal's oldest part is gone, and with it where the chain begins
            self._key = self._keys[-1].key
        if index < self._key_index:
            return False
        for _ in range(index - self._key_index):
            self._key = hashlib.sha256(self._key).digest()
        self._key_index = index
        made = hmac.digest(self._key, struct.pack("<I", index) + data, "sha256")[:16]
        return hmac.compare_digest(made, tag)

    def _name_gaps(self) -> None:
        """Which holes the device names, and which it does not."""
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
        """The reason a gap on the wire gave. It is no proof, so it counts only before a chain."""
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
    """Anchors of a file that the floor keeps: printed lines, or checkpoints as JSON objects, one a line.

    A checkpoint may be countersigned by a key that the reader trusts; another countersignature is refused.
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
    except (ValueError, KeyError, TypeError, AttributeError) as error:
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
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{path}: not a chain key: {error}") from error


def read_device_anchor(path: Path) -> tuple[int, bytes]:
    """Chain index and hash of the checkpoint that a device itself gave, from a JSON object."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return int(told["index"]), bytes.fromhex(told["hash"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{path}: not a device's checkpoint: {error}") from error


# -- several files ------------------------------------------------------------------------------


def verify(
    files: Sequence[EvidenceFile],
    keys: Sequence[str] = (),
    anchors: Sequence[Anchor] = (),
    chain_keys: Sequence[ChainKey] = (),
    device: tuple[int, bytes] | None = None,
) -> Report:
    """Check files, and each against what the others know of it."""
    report = Report()
    known = [*anchors, *_seen(files)]
    checks = []
    for file in files:
        try:
            checks.append(check_file(file, keys, known, report))
            if file.of == "journal" and file.has_chain:
                _check_device(file, chain_keys, device, report)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            report.add("changed", file.name, f"the database is damaged: {error}")
    rounds = [each.rounds for each in checks if each is not None and each.file.of == "record"]
    report.rounds = sum(rounds) if rounds else report.rounds
    _check_copies(files, report)
    return report


def _seen(files: Iterable[EvidenceFile]) -> Iterator[Anchor]:
    """What each file's signed checkpoints know of another file."""
    for file in files:
        if not file.has_chain:
            continue
        try:
            kept = file.checkpoints()
        except sqlite3.Error:
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
    file: EvidenceFile, keys: Sequence[ChainKey], device: tuple[int, bytes] | None, report: Report
) -> None:
    check = DeviceCheck(file, keys, report)
    check.run()
    report.rounds += check.rounds
    if device is None:
        return
    index, told = device
    newest = max([*check.hashes, 0 if check.newest is None else check.newest[0]], default=0)
    if check.hashes.get(index, told) != told or (
        check.newest is not None and check.newest[0] == index != 0 and (check.newest[1] != told)
    ):
        report.add(
            "fork",
            file.name,
            f"two bodies for event {index} of the device's chain: the device has another one",
        )
    elif index > newest:
        words = f"the device has event {index} of its chain, and this file ends at event {newest}"
        report.add("rollback", file.name, f"put back to an older state: {words}", index)
    else:
        report.add(
            "complete", file.name, f"the device itself knows no event after event {index} of its chain"
        )


def _check_copies(files: Sequence[EvidenceFile], report: Report) -> None:
    """Two files of one chain, or two journals of one device: a row or an event with two bodies is a fork."""
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
            except sqlite3.Error:
                continue  # checking the file has said so


def _check_copy(first: EvidenceFile, second: EvidenceFile, report: Report) -> None:
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
    query = "SELECT memory_id, boot_id, n, message, body, ticks_ms FROM events WHERE NOT is_gap"
    here = {tuple(row[:3]): row[3:] for row in first.db.execute(query)}
    for memory, boot, n, *rest in second.db.execute(query):
        if here.get((memory, boot, n), tuple(rest)) != tuple(rest):
            words = f"two bodies for event ({boot}, {n}): {second.name} has another one"
            report.add("fork", first.name, words, n)


# -- words --------------------------------------------------------------------------------------


def moment(at_us: int) -> str:
    """A time in UTC."""
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
    """Journals and records, those in exported archives too; and the devices' checkpoints of archives."""
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
                        archive.extract(name, folder)
                        if name.endswith(".db"):
                            files.append(EvidenceFile(folder / name, f"{path.name}:{name}"))
                        elif name == "device-checkpoint.json":
                            devices.append(folder / name)
            except (zipfile.BadZipFile, OSError) as error:
                raise Unreadable(f"{path}: {error}") from error
        else:
            files.append(EvidenceFile(path))
    names = [each.name for each in files]
    for each in files:
        if names.count(each.name) > 1:
            each.name = str(each.path)
        stack.enter_context(closing(each.db))
    return files, devices


def run(arguments: Sequence[str], write: Callable[[str], object]) -> int:
    """Verify as the arguments say; the exit code."""
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
    parser.add_argument("--device-checkpoint", type=Path, help="the newest checkpoint, as the device gave it")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    chosen = parser.parse_args(arguments)
    with ExitStack() as stack:
        try:
            files, devices = open_files(chosen.files, stack)
            anchors = [anchor for path in chosen.anchor for anchor in read_anchors(path, chosen.trust)]
            keys = [read_chain_key(path) for path in chosen.chain_key]
            told = chosen.device_checkpoint or (devices[0] if devices else None)
            device = None if told is None else read_device_anchor(told)
        except Unreadable as error:
            write(json.dumps({"code": UNREADABLE, "error": str(error)}) if chosen.json else str(error))
            return UNREADABLE
        report = verify(files, [each.lower() for each in chosen.pc_key], anchors, keys, device)
    for line in [as_json(report)] if chosen.json else lines(report):
        write(line)
    return report.code


def forbid_core_dumps() -> None:
    """Keep the device's key, if it is given, out of core dumps. Windows has none."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(run(sys.argv[1:], lambda line: sys.stdout.write(line + "\n")))
