"""The program is killed again and again in a day: the record is that of an undisturbed day."""

from pathlib import Path

import pytest
from tests.session.kill_days import day
from tests.sweeps import Amount

pytestmark = pytest.mark.slow


def test_a_killed_day_is_the_undisturbed_day(tmp_path: Path, amount: Amount) -> None:
    calm = day(tmp_path / "calm", 0, 0)
    killed = day(tmp_path / "killed", amount(3, full=20), 1)
    assert sorted(map(repr, killed)) == sorted(map(repr, calm))
