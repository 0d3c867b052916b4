"""A process with many tables of an emulated floor, played at real time.

It prints ``ready`` when every table plays, and ends when its input ends. Started by `TableProcess`.
"""

import argparse
import asyncio
import logging
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.connection import Servers, TableSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.asyncio_table import AsyncioTable
from sabot_simulators.floor.programs import end_child

AT_ONCE = 4  # tables that connect at the same time
THREADS = 16
SWITCH_S = 0.001  # the event loop waits no longer than that for a thread of this process


class TableProcess:
    """Such a process, for who starts it."""

    def __init__(
        self,
        folder: Path,
        site: str,
        urls: Sequence[str],
        names: Sequence[str],
        query: str,
        pace_s: float,
        round_s: float,
    ) -> None:
        words = ["--site", site, "--folder", str(folder), "--query", query, "--pace", str(pace_s)]
        words += ["--round", str(round_s)]
        words += [word for url in urls for word in ("--server", url)]
        program = [sys.executable, "-m", __name__, *words, *names]
        with (folder / f"{names[0]}.log").open("ab") as out:
            self._process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, start_new_session=True
            )
        self.pid = self._process.pid

    def wait_ready(self) -> None:
        """Wait until every table plays."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if said != b"ready\n":
            raise RuntimeError("a process of tables ended: see its log")

    def close(self) -> None:
        """End its tables in order."""
        end_child(self._process)

    @property
    def failed(self) -> bool:
        """Whether it ended by itself, or in another way than in order."""
        return self._process.poll() not in (None, 0)


async def play(tables: Sequence[AsyncioTable]) -> None:
    """Play tables until the input ends; an error of a table is raised."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    ended = loop.run_in_executor(ThreadPoolExecutor(1), sys.stdin.read)
    stop = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    try:
        for at in range(0, len(tables), AT_ONCE):
            some = tables[at : at + AT_ONCE]
            tasks += [asyncio.create_task(each.run(stop)) for each in some]
            await asyncio.gather(*(_ready(each, tasks) for each in some))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        await asyncio.gather(*tasks)
    finally:
        await end_tasks(tasks)


async def _ready(table: AsyncioTable, tasks: Sequence["asyncio.Task[None]"]) -> None:
    while not table.plays.is_set():
        for each in tasks:
            if each.done():
                each.result()
        await asyncio.sleep(0.05)


def main() -> None:
    """Play the tables that are named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--site", required=True)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--server", action="append", required=True)
    options.add_argument("--query", default="speed=1")
    options.add_argument("--pace", type=float, default=1.5)
    options.add_argument("--round", type=float, default=0.0, dest="round_s")
    options.add_argument("names", nargs="+")
    chosen = options.parse_args()
    logging.basicConfig(level=logging.WARNING)
    sys.setswitchinterval(SWITCH_S)
    servers = Servers(tuple(chosen.server))
    tables = [
        AsyncioTable(
            chosen.folder / name,
            TableSettings(chosen.site, name, "1", servers),
            chosen.query,
            chosen.pace,
            chosen.round_s,
        )
        for name in chosen.names
    ]
    asyncio.run(play(tables))


if __name__ == "__main__":
    forbid_core_dumps()
    main()
