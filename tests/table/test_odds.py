"""Exact odds: sums, published figures, and second counts written from the text that share no code."""

import json
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod

import pytest
from tests.table import outcomes
from tests.table.operators import KING_NINES, with_royal_9

from sabot_table.errors import UnknownWager, WrongDecks
from sabot_table.odds import WagerOdds, odds
from sabot_table.ruleset import load, names

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("odds")]  # sums of a rule set are kept

EIGHT = 8
ORDERED_SIX_OF_416 = 4_998_398_275_503_360
THREE_CARD_PAIRS = 22_100 * 18_424
ALL = [(name, None) for name in names()] + [("md-mini-baccarat", 6), ("royal", None)]


def find(name: str, wager: str, letter: str | None = None, decks: int | None = None) -> WagerOdds:
    rules = with_royal_9() if name == "royal" else load(name)
    return next(each for each in odds(rules, decks, wager) if each.paytable == letter)


def ways(of: WagerOdds) -> dict[str, int]:
    return {each.name: each.ways for each in of.outcomes}


@pytest.mark.parametrize(
    ("name", "decks"), [*ALL, pytest.param("md-mini-baccarat", 7, marks=pytest.mark.full)]
)
def test_outcomes_are_disjoint_and_add_up(name: str, decks: int | None) -> None:
    rules = with_royal_9() if name == "royal" else load(name)
    for each in odds(rules, decks):
        size = 52 * each.decks
        lines = [outcome.name for outcome in each.outcomes]
        assert len(set(lines)) == len(lines)
        assert lines[-1] == "lose"
        assert each.outcomes[-1].pays == -1
        expected = {
            "any-pair-player": comb(size, 2), "any-pair-banker": comb(size, 2),
            "lucky-nines": comb(size, 4), "jackpot": comb(size, 4),
            "royal-9": comb(size, 2) * comb(size - 2, 2),
        }.get(each.wager, THREE_CARD_PAIRS if size == 52 else prod(range(size - 5, size + 1)))  # fmt: skip
        assert each.total == sum(outcome.ways for outcome in each.outcomes) == expected
        assert all(outcome.ways for outcome in each.outcomes), each


@pytest.mark.parametrize("name", names())
def test_every_wager_and_letter_of_the_text_is_told(name: str) -> None:
    told = {(each.wager, each.paytable) for each in odds(load(name))}
    assert told == set(outcomes.BY_RULE_SET[name])


@pytest.mark.parametrize(
    ("name", "wager", "letter", "percent"),
    [
        ("md-mini-baccarat", "banker", None, "1.0579"),
        ("md-mini-baccarat", "player", None, "1.2351"),
        ("md-mini-baccarat", "tie", None, "14.3596"),
        ("md-ez-baccarat", "dragon-7", None, "7.6113"),
        ("md-ez-baccarat", "panda-8", None, "10.1876"),
        ("md-ez-baccarat", "banker", None, "1.0183"),
        ("md-no-commission-baccarat", "banker", None, "1.4581"),
        ("md-mini-baccarat", "dragon-bonus-player", "A", "2.6517"),
        ("md-mini-baccarat", "dragon-bonus-banker", "A", "9.3731"),
        ("wa-three-card-baccarat", "three-kings", None, "4.2534"),  # "4.3 %" in the text
        ("wa-three-card-baccarat", "tie", None, "5.2850"),  # "5.3 %" in the text
        ("baccarat-six-deck", "banker", None, "1.0558"),
        ("baccarat-six-deck", "player", None, "1.2374"),
        ("baccarat-six-deck", "tie", None, "14.4382"),
    ],
)
def test_known_figures(name: str, wager: str, letter: str | None, percent: str) -> None:
    assert f"{float(find(name, wager, letter).house_edge) * 100:.4f}" == percent


# -- second counts ---------------------------------------------------------------------------------


CHART = {
    0: "D" * 10, 1: "D" * 10, 2: "D" * 10, 3: "DDDDDDDDSD", 4: "SSDDDDDDSS", 5: "SSSSDDDDSS", 6: "SSSSSSDDSS",
    7: "S" * 10,
}  # fmt: skip


