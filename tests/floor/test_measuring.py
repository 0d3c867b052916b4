"""The parts that measure a floor: tables in an event loop, paced journals, times and what processes use."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.floor.packed_rows import SITE, chain, message, record_body
from tests.floor.running_floor import RunningFloor, eventually, run

from sabot_floor.connection import TableSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.asyncio_table import AsyncioTable
from sabot_simulators.floor.chaos import compare
from sabot_simulators.floor.measured_archive import MeasuringStore, Spread
from sabot_simulators.floor.process_figures import used
from sabot_simulators.floor.replay import Pace, PacedSource
from sabot_simulators.floor.written_table import WrittenTable


@pytest.mark.slow
def test_a_table_in_an_event_loop_plays_rounds_and_is_archived(floor: RunningFloor, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with floor:
            settings = TableSettings(floor.site, "t01", "1", floor.servers)
            table, stop = AsyncioTable(tmp_path, settings, "speed=max&seed=5", 0.05), asyncio.Event()
            playing = asyncio.create_task(table.run(stop))
            rounds = "SELECT COUNT(*) FROM rows WHERE kind = 'settle'"
            try:
                await eventually(lambda: playing.done() or bool(floor.sql(rounds)[0][0]))
                stop.set()
                await playing
                await eventually(lambda: compare(table, floor.database) == [])
            finally:
                await end_tasks([playing])

    run(scenario())


def test_a_paced_journal_has_the_rows_of_its_pace_and_their_hashes(
    written: Callable[[str], WrittenTable],
) -> None:
    table = written("t01")
    table.write(20)
    whole = table.sources()[1]
    pace = Pace(1)
    paced = PacedSource(whole, pace)
    assert (paced.rows(0, 256), paced.head().n, paced.head().hash) == ([], 0, whole.begins().hash)
    pace.set(1e9)
    assert paced.rows(0, 256) == whole.rows(0, 256)
    assert (paced.head(), paced.begins()) == (whole.head(), whole.begins())
    pace.set(0)
    slow = Pace(2)
    half = PacedSource(whole, slow)
    slow.set(2e5)
    while slow.rows() < 7:
        time.sleep(0.001)
    slow.set(0)
    there = min(slow.rows(), 20)
    assert [each.n for each in half.rows(2, 256)] == list(range(3, there + 1))
    assert half.head().hash == whole.rows(there - 1, 1)[0].hash
    paced.close()
    half.close()


def test_the_time_from_publication_to_commit_is_measured_for_each_message(tmp_path: Path) -> None:
    store = MeasuringStore(str(tmp_path / "archive.db"), SITE)
    rows = chain([record_body(n) for n in range(1, 5)])
    sent_us = time.time_ns() // 1000 - 3_000_000
    store.take([message(rows[:2], 1, sent_us=sent_us), message(rows[2:], 2, sent_us=sent_us + 1)])
    assert [sent for _, sent in store.seen] == [sent_us, sent_us + 1]
    assert all(at - sent >= 3_000_000 - 1 for at, sent in store.seen)
    json.dumps(store.seen)
    store.close()


def test_a_spread_is_by_rank() -> None:
    assert Spread.of([float(each) for each in range(200, 0, -1)]) == Spread(200, 101.0, 199.0, 200.0)
    assert Spread.of([]) == Spread(0, 0.0, 0.0, 0.0)


def test_what_a_process_uses_grows_with_its_work() -> None:
    before = used([os.getpid()])
    ends = time.process_time() + 0.1
    while time.process_time() < ends:
        pass
    after = used([os.getpid()])
    assert after.processor_s - before.processor_s >= 0.05
    assert after.memory_mb > 1
    assert used([]).processor_s == 0
