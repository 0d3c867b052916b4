"""The wall on a real server: what it hears, the alarms it raises, and an alarm that two people take."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from tests.wall.floor_of_tables import beat_of, entry
from tests.wall.spoken_floor import SpokenFloor

from sabot_floor import connection
from sabot_floor.connection import Servers
from sabot_floor.payloads import Alarm
from sabot_floor.wall.alarm_book import AlarmTaken
from sabot_floor.wall.wall_feed import NotConnected, WallFeed
from sabot_floor.wall.wall_model import Hearing, JudgedTable, WallModel, WallSettings

pytestmark = pytest.mark.slow

WAIT_S = 60.0
QUICK = WallSettings(silent_s=3.0, archive_s=2.0)


@asynccontextmanager
async def walls(spoken: SpokenFloor, count: int = 1) -> AsyncIterator[list[WallFeed]]:
    """So many walls of a site."""
    feeds = [WallFeed(spoken.servers, spoken.site, WallModel(QUICK, time.monotonic())) for _ in range(count)]
    running = [asyncio.create_task(each.run()) for each in feeds]
    try:
        yield feeds
    finally:
        for each in running:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each


async def until(fulfilled: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not fulfilled():
            await asyncio.sleep(0.05)


def table(feed: WallFeed, name: str) -> JudgedTable | None:
    return next((each for each in feed.judged.tables if each.name == name), None)


def kinds(feed: WallFeed, name: str) -> list[str]:
    found = table(feed, name)
    return [] if found is None else [each.kind for each in found.attentions]


def lives(feed: WallFeed, name: str) -> bool:
    found = table(feed, name)
    return found is not None and found.hearing is Hearing.LIVE


def test_a_table_that_calls_is_an_alarm_in_the_bucket_until_somebody_came(spoken: SpokenFloor) -> None:
    async def run() -> None:
        async with walls(spoken) as [feed]:
            spoken.tables(["t1", "t2", "t3"])
            await until(lambda: all(lives(feed, each) for each in ("t1", "t2", "t3")))
            spoken.tell("t2", called=True)
            await until(lambda: kinds(feed, "t2") == ["person_needed"])
            await until(lambda: spoken.entry_of("t2", "person_needed") is not None)
            assert feed.judged.tables[0].name == "t2"
            spoken.tell("t2")
            await until(lambda: (spoken.entry_of("t2", "person_needed") or _none()).ended_us is not None)

    asyncio.run(run())


def _none() -> Alarm:
    return Alarm(table="-", kind="x", words="", by="", since_us=0)


def test_of_two_people_at_two_walls_exactly_one_takes_the_alarm(spoken: SpokenFloor) -> None:
    async def run() -> None:
        async with walls(spoken, 2) as feeds:
            spoken.tables(["t1"], called=True)

            def revision(feed: WallFeed) -> int:
                found = table(feed, "t1")
                known = None if found is None or not found.attentions else found.attentions[0].alarm
                return 0 if known is None else known.revision

            await until(lambda: revision(feeds[0]) == revision(feeds[1]) > 0)
            seen = revision(feeds[0])
            took = await asyncio.gather(
                *(
                    feed.take("t1", "person_needed", seen, person)
                    for feed, person in zip(feeds, ("anna", "ben"), strict=True)
                ),
                return_exceptions=True,
            )
            refused = [each for each in took if each is not None]
            assert len(refused) == 1
            assert isinstance(refused[0], AlarmTaken)
            entry = spoken.entry_of("t1", "person_needed")
            assert entry is not None
            assert entry.taken_by == ("anna", "ben")[took.index(None)]
            assert str(entry.taken_by) in str(refused[0])

    asyncio.run(run())


def test_a_table_that_falls_silent_and_one_that_is_behind(spoken: SpokenFloor) -> None:
    async def run() -> None:
        async with walls(spoken) as [feed]:
            spoken.tables(["t1", "t2", "t3"])
            await until(lambda: all(lives(feed, each) for each in ("t1", "t2", "t3")))
            spoken.mute("t3")
            spoken.beat("t2", rows=900, published=100, waiting_s=45)
            await until(lambda: kinds(feed, "t3") == ["table_silent"])
            await until(lambda: kinds(feed, "t2") == ["publisher_behind"])
            assert feed.judged.blind is None
            await until(lambda: spoken.entry_of("t3", "table_silent") is not None)

    asyncio.run(run())


def test_an_archive_that_is_not_heard_any_more_is_an_alarm(spoken: SpokenFloor) -> None:
    async def run() -> None:
        async with walls(spoken) as [feed]:
            spoken.tables(["t1"])
            await until(lambda: lives(feed, "t1"))
            assert feed.judged.archive_silent_s is None
            spoken.say(spoken.names.archive_beat, b"{}")
            await until(lambda: spoken.entry_of("floor", "archive_silent") is not None)
            assert feed.judged.blind is None

            def ended() -> bool:
                spoken.say(spoken.names.archive_beat, b"{}")
                found = spoken.entry_of("floor", "archive_silent")
                return found is not None and found.ended_us is not None

            await until(ended)

    asyncio.run(run())


def test_no_table_speaks_for_another_and_what_cannot_be_read_is_counted(spoken: SpokenFloor) -> None:
    async def run() -> None:
        async with walls(spoken) as [feed]:
            spoken.tables(["t1"])
            await until(lambda: lives(feed, "t1"))
            spoken.say(spoken.names.beat("t1"), beat_of("t2").to_bytes())
            spoken.put("state.t3", json.dumps(entry("t1", claim=9, called=True)).encode())
            spoken.put("state.t4", b'{"v": 2}')
            spoken.put("state.t5", b"\xff")
            await until(lambda: feed.unreadable == 4)
            assert [each.name for each in feed.judged.tables] == ["t1"]
            assert kinds(feed, "t1") == []

    asyncio.run(run())


def test_without_a_server_the_floor_is_blind_and_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 1)

    async def run() -> None:
        feed = WallFeed(Servers(("nats://127.0.0.1:9",)), "nowhere", WallModel(now_s=time.monotonic()))
        running = asyncio.create_task(feed.run())
        await until(lambda: feed.judged.blind is not None and "answers" in feed.judged.blind.words)
        with pytest.raises(NotConnected):
            await feed.take("t1", "person_needed", 1, "anna")
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(run())
