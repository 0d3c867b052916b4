"""A table without a machine: its journal and record are real files, and rows are written into them at will.

For the floor's tests and campaigns, where rows matter and cards do not. The rows are of real kinds.
"""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sabot_driver.journal import CommandRecord, Journal, JournalBatch
from sabot_floor.connection import Servers, TableSettings
from sabot_floor.publisher import READER, PublishedTable, TablePublisher
from sabot_floor.row_sources import RowSource, device_source, record_source
from sabot_protocol.host import messages
from sabot_protocol.notifications import EventGap, EventReceived
from sabot_session.notes import Note
from sabot_session.record import PROGRAM, SqliteRecord
from sabot_session.rows import DeviceEventId, Json, Row, SavedSession
from sabot_table.rule_texts import FloorLevel

MEMORY = bytes(range(8))


class WrittenTable:
    """Journal and record of one table."""

    def __init__(self, folder: Path, name: str, seed: int = 0) -> None:
        self.name = name
        self.journal_path = folder / f"{name}.db"
        self.record_path = folder / f"{name}.table.db"
        self._random = random.Random(f"{name} {seed}")
        self._serial = f"{name.upper().replace('-', 'X'):X<8}"[:8].encode()
        self.open()

    def open(self) -> None:
        """Open both files, as a program that owns the table does."""
        self.journal = Journal(self.journal_path, self._serial)
        self.record = SqliteRecord(self.record_path)
        self._n = self.journal.last_id()
        self._command = self.journal.reserved()

    def close(self) -> None:
        """Close both files, or leave them as a killed program does."""
        self.journal.close()
        self.record.close()

    def write(self, rows: int, at_once: int = 16) -> None:
        """Write about so many rows into each chain, in transactions of up to ``at_once`` rows."""
        while rows > 0:
            some = min(rows, self._random.randint(1, at_once))
            self._write_events(some)
            self._write_record(some)
            rows -= some

    def _write_events(self, count: int) -> None:
        batch = JournalBatch()
        for _ in range(count):
            self._n += 1
            choice = self._random.random()
            if choice < 0.02:
                event: Any = EventGap(1, 3, (1, self._n - 1), (1, self._n))
            else:
                fault = choice < 0.1
                made = messages.FaultCleared(messages.Fault.MISFEED) if fault else messages.StackTaken(7, 1)
                event = EventReceived(1, self._n, self._n * 10, 1_700_000_000, 5, 2, made.ID, made.pack())
            batch.events.append((MEMORY, event))
        now = time.time_ns() // 1000
        if self._random.random() < 0.3:
            number, self._command = self._command, self._command + 1
            batch.commands.append(CommandRecord(number, 0x41, b"\1\2", MEMORY, now, "done"))
            batch.reserve = self._command
        self.journal.write(batch, now)

    def _write_record(self, count: int) -> None:
        now_s = int(time.time())
        follows = DeviceEventId(self._serial.decode(), MEMORY.hex(), 1, self._n)
        data: dict[str, Json] = {"last_s": now_s, "note": f"row of {self.name}"}
        made = [Row("interruption", now_s, PROGRAM, data, follows=follows) for _ in range(count)]
        self.record.commit(made, SavedSession("{}", self._n))

    def write_unknown(self, message: int, kind: str) -> None:
        """Write an event of an unknown number, and a row of this kind with the data of an interruption."""
        self._n += 1
        now = time.time_ns() // 1000
        event = EventReceived(1, self._n, self._n * 10, 1_700_000_000, 5, 2, message, b"\1\2\3")
        self.journal.write(JournalBatch(events=[(MEMORY, event)]), now)
        row = Row(kind, now // 1_000_000, PROGRAM, {"last_s": now // 1_000_000, "note": "newer"})
        self.record.commit([row], SavedSession("{}", self._n))

    def sources(self, level: FloorLevel = FloorLevel.ALL) -> list[RowSource]:
        """Both chains as they leave the table."""
        return [
            device_source(self.journal_path, level, lambda id: self.journal.set_reader_position(READER, id)),
            record_source(self.record_path, level),
        ]

    def rows(self) -> int:
        """The rows of both chains."""
        head = self.journal.chain.head
        return (0 if head is None else head.row) + self.record.newest()

    def publisher(
        self,
        site: str,
        servers: Servers,
        level: FloorLevel = FloorLevel.ALL,
        pc: str | None = None,
        listen_s: float = 0.3,
        notes: Callable[[Note], object] | None = None,
        sources: Sequence[RowSource] | None = None,
    ) -> TablePublisher:
        """A publisher of this table; another ``pc`` is another table PC. ``sources`` replace its own."""
        settings = TableSettings(site, self.name, "1", servers)
        key = self.journal.chain.chain.public if pc is None else pc
        table = PublishedTable(level, key, sources or self.sources(level), None, lambda _: {}, notes)
        return TablePublisher(settings, table, listen_s)
