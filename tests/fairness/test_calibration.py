"""The grip is calibrated from the stack that lies there: swollen, worn, warped cards come out as drawn."""

from collections import Counter
from random import Random

import pytest
from tests.fairness.grip import RIGHT, WRONG, outcome
from tests.machine.shuffler_half import Half, intended

from sabot_firmware import hardware
from sabot_firmware.height_model import HeightModel
from sabot_simulators.mechanism.physical_cards import new_deck, swell

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("share", [-0.2, -0.1, -0.02, 0.02, 0.08])
def test_a_deck_that_has_swollen_or_worn_comes_out_as_drawn(share: float) -> None:
    found = Counter(outcome(seed, share) for seed in range(25))
    assert found[WRONG] == 0
    assert found[RIGHT] >= 23, found  # at 20 % a stop is allowed now and then


@pytest.mark.parametrize(("warped", "by_um"), [(1, 60), (3, 45), (20, 30)])
def test_cards_a_little_warped_come_out_as_drawn(warped: int, by_um: int) -> None:
    found = Counter(outcome(seed, 0, warped, by_um) for seed in range(25))
    assert found[WRONG] == 0
    assert found[RIGHT] >= 22, found


@pytest.mark.parametrize(("warped", "by_um"), [(5, 100), (10, 130), (52, 140)])
def test_a_deck_too_warped_is_stopped_not_shuffled_wrongly(warped: int, by_um: int) -> None:
    found = Counter(outcome(seed, 0, warped, by_um) for seed in range(25))
    assert found[WRONG] == 0
    if warped < 52:  # all of them warped alike are thick cards, no more
        assert found[RIGHT] <= 12, found


def test_a_deck_that_drifts_from_shuffle_to_shuffle_is_measured_anew_each_time() -> None:
    half, random = Half(), Random(1)
    deck = new_deck(hardware.RED, random)
    for number in range(24):
        swell(deck, -0.02 if number < 12 else 0.02)
        draws = [random.randrange(bound) for bound in range(1, 53)]
        assert [card.number for card in half.shuffle(deck, draws)] == intended(deck, draws)
    assert half.machine.removed == []


@pytest.mark.parametrize("share", [-0.15, 0, 0.08])
def test_blades_a_card_off_are_seen_at_any_thickness(share: float) -> None:
    for seed in range(6):
        assert outcome(seed, share, lost_steps=True) == "grip_mismatch"


def test_without_the_check_blades_a_card_off_would_not_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeightModel, "fits", lambda stack, below, height_um: True)
    assert {outcome(seed, lost_steps=True) for seed in range(6)} & {WRONG, "height_mismatch"}


def test_without_calibration_a_drift_of_ten_percent_would_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeightModel, "gap_um", lambda stack, below: 300 * below)
    assert all(outcome(seed, -0.1) != RIGHT for seed in range(6))
