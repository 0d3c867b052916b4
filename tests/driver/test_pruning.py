"""A journal that does not grow for ever, and loses nothing that anybody needs."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.table import Table
from tests.conformance.targets import Tcp
from tests.driver.journal_events import MEMORY, event

from sabot_cli import main
from sabot_driver import ReceivedEvent
from sabot_driver.errors import JournalMissing, PortBusy
from sabot_driver.journal import CommandRecord, Journal, JournalBatch
from sabot_driver.pruning import contents, forget_reader, open_journal, prune, put_aside
from sabot_protocol.host.messages import Locate, Located
from sabot_protocol.notifications import EventGap

pytestmark = pytest.mark.slow

DAY_US = 86_400_000_000


def filled(path: Path, rows: int = 10) -> Journal:
    """A journal with a row and a command a day."""
    journal = Journal(path, b"SERIAL01")
    for n in range(1, rows + 1):
        given = [CommandRecord(n, 0x55, b"", MEMORY, n * DAY_US, "done")]
        journal.write(JournalBatch([event(n, body=bytes(100))], given), n * DAY_US)
    return journal


def test_what_is_old_goes_and_the_rest_stays(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db") as journal:
        assert prune(journal, 6 * DAY_US).events == 5
        assert [each.n for each in journal.entries()] == [6, 7, 8, 9, 10]
        assert [each.number for each in journal.commands()] == [6, 7, 8, 9, 10]
        assert prune(journal, 6 * DAY_US).events == 0


def test_the_newest_row_is_the_place_and_always_stays(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db") as journal:
        assert prune(journal, 1000 * DAY_US).events == 9
        assert journal.position() == (MEMORY, 1, 10)
        assert journal.last_id() == 10
        assert journal.append([event(11)], 0) == 11, "ids go on"
    with filled(tmp_path / "gap.db", 3) as journal:
        journal.append([(MEMORY, EventGap(2, 4, (1, 3), (2, 1)))], 0)
        prune(journal, 1000 * DAY_US)
        assert journal.position() == (MEMORY, 2, 0)


def test_what_a_reader_has_not_read_stays(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db") as journal:
        journal.set_reader_position("till", 3)
        journal.set_reader_position("display", 7)
        gone = prune(journal, 9 * DAY_US)
        assert (gone.events, gone.unread) == (3, 5)
        assert [each.n for each in journal.after(journal.reader_position("till"))] == [4, 5, 6, 7, 8, 9, 10]
        assert contents(journal).unread == {"till": 7, "display": 3}
        assert forget_reader(journal, "till")
        assert not forget_reader(journal, "till")
        assert prune(journal, 9 * DAY_US).events == 4


def test_a_command_without_an_end_stays(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db") as journal:
        journal.write(JournalBatch(commands=[CommandRecord(11, 0x55, b"", MEMORY, 0, None)]), 0)
        prune(journal, 1000 * DAY_US)
        assert [each.number for each in journal.commands()] == [11]
        assert contents(journal).open_commands == 1


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db") as journal:
        assert prune(journal, 6 * DAY_US, dry_run=True).events == 5
        assert len(list(journal.entries())) == 10


def test_the_file_gets_smaller(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db", 900) as journal:
        before = contents(journal).bytes
        prune(journal, 890 * DAY_US)
        assert contents(journal).bytes < before / 4


def test_it_is_all_or_nothing(tmp_path: Path) -> None:
    with filled(tmp_path / "j.db") as journal:
        journal._do("CREATE TRIGGER no BEFORE DELETE ON commands BEGIN SELECT RAISE(ABORT, 'no'); END", ())
        with pytest.raises(OSError, match="no"):
            prune(journal, 6 * DAY_US)
        assert len(list(journal.entries())) == 10


class _NoRoom:
    """A database on a disk without room for another copy, nor for what the write-ahead log holds."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "VACUUM" or "wal_checkpoint" in sql:
            raise sqlite3.OperationalError("database or disk is full")
        return self._db.execute(sql, *values)


