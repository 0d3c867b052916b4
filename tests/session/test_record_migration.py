"""A record of version 1 is taken over with a copy kept, or refused by name; nothing of it is lost."""

import hashlib
import json
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.session.old_record import LOG, STATE, old_record

from sabot_session import record_migration
from sabot_session.errors import MigrationRefused, RecordBusy, RecordHeld, RecordMissing, RecordVersion
from sabot_session.record import SqliteRecord
from sabot_session.record_migration import migrate
from sabot_session.rows import Authentication, SavedSession


def _convert(state: str, journal_at: int) -> SavedSession:
    return SavedSession(json.dumps({"rounds": json.loads(state)["rounds"]}), journal_at)


def test_rows_session_and_shuffles_are_taken_over_and_the_old_file_is_kept(path: Path) -> None:
    old_record(path)
    before = path.read_bytes()
    with pytest.raises(RecordVersion, match="version 1"):
        SqliteRecord(path)
    done = migrate(path, _convert, 5_000)
    assert (done.rows, done.shuffles) == (4, 2)
    assert done.kept.read_bytes() == before
    assert stat.S_IMODE(done.kept.stat().st_mode) == stat.S_IMODE(path.stat().st_mode) == 0o600
    with SqliteRecord(path) as record:
        *lines, about = record.rows()
        assert [(each.row.at_s, *map(each.row.data.get, ("who", "role", "what"))) for each in lines] == LOG
        assert {each.row.actor.how for each in lines} == {Authentication.PROGRAM}  # nobody was authenticated
        assert about.row.data == {
            "version": 1, "rows": 3, "kept": done.kept.name, "sha256": hashlib.sha256(before).hexdigest(),
        }  # fmt: skip
        assert record.load() == SavedSession('{"rounds": 41}', 77)
        shuffles = [
            (s.shuffle_id, s.committed.deck_id, s.committed.nonce, s.seed, s.wrong) for s in record.shuffles()
        ]
        assert shuffles == [(3, 1, b"n" * 32, b"s" * 32, ""), (4, 2, b"o" * 32, None, None)]
        assert record.newest() == 4  # and the file is where it was begun


def test_without_a_saved_procedure_the_record_begins_without_a_session(path: Path) -> None:
    old_record(path, None)
    migrate(path, _convert, 5_000)
    with SqliteRecord(path) as record:
        assert record.load() is None


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({**STATE, "round": {"round_id": 42}}, "round 42 is open"),
        ("{", "cannot be read"),
        ({"state": "between"}, "cannot be read"),
    ],
)
def test_an_open_round_refuses_migration(path: Path, state: dict[str, Any] | str, says: str) -> None:
    old_record(path, state)
    before = path.read_bytes()
    with pytest.raises(MigrationRefused, match=says):
        migrate(path, _convert, 5_000)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.v1*"))


def test_other_files_are_refused_by_name(path: Path) -> None:
    with pytest.raises(RecordMissing):
        migrate(path, _convert, 5_000)
    SqliteRecord(path).close()
    with pytest.raises(MigrationRefused, match="not a record of version 1"):
        migrate(path, _convert, 5_000)
    journal = path.with_name("journal.db")
    db = sqlite3.connect(journal)
    db.execute("CREATE TABLE events (id INTEGER)")
    db.execute("PRAGMA user_version=1")
    db.close()
    with pytest.raises(MigrationRefused, match="not a record of version 1"):
        migrate(journal, _convert, 5_000)


def test_a_record_in_use_is_not_migrated(path: Path) -> None:
    with SqliteRecord(path), pytest.raises(RecordHeld):
        migrate(path, _convert, 5_000)
    path.unlink()
    old_record(path)
    reader = sqlite3.connect(path)
    reader.execute("SELECT COUNT(*) FROM log").fetchone()
    with pytest.raises(RecordBusy, match="another program"):
        migrate(path, _convert, 5_000)
    reader.close()
    assert migrate(path, _convert, 5_000).rows == 4


@pytest.mark.parametrize("cut", ["_keep_copy", "_write", "sync_folder"])
def test_a_cut_leaves_the_old_record_or_the_new_one(
    path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    old_record(path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(record_migration, cut, die)
        with pytest.raises(KeyboardInterrupt):
            migrate(path, _convert, 5_000)
    if cut == "sync_folder":  # it is called for the copy first
        assert list(path.parent.glob("*.v1"))
    done = migrate(path, _convert, 6_000)
    with SqliteRecord(path) as record:
        assert record.newest() == 4
    assert [each.name for each in path.parent.glob("*.v1*")] == [done.kept.name]
    assert not list(path.parent.glob("*.new"))


def test_an_older_copy_is_not_overwritten(path: Path) -> None:
    old_record(path)
    other = path.with_name(f"{path.name}.v1")
    other.write_bytes(b"the copy of another migration")
    done = migrate(path, _convert, 5_000)
    assert done.kept.name == f"{path.name}.v1-2"
    assert other.read_bytes() == b"the copy of another migration"
