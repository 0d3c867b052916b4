"""Tests of shuffled orders against the uniform distribution, each with its p-value and its power.

Every statistic's mean and variance under uniform orders is exact; its p-value rests on the number of
shuffles being large (a few hundred). Names are as the report prints them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sabot_simulators.fairness.simulated_shuffles import Orders

LEVEL = 0.001  # how often a uniform machine is called biased
POWER = 0.99
LEAST_SHUFFLES = 100  # p-values rest on many shuffles; the false alarms were measured from here on
LEAST_EXPECTED = 5  # of a class of a chi-square test, or it is taken together with the next
DECK = 52
RED_CARDS = range(13, 39)  # hearts and diamonds, by their place in a new deck

Floats = NDArray[np.float64]


@dataclass
class OrderTest:
    """One test: the value seen, its p-value under uniform orders, and the bias it would have detected."""

    name: str
    statistic: float
    expected: float
    p: float
    detectable: Callable[[float], float]
    """By the level that is tested at: the deviation that is found with 99 % power."""
    unit: str
    """What the deviation is measured in."""
    p_corrected: float = 1.0
    method: str = ""
    """What is compared, and how."""
    reference: str = ""
    """Where the statistic and its distribution are from."""


@dataclass
class OrderReport:
    """All tests of a set of orders, corrected for how many there are (Holm)."""

    shuffles: int
    cards: int
    tests: list[OrderTest]
    level: float = LEVEL

    @property
    def verdict(self) -> str:
        """``biased`` if any test says so after correction, else ``uniform``; ``too_few`` to say anything.

        ``uniform`` means that no bias was found; ``detectable`` says which bias would have been.
        """
        if self.shuffles < LEAST_SHUFFLES:
            return "too_few"
        return "biased" if any(test.p_corrected < self.level for test in self.tests) else "uniform"

    def detectable(self, test: OrderTest) -> float:
        """The bias that a test would have detected, at the strictest level of the correction."""
        return test.detectable(self.level / len(self.tests))


def judge(orders: Orders, pairs: NDArray[np.intp], level: float = LEVEL) -> OrderReport:
    """Test orders; ``pairs`` are the rows whose next row is the next shuffle of the same deck."""
    tests = [_described(make(orders), make.__doc__) for make in OF_ONE_DECK]
    if len(pairs):
        tests += [_described(make(orders, pairs), make.__doc__) for make in OF_TWO_DECKS]
    correct(tests)
    return OrderReport(len(orders), orders.shape[1], tests, level)


def _described(test: OrderTest, words: str | None) -> OrderTest:
    test.method = " ".join((words or "").split())
    test.reference = REFERENCES[test.name]
    return test


def correct(tests: list[OrderTest]) -> None:
    """Holm's correction: p-values such that the chance of any false alarm is the level of one test."""
    worst = 0.0
    for rank, test in enumerate(sorted(tests, key=lambda each: each.p)):
        worst = max(worst, min(1.0, test.p * (len(tests) - rank)))
        test.p_corrected = worst


# -- tests of one deck --------------------------------------------------------------------------


def card_by_position(orders: Orders) -> OrderTest:
    """Each card is as often at each position: the matrix of counts, (n-1)^2 degrees of freedom."""
    shuffles, cards = orders.shape
    counts = position_counts(orders)
    mean = shuffles / cards
    statistic = float(((counts - mean) ** 2).sum() / mean * (cards - 1) / cards)
    freedom = (cards - 1) ** 2
    unit = "rms of a card's chance at a place"
    return _chi_square("card x position", statistic, freedom, shuffles * cards, unit)


def position_counts(orders: Orders) -> Floats:
    """How often each card (row) was at each position (column)."""
    cards = orders.shape[1]
    flat = orders.astype(np.int64) * cards + np.arange(cards)
    return np.bincount(flat.ravel(), minlength=cards * cards).reshape(cards, cards).astype(float)


