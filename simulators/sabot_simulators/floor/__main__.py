"""``make floor``: servers, tables with simulated people, archive and wall of one site, until Ctrl-C."""

import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_floor.connection import Servers, TableSettings, inbox_of
from sabot_simulators.floor.played_table import PlayedTable
from sabot_simulators.floor.programs import server_words, start_sabot, stop_sabot
from sabot_simulators.floor.servers import Site

SITE = "demo"
START_S = 60.0
FAULTS = ("", "&fault=stuck@insertion:9", "&fault=misfeed@tray:30", "&fault=stuck@exit:20")
"""What goes wrong at every fourth table each, once."""


def main() -> None:
    """Start all of it, print where it is, and end it in order."""
    options = argparse.ArgumentParser(prog="make floor", description=__doc__)
    options.add_argument("--nodes", type=int, choices=(1, 3), default=1, help="NATS servers")
    options.add_argument("--tables", type=int, default=12)
    options.add_argument("--speed", default="1", help="machine seconds a second")
    options.add_argument("--seconds", type=float, default=None, help="end by itself")
    options.add_argument("--folder", type=Path, default=None, help="keep the files here")
    chosen = options.parse_args()
    end = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: end.set())
    with contextlib.ExitStack() as stack:
        folder = chosen.folder
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sabot-floor-")))
        folder.mkdir(parents=True, exist_ok=True)
        site = stack.enter_context(Site(folder / "servers", chosen.nodes))
        to = ("--to", str(folder / "archive.db"), "--replicas", str(chosen.nodes), "--gigabytes", "1")
        archive = start_sabot(folder, "floor", "archive", "--site", SITE, *to, *server_words(site))
        stack.callback(stop_sabot, archive)
        _say(f"servers  {' '.join(site.urls)}")
        _say(f"archive  {folder / 'archive.db'}")
        for line in _start_wall(folder, site, stack, end):
            _say(f"wall     {line}")
        for number in range(1, chosen.tables + 1):
            if end.is_set():
                break
            name = f"t{number:02}"
            servers = Servers(site.urls, inbox=inbox_of(name))
            settings = TableSettings(SITE, name, str(1 + number % 3), servers)
            query = f"speed={chosen.speed}{FAULTS[number % len(FAULTS)]}"
            stack.callback(PlayedTable(folder / name, settings, query).close)
            _say(f"table    {name}")
        _say("End with Ctrl-C.")
        end.wait(chosen.seconds)
        _say("ending")


def _start_wall(folder: Path, site: Site, stack: contextlib.ExitStack, end: threading.Event) -> list[str]:
    """The wall, once the archive is there; what it prints: the address to enter by, and who may sign in."""
    ends = time.monotonic() + START_S
    wall: subprocess.Popen[bytes] | None = None
    while time.monotonic() < ends and not end.is_set():
        if wall is None or wall.poll() is not None:  # the archive's database is not ready yet
            words = ("--archive", str(folder / "archive.db"), "--port", "0", "--demonstration")
            wall = start_sabot(folder, "floor", "serve", "--site", SITE, *words, *server_words(site))
            stack.callback(stop_sabot, wall)
        end.wait(1.0)
        said = (folder / "serve.log").read_text(encoding="utf-8", errors="replace")
        if "/enter#" in said:
            lines = said[said.index("Open in a browser") :].splitlines()
            return [line for line in lines if line.strip()]
    return ["it did not start: see serve.log"]


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    forbid_core_dumps()
    main()
