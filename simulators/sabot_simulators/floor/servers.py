"""NATS servers of this computer, for tests, campaigns and ``make floor``: one, or a cluster of three."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sabot_floor.server_files import Server, ServerTls, server_text
from sabot_simulators.free_port import free_port

START_S = 60.0
END_S = 20.0


def server_program() -> str:
    """The NATS server: of this Python's environment, or installed."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError("nats-server is not installed: pip install 'sabot[floor-test]'")
    return found


class RunningServer:
    """One server's process. Its store stays when it is killed."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.program = server_program()
        """What `start` runs; another version may take over the store."""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return at once; `wait` waits until it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "server.conf"
        config.write_text(server_text(self.server), encoding="utf-8")
        with (self.folder / "server.log").open("ab") as out:
            self._process = subprocess.Popen(
                [self.program, "-c", str(config)], stdout=out, stderr=out, start_new_session=True
            )

    def wait(self) -> None:
        """Wait until it is healthy: in a cluster, until its JetStream has caught up."""
        ends = time.monotonic() + START_S
        while time.monotonic() < ends:
            with contextlib.suppress(OSError):
                url = f"http://127.0.0.1:{self.server.http_port}/healthz"
                with urllib.request.urlopen(url, timeout=2) as answer:
                    if answer.status == 200:
                        return
            if self._process is not None and self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{self.server.name} does not serve: {self.log()[-2000:]}")

    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it without a chance to write."""
        self._send(signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        """End it in order."""
        if self.runs:
            self._send(signal.SIGCONT)
            self._send(signal.SIGTERM)
        self._ended()

    def pause(self, paused: bool) -> None:
        """Stop or continue its process."""
        self._send(signal.SIGSTOP if paused else signal.SIGCONT)

    def reload(self) -> None:
        """Have it read its configuration again."""
        self._send(signal.SIGHUP)

    def empty(self) -> None:
        """Delete its store; it must not run."""
        assert not self.runs
        shutil.rmtree(self.server.store, ignore_errors=True)

    def _send(self, number: int) -> None:
        if self.runs:
            os.kill(self.pid, number)

    def _ended(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)


class Site:
    """The servers of one emulated site."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 1,
        *,
        users: Path | None = None,
        tls: ServerTls | None = None,
        sync: str = "always",
        port: int | None = None,
        domain: str | None = None,
        leaf_port: int | None = None,
        headquarters: Sequence[str] = (),
    ) -> None:
        routes = [free_port() for _ in range(nodes)] if nodes > 1 else []
        self.servers: list[RunningServer] = []
        for number in range(nodes):
            home = folder / f"n{number + 1}"
            made = Server(
                name=f"n{number + 1}" if domain is None else f"{domain}-n{number + 1}",
                port=port + number if port else free_port(),
                store=home / "store",
                http_port=free_port(),
                users=None if users is None else os.path.relpath(users, home),
                tls=tls,
                sync=sync,
                domain=domain,
                leaf_port=leaf_port,
                headquarters=headquarters,
            )
            if routes:
                others = [each for each in routes if each != routes[number]]
                made = replace(made, cluster_port=routes[number], routes=others)
            self.servers.append(RunningServer(made, home))
        self._scheme = "tls" if tls is not None else "nats"

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all servers."""
        return tuple(f"{self._scheme}://127.0.0.1:{each.server.port}" for each in self.servers)

    def __enter__(self) -> "Site":
        for each in self.servers:
            each.start()
        try:
            for each in self.servers:
                each.wait()
        except RuntimeError:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every server."""
        for each in self.servers:
            each.stop()
