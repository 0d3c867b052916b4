"""The campaign with bursts of faults: it can be interrupted, and its page says what it found."""

from concurrent.futures import Future
from pathlib import Path
from random import Random

import pytest

from sabot_simulators import soak_campaign
from sabot_simulators.mechanism.faults import KINDS
from sabot_simulators.soak_campaign import APART, BURST, BURSTS, Campaign, Line, bursts, page, share

FOREVER = float("inf")


def played(seed: int, first: int) -> Line:
    """A share that nobody played."""
    numbers = dict.fromkeys(soak_campaign.NUMBERS, 10) | {"gave_up": 0, "first": first, "seconds": 1.0}
    return numbers | {"faults": {"misfeed": 3}, "wrong": {}, "unseen": {"composition": 2}, "where": []}


class Pool:
    """Plays shares in this process."""

    def __init__(self, processes: int, context: object) -> None:
        self.asked: list[int] = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def submit(self, play: object, seed: int, first: int) -> "Future[Line]":
        done: Future[Line] = Future()
        done.set_result(played(seed, first))
        return done


def without_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Shares are played in this process; the file that keeps them."""
    monkeypatch.setattr(soak_campaign, "ProcessPoolExecutor", Pool)
    return tmp_path / "kept.jsonl"


def test_a_burst_is_two_to_four_faults_within_a_few_cards() -> None:
    for seed in range(200):
        planned = bursts(Random(seed))
        assert BURST[0] * BURSTS[0] <= len(planned) <= BURST[1] * BURSTS[1]
        if len(planned) < 2 * BURST[0]:  # of one burst
            cards = [each.card // (2 if each.place == "controller" else 1) for each in planned if each.card]
            assert max(cards) - min(cards) <= APART
        assert all(each.place in KINDS[each.kind][1] for each in planned)


@pytest.mark.slow
def test_a_share_says_what_it_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak_campaign, "SHARE", 2)
    line = share(1, 0)
    assert (line["tables"], line["first"], line["wrong"], line["where"]) == (2, 0, {}, [])
    assert line["rounds"] > 2
    assert share(1, 0) | {"seconds": 0} == line | {"seconds": 0}  # the same again from the same seed


def test_an_interrupted_campaign_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = without_processes(tmp_path, monkeypatch)
    first = Campaign(1, kept)
    first.run(50, 2, 0.0)  # out of time at once: what was begun is finished
    assert [line["first"] for line in first.lines] == [0, soak_campaign.SHARE]
    with kept.open("a") as file:
        file.write('{"half a line')
    second = Campaign(1, kept)
    assert second.rounds() == 20
    second.run(50, 1, FOREVER)
    assert second.rounds() == 50
    assert len({line["first"] for line in second.lines}) == 5
    assert Campaign(1, kept).rounds() == 50


def test_another_seed_or_commit_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = without_processes(tmp_path, monkeypatch)
    Campaign(1, kept).run(10, 1, FOREVER)
    assert Campaign(2, kept).rounds() == 0
    monkeypatch.setattr(soak_campaign, "commit", lambda: "another")
    assert Campaign(1, kept).rounds() == 0


def test_the_page_names_what_was_wrong_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(1, without_processes(tmp_path, monkeypatch))
    campaign.run(30, 1, FOREVER)
    assert "| rounds | 30 of 40: it was interrupted" in page(campaign, "2026-11-17", "", 40)
    clean = page(campaign, "2026-11-17", "| plant | table |", 30)
    assert "| rounds | 30 |" in clean
    assert "| **wrong claims without an excuse** | **0** |" in clean
    assert "| plant | table |" in clean
    campaign.lines[1] |= {"wrong": {"52 in the shoe: misfeed@shoe": 2}, "where": [41]}
    told = page(campaign, "2026-11-17", "")
    assert "**2**" in told
    assert "2 x 52 in the shoe: misfeed@shoe" in told
    assert "Tables to look at: 41." in told
