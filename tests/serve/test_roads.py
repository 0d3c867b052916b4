"""The roads of baccarat: cases written out by hand; `tests/browser` compares with another implementation."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabot_serve.roads import (
    BIG_EYE_BOY,
    COCKROACH_PIG,
    ROWS,
    SMALL_ROAD,
    Mark,
    Result,
    bead_plate,
    big_road,
    derived_marks,
    derived_road,
    streaks,
)

NAMES: dict[str, Result] = {"B": "banker", "P": "player", "T": "tie"}


def shoe(text: str) -> list[Result]:
    return [NAMES[each] for each in text]


def colours(text: str, distance: int) -> str:
    return "".join(each[0] for each in derived_road(shoe(text), distance))


def test_the_bead_plate_goes_down_and_then_right() -> None:
    marks = bead_plate(shoe("BPTBPTB"))
    assert [(each.column, each.row) for each in marks] == [*((0, row) for row in range(6)), (1, 0)]
    assert marks[2].what == "tie"


def test_a_new_column_for_each_change_of_winner_and_ties_at_the_mark_before() -> None:
    assert big_road(shoe("BBTPTTB")) == [
        Mark(0, 0, "banker"),
        Mark(0, 1, "banker", 1),
        Mark(1, 0, "player", 2),
        Mark(2, 0, "banker"),
    ]


def test_ties_before_the_first_winner() -> None:
    assert big_road(shoe("TT")) == [Mark(0, 0, "", 2)]
    assert big_road(shoe("TTBT")) == [Mark(0, 0, "banker", 3)]
    assert big_road([]) == []


def test_a_long_streak_turns_right_at_the_bottom_and_at_another_streak() -> None:
    tail = big_road(shoe("B" * 8))
    assert [(each.column, each.row) for each in tail] == [*((0, row) for row in range(6)), (1, 5), (2, 5)]
    beside = big_road(shoe("B" * 8 + "P" * 7))
    assert [(each.column, each.row) for each in beside[8:]] == [
        *((1, row) for row in range(5)),
        (2, 4),
        (3, 4),
    ]


@pytest.mark.parametrize(
    ("results", "big_eye", "small", "pig"),
    [
        ("B", "", "", ""),
        ("BP", "", "", ""),
        ("BPP", "b", "", ""),  # it begins at the second entry of the second column: the first has no second
        ("BBPP", "r", "", ""),
        ("BBPPP", "rb", "", ""),
        ("BBPPPP", "rbr", "", ""),
        ("BPB", "r", "", ""),  # or at the first entry of the third column: two streaks of one
        ("BBPB", "b", "", ""),
        ("BPBB", "rb", "b", ""),
        ("BPBPB", "rrr", "rr", "r"),
        ("BPBPP", "rrb", "rb", "b"),
        ("BTPTTP", "b", "", ""),  # ties are nothing
    ],
)
def test_derived_roads(results: str, big_eye: str, small: str, pig: str) -> None:
    assert colours(results, BIG_EYE_BOY) == big_eye
    assert colours(results, SMALL_ROAD) == small
    assert colours(results, COCKROACH_PIG) == pig


@given(st.lists(st.sampled_from(get_args(Result)), max_size=90))
def test_every_mark_has_a_place_of_its_own_on_the_sheet(results: list[Result]) -> None:
    for marks in (bead_plate(results), big_road(results), derived_marks(results, BIG_EYE_BOY)):
        places = [(each.column, each.row) for each in marks]
        assert len(set(places)) == len(places)
        assert all(0 <= row < ROWS for _, row in places)
    winners = [each for each in results if each != "tie"]
    assert sum(streaks(results)) == len(winners)
    if winners:
        assert sum(each.ties for each in big_road(results)) == len(results) - len(winners)
