"""The rows of a table's two chains as they leave it: from the journal, and from the record.

Both are read through connections of their own, a page at a time, while driver and session write. At level
``all`` numbers, bytes and hashes are those of the file. Below it the chain is over what leaves.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from sabot_driver.journal_links import JournalLinks
from sabot_driver.serial_numbers import format_serial
from sabot_evidence.chain import first_hash
from sabot_floor.errors import FloorError
from sabot_floor.leaving import device_body, record_body
from sabot_floor.names import DEVICE, RECORD
from sabot_floor.payloads import Begins, ChainHead, FloorRow, chained
from sabot_session.record import RecordReader
from sabot_session.record_chain import OF as OF_RECORD
from sabot_table.rule_texts import FloorLevel

PAGE = 256
MARK_EVERY = 1024


class RawRow(NamedTuple):
    """A row of a file; ``leaves`` is its text at the level of the source, None if it stays."""

    n: int
    hash: str
    leaves: str | None


class RawRows(Protocol):
    """A file of chained rows."""

    def after(self, n: int, most: int) -> list[RawRow]:
        """Rows after a number, in order."""

    def before_first(self) -> Begins:
        """The place before the first row that is there."""

    def newest(self) -> tuple[int, str]:
        """The newest row's number and hash."""

    def archived(self, n: int) -> None:
        """Rows up to this one are in the archive."""

    def version(self) -> int:
        """Another number than before if the file was written."""

    def close(self) -> None:
        """Close the file."""


class JournalRows:
    """The links of a journal."""

    def __init__(self, path: Path, level: FloorLevel, read_up_to: Callable[[int], None]) -> None:
        """``read_up_to`` stores the position of the reader: the id of an event."""
        self._links = JournalLinks(path)
        self._level = level
        self._read_up_to = read_up_to
        self.source = f"{format_serial(self._links.serial)}/{self._links.chain_id}"

    def after(self, n: int, most: int) -> list[RawRow]:
        """Links after a number, in order."""
        return [
            RawRow(
                each.link,
                each.hash.hex(),
                each.body.decode()
                if self._level is FloorLevel.ALL
                else device_body(each.kind, each.body, self._level),
            )
            for each in self._links.after(n, most)
        ]

    def before_first(self) -> Begins:
        """The place before the first link that is there."""
        link, hash = self._links.before_first()
        return Begins(prev=link, hash=hash.hex())

    def newest(self) -> tuple[int, str]:
        """The newest link's number and hash."""
        link, hash = self._links.newest()
        return link, hash.hex()

    def archived(self, n: int) -> None:
        """Let pruning delete what the archive has.

        The newest archived event stays: commands behind it may not be archived, and pruning goes by events.
        """
        newest = self._links.newest_event(n)
        if newest > 1:
            self._read_up_to(newest - 1)

    def version(self) -> int:
        """Another number than before if the file was written."""
        return self._links.version()

    def close(self) -> None:
        """Close the file."""
        self._links.close()


class RecordRows:
    """The rows of a record."""

    def __init__(self, path: Path, level: FloorLevel) -> None:
        self._record = RecordReader(path)
        self._level = level
        self.source = self._record.record_id

    def after(self, n: int, most: int) -> list[RawRow]:
        """Rows after a number, in order."""
        return [
            RawRow(
                number, hash.hex(), body if self._level is FloorLevel.ALL else record_body(body, self._level)
            )
            for number, body, hash in self._record.chained(n, most)
        ]

    def before_first(self) -> Begins:
        """A record is never cut."""
        return Begins(prev=0, hash=first_hash(OF_RECORD).hex())

    def newest(self) -> tuple[int, str]:
        """The newest row's number and hash."""
        number, hash = self._record.newest_hash()
        return number, hash.hex()

    def archived(self, n: int) -> None:
        """A record is never pruned."""

    def version(self) -> int:
        """Another number than before if the file was written."""
        return self._record.version()

    def close(self) -> None:
        """Close the file."""
        self._record.close()