def drift(orders: Orders) -> OrderTest:
    """Cards fed late do not tend to the top or the bottom."""
    cards = orders.shape[1]
    centred = np.arange(cards) - (cards - 1) / 2
    each = (orders - (cards - 1) / 2) @ centred
    norm = cards * (cards**2 - 1) / 12
    return _mean_test("drift", each / norm, 0.0, 1 / (cards - 1), "correlation of place fed and place got")


def adjacent_pairs(orders: Orders) -> OrderTest:
    """Each card follows each other one as often; the ends of the deck count as a card.

    With that card the order is a cycle of m = n + 1, uniform among all cycles. Its matrix of successors has
    two variances only, of its symmetric and of its antisymmetric part (by Schur's lemma for S_m).
    """
    shuffles, cards = orders.shape
    m = cards + 1
    ring = np.hstack((np.full((shuffles, 1), cards), orders, np.full((shuffles, 1), cards))).astype(np.int64)
    flat = ring[:, :-1] * m + ring[:, 1:]
    counts = np.bincount(flat.ravel(), minlength=m * m).reshape(m, m).astype(float)
    deviation = counts - shuffles / (m - 1) * (1 - np.eye(m))
    symmetric, antisymmetric = (deviation + deviation.T) / 2, (deviation - deviation.T) / 2
    statistic = float(
        (symmetric**2).sum() * (m - 1) / shuffles
        + (antisymmetric**2).sum() * (m - 1) * (m - 2) / m / shuffles
    )
    freedom = m * m - 3 * m + 1
    return _chi_square("adjacent pairs", statistic, freedom, shuffles * m, "rms of a pair's chance")


def rising_sequences(orders: Orders) -> OrderTest:
    """How many runs of cards, each in the order fed, are laid into each other."""
    cards = orders.shape[1]
    places = np.argsort(orders, axis=1)
    each = (np.diff(places, axis=1) < 0).sum(axis=1) + 1
    return _mean_test("rising sequences", each, (cards + 1) / 2, (cards + 1) / 12, "sequences a deck")


def runs(orders: Orders) -> OrderTest:
    """How many ascending runs there are from top to bottom."""
    cards = orders.shape[1]
    each = (np.diff(orders, axis=1) < 0).sum(axis=1) + 1
    return _mean_test("runs", each, (cards + 1) / 2, (cards + 1) / 12, "runs a deck")


def valleys(orders: Orders) -> OrderTest:
    """How many cards are lower than both neighbours."""
    cards = orders.shape[1]
    step = np.diff(orders, axis=1)
    each = ((step[:, :-1] < 0) & (step[:, 1:] > 0)).sum(axis=1)
    return _mean_test("valleys", each, (cards - 2) / 3, 2 * (cards + 1) / 45, "valleys a deck")


def fixed_points(orders: Orders) -> OrderTest:
    """How many cards are where they were: against the exact distribution, what is rare taken together."""
    shuffles, cards = orders.shape
    each = (orders == np.arange(cards)).sum(axis=1)
    most = 5
    while most > 1 and shuffles * scipy.stats.poisson.sf(most - 1, 1) < LEAST_EXPECTED:
        most -= 1
    seen = np.bincount(np.minimum(each, most), minlength=most + 1)
    chances = scipy.stats.poisson.pmf(np.arange(most), 1)  # exact to 1e-50 for 52 cards
    expected = shuffles * np.append(chances, 1 - chances.sum())
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return _chi_square("fixed points", statistic, most, shuffles, "rms of the share of decks")


def colour_changes(orders: Orders) -> OrderTest:
    """How often the colour changes from card to card."""
    cards = orders.shape[1]
    red = np.isin(np.arange(cards) % DECK, RED_CARDS)
    each = (np.diff(red[orders].astype(np.int8), axis=1) != 0).sum(axis=1)
    twice = 2.0 * red.sum() * (cards - red.sum())
    variance = twice * (twice - cards) / (cards**2 * (cards - 1))
    return _mean_test("colour changes", each, twice / cards, variance, "changes a deck")


