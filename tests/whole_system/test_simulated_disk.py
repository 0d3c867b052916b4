"""SQLite on the simulated disk: what was synchronised is there after the power was lost."""

import gc
import sqlite3
import weakref
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from sabot_driver import Journal
from sabot_driver.errors import JournalBusy, JournalDamaged, JournalFull
from sabot_driver.journal import CommandRecord, JournalBatch
from sabot_simulators.whole_system.simulated_disk import SimulatedDisk
from sabot_simulators.whole_system.sqlite_vfs import SimulatedFiles, installed

SERIAL = b"SERIAL01"


def opened(folder: Path) -> Journal:
    return Journal(folder / "journal.db", SERIAL, Random(3).randbytes)


def batch(number: int) -> JournalBatch:
    return JournalBatch([], [CommandRecord(number, 1, b"body", b"mem1", 0, None)], number + 1)


def fill(journal: Journal) -> None:
    for number in range(1, 5000):
        journal.write(batch(number), 0)


@pytest.mark.slow
@pytest.mark.parametrize("after", range(0, 40, 3))
def test_a_power_loss_at_any_operation_keeps_what_was_committed(
    disk: SimulatedDisk, tmp_path: Path, after: int
) -> None:
    journal = opened(tmp_path)
    disk.fails_after = after
    written = 0
    with suppress(JournalFull):
        while True:
            journal.write(batch(written + 1), 0)
            written += 1
    assert not disk.powered
    disk.let_go(journal.close)
    disk.come_back()
    with opened(tmp_path) as journal:
        numbers = [record.number for record in journal.commands()]
        assert numbers in (list(range(1, written + 1)), list(range(1, written + 2)))


def test_without_synchronisation_something_is_lost(disk: SimulatedDisk, tmp_path: Path) -> None:
    lost = 0
    for attempt in range(12):
        folder = tmp_path / str(attempt)
        journal = opened(folder)
        journal._db.execute("PRAGMA synchronous=OFF")
        for number in range(1, 20):
            journal.write(batch(number), 0)
        disk.lose_power()
        disk.let_go(journal.close)
        disk.come_back()
        try:
            with opened(folder) as journal:
                lost += len(journal.commands()) < 19
        except JournalDamaged:
            lost += 1
    assert lost


def test_a_full_and_a_locked_disk_are_typed_errors_and_pass(disk: SimulatedDisk, tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        disk.locked_until_us = 60_000_000
        with pytest.raises(JournalBusy):
            journal.write(batch(1), 0)
        assert disk.waited_us >= 4_000_000, "SQLite waited in virtual time"
        disk.locked_until_us, disk.full = 0, True
        with pytest.raises(JournalFull):
            fill(journal)
        disk.full = False
        journal.write(batch(9999), 0)
        assert journal.commands()[-1].number == 9999


def test_a_killed_program_leaves_its_journal_to_the_next(disk: SimulatedDisk, tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.write(batch(1), 0)
    disk.let_go(journal.close)
    with opened(tmp_path) as journal:
        assert [record.number for record in journal.commands()] == [1]


@pytest.mark.slow
def test_other_databases_are_where_they_were(
    disk: SimulatedDisk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("real") / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (b)")
    connection.close()
    assert path.stat().st_size > 0


class KilledProgram:
    """What a program leaves that was killed: an open connection, and references in a circle."""

    def __init__(self, files: SimulatedFiles, path: Path) -> None:
        self.files, self.me = files, self
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("CREATE TABLE rows (n)")
        self.database.execute("BEGIN IMMEDIATE")
        self.database.execute("INSERT INTO rows VALUES (1)")


def leave_a_connection(folder: Path) -> "weakref.ref[SimulatedFiles]":
    with installed(Random(1)) as files:
        files.disks[str(folder)] = SimulatedDisk(Random(2), lambda: 0)
        KilledProgram(files, folder / "rows.db")
        assert files.is_open()
        return weakref.ref(files)


def test_a_connection_that_was_left_open_is_closed_by_the_collection_of_garbage(tmp_path: Path) -> None:
    """Python ended by a segmentation fault: SQLite called the file system, which was collected as well."""
    left = leave_a_connection(tmp_path)
    gc.collect()
    files = left()
    assert files is not None
    assert not files.is_open()
    del files
    with installed(Random(1)):
        gc.collect()  # it is used no more
    assert left() is None
