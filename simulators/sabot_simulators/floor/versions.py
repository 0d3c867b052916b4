"""Servers upgraded and downgraded one at a time while tables publish; afterwards the archive = the journals.

``python -m sabot_simulators.floor.versions OLD NEW`` (``make floor-versions``), where both are programs of
``nats-server``. Each server is stopped in order, started as the other version and waited for until it is
healthy; then the next one follows. First all become new, then all become old again, then new for good.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.chaos import ChaosRun
from sabot_simulators.floor.servers import RunningServer

WRITE_S = 0.1


def version_of(server: RunningServer) -> str:
    """The version that a running server says it is."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server.http_port}/varz", timeout=10) as answer:
        return str(json.loads(answer.read())["version"])


class VersionsRun(ChaosRun):
    """One run: three servers, written tables and an archive."""

    def __init__(self, folder: Path, programs: Sequence[str], nodes: int = 3, seed: int = 1) -> None:
        """``programs`` are the versions in their order; servers begin with the first one."""
        super().__init__(seed, folder, nodes)
        self._programs = programs
        for each in self._site.servers:
            each.program = programs[0]
        self.rows = 0
        """Rows that tables wrote meanwhile."""

    async def _happen(self) -> str:
        late = await self._start_all()
        if late:
            return late
        writing = asyncio.create_task(self._write_on())
        try:
            for program in self._programs[1:]:
                await self._roll(program)
        finally:
            await end_tasks([writing])
        self.rows = sum(each.rows() for each in self._tables)
        return await self._settle()

    async def _write_on(self) -> None:
        while True:
            self._write()
            await asyncio.sleep(WRITE_S)

    async def _roll(self, program: str) -> None:
        """Each server in turn becomes another version."""
        for server in self._site.servers:
            begun = time.monotonic()
            await asyncio.to_thread(server.stop)
            server.program = program
            server.start()
            await asyncio.to_thread(server.wait)
            took = time.monotonic() - begun
            self.done.append(f"{server.server.name} is {version_of(server)} after {took:.1f} s")


def main() -> None:
    """Run and print; exit code 1 if the archive is not what the tables' files are."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("old", help="a program: nats-server")
    options.add_argument("new", help="another version of it")
    chosen = options.parse_args()
    programs = [chosen.old, chosen.new, chosen.old, chosen.new]
    with tempfile.TemporaryDirectory(prefix="sabot-versions-") as folder:
        made = VersionsRun(Path(folder), programs)
        wrong = asyncio.run(made.run())
    said = "; ".join(wrong) or "archive = journals"
    lines = [f"{said}, {made.rows:,} rows", *(f"- {each}" for each in made.done)]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    forbid_core_dumps()
    main()
