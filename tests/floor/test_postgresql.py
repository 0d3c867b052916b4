"""The archive in a real PostgreSQL: the same as in SQLite, partitions by month, rights, dump and restore."""

import subprocess
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from tests.floor.packed_rows import SITE, chain, message, record_body
from tests.floor.postgresql import programs

from sabot_floor.archive_files import check_chains, write_csv
from sabot_floor.archive_store import ArchiveStore, Delivered
from sabot_floor.archive_tables import add_reader_roles, month_of
from sabot_floor.payloads import ChainHead

ROWS = chain([record_body(n) for n in range(1, 41)])


@pytest.mark.slow
@pytest.mark.xdist_group("postgresql")
def test_the_archive_is_the_same_in_postgresql(postgresql_url: str, tmp_path: Path) -> None:
    store = ArchiveStore(postgresql_url, SITE)
    bad = Delivered(5, f"sabot.{SITE}.row.t01.record", b"{")
    taken = store.take([message(ROWS[:10]), message(ROWS[20:30], 2), bad])
    assert (taken.new, [each.kind for each in taken.found]) == (20, ["unreadable"])
    assert store.take([message(ROWS[:10])]).again == 10
    wrong = {**ROWS[3], "hash": "ab" * 32}
    assert [each.kind for each in store.take([message([wrong], 7)]).found] == ["row_differs"]
    assert store.heads()["t01"]["record"].n == 10
    store.take([message(ROWS[10:20], 3), message(ROWS[30:], 4)])
    head = ChainHead(source="aa", n=40, hash=ROWS[-1]["hash"], count=40)
    assert store.heads()["t01"]["record"] == head
    assert store.compare("t01", "record", head) == ""
    assert [each.wrong for each in check_chains(store.engine)] == [""]
    with (tmp_path / "rows.csv").open("w", encoding="utf-8") as file:
        assert write_csv(store.engine, file) == 40
    store.close()
    again = ArchiveStore(postgresql_url, SITE)
    assert again.heads()["t01"]["record"] == head
    with again.engine.connect() as db:
        query = "SELECT relname FROM pg_class JOIN pg_inherits ON oid = inhrelid WHERE relkind = 'r'"
        partitions = db.execute(text(query)).scalars().all()
        committed = db.execute(text("SELECT MAX(committed_us) FROM rows")).scalar_one()
        assert f"rows_{month_of(committed)[0]}" in partitions
        assert len(partitions) == 24
    again.close()


@pytest.mark.slow
@pytest.mark.xdist_group("postgresql")
def test_the_archives_role_adds_and_never_changes_a_row(postgresql_url: str) -> None:
    store = ArchiveStore(postgresql_url, "roles")
    with store.engine.begin() as db:
        for role in ("sabot_writer", "sabot_reader"):
            db.execute(text(f"CREATE ROLE {role} LOGIN"))
        add_reader_roles(db, "sabot_writer", "sabot_reader")
    store.close()
    writer = ArchiveStore(postgresql_url.replace("postgres@", "sabot_writer@"), "roles")
    made = message(ROWS[:5], source="cc")
    writer.take([Delivered(1, made.subject.replace(SITE, "roles"), made.data)])
    assert writer.heads()["t01"]["record"].n >= 5
    for change in ("UPDATE rows SET body = ''", "DELETE FROM rows", "DELETE FROM conflicts"):
        with pytest.raises(ProgrammingError), writer.engine.begin() as db:
            db.execute(text(change))
    writer.close()


@pytest.mark.slow
@pytest.mark.xdist_group("postgresql")
def test_a_dump_restores_the_archive(postgresql_url: str, tmp_path: Path) -> None:
    store = ArchiveStore(postgresql_url, SITE)
    store.take([message(ROWS, source="dd")])
    where = programs()
    assert where is not None
    dumped = subprocess.run([where / "pg_dump", postgresql_url], check=True, capture_output=True).stdout
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.execute(text("CREATE DATABASE restored"))
    store.close()
    other = postgresql_url.replace("/postgres?", "/restored?")
    subprocess.run([where / "psql", "-q", other], input=dumped, check=True, capture_output=True)
    restored = ArchiveStore(other, SITE)
    head = ChainHead(source="dd", n=40, hash=ROWS[-1]["hash"], count=40)
    assert restored.head("t01", "record", "dd") == head
    assert {each.wrong for each in check_chains(restored.engine)} == {""}
    restored.close()


@pytest.mark.parametrize(
    ("at_us", "name"),
    [(0, "1970_01"), (1_764_547_200_000_000 - 1, "2025_11"), (1_764_547_200_000_000, "2025_12"),
     (1_767_225_599_999_999, "2025_12"), (1_767_225_600_000_000, "2026_01")],
)  # fmt: skip
def test_months_meet_without_a_gap(at_us: int, name: str) -> None:
    found, first, after = month_of(at_us)
    assert found == name
    assert first <= at_us < after
    assert month_of(after)[1] == after
