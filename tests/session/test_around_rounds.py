"""What happens around rounds: buttons, idle times, calls of the floor, a pack's hours, interruptions."""

import hashlib
from pathlib import Path

import pytest
from tests.session.acted_table import ActedTable
from tests.session.scripted_machine import ScriptedMachine
from tests.session.simulated_table import simulated_table

from sabot_protocol.host import messages as m
from sabot_session import acts
from sabot_session.needs import NeedKind
from sabot_session.outcomes import ActRefused, Answered, NoDealer, NotYours
from sabot_session.pace import paces
from sabot_session.rows import Authentication
from sabot_table.errors import RuleViolation
from sabot_table.procedure import TableRole

pytestmark = pytest.mark.slow

HOUR_S = 3600
LEFT, RIGHT = m.ButtonFlag.LEFT, m.ButtonFlag.RIGHT


def test_both_touches_by_the_machines_buttons() -> None:
    table = ActedTable()
    table.ready()
    table.machine.press(LEFT)
    assert table.rows("open_bets") == []  # no seats are known yet
    table.round()
    before = len(table.rows())
    table.machine.press(RIGHT)
    assert len(table.rows()) == before  # the hands lie open already
    table.machine.press(LEFT)
    assert table.session.procedure.table.state == "revealing"
    table.machine.press(LEFT)
    table.machine.press(RIGHT)
    rows = [each for each in table.rows() if each.round_id == 2]
    touched = [each for each in rows if each.kind in ("open_bets", "no_more_bets", "reveal", "settle")]
    assert [each.kind for each in touched] == ["open_bets", "no_more_bets", "reveal", "settle"]
    assert {(each.actor.person, each.actor.how) for each in touched} == {("ben", Authentication.SENSED)}
    assert all(each.follows is not None for each in touched)
    assert touched[2].follows == touched[3].follows != touched[1].follows
    assert [each.touches for each in paces(table.record.all_rows())] == [2, 2]


def test_a_button_without_a_dealer_does_nothing() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    table.give(acts.SignOut())
    before = len(table.rows())
    table.machine.press(LEFT)
    assert len(table.rows()) == before


def test_a_button_that_the_rules_refuse_is_a_notice_and_the_next_event_is_heard() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    table.now_s += 8 * HOUR_S
    before = len(table.rows())
    table.machine.press(LEFT)
    assert "8 hours" in table.session.snapshot()["notice"]
    assert len(table.rows()) == before
    table.machine.tell(m.FloorCalled(0, bytes(8), 0))
    assert table.session.snapshot()["notice"] == ""
    assert table.session.journal_at == table.machine.at


@pytest.mark.rule("MD3 5.F")
def test_an_idle_table_keeps_counted_packs_and_goes_on_when_a_player_comes() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.Idle())
    assert table.kinds() == [NeedKind.PLAYER_ARRIVES]
    with pytest.raises(RuleViolation):
        table.bet()
    need = table.need(NeedKind.PLAYER_ARRIVES)
    table.give(acts.PlayerArrives(), need=need)
    table.round()
    assert [each.kind for each in table.rows("idle", "player_arrives", "spread_idle")] == [
        "idle",
        "player_arrives",
    ]


def test_the_floor_is_called_and_comes() -> None:
    table = ActedTable()
    table.ready()
    with pytest.raises(ActRefused):
        table.give(acts.FloorComes())
    table.give(acts.CallFloor("a player is ill"))
    need = table.need(NeedKind.FLOOR_COMES)
    assert need is not None
    assert "a player is ill" in need.words
    with pytest.raises(NotYours):
        table.give(acts.FloorComes(), "ben", need)
    table.give(acts.FloorComes(), need=need)
    assert table.need(NeedKind.FLOOR_COMES) is None
    assert table.machine.asked.count("call_floor") == 2


