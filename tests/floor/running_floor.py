"""Archive and publishers of one test, in one event loop."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from sabot_floor.archive import Archive, Patience
from sabot_floor.archive_store import ArchiveStore
from sabot_floor.connection import Servers
from sabot_floor.publisher import TablePublisher
from sabot_floor.streams import StreamSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.written_table import WrittenTable

LONG_S = 60.0  # a limit for what fails, not a measure
QUICK = Patience(ask_after_s=0.5, ask_again_s=1.0, missing_after_s=2.0, reconcile_s=1.0, forget_s=3.0)


class RunningFloor:
    """The archive of a site and what publishes to it; ``async with`` ends all of it."""

    def __init__(
        self,
        folder: Path,
        site: str,
        servers: Servers,
        settings: StreamSettings | None = None,
        patience: Patience = QUICK,
    ) -> None:
        self.site = site
        self.servers = servers
        self.settings = settings or StreamSettings(replicas=1, max_bytes=256 * 1024**2)
        self._patience = patience
        self.database = folder / f"{site}.archive.db"
        self.store = ArchiveStore(str(self.database), site)
        self.archive = self._archive()
        self._tasks: dict[object, asyncio.Task[None]] = {}

    def _archive(self) -> Archive:
        return Archive(self.store, self.site, self.servers, self.settings, self._patience)

    async def __aenter__(self) -> "RunningFloor":
        self.start_archive()
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in list(self._tasks):
            await self.end(each)
        self.store.close()

    def start_archive(self) -> None:
        """A new run of the archive, on the same database."""
        self.store.close()
        self.store = ArchiveStore(str(self.database), self.site)
        self.archive = self._archive()
        self._tasks["archive"] = asyncio.create_task(self.archive.run())

    def publish(self, table: WrittenTable, **options: Any) -> TablePublisher:
        """Start a publisher of a table."""
        servers = options.pop("servers", self.servers)
        made = table.publisher(self.site, servers, **options)
        self._tasks[made] = asyncio.create_task(made.run())
        return made

    async def end(self, what: object) -> None:
        """End the archive or a publisher, as a killed program ends."""
        task = self._tasks.pop(what)
        await end_tasks([task])
        if isinstance(what, TablePublisher):
            what.close()
        if not task.cancelled():
            task.result()

    async def archived(self, *tables: WrittenTable) -> None:
        """Wait until the archive has every row of these tables."""

        def complete() -> bool:
            for each in self._tasks.values():
                if each.done():
                    each.result()
            heads = self.store.heads()
            for table in tables:
                chains = heads.get(table.name, {})
                device, record = chains.get("device"), chains.get("record")
                if device is None or record is None:
                    return False
                head = table.journal.chain.head
                if head is None or (device.n, record.n) != (head.row, table.record.newest()):
                    return False
            return True

        await eventually(complete, lambda: f"the archive has {self.store.heads()}")

    def sql(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the archive's file with nothing of ours."""
        with sqlite3.connect(self.database) as db:
            return db.execute(query, values).fetchall()


async def eventually(check: Callable[[], bool], said: Callable[[], str] = str) -> None:
    """Wait until something is so."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONG_S
    while not check():
        assert loop.time() < ends, said()
        await asyncio.sleep(0.02)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a test's scenario."""
    asyncio.run(scenario)
