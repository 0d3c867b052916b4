"""A house policy is stricter than its rule text, never laxer."""

from pathlib import Path

import pytest
from tests.table.croupier import DEALER, FLOOR, HOUR, Croupier

from sabot_table.errors import BadSave, HousePolicyError
from sabot_table.house_policy import load_policy, parse_policy
from sabot_table.procedure import TableProcedure, TableRole
from sabot_table.ruleset import load

MD3 = load("md-three-card-baccarat")
STRICT = """
name = "pit-2"
[acts.shoe_failed]
who = "floor"
[acts.settle]
countersign = true
[acts.start_shuffle]
who = "floor"
[hours]
shoe = 6
"""


def test_the_table_goes_by_the_stricter_of_text_and_policy(tmp_path: Path) -> None:
    path = tmp_path / "pit-2.toml"
    path.write_text(STRICT, encoding="utf-8")
    policy = load_policy(path, MD3)
    table = Croupier(MD3)
    table.procedure = TableProcedure(MD3, policy=policy)
    table.open(2)
    with table.refused("MD3 5.A", "this is for device or floor"):
        table.do("start_shuffle", DEALER, 1, machine=True)
    for pack in (1, 2):
        table.device("start_shuffle", pack, machine=True)  # what the device reports is never forbidden
        table.device("finish_shuffle", pack, 52)
    table.do("load", DEALER, 1)
    table.antes()
    with table.refused("MD3 13.D", "this is for floor"):
        table.do("shoe_failed", DEALER, "stuck")
    rows = {row.action: row for row in table.table.expects()}
    assert rows["shoe_failed"].countersign
    assert rows["shoe_failed"].who == (TableRole.FLOOR,)
    table.do("shoe_failed", FLOOR, "stuck")
    table.do("empty_device", DEALER)
    table.do("collect", DEALER)
    table.do("load", DEALER, 2)
    table.now_s += 6 * HOUR
    with table.refused("MD3 3.C", "6 hours is the most"):
        table.do("open_bets", DEALER)
    again = TableProcedure.restore(MD3, table.table.save(), policy)
    assert again.table.save() == table.table.save()
    with pytest.raises(BadSave):
        TableProcedure.restore(load("wa-three-card-baccarat"), table.table.save(), policy)


@pytest.mark.parametrize(
    ("text", "where", "what", "do"),
    [
        ("[acts.settle]\nwho = 'dealer floor'", "acts.settle.who", "adds floor", "only some of dealer"),
        ("[acts.shoe_failed]\ncountersign = false", "acts.shoe_failed.countersign", "is false", "MD3 13.D"),
        ("[acts.burn]\nwho = 'floor'", "acts.burn", "is no act of MD3", "give some of"),
        ("[hours]\nshoe = 9", "hours.shoe", "is 9", "give 8 at most (MD3 3.C)"),
        ("[hours]\nhand = 5", "hours.hand", "is 5", "give 4 at most"),
        ("[hour]\nhand = 5", "hour", "is not a key of this file", "spelling"),
        ("[acts.settle]\nwho = ''", "acts.settle.who", "at least 1", "correct"),
        ("[acts.deal_stack]\nwho = 'dealer'", "acts.deal_stack.who", "adds dealer", "only some of nobody"),
    ],
)
def test_a_laxer_policy_is_refused_by_its_place(text: str, where: str, what: str, do: str) -> None:
    with pytest.raises(HousePolicyError) as refused:
        parse_policy(f"name = 'pit'\n{text}\n", MD3, "pit.toml")
    assert refused.value.source == "pit.toml"
    found = {each.where: each for each in refused.value.problems}
    assert what in found[where].what
    assert do in found[where].do