def guess_next_in_line(orders: Orders) -> OrderTest:
    """Cards guessed right by going on in the direction of the last two, each card shown after its guess."""
    return _guessing("guesses, next in line", guesses_in_line(orders))


def guesses_in_line(orders: Orders) -> NDArray[np.bool_]:
    """Which guesses of that player are right, by deck and position."""
    shuffles, cards = orders.shape
    right = np.zeros((shuffles, cards), np.bool_)
    rows = np.arange(shuffles)
    # The nearest card not yet shown on either side, as linked lists that shown cards leave; cards are 1 to n.
    above = np.tile(np.arange(1, cards + 3, dtype=np.int16), (shuffles, 1))
    below = np.tile(np.arange(-1, cards + 1, dtype=np.int16), (shuffles, 1))
    up = np.ones(shuffles, np.bool_)
    last = np.zeros(shuffles, np.int16)
    for position in range(cards):
        higher, lower = above[rows, last], below[rows, last]
        none_higher, none_lower = higher > cards, lower < 1
        guess = np.where((up & ~none_higher) | none_lower, higher, lower)
        card = orders[:, position].astype(np.int16) + 1
        right[:, position] = guess == card
        up = card > last
        before, after = below[rows, card], above[rows, card]
        above[rows, np.maximum(before, 0)] = after
        below[rows, np.minimum(after, cards + 1)] = before
        last = card
    return right


def guess_trained(orders: Orders) -> OrderTest:
    """Cards guessed right in every other deck by what the rest showed to be likeliest at each position."""
    cards = orders.shape[1]
    counts = position_counts(orders[::2])
    tried = orders[1::2]
    shown = np.zeros(tried.shape, np.bool_)
    right = np.zeros(tried.shape, np.bool_)
    rows = np.arange(len(tried))
    for position in range(cards):
        guess = np.where(shown, -1.0, counts[:, position]).argmax(axis=1)
        card = tried[:, position]
        right[:, position] = guess == card
        shown[rows, card] = True
    return _guessing("guesses, trained", right)


def _guessing(name: str, right: NDArray[np.bool_]) -> OrderTest:
    """Any way of guessing a card not yet shown is right with probability 1/n, 1/(n-1), ..., 1."""
    chances = 1 / np.arange(right.shape[1], 0, -1)
    variance = float((chances * (1 - chances)).sum())
    return _mean_test(name, right.sum(axis=1), float(chances.sum()), variance, "cards a deck")


def repeated_orders(orders: Orders) -> OrderTest:
    """No order comes twice."""
    shuffles, cards = orders.shape
    repeats = shuffles - len({row.tobytes() for row in orders})
    log_orders = float(np.log(np.arange(1, cards + 1)).sum())
    expected = float(np.exp(min(2 * np.log(max(shuffles, 2)) - np.log(2) - log_orders, 0)))
    p = float(scipy.stats.poisson.sf(repeats - 1, expected)) if repeats else 1.0
    return OrderTest("repeated orders", repeats, expected, p, lambda level: 1.0, "repeats")


# -- tests of two decks that follow each other --------------------------------------------------


def successive_decks(orders: Orders, pairs: NDArray[np.intp]) -> OrderTest:
    """A card's place does not depend on the place that the card fed at the same time got before."""
    cards = orders.shape[1]
    places = np.argsort(orders, axis=1) - (cards - 1) / 2
    each = (places[pairs] * places[pairs + 1]).sum(axis=1) / (cards * (cards**2 - 1) / 12)
    return _mean_test("successive decks", each, 0.0, 1 / (cards - 1), "correlation of two decks")


def same_as_before(orders: Orders, pairs: NDArray[np.intp]) -> OrderTest:
    """One card a deck, on average, is where the one fed at the same time was before."""
    each = (orders[pairs] == orders[pairs + 1]).sum(axis=1)
    test = _mean_test("same as before", each, 1.0, 1.0, "cards a deck")
    total = scipy.stats.poisson(len(pairs))  # few pairs are far from normal
    test.p = min(1.0, 2 * float(min(total.cdf(each.sum()), total.sf(each.sum() - 1))))
    return test


