"""Emulated tables at real time on one computer: how long rows take into the archive, and what that costs.

``python -m sabot_simulators.floor.real_time --tables 150 --seconds 900`` (``make floor-tables``). Each table
is firmware core, driver, session, journal and record with simulated people, 50 to a process. Servers, archive
and wall run beside them. Afterwards the archive is compared with the tables' files, row by row, by SQLite
alone, and so is what the wall shows.
"""

import argparse
import contextlib
import json
import os
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.names import SiteNames
from sabot_simulators.floor.chaos import compare
from sabot_simulators.floor.measured_archive import MeasuredArchive, Spread
from sabot_simulators.floor.process_figures import Used, flushes, used
from sabot_simulators.floor.programs import WallProgram
from sabot_simulators.floor.servers import Site
from sabot_simulators.floor.shown_on_wall import wrong_on_wall
from sabot_simulators.floor.table_process import TableProcess

SITE = "tables"
GIGABYTES = 8
PER_PROCESS = 50
ROUND_S = 60.0
"""Between two rounds of a table: a dealer at a full table deals about sixty an hour."""
BASE_S = 3.0
SETTLE_S = 120.0
LIMIT_S = 1.0  # of the p99 from publication to commit


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one table."""

    name: str
    journal_path: Path
    record_path: Path


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to run."""

    tables: int
    seconds: float
    warm_s: float
    nodes: int = 3
    sync: str = "always"
    pace_s: float = 1.5
    round_s: float = ROUND_S
    per_process: int = PER_PROCESS


def run(folder: Path, chosen: Chosen) -> tuple[list[str], list[str], float]:
    """One run: a line for each figure, what is wrong with archive and wall, and the p99 in seconds."""
    names = [f"t{n:03}" for n in range(1, chosen.tables + 1)]
    told = f"- {chosen.tables} tables for {chosen.seconds:.0f} s, {chosen.nodes} servers"
    told += f", a round in {chosen.round_s:.0f} s"
    lines = [f"{told}, `sync_interval: {chosen.sync}`, load before {os.getloadavg()[0]:.1f}"]
    begun, before = flushes(folder), time.monotonic()
    time.sleep(BASE_S)
    base = _rate(begun, flushes(folder), time.monotonic() - before)
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(Site(folder / "site", chosen.nodes, sync=chosen.sync))
        archive = MeasuredArchive(folder, SITE, site.urls, chosen.nodes, GIGABYTES)
        stack.callback(archive.close)
        wall = WallProgram(folder, SITE, site)
        stack.callback(wall.kill)
        processes = _start(folder, site, chosen, names, stack)
        time.sleep(chosen.warm_s)
        groups = {
            **{each.server.name: [each.pid] for each in site.servers},
            "archive": [archive.pid],
            "wall": [wall.pid],
            "tables": [each.pid for each in processes],
        }
        since_us, since = time.time_ns() // 1000, time.monotonic()
        first, flushed, stored = (
            {each: used(pids) for each, pids in groups.items()},
            flushes(folder),
            _stored(site),
        )
        time.sleep(chosen.seconds)
        took, until_us = time.monotonic() - since, time.time_ns() // 1000
        last = {each: used(pids) for each, pids in groups.items()}
        rate, grown = _rate(flushed, flushes(folder), took), _stored(site) - stored
        wrong = [f"the wall does not hear {each}" for each in sorted(set(names) - wall.live())]
        for each in processes:
            each.close()
            if each.failed:
                wrong.append(f"a process of tables failed: see {folder}")
        files = [_files(folder, name) for name in names]
        wrong += _settled(files, archive.path) or wrong_on_wall(wall.client(), files)
    spread = archive.spread(since_us, until_us)
    lines.append(_published(spread))
    lines += _rows(archive.path, since_us, until_us, took, grown)
    lines += [_use(name, first[name], last[name], took, chosen.tables) for name in groups]
    whole = sum(last[each].processor_s - first[each].processor_s for each in groups) / took * 100
    lines.append(f"- all together: {whole:.0f} % of a core; this computer has {os.cpu_count()} cores")
    lines.append(f"- flushes of the disk a second: {rate} (before: {base}), by all programs of this computer")
    return lines, wrong, spread.p99


def _start(
    folder: Path, site: Site, chosen: Chosen, names: Sequence[str], stack: contextlib.ExitStack
) -> list[TableProcess]:
    found = []
    for at in range(0, len(names), chosen.per_process):
        some = names[at : at + chosen.per_process]
        made = TableProcess(folder, SITE, site.urls, some, "speed=1", chosen.pace_s, chosen.round_s)
        stack.callback(made.close)
        found.append(made)
        made.wait_ready()
    return found


def _files(folder: Path, name: str) -> Files:
    return Files(name, folder / name / f"{name}.db", folder / name / f"{name}.table.db")


def _settled(tables: Sequence[Files], archive: Path) -> list[str]:
    """Wait until the archive is what the files are; what differs if it never is."""
    ends = time.monotonic() + SETTLE_S
    while True:
        found = [wrong for each in tables for wrong in compare(each, archive)]
        if not found or time.monotonic() > ends:
            return found
        time.sleep(1)


