"""Faces of a table without a table: what they do if a program or a device does not answer at once."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pytest_mock import MockerFixture

from sabot_cli.at_table import attached_table, one_act
from sabot_cli.at_table.attached_table import WAITING, AttachedTable
from sabot_cli.at_table.device_clock import DeviceClock
from sabot_cli.at_table.one_act import ActingPerson, Step, give_acts
from sabot_cli.output import FAILED, OK, Output
from sabot_driver.errors import LinkLost
from sabot_driver.received_events import ReceivedEvent
from sabot_protocol.host.messages import ClockChanged, SetClock
from sabot_serve.errors import ServiceGone
from sabot_serve.service_file import ServiceAddress
from sabot_session import acts
from sabot_session.needs import Need, NeedKind
from sabot_session.outcomes import ActDone
from sabot_session.snapshot import VERSION
from sabot_table.procedure import TableRole

HERE, THERE = ServiceAddress("http://one", 1, "first"), ServiceAddress("http://two", 2, "second")


def second_face(mocker: MockerFixture) -> AttachedTable:
    """A second face of a table whose program is a mock, and has moved to another address since."""
    about = {"table": "T1", "ruleset": "md-three-card-baccarat", "boot_id": 1}
    mocker.patch.object(attached_table, "ServiceClient").return_value.check.return_value = about
    mocker.patch.object(attached_table, "find_service", return_value=THERE)
    mocker.patch.object(attached_table, "AGAIN_S", 0)
    return AttachedTable(Path("nowhere"), HERE)


def test_an_act_without_an_answer_is_sent_to_where_the_program_is_now(mocker: MockerFixture) -> None:
    """It was restarted at another address, and the act has the same id there."""
    attached = second_face(mocker)
    sent: Any = attached._client
    sent.post.side_effect = [ServiceGone("gone"), {"row": 7, "repeated": False}]
    assert attached.act("id 1", None, 3, None, acts.CallFloor("so")) == ActDone(7, False)
    sent.move.assert_called_once_with(THERE)
    first, second = (each.args for each in sent.post.call_args_list)
    assert first == second
    assert attached.needs() == [WAITING], "until its stream tells something again"


def test_a_full_snapshot_replaces_all_parts(mocker: MockerFixture) -> None:
    """A part that the other program does not have any more is not shown from an older snapshot."""
    attached = second_face(mocker)
    attached._take("1", {"full": True, "parts": {"version": VERSION, "needs": [], "old": 1}})
    attached._take("2", {"full": False, "parts": {"new": 2}})
    assert attached.snapshot() == {"version": VERSION, "needs": [], "old": 1, "new": 2}
    attached._take("3", {"full": True, "parts": {"version": VERSION, "needs": []}})
    assert attached.snapshot() == {"version": VERSION, "needs": []}


def test_a_clock_that_could_not_be_set_is_set_at_the_next_look() -> None:
    """The link was down when the device told of its clock; it tells that once."""
    client, printer, heard = Mock(), Mock(), list[Callable[[Any], None]]()
    client.on_event.side_effect = heard.append
    client.status.side_effect = [LinkLost("pulled"), Mock(utc_s=0)]
    clock = DeviceClock(client, Mock(), printer, 1.0)
    clock.look()
    client.status.assert_not_called()
    heard[0](Mock(spec=ReceivedEvent, message=Mock(spec=ClockChanged)))
    clock.look()
    client.ask.assert_not_called()
    clock.look()
    (asked,) = client.ask.call_args_list
    assert isinstance(asked.args[0], SetClock)
    assert abs(asked.args[0].utc_s - time.time()) < 60
    clock.look()
    assert client.status.call_count == 2, "it is right now"
    printer.print.assert_called_once()


@pytest.mark.parametrize("now_s", [0, 1 << 32], ids=["1970", "2106"])
def test_a_wrong_clock_of_the_computer_is_said_once_and_does_not_end_the_program(
    mocker: MockerFixture, now_s: int
) -> None:
    """Such a time does not fit the message: the error ended `sabot play`."""
    mocker.patch("sabot_cli.at_table.device_clock.time.time", return_value=now_s)
    client, printer, heard = Mock(), Mock(), list[Callable[[Any], None]]()
    client.on_event.side_effect = heard.append
    client.status.return_value = Mock(utc_s=1_800_000_000)
    client.ask.side_effect = lambda message, timeout: message.pack()
    clock = DeviceClock(client, Mock(), printer, 1.0)
    heard[0](Mock(spec=ReceivedEvent, message=Mock(spec=ClockChanged)))
    for _ in range(2):
        clock.look()
    (said,) = printer.print.call_args_list
    assert "Set this computer's date and time" in said.args[0]


def test_an_act_about_a_round_meets_the_need_of_that_round() -> None:
    """Two rounds wait for the same act."""
    floor = (TableRole.FLOOR,)
    needs = [
        Need(f"countersign-{number}", NeedKind.COUNTERSIGN, floor, "", "", ("countersign",), 0, 0, details)
        for number, details in enumerate(({"row": 5, "round_id": 1}, {"row": 9, "round_id": 2}))
    ]
    table = Mock(needs=lambda: needs)
    for data, round_id, found in (({}, 2, needs[1]), ({}, 1, needs[0]), ({"row": 9}, 1, None)):
        assert one_act._need_for(table, acts.Countersign, data, round_id) is found


@pytest.mark.parametrize("refused", [0, 1, None])
def test_a_command_of_two_acts_fails_if_the_machine_refused_what_followed_from_either(
    mocker: MockerFixture, capsys: pytest.CaptureFixture[str], refused: int | None
) -> None:
    state, done = Mock(output=Output(True)), iter((ActDone(10), ActDone(20)))
    rows = {10: ["refused"] if refused == 0 else [], 20: ["refused"] if refused == 1 else []}
    table = Mock(needs=list, rows=lambda after, *kinds: rows[after])
    for name in ("TableLog", "_settle", "_credential", "standing"):
        mocker.patch.object(one_act, name)
    mocker.patch.object(one_act, "_simulated", return_value=True)
    mocker.patch.object(one_act, "_give", side_effect=lambda *_: next(done))
    steps = [Step("install_machine", {"serial": "SABOT002"}), Step("swap_machine", {"serial": "SABOT002"})]
    code = give_acts(state, table, ActingPerson(), steps, 1.0)
    assert code == (OK if refused is None else FAILED)
    told = [json.loads(line)["ok"] for line in capsys.readouterr().out.splitlines()]
    assert told == [refused != 0, refused is None]