def second_count_of_coups(decks: int) -> Counter[tuple[int, int, int, int]]:
    """Ordered draws by value, card by card as they leave the shoe: a plain walk, no pairs, no shortcuts."""
    left = [16 * decks] + [4 * decks] * 9
    size = 52 * decks
    found: Counter[tuple[int, int, int, int]] = Counter()
    for drawn in product(range(10), repeat=4):
        number = 1
        for value in drawn:
            number *= left[value]
            left[value] -= 1
        player, banker = (drawn[0] + drawn[2]) % 10, (drawn[1] + drawn[3]) % 10
        if max(player, banker) > 7 or (player > 5 and banker > 5):
            found[player, 2, banker, 2] += number * (size - 4) * (size - 5)
        elif player > 5:
            for third in range(10):
                found[player, 2, (banker + third) % 10, 3] += number * left[third] * (size - 5)
        else:
            for third in range(10):
                after = number * left[third]
                if CHART[banker][third] == "S":
                    found[(player + third) % 10, 3, banker, 2] += after * (size - 5)
                    continue
                left[third] -= 1
                for last in range(10):
                    found[(player + third) % 10, 3, (banker + last) % 10, 3] += after * left[last]
                left[third] += 1
        for value in drawn:
            left[value] += 1
    return found


def test_six_card_wagers_against_a_plain_walk_through_the_shoe() -> None:
    walk = second_count_of_coups(EIGHT)
    assert sum(walk.values()) == ORDERED_SIX_OF_416

    def count(of: str) -> int:
        """The ways of a condition in p, pn, b, bn: points and number of cards of Player and Banker."""
        test = compile(of, "condition", "eval")
        return sum(
            number for (p, pn, b, bn), number in walk.items()
            if eval(test, {}, {"p": p, "pn": pn, "b": b, "bn": bn})
        )  # fmt: skip

    treasure = (
        "(b == 7 and bn == 3 and p < 7) or (p == 8 and pn == 3 and b < 8) or (p == 9 and pn == 3) or "
        "(b == 9 and bn == 3) or (p == b == 7 and pn == bn)"
    )
    conditions = {
        ("md-mini-baccarat", "banker", None): {"win": "b > p", "tie": "b == p"},
        ("md-mini-baccarat", "player", None): {"win": "p > b", "tie": "b == p"},
        ("md-mini-baccarat", "tie", None): {"tie": "b == p"},
        ("md-ez-baccarat", "banker", None): {
            "win": "b > p and not (b == 7 and bn == 3)",
            "dragon 7": "b > p and b == 7 and bn == 3",
            "tie": "b == p",
        },
        ("md-no-commission-baccarat", "banker", None): {
            "win": "b > p and b != 6",
            "win with 6": "b > p and b == 6",
            "tie": "b == p",
        },
        ("md-ez-baccarat", "dragon-7", None): {"dragon 7": "b == 7 and bn == 3 and p < 7"},
        ("md-ez-baccarat", "panda-8", None): {"panda 8": "p == 8 and pn == 3 and b < 8"},
        ("md-fortune-7-baccarat", "fortune-7", None): {"fortune 7": "b == 7 and bn == 3 and p < 7"},
        ("md-fortune-7-baccarat", "one-up", None): {
            "1 to 0": "p == 1 and b == 0",
            "by one point": "p - b == 1 and b != 0",
        },
        ("md-mini-baccarat", "lucky-6", None): {
            "two cards": "b == 6 and p < 6 and bn == 2",
            "three cards": "b == 6 and p < 6 and bn == 3",
        },
        ("md-five-treasures-baccarat", "golden-8", None): {"golden 8": "p == 8 and pn == 3 and b < 8"},
        ("md-five-treasures-baccarat", "heavenly-9", None): {
            "both hands": "p == b == 9 and pn == bn == 3",
            "one hand": "((p, pn) == (9, 3)) != ((b, bn) == (9, 3))",
        },
        ("md-five-treasures-baccarat", "blazing-7s", "A"): {
            "three cards each": "p == b == 7 and pn == bn == 3",
        },
        ("md-five-treasures-baccarat", "blazing-7s", "B"): {
            "three cards each": "p == b == 7 and pn == bn == 3",
            "two cards each": "p == b == 7 and pn == bn == 2",
        },
        ("md-five-treasures-baccarat", "cover-all", None): {"any treasure": treasure},
        ("md-mini-baccarat", "dragon-bonus-player", "A"): {
            "natural tie": "pn == bn == 2 and p == b and p > 7",
            "natural winner": "pn == 2 and p > 7 and p > b",
            **{f"win by {n}": f"p - b == {n} and not (pn == 2 and p > 7)" for n in range(4, 10)},
        },
        ("md-mini-baccarat", "dragon-bonus-banker", "C"): {
            "natural tie": "pn == bn == 2 and p == b and p > 7",
            "natural winner": "bn == 2 and b > 7 and b > p",
            **{f"win by {n}": f"b - p == {n} and not (bn == 2 and b > 7)" for n in range(4, 10)},
        },
    }
    for (name, wager, letter), lines in conditions.items():
        got = ways(find(name, wager, letter))
        assert {line: number for line, number in got.items() if line != "lose"} == {
            line: count(condition) for line, condition in lines.items()
        }, (name, wager)


