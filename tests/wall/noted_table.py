"""A simulated table and a wall, each with its own credential, on a server that knows users."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.floor.secured_site import SITE, SecuredSite
from tests.session.simulated_table import SimulatedTable, simulated_table
from tests.wall.served_wall import ServedWall, register

from sabot_floor.connection import TableSettings, connect
from sabot_floor.names import SiteNames
from sabot_floor.publisher import PublisherThread
from sabot_floor.streams import StreamSettings, set_up
from sabot_floor.table_service import publish_table
from sabot_floor.wall.serving import WallService
from sabot_floor.wall.wall_view import table_view
from sabot_session.record import SqliteRecord
from sabot_session.record_opening import join_chains
from sabot_table.house_policy import parse_policy
from sabot_table.ruleset import load

RULES = "md-three-card-baccarat"
TABLE = "t01"


@dataclass
class NotedTable:
    """The table, its publisher and the wall."""

    table: SimulatedTable
    published: PublisherThread
    wall: ServedWall
    secured: SecuredSite

    def notes(self) -> list[dict[str, Any]]:
        """What the table's screens show."""
        found: list[dict[str, Any]] = self.table.run.read(lambda session: session.snapshot()["notes"])
        return found

    def detail(self) -> dict[str, Any]:
        """The table's page at the wall."""
        judged = self.wall.service.feed.judged
        return table_view(judged, TABLE, SITE, int)["detail"] or {}


async def _set_up(secured: SecuredSite) -> None:
    admin = await connect(secured.servers("admin"), "admin", lambda: None)
    settings = StreamSettings(replicas=1, max_bytes=2**26, bucket_bytes=2**24)
    await set_up(admin.jetstream(timeout=30), SiteNames(SITE), settings)
    await admin.close()


@contextmanager
def noted_table(folder: Path, policy: str = "") -> Iterator[NotedTable]:
    """Table t01 and a wall; ``policy`` is the text of a house policy."""
    secured = SecuredSite(folder / "site")
    record, rules, people = SqliteRecord(folder / "record.db"), load(RULES), register()
    house = parse_policy(policy, rules) if policy else None
    with secured.site, simulated_table(folder, record=record, journal=folder / "journal.db") as table:
        asyncio.run(_set_up(secured))
        join_chains(record, table.client.journal)
        settings = TableSettings(SITE, TABLE, "1", secured.servers(TABLE))
        published = publish_table(settings, table.client, folder / "record.db", rules, house, table.run)
        service = WallService(secured.servers("wall"), SITE, people, port=0)
        wall = ServedWall(service, people, None)  # type: ignore[arg-type]  # a table speaks for itself here
        wall.start()
        found = NotedTable(table, published, wall, secured)
        try:
            wall.wait(lambda: bool(found.detail()) and found.detail()["heard"] is not None)
            yield found
        finally:
            wall.stop()
            published.close()
            people.close()
    record.close()