@pytest.mark.rule("MD3 3.C")
def test_a_packs_hours_are_warned_of_twice_let_a_round_finish_and_make_the_pack_leave() -> None:
    table = ActedTable()
    table.ready()
    table.tick(7 * HOUR_S + 29 * 60)
    assert table.rows("hours_warned") == []
    table.tick(60)
    table.tick(60)
    table.tick(19 * 60)
    warned = [(each.data["pack_id"], each.data["minutes"]) for each in table.rows("hours_warned")]
    assert warned == [(1, 30), (2, 30), (1, 10), (2, 10)]
    assert {each["hours_warned"] for each in table.session.snapshot()["packs"]} == {10}
    table.bet()
    table.tick(15 * 60)  # the hours end in the round
    table.give(acts.Expose())
    assert len(table.rows("settle")) == 1
    with pytest.raises(RuleViolation):
        table.bet(None)
    table.tick()
    table.prepare()
    gone = [(each.data["reason"], each.actor.person) for each in table.rows("remove")]
    assert gone == [("hours", "anna"), ("hours", "anna")]
    table.bet(None)
    assert table.rows("open_bets")[-1].data["pack_id"] in (3, 4)


def test_the_next_run_notes_that_the_one_before_was_killed() -> None:
    table = ActedTable()
    table.ready()
    table.bet()
    table.restart()
    table.tick(5)
    (noted,) = table.rows("interruption")
    assert (noted.round_id, noted.data["commands"]) == (1, [])
    assert noted.actor.role is TableRole.PROGRAM
    table.session.end(table.now_s)
    table.restart()
    table.tick()
    assert len(table.rows("interruption")) == 1


