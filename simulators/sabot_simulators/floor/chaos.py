"""Seeded chaos on a floor of three servers: afterwards the archive must be the union of the journals.

``python -m sabot_simulators.floor.chaos --runs 50`` (``make floor-chaos``). Each seed starts three servers,
written tables and an archive, and does things to them: servers are killed, paused, emptied; power is cut and
writes are lost (a copy of the store from before); a bit of a block file is flipped; the stream is deleted;
the tables' network is cut; publishers and archive are killed. Then everything runs again, and the files are
compared by SQLite alone.
"""

import argparse
import asyncio
import logging
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.archive import Archive, Patience
from sabot_floor.archive_store import ArchiveStore
from sabot_floor.connection import LOST, Servers, connect, end
from sabot_floor.errors import FloorError
from sabot_floor.names import SiteNames
from sabot_floor.publisher import TablePublisher
from sabot_floor.streams import StreamSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.cut_network import CutNetwork
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable

SITE = "chaos"
TABLES = 3
STEPS = 6
SETTLE_S = 240.0
QUICK = Patience(ask_after_s=1.0, ask_again_s=3.0, missing_after_s=60.0, reconcile_s=5.0)
log = logging.getLogger("sabot.floor.chaos")


class ChaosRun:
    """One seed."""

    def __init__(
        self, seed: int, folder: Path, nodes: int = 3, steps: int = STEPS, kind: str = ""
    ) -> None:
        """``kind`` is the only thing that happens; all kinds if it is empty."""
        self._kind = kind
        self._random = random.Random(seed)
        self._folder = folder
        self._site = Site(folder / "site", nodes)
        self._nodes = nodes
        self._steps = steps
        self._servers = Servers(self._site.urls)
        self._networks = [CutNetwork(each.server.port) for each in self._site.servers]
        self._through = Servers(tuple(f"nats://127.0.0.1:{each.port}" for each in self._networks))
        window = self._random.choice((0.1, 2.0))
        self._settings = StreamSettings(nodes, max_bytes=128 * 1024**2, duplicate_window_s=window)
        self._tables = [WrittenTable(folder / f"pc{n}", f"t{n:02}", seed) for n in range(1, TABLES + 1)]
        self._store = ArchiveStore(str(folder / "archive.db"), SITE)
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self.done: list[str] = []
        """What happened, in order."""

    async def run(self) -> list[str]:
        """Do it; what is wrong afterwards. Nothing is wrong with an empty list."""
        with self._site:
            for network in self._networks:
                await network.join()
            self._start_archive()
            for each in self._tables:
                self._start(each)
            acts = [
                self._kill_server, self._pause_server, self._empty_server, self._power_cut_one,
                self._power_cut_all, self._delete_stream, self._kill_publisher, self._kill_archive,
                self._all_reconnect, self._cut_network, self._flip_bit, self._empty_while_behind,
            ]  # fmt: skip
            acts = [each for each in acts if self._kind in ("", each.__name__.strip("_"))]
            self._write()
            late = await self._settle()  # what happens then happens to a floor that works
            if late:
                return [late]
            for _ in range(self._steps):
                self._write()
                await asyncio.sleep(self._random.random())
                act: Callable[[], Awaitable[None]] = self._random.choice(acts)
                self.done.append(act.__name__.strip("_"))
                await act()
                self._write()
                await asyncio.sleep(self._random.random())
            for each in self._tables:
                if each not in self._tasks:
                    self._start(each)
            if "archive" not in self._tasks:
                self._start_archive()
            late = await self._settle()
            for key in list(self._tasks):
                await self._end(key)
            for network in self._networks:
                await network.cut()
        self._store.close()
        found = [wrong for each in self._tables for wrong in compare(each, self._folder / "archive.db")]
        for each in self._tables:
            each.close()
        return found + ([late] if late and not found else [])

    # -- parts ----------------------------------------------------------------------------------

    def _write(self) -> None:
        for each in self._tables:
            each.write(self._random.randint(0, 40))

    def _start(self, table: WrittenTable) -> None:
        publisher = table.publisher(SITE, self._through)
        self._tasks[table] = asyncio.create_task(_closing(publisher))

    def _start_archive(self) -> None:
        archive = Archive(self._store, SITE, self._servers, self._settings, QUICK)
        self._tasks["archive"] = asyncio.create_task(archive.run())

    async def _end(self, key: object) -> None:
        await end_tasks([self._tasks.pop(key)])

    async def _settle(self) -> str:
        """Wait until the archive has everything; what is late if it never does."""
        ends = time.monotonic() + SETTLE_S
        while time.monotonic() < ends:
            for each in self._tasks.values():
                if each.done():
                    each.result()
            late = [each.name for each in self._tables if not self._has(each)]
            if not late:
                return ""
            await asyncio.sleep(0.2)
        return f"not archived after {SETTLE_S:.0f} s: {', '.join(late)}"

    def _has(self, table: WrittenTable) -> bool:
        chains = self._store.heads().get(table.name, {})
        head = table.journal.chain.head
        device, record = chains.get("device"), chains.get("record")
        newest = (0 if head is None else head.row, table.record.newest())
        return (0 if device is None else device.n, 0 if record is None else record.n) == newest

    # -- what happens ---------------------------------------------------------------------------

    async def _kill_server(self) -> None:
        server = self._random.choice(self._site.servers)
        server.kill()
        await asyncio.sleep(self._random.random() * 2)
        await self._up()

    async def _pause_server(self) -> None:
        server = self._random.choice(self._site.servers)
        server.pause(True)
        await asyncio.sleep(self._random.random() * 4)
        server.pause(False)

    async def _empty_server(self) -> None:
        server = self._random.choice(self._site.servers)
        server.kill()
        if self._nodes > 1:
            server.empty()
        await self._up()

    async def _power_cut_one(self) -> None:
        await self._power_cut(1)

    async def _power_cut_all(self) -> None:
        await self._power_cut(self._nodes)

    async def _power_cut(self, count: int) -> None:
        """Writes since a copy of the store are lost: more than a disk that obeys would lose."""
        chosen = self._random.sample(self._site.servers, count)
        for each in chosen:
            each.pause(True)
            copy = each.folder / "before"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(each.server.store, copy)
            each.pause(False)
        self._write()
        await asyncio.sleep(0.5 + self._random.random())
        for each in chosen:
            each.kill()
            each.empty()
            shutil.move(each.folder / "before", each.server.store)
        await self._up()

    async def _delete_stream(self) -> None:
        try:
            client = await connect(self._servers, "chaos", lambda: None)
        except FloorError:
            return
        try:
            await client.jetstream(timeout=5).delete_stream(SiteNames(SITE).stream)
        except LOST as error:
            log.info("the stream was not deleted: %r", error)
        finally:
            await end(client)

    async def _kill_publisher(self) -> None:
        table = self._random.choice(self._tables)
        if table in self._tasks:
            await self._end(table)
        self._write()
        self._start(table)

    async def _kill_archive(self) -> None:
        await self._end("archive")
        self._write()
        await asyncio.sleep(self._random.random() * 2)
        self._start_archive()

    async def _all_reconnect(self) -> None:
        for each in self._site.servers:
            each.kill()
        self._write()
        await self._up()

    async def _cut_network(self) -> None:
        """Tables have no network for longer than the stream remembers messages."""
        for each in self._networks:
            await each.cut()
        self._write()
        await asyncio.sleep(self._settings.duplicate_window_s + 1 + self._random.random())
        self._write()
        for each in self._networks:
            await each.join()

    async def _flip_bit(self) -> None:
        """One bit of a block file of the stream changes while its server is down."""
        server = self._random.choice(self._site.servers)
        server.kill()
        blocks = sorted(server.server.store.rglob(f"*{SiteNames(SITE).stream}/msgs/*.blk"))
        blocks = [each for each in blocks if each.stat().st_size]
        if blocks:
            path = self._random.choice(blocks)
            data = bytearray(path.read_bytes())
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
            path.write_bytes(data)
            self.done[-1] += f" of {len(data)} bytes"
        self._write()
        await self._up()

    async def _empty_while_behind(self) -> None:
        """One server starts with an empty disk while another is paused and misses what comes meanwhile."""
        first, second = self._random.sample(self._site.servers, 2) if self._nodes > 1 else (None, None)
        if first is None or second is None:
            return
        first.pause(True)
        self._write()
        await asyncio.sleep(self._random.random())
        second.kill()
        second.empty()
        await self._up()
        first.pause(False)

    async def _up(self) -> None:
        for each in self._site.servers:
            if not each.runs:
                each.start()
        await asyncio.sleep(0.5)


