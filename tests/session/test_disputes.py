"""Holds, disputes and corrections: the round is doubted, and the record keeps every version."""

import pytest
from tests.session.acted_table import ANTES, ActedTable

from sabot_cli.at_table.round_text import round_lines
from sabot_session import acts
from sabot_session.disputes import DisputeCount, disputes_by_machine
from sabot_session.needs import NeedKind
from sabot_session.outcomes import ActRefused, NotYours
from sabot_session.round_history import RoundUnknown, read_round
from sabot_table.errors import ImpossibleCards, RuleViolation


def test_a_hold_keeps_the_cards_of_a_round_out_of_the_tray_until_the_floor_releases_them() -> None:
    table = ActedTable()
    table.ready()
    with pytest.raises(RuleViolation):
        table.give(acts.Hold("not yet"))
    table.bet()
    table.give(acts.Hold("the player doubts a card"))
    table.give(acts.Expose())
    pack_id = table.session.procedure.table.round.pack_id
    held = table.need(NeedKind.RELEASE)
    assert held is not None
    table.tick(60)
    assert table.machine.stored == 0  # nothing is fed
    with pytest.raises(NotYours):
        table.give(acts.Release(pack_id), "ben", held)
    with pytest.raises(RuleViolation):
        table.give(acts.Hold("once more"))
    table.give(acts.Release(pack_id, "looked at"), need=held)
    assert table.machine.stored == pack_id
    (hold,), (release,) = table.rows("hold"), table.rows("release")
    assert (hold.round_id, release.round_id) == (1, 1)
    assert read_round(table.record, 1).held == ()
    with pytest.raises(RuleViolation, match=r"holding a round.s cards .*they are in the tray"):
        table.give(acts.Hold("too late"))
    with pytest.raises(RoundUnknown, match="no round 99"):
        table.give(acts.Hold("which?", round_id=99))


def test_the_cards_of_the_round_before_can_be_held_while_the_next_one_is_dealt() -> None:
    table = ActedTable()
    table.ready()
    table.machine.lay_in = False
    table.round()
    table.bet(None)
    first, second = (int(str(each.data["pack_id"])) for each in table.rows("open_bets"))
    with pytest.raises(RoundUnknown):
        table.give(acts.Hold("which?", round_id=7))
    table.give(acts.Hold("the last round", round_id=1))
    table.machine.lay_in = True
    table.tick()
    assert table.machine.stored == 0
    assert table.session.snapshot()["packs"][first - 1]["held"] == "the last round"
    table.give(acts.Release(first))
    table.tick()
    assert (table.machine.in_shoe, table.session.state.unfed) == (first, {second: 2})


def test_a_held_pack_that_leaves_is_held_no_more() -> None:
    table = ActedTable()
    table.ready()
    table.bet()
    table.give(acts.Hold("for surveillance"))
    table.give(acts.Expose())
    pack_id = table.session.procedure.table.round.pack_id
    table.bet(None)
    table.give(acts.parse_act("remove_pack", {"pack_id": pack_id, "reason": "floor_order", "bag": "E1",
                                              "destination": "held_for_surveillance"}))  # fmt: skip
    (gone,) = table.rows("remove")
    assert gone.data["destination"] == "held_for_surveillance"
    assert table.need(NeedKind.RELEASE) is None
    assert table.session.state.holds == {}


def test_only_a_deck_of_this_table_is_retired_and_only_once() -> None:
    """A deck that was never there got a row about its destination."""
    table = ActedTable()
    table.ready()
    retire = {"reason": "floor_order", "destination": "cancelled"}
    with pytest.raises(ActRefused, match="deck 9 was never at this table"):
        table.give(acts.parse_act("remove_pack", {"pack_id": 9, **retire}))
    with pytest.raises(RuleViolation, match="'sabot service empty'"):
        table.give(acts.parse_act("remove_pack", {"pack_id": 1, **retire}))
    table.machine.lay_in = False
    table.round()
    table.bet(None)
    table.give(acts.parse_act("remove_pack", {"pack_id": 1, **retire}))
    with pytest.raises(ActRefused, match="deck 1 has left this table"):
        table.give(acts.parse_act("remove_pack", {"pack_id": 1, **retire}))
    assert len(table.rows("remove")) == 1


