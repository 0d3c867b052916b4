"""Fixtures of the tests of the laboratory's package."""

from pathlib import Path

import pytest
from tests.driver.command import Sabot
from tests.lab.checkout import Checkout


@pytest.fixture
def sabot(capsys: pytest.CaptureFixture[str], home: Path) -> Sabot:
    """Runs a command in this process."""
    return Sabot(capsys)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A small project in git, with the pages of this one."""
    return Checkout(tmp_path / "source")