async def _closing(publisher: TablePublisher) -> None:
    try:
        await publisher.run()
    finally:
        publisher.close()


def compare(table: WrittenTable, archive: Path) -> list[str]:
    """Journal and record against the archive, row by row, with nothing of ours; what differs."""
    with sqlite3.connect(table.record_path) as db:
        record = db.execute("SELECT number, lower(hex(hash)), body FROM rows ORDER BY number").fetchall()
    with sqlite3.connect(table.journal_path) as db:
        links = db.execute("SELECT link, lower(hex(hash)) FROM chain ORDER BY link").fetchall()
    query = (
        "SELECT rows.n, rows.hash, body FROM rows JOIN sources ON sources.id = source_id "
        "WHERE table_name = ? AND chain = ? ORDER BY rows.n"
    )
    with sqlite3.connect(archive) as db:
        there = {chain: db.execute(query, (table.name, chain)).fetchall() for chain in ("record", "device")}
        apart = db.execute("SELECT COUNT(*) FROM conflicts").fetchone()[0]
        unread = db.execute("SELECT COUNT(*) FROM quarantine").fetchone()[0]
    found = []
    if there["record"] != record:
        found.append(f"{table.name}: {len(record)} rows of the record, {len(there['record'])} in the archive")
    if [row[:2] for row in there["device"]] != links:
        found.append(f"{table.name}: {len(links)} links, {len(there['device'])} in the archive")
    if apart or unread:
        found.append(f"{apart} rows kept apart, {unread} messages in quarantine")
    return found


def run_seed(
    seed: int, nodes: int = 3, steps: int = STEPS, kind: str = ""
) -> tuple[list[str], list[str]]:
    """One run; what was done, and what is wrong afterwards."""
    with tempfile.TemporaryDirectory(prefix="sabot-chaos-") as folder:
        made = ChaosRun(seed, Path(folder), nodes, steps, kind)
        return made.done, asyncio.run(made.run())


def main() -> None:
    """Run seeds and print each; exit code 1 if one was wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--first", type=int, default=1)
    options.add_argument("--kind", default="", help="the only thing that happens, such as flip_bit")
    chosen = options.parse_args()
    wrong = 0
    for seed in range(chosen.first, chosen.first + chosen.runs):
        begun = time.monotonic()
        done, found = run_seed(seed, kind=chosen.kind)
        wrong += bool(found)
        said = "; ".join(found) or "archive = journals"
        sys.stdout.write(f"{seed:4} {time.monotonic() - begun:5.0f} s  {said}  ({', '.join(done)})\n")
        sys.stdout.flush()
    sys.stdout.write(f"{chosen.runs} runs, {wrong} wrong\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    forbid_core_dumps()
    main()
