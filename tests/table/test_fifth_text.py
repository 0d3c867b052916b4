"""A fifth rule text is a file: a day is played under it, and no code knows its name."""

import re
from pathlib import Path

from tests.table.croupier import DEALER, FLOOR, HOUR, PLAYER, Croupier

import sabot_table
from sabot_table.procedure.vocabulary import DeviceUnit, Verdict
from sabot_table.rule_text_files import rule_text
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import RuleSet, load

ROOT = Path(*sabot_table.__path__)
# The invented text, as what it says otherwise than Maryland's.
CHANGES = (
    ('key = "MD3"', 'key = "ZZ9"'),
    ('title = "Three Card Baccarat (Maryland)"', 'title = "Three Card Baccarat (nowhere)"'),
    ("hours_shoe = 8", "hours_shoe = 3"),
    ("least = 6\nmost = 6", "least = 2\nmost = 3"),
    ("from_top = 10", "from_top = 20"),
    ("count_every = 5", "count_every = 2"),
    ('order = "clockwise"', 'order = "counter-clockwise"'),
    ("[wagers]\n", "[wagers]\nmost_kinds = 1\n"),
    ('hours = "3.C"\nlimits', 'hours = "77"\nlimits'),
    ('face_up_card = "13.A"', 'face_up_card = "88"'),
)
# Acts that it gives to others, at other times, under other clauses; and those that it does not have.
ROWS = {
    "settle": 'from = "settling", to = "collecting", who = "floor", clause = "11.B"',
    "face_up_card": 'from = "dealing", to = "voided", who = "floor", clause = "13.A"',
    "open_bets": 'from = "between", to = "betting", who = "dealer", clause = "55"',
}
WITHOUT = ("forfeit", "abandon")
RULE_SET = """
extends = "md-three-card-baccarat"
name = "nowhere"
text_file = "zz9.toml"
[cards]
hours_shoe = 3
[seats]
count = 3
"""


def nowhere(tmp_path: Path) -> RuleSet:
    """A rule set under the invented text."""
    text = (ROOT / "texts" / "MD3.toml").read_text(encoding="utf-8")
    for old, new in CHANGES:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    for action in (*ROWS, *WITHOUT):
        row = f"{action} = {{ {ROWS[action]} }}\n" if action in ROWS else ""
        text, changed = re.subn(rf"^{action} = {{.*\n", row, text, flags=re.MULTILINE)
        assert changed == 1, action
    (tmp_path / "zz9.toml").write_text(text, encoding="utf-8")
    (tmp_path / "rules.toml").write_text(RULE_SET, encoding="utf-8")
    return load(tmp_path / "rules.toml")


def settle(table: Croupier) -> None:
    """The floor settles, the dealer collects."""
    with table.refused("ZZ9 11.B", "this is for floor"):
        table.do("settle", DEALER)
    lines = table.do("settle", FLOOR).lines
    assert [line.seat for line in lines] == [3, 1]  # counter-clockwise
    assert all(line.clause.startswith("ZZ9 ") for line in lines)
    table.do("collect", DEALER)


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
