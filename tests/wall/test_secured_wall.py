"""The wall with the rights that a site gives it: enough to watch and to take alarms, and nothing more."""

import asyncio
import contextlib
import json
import time
from pathlib import Path

import pytest
from nats.aio.client import Client
from tests.floor.secured_site import SITE, SecuredSite
from tests.wall.floor_of_tables import beat_of, entry

from sabot_floor.connection import connect, put
from sabot_floor.names import SiteNames, state_key
from sabot_floor.streams import StreamSettings, set_up
from sabot_floor.wall.wall_feed import WallFeed
from sabot_floor.wall.wall_model import Hearing, WallModel

NAMES = SiteNames(SITE)
LONG_S = 60.0


async def _until(feed: WallFeed, kind: str) -> int:
    """Wait for the alarm of table t01 in the bucket; its revision."""
    async with asyncio.timeout(LONG_S):
        while True:
            for table in feed.judged.tables:
                for each in table.attentions:
                    if each.kind == kind and each.alarm is not None and table.hearing is Hearing.LIVE:
                        return each.alarm.revision
            await asyncio.sleep(0.05)


async def _try(client: Client, subject: str) -> None:
    """Publish; a server that refuses says so in its log, and the connection hears nothing else."""
    await client.publish(subject, b"{}")
    await client.flush()


@pytest.mark.slow
def test_a_walls_credential_is_enough_for_the_wall_and_for_nothing_else(tmp_path: Path) -> None:
    secured = SecuredSite(tmp_path)

    async def run() -> None:
        admin = await connect(secured.servers("admin"), "admin", lambda: None)
        settings = StreamSettings(replicas=1, max_bytes=2**26, bucket_bytes=2**24)
        await set_up(admin.jetstream(timeout=30), NAMES, settings)
        table = await connect(secured.servers("t01"), "t01", lambda: None)
        model = WallModel(now_s=time.monotonic())
        feed = WallFeed(secured.servers("wall"), SITE, model)
        running = asyncio.create_task(feed.run())
        told = json.dumps(entry("t01", called=True)).encode()
        await put(table, NAMES.key_subject(state_key("t01")), told, None, 30.0)

        async def beat() -> None:
            while True:
                await table.publish(NAMES.beat("t01"), beat_of("t01").to_bytes())
                await asyncio.sleep(0.3)

        beating = asyncio.create_task(beat())
        await feed.take("t01", "person_needed", await _until(feed, "person_needed"), "anna")
        (shown,) = feed.judged.tables
        assert shown.attentions[0].taken_by == "anna"
        wall = await connect(secured.servers("wall"), "another wall", lambda: None)
        for subject in (
            NAMES.rows("t01", "device"),
            NAMES.key_subject(state_key("t01")),
            NAMES.beat("t01"),
            NAMES.ask("t01"),
        ):
            await _try(wall, subject)
            async with asyncio.timeout(LONG_S):
                while f'Publish Violation - Subject "{subject}"' not in secured.site.servers[0].log():
                    await asyncio.sleep(0.05)
        for task in (beating, running):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for client in (admin, table, wall):
            await client.close()

    with secured.site:
        asyncio.run(run())
