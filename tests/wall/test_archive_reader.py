"""Rounds, faults and evidence out of an archive of a table that was really played."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.wall.archived_day import TABLE, archive_rows

from sabot_evidence.chain import first_hash
from sabot_floor.archive_tables import open_reader
from sabot_floor.errors import ArchiveFailed
from sabot_floor.wall import archive_reader
from sabot_floor.wall.archive_reader import ArchiveReader, FaultRate, RoundSearch
from sabot_floor.wall.evidence_check import check_floor
from sabot_session.record_chain import OF

Rows = Sequence[tuple[int, str, bytes]]


def _found(reader: ArchiveReader, **wanted: object) -> list[int]:
    return [each.round_id for each in reader.rounds(RoundSearch(**wanted)).rounds]  # type: ignore[arg-type]


@pytest.mark.slow
def test_rounds_are_found_by_table_time_deck_seat_and_result(archive: Path, day: Rows) -> None:
    reader = ArchiveReader(str(archive))
    opened = {
        row["round"]: row for row in (json.loads(body) for _, body, _ in day) if row["kind"] == "open_bets"
    }
    every = sorted(opened, reverse=True)
    assert _found(reader) == every
    assert _found(reader, table=TABLE) == every
    assert _found(reader, table="t08") == []
    at_s = opened[2]["at_s"]
    assert _found(reader, from_s=at_s, until_s=at_s + 1) == [
        number for number in every if opened[number]["at_s"] == at_s
    ]
    assert _found(reader, until_s=opened[1]["at_s"]) == []
    decks = {number: row["data"]["pack_id"] for number, row in opened.items()}
    for deck in (1, 2, 9):
        assert _found(reader, deck=deck) == [number for number in every if decks[number] == deck]
    assert _found(reader, result="settled") == [2, 1]
    assert _found(reader, result="void") == []
    lines = {each.round_id: each.lines for each in reader.rounds(RoundSearch()).rounds}
    for seat in (1, 2, 5):
        for result in ("win", "lose", "push"):
            expected = [
                number
                for number in every
                if any(line[0] == seat and line[2] == result for line in lines[number])
            ]
            assert _found(reader, seat=seat, result=result) == expected
    assert any(lines.values())
    reader.close()


def test_a_search_says_when_it_has_not_looked_at_everything(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ArchiveReader(str(archive))
    monkeypatch.setattr(archive_reader, "MOST_LOOKED", 1)
    found = reader.rounds(RoundSearch())
    assert (len(found.rounds), found.looked, found.more) == (1, 1, True)
    monkeypatch.setattr(archive_reader, "MOST_LOOKED", 2000)
    assert not reader.rounds(RoundSearch()).more
    monkeypatch.setattr(archive_reader, "MOST_FOUND", 1)
    assert reader.rounds(RoundSearch()).more
    reader.close()


@pytest.mark.slow
def test_a_round_is_shown_whole_and_of_its_own_table_only(archive: Path) -> None:
    reader = ArchiveReader(str(archive))
    each = reader.rounds(RoundSearch(result="settled")).rounds[0]
    told = reader.round(TABLE, each.source_id, each.round_id)
    assert told is not None
    assert (told["round"], told["end"]) == (each.round_id, "settled")
    assert told["hands"]
    assert reader.round("t08", each.source_id, each.round_id) is None
    assert reader.round(TABLE, each.source_id, 999) is None
    reader.close()


def test_a_round_of_a_newer_table_is_shown_with_the_kind_that_is_not_known_here(
    tmp_path: Path, day: Rows
) -> None:
    path = tmp_path / "archive.db"
    archive_rows(path, day, "t08")
    newer, hash = [], first_hash(OF)
    changed = next(n for n, body, _ in day if json.loads(body)["kind"] == "settle")
    for n, body, _ in day:
        if n == changed:
            body = json.dumps({**json.loads(body), "kind": "card_scanned"}, sort_keys=True)
        hash = hashlib.sha256(hash + body.encode()).digest()
        newer.append((n, body, hash))
    archive_rows(path, newer)
    reader = ArchiveReader(str(path))
    found = {(each.table, each.round_id): each for each in reader.rounds(RoundSearch()).rounds}
    assert found["t08", 1].whole
    assert not found[TABLE, 1].whole
    assert found[TABLE, 2].whole
    told = reader.round(TABLE, found[TABLE, 1].source_id, 1)
    assert told is not None
    assert "card_scanned" in [each["kind"] for each in told["rows"]]
    reader.close()


def test_below_level_all_rounds_are_found_by_what_left_the_table(archive: Path, day: Rows) -> None:
    with sqlite3.connect(
        archive
    ) as db:  # as the publisher leaves cards out; the hashes are not looked at here
        db.execute("UPDATE sources SET level = 'rounds'")
    reader = ArchiveReader(str(archive))
    found = reader.rounds(RoundSearch(result="settled"))
    assert [each.round_id for each in found.rounds] == [2, 1]
    assert all(each.lines and each.deck and each.dealer and not each.whole for each in found.rounds)
    told = reader.round(TABLE, found.rounds[0].source_id, 1)
    assert told is not None
    assert {each["round"] for each in told["rows"]} == {1}
    reader.close()


def test_faults_are_counted_per_thousand_rounds(archive: Path) -> None:
    with sqlite3.connect(archive) as db:
        body = json.dumps({"data": {"fault": "card_stuck", "place": "exit", "half": "shoe", "cards": 1}})
        db.execute("UPDATE rows SET kind = 'fault_raised', body = ? WHERE n = 3", [body])
    reader = ArchiveReader(str(archive))
    rounds = len(_found(reader))
    (rate,) = reader.fault_rates()
    assert (rate.table, rate.rounds, rate.faults) == (TABLE, rounds, 1)
    assert rate.per_thousand == 1000 / rounds
    (fault,) = reader.faults(TABLE)
    assert (fault["fault"], fault["place"]) == ("card_stuck", "exit")
    assert reader.faults("t08") == []
    assert FaultRate("t1", 0, 3).per_thousand is None
    with sqlite3.connect(archive) as db:
        db.execute("UPDATE sources SET level = 'machine'")
    assert reader.fault_rates()[0].rounds is None  # no round leaves such a table
    reader.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ("UPDATE rows SET body = replace(body, 'dealer', 'healer') WHERE n = 7", "row 7 does not follow"),
        ("DELETE FROM rows WHERE n = 9", "rows after 8 are missing"),
        ("DELETE FROM rows WHERE n > 20", "ends at row 20"),
        ("UPDATE sources SET hash = '00'", "the archive says"),
        ("UPDATE sources SET begins_hash = NULL", "its beginning is missing"),
    ],
)
def test_the_check_finds_what_was_changed_in_the_archive(
    archive: Path, day: Rows, change: str, wrong: str
) -> None:
    engine = open_reader(str(archive))
    heard: list[int] = []
    before = check_floor(engine, heard.append)
    assert (before.wrong, before.conflicts, before.sources[0].wrong) == (0, 0, "")
    assert heard == [before.sources[0].rows] == [len(day)]
    with sqlite3.connect(archive) as db:
        db.execute(change)
        db.execute("INSERT INTO conflicts VALUES (1, 4, 'ff', 3, 'x', 9, 9)")
    after = check_floor(engine)
    assert (after.wrong, after.conflicts) == (1, 1)
    assert wrong in after.sources[0].wrong
    engine.dispose()


def test_an_archive_that_goes_on_meanwhile_still_fits(archive: Path, day: Rows) -> None:
    with sqlite3.connect(archive) as db:  # the report was read before the last ten rows came
        n, _, hash = day[-11]
        db.execute("UPDATE sources SET n = ?, count = ?, hash = ?", [n, n, hash.hex()])
    engine = open_reader(str(archive))
    (found,) = check_floor(engine).sources
    assert (found.wrong, found.n) == ("", n)
    engine.dispose()


def test_the_wall_cannot_write_the_archive(archive: Path) -> None:
    engine = open_reader(str(archive))
    with engine.connect() as db, pytest.raises(Exception, match="readonly"):
        db.exec_driver_sql("DELETE FROM rows")
    engine.dispose()


def test_what_is_no_archive_is_told(tmp_path: Path, day: Rows) -> None:
    with pytest.raises(ArchiveFailed):
        ArchiveReader(str(tmp_path / "none.db"))
    assert not (tmp_path / "none.db").exists()
    archive_rows(tmp_path / "archive.db", day)
    with sqlite3.connect(tmp_path / "archive.db") as db:
        db.execute("UPDATE meta SET value = '9' WHERE name = 'version'")
    with pytest.raises(ArchiveFailed, match="version 9"):
        ArchiveReader(str(tmp_path / "archive.db"))
