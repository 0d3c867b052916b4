"""Somebody who has the table PC's disk rewrites what the table wrote; the verifier's exact words for each."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.attacks.rewriting import checkpoint_after, link_of, other_round, sql, words
from tests.evidence.campaign import verdict
from tests.evidence.day import Day
from tests.evidence.edits import OTHER_KEY, opened, rehash, sign_again

from sabot_evidence import verifier
from sabot_evidence.pc_key import PcKey
from sabot_session.record import SqliteRecord
from sabot_session.rows import Actor, Authentication, Row, SavedSession
from sabot_table.procedure import TableRole

pytestmark = pytest.mark.slow


def test_an_edited_journal(played: Day, tmp_path: Path) -> None:
    """Faults were deleted from the journal and counts changed in it, and ``audit`` exited with 0."""
    journal, record = played.copy(tmp_path)
    sql(journal, "UPDATE events SET body = x'33' WHERE id = 20")
    assert words([journal, record]) == {
        f"journal.db: changed: link {link_of(journal, 20)} is changed: its bytes do not give its hash",
        f"journal.db: changed: the device's checkpoint of link {checkpoint_after(journal, 20)} "
        "has another hash than the events before it",
    }


def test_an_edited_record(played: Day, tmp_path: Path) -> None:
    """A round's row could be changed by one statement, once the triggers were dropped."""
    journal, record = played.copy(tmp_path)
    edited = other_round(record)
    assert words([journal, record]) == {
        f"record.db: changed: row {edited} is changed: its bytes do not give its hash"
    }


def test_an_edit_with_all_hashes_made_anew(played: Day, tmp_path: Path) -> None:
    """Whoever knows the format computes the hashes again; the signatures are still those of the old ones."""
    journal, record = played.copy(tmp_path)
    other_round(record)
    rehash(record)
    found = words([journal, record])
    assert any(
        re.fullmatch(r"record\.db: changed: row \d+ to \d+ are changed: checkpoint \d+ signs others", each)
        for each in found
    )


def test_another_history_signed_with_another_key(played: Day, tmp_path: Path) -> None:
    """Whoever signs a whole other history with a key of their own is found by who trusts the PC's key."""
    _, record = played.copy(tmp_path)
    other_round(record)
    rehash(record)
    sign_again(record, OTHER_KEY)
    file = verifier.EvidenceFile(record)
    report = verifier.verify([file], [played.key.public.hex()])
    file.db.close()
    told = f"checkpoint 1 is signed by {OTHER_KEY.public.hex()[:16]}, which is not trusted"
    assert told in {each.text for each in report.findings if each.kind == "other_key"}


def test_another_history_signed_with_the_stolen_key(played: Day, tmp_path: Path) -> None:
    """The PC's key lies on the PC: with it a whole other history fits. The floor's line does not."""
    journal, record = played.copy(tmp_path)
    other_round(record)
    rehash(record)
    sign_again(record, played.key)
    assert words([record]) == set(), "nothing shows it without an anchor"
    row = played.end[1].split()[3]
    assert words([record], played.end) == {
        f"record.db: fork: two bodies for row {row}: the floor's line has another one than this file"
    }
    assert any("of journal.db has another one than this file" in each for each in words([journal, record]))


def test_a_truncated_journal_and_record(played: Day, tmp_path: Path) -> None:
    """The end of a file could be deleted without a trace."""
    journal, record = played.copy(tmp_path)
    last = int(played.end[1].split()[3])
    sql(record, f"DELETE FROM rows WHERE number > {last - 3}")
    found = words([record])
    assert len(found) == 1
    assert re.fullmatch(
        rf"record\.db: hole: row {last - 2} to {last} are missing at the end: "
        rf"checkpoint \d+ signs row {last}",
        found.pop(),
    )
    sql(record, f"DELETE FROM checkpoints WHERE json_extract(statement, '$.row') > {last - 3}")
    found = words([record])
    assert any(
        re.search(r"unsigned: row \d+ (to \d+ are|is) not signed by any checkpoint$", each) for each in found
    )
    links = int(played.end[0].split()[3])
    sql(journal, f"DELETE FROM chain WHERE link = {links}")
    assert any(f"journal.db: hole: link {links} is missing at the end: " in each for each in words([journal]))