class RowSource:
    """One source at level ``all``. Safe to use from several threads."""

    def __init__(self, raw: RawRows, chain: str, source: str) -> None:
        self.chain = chain
        self.source = source
        self._raw = raw
        self._lock = threading.Lock()
        self._version: int | None = None

    def begins(self) -> Begins:
        """The place before its first row."""
        with self._lock:
            return self._raw.before_first()

    def rows(self, after: int, most: int) -> list[FloorRow]:
        """Rows after a number, in order."""
        with self._lock:
            found = self._raw.after(after, most)
        return [FloorRow(n=n, prev=n - 1, hash=hash, body=body or "") for n, hash, body in found]

    def head(self) -> ChainHead:
        """The newest row, and how many there are."""
        with self._lock:
            n, hash = self._raw.newest()
        return ChainHead(source=self.source, n=n, hash=hash, count=n)

    def changed(self) -> bool:
        """Whether the file was written since the last call; the first call says so. It does not wait.

        While another thread reads, the answer is yes.
        """
        if not self._lock.acquire(blocking=False):
            return True
        try:
            before, self._version = self._version, self._raw.version()
            return self._version != before
        finally:
            self._lock.release()

    def archived(self, n: int) -> None:
        """The archive has committed every row up to this one."""
        with self._lock:
            self._raw.archived(n)

    def close(self) -> None:
        """Close its file."""
        with self._lock:
            self._raw.close()


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place in a filtered source: behind ``raw`` of the file; the newest row that left, and their count."""

    raw: int
    n: int
    hash: str
    count: int


class FilteredSource(RowSource):
    """One source below level ``all``: the chain is over the rows that leave.

    The first call reads the whole file. Marks in memory, one in 1,024 rows, make later calls short. The chain
    of a journal that was pruned cannot be computed again, so that is another source, named by its beginning.
    """

    def __init__(self, raw: RawRows, chain: str, source: str) -> None:
        begins = raw.before_first()
        super().__init__(raw, chain, f"{source}/{begins.prev}" if begins.prev else source)
        first = hashlib.sha256(f"sabot floor 1\n{self.source}".encode()).hexdigest()
        self._begins = Begins(prev=begins.prev, hash=first)
        self._newest = _Mark(begins.prev, begins.prev, first, 0)
        self._marks = [self._newest]

    def begins(self) -> Begins:
        """The place before its first row."""
        return self._begins

    def rows(self, after: int, most: int) -> list[FloorRow]:
        """Rows after a number, in order."""
        with self._lock:
            mark = next(each for each in reversed(self._marks) if each.n <= max(after, self._begins.prev))
            found = []
            for row, _ in self._walk(mark):
                if row is not None and row.n > after:
                    found.append(row)
                    if len(found) >= most:
                        break
            return found

    def head(self) -> ChainHead:
        """The newest row that leaves, and how many there are."""
        with self._lock:
            for _, place in self._walk(self._newest):
                self._newest = place
                if place.count >= self._marks[-1].count + MARK_EVERY:
                    self._marks.append(place)
            return ChainHead(
                source=self.source, n=self._newest.n, hash=self._newest.hash, count=self._newest.count
            )

    def _walk(self, place: _Mark) -> Iterator[tuple[FloorRow | None, _Mark]]:
        while page := self._raw.after(place.raw, PAGE):
            for n, _, body in page:
                row = None
                if body is None:
                    place = replace(place, raw=n)
                else:
                    row = FloorRow(n=n, prev=place.n, hash=chained(place.hash, body), body=body)
                    place = _Mark(n, n, row.hash, place.count + 1)
                yield row, place


def device_source(path: Path, level: FloorLevel, read_up_to: Callable[[int], None]) -> RowSource:
    """The device's rows of a journal file; ``read_up_to`` stores the reader's position in the journal."""
    raw = JournalRows(path, _sharing(level), read_up_to)
    return _source(raw, DEVICE, raw.source, level)


def record_source(path: Path, level: FloorLevel) -> RowSource:
    """The rows of a record file."""
    raw = RecordRows(path, _sharing(level))
    return _source(raw, RECORD, raw.source, level)


def _source(raw: RawRows, chain: str, source: str, level: FloorLevel) -> RowSource:
    if level is FloorLevel.ALL:
        return RowSource(raw, chain, source)
    return FilteredSource(raw, chain, f"{source}/{level}")


def _sharing(level: FloorLevel) -> FloorLevel:
    if level is FloorLevel.NONE:
        raise FloorError("a table from which nothing may leave has no source")
    return level
