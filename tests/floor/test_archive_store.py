"""The archive's database: each row once, nothing lost, nothing mixed up."""

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.floor.packed_rows import FIRST, SITE, chain, message, record_body

from sabot_floor import archive_files
from sabot_floor.archive_store import ArchiveStore, Delivered
from sabot_floor.errors import ArchiveFailed
from sabot_floor.payloads import ChainHead

ROWS = chain([record_body(n) for n in range(1, 41)])


def _all(store: ArchiveStore, query: str) -> list[tuple[Any, ...]]:
    with store.engine.connect() as db:
        return [tuple(each) for each in db.execute(text(query))]


def _head(store: ArchiveStore) -> ChainHead:
    found = store.head("t01", "record", "aa")
    assert found is not None
    return found


def test_rows_are_there_once_and_in_order_with_their_columns(store: ArchiveStore) -> None:
    taken = store.take([message(ROWS[:10], 1), message(ROWS[10:], 2)])
    assert (taken.new, taken.again, taken.found, taken.tables) == (40, 0, [], {"t01"})
    assert _head(store) == ChainHead(source="aa", n=40, hash=ROWS[-1]["hash"], count=40)
    found = _all(store, "SELECT n, kind, at_us, round_id, person, body FROM rows ORDER BY n")
    expected = [
        (each["n"], "sit", (1_700_000_000 + each["n"]) * 1_000_000, 7, "d1", each["body"]) for each in ROWS
    ]
    assert found == expected


def test_a_row_that_came_before_is_ignored(store: ArchiveStore) -> None:
    store.take([message(ROWS[:20])])
    taken = store.take([message(ROWS[:20]), message(ROWS[10:30])])
    assert (taken.new, taken.again, taken.found) == (10, 30, [])
    assert _head(store).count == 30
    assert _all(store, "SELECT COUNT(*) FROM rows") == [(30,)]


def test_the_same_row_with_another_hash_is_kept_apart(store: ArchiveStore) -> None:
    store.take([message(ROWS[:20])])
    other = chain([record_body(n, "leave" if n == 5 else "sit") for n in range(1, 6)])
    taken = store.take([message(other[4:5], 9)])
    taken_again = store.take([message(other[4:5], 9)])
    assert [each.kind for each in taken.found] == [each.kind for each in taken_again.found] == ["row_differs"]
    assert _all(store, "SELECT n, seq FROM conflicts") == [(5, 9)]
    assert _all(store, "SELECT kind FROM rows WHERE n = 5") == [("sit",)]
    assert _head(store).n == 20


def test_a_message_that_repeats_a_row_with_another_hash_is_noticed(store: ArchiveStore) -> None:
    twice = [ROWS[0], {**ROWS[0], "hash": "ab" * 32}]
    assert [each.kind for each in store.take([message(twice)]).found] == ["row_differs"]
    assert _all(store, "SELECT COUNT(*) FROM rows") == [(1,)]


@pytest.mark.parametrize("last", [25, 30, 35])
def test_a_gap_is_closed_by_a_message_that_also_has_rows_from_behind_it(
    store: ArchiveStore, last: int
) -> None:
    store.take(
        [message(ROWS[:10]), message(ROWS[20:30])]
    )  # after a power cut tables publish in other messages
    assert _head(store).n == 10
    taken = store.take([message(ROWS[10:last])])
    assert (taken.new, taken.again, taken.found) == (10 + max(0, last - 30), min(last, 30) - 20, [])
    assert _head(store) == ChainHead(
        source="aa", n=max(30, last), hash=ROWS[max(30, last) - 1]["hash"], count=max(30, last)
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_messages_does_not_matter(store: ArchiveStore, seed: int) -> None:
    parts = [message(ROWS[at : at + 4], at) for at in range(0, 40, 4)]
    random.Random(seed).shuffle(parts)
    for each in parts:
        before = store.head("t01", "record", "aa")
        assert before is None or before.n < 40
        store.take([each])
    assert _head(store) == ChainHead(source="aa", n=40, hash=ROWS[-1]["hash"], count=40)


def test_the_contiguous_part_ends_before_a_gap(store: ArchiveStore) -> None:
    assert store.take([message(ROWS[:8]), message(ROWS[12:20])]).found == []  # a gap is no broken chain
    assert _head(store).n == 8
    store.take([message(ROWS[8:12])])
    assert _head(store) == ChainHead(source="aa", n=20, hash=ROWS[19]["hash"], count=20)


def test_a_hash_that_does_not_follow_stops_the_contiguous_part(store: ArchiveStore) -> None:
    wrong = [*ROWS[:5], {**ROWS[5], "body": record_body(6, "leave")}, *ROWS[6:10]]
    taken = store.take([message(wrong)])
    assert {each.kind for each in taken.found} == {"chain_broken"}
    assert _head(store).n == 5


def test_a_source_must_begin_with_the_beginning_of_its_kind(store: ArchiveStore) -> None:
    other = chain([record_body(1)], "12" * 32)
    taken = store.take([message(other, begins={"prev": 0, "hash": "12" * 32})])
    assert [each.kind for each in taken.found] == ["chain_broken"]
    assert _head(store).n == 0


def test_a_pruned_journal_begins_where_its_table_says(store: ArchiveStore) -> None:
    begins = {"prev": 10, "hash": ROWS[9]["hash"]}
    store.take([message(ROWS[10:30], begins=begins)])
    assert _head(store) == ChainHead(source="aa", n=30, hash=ROWS[29]["hash"], count=30)
    told = ChainHead(source="aa", n=30, hash=ROWS[29]["hash"], count=30)
    assert store.compare("t01", "record", told) == ""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not a JSON object"),
        (b'{"v": 2}', "version 2"),
        (b"{}", "version None"),
        (message([]).data, "rows"),
        (message([{**ROWS[0], "n": 0}]).data, "rows.0.n"),
        (message([{**ROWS[0], "hash": "00"}]).data, "rows.0.hash"),
        (message([{**ROWS[0], "n": "1"}]).data, "rows.0.n"),
        (message(ROWS, table="t02").data, "rows of t02.record"),
        (message(ROWS, chain="device").data, "rows of t01.device"),
        (message(ROWS, level="half").data, "level"),
    ],
)
def test_what_cannot_be_read_goes_to_quarantine(store: ArchiveStore, data: bytes, why: str) -> None:
    taken = store.take([Delivered(7, f"sabot.{SITE}.row.t01.record", data), message(ROWS[:3], 8)])
    store.take([Delivered(7, f"sabot.{SITE}.row.t01.record", data)])
    assert [(each.table, each.kind) for each in taken.found] == [("t01", "unreadable")]
    ((seq, kept, said),) = _all(store, "SELECT seq, data, why FROM quarantine")
    assert (seq, bytes(kept)) == (7, data)
    assert why in said
    assert _head(store).n == 3