@pytest.mark.full
def test_the_jackpot_against_every_set_of_four_cards() -> None:
    deck = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    high = {each: "23456789TJQKA".index(each[0]) for each in deck}
    runs = {frozenset(range(low, low + 4)) for low in range(10)} | {frozenset({12, 0, 1, 2})}
    number = [comb(EIGHT, each) for each in range(5)]
    found: Counter[str] = Counter()
    for four in combinations_with_replacement(deck, 4):
        ranks = [high[each] for each in four]
        kinds = set(ranks)
        one_suit = four[0][1] == four[1][1] == four[2][1] == four[3][1]
        run = len(kinds) == 4 and kinds in runs
        most = max(ranks.count(each) for each in kinds)
        if one_suit and kinds == {9, 10, 11, 12}:
            line = "four card royal"
        elif most == 4:
            line = "four of a kind"
        elif one_suit and run:
            line = "straight flush"
        elif most == 3:
            line = "three of a kind"
        elif one_suit:
            line = "flush"
        elif run:
            line = "straight"
        elif len(kinds) == 2:
            line = "two pair"
        elif most == 2:
            pair = next(each for each in kinds if ranks.count(each) == 2)
            line = "pair of aces" if pair == 12 else "pair of tens to kings" if pair >= 8 else "lose"
        else:
            line = "lose"
        found[line] += prod(number[four.count(each)] for each in set(four))
    assert ways(find("md-mini-baccarat", "jackpot", "A")) == dict(found)


@pytest.mark.parametrize("decks", [6, 7, 8])
def test_pairs_and_nines_by_formula(decks: int) -> None:
    each_rank, others = 4 * decks, 48 * decks
    pairs = ways(find("md-mini-baccarat", "any-pair-banker", None, decks))
    assert pairs["pair of nines"] == comb(each_rank, 2)
    assert pairs["pair"] == 12 * comb(each_rank, 2)
    nines = ways(find("md-mini-baccarat", "lucky-nines", "D", decks))
    assert nines == {
        "four nines": comb(each_rank, 4),
        "three nines of one suit": 4 * comb(decks, 3) * others,
        "three nines": (comb(each_rank, 3) - 4 * comb(decks, 3)) * others,
        "two nines of one suit": 4 * comb(decks, 2) * comb(others, 2),
        "two nines": (comb(each_rank, 2) - 4 * comb(decks, 2)) * comb(others, 2),
        "nine of diamonds": decks * comb(others, 3),
        "one nine": 3 * decks * comb(others, 3),
        "lose": comb(others, 4),
    }


ORDERS_OF_HAND = (6, 3, 1)  # of three different ranks, of a pair and another one, of three alike


def three_card_rung(ranks: tuple[int, ...]) -> tuple[int, int, int]:
    """(kind, points, faces) from ranks 1-13, written from the ranking once more."""
    faces = sum(rank > 10 for rank in ranks)
    if faces == 3:
        return (2 if ranks == (13, 13, 13) else 1, 0, 3)
    return (0, sum(rank for rank in ranks if rank < 10) % 10, faces)


