"""Fixtures of the tests of evidence."""

import pytest
from tests.evidence.day import Day, play_day


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A day with a power cut; tests edit copies of its files."""
    return play_day(tmp_path_factory.mktemp("day") / "played")
