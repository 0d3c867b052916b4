"""The record: all of a commit or nothing, rows without gaps, and every failure by its name."""

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sabot_session import record as record_module
from sabot_session.canonical import row_bytes
from sabot_session.errors import (
    ActRepeated,
    BadRow,
    RecordBusy,
    RecordDamaged,
    RecordFailed,
    RecordFull,
    RecordHeld,
    RecordMissing,
    RecordVersion,
)
from sabot_session.record import VERSION, RecordReader, ShuffleCommitment, SqliteRecord
from sabot_session.rows import Record, Row, SavedSession

MakeRow = Callable[..., Row]
WRITER = Path(__file__).parent / "record_writer.py"
SAVED = SavedSession('{"version":1}', 5)


def _idle(count: int, make_row: MakeRow) -> list[Row]:
    return [make_row("idle", at_s=1_000 + each) for each in range(count)]


# -- what is kept -------------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [True, False])
def test_rows_are_numbered_from_one_without_a_gap(path: Path, make_row: MakeRow, in_memory: bool) -> None:
    record: Record = SqliteRecord(None if in_memory else path)
    assert record.load() is None
    assert record.commit(_idle(3, make_row), SAVED) == 3
    assert record.commit([], SavedSession("later", 9)) == 3
    assert record.commit(_idle(2, make_row), SAVED) == 5
    assert [each.number for each in record.rows()] == [1, 2, 3, 4, 5]
    assert [each.number for each in record.rows(after=2, most=2)] == [3, 4]
    assert record.load() == SAVED


def test_what_was_committed_is_there_after_opening_again(path: Path, make_row: MakeRow) -> None:
    rows = [make_row("collect", 7, act_id="a"), make_row("idle"), make_row("collect", 8, clause="MD3 11.C")]
    with SqliteRecord(path) as record:
        record.commit(rows, SAVED)
        begun = record.record_id
    with SqliteRecord(path) as record:
        assert [each.row for each in record.all_rows()] == rows
        assert record.load() == SAVED
        assert record.record_id == begun
        assert [each.number for each in record.round_rows(8)] == [3]
        assert [each.number for each in record.rows_of_kind("collect", "void")] == [1, 3]
    assert len(begun) == 32


def test_rounds_are_found_by_the_time_of_their_opening(path: Path, make_row: MakeRow) -> None:
    opened = {"pack_id": 1, "method": "hand", "dealer": "d1"}
    rows = [make_row("open_bets", each, at_s=each * 100, **opened) for each in (1, 2, 3)]
    rows += [make_row("begin_simulated", 4, at_s=400, **opened), make_row("collect", 9, at_s=200)]
    with SqliteRecord(path) as record:
        record.commit(rows, SAVED)
        assert record.round_ids() == [1, 2, 3, 4]
        assert record.round_ids(200, 400) == [2, 3]


def test_two_records_have_two_ids(tmp_path: Path) -> None:
    with SqliteRecord(tmp_path / "a.db") as first, SqliteRecord(tmp_path / "b.db") as second:
        assert first.record_id != second.record_id


def test_only_the_owner_can_read_any_of_its_files(path: Path, make_row: MakeRow) -> None:
    before = os.umask(0)
    try:
        with SqliteRecord(path) as record:
            record.commit(_idle(1, make_row), SAVED)
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert f"{path.name}-wal" in modes
    assert set(modes.values()) == {0o600}


