"""Fixtures of the whole system's tests."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from sabot_simulators.whole_system.simulated_disk import SimulatedDisk
from sabot_simulators.whole_system.sqlite_vfs import SimulatedFiles, installed


@pytest.fixture
def files() -> Iterator[SimulatedFiles]:
    """SQLite's files on simulated disks."""
    with installed(Random(1)) as made:
        yield made
    assert made.problems == []


@pytest.fixture
def disk(files: SimulatedFiles, tmp_path: Path) -> SimulatedDisk:
    """The disk that stands for ``tmp_path``."""
    made = files.disks[str(tmp_path)] = SimulatedDisk(Random(2), lambda: 0)
    return made
