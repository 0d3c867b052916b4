"""The campaign of answer times: it goes on where it stopped, and its page says what was found."""

from pathlib import Path

import pytest
from rich.console import Console

from sabot_simulators.fairness import answer_times_campaign as campaigns
from sabot_simulators.fairness.answer_times import MODES, PLANTED, STRONGEST, judge, load
from sabot_simulators.fairness.answer_times_campaign import AnswerTimesCampaign

pytestmark = pytest.mark.slow

QUIET = Console(quiet=True)


def test_it_goes_on_where_it_stopped_with_the_same_decks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "SHARE", 2)
    whole = AnswerTimesCampaign(tmp_path / "whole", 1, 3).go_on(STRONGEST, 1, QUIET)
    folder = tmp_path / "stopped"
    AnswerTimesCampaign(folder, 1, 1).go_on(STRONGEST, 1, QUIET)
    (kept,) = folder.rglob("*.jsonl")
    with kept.open("a") as file:
        file.write('{"began_us": 12')  # the process was killed here
    assert AnswerTimesCampaign(folder, 1, 3).go_on(STRONGEST, 1, QUIET) == whole
    assert load(kept) == whole
    assert AnswerTimesCampaign(folder, 2, 1).go_on(STRONGEST, 1, QUIET) != whole[:1]


def test_the_page_names_a_leak_and_a_plant_that_was_not_found(tmp_path: Path) -> None:
    campaign = AnswerTimesCampaign(tmp_path, 1, 4)
    planted = judge(campaign.go_on(PLANTED, 1, QUIET))
    assert planted.leaks
    sound = judge(campaign.go_on(STRONGEST, 1, QUIET))
    assert "No attack finds information" in campaign.page({STRONGEST: sound, PLANTED: planted})
    assert "proves nothing" in campaign.page({STRONGEST: sound, PLANTED: sound})
    told = campaign.page({STRONGEST: sound, MODES[1]: planted, PLANTED: planted})
    assert f"tell something of the slots:** {MODES[1].name}" in told
