"""Fixtures of the benchmarks' tests."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def figures(root: Path) -> list[dict[str, Any]]:
    """What ``python -m tests.bench --quick --json`` prints."""
    for peer in ("cobs", "pymodbus", "smp"):
        pytest.importorskip(peer)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick", "--json"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]
