"""Fixtures of the simulators' tests."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What ``make demo``'s first part printed, and the folder it ran in."""
    folder = tmp_path_factory.mktemp("play")
    command = [sys.executable, "-m", "sabot_simulators.wire_demo"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout, folder
