"""Replayed journals: which rate of rows a floor of this computer sustains, and how fast tables catch up.

``python -m sabot_simulators.floor.replay`` (``make floor-replay``). Journals and records are real files that
were written before. ``--rates`` publishes their rows as if tables wrote them now, faster from step to step.
``--off-tables`` and ``--off-rows`` publish tables that were off: all their rows at once. The bare publish
rate of the same run stands beside it. Servers, archive and wall are processes of their own.
"""

import argparse
import asyncio
import contextlib
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.connection import Servers
from sabot_floor.payloads import Begins, ChainHead, FloorRow
from sabot_floor.publisher import TablePublisher
from sabot_floor.row_sources import RowSource
from sabot_floor.streams import StreamSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.chaos import compare
from sabot_simulators.floor.measure import bare_rate
from sabot_simulators.floor.measured_archive import MeasuredArchive
from sabot_simulators.floor.process_figures import used
from sabot_simulators.floor.programs import WallProgram
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.shown_on_wall import wrong_on_wall
from sabot_simulators.floor.table_files import EVERY_ROW
from sabot_simulators.floor.written_table import WrittenTable

SITE = "replay"
GIGABYTES = 8
AT_ONCE = 2000
RATES = (500, 1000, 2000, 3000, 4000, 5000, 6000)
LONG_S = 3600.0
STILL_S = 60.0
"""Without a new row for so long, a step is given up."""


class Pace:
    """How many rows of each source are written by now; the rate may change."""

    def __init__(self, sources: int) -> None:
        self._sources = sources
        self._rate = 0.0
        self._done = 0.0
        self._since = time.monotonic()

    def set(self, rows_a_second: float) -> None:
        """From now on all sources together grow so fast."""
        self._done, self._since = self._exact(), time.monotonic()
        self._rate = rows_a_second / self._sources

    def rows(self) -> int:
        """Rows that are written in each source."""
        return int(self._exact())

    def _exact(self) -> float:
        return self._done + (time.monotonic() - self._since) * self._rate


class PacedSource(RowSource):
    """A source of which only the rows that a pace allows are there."""

    def __init__(self, whole: RowSource, pace: Pace) -> None:
        self.chain = whole.chain
        self.source = whole.source
        self._whole = whole
        self._pace = pace
        self._last = whole.head().n
        self._head = ChainHead(source=whole.source, n=0, hash=whole.begins().hash, count=0)

    def begins(self) -> Begins:
        """The place before its first row."""
        return self._whole.begins()

    def rows(self, after: int, most: int) -> list[FloorRow]:
        """Rows after a number, in order, as far as they are there."""
        there = min(self._pace.rows(), self._last) - after
        return self._whole.rows(after, min(most, there)) if there > 0 else []

    def head(self) -> ChainHead:
        """The newest row that is there."""
        n = min(self._pace.rows(), self._last)
        if n > self._head.n:
            newest = self._whole.rows(n - 1, 1)[0]
            self._head = ChainHead(source=self.source, n=n, hash=newest.hash, count=n)
        return self._head

    def changed(self) -> bool:
        """Rows come by the pace, not by writing."""
        return True

    def archived(self, n: int) -> None:
        """Nothing is pruned."""

    def close(self) -> None:
        """Close its file."""
        self._whole.close()


@dataclass(frozen=True, slots=True)
class _Step:
    """What one rate did."""

    rate: float
    arrived: float
    behind: int
    drained_s: float | None
    since_us: int
    until_us: int

    @property
    def kept_up(self) -> bool:
        """Whether fewer rows than those of one second waited at its end."""
        return self.drained_s is not None and self.behind < self.rate


