"""A session under an invented text that no code knows: who acts, when, by which clause is in its file."""

from pathlib import Path

import pytest
from tests.session.acted_table import ActedTable
from tests.table.invented_text import nowhere

from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_session.outcomes import NotYours
from sabot_session.round_history import RoundEnd, read_round
from sabot_table.procedure import TableRole

ANTES = {1: {"ante": 2000}, 3: {"ante": 4000}}


def test_a_day_is_run_under_a_text_that_no_code_knows(tmp_path: Path) -> None:
    nowhere(tmp_path)
    table = ActedTable(str(tmp_path / "rules.toml"))
    table.ready()
    table.bet(ANTES)
    table.give(acts.Expose())
    need = table.need(NeedKind.SETTLE)  # here the floor settles, not the dealer
    assert need is not None
    assert (need.roles, need.clause) == ((TableRole.FLOOR,), "ZZ9 11.B")
    with pytest.raises(NotYours):
        table.give(dealing_acts.Settle(), "ben")
    table.give(dealing_acts.Settle(), "anna", need)
    first = read_round(table.record, 1)
    assert first.end is RoundEnd.SETTLED
    assert [line.seat for line in first.lines] == [3, 1]  # counter-clockwise

    table.machine.stop_after = 1
    table.bet(ANTES)
    with pytest.raises(NotYours):
        table.give(acts.ReportFaceUp(), "ben")  # the floor's act here
    table.give(acts.ReportFaceUp(), "anna")
    table.machine.stop_after = 99
    void = read_round(table.record, 2).void
    assert void is not None
    assert void.clause == "ZZ9 88"

    table.tick(3 * 3600)
    left = [each.must_leave for each in table.session.procedure.table.packs()]
    assert left == ["its hours are over"] * 2
    texts = {each.row.clause.split()[0] for each in table.record.all_rows() if each.row.clause}
    assert texts == {"ZZ9"}
