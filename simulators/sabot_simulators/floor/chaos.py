"""Seeded chaos on a floor of three servers: afterwards the archive must be the union of the journals.

``python -m sabot_simulators.floor.chaos --runs 50`` (``make floor-chaos``). Each seed starts three servers,
written tables and an archive, and does things to them; ``KINDS`` names each. Then everything runs again, and
the files are compared by SQLite alone. A power cut puts back a copy of the store from before, so it loses
more than a disk that obeys would lose.

Most servers of a floor may lose their stores within seconds. No cluster survives that: if it does not work
again, the run does what docs/floor.md tells people to do then (every store is emptied), and says so.
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
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.archive import Archive, Patience
from sabot_floor.archive_files import check_chains
from sabot_floor.archive_store import ArchiveStore
from sabot_floor.connection import LOST, Servers, connect, end
from sabot_floor.errors import FloorError
from sabot_floor.names import SiteNames
from sabot_floor.publisher import TablePublisher
from sabot_floor.streams import StreamSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.cut_network import CutNetwork
from sabot_simulators.floor.programs import WallProgram, server_words, start_sabot
from sabot_simulators.floor.servers import RunningServer, Site
from sabot_simulators.floor.shifted_clocks import shifted_clocks, with_shift
from sabot_simulators.floor.small_disk import SmallDisk, can_mount
from sabot_simulators.floor.table_files import EVERY_ROW, TableFiles
from sabot_simulators.floor.written_table import WrittenTable

SITE = "chaos"
TABLES = 3
STEPS = 6
SETTLE_S = 240.0
QUICK = Patience(ask_after_s=1.0, ask_again_s=3.0, missing_after_s=60.0, reconcile_s=5.0)
GIGABYTES = 1
LEAST_WINDOW_S = 0.1  # the shortest that a server takes
HOURS = 12
NO_SPACE = "no space left"  # the server's log
EMPTIED = "majority_lost: every store emptied"
"""What a run says if so many stores were lost that people had to set the servers up anew."""
WRONG_ALARMS = ("row_differs", "chain_broken", "unreadable", "not_reconciled")
KINDS = (
    "kill_server", "pause_server", "empty_server", "empty_while_behind", "power_cut_one", "power_cut_two",
    "power_cut_all", "flip_bit", "full_disk", "delete_stream", "short_window", "cut_network", "all_reconnect",
    "kill_publisher", "kill_archive", "kill_wall", "clocks_apart",
)  # fmt: skip
log = logging.getLogger("sabot.floor.chaos")


class ChaosRun:
    """One seed."""

    def __init__(self, seed: int, folder: Path, nodes: int = 3, steps: int = STEPS, kind: str = "") -> None:
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
        window = self._random.choice((LEAST_WINDOW_S, 2.0))
        self._settings = StreamSettings(nodes, max_bytes=GIGABYTES * 1024**3, duplicate_window_s=window)
        self._tables = [WrittenTable(folder / f"pc{n}", f"t{n:02}", seed) for n in range(1, TABLES + 1)]
        self._store = ArchiveStore(str(folder / "archive.db"), SITE)
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._shifts_s: dict[object, int] = {}
        """By how much the clock of a table or of the archive is wrong."""
        self._wall: WallProgram | None = None
        self._lost: set[str] = set()
        """Servers whose stores have lost writes since all of them worked."""
        self._wrong: list[str] = []
        self.done: list[str] = []
        """What happened, in order."""

    async def run(self) -> list[str]:
        """Do it; what is wrong afterwards. Nothing is wrong with an empty list."""
        with shifted_clocks(), self._site:
            try:
                late = await self._happen()
            finally:
                for key in list(self._tasks):
                    await self._end(key)
                for network in self._networks:
                    await network.cut()
                if self._wall is not None:
                    self._wall.kill()
        found = [*self._wrong, *self._judge()]
        for each in self._tables:
            each.close()
        return found + ([late] if late and not found else [])

    async def _start_all(self) -> str:
        """Start everything and wait until the first rows are in the archive; what is late."""
        for network in self._networks:
            await network.join()
        self._start_archive()
        for each in self._tables:
            self._start(each)
        self._write()
        return await self._settle()

    async def _happen(self) -> str:
        """Start everything, do it, let everything run again; what is late afterwards."""
        kinds = [self._kind] if self._kind else _possible_kinds()
        late = await self._start_all()  # what happens then happens to a floor that works
        if late:
            return late
        for _ in range(self._steps):
            self._write()
            await asyncio.sleep(self._random.random())
            kind = self._random.choice(kinds)
            self.done.append(kind)
            act: Callable[[], Awaitable[None]] = getattr(self, f"_{kind}")
            await act()
            self._write()
            await asyncio.sleep(self._random.random())
        late = await self._settle()
        if late and 2 * len(self._lost) > self._nodes:
            await self._empty_all()
            late = await self._settle()
        if not late and self._wall is not None:
            late = await asyncio.to_thread(self._wall.wait, {each.name for each in self._tables})
        return late

    def _judge(self) -> list[str]:
        """What is wrong with the archive's file."""
        path = self._folder / "archive.db"
        found = [wrong for each in self._tables for wrong in compare(each, path)]
        found += [
            f"{each.table} {each.chain}: {each.wrong}"
            for each in check_chains(self._store.engine)
            if each.wrong
        ]
        self._store.close()
        with sqlite3.connect(path) as db:
            raised = db.execute("SELECT DISTINCT table_name, kind FROM alarms").fetchall()
        return found + [f"{table}: alarm {kind}" for table, kind in raised if kind in WRONG_ALARMS]

    # -- parts ----------------------------------------------------------------------------------

    def _write(self) -> None:
        for each in self._tables:
            with_shift(self._shifts_s.get(each, 0), each.write, self._random.randint(0, 40))

    def _start(self, table: WrittenTable) -> None:
        publisher = table.publisher(SITE, self._through)
        self._tasks[table] = self._task(table, _closing(publisher))

    def _start_archive(self) -> None:
        archive = Archive(self._store, SITE, self._servers, self._settings, QUICK)
        self._tasks["archive"] = self._task("archive", archive.run())

    def _task(self, key: object, does: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return with_shift(self._shifts_s.get(key, 0), asyncio.create_task, does)

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
            self._empty(server)
        await self._up()

    async def _power_cut_one(self) -> None:
        await self._power_cut(1)

    async def _power_cut_two(self) -> None:
        await self._power_cut(min(2, self._nodes))

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
            self._empty(each)
            shutil.move(each.folder / "before", each.server.store)
        await self._up()

    async def _delete_stream(self) -> None:
        client = await self._connected()
        if client is None:
            return
        try:
            await client.jetstream(timeout=5).delete_stream(SiteNames(SITE).stream)
        except LOST as error:
            log.info("the stream was not deleted: %r", error)
        finally:
            await end(client)

    async def _connected(self) -> Client | None:
        try:
            return await connect(self._servers, "chaos", lambda: None)
        except FloorError:
            return None

    async def _kill_publisher(self) -> None:
        table = self._random.choice(self._tables)
        if table in self._tasks:
            await self._end(table)
        self._write()
        self._start(table)

    async def _kill_archive(self) -> None:
        """The archive is a program of its own, and is killed at any moment, also while it commits."""
        await self._end("archive")
        self._store.close()
        sizes = ("--replicas", str(self._nodes), "--gigabytes", str(GIGABYTES))
        to = ("--site", SITE, "--to", str(self._folder / "archive.db"))
        process = start_sabot(self._folder, "floor", "archive", *to, *sizes, *server_words(self._site))
        ends = time.monotonic() + 1 + self._random.random() * 4
        while time.monotonic() < ends:
            self._write()
            await asyncio.sleep(0.1)
        process.kill()
        process.wait()
        self._store = ArchiveStore(str(self._folder / "archive.db"), SITE)
        self._start_archive()

    async def _kill_wall(self) -> None:
        """The wall is killed; the next one shows every table again."""
        tables = {each.name for each in self._tables}
        if self._wall is None:
            self._wall = WallProgram(self._folder, SITE, self._site)
            await asyncio.sleep(self._random.random() * 4)
        self._wall.kill()
        self._write()
        self._wall = WallProgram(self._folder, SITE, self._site)
        wrong = await asyncio.to_thread(self._wall.wait, tables)
        if wrong:
            self._wrong.append(wrong)

    async def _clocks_apart(self) -> None:
        """Table PCs and archive start again with clocks that are up to twelve hours wrong."""
        for key in ("archive", *self._tables):
            self._shifts_s[key] = self._random.randint(-HOURS, HOURS) * 3600
            await self._end(key)
        self._start_archive()
        for each in self._tables:
            self._start(each)

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

    async def _short_window(self) -> None:
        """The stream forgets ids after 100 ms from now on, and a cut meets messages on their way."""
        client = await self._connected()
        if client is not None:
            js = client.jetstream(timeout=5)
            try:
                there = (await js.stream_info(SiteNames(SITE).stream)).config
                there.duplicate_window = LEAST_WINDOW_S
                await js.update_stream(there)
            except LOST as error:
                log.info("the window was not changed: %r", error)
            finally:
                await end(client)
        for _ in range(3):
            self._write()
            await asyncio.sleep(0.3)  # a publisher looks every 0.25 s
            for each in self._networks:
                await each.cut()
            await asyncio.sleep(2 * LEAST_WINDOW_S)
            for each in self._networks:
                await each.join()

    async def _full_disk(self) -> None:
        """A server's disk is full for some seconds; then people make room and start it again."""
        server = self._random.choice(self._site.servers)
        server.kill()
        disk = SmallDisk(server.server.store)
        try:
            await self._up()
            server.wait()
            logged = len(server.log())
            disk.fill(self._random.choice((0, 4096, 65536)))
            ends = time.monotonic() + 2 + self._random.random() * 4
            while time.monotonic() < ends:
                self._write()
                await asyncio.sleep(0.2)
            disk.free()
            if NO_SPACE in server.log()[logged:]:
                self.done[-1] += " noticed"
        finally:
            server.kill()
            disk.leave()
        await self._up()

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
        self._empty(second)
        await self._up()
        first.pause(False)

    def _empty(self, server: RunningServer) -> None:
        self._lost.add(server.server.name)
        server.empty()

    async def _empty_all(self) -> None:
        """What people do after most stores were lost: all servers begin anew, and tables publish again."""
        self.done.append(EMPTIED)
        for each in self._site.servers:
            each.kill()
        for each in self._site.servers:
            each.empty()
        await self._up()

    async def _up(self) -> None:
        for each in self._site.servers:
            if not each.runs:
                each.start()
        await asyncio.sleep(0.5)


def _possible_kinds() -> list[str]:
    """What may happen here: without root no disk can be made full."""
    return [each for each in KINDS if each != "full_disk" or can_mount()]


async def _closing(publisher: TablePublisher) -> None:
    try:
        await publisher.run()
    finally:
        publisher.close()


def compare(table: TableFiles, archive: Path, up_to: int = EVERY_ROW) -> list[str]:
    """Journal and record against the archive, row by row, with nothing of ours; what differs.

    ``up_to`` is the newest row of each file that counts.
    """
    with sqlite3.connect(table.record_path) as db:
        query = "SELECT number, lower(hex(hash)), body FROM rows WHERE number <= ? ORDER BY number"
        record = db.execute(query, (up_to,)).fetchall()
    with sqlite3.connect(table.journal_path) as db:
        query = "SELECT link, lower(hex(hash)) FROM chain WHERE link <= ? ORDER BY link"
        links = db.execute(query, (up_to,)).fetchall()
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


def run_seed(seed: int, nodes: int = 3, steps: int = STEPS, kind: str = "") -> tuple[list[str], list[str]]:
    """One run; what was done, and what is wrong afterwards."""
    with tempfile.TemporaryDirectory(prefix="sabot-chaos-") as folder:
        made = ChaosRun(seed, Path(folder), nodes, steps, kind)
        return made.done, asyncio.run(made.run())


def main() -> None:
    """Run seeds and print each; exit code 1 if one was wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--first", type=int, default=1)
    options.add_argument(
        "--kind", default="", choices=("", *KINDS), help="the only thing that happens, such as flip_bit"
    )
    chosen = options.parse_args()
    for each in set(KINDS) - set(_possible_kinds()):
        sys.stdout.write(f"left out: {each} needs root\n")
    wrong = emptied = 0
    for seed in range(chosen.first, chosen.first + chosen.runs):
        begun = time.monotonic()
        done, found = run_seed(seed, kind=chosen.kind)
        wrong += bool(found)
        emptied += EMPTIED in done
        said = "; ".join(found) or "archive = journals"
        sys.stdout.write(f"{seed:4} {time.monotonic() - begun:5.0f} s  {said}  ({', '.join(done)})\n")
        sys.stdout.flush()
    sys.stdout.write(f"{chosen.runs} runs, {wrong} wrong; in {emptied} every store had to be emptied\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    forbid_core_dumps()
    main()
