"""Cards from a manual shoe and from the hand, shuffled by the machine, by hand, and without a machine."""

from pathlib import Path

import pytest
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_session import acts, dealing_acts
from sabot_session.equipment_acts import Repaired, ReportUnitFailed
from sabot_session.needs import NeedKind
from sabot_session.round_history import rounds_of
from sabot_table.errors import ImpossibleCards, RuleViolation
from sabot_table.procedure.vocabulary import DeviceUnit
from sabot_table.rule_texts import DealingMethod

pytestmark = pytest.mark.slow
MANUAL, HAND = DealingMethod.MANUAL_SHOE, DealingMethod.HAND


def clauses(table: SimulatedTable, kind: str) -> set[str]:
    return {each.row.clause for each in table.rows(kind)}


@pytest.mark.rule("MD3 8")
@pytest.mark.rule("MD3 8.E")
def test_machine_shuffled_decks_in_a_manual_shoe(tmp_path: Path) -> None:
    with simulated_table(tmp_path, method=MANUAL) as table:
        table.rounds(3)
        found = rounds_of(table.rows())
        assert [found[each].pack_id for each in (1, 2, 3)] == [1, 2, 1]
        assert [found[each].method for each in (1, 2, 3)] == ["manual-shoe"] * 3
        assert all(found[each].complete and found[each].source == "dealer" for each in (1, 2, 3))
        assert clauses(table, "pass_stub") == {"MD3 8.E"}  # the shuffler counted
        assert not table.rows("cut", "count_stub", "deal_stack")


@pytest.mark.rule("MD3 9.A")
@pytest.mark.rule("MD3 9.D")
def test_from_the_hand_a_stub_is_counted_by_its_own_clause(tmp_path: Path) -> None:
    with simulated_table(tmp_path, method=HAND) as table:
        need = table.until(NeedKind.COUNT_STUB)
        table.staff.give(dealing_acts.CountStub(43), need)
        assert clauses(table, "count_stub") == {"MD3 9.D"}
        table.rounds(1)
        need = table.until(NeedKind.COUNT_STUB)
        with pytest.raises(RuleViolation, match=r"9\.D"):
            table.staff.give(dealing_acts.CountStub(42), need)
        table.staff.give(dealing_acts.CountStub(42, {0: 3, 1: 4, 2: 3}), table.need(NeedKind.COUNT_STUB))
        (void,) = table.rows("void")
        assert (void.row.clause, void.row.data["why"]) == ("MD3 9.D", "misdealt")
        assert table.rows("count_stub")[-1].row.data["verdict"] == "misdealt"
        table.rounds(3)
        assert not table.rows("remove")


@pytest.mark.rule("MD3 8.F")
def test_a_card_that_is_missing_takes_the_deck_off_the_table(tmp_path: Path) -> None:
    with simulated_table(tmp_path, method=MANUAL) as table:
        need = table.until(NeedKind.COUNT_STUB)
        table.staff.give(dealing_acts.CountStub(42, {0: 3, 1: 3, 2: 3}), need)
        assert clauses(table, "void") == {"MD3 8.F"}
        table.play(lambda table: bool(table.rows("remove")))
        (gone,) = table.rows("remove")
        assert (gone.row.data["pack_id"], gone.row.data["reason"]) == (1, "wrong_count")


@pytest.mark.rule("MD3 11.B")
def test_a_card_that_was_typed_before_is_refused_at_once(tmp_path: Path) -> None:
    with simulated_table(tmp_path, method=MANUAL) as table:
        need = table.until(NeedKind.TYPE_HANDS)
        table.staff.give(acts.TypeHands({1: ("2H", "3H", "4H")}), need)
        with pytest.raises(ImpossibleCards, match="4H"):
            table.staff.give(acts.TypeHands({2: ("4H", "5H", "6H")}), table.need(NeedKind.TYPE_HANDS))
        table.staff.give(acts.TypeHands({2: ("7H", "5H", "6H")}), table.need(NeedKind.TYPE_HANDS))
        table.staff.give(acts.TypeHands({0: ("7S", "5S", "6S")}), table.need(NeedKind.TYPE_HANDS))
        (found,) = rounds_of(table.rows()).values()
        assert [hand.cards for hand in found.hands if hand.of == "dealer"] == [("7S", "5S", "6S")]
        assert found.lines