def test_a_disk_without_room_does_not_make_a_pruning_seem_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows were deleted, and the caller was told that the disk is full and nothing was done."""
    with filled(tmp_path / "j.db") as journal:
        monkeypatch.setattr(journal, "_db", _NoRoom(journal._db))
        assert prune(journal, 6 * DAY_US).events == 5
        assert [each.n for each in journal.entries()] == [6, 7, 8, 9, 10]
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: _NoRoom(connect(*given, **named)))
    kept = put_aside(tmp_path / "j.db", tmp_path / "aside")
    monkeypatch.undo()
    with Journal(kept) as journal:
        assert [each.n for each in journal.entries()] == [6, 7, 8, 9, 10]


def test_a_journal_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing):
        open_journal(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_one_that_another_program_has_is_refused_with_who(tmp_path: Path) -> None:
    filled(tmp_path / "j.db").close()
    program = (
        "import sys; from pathlib import Path; from sabot_driver.journal import Journal; "
        "j = Journal(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "j.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(PortBusy, match=f"process {other.pid}"):
            open_journal(tmp_path / "j.db")
        assert main.run(["journal", "prune", "--keep", "0", "--file", str(tmp_path / "j.db")]) == 3
        other.communicate()


def test_events_are_told_once_after_pruning(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    path = tmp_path / "journal.db"
    with target.connect(journal=path) as client:
        for seconds in (1, 2, 3):
            client.ask(Locate(seconds))
        Table(client).wait_for(Located, 0, seconds=3)
        last = client.loop.rows
        newest = client.journal.position()
    with open_journal(path) as journal:
        numbers = journal.reserved()
        prune(journal, 1 << 62)
        assert [each.id for each in journal.entries()] == [last]
        assert journal.position() == newest
        assert journal.reserved() == numbers
    with target.connect(journal=path) as client:
        client.ask(Locate(4))
        Table(client).wait_for(Located, last, seconds=4)
        told = [each for each in client.events(0, timeout=0) if isinstance(each, ReceivedEvent)]
        assert [each.id for each in told] == list(range(last, last + len(told)))
        assert [each.n for each in told] == list(range(told[0].n, told[0].n + len(told)))
        assert len(told) == len(list(client.events(0, timeout=0))), "and no gap"
        located = [each.message.seconds for each in told if isinstance(each.message, Located)]
        assert located[-1] == 4
        assert located.count(4) == 1
    target.close()


def test_it_can_be_done_while_this_program_uses_it(tmp_path: Path) -> None:
    target = Tcp(tmp_path)
    with target.connect(journal=tmp_path / "journal.db") as client:
        client.ask(Locate(1))
        Table(client).wait_for(Located, 0, seconds=1)
        here = client.loop.rows
        assert prune(client.journal, 1 << 62).events > 0
        client.ask(Locate(2))
        assert Table(client).wait_for(Located, here, seconds=2)
    target.close()


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SABOT_HOME", str(tmp_path))
    filled(tmp_path / "journals" / "SERIAL01.db").close()
    assert main.run(["journal", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["v"], shown["event"], shown["serial"]) == (1, "journal", "SERIAL01")
    assert (shown["events"], shown["commands"], shown["open_commands"]) == (10, 10, 0)
    for dry_run in (True, False):
        options = ["--dry-run"] if dry_run else []
        assert main.run(["journal", "prune", "--keep", "30", "--serial", "SERIAL01", "--json", *options]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["event"], told["events"], told["dry_run"]) == ("pruned", 9, dry_run)
    with sqlite3.connect(tmp_path / "journals" / "SERIAL01.db") as db:
        assert db.execute("SELECT COUNT(*) FROM events").fetchone() == (1,)
    db.close()
    assert main.run(["journal", "prune", "--serial", "SERIAL01"]) == 2, "how long is the operator's to say"
    assert main.run(["journal", "prune", "--keep", "1", "--serial", "A", "--file", "b"]) == 2
    assert main.run(["journal", "show", "--serial", "NOTHERE1"]) == 1
    assert main.run(["journal", "show"]) == 0
    assert "1 events" in capsys.readouterr().out
