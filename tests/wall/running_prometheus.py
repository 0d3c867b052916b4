"""A real Prometheus of this computer that scrapes what a test offers."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.plain_http import NO_TLS

PATIENCE_S = 60.0
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: {job}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def program(name: str) -> str:
    """An installed program of Prometheus; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install prometheus")
    return found


class Prometheus:
    """Its API."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **asked: str) -> Any:
        answer = httpx.get(f"{self._address}/api/v1/{path}", params=asked, timeout=30, verify=NO_TLS)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def wait(self, expression: str) -> list[dict[str, Any]]:
        """What an expression gives, once it gives something."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            found = self.query(expression)
            if found:
                return found
            time.sleep(0.2)
        raise AssertionError(expression)


@contextmanager
def prometheus(folder: Path, rules: Path, port: int, job: str = "sabot-wall") -> Iterator[Prometheus]:
    """Run it until the block ends; it scrapes a port of this computer every second."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(rules=rules, port=port, job=job), encoding="utf-8")
    words = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={listen}",
    ]
    with (folder / "prometheus.log").open("wb") as out:
        process = subprocess.Popen([program("prometheus"), *words], stdout=out, stderr=out)
    try:
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends and process.poll() is None:
            with suppress(httpx.TransportError):
                if httpx.get(f"http://{listen}/-/ready", verify=NO_TLS).status_code == 200:
                    break
            time.sleep(0.1)
        yield Prometheus(f"http://{listen}")
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
