"""The parts that measure a floor: tables in an event loop, paced journals, times and what processes use."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.floor.packed_rows import SITE, chain, message, record_body
from tests.floor.running_floor import RunningFloor, eventually, run

from sabot_floor.connection import TableSettings
from sabot_floor.tasks import end_tasks
from sabot_session.needs import Need, NeedKind
from sabot_session.rows import Actor, Authentication, Json, Row, SavedSession
from sabot_simulators.floor.asyncio_table import AsyncioTable, RoundPace
from sabot_simulators.floor.chaos import compare
from sabot_simulators.floor.measured_archive import MeasuringStore, Spread
from sabot_simulators.floor.process_figures import used
from sabot_simulators.floor.replay import Pace, PacedSource
from sabot_simulators.floor.shown_on_wall import wrong_on_wall
from sabot_simulators.floor.written_table import WrittenTable
from sabot_table.procedure import TableRole


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


DEALER = Actor("ann", TableRole.DEALER, Authentication.SIGNED_IN)


class _ToldByWall:
    """Answers as the wall of these tables would; tests make an answer wrong."""

    def __init__(self, tables: list[WrittenTable], rounds: list[int]) -> None:
        self.rounds = rounds
        self.checked: dict[str, Any] = {"wrong": 0, "conflicts": 0, "quarantined": 0, "sources": []}
        for table in tables:
            for source in table.sources():
                head = source.head()
                told = {"table": table.name, "chain": source.chain, "rows": head.count, "hash": head.hash}
                self.checked["sources"].append(told)
                source.close()

    def post(self, path: str, _: object) -> None:
        assert path == "/api/evidence/check"

    def get(self, path: str, **_: object) -> Any:
        if path == "/api/evidence":
            return {"running": False, "failed": "", "checked": self.checked}
        return {"rounds": [{"round_id": each} for each in self.rounds], "more": False}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda wall: None, []),
        (lambda wall: wall.checked["sources"].pop(), ["t01: the wall shows no rows of record"]),
        (lambda wall: wall.checked["sources"][0].update(rows=9), ["t01: the wall shows 9 rows of device"]),
        (lambda wall: wall.checked["sources"][1].update(hash="0"), ["t01: the wall shows 10 rows of record"]),
        (
            lambda wall: wall.checked["sources"].append(wall.checked["sources"][1]),
            ["t01: the wall shows 10 and 10 rows of record"],
        ),
        (lambda wall: wall.checked.update(wrong=1), ["the wall finds 1 chains wrong"]),
        (lambda wall: wall.checked.update(conflicts=2), ["the wall tells 2 rows kept apart"]),
        (lambda wall: wall.rounds.append(2), ["t01: the wall shows 3 rounds, the record has 2"]),
        (lambda wall: wall.rounds.remove(1), ["t01: the wall shows 1 rounds, the record has 2"]),
    ],
)
def test_a_row_or_round_that_the_wall_lost_or_shows_twice_is_found(
    written: Callable[[str], WrittenTable], change: Callable[[_ToldByWall], object], said: list[str]
) -> None:
    table = written("t01")
    table.write(8)
    for number in (1, 2):
        opened: dict[str, Json] = {"pack_id": 1, "method": "automated-shoe", "dealer": "ann"}
        row = Row("open_bets", 1, DEALER, opened, round_id=number)
        table.record.commit([row], SavedSession("{}", 0))
    wall = _ToldByWall([table], [2, 1])
    change(wall)
    found = wrong_on_wall(wall, [table])  # type: ignore[arg-type]
    assert [each for each, it in zip(found, said, strict=True) if not each.startswith(it)] == []


def _need(kind: NeedKind) -> Need:
    return Need("1", kind, (TableRole.DEALER,), "", "", (), 0, 0)


def test_bets_close_no_sooner_than_the_rounds_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("sabot_simulators.floor.asyncio_table.time.monotonic", lambda: now)
    pace = RoundPace(60.0)
    now += 60.0
    assert pace.leave() == frozenset()
    pace.met(_need(NeedKind.SETTLE))
    assert pace.leave() == frozenset()
    pace.met(_need(NeedKind.BETS))
    assert pace.leave() == {NeedKind.BETS}
    now += 60.0
    assert pace.leave() == frozenset()


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
