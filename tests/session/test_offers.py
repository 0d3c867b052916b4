"""Offers: what people may tell a table without being asked is listed exactly while the session takes it."""

from pathlib import Path

import pytest
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_session import acts
from sabot_session.acts import Act
from sabot_session.needs import NeedKind
from sabot_table.errors import RuleViolation

pytestmark = pytest.mark.slow
TRIED: tuple[Act, ...] = (acts.ReportFaceUp(), acts.ReportWrongNumber(), acts.ReportShoeFailed(), acts.Hold())


def offered(table: SimulatedTable) -> set[str]:
    return {each["act"] for each in table.run.read(lambda session: session.snapshot())["offers"]}


@pytest.mark.parametrize("act", TRIED, ids=lambda act: act.NAME)
def test_what_is_offered_is_taken_and_what_is_not_is_refused(tmp_path: Path, act: Act) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.BETS)
        assert act.NAME not in offered(table)
        with pytest.raises(RuleViolation):
            table.staff.give(act)
        table.until(NeedKind.EXPOSE)
        assert (act.NAME in offered(table)) == (act != acts.ReportFaceUp())
        if act.NAME in offered(table):
            table.staff.give(act)
            assert act.NAME not in offered(table)
        else:
            with pytest.raises(RuleViolation):
                table.staff.give(act)


def test_dealers_change_only_between_rounds(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.SIGN_IN)
        assert offered(table).isdisjoint({"sign_out", "call_floor"})
        table.until(NeedKind.BETS)
        assert {"sign_in", "sign_out", "call_floor", "close_table"} <= offered(table)
        table.until(NeedKind.EXPOSE)
        assert offered(table).isdisjoint({"sign_in", "sign_out", "close_table"})
        assert "call_floor" in offered(table)