def test_a_dispute_stays_open_until_the_floor_decides_and_counts_against_the_machine() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    done = table.give(acts.OpenDispute("seat 1 shows a nine"))
    need = table.need(NeedKind.DECIDE_DISPUTE)
    assert need is not None
    assert (need.details["row"], need.details["round_id"]) == (done.row, 1)
    assert table.session.snapshot()["disputes"] == [
        {"row": done.row, "round_id": 1, "why": "seat 1 shows a nine"}
    ]
    table.round(None)
    second = table.give(acts.OpenDispute(round_id=2))
    verdict = acts.DecideDispute(done.row, "CAM-7 21:40", "pay seat 1", machine_wrong=True)
    with pytest.raises(NotYours):
        table.give(verdict, "ben", need)
    table.give(verdict, need=need)
    with pytest.raises(ActRefused):
        table.give(verdict)
    (decided,) = table.rows("decide_dispute")
    assert (decided.round_id, decided.actor.person) == (1, "anna")
    (dispute,) = read_round(table.record, 1).disputes
    assert (dispute.surveillance, dispute.decision, dispute.machine_wrong) == (
        "CAM-7 21:40",
        "pay seat 1",
        True,
    )
    assert disputes_by_machine(table.record.all_rows()) == {"SABOT001": DisputeCount(2, 1, 1)}
    with pytest.raises(RoundUnknown):
        table.give(acts.OpenDispute(round_id=77))
    assert [each.row for each in table.session.state.disputes] == [second.row]
    table.give(acts.DecideDispute(second.row, "CAM-7 22:05", "as shown", machine_wrong=False))
    assert disputes_by_machine(table.record.all_rows()) == {"SABOT001": DisputeCount(2, 2, 1)}


def test_a_correction_needs_dealer_and_floor_and_keeps_the_old_version() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    before = read_round(table.record, 1)
    typed = {1: ("KS", "9H", "3D"), 3: ("4S", "4H", "10D"), 0: ("QS", "7H", "AC")}
    done = table.give(acts.ProposeCorrection(1, "a deuce was a three", hands=typed))
    assert read_round(table.record, 1).facts == before.facts, "it counts only with the floor"
    waiting = read_round(table.record, 1)
    assert [(each.number, each.dealer) for each in waiting.proposed] == [(done.row, "ben")]
    shown = "\n".join(round_lines(waiting, table.session.rules, "RED"))
    assert f"ben says in row {done.row} that it was other than on record: a deuce was a three" in shown
    assert "    seat 1  KS 9H 3D\n" in shown
    assert "FLOOR: 'sabot round 1 confirm' or 'sabot round 1 decline'" in shown
    need = table.need(NeedKind.CONFIRM_CORRECTION)
    assert need is not None
    with pytest.raises(NotYours):
        table.give(acts.ConfirmCorrection(done.row), "ben", need)
    table.give(acts.ConfirmCorrection(done.row), need=need)
    after = read_round(table.record, 1)
    assert after.proposed == ()
    assert [each.before for each in after.older] == [before.facts]
    assert (after.older[0].floor, after.older[0].dealer) == ("anna", "ben")
    assert {hand.seat: hand.cards for hand in after.hands}[1] == ("KS", "9H", "3D")
    assert {hand.seat: hand.points for hand in after.hands} == {1: 2, 3: 8, 0: 8}
    assert after.facts.bets == before.facts.bets
    assert table.need(NeedKind.CONFIRM_CORRECTION) is None


def test_corrected_wagers_are_settled_again() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    more = {1: {"ante": 2000, "tie": 500}, 3: {"ante": 4000, "dragon-bonus": 1000, "tie": 1000}}
    done = table.give(acts.ProposeCorrection(1, "seat 3 had a tie", wagers=more))
    table.give(acts.ConfirmCorrection(done.row))
    lines = {(each.seat, each.wager): each for each in read_round(table.record, 1).lines}
    assert (lines[3, "tie"].pays_cents, lines[3, "tie"].line) == (7000, "tie")
    assert lines[3, "ante"].outcome == "lose"