def test_three_card_wagers_against_a_walk_over_all_pairs_of_hands() -> None:
    found = {wager: Counter[str]() for wager in ("ante", "free", "three-kings", "tie", "dragon-bonus")}
    rungs = {ranks: three_card_rung(ranks) for ranks in combinations_with_replacement(range(1, 14), 3)}
    for mine in rungs:
        left = [4] * 14
        dealt = prod(comb(4, mine.count(rank)) for rank in set(mine))
        for rank in mine:
            left[rank] -= 1
        kind, points, faces = rungs[mine]
        tens = points if kind == 0 else 10
        for theirs, other in rungs.items():
            first, second, third = theirs
            # in the order they are dealt; equal ranks lie side by side, and their orders are one
            number = left[first]
            number *= left[second] - (second == first)
            number *= left[third] - (third == first) - (third == second)
            if number <= 0:
                continue
            number *= dealt * ORDERS_OF_HAND[(first == second) + (second == third)]
            other_tens = other[1] if other[0] == 0 else 10
            me = (kind, points, faces)
            found["ante"]["win" if me > other else "tie" if me == other else "lose"] += number
            level = kind == other[0] and points == other[1]
            free = "more faces" if level and faces > other[2] else None
            found["free"][free or ("win" if me > other else "tie" if me == other else "lose")] += number
            best = {2: "three kings", 1: "three faces"}.get(kind) or f"any {points}"
            found["three-kings"][best if kind or points >= 8 else "lose"] += number
            if tens != other_tens:
                line = "lose"
            elif mine == theirs:
                line = "three card copy"
            else:
                line = "point and face tie" if faces == other[2] else "tie"
            found["tie"][line] += number
            margin = tens - other_tens
            found["dragon-bonus"][f"win by {margin}" if margin >= 5 else "lose"] += number
    for name, wager, counted in (
        ("md-three-card-baccarat", "ante", "ante"),
        ("md-three-card-baccarat-commission-free", "ante", "free"),
        ("wa-three-card-baccarat", "three-kings", "three-kings"),
        ("wa-three-card-baccarat", "tie", "tie"),
        ("wa-three-card-baccarat", "dragon-bonus", "dragon-bonus"),
    ):
        # the walk counted each dealer's hand in its six orders
        expected = {line: number // 6 for line, number in found[counted].items()}
        assert ways(find(name, wager)) == expected, (name, wager)


def test_royal_9_by_formula() -> None:
    """Seat 1's own King-9, KH 9H, in a shoe of eight; the other seats' as `with_royal_9` gives them."""
    table = ways(find("royal", "royal-9", "A"))
    decks, size = EIGHT, 52 * EIGHT
    assert table["exact match"] == decks**2 * (decks - 1) ** 2
    # own in one hand, another seat's in the other; those that share a card with it have one less of it
    shares = {"KH 9C": 1, "KC 9H": 1, "KD 9H": 1}
    others = [each for each in KING_NINES if each != "KH 9H"]
    pairs = sum(decks**2 * (decks - shares.get(each, 0)) * decks for each in others)
    assert table["any two personal"] == 2 * pairs
    # a royal 9 in neither hand: all pairs without one, from both sides
    royal_one = 4 * decks * 12 * decks
    neither = comb(size, 2) * comb(size - 2, 2) - 2 * royal_one * comb(size - 2, 2)
    both = royal_one * (4 * decks - 1) * (12 * decks - 1)
    assert table["lose"] == neither + both


# -- the report --------------------------------------------------------------------------------------


def test_the_report_is_the_object_that_was_promised() -> None:
    rules = load("md-mini-baccarat")
    told = odds(rules, wager="dragon-bonus-player")[0].to_json()
    assert json.loads(json.dumps(told)) == told
    assert list(told) == [
        "v", "event", "ruleset", "ruleset_sha256", "decks", "wager", "paytable", "house_edge", "outcomes",
        "total",
    ]  # fmt: skip
    assert told["v"] == 1
    assert told["event"] == "odds"
    assert told["ruleset_sha256"] == rules.sha256
    assert told["decks"] == EIGHT
    assert told["paytable"] == "A"
    assert f"{told['house_edge']:.4f}" == "0.0265"
    outcomes_told = told["outcomes"]
    assert isinstance(outcomes_told, list)
    assert outcomes_told[0]["name"] == "win by 9"
    assert outcomes_told[0]["pays"] == 30
    assert outcomes_told[-1]["pays"] == -1


def test_pays_are_net_after_unrounded_vigorish() -> None:
    told = odds(load("md-mini-baccarat"), wager="banker")[0]
    assert [(each.name, each.pays) for each in told.outcomes] == [
        ("win", Fraction(95, 100)), ("tie", 0), ("lose", -1),
    ]  # fmt: skip
    assert told.to_json()["paytable"] is None


@pytest.mark.parametrize(
    ("name", "decks"),
    [
        ("md-mini-baccarat", 5),
        ("md-mini-baccarat", 9),
        ("baccarat-six-deck", 1),
        ("md-three-card-baccarat", 6),
    ],
)
def test_a_game_is_not_counted_with_decks_it_is_not_played_with(name: str, decks: int) -> None:
    with pytest.raises(WrongDecks, match=str(decks)):
        odds(load(name), decks)


def test_a_wager_that_is_not_offered() -> None:
    with pytest.raises(UnknownWager, match="offers no 'panda-8'; it offers banker"):
        odds(load("md-mini-baccarat"), wager="panda-8")