class ReplayedFloor:
    """Servers, archive, wall and written tables of one run."""

    def __init__(self, folder: Path, tables: int, rows: int, nodes: int, sync: str) -> None:
        """``rows`` are those of each table, both chains together; they are written now."""
        self.lines = [f"- {nodes} servers, `sync_interval: {sync}`, load before {os.getloadavg()[0]:.1f}"]
        self.wrong: list[str] = []
        self._folder, self._nodes, self._sync = folder, nodes, sync
        self._tables = [WrittenTable(folder / f"pc{n}", f"t{n:03}") for n in range(1, tables + 1)]
        begun = time.monotonic()
        for each in self._tables:
            each.write(rows // 2, AT_ONCE)
        self._up_to = EVERY_ROW
        self._total = sum(each.rows() for each in self._tables)
        took = time.monotonic() - begun
        self.lines.append(f"- {tables} tables, {self._total:,} rows, written before in {took:.0f} s")

    async def run(self, rates: Sequence[int], seconds: float) -> None:
        """Replay at each rate for some seconds; without rates, everything at once."""
        with contextlib.ExitStack() as stack:
            site = stack.enter_context(Site(self._folder / "site", self._nodes, sync=self._sync))
            servers = Servers(site.urls)
            archive = MeasuredArchive(self._folder, SITE, site.urls, self._nodes, GIGABYTES)
            stack.callback(archive.close)
            wall = WallProgram(self._folder, SITE, site)
            stack.callback(wall.kill)
            settings = StreamSettings(self._nodes, max_bytes=1024**3)
            self.lines.append(f"{await bare_rate(servers, settings)} (before)")
            pids = [each.pid for each in site.servers]
            before, begun = used([*pids, archive.pid, wall.pid, os.getpid()]), time.monotonic()
            steps = await self._rates(servers, archive.path, rates, seconds) if rates else []
            if not rates:
                await self._catch_up(servers, archive.path)
            after, took = used([*pids, archive.pid, wall.pid, os.getpid()]), time.monotonic() - begun
            share = (after.processor_s - before.processor_s) / took * 100
            self.lines.append(f"- servers, archive, wall and publishers: {share:.0f} % of a core meanwhile")
            self.lines.append(f"{await bare_rate(servers, settings)} (after)")
            self.wrong += [
                wrong for each in self._tables for wrong in compare(each, archive.path, self._up_to)
            ] or wrong_on_wall(wall.client(), self._tables, self._up_to)
        for each in steps:
            drained = "not drained" if each.drained_s is None else f"drained after {each.drained_s:.1f} s"
            late = f"{each.behind:,} rows behind at the end, {drained}"
            rate = f"- {each.rate:,.0f} rows a second: {each.arrived:,.0f} a second archived, {late}"
            self.lines.append(f"{rate}; publish → commit {archive.spread(each.since_us, each.until_us)}")
        if not rates:
            self.lines.append(f"- publish → commit {archive.spread(0, time.time_ns() // 1000)}")
        else:
            kept = [each.rate for each in steps if each.kept_up]
            self.lines.append(f"- the archive kept up with {max(kept, default=0):,.0f} rows a second")
        for table in self._tables:
            table.close()

    async def _rates(
        self, servers: Servers, archive: Path, rates: Sequence[int], seconds: float
    ) -> list[_Step]:
        pace = Pace(2 * len(self._tables))
        publishers = [
            each.publisher(SITE, servers, sources=[PacedSource(source, pace) for source in each.sources()])
            for each in self._tables
        ]
        tasks = [asyncio.create_task(_closing(each)) for each in publishers]
        found = []
        try:
            await _until(lambda: all(each.beats for each in publishers))
            for rate in rates:
                found.append(await self._step(pace, archive, rate, seconds))
                if found[-1].drained_s is None:
                    self.wrong.append(f"rows of {rate:,} a second did not come within {STILL_S:.0f} s")
                    break
        finally:
            await end_tasks(tasks)
        return found

    async def _step(self, pace: Pace, archive: Path, rate: int, seconds: float) -> _Step:
        since_us, before, begun = time.time_ns() // 1000, _archived(archive), time.monotonic()
        pace.set(rate)
        await asyncio.sleep(seconds)
        took = time.monotonic() - begun
        pace.set(0)
        self._up_to = pace.rows()
        wanted = self._up_to * 2 * len(self._tables)
        there = _archived(archive)
        until_us, ended = time.time_ns() // 1000, time.monotonic()
        done = await _grown(archive, wanted)
        drained = time.monotonic() - ended if done else None
        return _Step(rate, (there - before) / took, wanted - there, drained, since_us, until_us)

    async def _catch_up(self, servers: Servers, archive: Path) -> None:
        begun = time.monotonic()
        tasks = [asyncio.create_task(_closing(each.publisher(SITE, servers))) for each in self._tables]
        try:
            done = await _grown(archive, self._total)
        finally:
            await end_tasks(tasks)
        took = time.monotonic() - begun
        there = _archived(archive)
        self.lines.append(f"- caught up {there:,} rows in {took:.1f} s, {there / took:,.0f} a second")
        if not done:
            self.wrong.append("not caught up")


def _archived(archive: Path) -> int:
    with contextlib.closing(sqlite3.connect(archive)) as db:
        return int(db.execute("SELECT COALESCE(SUM(count), 0) FROM sources").fetchone()[0])


async def _grown(archive: Path, wanted: int) -> bool:
    """Wait until the archive has so many rows; False if none comes any more."""
    newest, since = -1, time.monotonic()
    while (there := await asyncio.to_thread(_archived, archive)) < wanted:
        if there != newest:
            newest, since = there, time.monotonic()
        elif time.monotonic() - since > STILL_S:
            return False
        await asyncio.sleep(0.05)
    return True


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_S):
        while not reached():
            await asyncio.sleep(0.05)


async def _closing(publisher: TablePublisher) -> None:
    try:
        await publisher.run()
    finally:
        publisher.close()


def main() -> None:
    """Replay and print; exit code 1 if the archive is not what the tables' files are."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, choices=(1, 3), default=3)
    options.add_argument("--sync", default="always")
    options.add_argument("--tables", type=int, default=20, help="with --rates")
    options.add_argument(
        "--rates", type=int, nargs="+", default=RATES, help="rows a second, one after the other"
    )
    options.add_argument("--seconds", type=float, default=30, help="of each rate")
    options.add_argument("--off-tables", type=int, default=0, help="instead: tables that were off")
    options.add_argument("--off-rows", type=int, default=1000, help="rows that each of these has waiting")
    chosen = options.parse_args()
    tables = chosen.off_tables or chosen.tables
    rates = () if chosen.off_tables else tuple(chosen.rates)
    needed = int(sum(rates) * (chosen.seconds + 1) * 1.1 / tables)
    with tempfile.TemporaryDirectory(prefix="sabot-replay-") as folder:
        floor = ReplayedFloor(
            Path(folder), tables, chosen.off_rows if chosen.off_tables else needed, chosen.nodes, chosen.sync
        )
        asyncio.run(floor.run(rates, chosen.seconds))
    sys.stdout.write("\n".join([*floor.lines, *(f"- WRONG: {each}" for each in floor.wrong)]) + "\n")
    if not floor.wrong:
        sys.stdout.write("- every published row is in the archive once, and on the wall once\n")
    sys.exit(1 if floor.wrong else 0)


if __name__ == "__main__":
    forbid_core_dumps()
    main()
