"""Seats and wagers: told one by one, kept from the round before, or not known at all."""

import pytest
from tests.session.acted_table import ActedTable

from sabot_session import acts
from sabot_session.needs import NeedKind
from sabot_session.round_history import RoundEnd, read_round
from sabot_table.errors import ImpossibleCards, RuleViolation, WagerRefused

LIMITS = """
name = "pit-2"
[limits]
player = 10000
[limits.wagers.ante]
least = 1000
most = 8000
"""


@pytest.mark.rule("MD3 7.D")
def test_wagers_are_made_raised_and_withdrawn_until_bets_are_closed() -> None:
    table = ActedTable()
    table.ready()
    for act in (
        acts.PlaceWager(2, "ante", 1000),
        acts.PlaceWager(2, "ante", 2000),
        acts.PlaceWager(2, "tie", 500),
        acts.PlaceWager(5, "ante", 4000),
        acts.WithdrawWager(2, "tie"),
    ):
        table.give(act)
    with pytest.raises(WagerRefused):
        table.give(acts.WithdrawWager(2, "three-kings"))
    table.give(acts.NoMoreBets())
    with pytest.raises(WagerRefused):
        table.give(acts.PlaceWager(2, "tie", 500))
    (bets,) = table.rows("no_more_bets")
    assert bets.data["wagers"] == [
        {"seat": 2, "wager": "ante", "cents": 2000},
        {"seat": 5, "wager": "ante", "cents": 4000},
    ]
    told = [(each.kind, each.data["cents"]) for each in table.rows("place_wager", "withdraw_wager")]
    assert told == [
        ("place_wager", 1000), ("place_wager", 2000), ("place_wager", 500), ("place_wager", 4000),
        ("withdraw_wager", 500),
    ]  # fmt: skip
    assert len(read_round(table.record, 1).wagers_made) == 5


def test_told_wagers_replace_what_was_placed() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.PlaceWager(1, "ante", 1000))
    table.give(acts.PlaceWager(1, "tie", 500))
    table.bet({1: {"ante": 2000}, 3: {"ante": 100}})
    assert table.session.procedure.table.round.wagers == {1: {"ante": 2000}, 3: {"ante": 100}}
    assert [each.data["wager"] for each in table.rows("withdraw_wager")] == ["tie"]


@pytest.mark.slow
@pytest.mark.rule("MD3 7.B")
def test_players_join_and_leave() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.Sit(4))
    with pytest.raises(RuleViolation):
        table.give(acts.Sit(4))
    table.round()
    table.give(acts.Leave(1))
    assert sorted(table.session.state.bets) == [3]
    table.machine.hands = ["4S 4H TD", "QS 7H AC"]
    table.round(None)
    assert table.rows("no_more_bets")[1].data["seats"] == [3]
    assert [(each.kind, each.data["seat"]) for each in table.rows("sit", "leave")] == [
        ("sit", 4), ("sit", 1), ("sit", 3), ("leave", 1),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.rule("MD3 7.B")
@pytest.mark.rule("MD3 11.A")
@pytest.mark.parametrize(("act", "outcome"), [(acts.Forfeit(1), "forfeit"), (acts.Abandon(1), "abandoned")])
def test_the_floor_takes_wagers_in_a_round(act: acts.Act, outcome: str) -> None:
    table = ActedTable()
    table.ready()
    table.bet()
    if isinstance(act, acts.Abandon):
        with pytest.raises(RuleViolation):
            table.give(act)
        table.give(acts.Leave(1))
    table.give(act)
    table.give(acts.Expose())
    lines = read_round(table.record, 1).lines
    assert {each.outcome for each in lines if each.seat == 1} == {outcome}
    assert {each.outcome for each in lines if each.seat == 3} == {"lose"}


def test_washington_takes_no_wagers_in_a_round() -> None:
    table = ActedTable("wa-three-card-baccarat")
    table.ready()
    table.bet()
    with pytest.raises(RuleViolation):
        table.give(acts.Forfeit(1))


def test_bets_that_go_back_use_up_the_round_number() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.PlaceWager(1, "ante", 1000))
    table.give(acts.ReturnBets())
    table.round()
    assert [each.round_id for each in table.rows("open_bets")] == [1, 2]
    assert read_round(table.record, 1).end is RoundEnd.RETURNED
    assert read_round(table.record, 2).end is RoundEnd.SETTLED