def _stored(site: Site) -> int:
    """Bytes of the stream of rows, in one replica."""
    for each in site.servers:
        url = f"http://127.0.0.1:{each.server.http_port}/jsz?streams=true&accounts=true"
        with urllib.request.urlopen(url, timeout=10) as answer:
            told = json.loads(answer.read())
        for account in told.get("account_details", ()):
            for stream in account.get("stream_detail", ()):
                if stream["name"] == SiteNames(SITE).stream:
                    return int(stream["state"]["bytes"])
    return 0


def _published(found: Spread) -> str:
    judged = "below" if found.p99 < LIMIT_S else "NOT below"
    return f"- publish → commit: {found}; p99 is {judged} {LIMIT_S:.0f} s"


def _told(passed: int | None, below: int) -> str:
    """The result of all counts: the number of tables at which p99 passes the limit."""
    last = f"p99 was below {LIMIT_S:.0f} s with {below} tables" if below else "no count stayed below"
    return f"- {last}; it passed " + ("at none of the counts" if passed is None else f"with {passed}")


def _rows(archive: Path, since_us: int, until_us: int, took: float, stored: int) -> list[str]:
    """Rows and rounds of the time that was measured."""
    between = "FROM rows JOIN sources ON sources.id = source_id WHERE committed_us BETWEEN ? AND ?"
    with contextlib.closing(sqlite3.connect(archive)) as db:
        count, size = db.execute(
            f"SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0) {between}", (since_us, until_us)
        ).fetchone()
        (rounds,) = db.execute(
            "SELECT COUNT(*) FROM (SELECT DISTINCT source_id, round_id "
            f"{between} AND chain = 'record' AND round_id > 0)",
            (since_us, until_us),
        ).fetchone()
        ages = db.execute(
            f"SELECT committed_us - at_us {between} AND chain = 'device'", (since_us, until_us)
        ).fetchall()
    age = Spread.of([each / 1e6 for (each,) in ages])
    a_round = "- no round was played: measure longer"
    if rounds:
        a_round = f"- a round: {count / rounds:.0f} rows, {size / rounds:,.0f} bytes of rows"
        a_round += f", {stored / rounds:,.0f} bytes in the stream (one replica)"
    return [
        f"- {count:,} rows, {count / took:,.1f} a second; {rounds:,} rounds",
        a_round,
        f"- journal → begin of the transaction, device rows: p50 {age.p50:.2f} s, p99 {age.p99:.2f} s, "
        f"max {age.most:.2f} s",
    ]


def _use(name: str, first: Used, last: Used, took: float, tables: int) -> str:
    share = (last.processor_s - first.processor_s) / took * 100
    if name == "tables":
        per = f"{share / tables:.2f} % of a core and {last.memory_mb / tables:.1f} MB a table"
        return f"- tables: {share:.0f} % of a core, {last.memory_mb:.0f} MB; {per}"
    return f"- {name}: {share:.1f} % of a core, {last.memory_mb:.0f} MB"


def _rate(first: int | None, last: int | None, took: float) -> str:
    return "not told" if first is None or last is None else f"{(last - first) / took:.0f}"


def main() -> None:
    """Run and print; exit code 1 if the archive is not what the tables' files are."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--tables", type=int, nargs="+", default=[150], help="several: one run each, until p99 passes 1 s"
    )
    options.add_argument("--seconds", type=float, default=900, help="that are measured")
    options.add_argument("--warm", type=float, default=30, help="seconds before, when all tables play")
    options.add_argument("--nodes", type=int, choices=(1, 3), default=3)
    options.add_argument("--sync", default="always")
    options.add_argument("--pace", type=float, default=1.5, help="seconds between two acts of people")
    options.add_argument("--round", type=float, default=ROUND_S, help="seconds between two rounds of a table")
    options.add_argument("--per-process", type=int, default=PER_PROCESS)
    options.add_argument("--folder", type=Path, default=None, help="keep the files here")
    told = options.parse_args()
    failed, below, passed = False, 0, None
    for tables in told.tables:
        chosen = Chosen(
            tables, told.seconds, told.warm, told.nodes, told.sync, told.pace, told.round, told.per_process
        )
        with contextlib.ExitStack() as stack:
            folder = None if told.folder is None else told.folder / str(tables)
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sabot-tables-")))
            folder.mkdir(parents=True, exist_ok=True)
            lines, wrong, p99 = run(folder, chosen)
        _say([*lines, *(f"- WRONG: {each}" for each in wrong)])
        if wrong:
            failed = True
            break
        _say(["- every row of every table is in the archive once, and on the wall once"])
        if p99 >= LIMIT_S:
            passed = tables
            break
        below = tables
    _say([_told(passed, below)])
    sys.exit(1 if failed else 0)


def _say(lines: Sequence[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    forbid_core_dumps()
    main()
