"""Seeded chaos: a sample of ``make floor-chaos``, and that its comparison notices what is missing."""

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

from sabot_floor.archive_store import ArchiveStore
from sabot_simulators.floor.chaos import EMPTIED, KINDS, ChaosRun, compare, run_seed
from sabot_simulators.floor.servers import server_program
from sabot_simulators.floor.shifted_clocks import shifted_clocks, with_shift
from sabot_simulators.floor.small_disk import SmallDisk, can_mount
from sabot_simulators.floor.versions import VersionsRun
from sabot_simulators.floor.written_table import WrittenTable


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101])
def test_after_chaos_the_archive_is_the_union_of_the_journals(seed: int) -> None:
    done, wrong = run_seed(seed, nodes=1, steps=3)
    assert wrong == [], done


@pytest.mark.slow
@pytest.mark.sweep(every=6)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_one_kind_of_chaos_on_one_server(kind: str) -> None:
    if kind == "full_disk" and not can_mount():
        pytest.skip("only root can mount a small disk")
    done, wrong = run_seed(7, nodes=1, steps=1, kind=kind)
    assert [each.split()[0] for each in done] == [kind]
    assert wrong == []


@pytest.mark.full
@pytest.mark.slow
def test_servers_that_lost_most_stores_are_set_up_anew_and_tables_publish_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle, calls = ChaosRun._settle, 0

    async def late_once(run: ChaosRun) -> str:
        """The servers do not work again by themselves, whatever they would do with more time."""
        nonlocal calls
        calls += 1
        return "not archived" if calls == 2 else await settle(run)

    monkeypatch.setattr(ChaosRun, "_settle", late_once)
    done, wrong = run_seed(3, nodes=3, steps=1, kind="power_cut_two")
    assert wrong == []
    assert done == ["power_cut_two", EMPTIED]


@pytest.mark.slow
def test_a_floor_that_lost_no_majority_is_late_and_not_set_up_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    settle, calls = ChaosRun._settle, 0

    async def late_at_the_end(run: ChaosRun) -> str:
        nonlocal calls
        calls += 1
        await settle(run)
        return "not archived" if calls > 1 else ""

    monkeypatch.setattr(ChaosRun, "_settle", late_at_the_end)
    assert run_seed(3, nodes=1, steps=1, kind="kill_server") == (["kill_server"], ["not archived"])


@pytest.mark.full
@pytest.mark.slow
def test_a_server_is_replaced_by_another_program_while_tables_publish(tmp_path: Path) -> None:
    made = VersionsRun(tmp_path, [server_program()] * 2, nodes=1)
    assert asyncio.run(made.run()) == []
    assert [each.split()[0] for each in made.done] == ["n1"]
    assert made.rows > 0


def test_a_small_disk_is_full_and_free_again_and_what_was_written_stays(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "before").write_bytes(b"1" * 5000)
    disk = SmallDisk(folder)
    try:
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (folder / "refused").write_bytes(b"2" * 5000)
        disk.free()
        (folder / "after").write_bytes(b"3" * 5000)
    finally:
        disk.leave()
    assert not folder.is_mount()
    assert (folder / "before").read_bytes() == b"1" * 5000
    assert (folder / "after").read_bytes() == b"3" * 5000


def test_tasks_and_their_threads_have_clocks_of_their_own() -> None:
    real_s = time.time()

    async def look(seen: list[float]) -> None:
        seen.append(time.time())
        seen.append(await asyncio.to_thread(time.time_ns) / 1e9)

    async def scenario() -> None:
        for hours in (-5, 0, 7):
            seen: list[float] = []
            await with_shift(hours * 3600, asyncio.create_task, look(seen))
            assert [round((each - real_s) / 3600) for each in seen] == [hours, hours]

    with shifted_clocks():
        asyncio.run(scenario())
    assert with_shift(7 * 3600, time.time) - real_s < 3600


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
