"""What a session does after a step that failed, a link that came back, and events that were lost."""

import pytest
from tests.session.acted_table import ANTES, NOW_S, ActedTable, Register
from tests.session.scripted_machine import ScriptedMachine

from sabot_protocol.host import messages as m
from sabot_session import acts, dealing_acts
from sabot_session.acts import Act
from sabot_session.needs import NeedKind
from sabot_session.outcomes import ActRefused
from sabot_session.record import SqliteRecord
from sabot_session.session import TableSession
from sabot_table.errors import NotACard, RuleViolation
from sabot_table.procedure.vocabulary import DeviceUnit, RemovalReason
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

REFUSED = acts.ReceivePack("green", "B1")


def test_the_first_act_of_a_new_table_is_refused_and_the_table_still_tells_its_needs() -> None:
    """The session went back to a state whose needs had no numbers yet: each look at them was a KeyError."""
    session = TableSession(load("md-three-card-baccarat"), SqliteRecord(None), Register())
    before = session.needs()
    with pytest.raises(RuleViolation):
        session.act("one", None, 0, "anna", REFUSED, NOW_S)
    assert session.needs() == before
    session.act("two", before[0].id, session.cursor, "anna", acts.OpenTable(), NOW_S)
    assert NeedKind.SIGN_IN in [each.kind for each in session.needs()]


def test_the_first_act_after_a_kill_is_refused_and_the_link_is_still_down() -> None:
    """The session went back to the state of the killed run, whose link was up: it handed out a request."""
    table = ActedTable()
    table.give(acts.OpenTable(), "anna")
    table.session.link(True, NOW_S, serial="SABOT001", memory_id="00112233", model="machine")
    again = TableSession(load("md-three-card-baccarat"), table.record, Register())
    assert again.open_command() is not None
    before = again.needs()
    with pytest.raises(RuleViolation):
        again.act("refused", None, again.cursor, "anna", REFUSED, NOW_S)
    assert again.take_command() is None
    assert again.needs() == before
    again.tick(NOW_S)
    assert [each.row.kind for each in table.record.rows()][-1] == "interruption"


@pytest.mark.parametrize(("act", "by"), [(REFUSED, "anna"), (dealing_acts.Burn(1, "no card"), "ben")])
def test_a_refused_act_leaves_no_key_of_its_person_behind(act: Act, by: str) -> None:
    """The key is kept for requests of the act; after a refusal there are none."""
    table = ActedTable()
    table.give(acts.OpenTable(), "anna")
    kept = set(table.session._device_keys)
    with pytest.raises((RuleViolation, NotACard)):
        table.give(act, by)
    assert set(table.session._device_keys) == kept


@pytest.mark.parametrize("now_s", [0, 1_700_000_000, 1 << 32], ids=["1970", "2023", "2106"])
def test_a_wrong_clock_of_the_computer_refuses_a_pack_and_does_not_end_the_program(now_s: int) -> None:
    """The machine takes no time before 2026 or after 2106: the error of the message ended `sabot play`."""
    table = ActedTable()
    table.now_s = now_s
    table.machine.link()
    table.give(acts.OpenTable(), "anna")
    kept = set(table.session._device_keys)
    with pytest.raises(ActRefused, match="opened_utc_s") as refused:
        table.give(acts.ReceivePack("red", "B1"), "anna")
    assert "date and time" in refused.value.advice
    assert set(table.session._device_keys) == kept
    assert not table.rows("receive_pack")
    table.now_s = NOW_S
    table.give(acts.ReceivePack("red", "B1"), "anna")
    assert table.machine.decks == {1: m.Back.RED}


def test_lost_events_are_taken_in_once() -> None:
    """After a kill the journal tells of them again. In a later round they would void that round."""
    table = ActedTable()
    table.ready()
    table.machine.at += 1
    table.session.events_lost(table.machine.at, table.now_s)
    assert table.session.state.device.survey
    table.machine.run()
    table.machine.stop_after = 1
    table.bet()
    table.session.events_lost(table.machine.at, table.now_s)
    assert not table.session.state.device.survey
    assert not table.session.state.device.lost_events
    assert table.session.journal_at == table.machine.at


def test_a_machine_that_is_swapped_in_keeps_its_place_in_the_journal_over_a_new_link() -> None:
    """Its events before the swap were skipped. Without the place they would be taken in after the swap."""
    table = ActedTable()
    table.ready()
    spare = ScriptedMachine(table.session, lambda: table.now_s)
    spare.at = 0
    table.machine = spare
    spare.link("SABOT002")
    spare.tell(m.Buttons(m.ButtonFlag.LEFT))
    spare.link("SABOT002")
    table.give(acts.InstallMachine("SABOT002"))
    table.give(acts.SwapMachine("SABOT002"))
    assert table.session.journal_at == spare.at == 1