def test_a_reordered_journal_and_record(played: Day, tmp_path: Path) -> None:
    """Two rows could change places, with their numbers put right."""
    journal, record = played.copy(tmp_path)
    sql(
        record,
        "CREATE TEMP TABLE b AS SELECT number, body FROM rows WHERE number IN (30, 31)",
        """UPDATE rows SET body = (
            SELECT replace(body, '"number":31', '"number":30') FROM b WHERE number = 31) WHERE number = 30""",
        """UPDATE rows SET body = (
            SELECT replace(body, '"number":30', '"number":31') FROM b WHERE number = 30) WHERE number = 31""",
    )
    sql(
        journal,
        "UPDATE events SET id = -1 WHERE id = 20",
        "UPDATE events SET id = 20 WHERE id = 21",
        "UPDATE events SET id = 21 WHERE id = -1",
    )
    first, second = link_of(journal, 20), link_of(journal, 21)
    found = words([journal, record])
    for told in (
        "record.db: reordered: row 30 is not in its place: the rows were reordered",
        "record.db: reordered: row 31 is not in its place: the rows were reordered",
        f"journal.db: reordered: link {first} is not in its place: the rows were reordered",
        f"journal.db: reordered: link {second} is not in its place: the rows were reordered",
    ):
        assert told in found


def test_a_backdated_row(played: Day, tmp_path: Path) -> None:
    """A row that is written today with yesterday's time looked like one of yesterday, even signed."""
    _, record = played.copy(tmp_path)
    with opened(record) as db:
        (body,) = db.execute("SELECT body FROM rows WHERE number = 40").fetchone()
        told = json.loads(body)
        told["at_s"] = 1_600_000_000
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        db.execute("UPDATE rows SET body = ? WHERE number = 40", (text,))
    rehash(record)
    sign_again(record, played.key)
    found = words([record])
    assert len(found) == 1
    assert re.fullmatch(
        r"record\.db: backdated: row 40 says 2020-09-13T12:26:40Z, and the one before it 20\d\d-\S+Z",
        found.pop(),
    )


def test_a_clock_set_back_by_the_pc(tmp_path: Path) -> None:
    """The PC's clock is set back, and the table's program writes rows with old times: it says so itself."""
    path = tmp_path / "record.db"
    dealer = Actor("d1", TableRole.DEALER, Authentication.PIN)
    with SqliteRecord(path) as record:
        record.commit([Row("idle", 1_789_000_000, dealer)], SavedSession("{}", 0))
        record.commit([Row("idle", 1_788_000_000, dealer)], SavedSession("{}", 0))
    report = verdict([path], ())
    assert report is not None
    assert [each.text for each in report.findings if each.kind == "clock"] == [
        "the PC's clock was set back from 2026-09-10T00:26:40Z to 2026-08-29T10:40:00Z after row 1, "
        "as the PC says"
    ]


def test_a_forked_file(played: Day, tmp_path: Path) -> None:
    """Two histories from one beginning: each is signed with the PC's key, and each fits itself."""
    (_, first), (_, second) = played.copy(tmp_path / "a"), played.copy(tmp_path / "b")
    edited = other_round(second)
    rehash(second)
    sign_again(second, played.key)
    assert f"{first}: fork: two bodies for row {edited}: {second} has another one" in words([first, second])