def test_the_house_policy_in_force_is_on_record_once_and_so_is_its_end() -> None:
    text = 'name = "pit-2"\n'
    table = ActedTable(policy=text)
    table.tick()
    table.restart()
    table.tick()
    (noted,) = table.rows("house_policy")
    assert noted.data == {"name": "pit-2", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert noted.actor.role is TableRole.PROGRAM
    table.house = None
    table.restart()
    table.tick()
    assert [each.data["name"] for each in table.rows("house_policy")] == ["pit-2", ""]


def test_dealers_tap_in_and_out_between_rounds() -> None:
    table = ActedTable()
    table.ready()
    table.bet()
    for act in (acts.SignIn(), acts.SignOut()):
        with pytest.raises(RuleViolation):
            table.give(act, "cleo")
    table.give(acts.Expose())
    table.give(acts.SignIn(), "cleo")
    rows = [(each.kind, each.actor.person) for each in table.rows("sign_in", "sign_out")]
    assert rows == [("sign_in", "ben"), ("sign_out", "ben"), ("sign_in", "cleo")]
    assert table.rows("sign_out")[0].data["relieved_by"] == "cleo"
    table.bet(None)
    assert table.rows("open_bets")[1].data["dealer"] == "ben"
    table.give(acts.Expose(), "ben")
    table.give(acts.SignOut(), "cleo")
    assert table.need(NeedKind.BETS) is None


def test_a_table_that_closes_while_a_pack_is_fed_has_it_shuffled_again_after_the_opening() -> None:
    table = ActedTable()
    table.ready()
    table.machine.lay_in = False
    table.round()
    first = table.session.procedure.table.round.pack_id
    table.give(acts.CloseTable())
    ((shuffle_id, _),) = table.machine.committed.items()
    table.machine.tell(m.ShufflerChanged(m.ShufflerState.FEEDING, first))  # it was asked for before
    table.machine.tell(m.DeckCounted(first, shuffle_id, 52, 52))
    table.machine.tell(m.ShufflerChanged(m.ShufflerState.STORED, first))
    table.machine.stored, table.machine.lay_in = first, True
    table.give(acts.OpenTable())
    table.round(None)  # with the other pack; this one goes into the shoe then
    assert table.machine.in_shoe == first
    assert table.need(NeedKind.BETS) is None
    assert table.need(NeedKind.EMPTY_MACHINE) is not None
    table.prepare()
    table.tick()  # the tray is looked at again
    table.round(None)
    assert len(table.rows("settle")) == 3


def test_another_machine_is_used_only_when_service_and_floor_say_so() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    spare = ScriptedMachine(table.session, lambda: table.now_s)
    spare.hands, spare.at = list(table.machine.hands), 0
    spare.last = m.LastRoundIs(40, 1, 0, 0, 52)
    table.machine = spare
    spare.link("SABOT002")
    assert spare.asked == []
    need = table.need(NeedKind.SWAP_MACHINE)
    assert need is not None
    spare.tell(m.Buttons(LEFT))  # it is heard, and nothing follows
    with pytest.raises(ActRefused):
        table.give(acts.SwapMachine("SABOT002"))
    with pytest.raises(ActRefused):
        table.give(acts.InstallMachine("SABOT003"))
    table.give(acts.InstallMachine("SABOT002"), need=need)
    assert spare.asked == []
    table.give(acts.SwapMachine("SABOT002"), need=table.need(NeedKind.SWAP_MACHINE))
    (swapped,) = table.rows("swap_machine")
    assert dict(swapped.data) == {"before": "SABOT001", "after": "SABOT002", "service": "sven"}
    assert "status" in spare.asked
    assert table.session.journal_at == 1
    table.prepare()
    table.round(None)
    opened = table.rows("open_bets")
    assert [(each.round_id, each.data["serial"]) for each in opened] == [(1, "SABOT001"), (41, "SABOT002")]


def test_a_machine_is_not_changed_in_a_round() -> None:
    table = ActedTable()
    table.ready()
    table.machine.stop_after = 1
    table.bet()
    spare = ScriptedMachine(table.session, lambda: table.now_s)
    spare.hands, spare.at = list(table.machine.hands), 0
    table.machine = spare
    spare.link("SABOT002")
    table.give(acts.InstallMachine("SABOT002"))
    with pytest.raises(RuleViolation):
        table.give(acts.SwapMachine("SABOT002"))
    table.give(acts.ReportShoeFailed("it is dark"))
    table.give(acts.SwapMachine("SABOT002"))
    table.prepare()
    table.round()
    assert [each.round_id for each in table.rows("settle")] == [2]
    assert [each.round_id for each in table.rows("empty_device")] == [1]


def test_the_machine_that_was_there_comes_back_and_nothing_was_swapped() -> None:
    table = ActedTable()
    table.ready()
    table.machine.link("SABOT002")
    table.give(acts.InstallMachine("SABOT002"))
    table.machine.link("SABOT001")
    assert table.need(NeedKind.SWAP_MACHINE) is None
    table.round()
    assert table.rows("swap_machine") == []


def test_another_table_pc_numbers_rounds_on() -> None:
    table = ActedTable()
    with pytest.raises(ActRefused):
        table.give(acts.SwapPc())
    table.give(acts.InstallPc("a1b2", 700, 55))
    table.give(acts.SwapPc(), need=table.need(NeedKind.SWAP_PC))
    table.ready()
    table.round()
    assert [each.round_id for each in table.rows("settle")] == [56]
    (swapped,) = table.rows("swap_pc")
    assert dict(swapped.data) == {"before": "a1b2", "rows": 700, "round_id": 55, "service": "sven"}
    with pytest.raises(ActRefused):
        table.give(acts.InstallPc("a1b2", 700, 55))


def test_a_shuffle_that_is_not_the_committed_one_takes_the_shuffler_out_of_use() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    table.machine.tell(m.ShuffleRevealable(1, 1))
    table.machine.run()
    (shown,) = table.rows("shuffle_revealed")
    assert "bound to" in str(shown.data["wrong"])
    (failed,) = table.rows("unit_failed")
    assert (failed.data["unit"], failed.clause) == ("shuffler", "MD3 13.E")
    assert table.need(NeedKind.MARK_OUT_OF_ORDER) is not None
    with pytest.raises(RuleViolation):
        table.bet(None)


def test_a_shuffle_that_this_table_did_not_begin_is_not_asked_for() -> None:
    table = ActedTable()
    table.ready()
    table.machine.tell(m.ShuffleRevealable(1, 77))
    table.machine.run()
    assert "reveal_shuffle" not in table.machine.asked


def test_an_answer_about_a_shuffle_that_was_forgotten_meanwhile_changes_nothing() -> None:
    """The machine starts again before the answers about a shuffle arrive: no seed is left to ask for."""
    table = ActedTable()
    table.ready()
    table.machine.tell(m.ShuffleRevealable(1, 1))
    command = table.session.take_command()
    assert command is not None
    assert isinstance(command.message, m.RevealShuffle)
    table.machine.tell(m.Booted(m.BootReason.POWER))
    shown = m.ShuffleRevealed(1, 1, 52, bytes(32), bytes(32), bytes(32))
    table.session.answer(command.id, Answered(shown), table.now_s)
    table.machine.run()
    assert "shuffle_slots" not in table.machine.asked
    assert not table.rows("shuffle_revealed")


@pytest.mark.parametrize("event_first", [False, True])
def test_a_fault_of_both_halves_is_cleared_twice(event_first: bool) -> None:
    table = ActedTable()
    table.ready()
    for place in (m.Place.CONTROLLER, m.Place.CONTROLLER):
        table.machine.tell(m.FaultRaised(m.Fault.SUPPLY_LOW, place, 0, "check the supply"))
    for left in (1, 0):
        need = table.need(NeedKind.CLEAR_FAULT)
        assert need is not None
        table.machine.clear_event_first = event_first
        table.give(acts.ClearFault("supply_low"), need=need)
        assert len(table.session.state.device.faults) == left
    assert table.need(NeedKind.CLEAR_FAULT) is None
    assert [each.data["countersign"] for each in table.rows("clear_fault")] == [True, True]


def test_a_late_answer_for_the_round_before_changes_nothing_in_this_one() -> None:
    """Events can come before an answer: people then begin the next round while the answer is on its way."""
    table = ActedTable()
    table.ready()
    table.round()
    table.bet()
    progress = table.session.state.round
    assert progress is not None
    table.session.reports.executed(m.RevealRound(1), m.Done(), 0)
    assert not progress.revealed
    table.session.reports.executed(m.RevealRound(2), m.Done(), 0)
    assert progress.revealed


def test_a_pack_that_stops_the_shuffler_again_and_again_is_replaced(tmp_path: Path) -> None:
    with simulated_table(tmp_path, "seed=1&fault=bent_card@shoe:20") as table:
        need = table.until(NeedKind.REPLACE_PACK)
        assert need.roles == (TableRole.FLOOR,)
        stopped = [each for each in table.rows("fault_raised") if each.row.data["half"] == "shuffler"]
        assert len(stopped) == 3
        assert table.need(NeedKind.FEED) is None
        table.staff.meet(need)
        table.rounds(3)
        (gone,) = table.rows("remove")
        assert (gone.row.data["pack_id"], gone.row.data["reason"]) == (need.details["pack_id"], "damaged")
        assert table.need(NeedKind.REPLACE_PACK) is None


def test_the_floor_has_such_a_pack_shuffled_again(tmp_path: Path) -> None:
    with simulated_table(tmp_path, "seed=1&fault=bent_card@shoe:20") as table:
        need = table.until(NeedKind.REPLACE_PACK)
        table.staff.give(acts.OrderShuffle(need.details["pack_id"]), need)
        before = len(table.rows("fault_raised"))
        table.until(NeedKind.REPLACE_PACK)  # it is still bent
        assert len(table.rows("fault_raised")) == before + 3


def test_the_floor_is_asked_once_to_look_into_the_shoe() -> None:
    """The machine answers, and its shoe's new state comes later: until then the floor was asked again."""
    table = ActedTable()
    table.ready()
    for late in (True, False):
        table.machine.tell(m.ShoeChanged(m.ShoeState.BLOCKED, 0, 0))
        table.give(acts.Purge(), need=table.need(NeedKind.PURGE))
        looks = table.need(NeedKind.INSPECT_PATH)
        assert looks is not None
        if late:
            table.give(acts.PathInspected(), need=looks)
            assert not {NeedKind.PURGE, NeedKind.INSPECT_PATH} & set(table.kinds())
            table.machine.tell(m.ShoeChanged(m.ShoeState.BLOCKED, 0, 0))  # a card lies there all the same
            assert NeedKind.INSPECT_PATH in table.kinds()
        else:  # the event comes before the answer
            table.machine.tell(m.ShoeChanged(m.ShoeState.EMPTY, 0, 0))
            table.give(acts.PathInspected())
            table.machine.tell(m.ShoeChanged(m.ShoeState.BLOCKED, 0, 0))
            assert NeedKind.PURGE in table.kinds()
        table.machine.tell(m.ShoeChanged(m.ShoeState.EMPTY, 0, 0))


def test_no_round_opens_while_no_dealer_is_signed_in() -> None:
    table = ActedTable()
    table.ready()
    table.give(acts.SignOut(), "ben")
    before = len(table.rows())
    opening = (acts.OpenBets(), acts.NoMoreBets(seats=(1,)), acts.PlaceWager(1, "ante", 500))
    for act in opening:
        with pytest.raises(NoDealer, match="no dealer is signed in"):
            table.give(act, "ben")
    assert len(table.rows()) == before
    table.give(acts.SignIn(), "ben")
    table.give(acts.NoMoreBets(seats=(1,)), "ben")
    assert [each.data["dealer"] for each in table.rows("open_bets")] == ["ben"]
