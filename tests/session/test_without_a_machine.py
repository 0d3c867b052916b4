"""A table that never had a link to a machine: it opens, plays by hand, and is closed."""

import pytest
from tests.session.acted_table import NOW_S
from tests.session.hand_table import MANUAL, HandTable
from tests.table.operators import with_royal_9

from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_session.outcomes import NotYours
from sabot_table.errors import RuleViolation
from sabot_table.procedure import TableRole
from sabot_table.rule_texts import DealingMethod


@pytest.mark.rule("MD3 13.E")
@pytest.mark.rule("MD3 3.B")
def test_it_opens_and_plays_with_one_deck_that_is_cut(table: HandTable) -> None:
    for _ in range(3):
        table.staff.meet(table.until(NeedKind.BETS))
    found = table.rounds()
    assert all(found[each].complete and found[each].serial == "" for each in (1, 2))
    assert {found[each].pack_id for each in found} == {1}
    assert table.kinds().count("cut") == 3
    assert not table.session.state.outbox
    people = {each.row.actor.role for each in table.record.rows(0, 10_000)}
    assert people == {TableRole.DEALER, TableRole.FLOOR}


@pytest.mark.rule("MD3 13.E")
def test_nothing_is_dealt_before_the_sign_is_there(table: HandTable) -> None:
    marks = [each for each in table.needs() if each.kind is NeedKind.MARK_OUT_OF_ORDER]
    assert len(marks) == 2
    with pytest.raises(RuleViolation, match=r"13\.E"):
        table.staff.give(dealing_acts.ChangeMethod(DealingMethod.HAND))


@pytest.mark.rule("MD3 9.A")
def test_from_the_hand_only_with_a_shuffler(table: HandTable) -> None:
    table.until(NeedKind.LOAD)
    with pytest.raises(RuleViolation, match=r"9\.A"):
        table.staff.give(dealing_acts.ChangeMethod(DealingMethod.HAND))


@pytest.mark.rule("MD3 5.D")
def test_a_cut_too_near_the_top_is_refused_and_the_floor_orders_another(table: HandTable) -> None:
    table.until(NeedKind.CUT)
    with pytest.raises(RuleViolation, match=r"5\.D"):
        table.staff.give(dealing_acts.CutPack(1, 9))
    table.staff.give(dealing_acts.CutPack(1, 20))
    table.staff.give(dealing_acts.OrderRecut(1))
    assert table.until(NeedKind.CUT).clause == "MD3 5.D"


def test_the_dealers_and_the_floors_acts_are_their_own(table: HandTable) -> None:
    table.until(NeedKind.LOAD)
    for who, act in (("ben", dealing_acts.ChangeMethod(MANUAL)), ("anna", dealing_acts.LoadPack(1))):
        with pytest.raises(NotYours):
            table.session.act(f"{who} {act.NAME}", None, table.session.cursor, who, act, NOW_S)


@pytest.mark.rule("MD3 8.B")
def test_hands_that_nobody_types_are_settled_as_not_known(table: HandTable) -> None:
    table.staff.give(acts.LeaveUntyped(), table.until(NeedKind.TYPE_HANDS))
    (found,) = table.rounds().values()
    assert found.not_known == ("cards", "results")


@pytest.mark.rule("MDM 12.N")
def test_the_progressive_controller_names_a_winner_before_the_hand_is_settled() -> None:
    rules = with_royal_9()
    stake = {"player": 2000, "royal-9": 500}
    table = HandTable(rules, {1: stake, 2: stake})
    table.until(NeedKind.BETS)
    meters = table.session.procedure.table.meters()
    assert meters is not None
    full = {name: on.units for name, on in meters.by_name.items()}
    table.session.procedure.table.memory.meters = {**full, "must-hit": 20_000 * 10_000}
    table.staff.meet(table.until(NeedKind.BETS))
    waits = table.until(NeedKind.CONTROLLER)
    assert (waits.roles, waits.clause) == ((), "MDM 12.N")
    with pytest.raises(RuleViolation, match=r"12\.N"):
        table.staff.give(dealing_acts.Settle())
    table.session.must_hit(2, NOW_S)
    table.staff.give(dealing_acts.Settle())
    rows = [each.row for each in table.record.rows(0, 10_000)]
    (named,) = (row for row in rows if row.kind == "must_hit")
    assert (named.actor.role, named.data["seat"], named.data["cents"]) == (TableRole.CONTROLLER, 2, 20_000)
    (settled,) = (row for row in rows if row.kind == "settle")
    assert {"name": "must-hit", "cents": 10_020} in settled.data["meters"]  # type: ignore[operator]  # 20 came beyond


def test_the_snapshot_keeps_the_last_round_of_a_game_dealt_by_hand(table: HandTable) -> None:
    seen = []
    for _ in range(2):
        table.until(NeedKind.BETS)
        table.staff.meet_one()
        table.until(NeedKind.BETS)
        last = table.session.snapshot()["last_round"]
        seen.append(None if last is None else last["round_id"])
    assert seen[-1] is not None
    assert seen == sorted(seen, key=lambda each: each or 0)