def test_files_put_back_from_a_backup(played: Day, tmp_path: Path) -> None:
    """The night's files were replaced by the copy of the afternoon: record alone, journal alone, or both."""
    journal, record = played.copy(tmp_path / "now")
    old_journal, old_record = played.copy(tmp_path / "old", "middle")
    (rows, links), (old_rows, old_links) = (
        [int(line.split()[3]) for line in (lines[1], lines[0])] for lines in (played.end, played.middle)
    )
    alone = words([journal, old_record])
    assert any(
        re.fullmatch(
            rf"record\.db: rollback: put back to an older state: checkpoint \d+ of journal\.db "
            rf"knows row \d+, and this file ends at row {old_rows}",
            each,
        )
        for each in alone
    )
    alone = words([old_journal, record])
    assert any(f"and this file ends at link {old_links}" in each for each in alone)
    assert words([old_journal, old_record]) == set(), "both together fit: an anchor outside is needed"
    assert words([old_journal, old_record], played.end) == {
        f"journal.db: rollback: put back to an older state: the floor's line knows link {links}, "
        f"and this file ends at link {old_links}",
        f"record.db: rollback: put back to an older state: the floor's line knows row {rows}, "
        f"and this file ends at row {old_rows}",
    }


def test_an_edited_removed_and_moved_checkpoint(played: Day, tmp_path: Path) -> None:
    """Checkpoints are rows of the same file: whoever edits the rows can reach them too."""
    _, record = played.copy(tmp_path)
    kept = shutil.copy(record, tmp_path / "kept.db")
    sql(record, "UPDATE checkpoints SET statement = replace(statement, '\"row\":', '\"row\":1') WHERE n = 2")
    assert "record.db: changed: checkpoint 2 is changed: its signature does not fit" in words([record])
    shutil.copy(kept, record)
    sql(record, "DELETE FROM checkpoints WHERE n = 2")
    assert "record.db: hole: checkpoint 2 is missing" in words([record])
    shutil.copy(kept, record)
    sql(record, "DELETE FROM checkpoints")
    assert "record.db: unsigned: no checkpoint fits: nothing in this file is signed" in words([record])
    shutil.copy(kept, record)
    sql(
        record,
        "UPDATE checkpoints SET n = -1 WHERE n = 1",
        "UPDATE checkpoints SET n = 1 WHERE n = 2",
        "UPDATE checkpoints SET n = 2 WHERE n = -1",
    )
    assert "record.db: changed: checkpoint 1 is changed: its signature does not fit" in words([record])


def test_a_checkpoint_of_another_table(played: Day, tmp_path: Path) -> None:
    """A genuine checkpoint of another chain, signed with the same key, was put into this file."""
    _, record = played.copy(tmp_path)
    with opened(record) as db:
        text, signature = db.execute("SELECT statement, signature FROM checkpoints WHERE n = 1").fetchone()
        told = json.loads(text)
        told["chain"] = "ab" * 16
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        signature = PcKey.sign(played.key, b"sabot checkpoint 1\n" + text.encode())
        db.execute("UPDATE checkpoints SET statement = ?, signature = ? WHERE n = 1", (text, signature))
    assert "record.db: changed: checkpoint 1 is of another chain, abababab" in words([record])
    with opened(record) as db:
        (text,) = db.execute("SELECT statement FROM checkpoints WHERE n = 2").fetchone()
        told = {**json.loads(text), "seen": None}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        signature = PcKey.sign(played.key, b"sabot checkpoint 1\n" + text.encode())
        db.execute("UPDATE checkpoints SET statement = ?, signature = ? WHERE n = 2", (text, signature))
    assert "record.db: changed: checkpoint 3 does not follow checkpoint 2" in words([record])


@pytest.mark.parametrize("what", ["deleted", "added"])
def test_an_event_deleted_or_added(played: Day, tmp_path: Path, what: str) -> None:
    """A fault was deleted from the journal with its row, or a count was added."""
    journal, _ = played.copy(tmp_path)
    if what == "deleted":
        link = link_of(journal, 20)
        sql(journal, "DELETE FROM events WHERE id = 20")
        assert words([journal]) == {
            f"journal.db: hole: the row of link {link} is missing",
            "journal.db: hole: events after (1, 19) and before (1, 21) are missing, and no gap names them",
        }
    else:
        sql(
            journal,
            "INSERT INTO events SELECT 9999, memory_id, boot_id, 9999, 0, ticks_ms, utc_ms, quality, "
            "message, body, gap_size, from_boot, from_n, at_us FROM events WHERE id = 20",
        )
        assert words([journal]) == {
            "journal.db: changed: row 9999 of events has no link: it was added, or its link was removed"
        }