def test_forfeited_wagers_stay_forfeited_in_a_correction() -> None:
    table = ActedTable()
    table.ready()
    table.bet()
    table.give(acts.Forfeit(1))
    table.give(acts.Expose())
    done = table.give(acts.ProposeCorrection(1, "chips", wagers={1: {"ante": 3000}, 3: {"ante": 4000}}))
    table.give(acts.ConfirmCorrection(done.row))
    assert {each.seat: str(each.outcome) for each in read_round(table.record, 1).lines} == {
        1: "forfeit",
        3: "lose",
    }


def test_a_correction_that_the_floor_declines_changes_nothing() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    before = read_round(table.record, 1)
    done = table.give(acts.ProposeCorrection(1, "chips", wagers={1: {"ante": 3000}, 3: {"ante": 4000}}))
    table.give(acts.DeclineCorrection(done.row, "the film shows 2000"))
    assert read_round(table.record, 1).facts == before.facts
    with pytest.raises(ActRefused):
        table.give(acts.ConfirmCorrection(done.row))


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (acts.ProposeCorrection(1, "nothing"), ActRefused),
        (acts.ProposeCorrection(9, "no round", wagers=ANTES), RoundUnknown),
        (acts.ProposeCorrection(2, "in play", wagers=ANTES), ActRefused),
        (acts.ProposeCorrection(1, "no ante", wagers={1: {"tie": 500}, 3: {"ante": 5}}), RuleViolation),
        (
            acts.ProposeCorrection(
                1,
                "one card twice",
                hands={1: ("KS", "KS", "3D"), 3: ("4S", "4H", "9D"), 0: ("QS", "7H", "AC")},
            ),
            ImpossibleCards,
        ),
    ],
)
def test_a_correction_that_cannot_be_is_refused(act: acts.ProposeCorrection, error: type[Exception]) -> None:
    table = ActedTable()
    table.ready()
    table.round()
    table.bet(None)
    rows = len(table.rows())
    with pytest.raises(error):
        table.give(act)
    assert len(table.rows()) == rows


def test_one_person_alone_corrects_nothing() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    more = {1: {"ante": 9000}, 3: {"ante": 4000}}
    done = table.give(acts.ProposeCorrection(1, "chips", wagers=more), "cleo")
    with pytest.raises(ActRefused):
        table.give(acts.ConfirmCorrection(done.row), "cleo")
    assert table.need(NeedKind.CONFIRM_CORRECTION) is not None


def test_the_floor_countersigns_in_the_round_of_the_row() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    table.bet(None)
    table.give(acts.ReportWrongNumber())
    (void,) = read_round(table.record, 2).to_countersign
    need = table.need(NeedKind.COUNTERSIGN)
    assert need is not None
    what = "the void of round 2 by dealer ben: a wrong number of cards"
    assert need.words == f"countersign {what} (row {void})"
    with pytest.raises(RuleViolation):
        table.give(acts.Countersign(void - 1))
    table.give(acts.Countersign(void, "seen on film"))
    (signed,) = table.rows("countersign")
    assert (signed.round_id, signed.data["row"]) == (2, void)
    assert read_round(table.record, 2).to_countersign == ()
    assert (table.session.state.countersign, table.session.state.countersign_words) == ([], {})


def test_what_is_open_is_listed_when_the_table_closes() -> None:
    table = ActedTable()
    table.ready()
    table.round()
    dispute = table.give(acts.OpenDispute())
    table.machine.lay_in = False
    table.bet(None)
    table.give(acts.ReportWrongNumber())
    table.give(acts.Hold("for the floor"))
    table.give(acts.CloseTable())
    (closed,) = table.rows("close_table")
    assert closed.data["disputes"] == [dispute.row]
    (held,) = [each.number for each in table.record.all_rows() if each.row.kind == "hold"]
    assert closed.data["holds"] == [held]
    (void,) = [each for each in table.record.all_rows() if each.row.kind == "void"]
    assert closed.data["countersignatures"] == [void.number]
    assert void.row.actor.person == "ben"