def top_after_bottom(orders: Orders, pairs: NDArray[np.intp]) -> OrderTest:
    """The top card does not follow from the bottom card of the deck before: their difference is even."""
    cards = orders.shape[1]
    difference = (orders[pairs + 1, 0].astype(np.int64) - orders[pairs, -1]) % cards
    mean = len(pairs) / cards
    statistic = float(((np.bincount(difference, minlength=cards) - mean) ** 2).sum() / mean)
    return _chi_square("top after bottom", statistic, cards - 1, len(pairs), "rms of a difference's chance")


PEARSON = "chi-square test: K. Pearson, Philosophical Magazine 50, 1900"
KNUTH = "D. E. Knuth, The Art of Computer Programming 2, 3.3.2"
FEEDBACK = "guesses with feedback: P. Diaconis and R. Graham, Annals of Statistics 9, 1981"
REFERENCES = {
    "card x position": PEARSON,
    "drift": "rank correlation: C. Spearman, American Journal of Psychology 15, 1904",
    "adjacent pairs": PEARSON,
    "rising sequences": "D. Bayer and P. Diaconis, Annals of Applied Probability 2, 1992",
    "valleys": "P. Diaconis, J. Fulman and S. Holmes, Annals of Applied Probability 23, 2013",
    "fixed points": "matches of a permutation: P. R. de Montmort, 1713; " + PEARSON,
    "runs": f"{KNUTH}, run test",
    "colour changes": "A. Wald and J. Wolfowitz, Annals of Mathematical Statistics 11, 1940",
    "guesses, next in line": FEEDBACK,
    "guesses, trained": FEEDBACK,
    "repeated orders": f"{KNUTH}, collision test",
    "successive decks": f"{KNUTH}, serial correlation test",
    "same as before": "matches of two permutations: P. R. de Montmort, 1713",
    "top after bottom": PEARSON,
}
"""Where each statistic is from, by the name of its test."""

OF_ONE_DECK: tuple[Callable[[Orders], OrderTest], ...] = (
    card_by_position, drift, adjacent_pairs, rising_sequences, valleys, fixed_points, runs, colour_changes,
    guess_next_in_line, guess_trained, repeated_orders,
)  # fmt: skip
OF_TWO_DECKS: tuple[Callable[[Orders, NDArray[np.intp]], OrderTest], ...] = (
    successive_decks, same_as_before, top_after_bottom,
)  # fmt: skip


# -- p-values and power -------------------------------------------------------------------------


def _mean_test(name: str, each: NDArray[Any], mean: float, variance: float, unit: str) -> OrderTest:
    """The mean of a statistic of each deck, two-sided."""
    seen = float(np.mean(each))
    error = sqrt(variance / len(each))
    p = float(2 * scipy.stats.norm.sf(abs(seen - mean) / error))

    def detectable(level: float) -> float:
        return float((scipy.stats.norm.isf(level / 2) + scipy.stats.norm.isf(1 - POWER)) * error)

    return OrderTest(name, seen, mean, p, detectable, unit)


def _chi_square(name: str, statistic: float, freedom: int, scale: float, unit: str) -> OrderTest:
    """A chi-square statistic; a relative deviation of rms e everywhere makes it greater by ``scale`` e^2."""

    def detectable(level: float) -> float:
        limit = scipy.stats.chi2.isf(level, freedom)

        def missed(excess: float) -> float:
            return float(scipy.stats.ncx2.cdf(limit, freedom, excess) - (1 - POWER))

        most = 10.0
        while missed(most) > 0:
            most *= 2
        return sqrt(float(scipy.optimize.brentq(missed, 1e-6, most)) / scale)

    return OrderTest(
        name, statistic, float(freedom), float(scipy.stats.chi2.sf(statistic, freedom)), detectable, unit
    )
