"""Points and third cards of mini baccarat, exhaustively, against the text written out again."""

from itertools import product

import pytest

from sabot_table.cards import Card, cards
from sabot_table.coup import Coup, banker_draws, deal_coup, player_draws, points
from sabot_table.errors import ImpossibleCards

# MDM 10.E(3) and the chart of BAC, written out once more: the Banker's total, against the Player's third
# card of 0 ... 9. D draws, S stays.
CHART = {
    0: "DDDDDDDDDD",
    1: "DDDDDDDDDD",
    2: "DDDDDDDDDD",
    3: "DDDDDDDDSD",
    4: "SSDDDDDDSS",
    5: "SSSSDDDDSS",
    6: "SSSSSSDDSS",
    7: "SSSSSSSSSS",
}


@pytest.mark.rule("MDM 10.A")
@pytest.mark.rule("MDM 10.B")
@pytest.mark.rule("BAC third-card")
def test_the_player_draws_below_six_unless_there_is_a_natural() -> None:
    for player, banker in product(range(10), repeat=2):
        natural = player in (8, 9) or banker in (8, 9)
        assert player_draws(player, banker) == (not natural and player in (0, 1, 2, 3, 4, 5))


@pytest.mark.rule("MDM 10.C")
@pytest.mark.rule("MDM 10.D")
def test_the_banker_draws_to_five_when_the_player_stays() -> None:
    for player, banker in product((6, 7), range(10)):
        assert banker_draws(player, banker, None) == (banker in (0, 1, 2, 3, 4, 5))


@pytest.mark.rule("MDM 10.E")
@pytest.mark.rule("BAC third-card")
def test_the_banker_draws_by_the_chart_when_the_player_drew() -> None:
    for player, banker, third in product(range(6), range(8), range(10)):
        assert banker_draws(player, banker, third) == (CHART[banker][third] == "D"), (player, banker, third)


@pytest.mark.rule("MDM 10.A")
def test_nobody_draws_against_a_natural() -> None:
    for player, banker in product(range(10), repeat=2):
        if player >= 8 or banker >= 8:
            assert not player_draws(player, banker)
            assert not banker_draws(player, banker, None)


@pytest.mark.rule("MDM 6.B")
@pytest.mark.rule("MDM 6.C")
@pytest.mark.rule("BAC points")
def test_a_point_count_is_the_right_digit() -> None:
    assert points(cards("7H 6D")) == 3
    assert points(cards("4H 6D")) == 0
    assert points(cards("9H 9D 9C")) == 7
    assert points(cards("KH QD AC")) == 1


@pytest.mark.rule("MDM 8.C")
def test_cards_go_to_player_and_banker_in_turn() -> None:
    assert deal_coup(cards("8H 2H KH 2S")) == Coup(cards("8H KH"), cards("2H 2S"))
    assert deal_coup(cards("2H 3H 3D 4S KC 9C")) == Coup(cards("2H 3D KC"), cards("3H 4S"))
    assert deal_coup(cards("KH 2H KD KS 5C 9C")) == Coup(cards("KH KD 5C"), cards("2H KS 9C"))


def test_too_few_cards_make_no_coup() -> None:
    with pytest.raises(ImpossibleCards, match=r"MDM 8\.C"):
        deal_coup(cards("2H 3H 4H"))
    with pytest.raises(ImpossibleCards, match=r"MDM 13\.E"):
        deal_coup(cards("2H 3H 3D 4S"))


@pytest.mark.rule("MDM 9.C")
@pytest.mark.parametrize(
    ("player", "banker", "clause"),
    [
        ("2H 3H", "2D 3D", r"the Player must have a third card \(MDM 10\.B"),
        ("8H KH 2C", "2D 3D", r"the Player must not have a third card \(MDM 10\.B"),
        ("6H KH", "2D 3D", r"the Banker must have a third card \(MDM 10\.C"),
        ("2H 3H 8C", "KD 3D 2C", r"the Banker must not have a third card \(MDM 10\.C"),
        ("2H 3H 8C 2C", "KD 3D 2C", r"each hand has two or three \(MDM 9\.C"),
        ("2H", "KD 3D 2C", r"each hand has two or three \(MDM 9\.C"),
    ],
)
def test_hands_that_the_rules_cannot_have_dealt(player: str, banker: str, clause: str) -> None:
    with pytest.raises(ImpossibleCards, match=clause):
        Coup(cards(player), cards(banker))


def test_every_draw_of_six_makes_one_coup() -> None:
    by_value = {value: Card(value if value else 10, "S") for value in range(10)}
    for values in product((0, 3, 5, 6, 7, 8), repeat=4):
        coup = deal_coup([by_value[value] for value in (*values, 4, 9)])
        assert 4 <= len(coup.cards) <= 6
        assert coup.totals.player_cards + coup.totals.banker_cards == len(coup.cards)
