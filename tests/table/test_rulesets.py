"""Rule sets: what is packaged, what an operator may change, and what is wrong with bad ones."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.table.operators import royal_9_data, with_royal_9

from sabot_table.errors import RuleSetError, TableError, UnknownRuleSet, UnknownWager
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load, names, parse

NINE = (
    "baccarat-six-deck", "md-ez-baccarat", "md-five-treasures-baccarat", "md-fortune-7-baccarat",
    "md-mini-baccarat", "md-no-commission-baccarat", "md-three-card-baccarat",
    "md-three-card-baccarat-commission-free", "wa-three-card-baccarat",
)  # fmt: skip


def data(name: str) -> dict[str, Any]:
    return copy.deepcopy(load(name).model_dump(mode="json"))


def test_the_nine_rule_sets_are_packaged_and_sound() -> None:
    assert names() == NINE
    hashes = {load(name).sha256 for name in names()}
    assert len(hashes) == len(NINE)
    assert all(len(each) == 64 for each in hashes)


@pytest.mark.rule("MD3 3.C")
@pytest.mark.rule("MDM 3.C")
def test_hours_by_method() -> None:
    md3, mini = load("md-three-card-baccarat"), load("md-mini-baccarat")
    assert [md3.hours(each) for each in DealingMethod] == [8, 8, 4]
    assert mini.hours(DealingMethod.MANUAL_SHOE) == 24
    assert load("wa-three-card-baccarat").hours(DealingMethod.AUTOMATED_SHOE) is None


def test_clockwise_begins_at_the_dealers_left() -> None:
    assert load("md-three-card-baccarat").clockwise() == (1, 2, 3, 4, 5, 6)
    assert load("md-mini-baccarat").clockwise() == (9, 8, 7, 6, 5, 4, 3, 2, 1)


def test_the_hash_is_of_all_that_decides_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "same.toml"
    base = load("md-mini-baccarat")
    path.write_text(f'extends = "md-mini-baccarat"\nname = "{base.name}"\n# a remark\n', encoding="utf-8")
    assert load(path).sha256 == base.sha256
    for change in (
        {"wagers": {"lucky-nines": {"paytable": "B"}}},
        {"vigorish": {"rounding": "up25"}},
        {"name": "other"},
        {"seats": {"count": 7}},
        {"wagers": {"tie": {"pays": 9}}},
        {"wagers": {"lucky-6": {"offered": False}}},
    ):
        changed = data("md-mini-baccarat")
        for key, value in change.items():
            if isinstance(value, dict):
                for inner, over in value.items():
                    changed[key][inner] = changed[key][inner] | over if isinstance(over, dict) else over
            else:
                changed[key] = value
        assert parse(changed).sha256 != base.sha256, change


def test_an_operators_file_extends_a_rule_set_or_another_file(tmp_path: Path) -> None:
    (tmp_path / "house.toml").write_text(
        """
        extends = "md-mini-baccarat"
        name = "house-mini"
        [cards]
        decks = 6
        [vigorish]
        rounding = "up25"
        collected = "marked"
        [options]
        disclosed_third = "simulated-round"
        [wagers]
        lucky-6 = { offered = false }
        jackpot = { paytable = "C" }
        """,
        encoding="utf-8",
    )
    (tmp_path / "pit-2.toml").write_text(
        'extends = "house.toml"\nname = "pit-2"\n[seats]\ncount = 7\n', encoding="utf-8"
    )
    rules = load(tmp_path / "pit-2.toml")
    assert (rules.name, rules.cards.decks, rules.seats.count, rules.cards.hours_shoe) == ("pit-2", 6, 7, 24)
    assert (rules.vigorish.rounding, rules.vigorish.collected) == ("up25", "marked")
    assert "lucky-6" not in rules.offered
    assert rules.paytable("jackpot").letter == "C"
    with pytest.raises(UnknownWager, match="pit-2 offers no"):
        rules.paytable("lucky-6")


def change(*path_and_value: Any) -> Callable[[dict[str, Any]], None]:
    *path, last, value = path_and_value

    def apply(rules: dict[str, Any]) -> None:
        for key in path:
            rules = rules[key]
        if value is KeyError:
            del rules[last]
        else:
            rules[last] = value

    return apply


MD3, MINI, WA3 = "md-three-card-baccarat", "md-mini-baccarat", "wa-three-card-baccarat"
BAD = [
    (MD3, change("cards", "decks", 2), "cards.decks", "is 2", "give 1 (MD3 3.A)"),
    (MINI, change("cards", "decks", 9), "cards.decks", "is 9", "give 6 to 8 (MDM 3.A)"),
    (MINI, change("cards", "decks", "8"), "cards.decks", "is '8'", "correct the value"),
    (MINI, change("cards", "decks", KeyError), "cards.decks", "is missing", "add it"),
    (MD3, change("seats", "count", 7), "seats.count", "is 7", "give 6 (MD3 2.A)"),
    (MINI, change("seats", "count", 10), "seats.count", "is 10", "give 1 to 9 (MDM 2.A)"),
    (MINI, change("seats", "count", 0), "seats.count", "is 0", "correct the value"),
    (MINI, change("seats", "seat_one", "left"), "seats.seat_one", "is 'left'", "correct the value"),
    (MD3, change("cards", "hours_shoe", 9), "cards.hours_shoe", "is 9", "give 8 at most (MD3 3.C)"),
    (MD3, change("cards", "hours_hand", None), "cards.hours_hand", "is missing", "give 4 at most (MD3 3.C)"),
    (MINI, change("cards", "hours_shoe", 25), "cards.hours_shoe", "is 25", "give 24 at most (MDM 3.C)"),
    (
        MINI,
        change("dealing", "methods", ["hand"]),
        "dealing.methods",
        "MDM has no 'hand'",
        "automated-shoe (MDM 8)",
    ),
    (MINI, change("dealing", "methods", []), "dealing.methods", "is []", "correct the value"),
    (MINI, change("dealing", "methods", ["boat"]), "dealing.methods.0", "is 'boat'", "correct the value"),
    (MD3, change("vigorish", "collected", "marked"), "vigorish.collected", "'marked'", "(MD3 12.A)"),
    (MINI, change("vigorish", "rounding", "down"), "vigorish.rounding", "is 'down'", "correct the value"),
    (MINI, change("wagers", "panda-8", {}), "wagers.panda-8", "no such wager", "choose among banker, player"),
    (
        MINI,
        change("wagers", "jackpot", {"paytable": "F"}),
        "wagers.jackpot",
        "no paytable F",
        "A, B, C, D, E",
    ),
    (MINI, change("wagers", "jackpot", {}), "wagers.jackpot", "no paytable is chosen", "(MDM 12.M)"),
    (
        MINI,
        change("wagers", "lucky-6", {"paytable": "A"}),
        "wagers.lucky-6",
        "no paytable A",
        "leave paytable out",
    ),
    (MINI, change("wagers", "tie", {"pays": 7}), "wagers.tie.pays", "is 7", "give 8 at least (MDM 12.B)"),
    (MINI, change("wagers", "player", {"pays": 2}), "wagers.player.pays", "the text fixes", "leave it out"),
    (MINI, change("wagers", "banker", {"offered": False}), "wagers.banker", "is missing", "offer it"),
    (MD3, change("wagers", "ante", KeyError), "wagers.ante", "is missing", "offer it"),
    (MINI, change("wagers", "royal-9", {"paytable": "A"}), "wagers.royal-9", "without stake", "or neither"),
    (
        WA3,
        change("components", "i-Deal", "RNG", "x"),
        "components.i-Deal.RNG",
        "'x' is not a version",
        "numbers",
    ),
    (MINI, change("text", "NJ"), "text", "is 'NJ'", "give one of BAC, MD3, MDM, WA3"),
    (MINI, change("variant", "wild"), "variant", "MDM has no 'wild'", "give one of standard, ez"),
    (
        MINI,
        change("colour", "red"),
        "colour",
        "is not a key of this file",
        "remove it or correct its spelling",
    ),
    (MINI, change("cards", "deck", 8), "cards.deck", "is not a key of this file", "remove it"),
]


@pytest.mark.rule("MD3 2.A")
@pytest.mark.rule("MDM 2.A")
@pytest.mark.rule("MDM 3.A")
@pytest.mark.rule("MDM 12.D")
@pytest.mark.parametrize(("name", "apply", "where", "what", "do"), BAD, ids=[each[2] for each in BAD])
def test_a_bad_rule_set_says_what_where_and_what_to_do(
    name: str, apply: Callable[[dict[str, Any]], None], where: str, what: str, do: str
) -> None:
    rules = data(name)
    apply(rules)
    with pytest.raises(RuleSetError) as error:
        parse(rules, "house.toml")
    problem = next(each for each in error.value.problems if each.where == where)
    assert what in problem.what
    assert do in problem.do
    assert str(error.value).startswith("house.toml: ")


def test_everything_wrong_is_told_at_once() -> None:
    rules = data(MINI)
    rules["cards"]["decks"], rules["seats"]["count"] = 12, 20
    with pytest.raises(RuleSetError) as error:
        parse(rules)
    assert [each.where for each in error.value.problems] == ["cards.decks", "seats.count"]


ROYAL = [
    (change("royal_9", "star", "initial_cents", 4_999_999), "royal_9.star.initial_cents", "5000000 at least"),
    (change("royal_9", "heart", "reset_cents", 34_999), "royal_9.heart.reset_cents", "35000 at least"),
    (change("royal_9", "stake_cents", 2_501), "royal_9.stake_cents", "2500 at most"),
    (change("royal_9", "stake_cents", 0), "royal_9.stake_cents", "correct the value"),
    (change("royal_9", "personal", "3", KeyError), "royal_9.personal", "each of the seats 1 to 9"),
    (change("royal_9", "personal", "3", "KH 9H"), "royal_9.personal.3", "every seat another one"),
    (change("royal_9", "personal", "3", "QH 9H"), "royal_9.personal.3", "a king and a nine"),
    (change("royal_9", "personal", "3", "9H"), "royal_9.personal.3", "a king and a nine"),
    (change("royal_9", "personal", "3", "K9"), "royal_9.personal.3", "a king and a nine"),
    (change("royal_9", "must_hit", "maximum_cents", 19_999), "royal_9.must_hit", "(MDM 12.O)"),
    (change("royal_9", "must_hit", "initial_cents", 20_001), "royal_9.must_hit.initial_cents", "to maximum"),
    (change("royal_9", None), "wagers.royal-9", "or neither"),
    (change("wagers", "royal-9", KeyError), "wagers.royal-9", "or neither"),
]  # fmt: skip


@pytest.mark.rule("MDM 12.L")
@pytest.mark.rule("MDM 12.O")
@pytest.mark.parametrize(("apply", "where", "do"), ROYAL, ids=[each[1] + each[2] for each in ROYAL])
def test_royal_9_needs_its_stake_king_nines_meters_and_rates(
    apply: Callable[[dict[str, Any]], None], where: str, do: str
) -> None:
    rules = copy.deepcopy(royal_9_data())
    apply(rules)
    with pytest.raises(RuleSetError) as error:
        parse(rules)
    assert do in next(each for each in error.value.problems if each.where == where).do


@pytest.mark.rule("MDM 12.L")
def test_the_least_amounts_depend_on_the_paytable() -> None:
    rules = copy.deepcopy(royal_9_data("B"))
    rules["royal_9"]["star"]["initial_cents"] = rules["royal_9"]["star"]["reset_cents"] = 2_500_000  # type: ignore[index]
    assert parse(rules).royal_9 is not None
    rules["wagers"]["royal-9"]["paytable"] = "C"  # type: ignore[index]
    with pytest.raises(RuleSetError, match="5000000 at least"):
        parse(rules)
    assert with_royal_9("C", must_hit=False).royal_9 is not None


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("name = ", "TOML"),
        ('extends = "md-mini-baccarat"', "name: is missing; give the extended rule set a name of its own"),
        ('extends = 3\nname = "x"', "extends: is 3"),
        ('extends = "nowhere.toml"\nname = "x"', "no rule set 'nowhere.toml'"),
        ('extends = "house.toml"\nname = "x"', "runs in a circle"),
        ('name = "x"', "cards: is missing"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "house.toml").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=match):
        load(tmp_path / "house.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "house.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(RuleSetError, match="save the file as UTF-8"):
        load(tmp_path / "house.toml")
    with pytest.raises(UnknownRuleSet, match="give one of these names"):
        load("md-poker")
