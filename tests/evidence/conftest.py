"""Fixtures of the tests of evidence."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver.command import Sabot
from tests.evidence.day import Day, play_day
from tests.evidence.device_chain import ChainedDevice
from tests.evidence.failing_database import Failing

from sabot_driver import Journal
from sabot_session.record import SqliteRecord


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A day with a power cut; tests edit copies of its files."""
    return play_day(tmp_path_factory.mktemp("day") / "played")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Failing]]:
    """Journals and records are opened with databases that can fail."""

    def begin(self: SqliteRecord, path: Any) -> None:
        real(self, path)
        self._db.close()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Failing)

    real = SqliteRecord._begin
    monkeypatch.setattr(SqliteRecord, "_begin", begin)
    monkeypatch.setattr(
        Journal,
        "_connect",
        staticmethod(
            lambda path: sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Failing)
        ),
    )
    Failing.left = 0
    yield Failing
    Failing.left = 0


@pytest.fixture
def chained() -> ChainedDevice:
    """A device that has made twenty events, with a checkpoint as the 17th."""
    made = ChainedDevice()
    made.located(14)
    made.checkpoint()
    made.located(3)
    return made


@pytest.fixture
def sabot(capsys: pytest.CaptureFixture[str]) -> Sabot:
    """Runs a command in this process."""
    return Sabot(capsys)


@pytest.fixture
def floor(sabot: Sabot, tmp_path: Path) -> tuple[Path, Path, str]:
    """The floor's key file, the file it keeps, and its public key."""
    key = tmp_path / "floor.pem"
    ran = sabot("evidence", "new-key", key, "--json")
    assert ran.code == 0
    assert key.stat().st_mode & 0o777 == 0o600
    return key, tmp_path / "floor.jsonl", ran.lines[0]["public"]