@pytest.mark.rule("MD3 13.E")
@pytest.mark.rule("MD3 5.D")
def test_a_machine_that_failed_is_marked_and_one_deck_is_shuffled_and_cut_by_hand(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.rounds(1)
        table.until(NeedKind.BETS)
        for unit in DeviceUnit:
            table.staff.give(ReportUnitFailed(unit))
        table.play(
            lambda table: table.run.read(lambda session: str(session.procedure.table.method)) == MANUAL
        )
        before = len(table.rows("collect"))
        table.rounds(before + 6)
        kinds = [each.row.kind for each in table.rows()]
        order = ["unit_failed", "mark_out_of_order", "remove", "change_method", "cut"]
        assert [kinds.index(each) for each in order] == sorted(kinds.index(each) for each in order)
        played = [each.row.data["pack_id"] for each in table.rows("open_bets")][-5:]
        assert len(set(played)) == 1
        assert {each.row.data["by"] for each in table.rows("start_shuffle")[-4:]} == {"hand"}
        stubs = [each.row.kind for each in table.rows("pass_stub", "count_stub")][-6:]
        assert stubs == ["pass_stub"] * 4 + ["count_stub", "pass_stub"]
        assert clauses(table, "count_stub") == {"MD3 8.F", "MD3 10.C"}
        with pytest.raises(RuleViolation, match=r"9\.A"):
            table.staff.give(dealing_acts.ChangeMethod(HAND))


@pytest.mark.rule("MD3 13.E")
def test_the_machine_returns(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.BETS)
        for unit in DeviceUnit:
            table.staff.give(ReportUnitFailed(unit))
        table.rounds(1)
        table.until(NeedKind.BETS)
        for unit in DeviceUnit:
            table.staff.give(Repaired(unit))
        table.staff.give(dealing_acts.ChangeMethod(DealingMethod.AUTOMATED_SHOE))
        table.play(lambda table: len(table.rows("deal_stack")) >= 6)
        methods = [each.row.data["method"] for each in table.rows("open_bets")]
        assert (methods[0], methods[-1]) == ("manual-shoe", "automated-shoe")


@pytest.mark.rule("MD3 13.E")
@pytest.mark.rule("MD3 3.B")
@pytest.mark.parametrize("unit", DeviceUnit)
def test_one_failed_half_ends_the_use_of_the_whole_machine(tmp_path: Path, unit: DeviceUnit) -> None:
    """Packs leave the machine only through the shoe, so the shuffler is of no use without it."""
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.BETS)
        table.staff.give(ReportUnitFailed(unit))
        assert table.until(NeedKind.CHANGE_METHOD).details["methods"] == ["manual-shoe"]
        table.rounds(2)
        found = rounds_of(table.rows())
        assert [found[each].method for each in (1, 2)] == ["manual-shoe"] * 2
        assert found[1].pack_id == found[2].pack_id
        assert len(table.rows("remove")) == 1


@pytest.mark.rule("MDM 5.A")
@pytest.mark.rule("MDM 3.B")
def test_mini_baccarat_from_a_manual_shoe_without_a_machine(tmp_path: Path) -> None:
    query = "seed=1&capacity=batch"
    with simulated_table(tmp_path, query, rules="md-mini-baccarat", method=MANUAL) as table:
        table.play(lambda table: bool(table.rows("sign_in")))
        for unit in DeviceUnit:
            table.staff.give(ReportUnitFailed(unit))
        table.rounds(2)
        assert [
            each.row.kind for each in table.rows("verify_shuffle", "cut", "place_cover", "load", "burn")
        ] == [
            "verify_shuffle",
            "cut",
            "place_cover",
            "load",
            "burn",
        ]
        found = rounds_of(table.rows())
        assert all(found[each].complete for each in (1, 2))