def test_a_commit_waits_for_the_disk(path: Path) -> None:
    """A power cut cannot be made here: these two settings are what SQLite promises to survive it by."""
    with SqliteRecord(path) as record:
        assert record._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert record._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_bad_row_keeps_its_whole_commit_out(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        with pytest.raises(BadRow):
            record.commit([make_row("idle"), make_row("inspect", pack_id=0)], SAVED)
        assert record.newest() == 0
        assert record.load() is None


def test_shuffles_keep_commitment_nonce_and_what_came_of_them(path: Path) -> None:
    committed = ShuffleCommitment(2, b"c" * 32, b"n" * 32)
    with SqliteRecord(path) as record:
        record.committed(b"memory", 7, committed)
        assert record.commitment_of(b"memory", 7) == committed
        assert record.commitment_of(b"other", 7) is None
        assert [(each.seed, each.wrong) for each in record.shuffles()] == [(None, None)]
        record.revealed(b"memory", 7, b"s" * 32, "another nonce")
    with RecordReader(path) as record:
        (kept,) = record.shuffles()
    assert (kept.committed, kept.seed, kept.wrong) == (committed, b"s" * 32, "another nonce")


# -- acts ---------------------------------------------------------------------------------------


def test_an_act_is_accepted_once(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        record.commit([make_row("idle"), make_row("idle", act_id="x"), make_row("idle", act_id="x")], SAVED)
        with pytest.raises(ActRepeated) as repeated:
            record.commit([make_row("idle", act_id="x")], SavedSession("other", 99))
        assert (repeated.value.act_id, repeated.value.number) == ("x", 2)
        assert (record.newest(), record.load()) == (3, SAVED)
        found = record.act("x")
        assert found is not None
        assert found.number == 2
        assert record.act("y") is None
        assert record.commit([make_row("idle", act_id="y")], SAVED) == 4
    with SqliteRecord(path) as record, pytest.raises(ActRepeated):
        record.commit([make_row("idle", act_id="x")], SAVED)


def test_threads_share_a_record(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:

        def commit() -> None:
            for _ in range(10):
                record.commit(_idle(2, make_row), SAVED)

        threads = [threading.Thread(target=commit) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [each.number for each in record.all_rows()] == list(range(1, 81))


# -- failures -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_second_program_is_refused_by_name_and_a_killed_one_leaves_all_it_committed(path: Path) -> None:
    with subprocess.Popen([sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        try:
            told = [int(writer.stdout.readline()) for _ in range(20)]
            with pytest.raises(RecordHeld, match=rf"process {writer.pid} \(record_writer.py\)"):
                SqliteRecord(path)
            with RecordReader(path) as reader:  # reading needs no lock
                assert reader.newest() >= told[19]
        finally:
            writer.kill()
        told += [int(each) for each in writer.stdout.read().split(b"\n")[:-1]]
    with SqliteRecord(path) as record:
        numbers = [each.number for each in record.all_rows()]
        saved = record.load()
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= told[-1]
        assert saved is not None
        assert len(numbers) == 2 * (int(saved.state) + 1)  # rows and session are of one commit


def test_one_program_cannot_open_a_record_twice(path: Path) -> None:
    link = path.with_name("link.db")
    with SqliteRecord(path):
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(RecordHeld):
                SqliteRecord(name)
    SqliteRecord(path).close()


def test_a_full_disk_keeps_the_whole_commit_out(path: Path, make_row: MakeRow) -> None:
    """SQLite's own limit of pages stands for the disk: it gives the same SQLITE_FULL."""
    with SqliteRecord(path) as record:
        record.commit(_idle(1, make_row), SAVED)
        pages = record._db.execute("PRAGMA page_count").fetchone()[0]
        record._db.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(RecordFull, match="full") as full:
            record.commit(_idle(300, make_row), SavedSession("x", 6))
        assert "Free space" in full.value.advice
        assert (record.newest(), record.load()) == (1, SAVED)
        record._db.execute(f"PRAGMA max_page_count={pages + 1000}")
        assert record.commit(_idle(300, make_row), SAVED) == 301


def test_a_write_that_the_system_refuses_keeps_the_whole_commit_out(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        record.commit(_idle(1, make_row), SAVED)
        with _largest_file(16_384), pytest.raises(RecordFailed, match="disk I/O error"):
            record.commit(_idle(300, make_row), SavedSession("x", 6))
        assert (record.newest(), record.load()) == (1, SAVED)
        assert record.commit(_idle(300, make_row), SAVED) == 301
    with SqliteRecord(path) as record:
        assert record.newest() == 301


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """The kernel refuses to write files beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_locked_database_is_said_and_nothing_is_kept(
    path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_module, "BUSY_S", 0.05)
    with SqliteRecord(path) as record:
        record.commit(_idle(1, make_row), SAVED)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RecordBusy, match="locked"):
            record.commit(_idle(1, make_row), SavedSession("x", 6))
        assert (record.newest(), record.load()) == (1, SAVED)
        other.execute("ROLLBACK")
        other.close()
        assert record.commit(_idle(1, make_row), SAVED) == 2


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"a table's record, honestly " * 100)
    with pytest.raises(RecordDamaged, match="not a database"):
        SqliteRecord(path)
    with pytest.raises(RecordDamaged, match="not a database"):
        RecordReader(path)


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (dish TEXT)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(RecordDamaged, match="not a record"):
        SqliteRecord(path)
    assert path.read_bytes() == before


def test_a_damaged_page_is_said_when_it_is_read(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        record.commit(_idle(200, make_row), SAVED)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(RecordDamaged):
        SqliteRecord(path)


def _forge(path: Path, *statements: str) -> None:
    """Edit the file as somebody would who knows SQLite."""
    db = sqlite3.connect(path, isolation_level=None)
    for each in ("DROP TRIGGER rows_stay", "DROP TRIGGER rows_last", *statements):
        db.execute(each)
    db.close()


def test_a_missing_row_is_noticed_at_opening(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        record.commit(_idle(5, make_row), SAVED)
    _forge(path, "DELETE FROM rows WHERE number = 3")
    with pytest.raises(RecordDamaged, match="4 rows are there, and the newest is row 5"):
        SqliteRecord(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE rows SET body = (SELECT body FROM rows WHERE number = 1) WHERE number = 2", "says it is"),
        ("UPDATE rows SET body = replace(body, ',', ', ') WHERE number = 2", "not canonical"),
        ("UPDATE rows SET body = '{}' WHERE number = 2", "cannot be read"),
    ],
)  # fmt: skip
def test_a_row_that_is_no_row_is_noticed_when_it_is_read(
    path: Path, make_row: MakeRow, change: str, says: str
) -> None:
    with SqliteRecord(path) as record:
        record.commit(_idle(3, make_row), SAVED)
    _forge(path, change)
    with SqliteRecord(path) as record, pytest.raises(RecordDamaged, match=says):
        record.rows()


@pytest.mark.parametrize("change", ["UPDATE rows SET body = body", "DELETE FROM rows"])
def test_no_program_changes_rows_by_mistake(path: Path, make_row: MakeRow, change: str) -> None:
    with SqliteRecord(path) as record:
        record.commit(_idle(1, make_row), SAVED)
        db = sqlite3.connect(path)
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            db.execute(change)
        db.close()


@pytest.mark.parametrize(("version", "advice"), [(1, "Migrate the record"), (VERSION + 1, "update this one")])
def test_another_version_is_refused_by_its_number(path: Path, version: int, advice: str) -> None:
    SqliteRecord(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version={version}")
    db.close()
    for kind in (SqliteRecord, RecordReader):
        with pytest.raises(RecordVersion, match=f"a record of version {version}") as refused:
            kind(path)
        assert refused.value.version == version
        assert advice in refused.value.advice


def test_a_record_that_is_not_there_cannot_be_read(path: Path) -> None:
    with pytest.raises(RecordMissing):
        RecordReader(path)
    assert not path.parent.exists()
    path.parent.mkdir()
    path.touch()
    with pytest.raises(RecordMissing, match="not a record yet"):
        RecordReader(path)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordFailed, match="file"):
        SqliteRecord(tmp_path / "file" / "T1.db")


def test_a_reader_cannot_write(path: Path) -> None:
    SqliteRecord(path).close()
    with RecordReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("DELETE FROM saved")


def test_a_restored_copy_gets_another_id_and_says_so(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        record.commit(_idle(2, make_row), SAVED)
        begun = record.record_id
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with SqliteRecord(copy, now_s=lambda: 5_000) as record:
        second = record.record_id
        restored = record.rows(after=2)
        assert record.load() == SAVED
    assert second != begun
    assert [(each.number, each.row.kind, each.row.at_s) for each in restored] == [
        (3, "record_restored", 5_000)
    ]
    assert restored[0].row.data == {"before": begun, "rows": 2}
    with SqliteRecord(copy) as record:
        assert (record.record_id, record.newest()) == (second, 3)


def test_rows_are_stored_as_their_canonical_bytes(path: Path, make_row: MakeRow) -> None:
    with SqliteRecord(path) as record:
        record.commit([make_row("call_floor", why="größer §")], SAVED)
        (kept,) = record.rows()
    db = sqlite3.connect(path)
    (body,) = db.execute("SELECT CAST(body AS BLOB) FROM rows").fetchone()
    db.close()
    assert body == row_bytes(kept)
