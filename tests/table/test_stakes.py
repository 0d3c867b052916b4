"""Files of wagers, and every wager at once."""

import pytest
from tests.table.operators import with_royal_9

from sabot_table.errors import BadWagers, WagerRefused
from sabot_table.ruleset import load, names
from sabot_table.wager_acceptance import every_wager, read_wagers

MD3 = load("md-three-card-baccarat")


def test_a_file_gives_wagers_seat_by_seat() -> None:
    text = "[1]\nante = 2500\n[3]\nante = 1000\ndragon-bonus = 500\n"
    assert read_wagers(MD3, text) == {1: {"ante": 2500}, 3: {"ante": 1000, "dragon-bonus": 500}}


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("[1", BadWagers, "bets.toml: .*correct the file's syntax"),
        ("ante = 2500", BadWagers, "'ante' is no seat"),
        ("1 = 2500", BadWagers, "'1' is no seat"),
        ("[dealer]\nante = 2500", BadWagers, "'dealer' is no seat"),
        ("[9]\nante = 2500", WagerRefused, "no such seat"),
        ("[1]\nante = 25.5", WagerRefused, "25.5 is no amount"),
        ("[1]\nante = -2500", WagerRefused, "-2500 is no amount"),
        ("[1]\ntie = 2500", WagerRefused, "without ante"),
        ("[1]\nplayer = 2500", WagerRefused, "is not offered"),
    ],
)
def test_a_bad_file_of_wagers(text: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        read_wagers(MD3, text, "bets.toml")


@pytest.mark.parametrize("name", names())
def test_every_seat_may_make_every_wager(name: str) -> None:
    rules = load(name)
    wagers = every_wager(rules)
    assert set(wagers) == set(rules.clockwise())
    assert all(tuple(made) == rules.offered for made in wagers.values())


def test_royal_9_has_its_own_stake() -> None:
    assert every_wager(with_royal_9())[1]["royal-9"] == 500
