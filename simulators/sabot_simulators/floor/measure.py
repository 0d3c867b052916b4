"""What a floor does on this computer: rows a second into the archive, the bare publish rate, and latency.

``make bench-floor``. Tables are written ones: their journals and records are real files, their rows of real
kinds. Each figure is of one run, with the load that the computer had before.
"""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.archive import Archive
from sabot_floor.archive_store import ArchiveStore
from sabot_floor.connection import Servers, connect, end, put
from sabot_floor.names import SiteNames
from sabot_floor.payloads import MOST_ROWS
from sabot_floor.publisher import TablePublisher
from sabot_floor.streams import StreamSettings, set_up
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.written_table import WrittenTable

SITE = "bench"
LONG_S = 900.0
BARE_BYTES = 60_000  # about a message of 256 rows of a record


async def measure(folder: Path, nodes: int, tables: int, rows: int, seconds: float, sync: str) -> list[str]:
    """One run; a line for each figure."""
    load = os.getloadavg()[0]
    made = [WrittenTable(folder / f"pc{n}", f"t{n:03}") for n in range(1, tables + 1)]
    for each in made:
        each.write(rows)
    total = sum((each.journal.chain.head.row if each.journal.chain.head else 0) + each.record.newest()
                for each in made)  # fmt: skip
    found = [f"- {nodes} servers, `sync_interval: {sync}`, {tables} tables, load before {load:.1f}"]
    with Site(folder / "site", nodes, sync=sync) as site:
        servers = Servers(site.urls)
        store = ArchiveStore(str(folder / "archive.db"), SITE)
        settings = StreamSettings(nodes, max_bytes=1024**3)
        archive = Archive(store, SITE, servers, settings)
        tasks = [asyncio.create_task(archive.run())]
        while not archive.connected:
            await asyncio.sleep(0.05)
        found.append(await bare_rate(servers, settings))
        begun = time.monotonic()
        publishers = [each.publisher(SITE, servers) for each in made]
        tasks += [asyncio.create_task(_closing(each)) for each in publishers]
        while archive.rows < total and time.monotonic() - begun < LONG_S:
            await asyncio.sleep(0.02)
        took = time.monotonic() - begun
        found.append(f"- catch-up of {total:,} rows: {took:.1f} s, {total / took:,.0f} rows a second")
        since_us = time.time_ns() // 1000
        ends, turn = time.monotonic() + seconds, 0
        while time.monotonic() < ends:
            await asyncio.to_thread(made[turn % tables].write, 1)
            turn += 1
            await asyncio.sleep(max(0.0, 1 / tables - 0.01))
        await asyncio.sleep(3)
        await end_tasks(tasks)
        store.close()
    found.append(_latency(folder / "archive.db", since_us, seconds))
    for each in made:
        each.close()
    size = (folder / "archive.db").stat().st_size
    found.append(f"- archive {size / max(1, archive.rows):.0f} bytes a row (SQLite, with its indexes)")
    return found


async def bare_rate(servers: Servers, settings: StreamSettings) -> str:
    """Messages a second that one publisher gets acknowledged, one at a time, in a stream of its own."""
    client = await connect(servers, "bare", lambda: None)
    await set_up(client.jetstream(timeout=30), SiteNames("bare"), settings)
    data, count, begun = b"x" * BARE_BYTES, 0, time.monotonic()
    subject = SiteNames("bare").rows("t01", "record")
    while time.monotonic() - begun < 3:
        await put(client, subject, data, None, 30)
        count += 1
    await end(client)
    rate = count / (time.monotonic() - begun)
    told = f"- bare publish: {rate:,.0f} messages of {BARE_BYTES:,} bytes a second, acknowledged one by one"
    return f"{told}; {rate * MOST_ROWS:,.0f} rows a second if each is full"


async def _closing(publisher: TablePublisher) -> None:
    try:
        await publisher.run()
    finally:
        publisher.close()


def _latency(archive: Path, since_us: int, seconds: float) -> str:
    """From the write into the journal to the begin of the archive's transaction, by this computer's clock."""
    kinds = "('stack_taken', 'fault_cleared')"
    query = f"SELECT committed_us - at_us FROM rows WHERE kind IN {kinds} AND at_us > ?"
    with sqlite3.connect(archive) as db:
        found = sorted(each for (each,) in db.execute(query, (since_us,)))
    if not found:
        return "- latency: no row was written"
    at = [found[len(found) // 2], found[int(len(found) * 0.99)], found[-1]]
    p50, p99, most = (each / 1e6 for each in at)
    rate = len(found) / seconds
    times = f"p50 {p50:.2f} s, p99 {p99:.2f} s, max {most:.2f} s"
    return f"- journal → begin of the archive's transaction, {rate:.0f} device rows a second: {times}"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, choices=(1, 3), default=3)
    options.add_argument("--tables", type=int, default=20)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--sync", default="always")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="sabot-bench-") as folder:
        made = measure(Path(folder), chosen.nodes, chosen.tables, chosen.rows, chosen.seconds, chosen.sync)
        sys.stdout.write("\n".join(asyncio.run(made)) + "\n")


if __name__ == "__main__":
    forbid_core_dumps()
    main()
