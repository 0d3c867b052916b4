"""The evidence: the tests are right about uniform orders, find what is planted, and pass the machine."""

from collections import defaultdict
from functools import cache
from itertools import permutations

import numpy as np
import pytest
import scipy
from tests.sweeps import Amount

from sabot_firmware.height_model import HeightModel
from sabot_simulators.fairness import order_tests as tested
from sabot_simulators.fairness.evidence import gather, judged, successive
from sabot_simulators.fairness.seeded_biases import PLANTS, slots_of
from sabot_simulators.fairness.simulated_shuffles import (
    Orders,
    ShuffleBatch,
    ShuffledBatch,
    ShuffleFailed,
    shuffle_batches,
)

pytestmark = pytest.mark.slow


def uniform(shuffles: int, cards: int, seed: int) -> Orders:
    random = np.random.default_rng(seed)
    return np.argsort(random.random((shuffles, cards)), axis=1).astype(np.int16)


# -- the tests themselves -----------------------------------------------------------------------


@cache
def p_values() -> dict[str, list[float]]:
    """Of 40 sets of orders that are uniform by construction."""
    found = defaultdict(list)
    for seed in range(40):
        for test in tested.judge(uniform(300, 52, seed), np.arange(299)).tests:
            found[test.name].append(test.p)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "card x position", "drift", "adjacent pairs", "rising sequences", "valleys", "fixed points", "runs",
        "colour changes", "guesses, next in line", "guesses, trained", "successive decks", "same as before",
        "top after bottom",
    ],
)  # fmt: skip
@pytest.mark.xdist_group("p_values")
def test_p_values_of_uniform_orders_are_uniform(name: str) -> None:
    assert scipy.stats.kstest(p_values()[name], "uniform").pvalue > 1e-4


@pytest.mark.parametrize("cards", [5, 6])
def test_means_and_variances_are_exact(cards: int) -> None:
    """Every order once: the mean is the expected one to the last digit, the variance the one that is used."""
    orders = np.array(list(permutations(range(cards))), np.int16)
    for make in (tested.drift, tested.rising_sequences, tested.runs, tested.valleys):
        test = make(orders)
        assert test.statistic == pytest.approx(test.expected)
        assert test.p == pytest.approx(1)
    right = tested.guesses_in_line(orders)
    assert right.mean(axis=0) == pytest.approx(1 / np.arange(cards, 0, -1))
    assert tested.card_by_position(orders).statistic == 0
    assert tested.adjacent_pairs(orders).statistic == pytest.approx(0)
    descents = (np.diff(orders, axis=1) < 0).sum(axis=1)
    assert descents.var() == pytest.approx((cards + 1) / 12)


def test_a_uniform_deck_of_52_lets_4_54_cards_be_guessed() -> None:
    test = tested.guess_next_in_line(uniform(400, 52, 1))
    assert round(test.expected, 2) == 4.54


def test_holm_corrects_for_how_many_tests_there_are() -> None:
    tests = [tested.OrderTest(str(p), 0, 0, p, lambda level: 0, "") for p in (0.01, 0.04, 0.03)]
    tested.correct(tests)
    assert [test.p_corrected for test in tests] == pytest.approx([0.03, 0.06, 0.06])


def test_the_bias_said_to_be_found_with_99_percent_is_found_that_often() -> None:
    """A drift of that size, planted into plain numbers, 200 times."""
    shuffles, found = 500, 0
    level = tested.LEVEL / 14
    size = tested.drift(uniform(shuffles, 52, 1)).detectable(level)
    random = np.random.default_rng(2)
    for _ in range(200):
        seen = random.normal(size, 1 / np.sqrt(51 * shuffles))
        found += 2 * scipy.stats.norm.sf(abs(seen) * np.sqrt(51 * shuffles)) < level
    assert found >= 190


def test_only_shuffles_that_follow_each_other_are_paired() -> None:
    assert list(successive([3, 1, 2])) == [0, 1, 4]


# -- the machine and what is planted -------------------------------------------------------------


def test_slots_bring_an_order_about() -> None:
    for order in permutations(range(5)):
        built: list[int] = []
        for card, slot in enumerate(slots_of(list(order))):
            built.insert(slot, card)
        assert built == list(order)


def test_shuffles_of_the_reference_machine_are_uniform(amount: Amount) -> None:
    shuffles = amount(100, full=1000, campaign=2000)
    evidence = gather(shuffles, 52, seed=1, processes=1)
    assert evidence.findings.verdict == "uniform", [(test.name, test.p) for test in evidence.findings.tests]
    assert evidence.orders.shape == (shuffles, 52)


@pytest.mark.parametrize("plant", ["ten-shelves", "lcg32"])
def test_a_planted_bias_is_found(plant: str) -> None:
    evidence = gather(500, 52, seed=1, plant=plant, processes=1, until_flagged=True)
    assert evidence.findings.verdict == "biased"
    assert evidence.flagged_at == 100


def test_ten_shelves_are_guessed_as_the_paper_says() -> None:
    """Diaconis, Fulman and Holmes: about 9.5 cards right, against 4.5, if the player knows the shelves."""
    orders = ShuffleBatch(1, 52, 40, "ten-shelves").run().orders
    assert 7.5 < tested.guess_next_in_line(orders).statistic < 10.5


@pytest.mark.parametrize("plant", PLANTS)
def test_every_plant_shuffles_all_cards(plant: str) -> None:
    orders = ShuffleBatch(1, 52, 2, plant).run().orders
    assert all(sorted(row) == list(range(52)) for row in orders.tolist())


def test_batches_are_shuffled_too_and_pieces_add_up() -> None:
    assert sorted(ShuffleBatch(1, 104, 1).run().orders[0].tolist()) == list(range(104))
    assert [each.shuffles for each in shuffle_batches(250, 52, 1, None)] == [100, 100, 50]
    assert len({each.seed for each in shuffle_batches(2000, 52, 1, None)}) == 20


def test_a_shuffle_that_is_stopped_is_begun_anew_with_every_card(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, times = HeightModel.fits, iter(range(10**6))
    monkeypatch.setattr(HeightModel, "fits", lambda *given: next(times) != 100 and fits(*given))
    made = ShuffleBatch(1, 52, 4).run()
    assert made.stops == 1
    assert all(sorted(row) == list(range(52)) for row in made.orders.tolist())
    monkeypatch.setattr(HeightModel, "fits", lambda *given: False)
    with pytest.raises(ShuffleFailed, match="grip_mismatch at chamber"):
        ShuffleBatch(1, 52, 1).run()


@pytest.mark.parametrize("shuffles", [2, 5, 20])
def test_a_handful_of_shuffles_is_no_reason_for_alarm(shuffles: int) -> None:
    """Approximations for many shuffles must not call a fair machine biased after few."""
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(40):
        orders = np.array([random.permutation(52) for _ in range(shuffles)], dtype=np.int16)
        alarms += judged([ShuffledBatch(orders, 1.0, 0)]).findings.verdict == "biased"
    assert alarms <= 1
