"""Cards: names, values, and what cannot lie on one table."""

import pytest

from sabot_table.cards import Card, card, cards, check_possible, full_deck
from sabot_table.errors import ImpossibleCards, NotACard


@pytest.mark.rule("MD3 6.B")
@pytest.mark.rule("MDM 6.A")
@pytest.mark.rule("BAC points")
def test_what_cards_are_worth() -> None:
    worth = {str(each)[:-1]: each.value for each in full_deck()}
    assert worth == {
        "A": 1,
        "2": 2,
        "3": 3,
        "4": 4,
        "5": 5,
        "6": 6,
        "7": 7,
        "8": 8,
        "9": 9,
        "10": 0,
        "J": 0,
        "Q": 0,
        "K": 0,
    }


@pytest.mark.rule("MDM 5.G")
def test_what_a_first_card_burns() -> None:
    burns = {str(each)[:-1]: each.burns for each in full_deck()}
    assert [burns[rank] for rank in ("10", "J", "Q", "K", "A", "2", "9")] == [10, 10, 10, 10, 1, 2, 9]


def test_a_ten_is_no_face() -> None:
    assert {str(each)[0] for each in full_deck() if each.is_face} == {"J", "Q", "K"}


def test_cards_are_written_as_people_write_them() -> None:
    assert cards("KH, 10s tc") == (Card(13, "H"), Card(10, "S"), Card(10, "C"))
    assert [card(str(each)) for each in full_deck()] == list(full_deck())


@pytest.mark.parametrize("text", ["", "H", "1H", "KX", "10", "KHH", "♥K"])
def test_what_is_no_card(text: str) -> None:
    with pytest.raises(NotACard, match="such as KH"):
        card(text)
    with pytest.raises(NotACard):
        Card(14, "H")


def test_a_card_is_not_there_more_often_than_the_decks_hold_it() -> None:
    check_possible(cards("KH KS KD"), 1)
    check_possible(cards("KH " * 6), 6)
    with pytest.raises(ImpossibleCards, match="KH is there 2 times and 1 deck holds it"):
        check_possible(cards("KH 2C KH"), 1)
    with pytest.raises(ImpossibleCards, match="KH is there 7 times"):
        check_possible(cards("KH " * 7), 6)
