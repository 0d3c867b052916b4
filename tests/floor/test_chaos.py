"""Seeded chaos: a sample of ``make floor-chaos``, and that its comparison notices what is missing."""

import sqlite3
from pathlib import Path

import pytest

from sabot_floor.archive_store import ArchiveStore
from sabot_simulators.floor.chaos import compare, run_seed
from sabot_simulators.floor.written_table import WrittenTable


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101])
def test_after_chaos_the_archive_is_the_union_of_the_journals(seed: int) -> None:
    done, wrong = run_seed(seed, nodes=1, steps=3)
    assert wrong == [], done


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cut_network", "flip_bit"])
def test_one_kind_of_chaos_on_one_server(kind: str) -> None:
    done, wrong = run_seed(7, nodes=1, steps=1, kind=kind)
    assert [each.split()[0] for each in done] == [kind]
    assert wrong == []


def test_the_comparison_finds_a_missing_row_and_a_changed_one(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "pc", "t01")
    table.write(5)
    ArchiveStore(str(tmp_path / "archive.db"), "chaos").close()
    assert compare(table, tmp_path / "archive.db") == [
        "t01: 5 rows of the record, 0 in the archive",
        f"t01: {table.journal.chain.head.row if table.journal.chain.head else 0} links, 0 in the archive",
    ]
    with sqlite3.connect(tmp_path / "archive.db") as db:
        db.execute("INSERT INTO quarantine VALUES ('a', 1, 's', x'00', 'why', 1)")
    assert compare(table, tmp_path / "archive.db")[-1] == "0 rows kept apart, 1 messages in quarantine"
    table.close()