def test_a_newer_table_may_say_more_and_send_unknown_kinds(store: ArchiveStore) -> None:
    told = chain([record_body(1, "card_scanned", new=1), record_body(2)])
    made = message([{**each, "later": 1} for each in told])
    data = json.dumps({**json.loads(made.data), "extra": [1, 2]}).encode()
    assert store.take([Delivered(1, made.subject, data)]).found == []
    assert _all(store, "SELECT n, kind FROM rows ORDER BY n") == [(1, "card_scanned"), (2, "sit")]


def test_a_body_that_cannot_be_read_is_kept_with_an_alarm(store: ArchiveStore) -> None:
    told = chain(["no row", record_body(2)])
    assert [each.kind for each in store.take([message(told)]).found] == ["unreadable"]
    assert _all(store, "SELECT kind, body FROM rows WHERE n = 1") == [("unreadable", "no row")]
    assert _head(store).n == 2


def test_export_and_check_read_every_page(store: ArchiveStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_files, "PAGE", 7)
    store.take([message(ROWS)])
    assert archive_files.write_csv(store.engine, io.StringIO()) == 40
    assert [(each.rows, each.wrong) for each in archive_files.check_chains(store.engine)] == [(40, "")]


def test_what_a_run_committed_the_next_run_knows(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    store = ArchiveStore(path, SITE)
    store.take([message(ROWS[:20]), message(ROWS[30:], 2)])
    store.close()
    store = ArchiveStore(path, SITE)
    assert _head(store).n == 20
    assert store.heads()["t01"]["record"].n == 20
    store.take([message(ROWS[20:30])])
    assert _head(store).n == 40
    store.close()


def test_a_batch_is_committed_whole_or_not_at_all(store: ArchiveStore) -> None:
    store.take([message(ROWS[:5])])
    with store.engine.begin() as db:
        db.execute(text("DROP TABLE quarantine"))
    with pytest.raises(ArchiveFailed):
        store.take([message(ROWS[5:10]), Delivered(3, f"sabot.{SITE}.row.t01.record", b"{")])
    assert _head(store).n == 5
    assert _all(store, "SELECT MAX(n) FROM rows") == [(5,)]


def test_the_newest_source_of_a_chain_is_reported(store: ArchiveStore) -> None:
    store.take([message(ROWS[:5])])
    store.take([message(ROWS[:3], source="bb")])
    assert store.heads()["t01"]["record"].source == "bb"
    assert _head(store).n == 5


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ({}, ""),
        ({"count": 21}, "20 rows up to row 20, and the table has 21"),
        ({"hash": FIRST}, "the hash of row 20 is not the table's"),
        ({"n": 21, "count": 21, "hash": ROWS[20]["hash"]}, None),
        ({"n": 7, "count": 7, "hash": ROWS[6]["hash"]}, ""),
    ],
)
def test_reconciliation_compares_count_and_hash(
    store: ArchiveStore, told: dict[str, Any], wrong: str | None
) -> None:
    store.take([message(ROWS[:20])])
    head = {"source": "aa", "n": 20, "hash": ROWS[19]["hash"], "count": 20, **told}
    assert store.compare("t01", "record", ChainHead(**head)) == wrong
    assert _all(store, "SELECT wrong FROM reconciliations") == ([] if wrong is None else [(wrong,)])


def test_a_row_taken_out_of_the_archive_is_found(store: ArchiveStore) -> None:
    store.take([message(ROWS[:20])])
    with store.engine.begin() as db:
        db.execute(text("DELETE FROM rows WHERE n = 4"))
    told = ChainHead(source="aa", n=20, hash=ROWS[19]["hash"], count=20)
    assert store.compare("t01", "record", told) == "19 rows up to row 20, and the table has 20"


def test_an_archive_of_another_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    store = ArchiveStore(path, SITE)
    with store.engine.begin() as db:
        db.execute(text("UPDATE meta SET value = '9'"))
    store.close()
    with pytest.raises(ArchiveFailed, match="version 9"):
        ArchiveStore(path, SITE)
