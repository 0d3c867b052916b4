"""Programs of a site in processes of their own: ``sabot floor archive`` and ``sabot floor serve``."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from sabot_driver.user_files import UserFiles
from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import find_service
from sabot_simulators.floor.servers import Site
from sabot_simulators.free_port import free_port

END_S = 20.0
LONG_S = 120.0
ASK_S = 60.0


def server_words(site: Site) -> list[str]:
    """The options that name a site's servers."""
    return [word for url in site.urls for word in ("--server", url)]


def start_sabot(folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    """A ``sabot`` command; a terminal's Ctrl-C does not reach it. Its log is named after the second word."""
    program = [sys.executable, "-c", "from sabot_cli.main import main; main()", *words]
    home = {**os.environ, "SABOT_HOME": str(folder / "home"), "COLUMNS": "200"}
    with (folder / f"{words[1]}.log").open("ab") as out:
        return subprocess.Popen(program, stdout=out, stderr=out, start_new_session=True, env=home)


def stop_sabot(process: "subprocess.Popen[bytes]") -> None:
    """End a program in order."""
    process.terminate()
    wait_or_kill(process, END_S)


def end_child(process: "subprocess.Popen[bytes]") -> None:
    """End a process that runs until its input ends."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    wait_or_kill(process, LONG_S)


def wait_or_kill(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait until a process has ended; kill it if it takes longer."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class WallProgram:
    """The wall of a site as a program; what it shows is read from its metrics."""

    def __init__(self, folder: Path, site: str, servers: Site) -> None:
        """Start it; the archive must be there."""
        self._port = free_port()
        self._home, self._site = UserFiles(folder / "home"), site
        words = ("--archive", str(folder / "archive.db"), "--port", "0", "--demonstration")
        metrics = ("--metrics-port", str(self._port))
        self._process = start_sabot(
            folder, "floor", "serve", "--site", site, *words, *metrics, *server_words(servers)
        )

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def live(self) -> set[str]:
        """The tables whose heartbeats it hears; empty while it does not serve."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except (OSError, urllib.error.URLError):
            return set()
        begin = 'sabot_wall_table_live{table="'
        return {line.split('"')[1] for line in lines if line.startswith(begin) and line.endswith(" 1.0")}

    def wait(self, tables: set[str]) -> str:
        """Wait until it hears these tables; "", or what is wrong."""
        ends = time.monotonic() + LONG_S
        while (heard := self.live()) != tables:
            if time.monotonic() > ends or self._process.poll() is not None:
                return f"the wall hears {', '.join(sorted(heard)) or 'no table'}"
            time.sleep(0.1)
        return ""

    def client(self) -> ServiceClient:
        """Asks it what its pages ask."""
        found = find_service(self._home.table_folder(f"floor-{self._site}"))
        if found is None:
            raise RuntimeError("the wall does not serve")
        return ServiceClient(found, ASK_S)

    def kill(self) -> None:
        """Kill it without a chance to write."""
        self._process.kill()
        self._process.wait()
