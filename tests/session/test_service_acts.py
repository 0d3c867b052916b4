"""A technician's acts and the stop: on record with a person, offered only while the machine takes them."""

from pathlib import Path

import pytest
from tests.session.simulated_table import SimulatedTable, simulated_table

from sabot_driver.calibration import read_calibration
from sabot_driver.self_test import SelfTestResult
from sabot_protocol.host.messages import Calibration
from sabot_session import service_acts as acts
from sabot_session.acts import Act
from sabot_session.needs import NeedKind
from sabot_session.outcomes import ActRefused

pytestmark = pytest.mark.slow
ALL = {each.NAME for each in acts.ACTS}


def offered(table: SimulatedTable) -> set[str]:
    found = {each["act"] for each in table.run.read(lambda session: session.snapshot())["offers"]}
    return found & ALL


def states(table: SimulatedTable) -> tuple[str, str]:
    device = table.run.read(lambda session: session.snapshot())["device"]
    return device["shuffler"], device["shoe"]


def wait_states(table: SimulatedTable, shuffler: str, shoe: str) -> None:
    table.play(lambda now: states(now) == (shuffler, shoe), frozenset(NeedKind))


def test_the_stop_exists_only_while_no_round_is_open(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.BETS)
        assert offered(table) == {"stop_machine"}
        table.until(NeedKind.EXPOSE)
        assert offered(table) == set()
        with pytest.raises(ActRefused, match="a round is open"):
            table.staff.give(acts.StopMachine())
        assert not table.rows("stop_machine")
        table.until(NeedKind.BETS)
        table.staff.give(acts.StopMachine())
        table.until(NeedKind.CLEAR_FAULT)
        assert states(table)[1] == "jammed"
        (row,) = table.rows("stop_machine")
        assert (row.row.actor.role, row.row.actor.person) == ("dealer", "simulated dealer")
        table.until(NeedKind.BETS)  # cleared, emptied, shuffled again: play goes on
        assert not table.rows("void")


def test_service_is_begun_works_and_ends_with_a_self_test(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.RECEIVE_PACK)
        assert offered(table) == {"begin_service", "self_test"}
        for each in (acts.JogPart("feed"), acts.Calibrate("card_um", 302, 300), acts.EndService()):
            with pytest.raises(ActRefused, match="not in service"):
                table.staff.give(each)
        table.staff.give(acts.BeginService())
        wait_states(table, "service", "service")
        assert offered(table) == {"end_service", "jog", "calibrate"}
        table.staff.give(acts.JogPart("feed"))
        table.staff.give(acts.Calibrate("card_um", 302, 300))
        wait_value(table, 302)
        table.staff.give(acts.Calibrate("card_um", 400, 302))  # outside the device's limits
        table.play(lambda now: bool(now.rows("command_answered")), frozenset(NeedKind))
        assert read_calibration(table.client, Calibration.CARD_UM, 5.0).value == 302
        table.staff.give(acts.EndService())
        wait_states(table, "idle", "empty")
        kinds = [each.row.kind for each in table.rows() if each.row.kind in ALL]
        assert kinds == ["begin_service", "jog", "calibrate", "calibrate", "end_service"]
        assert {each.row.actor.role for each in table.rows(*ALL)} == {"service"}
        assert table.rows("calibrate")[0].row.data == {"what": "card_um", "value": 302, "was": 300}
        assert table.rows("jog")[0].row.data == {"part": "feed"}
        table.until(NeedKind.BETS)


def wait_value(table: SimulatedTable, value: int) -> None:
    table.play(
        lambda now: read_calibration(now.client, Calibration.CARD_UM, 5.0).value == value, frozenset(NeedKind)
    )


@pytest.mark.parametrize("act", [acts.BeginService(), acts.SelfTest()], ids=lambda act: act.NAME)
def test_nothing_of_service_while_decks_are_proved_or_a_round_is_open(tmp_path: Path, act: Act) -> None:
    with simulated_table(tmp_path) as table:
        for kind in (NeedKind.BETS, NeedKind.EXPOSE):
            table.until(kind)
            with pytest.raises(ActRefused, match=r"a round is open|no round open"):
                table.staff.give(act)
        assert not table.rows(act.NAME)


def test_a_self_test_of_an_empty_machine(tmp_path: Path) -> None:
    with simulated_table(tmp_path) as table:
        table.until(NeedKind.RECEIVE_PACK)
        here, tested = table.client.loop.rows, SelfTestResult()
        table.staff.give(acts.SelfTest())
        for event in table.client.events(here, timeout=20.0):
            if tested.hear(getattr(event, "message", None)):
                break
        assert tested.ok
        wait_states(table, "idle", "empty")
        assert len(table.rows("self_test")) == 1