def test_a_link_that_comes_back_while_a_stack_is_dealt_asks_for_the_next_stack_after_it() -> None:
    """The machine names the last stack that lies there, and the session has asked for the one after it."""
    table = ActedTable()
    table.ready()
    table.machine.stop_after = 0
    table.bet()
    machine, deck = table.machine, table.machine.in_shoe
    assert machine.asked.count("dispense_stack") == 1
    dealing = m.StatusReport(
        1, 1, 0, m.ShufflerState.IDLE, m.ShoeState.DISPENSING, 0, m.StatusFlag.ROUND_OPEN, 1, 0
    )
    machine._status = lambda request: (dealing,)  # type: ignore[method-assign]
    machine.tell(m.ShoeChanged(m.ShoeState.DISPENSING, deck, 1))
    machine.link()
    assert machine.asked.count("dispense_stack") == 1
    machine.stop_after = 99
    machine.tell(m.StackDispensed(1, 1, 3))
    machine.tell(m.ShoeChanged(m.ShoeState.STACK_WAITING, deck, 1))
    machine.tell(m.ShoeChanged(m.ShoeState.ROUND_OPEN, deck, 1))
    machine.run()
    assert table.session.procedure.table.state == "revealing"


def test_a_new_pack_has_a_higher_number_than_any_that_the_machine_knows() -> None:
    """The machine takes decks by rising numbers only. It may know decks of a record that is lost."""
    table = ActedTable()
    table.machine.decks = {7: m.Back.RED}
    table.machine.link()
    table.give(acts.OpenTable(), "anna")
    table.give(acts.SignIn(), "ben")
    table.give(acts.ReceivePack("blue", "B1"), "anna")
    (received,) = table.rows("receive_pack")
    assert received.data["pack_id"] == 8


def test_no_pack_is_fed_while_the_machine_is_being_emptied() -> None:
    """The pack would come out again with the cards inside."""
    table = ActedTable()
    table.ready()
    table.machine.lay_in = False
    table.round()
    assert table.need(NeedKind.FEED) is not None
    machine = table.machine
    machine._empty_machine = lambda request: (m.Done(),)  # type: ignore[method-assign]
    table.give(acts.EmptyMachine(), "anna")
    assert table.need(NeedKind.FEED) is None
    asked = len(machine.asked)
    table.tick()
    assert machine.asked[asked:] == []
    machine.tell(m.Emptied(0))
    assert table.need(NeedKind.FEED) is not None


@pytest.mark.rule("MD3 13.E")
@pytest.mark.parametrize("unit", DeviceUnit)
def test_the_tray_of_a_machine_that_is_not_used_is_not_watched(unit: DeviceUnit) -> None:
    """A pack leaves the machine only through the shoe, so a failed shoe ends its shuffles too."""
    table = ActedTable()
    table.ready()
    table.machine.lay_in = False
    table.round()
    table.tick()
    assert table.machine.asked[-1] == "sensors"
    table.give(acts.ReportUnitFailed(unit))
    asked = len(table.machine.asked)
    table.machine.lay_in = True
    table.tick()
    assert table.machine.asked[asked:] == []
    assert table.session.machine.pack_to_feed() is None


@pytest.mark.parametrize(("by", "signed"), [("ben", True), ("anna", False)])
def test_the_floor_countersigns_a_dealers_report_and_not_its_own(by: str, signed: bool) -> None:
    table = ActedTable()
    table.ready()
    table.machine.stop_after = 1
    table.bet()
    table.give(acts.ReportShoeFailed(), by)
    (void,) = table.rows("void")
    assert void.data["countersign"] is signed
    assert (NeedKind.COUNTERSIGN in table.kinds()) is signed


def test_nobody_takes_cards_out_of_a_machine_that_opened_no_round() -> None:
    """The dealer reported the shoe before the machine answered; the record had the dealer take out cards."""
    table = ActedTable()
    table.ready()
    act, at_s = acts.NoMoreBets(ANTES), table.now_s
    table.session.act("bets", None, table.session.cursor, "ben", act, at_s)  # the machine does not answer yet
    table.give(acts.ReportShoeFailed())
    assert [each.round_id for each in table.rows("void")] == [1]
    assert table.rows("empty_device") == []
    table.prepare()
    table.bet()
    assert [each.round_id for each in table.rows("no_more_bets")] == [1, 2]


def test_a_pack_that_lay_outside_is_shuffled_again_when_the_machine_deals_again() -> None:
    """The machine brought it out for the manual shoe; nobody knows what was done with it since."""
    table = ActedTable()
    table.ready()
    table.give(dealing_acts.ChangeMethod(DealingMethod.MANUAL_SHOE), "anna")
    table.prepare()
    assert "deliver_deck" in table.machine.asked
    table.machine.in_shoe = 0
    table.machine.tell(m.ShoeChanged(m.ShoeState.EMPTY, 0, 0))
    table.machine.tell(m.DeckDelivered(1, 52, 52))
    assert table.session.state.shoe.out == 1
    table.give(dealing_acts.ChangeMethod(DealingMethod.AUTOMATED_SHOE), "anna")
    ordered = [each.details["pack_id"] for each in table.session.needs() if "order_shuffle" in each.acts]
    assert ordered == [1]


def test_the_pack_that_played_last_stays_in_the_shoe_until_there_is_another() -> None:
    """The other pack was taken off the table. The machine is emptied when a new one is there, not before."""
    table = ActedTable()
    table.ready()
    table.round()
    table.give(acts.EmptyMachine(), "anna")
    table.give(acts.RemovePack(2, RemovalReason.DAMAGED), "anna")
    table.give(acts.OrderShuffle(1), "anna")
    assert table.machine.in_shoe == 1
    assert NeedKind.RECEIVE_PACK in table.kinds()
    assert NeedKind.EMPTY_MACHINE not in table.kinds()
    table.give(acts.ReceivePack("blue", "B9"), "anna")
    assert NeedKind.EMPTY_MACHINE in table.kinds()
