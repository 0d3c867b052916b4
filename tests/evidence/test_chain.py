"""Chains of journal and record: valid after a failure at any statement, a take-over, a cut, another key."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.evidence.campaign import verdict
from tests.evidence.failing_database import Failing
from tests.session import record_writer

from sabot_driver.errors import JournalDamaged, JournalError
from sabot_driver.journal import CommandRecord, Journal, JournalBatch
from sabot_driver.pruning import prune
from sabot_evidence import chain, verifier
from sabot_evidence.pc_key import NAME
from sabot_protocol.notifications import EventReceived
from sabot_session.errors import RecordDamaged, RecordFailed
from sabot_session.record import SqliteRecord
from sabot_session.rows import Actor, Authentication, Row, SavedSession
from sabot_table.procedure import TableRole

MEMORY = b"mem1"
DEALER = Actor("d1", TableRole.DEALER, Authentication.PIN)
SAVED = SavedSession("{}", 0)


def idle(at_s: int, kind: str = "idle") -> Row:
    return Row(kind, at_s, DEALER)


def batch(n: int, outcome: str | None = "done") -> JournalBatch:
    event = EventReceived(1, n, n, 0, 0, 0, 0x85, b"\x01")
    return JournalBatch([(MEMORY, event)], [CommandRecord(n, 1, b"", MEMORY, n, outcome)])


def kinds(*paths: Path) -> list[str]:
    """The kinds of findings, without those that only say that all fits."""
    report = verdict(list(paths), ())
    assert report is not None
    return [each.kind for each in report.findings if each.kind not in ("checked", "tail")]


# -- a failure at any statement -----------------------------------------------------------------


def test_a_record_is_valid_after_a_failure_at_each_statement(tmp_path: Path, failing: type[Failing]) -> None:
    statement = 0
    while statement < 100:
        statement += 1
        path = tmp_path / str(statement) / "record.db"
        with SqliteRecord(path) as record:
            record.commit([idle(1), idle(2)], SAVED)
            failing.left = statement
            failed = _fails(partial(record.commit, [idle(3), idle(1)], SAVED), RecordFailed)
            failing.left = 0
            assert kinds(path) in ([], ["clock"])
            record.commit([idle(4)], SAVED)
        assert [each for each in kinds(path) if each != "clock"] == []
        if not failed:
            break
    assert 8 < statement < 100


def test_a_journal_is_valid_after_a_failure_at_each_statement(tmp_path: Path, failing: type[Failing]) -> None:
    statement = 0
    while statement < 100:
        statement += 1
        path = tmp_path / str(statement) / "journal.db"
        with Journal(path) as journal:
            journal.write(batch(1, None), 1)
            journal.ended[1] = "done"
            failing.left = statement
            failed = _fails(partial(journal.write, batch(2), 2), JournalError)
            failing.left = 0
            assert kinds(path) == []
            if failed:
                journal.write(batch(2), 3)
        assert kinds(path) == []
        if not failed:
            break
    assert 8 < statement < 100


def _fails(act: Callable[[], object], error: type[Exception]) -> bool:
    try:
        act()
    except error:
        return True
    return False


@pytest.mark.slow
def test_a_program_that_is_killed_leaves_a_valid_record(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    with subprocess.Popen(
        [sys.executable, record_writer.__file__, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        for _ in range(30):
            writer.stdout.readline()
        writer.kill()
    assert kinds(path) == []
    SqliteRecord(path).close()


# -- rows from before the chain -----------------------------------------------------------------


def test_a_journal_without_a_chain_begins_with_a_digest_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path, b"SERIAL01") as journal:
        journal.write(batch(1), 5)
        journal.write(batch(2, None), 6)
    _without_chain(path, 1, "DROP TABLE chain", "DELETE FROM meta WHERE name = 'chain_id'")
    with Journal(path, b"SERIAL01") as journal:
        assert journal.position() == (MEMORY, 1, 2)
        journal.ended[2] = "done"
        journal.write(batch(3), 2**60)
    assert kinds(path) == ["old"]
    _edit(path, "UPDATE events SET body = x'09' WHERE id = 1")
    assert kinds(path) == ["changed", "old"]


def test_a_record_without_a_chain_begins_with_a_digest_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    with SqliteRecord(path) as record:
        record.commit([idle(5), idle(3)], SAVED)
    _without_chain(path, 2, "ALTER TABLE rows DROP COLUMN hash", "DELETE FROM meta WHERE name = 'chain_id'")
    with SqliteRecord(path) as record:
        record.commit([idle(2**33)], SAVED)
    assert kinds(path) == ["old"]
    with SqliteRecord(path) as record, pytest.raises(sqlite3.IntegrityError, match="never changed"):
        record._db.execute("UPDATE rows SET body = body")


def _without_chain(path: Path, version: int, *statements: str) -> None:
    _edit(path, "DROP TABLE checkpoints", *statements, f"PRAGMA user_version={version}")


def _edit(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for each in statements:
        db.execute(each)
    db.close()


# -- what checkpoints name ----------------------------------------------------------------------


def test_pruning_keeps_the_checkpoint_at_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path, b"SERIAL01") as journal:
        for n in range(1, 11):
            journal.write(batch(n, None if n == 2 else "done"), n)
        assert prune(journal, 6).events == 5
        journal.ended[2] = "late"
        journal.write(batch(11), 2**60)
        assert [each.number for each in journal.commands()] == [2, 6, 7, 8, 9, 10, 11]
    assert kinds(path) == ["gap"]
    with Journal(path) as journal:
        prune(journal, 9)
    report = verdict([path], ())
    assert report is not None
    gaps = [each.text for each in report.findings if each.kind == "gap"]
    assert len(gaps) == 2
    assert gaps[0].startswith("5 events and 4 commands before link ")
    _edit(path, "DELETE FROM events WHERE id = 9")
    assert "hole" in kinds(path)


def test_a_cut_that_no_checkpoint_names_is_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        for n in range(1, 6):
            journal.write(batch(n), n)
    _edit(path, "DELETE FROM events WHERE id < 3", "DELETE FROM commands WHERE number < 3",
          "DELETE FROM chain WHERE link < 7")  # fmt: skip
    assert kinds(path)[0] == "hole"


def test_a_clock_that_is_set_back_is_named_and_an_edited_time_is_not(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    with SqliteRecord(path) as record:
        record.commit([idle(100)], SAVED)
        record.commit([idle(40), idle(41)], SAVED)
    assert kinds(path) == ["clock"]
    report = verdict([path], ())
    assert report is not None
    assert report.findings[0].text == (
        "the PC's clock was set back from 1970-01-01T00:01:40Z to 1970-01-01T00:00:40Z after row 1, "
        "as the PC says"
    )


def test_another_key_is_said(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    with SqliteRecord(path) as record:
        record.commit([idle(1)], SAVED)
        old = record.chain.chain._key.public.hex()
    (tmp_path / NAME).unlink()
    with SqliteRecord(path) as record:
        record.commit([idle(2)], SAVED)
        new = record.chain.chain._key.public.hex()
    assert kinds(path) == ["other_key"]
    file = verifier.EvidenceFile(path)
    assert verifier.verify([file], [old, new]).code == verifier.OPEN_END
    assert verifier.verify([file], [old]).code == verifier.WRONG
    file.db.close()


def test_the_closing_of_a_table_is_a_kept_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    closing = Row("close_table", 3, Actor("f1", TableRole.FLOOR, Authentication.KEY_AND_PIN),
                  {"countersignatures": [], "disputes": [], "holds": []})  # fmt: skip
    with SqliteRecord(path) as record:
        record.commit([idle(1), idle(2), closing], SAVED)
        record.commit([idle(4)], SAVED)
        whys = [
            row[0] for row in record._db.execute("SELECT json_extract(statement, '$.why') FROM checkpoints")
        ]
    assert whys == ["begun", "closed", "head"]


def test_checkpoints_are_kept_every_so_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "KEEP_EVERY", 4)
    with SqliteRecord(tmp_path / "record.db") as record:
        for at_s in range(1, 12):
            record.commit([idle(at_s)], SAVED)
        found = record._db.execute("SELECT json_extract(statement, '$.row') FROM checkpoints").fetchall()
    assert [row for (row,) in found] == [0, 4, 8, 11]


# -- files that do not belong together ----------------------------------------------------------


def test_a_file_whose_end_was_cut_off_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    record, journal = tmp_path / "record.db", tmp_path / "journal.db"
    with SqliteRecord(record) as opened:
        opened.commit([idle(1), idle(2)], SAVED)
    with Journal(journal) as written:
        written.write(batch(1), 1)
        written.write(batch(2), 2)
    _edit(record, "DROP TRIGGER rows_last", "DELETE FROM rows WHERE number = 2")
    with pytest.raises(RecordDamaged, match="the newest row is 1, and the newest checkpoint is of row 2"):
        SqliteRecord(record)
    _edit(journal, "DELETE FROM chain WHERE link > 3")
    with pytest.raises(JournalDamaged, match="the newest link is 3, and the newest checkpoint is of link 6"):
        Journal(journal)
    _edit(journal, "UPDATE checkpoints SET statement = 'x'")
    with pytest.raises(JournalDamaged, match="checkpoint 2 cannot be read"):
        Journal(journal)


@pytest.mark.parametrize("content", ["", "00", "zz" * 32, "00" * 33])
def test_a_damaged_key_is_refused_and_not_replaced(tmp_path: Path, content: str) -> None:
    key = tmp_path / NAME
    key.write_text(content)
    key.chmod(0o600)
    with pytest.raises(RecordDamaged, match=r"pc\.key"):
        SqliteRecord(tmp_path / "record.db")
    with pytest.raises(JournalDamaged, match=r"pc\.key"):
        Journal(tmp_path / "journal.db")
    assert key.read_text() == content


def test_the_key_is_private_and_one_for_all_files_of_a_folder(tmp_path: Path) -> None:
    with SqliteRecord(tmp_path / "record.db") as record, Journal(tmp_path / "journal.db") as journal:
        assert record.chain.chain._key.public == journal.chain.chain._key.public
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == [
        "journal.db", "journal.db.holder", "journal.db.lock", "pc.key", "record.db", "record.db.holder",
        "record.db.lock",
    ]  # fmt: skip
