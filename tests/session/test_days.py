"""A scripted day under each three-card text: afterwards the record alone tells every round, to the cent."""

from collections import Counter
from pathlib import Path

import pytest
from tests.session.independent_settlement import settled_again
from tests.session.scripted_day import FAULTS, Clock, Day
from tests.session.simulated_table import simulated_table

from sabot_session.needs import NeedKind
from sabot_session.record import RecordReader, SqliteRecord
from sabot_session.round_history import RoundEnd, list_rounds

pytestmark = pytest.mark.slow
VOIDS = {
    "md-three-card-baccarat": {"MD3 10.C", "MD3 13.A", "MD3 13.C", "MD3 13.D"},
    "wa-three-card-baccarat": {"WA3 house"},
}
HAPPENED = (
    "open_table", "receive_pack", "start_shuffle", "shuffle_revealed", "fault_raised", "clear_fault",
    "determine", "countersign", "remove", "place_wager", "withdraw_wager", "return_bets", "leave",
    "wrong_number", "hold", "release", "open_dispute", "decide_dispute", "propose_correction", "correct",
    "sign_out", "call_floor", "floor_comes", "idle", "player_arrives", "machine_started", "empty_machine",
    "unit_failed", "mark_out_of_order", "repaired", "close_table",
)  # fmt: skip


@pytest.mark.rule("MD3 11.C")
@pytest.mark.parametrize(
    "rules", ["md-three-card-baccarat", pytest.param("wa-three-card-baccarat", marks=pytest.mark.full)]
)
def test_a_day(tmp_path: Path, rules: str) -> None:
    path, clock = tmp_path / "T1.table.db", Clock()
    maryland = rules.startswith("md")
    with (
        SqliteRecord(path) as record,
        simulated_table(tmp_path, f"seed=1&{FAULTS}", rules=rules, record=record, now_s=clock) as table,
    ):
        Day(table, clock, maryland).play()
        before = table.run.read(lambda session: session.procedure.table.memory.rounds)
        collected = len(table.rows("collect"))
    with (  # the next day, with a spare machine
        SqliteRecord(path) as record,
        simulated_table(tmp_path, "seed=2&serial=SIM00002", rules=rules, record=record) as table,
    ):
        table.play(lambda table: bool(table.rows("swap_machine")))
        table.rounds(collected + 2)
        table.until(NeedKind.BETS)
        kinds = Counter(each.row.kind for each in table.rows())
    with RecordReader(path) as reader:
        rounds = list(list_rounds(reader))
        clauses = {each.void.clause for each in rounds if each.void is not None}
    spare = [each for each in rounds if each.round_id > before]
    assert {each.serial for each in spare} == {"SIM00002"}
    assert [each.round_id for each in spare] == list(range(before + 1, before + 1 + len(spare)))
    assert kinds["interruption"] == 0
    assert [each for each in HAPPENED if not kinds[each]] == []
    assert clauses == VOIDS[rules]
    assert [(each.round_id, each.missing) for each in rounds[:-1] if not each.complete] == []
    ends = Counter(each.end for each in rounds)
    assert min(ends[RoundEnd.SETTLED], ends[RoundEnd.VOID], ends[RoundEnd.RETURNED]) >= 1
    again = settled_again(path)
    assert {number: told for number, (told, _) in again.items()} == {
        number: computed for number, (_, computed) in again.items()
    }
    assert len(again) >= ends[RoundEnd.SETTLED] >= 10
    hours = [each for each in ("hours_warned", "forfeit", "abandon") if kinds[each]]
    assert hours == (["hours_warned", "forfeit", "abandon"] if maryland else [])
