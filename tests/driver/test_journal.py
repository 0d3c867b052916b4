"""The journal: on disk or refused, once, in order, for one program at a time."""

import errno
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.driver.journal_events import MEMORY, event

from sabot_driver.errors import JournalDamaged, JournalError, JournalFull, PortBusy
from sabot_driver.journal import NUMBERS_AT_ONCE, CommandRecord, Journal, JournalBatch
from sabot_protocol.notifications import EventGap


def test_what_was_appended_is_read_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        journal.append([event(1), event(2)], 7)
        journal.append([event(3)], 8)
        assert [(each.id, each.n) for each in journal.entries()] == [(1, 1), (2, 2), (3, 3)]
        assert [each.n for each in journal.after(1)] == [2, 3]
        assert journal.position() == (MEMORY, 1, 3)


def test_it_is_durable_and_write_ahead(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_an_event_cannot_be_there_twice(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        journal.append([event(1)], 0)
        with pytest.raises(JournalDamaged):
            journal.append([event(2), event(1)], 0)
        assert [each.n for each in journal.entries()] == [1], "all or none"
        journal.append([event(2)], 0)
        assert [each.n for each in journal.entries()] == [1, 2], "and it goes on"


def test_an_end_that_changes_while_it_is_written_is_written_again(
    tmp_path: Path, mocker: MockerFixture
) -> None:
    """The scribe writes with no lock held, and an answer may come meanwhile."""
    with Journal(tmp_path / "j.db") as journal:
        given = CommandRecord(1, 2, b"", MEMORY, 0, None)
        sql = journal.sql
        journal.ended[1] = "unknown"

        @contextmanager
        def slow() -> Iterator[sqlite3.Connection]:
            with sql() as db:
                yield db
            journal.ended[1] = "done"

        mocker.patch.object(journal, "sql", slow)
        journal.write(JournalBatch(commands=[given]), 0)
        mocker.stopall()
        assert journal.ended == {1: "done"}
        journal.write(JournalBatch(), 0)
        assert [each.outcome for each in journal.commands()] == ["done"]
        assert journal.ended == {}


def test_numbers_are_reserved_no_further_ahead_than_a_crash_may_skip(tmp_path: Path) -> None:
    """A device takes no number more than 4,096 ahead, and several crashes must fit."""
    with Journal(tmp_path / "j.db") as journal:
        numbers = journal.numbers()
        for _ in range(4 * NUMBERS_AT_ONCE):
            if numbers.are_few():
                numbers.reserved = numbers.ahead()
            assert numbers.left() <= NUMBERS_AT_ONCE
            numbers.take()


def test_a_gap_is_a_row_and_a_position(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        journal.append([event(1), (MEMORY, EventGap(2, 4, (1, 1), (3, 1)))], 0)
        assert journal.position() == (MEMORY, 3, 0)
        gap = list(journal.entries())[-1]
        assert (gap.is_gap, gap.gap_size, gap.gap_from, gap.boot_id, gap.n) == (True, 4, (1, 1), 3, 1)
        journal.append([(MEMORY, EventGap(2, None, (0, 0), (3, 1)))], 0)
        assert list(journal.entries())[-1].gap_size is None


def test_it_survives_being_opened_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db", b"SERIAL01") as journal:
        journal.append([event(1)], 0)
        host_id = journal.host_id
    with Journal(tmp_path / "j.db", b"SERIAL01") as journal:
        assert journal.host_id == host_id
        assert journal.last_id() == 1


def test_it_belongs_to_one_device(tmp_path: Path) -> None:
    Journal(tmp_path / "j.db", b"SERIAL01").close()
    with pytest.raises(JournalDamaged, match="SERIAL01"):
        Journal(tmp_path / "j.db", b"SERIAL02")


def test_two_programs_cannot_have_it(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    program = f"""
import sys
from pathlib import Path
from sabot_driver.journal import Journal
journal = Journal(Path({str(path)!r}))
print("held", flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(PortBusy, match=f"process {other.pid}"):
        Journal(path)
    other.kill()  # however it dies, the system lets go of its lock
    other.wait()
    other.stdout.close()
    assert other.stdin is not None
    other.stdin.close()
    Journal(path).close()


def test_numbers_that_were_reserved_are_never_given_again(tmp_path: Path) -> None:
    given: list[int] = []
    for _ in range(3):
        with Journal(tmp_path / "j.db") as journal:
            numbers = journal.numbers()
            assert numbers.left() == 0
            assert numbers.are_few()
            journal.write(JournalBatch(reserve=numbers.ahead()), 0)
            numbers.reserved = numbers.ahead()
            assert numbers.left() == NUMBERS_AT_ONCE
            given += [numbers.take() for _ in range(NUMBERS_AT_ONCE // 2)]
            assert not numbers.are_few()
            given.append(numbers.take())
            assert numbers.are_few()
    assert len(set(given)) == len(given)
    assert given == sorted(given)
    assert given[-1] < 3 * NUMBERS_AT_ONCE, "a crash skips no more than were reserved"


def test_a_full_disk_is_named_and_nothing_half_written(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        journal.append([event(1)], 0)
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(JournalFull) as full:
            journal.append([event(n, body=bytes(2000)) for n in range(2, 40)], 0)
        assert isinstance(full.value, OSError)
        assert full.value.advice
        assert journal.last_id() == 1
        journal._db.execute("PRAGMA max_page_count=100000")
        journal.append([event(2)], 0)
        assert journal.last_id() == 2


class _FullAtCommit:
    """A database whose disk is full when a transaction ends."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return self._db.execute(sql, *values)


def test_the_chains_newest_link_is_one_that_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record names it in its own checkpoints."""
    with Journal(tmp_path / "j.db") as journal:
        journal.append([event(1)], 0)
        head = journal.chain.head
        with monkeypatch.context() as full:
            full.setattr(journal, "_db", _FullAtCommit(journal._db))
            with pytest.raises(JournalError, match="full"):
                journal.append([event(2)], 0)
        assert journal.chain.head == head
        journal.append([event(2)], 0)
        assert journal.chain.head != head


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    path.write_bytes(b"this is no database at all, only text" * 100)
    with pytest.raises(JournalDamaged):
        Journal(path)


def test_a_journal_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    Journal(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(JournalDamaged, match="version 99"):
        Journal(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(JournalError):
        Journal(tmp_path / "file" / "j.db")


def test_a_disk_without_room_for_the_lock_is_named(tmp_path: Path, mocker: MockerFixture) -> None:
    """The lock's file could not be made, and the caller got a bare OSError."""
    mocker.patch("sabot_driver.held_files.prepare_database", side_effect=OSError(errno.ENOSPC, "no room"))
    with pytest.raises(JournalFull, match="no room"):
        Journal(tmp_path / "j.db")


def test_readers_keep_their_place(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        assert journal.reader_position("till") == 0
        journal.set_reader_position("till", 5)
        journal.set_reader_position("till", 6)
        assert journal.reader_position("till") == 6
        assert journal.reader_position("other") == 0


def test_commands_and_their_ends(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        given = [CommandRecord(4, 0x55, b"x", MEMORY, 1, None), CommandRecord(5, 0x55, b"y", MEMORY, 2, None)]
        journal.write(JournalBatch(commands=given), 0)
        journal.ended[4] = "done"
        for _ in range(2):  # before that is on disk, and after
            assert [each.outcome for each in journal.commands()] == ["done", None]
            assert [each.number for each in journal.commands(open_only=True)] == [5]
            assert journal.command(4) == CommandRecord(4, 0x55, b"x", MEMORY, 1, "done")
            assert journal.command(6) is None
            journal.write(JournalBatch(), 0)
        assert journal.ended == {}
    with Journal(tmp_path / "j.db") as journal:
        assert [each.outcome for each in journal.commands()] == ["done", None]
