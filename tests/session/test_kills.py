"""The program is killed again and again in a day: the record is that of an undisturbed day."""

from pathlib import Path

import pytest
from tests.session.kill_days import differences, play
from tests.session.killed_table import Day
from tests.sweeps import Amount

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "day",
    [Day("md-three-card-baccarat", 3), pytest.param(Day("md-mini-baccarat", 5), marks=pytest.mark.full)],
    ids=lambda day: day.rules,
)
def test_a_killed_day_is_the_undisturbed_day(tmp_path: Path, amount: Amount, day: Day) -> None:
    calm = play(tmp_path / "calm", day, 0, 0, 0)
    killed = play(tmp_path / "killed", day, amount(2, full=20), calm.rows, 1)
    assert differences(calm, killed) == []
    assert calm.kills == 0 < killed.kills