@pytest.mark.rule("WA3 limits")
@pytest.mark.rule("MD3 7.D")
@pytest.mark.parametrize(
    ("rules", "clause"),
    [("md-three-card-baccarat", "MD3 7.D"), ("wa-three-card-baccarat", "WA3 limits")],
)
def test_the_operators_limits_hold(rules: str, clause: str) -> None:
    table = ActedTable(rules, policy=LIMITS)
    table.ready()
    for wagers in ({1: {"ante": 8001}}, {1: {"ante": 8000, "tie": 2001}}, {1: {"ante": 980}}):
        with pytest.raises(WagerRefused) as refused:
            table.bet(wagers)
        assert refused.value.clause == clause
    with pytest.raises(WagerRefused, match="8000 cents at most"):
        table.give(acts.PlaceWager(1, "ante", 8100))
    with pytest.raises(WagerRefused, match="1000 cents at least"):
        table.bet({1: {"ante": 980}})
    assert table.rows("open_bets") == []
    table.bet({1: {"ante": 8000, "tie": 2000}})


def test_seats_alone_say_what_each_wager_pays() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.NoMoreBets(seats=(1, 3)))
    table.give(acts.Expose())
    found = read_round(table.record, 1)
    assert found.not_known == ("wagers",)
    lines = {(each.seat, each.wager): (each.outcome, each.odds, each.stake_cents) for each in found.lines}
    assert lines[3, "tie"] == ("win", "7 to 1", None)
    assert lines[1, "ante"] == ("lose", "", None)
    assert len(lines) == 8
    table.machine.hands = ["4S 4H TD", "9S KH KD", "QS 7H AC"]
    table.give(acts.NoMoreBets())  # seats are kept, and what they bet is still not known
    table.give(acts.Expose())
    second = read_round(table.record, 2)
    assert read_round(table.record, 1).complete
    assert second.not_known == ("wagers",)
    pays = {(each.seat, each.wager): each.odds for each in second.lines}
    assert pays[3, "ante"] == "1 to 1, less 5 % vigorish"


def test_a_void_round_with_unknown_wagers_says_so() -> None:
    table = ActedTable()
    table.ready()
    table.machine.stop_after = 1
    table.give(acts.NoMoreBets(seats=(1,)))
    table.give(acts.ReportFaceUp())
    void = read_round(table.record, 1).void
    assert void is not None
    assert void.give_back is None


def test_known_and_unknown_wagers_do_not_mix() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.PlaceWager(1, "ante", 1000))
    with pytest.raises(RuleViolation):
        table.give(acts.NoMoreBets(seats=(1, 2)))
    with pytest.raises(RuleViolation):
        table.give(acts.NoMoreBets(seats=()))
    table.give(acts.NoMoreBets())


@pytest.mark.parametrize("by_next_bets", [False, True])
def test_cards_that_nobody_types_are_not_known(by_next_bets: bool) -> None:
    """Without a reader the second touch is the last one: the next "no more bets" settles as not known."""
    table = ActedTable()
    table.ready()
    table.machine.hands = []
    table.round()
    assert table.need(NeedKind.TYPE_HANDS) is not None
    if by_next_bets:
        assert table.need(NeedKind.BETS) is not None
    else:
        table.give(acts.LeaveUntyped())
        with pytest.raises(RuleViolation):
            table.give(acts.LeaveUntyped())
    table.bet(None)
    found = read_round(table.record, 1)
    assert (found.complete, found.not_known, found.end) == (True, ("cards", "results"), RoundEnd.SETTLED)
    assert [each.kind for each in found.done].count("reveal") == 1


def test_typed_hands_are_settled_and_impossible_ones_refused() -> None:
    table = ActedTable()
    table.ready()
    table.machine.hands = []
    table.round()
    with pytest.raises(ImpossibleCards):
        table.give(acts.TypeHands({1: ("KS", "KS", "2D"), 3: ("4S", "4H", "10D"), 0: ("QS", "7H", "AC")}))
    table.give(acts.TypeHands({1: ("KS", "9H", "2D"), 3: ("4S", "4H", "10D"), 0: ("QS", "7H", "AC")}))
    found = read_round(table.record, 1)
    assert (str(found.source), len(found.lines)) == ("dealer", 3)
