"""A fifth rule text is a file: a day is played under it, and no code knows its name."""

from pathlib import Path

import pytest
from tests.table.croupier import DEALER, FLOOR, HOUR, PLAYER, Croupier
from tests.table.invented_text import ROOT, nowhere

from sabot_table.procedure.vocabulary import DeviceUnit, Verdict
from sabot_table.rule_text_files import rule_text
from sabot_table.rule_texts import DealingMethod


def settle(table: Croupier) -> None:
    """The floor settles, the dealer collects."""
    with table.refused("ZZ9 11.B", "this is for floor"):
        table.do("settle", DEALER)
    lines = table.do("settle", FLOOR).lines
    assert [line.seat for line in lines] == [3, 1]  # counter-clockwise
    assert all(line.clause.startswith("ZZ9 ") for line in lines)
    table.do("collect", DEALER)


@pytest.mark.slow
def test_a_day_is_played_under_a_text_that_no_code_knows(tmp_path: Path) -> None:
    rules = nowhere(tmp_path)
    assert not any("ZZ9" in path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    assert rules.fixed is rule_text("ZZ9")
    table = Croupier(rules, restarts=True).open(2)
    table.machine_shuffle(1)
    table.machine_shuffle(2)
    table.do("load", DEALER, 1)
    with table.refused("ZZ9 2.A", "the seats are 1 to 3"):
        table.do("sit", PLAYER, 4)
    with table.refused("ZZ9 55"):
        table.do("open_bets", FLOOR)
    # a round from the automated shoe
    table.do("open_bets", DEALER)
    for seat in (1, 3):
        table.do("place_wager", PLAYER, seat, "ante", 2_000)
    with table.refused("ZZ9 7.E", "1 kinds at most"):
        table.do("place_wager", PLAYER, 1, "tie", 500)
    table.do("no_more_bets", DEALER)
    table.stacks()
    with table.refused("ZZ9 13.A"):
        table.do("face_up_card", FLOOR)  # too late under this text
    table.counted()
    with table.refused("ZZ9 13.C", "which ZZ9 does not have"):
        table.do("forfeit", FLOOR, 1)
    table.show()
    settle(table)
    # irregularities
    table.machine_shuffle(1)
    table.do("load", DEALER, 2)
    table.antes()
    table.stacks(1)
    with table.refused("ZZ9 13.A", "this is for floor"):
        table.do("face_up_card", DEALER)
    table.do("face_up_card", FLOOR)
    assert table.table.round.void_clause == "ZZ9 88"
    table.do("empty_device", DEALER)
    table.do("collect", DEALER)
    table.do("load", DEALER, 1)
    table.antes()
    table.stacks()
    table.machine_shuffle(2)
    table.counted(Verdict.CARD_MISSING)
    assert table.table.round.void_clause == "ZZ9 10.C"
    table.do("collect", DEALER)
    assert table.ordered("remove-pack")[0]["clause"] == "ZZ9 5.B"
    # the machine fails; one deck, by hand
    for unit in DeviceUnit:
        table.device("unit_failed", unit)
        table.do("mark_out_of_order", DEALER, unit, "sign")
    table.do("change_method", FLOOR, DealingMethod.MANUAL_SHOE)
    table.do("start_shuffle", FLOOR, 2, machine=False)
    table.do("finish_shuffle", DEALER, 2)
    with table.refused("ZZ9 5.D", "at least 20"):
        table.do("cut", DEALER, 2, 19)
    for number in (1, 2):
        table.do("cut", DEALER, 2, 20)
        table.do("load", DEALER, 2)
        table.antes()
        table.deal_cards()
        if number == 2:
            with table.refused("ZZ9 8.E", "for 2 rounds"):
                table.do("pass_stub", DEALER)
            table.do("count_stub", DEALER, 43)
        else:
            table.do("pass_stub", DEALER)
        table.show()
        settle(table)
        table.hand_shuffle(2)
    table.do("cut", DEALER, 2, 20)
    table.do("load", DEALER, 2)
    table.now_s += 3 * HOUR
    with table.refused("ZZ9 77", "3 hours is the most"):
        table.do("open_bets", DEALER)
    table.do("close_table", FLOOR)
