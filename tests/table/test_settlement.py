"""Settlement: order, money, pushes, forfeits and void rounds; nothing is settled when something is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.table.operators import changed
from tests.table.outcomes import coup

from sabot_table.cards import cards
from sabot_table.coup import Coup
from sabot_table.errors import ImpossibleCards, RuleViolation, WagerRefused
from sabot_table.ruleset import load, names
from sabot_table.settlement import CardSource, DealtHands, SettlementStep, WagerOutcome, settle, settle_void

MD3, WA3, MINI = (
    load(name) for name in ("md-three-card-baccarat", "wa-three-card-baccarat", "md-mini-baccarat")
)
ALL_FOUR = {"dragon-bonus": 500, "tie": 500, "three-kings": 500, "ante": 2_500}
ROUND = DealtHands(
    cards("7H KS QC"),
    {1: cards("9H JH QD"), 3: cards("7D KD QH"), 4: cards("2D 3D 10C"), 6: cards("KC KH 8H")},
)  # fmt: skip
BETS = {4: ALL_FOUR, 6: {"ante": 2_500}, 1: ALL_FOUR, 3: ALL_FOUR}
BANKER_WINS, PLAYER_WINS, TIE = coup("8H KD", "9S KC"), coup("9H KD", "8S KC"), coup("9H KD", "9S KC")


@pytest.mark.rule("MD3 11.B")
def test_three_card_order_is_seat_by_seat_from_the_dealers_left() -> None:
    lines = settle(MD3, BETS, ROUND).lines
    assert [line.seat for line in lines] == [1, 1, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4, 6]
    assert [line.wager for line in lines[:4]] == ["ante", "three-kings", "tie", "dragon-bonus"]
    other_side = changed("md-three-card-baccarat", seats={"seat_one": "dealer-right"})
    assert list(dict.fromkeys(line.seat for line in settle(other_side, BETS, ROUND).lines)) == [6, 4, 3, 1]


@pytest.mark.rule("WA3 order")
def test_washington_reconciles_from_right_to_left() -> None:
    lines = settle(WA3, BETS, ROUND).lines
    assert list(dict.fromkeys(line.seat for line in lines)) == [6, 4, 3, 1]
    assert [line.wager for line in lines if line.seat == 4] == ["ante", "three-kings", "tie", "dragon-bonus"]


@pytest.mark.rule("MDM 11.B")
def test_mini_takes_what_lost_first_then_pays_from_the_highest_seat_down() -> None:
    bets = {
        1: {"banker": 2_000, "player": 1_000},
        5: {"player": 1_000, "tie": 500},
        9: {"banker": 2_000, "lucky-6": 500, "jackpot": 100},
    }
    settled = settle(MINI, bets, BANKER_WINS)
    assert [(line.seat, line.wager, str(line.outcome)) for line in settled.lines] == [
        (9, "lucky-6", "lose"), (5, "player", "lose"), (5, "tie", "lose"), (1, "player", "lose"),
        (9, "banker", "win"), (9, "jackpot", "push"), (1, "banker", "win"),
    ]  # fmt: skip
    winner = [step for step in settled.steps() if step.seat == 1 and step.do in ("vigorish", "pay")]
    assert winner == [SettlementStep(1, "banker", "vigorish", 100), SettlementStep(1, "banker", "pay", 2_000)]


def test_a_line_is_the_object_that_was_promised() -> None:
    line = (
        settle(MD3, {3: {"ante": 2_500}}, DealtHands(cards("7H KS QC"), {3: cards("9H JH QD")}))
        .lines[0]
        .to_json()
    )
    assert line == {
        "seat": 3, "wager": "ante", "stake_cents": 2500, "outcome": "win", "line": "win",
        "pays_cents": 2500,
        "vig_cents": 125, "clause": "MD3 12.A",
    }  # fmt: skip


def test_a_round_records_its_rule_set_and_who_told_the_cards() -> None:
    told = settle(MINI, {1: {"player": 100}}, TIE, CardSource.READER).to_json()
    assert json.loads(json.dumps(told)) == told
    assert (told["ruleset"], told["ruleset_sha256"]) == (MINI.name, MINI.sha256)
    assert (told["cards_from"], told["void"], told["void_clause"]) == ("reader", False, None)
    assert settle(MINI, {1: {"player": 100}}, TIE).to_json()["cards_from"] == "dealer"


@pytest.mark.rule("MD3 12.A")
@pytest.mark.rule("MDM 12.D")
@pytest.mark.parametrize(
    ("rounding", "stake", "vigorish"),
    [
        ("none", 2_000, 100), ("none", 20, 1), ("none", 2_500, 125),
        ("up25", 2_000, 100), ("up25", 2_020, 125), ("up25", 500, 25), ("up25", 100, 25),
        ("up25", 2_001, 125),
    ],
)  # fmt: skip
def test_vigorish_is_five_percent_exact_or_up_to_25_cents(rounding: str, stake: int, vigorish: int) -> None:
    mini = changed("md-mini-baccarat", vigorish={"rounding": rounding})
    line = settle(mini, {1: {"banker": stake}}, BANKER_WINS).lines[0]
    assert (line.pays_cents, line.vig_cents, line.net_cents) == (stake, vigorish, stake - vigorish)
    md3 = changed("md-three-card-baccarat", vigorish={"rounding": rounding})
    ante = settle(md3, {1: {"ante": stake}}, DealtHands(cards("7H KS QC"), {1: cards("9H JH QD")})).lines[0]
    assert ante.vig_cents == vigorish


@pytest.mark.rule("MDM 12.D")
def test_vigorish_may_be_marked_and_owed() -> None:
    marked = changed("md-mini-baccarat", vigorish={"collected": "marked"})
    settled = settle(marked, {1: {"banker": 2_000}, 4: {"player": 500}}, BANKER_WINS)
    assert settled.vigorish_by_seat() == {1: 100}
    assert SettlementStep(1, "banker", "mark", 100) in settled.steps()


@pytest.mark.rule("MDM 12.C")
@pytest.mark.parametrize(
    ("name", "wager", "cents", "clause", "multiple"),
    [
        ("md-three-card-baccarat", "ante", 2_501, "MD3 12.A", 20),
        ("md-mini-baccarat", "banker", 10, "MDM 12.C", 20),
        ("md-no-commission-baccarat", "banker", 101, "MDM 12.S", 2),
        ("baccarat-six-deck", "banker", 30, "BAC payouts", 20),
    ],
)
def test_a_stake_that_would_split_a_cent_is_refused(
    name: str, wager: str, cents: int, clause: str, multiple: int
) -> None:
    rules = load(name)
    play = ROUND if rules.game == "three-card" else TIE
    with pytest.raises(WagerRefused, match=f"stake a multiple of {multiple} cents") as refused:
        settle(rules, {1: {wager: cents}}, play)
    assert refused.value.clause == clause


@pytest.mark.rule("MD3 13.D")
@pytest.mark.rule("MDM 13.E")
@given(
    st.dictionaries(
        st.integers(1, 6),
        st.dictionaries(st.sampled_from(sorted(ALL_FOUR)), st.integers(1, 10**9), min_size=1),
        min_size=1,
    )
)
def test_a_void_round_gives_every_wager_back_to_the_cent(bets: dict[int, dict[str, int]]) -> None:
    settled = settle_void(MD3, bets, "MD3 13.D", "the shoe stopped")
    assert settled.void
    assert {(line.seat, line.wager): line.stake_cents for line in settled.lines} == {
        (seat, wager): cents for seat, made in bets.items() for wager, cents in made.items()
    }
    assert {step.do for step in settled.steps()} == {"return"}
    assert set(settled.net_by_seat().values()) == {0}
    assert {line.clause for line in settled.lines} == {"MD3 13.D"}


@pytest.mark.rule("MD3 11.A")
def test_a_player_who_breaks_the_rules_of_the_hand_forfeits_all() -> None:
    settled = settle(MD3, BETS, ROUND, forfeits={1})
    lost = [line for line in settled.lines if line.seat == 1]
    assert {(line.outcome, line.clause) for line in lost} == {(WagerOutcome.FORFEIT, "MD3 11.A")}
    assert settled.net_by_seat()[1] == -4_000
    assert [line.outcome for line in settled.lines if line.seat != 1] == [
        line.outcome for line in settle(MD3, BETS, ROUND).lines if line.seat != 1
    ]


@pytest.mark.rule("MD3 7.B")
def test_abandoned_wagers_are_taken() -> None:
    settled = settle(MD3, BETS, ROUND, abandoned={1})
    assert {(line.outcome, line.clause) for line in settled.lines if line.seat == 1} == {
        (WagerOutcome.ABANDONED, "MD3 7.B")
    }
    assert [step.do for step in settled.steps()][:4] == ["take"] * 4


@pytest.mark.rule("MD3 7.E")
@pytest.mark.rule("WA3 ante")
@pytest.mark.parametrize("bonus", ["three-kings", "tie", "dragon-bonus"])
def test_a_bonus_needs_the_ante(bonus: str) -> None:
    for rules, clause in ((MD3, "MD3 7.E"), (WA3, f"WA3 {bonus}")):
        with pytest.raises(WagerRefused, match="without ante") as refused:
            settle(rules, {1: {bonus: 500}}, ROUND)
        assert refused.value.clause == clause


@pytest.mark.rule("WA3 wagers")
def test_washington_allows_four_kinds_of_wager() -> None:
    with pytest.raises(WagerRefused, match="5 kinds of wager") as refused:
        settle(WA3, {1: {**ALL_FOUR, "lucky-6": 100}}, ROUND)
    assert refused.value.clause == "WA3 wagers"
    assert len(settle(WA3, {1: ALL_FOUR}, DealtHands(ROUND.dealer, {1: ROUND.seats[1]})).lines) == 4


@pytest.mark.parametrize(
    ("bets", "match"),
    [
        ({0: {"ante": 100}}, "seat 0, any wager: there is no such seat"),
        ({7: {"ante": 100}}, "the seats are 1 to 6"),
        ({True: {"ante": 100}}, "no such seat"),
        ({"1": {"ante": 100}}, "no such seat"),
        ({1: {"ante": 0}}, "0 is no amount"),
        ({1: {"ante": -100}}, "-100 is no amount"),
        ({1: {"ante": 100.0}}, "100.0 is no amount"),
        ({1: {"ante": 12.5}}, "12.5 is no amount"),
        ({1: {"ante": True}}, "True is no amount"),
        ({1: {"ante": "100"}}, "'100' is no amount"),
        ({1: {"player": 100}}, "is not offered at this table"),
    ],
)
def test_wagers_that_cannot_be(bets: dict[int, dict[str, int]], match: str) -> None:
    with pytest.raises(WagerRefused, match=match):
        settle(MD3, bets, ROUND)


@pytest.mark.parametrize(
    ("dealer", "seats", "match"),
    [
        ("7H KS QC", {1: "7H JH QD"}, "7H is there 2 times and 1 deck holds it 1 times"),
        ("7H KS QC", {1: "9H 9H QD"}, "9H is there 2 times"),
        ("7H KS", {1: "9H JH QD"}, r"a hand of 2 cards.*MD3 13\.C"),
        ("7H KS QC", {1: "9H JH QD 2C"}, "a hand of 4 cards"),
        ("7H KS QC", {}, r"seats \[\] have hands and seats \[1\] have wagers"),
        ("7H KS QC", {1: "9H JH QD", 2: "2C 3C 4C"}, "to no other"),
    ],
)
def test_hands_that_cannot_be(dealer: str, seats: dict[int, str], match: str) -> None:
    play = DealtHands(cards(dealer), {seat: cards(hand) for seat, hand in seats.items()})
    with pytest.raises(ImpossibleCards, match=match):
        settle(MD3, {1: {"ante": 100}}, play)


def test_a_card_more_often_than_the_shoe_holds_it() -> None:
    six = load("baccarat-six-deck")
    assert (
        settle(six, {1: {"player": 100}}, coup("KH KH KH", "KH KH KH")).lines[0].outcome is WagerOutcome.PUSH
    )
    with pytest.raises(ImpossibleCards, match="hand for every seat"):
        settle(MD3, {1: {"ante": 100}}, TIE)
    with pytest.raises(ImpossibleCards, match="not one for every seat"):
        settle(MINI, {1: {"player": 100}}, ROUND)
    with pytest.raises(RuleViolation, match="no such seat"):
        settle(MINI, {1: {"player": 100}}, TIE, forfeits={12})


@pytest.mark.rule("BAC payouts")
def test_for_one_includes_the_stake() -> None:
    rules = load("baccarat-six-deck")
    bets = {1: {"player": 100, "banker": 100, "tie": 100}}
    assert {line.wager: line.net_cents for line in settle(rules, bets, TIE).lines} == {
        "player": 0, "banker": 0, "tie": 800,
    }  # fmt: skip
    assert settle(rules, {1: {"player": 100}}, PLAYER_WINS).lines[0].net_cents == 100
    assert settle(rules, {1: {"banker": 100}}, BANKER_WINS).lines[0].net_cents == 95


@pytest.mark.parametrize("name", names())
def test_a_settlement_explains_itself(name: str) -> None:
    rules = load(name)
    play: DealtHands | Coup = (
        DealtHands(ROUND.dealer, {1: ROUND.seats[1]}) if rules.game == "three-card" else TIE
    )
    settled = settle(rules, {1: dict.fromkeys(rules.offered, 2_000)}, play)
    for line in settled.lines:
        assert line.clause.startswith(rules.text)
        assert str(line).startswith(f"seat 1: {line.wager} 2000 ")
        assert str(line).endswith(f"({line.clause})")
