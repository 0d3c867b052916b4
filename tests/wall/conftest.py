"""A NATS server of this computer, and a site of it for each test."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wall.archived_day import archive_rows, play
from tests.wall.served_wall import ServedWall, served_wall
from tests.wall.spoken_floor import SpokenFloor

from sabot_floor.connection import Servers
from sabot_session import pin_hash
from sabot_simulators.floor.servers import Site

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server without users. It does not sync: no test here cuts its power."""
    with Site(tmp_path_factory.mktemp("nats"), sync="1m") as site:
        yield site


@pytest.fixture
def spoken(server: Site) -> Iterator[SpokenFloor]:
    """A site whose tables the test speaks for, over a connection of its own."""
    with SpokenFloor(Servers(server.urls), f"w{os.getpid()}-{next(_numbers)}") as floor:
        yield floor


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt with little work: the register keeps the parameters beside each hash."""
    monkeypatch.setattr(pin_hash, "LOG2_N", 4)


@pytest.fixture
def wall(spoken: SpokenFloor) -> Iterator[ServedWall]:
    """A served wall without an archive."""
    with served_wall(spoken) as found:
        yield found


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str, bytes]]:
    """The rows of a record in which two rounds were played."""
    return play(tmp_path_factory.mktemp("day"))


@pytest.fixture
def archive(tmp_path: Path, day: list[tuple[int, str, bytes]]) -> Path:
    """An archive with these rows, of table t07."""
    path = tmp_path / "archive.db"
    archive_rows(path, day)
    return path
