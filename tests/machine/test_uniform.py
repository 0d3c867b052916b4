"""Exact, not statistical: for small decks every order comes out equally often, jams or not.

Every sequence of draws there is goes once through the real shuffler half on the simulated machine. If each
order comes out exactly once, uniform draws give uniform orders.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import factorial
from random import Random

import pytest
from tests.machine.shuffler_half import Half, intended

from sabot_firmware import hardware, shuffler
from sabot_simulators.mechanism.physical_cards import new_deck


def all_draws(cards: int) -> Iterator[list[int]]:
    for draws in product(*(range(bound) for bound in range(1, cards + 1))):
        yield list(draws)


@pytest.mark.parametrize("cards", [1, 2, 3, 4, 5, pytest.param(6, marks=pytest.mark.full)])
def test_every_sequence_of_draws_gives_another_order(cards: int) -> None:
    half = Half()
    deck = new_deck(hardware.RED, Random(cards), cards)
    orders: Counter[tuple[int, ...]] = Counter()
    for draws in all_draws(cards):
        orders[tuple(card.number for card in half.shuffle(deck, draws))] += 1
        assert half.asked == list(range(1, cards + 1))  # one draw a card, from as many slots as there are
    assert len(orders) == factorial(cards)
    assert set(orders.values()) == {1}


# A snag at the last card's insertion is not recovered: the half stops and every card is fed again.
JAMS = [("misfeed@tray", 0), ("snag@entry", 0), ("snag@insertion", 1)]


@pytest.mark.parametrize(("jam", "spared"), JAMS)
@pytest.mark.parametrize("cards", [2, 3, 4, *(pytest.param(many, marks=pytest.mark.full) for many in (5, 6))])
def test_a_recovered_jam_at_any_card_changes_nothing(jam: str, spared: int, cards: int) -> None:
    """For each card that may jam, every sequence of draws: 720 for six cards."""
    half = Half()
    for card in range(1, cards + 1 - spared):
        every_order_once(half, cards, jam, card)


def every_order_once(half: Half, cards: int, jam: str, at: int) -> None:
    """Every sequence of draws, with a jam at one card."""
    deck = new_deck(hardware.RED, Random(cards), cards)
    orders: Counter[tuple[int, ...]] = Counter()
    for draws in all_draws(cards):
        half.machine.strike(f"{jam}:{half.machine.faults.cards['tray'] + at}")
        order = half.shuffle(deck, draws)
        assert half.half.retries > 0
        assert [each.number for each in order] == intended(deck, draws)
        orders[tuple(each.number for each in order)] += 1
    assert len(orders) == factorial(cards)
    assert set(orders.values()) == {1}


def test_a_shuffle_that_is_stopped_leaves_no_order_behind() -> None:
    half = Half("stuck@insertion:3")
    deck = new_deck(hardware.RED, Random(1), 5)
    half.draws = [0, 1, 0, 2, 3]
    half.machine.load(list(deck))
    half.begin(5)
    half.run(lambda: half.half.state == shuffler.JAMMED)
    assert half.half.stored_deck == 0
    assert half.machine.store == []
