"""Random edits of a real day's files are found, honest files are not accused (``make evidence-edits``)."""

from pathlib import Path

import pytest
from tests.evidence.campaign import edit_and_verify, verdict
from tests.evidence.day import Day
from tests.sweeps import Amount

from sabot_evidence import verifier

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("moment", ["middle", "end"])
def test_honest_files_are_not_accused(day: Day, tmp_path: Path, moment: str) -> None:
    lines = day.middle if moment == "middle" else day.end
    report = verdict(day.copy(tmp_path, moment), lines)
    assert report is not None
    assert report.code == verifier.OK, report.findings
    report = verdict(day.copy(tmp_path, moment), ())
    assert report is not None
    assert report.code == verifier.OPEN_END


def test_every_random_edit_is_found(day: Day, tmp_path: Path, amount: Amount) -> None:
    missed = []
    for seed in range(amount(100, full=500, campaign=2000)):
        done, found, _ = edit_and_verify(day, tmp_path, seed)
        if not found:
            missed.append((seed, done))
    assert missed == []
