"""More of what somebody does who has the table PC's disk, and of flushing; the verifier's exact words."""

import json
import re
from pathlib import Path

from tests.attacks.rewriting import checkpoint_after, misfits, other_round, sql, told, words
from tests.driver.command import Sabot
from tests.evidence.day import Day
from tests.evidence.device_chain import ROUND_ENDED, ChainedDevice
from tests.evidence.edits import opened, rehash, sign_again

from sabot_driver.journal import Journal
from sabot_evidence.chain import SIGNED_AS
from sabot_evidence.export import kept_text, read_newest
from sabot_protocol.notifications import EventReceived


def test_a_backdated_link(played: Day, tmp_path: Path) -> None:
    """An event that came today gets yesterday's time, and everything is hashed and signed anew."""
    journal, _ = played.copy(tmp_path)
    sql(journal, "UPDATE events SET at_us = 1600000000000000 WHERE id = 20")
    rehash(journal)
    sign_again(journal, played.key)
    (told,) = words([journal])
    link = r"link \d+ says 2020-09-13T12:26:40Z, and the one before it 20\d\d-\S+Z"
    assert re.fullmatch(rf"journal\.db: backdated: {link}", told)


def test_a_forked_journal(played: Day, tmp_path: Path) -> None:
    """Two journals from one beginning, each signed with the PC's key; and the floor's line of the genuine."""
    (first, _), (second, _) = played.copy(tmp_path / "a"), played.copy(tmp_path / "b")
    sql(second, "UPDATE events SET ticks_ms = ticks_ms + 1 WHERE id = 20")
    rehash(second)
    sign_again(second, played.key)
    found = words([first, second])
    assert any(re.fullmatch(rf"{first}: fork: two bodies for link \d+: {second} has another one", each)
               for each in found)  # fmt: skip
    links = played.end[0].split()[3]
    assert words([second], played.end) == {
        f"journal.db: fork: two bodies for link {links}: the floor's line has another one than this file",
        f"journal.db: changed: the device's checkpoint of link {checkpoint_after(second, 20)} "
        "has another hash than the events before it",
    }


def test_a_row_taken_out_and_everything_signed_anew(played: Day, tmp_path: Path) -> None:
    """Whoever has the PC's key hashes and signs what is left: the number of the row is missing."""
    _, record = played.copy(tmp_path)
    sql(record, "DELETE FROM rows WHERE number = 40")
    rehash(record)
    sign_again(record, played.key)
    assert words([record]) == {"record.db: hole: row 40 is missing"}


def test_a_forked_and_a_rolled_back_checkpoint(played: Day, tmp_path: Path) -> None:
    """The newest checkpoint is replaced by the PC's key; the one that the floor keeps shows both attacks."""
    _, record = played.copy(tmp_path / "now")
    newest = read_newest(record)
    assert newest is not None
    kept = tmp_path / "floor.jsonl"
    kept.write_text(kept_text(newest))
    _, old = played.copy(tmp_path / "old", "middle")
    rows, old_rows = newest.head.row, int(played.middle[1].split()[3])
    assert misfits(old, kept) == [
        f"record.db: rollback: put back to an older state: the checkpoint that the floor keeps knows "
        f"row {rows}, and this file ends at row {old_rows}"
    ]
    other_round(record)
    rehash(record)
    sign_again(record, played.key)
    assert misfits(record, kept) == [
        f"record.db: fork: two bodies for row {rows}: "
        "the checkpoint that the floor keeps has another one than this file"
    ]


def test_a_backdated_and_a_truncated_checkpoint(played: Day, tmp_path: Path) -> None:
    """Checkpoint 3 is signed anew with an earlier time; then the newest checkpoint is taken away."""
    _, record = played.copy(tmp_path)
    with opened(record) as db:
        rows = db.execute("SELECT n, statement FROM checkpoints ORDER BY n").fetchall()
        text = next(text for n, text in rows if n == 3)
        told = {**json.loads(text), "at_us": 1_600_000_000_000_000}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        signature = played.key.sign(SIGNED_AS + text.encode())
        db.execute("UPDATE checkpoints SET statement = ?, signature = ? WHERE n = 3", (text, signature))
    found = words([record])
    assert any(re.fullmatch(
        r"record\.db: backdated: checkpoint 3 says 2020-09-13T12:26:40Z, the one before it 20\d\d-\S+Z", each)
        for each in found)  # fmt: skip
    _, record = played.copy(tmp_path / "again")
    last = len(rows)
    sql(record, f"DELETE FROM checkpoints WHERE n = {last}")
    (one,) = words([record])
    assert re.fullmatch(r"record\.db: unsigned: row \d+ (to \d+ are|is) not signed by any checkpoint", one)


def test_a_clock_set_back_while_the_journal_is_written(tmp_path: Path) -> None:
    """Whoever has the PC sets its clock back, so that a late event looks early."""
    path = tmp_path / "journal.db"
    with Journal(path, b"SB000123") as journal:
        for n, at_us in ((1, 1_789_000_000_000_000), (2, 1_788_000_000_000_000)):
            journal.append([(b"mem7", EventReceived(1, n, n, 0, 0, 0, 0x85, b"\x01"))], at_us)
    assert words([path]) == set()
    assert (
        "journal.db: clock: the PC's clock was set back from 2026-09-10T00:26:40Z to 2026-08-29T10:40:00Z "
        "after row 1, as the PC says"
    ) in told(path)


def test_a_log_flushed_by_power_cycles_shows_as_a_rate(tmp_path: Path) -> None:
    """Each cut loses what was not acknowledged yet: one gap is an accident, thirty in forty rounds are not.

    The chain is made by the layout of docs/evidence.md; no device is switched off here.
    """
    device = ChainedDevice()
    for number in range(40):
        device.event(ROUND_ENDED, b"\x01")
        device.checkpoint()
        if number % 4:
            start = (device.boot, device.n)
            device.located(3, arrives=False)
            end = (device.boot, device.n)
            device.reboot()
            device.name_gap(2, start, end)
            device.checkpoint()
    path = device.journal(tmp_path / "journal.db")
    said = told(path, "--chain-key", str(device.key_file(tmp_path / "k0.json")))
    gaps = [each for each in said if each.startswith("journal.db: gap: ")]
    assert re.fullmatch(
        r"journal\.db: gap: events after \(1, \d+\) and before \(2, 1\) are missing: the device lost power",
        gaps[0],
    )
    assert "journal.db: gap: 10 more" in said
    assert "gaps: 30 in 40 rounds, 750.0 per 1,000 rounds" in said
    assert words([path]) == set(), "every gap is named by the device"


def test_an_audit_of_an_edited_record(sabot: Sabot, played: Day, tmp_path: Path) -> None:
    """One row of a round was changed, and no shuffle: ``audit`` exited with 0."""
    journal, record = played.copy(tmp_path)
    honest = sabot("audit", "--record", record, "--journal", journal, "--json").lines[-1]
    assert honest["wrong_in_general"] == []
    edited = other_round(record)
    ran = sabot("audit", "--record", record, "--journal", journal, "--json")
    assert ran.code == 5
    assert ran.lines[-1]["wrong_in_general"] == [
        f"record.db: CHANGED: row {edited} is changed: its bytes do not give its hash"
    ]
