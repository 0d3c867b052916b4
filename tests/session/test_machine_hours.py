"""The machine says that a deck's hours are over before the table's clock says it."""

import time
from pathlib import Path

import pytest
from tests.session.simulated_table import TIMEOUT_S, SimulatedTable, simulated_table

from sabot_protocol.host.messages import SetClock
from sabot_session.needs import NeedKind

pytestmark = pytest.mark.slow

OVER_S = 9 * 3600  # Maryland's 8 hours are over then


def set_clock(table: SimulatedTable, ahead_s: int) -> None:
    """Set the machine's clock so far ahead of the table's."""
    table.client.submit(SetClock(int(time.time()) + ahead_s, 0))[1].result(TIMEOUT_S)


@pytest.mark.parametrize("at", [NeedKind.BETS, NeedKind.EXPOSE, NeedKind.FEED])
def test_decks_that_the_machine_refuses_leave_and_the_table_goes_on(at: NeedKind, tmp_path: Path) -> None:
    """The session once asked for the same deck for ever: it heard only a refused commitment."""
    with simulated_table(tmp_path) as table:
        table.rounds(2)
        table.until(at)
        set_clock(table, OVER_S)
        table.play(lambda table: len(table.rows("remove")) >= 2)
        set_clock(table, 0)  # else the machine refuses new packs too
        settled = len(table.rows("settle"))
        table.play(lambda table: len(table.rows("settle")) >= settled + 2)
        assert {each.row.data["reason"] for each in table.rows("remove")} == {"hours"}
        whys = [each.row.data["why"] for each in table.rows("void")]
        assert set(whys) <= {"the machine opened no round: the deck's hours are over"}
        assert whys or at is not NeedKind.BETS
        assert not table.rows("empty_device"), "no card of such a round left the machine"
