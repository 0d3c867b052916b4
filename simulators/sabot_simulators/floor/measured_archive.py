"""The archive as a process that also measures: from a message's publication to the end of its COMMIT.

Started by `MeasuredArchive`. It ends when its input ends, and then writes what it measured. Publisher and
archive have the same clock, because they run on one computer.
"""

import argparse
import asyncio
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.archive import Archive
from sabot_floor.archive_store import ArchiveStore, Delivered, Taken
from sabot_floor.connection import Servers
from sabot_floor.streams import StreamSettings
from sabot_floor.tasks import end_tasks
from sabot_simulators.floor.programs import end_child

_SENT = re.compile(rb'"sent_us": ?(\d+)')


class MeasuringStore(ArchiveStore):
    """An archive's database that notes for each committed message: when, how long after it was sent, rows."""

    def __init__(self, url: str, site: str) -> None:
        super().__init__(url, site)
        self.seen: list[tuple[int, int]] = []
        """For each message, when it was committed and when it was sent, in microseconds."""

    def take(self, delivered: Sequence[Delivered]) -> Taken:
        """Commit messages, and note when."""
        taken = super().take(delivered)
        now_us = time.time_ns() // 1000
        for each in delivered:
            found = _SENT.search(each.data)
            if found is not None:
                self.seen.append((now_us, int(found[1])))
        return taken


@dataclass(frozen=True, slots=True)
class Spread:
    """How long messages took, in seconds."""

    count: int
    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """The spread of some times; zeros if there is none."""
        found = sorted(seconds)
        if not found:
            return cls(0, 0.0, 0.0, 0.0)
        return cls(len(found), found[len(found) // 2], found[int(len(found) * 0.99)], found[-1])

    def __str__(self) -> str:
        return f"p50 {self.p50:.3f} s, p99 {self.p99:.3f} s, max {self.most:.3f} s of {self.count:,} messages"


class MeasuredArchive:
    """Such a process, for who starts it."""

    def __init__(self, folder: Path, site: str, urls: Sequence[str], replicas: int, gigabytes: int) -> None:
        self.path = folder / "archive.db"
        self._out = folder / "archive.json"
        words = ["--site", site, "--folder", str(folder), "--replicas", str(replicas)]
        words += ["--gigabytes", str(gigabytes), *(word for url in urls for word in ("--server", url))]
        with (folder / "archive.log").open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, *words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the archive ended: {(folder / 'archive.log').read_text()[-1000:]}")
        self.pid = self._process.pid
        self._seen: list[tuple[int, int]] = []

    def close(self) -> None:
        """End it, and read what it measured."""
        end_child(self._process)
        if self._out.exists():
            self._seen = [(at, sent) for at, sent in json.loads(self._out.read_text(encoding="utf-8"))]

    def spread(self, since_us: int, until_us: int) -> Spread:
        """Publish → commit of messages that were sent in this time, after `close`."""
        found = [(at - sent) / 1e6 for at, sent in self._seen if since_us <= sent < until_us]
        return Spread.of(found)


async def _archive(folder: Path, site: str, servers: Servers, settings: StreamSettings) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(ThreadPoolExecutor(1), sys.stdin.read)
    store = MeasuringStore(str(folder / "archive.db"), site)
    archive = Archive(store, site, servers, settings)
    task = asyncio.create_task(archive.run())
    while not archive.connected and not task.done():
        await asyncio.sleep(0.05)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.wait([ended, task], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    await end_tasks([task])
    store.close()
    (folder / "archive.json").write_text(json.dumps(store.seen), encoding="utf-8")


def main() -> None:
    """Archive until the input ends."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--site", required=True)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--server", action="append", required=True)
    options.add_argument("--replicas", type=int, required=True)
    options.add_argument("--gigabytes", type=int, required=True)
    chosen = options.parse_args()
    logging.basicConfig(level=logging.WARNING)
    settings = StreamSettings(chosen.replicas, max_bytes=chosen.gigabytes * 1024**3)
    asyncio.run(_archive(chosen.folder, chosen.site, Servers(tuple(chosen.server)), settings))


if __name__ == "__main__":
    forbid_core_dumps()
    main()
