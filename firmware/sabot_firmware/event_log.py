"""The event log: at least the last 1,000 rows, in flash, across power cuts.

A row is 1 to 200 bytes. ``add`` queues it in memory. ``flush`` writes it and numbers it 1, 2, … without gaps.
The caller flushes only while nothing moves, because programming flash stops the processor, and an erase stops
it for 45 ms and more. Flushed rows survive a power cut, queued rows do not. Numbers have 32 bits and do not
wrap: the flash would wear out long before.

The log is a ring of sectors. A sector begins with its sequence number and the number of its first row. Rows
follow at multiples of eight, each with length, number and a CRC-32 that is valid only in this sector. An
invalid row is skipped, whether a power cut tore it or it decayed. After a torn row writing continues behind
any byte that it may have touched, so a cut costs at most 216 bytes. When a sector is full, the next one is
erased and used, even if it looks erased, because an erase may have been cut.

A log may have a second ring, for evidence only (``EventLog.evidence``). Evidence is in both rings, and other
events never take a place in the second one. It is flushed first.

A sector holds 51 rows of up to 64 bytes, so 1,000 of them need 20 sectors and one more that is being erased:
21. ``SECTORS`` is 24, which leaves room for 57 torn rows among the last 1,000.
"""

import struct
from binascii import crc32

from sabot_protocol.executor import EventSink

KEPT_ROWS = 1000
KEPT_ROW = 64  # rows up to this size are kept KEPT_ROWS times
MAX_ROW = 200
SECTORS = 24

_MAGIC = 0x314C4253  # "SBL1"
_SECTOR_HEAD = "<IIII"  # magic, sequence, number of the first row, CRC-32
_SECTOR_HEAD_SIZE = 16
_ROW_HEAD = "<BII"  # length, number, CRC-32 of (sector's sequence, length, number, data)
_ROW_HEAD_SIZE = 9
_GRAIN = 8  # rows begin at multiples of this
_CHUNK = 64
_BLANK = b"\xff" * _CHUNK
_ROW_COST = 16  # memory a queued row takes besides its bytes
_GAP = b"\xffgap"


class LogRefused(Exception):
    """A row or a flash that the log cannot use; the text says why."""


class Flash:
    """A range of NOR flash that the log alone uses, implemented by a board's driver.

    Addresses start at the beginning of the range. A failed call raises OSError.
    """

    sector_size = 4096
    page_size = 256
    sectors = SECTORS

    def read(self, address: int, length: int) -> bytes:
        """So many bytes from an address on."""
        raise NotImplementedError

    def program(self, address: int, data: bytes) -> None:
        """Write erased bytes within one page; the rest of the page does not change."""
        raise NotImplementedError

    def erase(self, sector: int) -> None:
        """Make every byte of a sector 0xFF."""
        raise NotImplementedError


def gap_row(dropped: int) -> bytes:
    """The row that reports so many dropped rows."""
    return _GAP + struct.pack("<I", dropped)


def sectors_for(rows: int, sector_size: int = Flash.sector_size) -> int:
    """The sectors that always hold so many rows of up to KEPT_ROW bytes, one of them being erased."""
    each = (sector_size - _SECTOR_HEAD_SIZE) // _grains(_ROW_HEAD_SIZE + KEPT_ROW)
    return (rows + each - 1) // each + 1


