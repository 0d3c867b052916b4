"""The ranking of Three Card Baccarat, against a second reading of the text, over all hands."""

from itertools import combinations

import pytest

from sabot_table.cards import card, cards, full_deck
from sabot_table.errors import ImpossibleCards
from sabot_table.hand_ranking import HandRank, rank_hand, showdown

# The ranking as the texts list it, highest first.
LADDER = ["kings", "faces"] + [f"{points}/{faces}" for points in range(9, -1, -1) for faces in (2, 1, 0)]


def rung(names: tuple[str, ...]) -> int:
    """Where a hand stands in the list, from the cards' names alone."""
    ranks = [name[:-1] for name in names]
    if ranks == ["K"] * 3:
        return 0
    faces = sum(rank in ("J", "Q", "K") for rank in ranks)
    if faces == 3:
        return 1
    pips = {"A": 1, "10": 0, "J": 0, "Q": 0, "K": 0}
    total = sum(pips[rank] if rank in pips else int(rank) for rank in ranks)
    while total >= 10:
        total -= 10
    return LADDER.index(f"{total}/{faces}")


@pytest.mark.rule("MD3 6.C")
@pytest.mark.rule("WA3 ranking")
def test_all_22100_hands_rank_as_the_text_lists_them() -> None:
    standings: dict[int, set[HandRank]] = {}
    for hand in combinations(full_deck(), 3):
        standings.setdefault(rung(tuple(map(str, hand))), set()).add(rank_hand(hand))
    assert sum(1 for _ in combinations(full_deck(), 3)) == 22_100
    assert all(len(same) == 1 for same in standings.values()), "one rung, one standing"
    ladder = [standings[each].pop() for each in sorted(standings)]
    assert ladder == sorted(ladder, reverse=True)
    assert len(set(ladder)) == len(ladder) == 32  # every rung is reached


@pytest.mark.rule("MD3 6.A")
def test_the_higher_hand_wins() -> None:
    for higher, lower in (
        ("KH KS KD", "QH QS QD"),
        ("JH QS KD", "9H KH QC"),
        ("8H KH JC", "2D 5C AD"),  # the example of the Washington text
        ("10H 4S 8C", "AC KD 10D"),  # two points, against one with a face
    ):
        hands = showdown(cards(higher), cards(lower))
        assert hands.player > hands.dealer


@pytest.mark.rule("MD3 6.B")
def test_ten_and_twenty_are_nothing() -> None:
    assert rank_hand(cards("2H 3H 5H")).points == 0
    assert rank_hand(cards("9H 9C 2H")).points == 0
    assert rank_hand(cards("10H 10C 10D")) == HandRank(rank_hand(cards("2H 3H 5H")).kind, 0, 0)


def test_a_copy_is_the_same_three_ranks_whatever_the_suits() -> None:
    assert showdown(cards("2H 9S KD"), cards("KC 2D 9H")).copy
    assert not showdown(cards("2H 9S KD"), cards("QC 2D 9H")).copy


@pytest.mark.parametrize("hand", ["KH KS", "KH KS KD KC"])
def test_a_hand_has_three_cards(hand: str) -> None:
    with pytest.raises(ImpossibleCards, match=r"MD3 13\.C"):
        rank_hand(cards(hand))


def test_standings_speak() -> None:
    assert [str(rank_hand(cards(hand))) for hand in ("KH KS KD", "JH KS KD", "9H KS 10D", "9H 8S 2D")] == [
        "three kings",
        "three faces",
        "9 with 1 face",
        "9 with 0 faces",
    ]
    assert card("KH").is_face