class EventLog(EventSink):
    """The rows in one flash, and those queued in memory."""

    def __init__(
        self,
        flash: Flash,
        least: int = KEPT_ROWS,
        queue_bytes: int = 4096,
        evidence: "EventLog | None" = None,
    ) -> None:
        """Mount the log, in which at least ``least`` rows must fit; ``evidence`` is its ring of evidence."""
        self.evidence = evidence
        needed = sectors_for(least, flash.sector_size)
        if flash.sectors < needed:
            raise LogRefused("%d rows need %d sectors; there are %d" % (least, needed, flash.sectors))
        if queue_bytes < MAX_ROW + _ROW_COST:
            raise LogRefused("the queue must hold the longest row: %d bytes" % (MAX_ROW + _ROW_COST))
        self._flash = flash
        self._queue: list[bytes] = []
        self._room = queue_bytes
        self._pending = 0  # dropped, and no row says so yet
        self._skipped = 0  # left out since the last row was added
        self.dropped = 0  # rows dropped since this boot
        self.failed = 0  # writes since this boot that did not hold; they are tried again elsewhere
        self._firsts = [0] * flash.sectors  # the number of each held sector's first row
        self._current = flash.sectors - 1  # the sector written to
        self._held = 0  # how many sectors in a row, up to the current one, are the log
        self._sequence = 0  # of the current sector
        self._at = flash.sector_size  # where the next row goes in it
        self.newest = 0  # the number of the row written last, 0 if none ever was
        self._read_up_to = (0, 0, 0)  # where the last reading ended: sector's sequence, next number, place
        self._mount()

    @property
    def oldest(self) -> int:
        """The number of the oldest row; ``newest + 1`` if there is none."""
        return self._firsts[self._sector(0)] if self._held else self.newest + 1

    # -- putting in -----------------------------------------------------------------------------

    def add(self, row: bytes, evidence: bool = False) -> None:
        """Queue a row, evidence in both rings. A full queue drops its oldest rows and counts them.

        The row is not copied: two rings hold one object.
        """
        if evidence and self.evidence is not None:
            self.evidence.add(row)
        if not 1 <= len(row) <= MAX_ROW:
            raise LogRefused("a row has 1 to %d bytes; this one has %d" % (MAX_ROW, len(row)))
        self._pending += self._skipped
        self._skipped = 0
        self._room -= len(row) + _ROW_COST
        while self._room < 0:
            self._room += len(self._queue.pop(0)) + _ROW_COST
            self._pending += 1
            self.dropped += 1
        self._queue.append(row)

    def skip(self) -> None:
        """Count a row that is left out; the next row that is added is preceded by one with the count."""
        self._skipped += 1
        self.dropped += 1

    def due(self) -> bool:
        """Whether rows wait to be written."""
        return self._waits() or (self.evidence is not None and self.evidence.due())

    def _waits(self) -> bool:
        return bool(self._queue) or self._pending > 0

    def flush(self, limit: int) -> int:
        """Write up to ``limit`` rows and erase at most one sector; return the number of rows written.

        The caller calls it only while nothing moves. Rows that could not be written stay in the queue.
        """
        if self.evidence is not None and self.evidence.due():
            written = self.evidence.flush(limit)
            if written:
                return written
        written = 0
        may_erase = True
        try:
            while written < limit and self._waits():
                pending = self._pending
                row = gap_row(pending) if pending else self._queue[0]
                if self._at + _ROW_HEAD_SIZE + len(row) > self._flash.sector_size:
                    if not may_erase:
                        break
                    may_erase = False
                    self._open_next()
                self._write(row)
                if pending:
                    self._pending = 0
                else:
                    self._room += len(self._queue.pop(0)) + _ROW_COST
                written += 1
        except OSError:
            self.failed += 1
        return written

    # -- reading back ---------------------------------------------------------------------------

    def rows(self, from_number: int, most: int) -> list[tuple[int, bytes]]:
        """Up to ``most`` rows from a number on, as (number, row) in order, without queued rows.

        A gap in the numbers is a row that became invalid in the flash. Continuing where the last call ended
        is cheap.
        """
        found: list[tuple[int, bytes]] = []
        for place in range(self._held):
            after = self._firsts[self._sector(place + 1)] if place + 1 < self._held else self.newest + 1
            if after <= from_number:
                continue
            at = _SECTOR_HEAD_SIZE
            number = self._firsts[self._sector(place)]
            sequence = self._sequence - self._held + 1 + place
            if self._read_up_to[0] == sequence and self._read_up_to[1] <= from_number:
                _, number, at = self._read_up_to
            while number < after:
                if len(found) >= most:
                    self._read_up_to = (sequence, number, at)
                    return found
                row = self._find_row(place, at, self._flash.sector_size, number, after)
                if row is None:
                    break
                at, number, data = row
                if number >= from_number:
                    found.append((number, data))
                at += _grains(_ROW_HEAD_SIZE + len(data))
                number += 1
            self._read_up_to = (sequence, number, at)
        return found

    # -- the ring -------------------------------------------------------------------------------

    def _sector(self, place: int) -> int:
        """The flash sector of the log's first (0), second (1) and further sectors."""
        return (self._current - self._held + 1 + place) % self._flash.sectors

    def _mount(self) -> None:
        sequences = [self._read_head(sector) for sector in range(self._flash.sectors)]
        newest = max(sequences)
        if newest == 0:
            return
        self._sequence = newest
        self._current = sequences.index(newest)
        self._held = min(newest, self._flash.sectors)
        for back in range(1, self._held):
            sector = (self._current - back) % self._flash.sectors
            if sequences[sector] != newest - back:  # erased, or its head went bad: its rows are lost
                self._firsts[sector] = self._firsts[(sector + 1) % self._flash.sectors]
        self._mount_current()
        if self._held == self._flash.sectors:
            # The next one to be erased: if that had begun, some of its rows are gone and it is no part.
            after = self._firsts[self._sector(1)]
            rows = self._survey(0, self._flash.sector_size, after)[0]
            if rows != after - self._firsts[self._sector(0)]:
                self._held -= 1

    def _mount_current(self) -> None:
        """Find the newest row, and where writing continues."""
        end = self._end_of(self._current)
        _, number, at = self._survey(self._held - 1, end, 0xFFFFFFFF)
        self.newest = number - 1
        if end > at:  # a torn row: go on where it cannot have been
            at = max(at + _grains(_ROW_HEAD_SIZE + MAX_ROW), _grains(end))
        self._at = at

    def _survey(self, place: int, end: int, after: int) -> tuple[int, int, int]:
        """The valid rows of a sector: their count, the next number, and where the last one ends."""
        rows = 0
        number = self._firsts[self._sector(place)]
        at = _SECTOR_HEAD_SIZE
        row = self._find_row(place, at, end, number, after)
        while row is not None:
            at, number, data = row
            at += _grains(_ROW_HEAD_SIZE + len(data))
            number += 1
            rows += 1
            row = self._find_row(place, at, end, number, after)
        return rows, number, at

    def _read_head(self, sector: int) -> int:
        """A sector's sequence number, 0 if it is not part of the log; notes its first row's number."""
        head = self._flash.read(sector * self._flash.sector_size, _SECTOR_HEAD_SIZE)
        magic, sequence, first, crc = struct.unpack(_SECTOR_HEAD, head)
        if magic != _MAGIC or crc32(head[:12]) != crc:
            return 0
        self._firsts[sector] = first
        return int(sequence)

    def _find_row(
        self, place: int, at: int, end: int, least: int, after: int
    ) -> "tuple[int, int, bytes] | None":
        """The first valid row at or behind a place in a sector: (place, number, row).

        Its number is at least ``least``, which skips a row that was written again, and below ``after``.
        """
        read = self._flash.read
        base = self._sector(place) * self._flash.sector_size
        sequence = self._sequence - self._held + 1 + place
        while at < min(end, self._flash.sector_size - _ROW_HEAD_SIZE):
            head = read(base + at, _ROW_HEAD_SIZE)
            length, number, crc = struct.unpack(_ROW_HEAD, head)
            fits = 1 <= length <= MAX_ROW and at + _ROW_HEAD_SIZE + length <= self._flash.sector_size
            if fits and least <= number < after:
                data = read(base + at + _ROW_HEAD_SIZE, length)
                if crc32(data, crc32(head[:5], sequence)) == crc:
                    return at, number, data
            at += _GRAIN
        return None

    def _end_of(self, sector: int) -> int:
        """The place behind the last byte of a sector that is not blank."""
        base = sector * self._flash.sector_size
        end = self._flash.sector_size
        while end > 0:
            chunk = self._flash.read(base + end - _CHUNK, _CHUNK)
            if chunk != _BLANK:
                return end - _CHUNK + len(chunk.rstrip(b"\xff"))
            end -= _CHUNK
        return 0

    # -- writing --------------------------------------------------------------------------------

    def _open_next(self) -> None:
        """Erase and begin the next sector of the ring; the rows in it are lost."""
        sector = (self._current + 1) % self._flash.sectors
        if self._held == self._flash.sectors:
            self._held -= 1
        self._flash.erase(sector)
        head = struct.pack("<III", _MAGIC, self._sequence + 1, self.newest + 1)
        self._program(sector * self._flash.sector_size, head + struct.pack("<I", crc32(head)))
        self._current = sector
        self._firsts[sector] = self.newest + 1
        self._held += 1
        self._sequence += 1
        self._at = _SECTOR_HEAD_SIZE

    def _write(self, row: bytes) -> None:
        """Write a row; OSError if it cannot be read back, and then the next try uses another place."""
        at = self._at
        self._at += _grains(_ROW_HEAD_SIZE + MAX_ROW)
        head = struct.pack("<BI", len(row), self.newest + 1)
        crc = crc32(row, crc32(head, self._sequence))
        self._program(self._current * self._flash.sector_size + at, head + struct.pack("<I", crc) + row)
        self._at = at + _grains(_ROW_HEAD_SIZE + len(row))
        self.newest += 1

    def _program(self, address: int, data: bytes) -> None:
        """Write bytes page by page and read them back."""
        at = 0
        while at < len(data):
            size = self._flash.page_size - (address + at) % self._flash.page_size
            self._flash.program(address + at, data[at : at + size])
            at += size
        if self._flash.read(address, len(data)) != data:
            raise OSError("what was written is not there")


def _grains(size: int) -> int:
    """A size rounded up to the next place where a row may begin."""
    return (size + _GRAIN - 1) // _GRAIN * _GRAIN
