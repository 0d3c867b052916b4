"""Scripted days: mini baccarat in Maryland, the six-deck text, and Three Card Baccarat dealt by hand.

Afterwards the record is read anew. It alone tells every round, and a settlement that shares no code agrees.
"""

import time
from pathlib import Path
from random import Random

import pytest
from tests.session import independent_coups as again
from tests.session.independent_settlement import settled_again
from tests.session.simulated_table import (
    TIMEOUT_S,
    SimulatedTable,
    fixed_nonce,
    simulated_table,
    staff_of,
)

from sabot_cli.device_access import provision_simulator_keys
from sabot_driver import Client, connect
from sabot_driver.errors import SabotError
from sabot_driver.user_files import UserFiles
from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_session.record import RecordReader, SqliteRecord
from sabot_session.round_history import Round, RoundEnd, rounds_of
from sabot_session.row_data import Wager
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.simulated_staff import SimulatedRegister, SimulatedStaff
from sabot_table.errors import RuleViolation
from sabot_table.procedure.vocabulary import DeviceUnit
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

pytestmark = pytest.mark.slow
AUTOMATED, MANUAL = DealingMethod.AUTOMATED_SHOE, DealingMethod.MANUAL_SHOE
HAND = DealingMethod.HAND
NOTHING = frozenset(NeedKind)
MOST_RUNS = 40


def rounds_on_record(path: Path) -> list[Round]:
    with RecordReader(path) as record:
        return list(rounds_of(record.all_rows()).values())


def check_rounds(path: Path, mini: bool) -> dict[str, int]:
    """Every round is complete and settled as the cards say; how many ended which way."""
    ends: dict[str, int] = {}
    for each in rounds_on_record(path):
        ends[each.end] = ends.get(each.end, 0) + 1
        assert each.complete, (each.round_id, each.missing)
        made = () if each.facts.bets is None else each.facts.bets.wagers or ()
        if each.end is RoundEnd.VOID:
            assert each.void is not None
            assert each.void.clause
            assert each.void.give_back == made
        elif each.end is RoundEnd.SETTLED and mini:
            check_coup(each, made)
    if not mini:
        told = settled_again(path)
        assert len(told) == ends[RoundEnd.SETTLED]
        assert all(on_record == computed for on_record, computed in told.values())
    return ends


def check_coup(each: Round, made: tuple[Wager, ...]) -> None:
    hands = {str(hand.of): hand.cards or () for hand in each.hands}
    player, banker = hands["player"], hands["banker"]
    assert again.complete(player, banker), (player, banker)
    told = {(line.seat, line.wager): line for line in each.lines}
    assert sorted(told) == sorted((it.seat, it.wager) for it in made)
    for it in made:
        line = told[it.seat, it.wager]
        net = -it.cents if line.outcome == "lose" else line.pays_cents
        assert (net, line.vig_cents) == again.mini(it.wager, it.cents, player, banker), (each, it)


def fail_machine(table: SimulatedTable) -> None:
    for unit in DeviceUnit:
        table.staff.give(acts.ReportUnitFailed(unit))


def return_machine(table: SimulatedTable, method: DealingMethod) -> None:
    for unit in DeviceUnit:
        table.staff.give(acts.Repaired(unit))
    if method is not table.run.read(lambda session: session.procedure.table.method):
        table.staff.give(dealing_acts.ChangeMethod(method))


def next_round(table: SimulatedTable) -> None:
    table.rounds(len(table.rows("collect")) + 1)


def finish_round(table: SimulatedTable) -> None:
    """The hand in play is settled and collected by acts of their own."""
    table.play(lambda table: table.run.read(lambda session: session.procedure.table.state) == "settling")
    table.staff.give(dealing_acts.Settle())
    table.play(lambda table: bool(table.need(NeedKind.COLLECT) or table.need(NeedKind.BETS)), NOTHING)
    table.staff.give(dealing_acts.Collect())


@pytest.mark.rule("MDM 12.D")
@pytest.mark.rule("MDM 13.A")
@pytest.mark.rule("MDM 13.B")
@pytest.mark.rule("MDM 13.C")
def test_a_day_of_mini_baccarat(tmp_path: Path, record: SqliteRecord) -> None:
    operator = tmp_path / "pit-2.toml"
    operator.write_text('extends = "md-mini-baccarat"\nname = "pit-2"\n[vigorish]\ncollected = "marked"\n')
    query = "seed=3&capacity=batch&fault=face_up_card@shoe:445&fault=stuck@exit:1272"
    with simulated_table(tmp_path, query, rules=load(operator), record=record, method=AUTOMATED) as table:
        table.staff.cover_above = 390
        table.play(lambda table: bool(table.rows("coup_simulated")))
        table.play(lambda table: bool(table.rows("void")))  # the second shoe jams (13.E)
        table.until(NeedKind.BETS)
        table.staff.give(acts.SignIn())
        fail_machine(table)
        table.play(lambda table: bool(table.rows("verify_shuffle")))
        table.until(NeedKind.CUT)
        need = table.need(NeedKind.CUT)
        pack_id = int(need.details["pack_id"])
        assert need.details["seat"] == 2  # the cut goes round from the highest seat
        table.staff.give(dealing_acts.DeclineCut(pack_id, 2))
        assert table.need(NeedKind.CUT).details["seat"] == 1
        table.until(NeedKind.BETS)
        irregularities_by_hand(table)
        table.staff.give(dealing_acts.ReportCover())
        table.play(lambda table: len(table.rows("announce_last_hand")) >= 2)
        table.play(lambda table: len(table.rows("discard")) >= 2)
        return_machine(table, AUTOMATED)
        table.play(lambda table: len(table.rows("deliver")) >= 4)
        next_round(table)
        finish_round(table)
        for seat in list(table.run.read(lambda session: session.procedure.table.memory.marked)):
            table.staff.give(dealing_acts.CollectVigorish(seat))
        table.staff.give(acts.CloseTable())
    ends = check_rounds(tmp_path / "T1.table.db", mini=True)
    assert ends[RoundEnd.SIMULATED] >= 2
    assert ends[RoundEnd.VOID] >= 2
    assert ends[RoundEnd.SETTLED] >= 8


def irregularities_by_hand(table: SimulatedTable) -> None:
    """One hand for each irregularity of the text, with the cards that it needs."""
    staff = table.staff
    # 13.A: a card drawn in error and not seen is the next hand's first.
    staff.give(dealing_acts.ReportDrawnInError())
    next_round(table)
    # 13.B: Player stands on 6, the Banker draws on 5: the unseen third card is the Banker's.
    staff.manual.put("2H", "2C", "4H", "3C", "9S")
    table.until(NeedKind.TYPE_THIRD)
    staff.give(dealing_acts.ReportThird())
    next_round(table)
    assert table.rows("third_card")[-1].row.data == {"to": "banker", "card": "9S", "source": "dealer"}
    # 13.C: the same, seen: it is the Banker's third at once.
    staff.manual.put("2H", "2C", "4H", "3C")
    table.until(NeedKind.TYPE_THIRD)
    staff.give(dealing_acts.ReportThird("KD"))
    next_round(table)
    newest = [each for each in rounds_of(table.rows()).values() if each.hands][-1]
    assert newest.hands[1].cards == ("2C", "3C", "KD")
    # 13.D: a card that was seen opens a simulated round.
    table.until(NeedKind.BETS)
    staff.give(dealing_acts.ReportExposed("4D"))
    table.play(lambda table: len(table.rows("coup_simulated")) >= 2)
    # A hand with a wrong number of cards is void.
    table.until(NeedKind.TYPE_CARDS)
    staff.give(acts.ReportWrongNumber())
    next_round(table)
    next_round(table)
    finish_round(table)
    with pytest.raises(RuleViolation, match=r"12\.D"):
        staff.give(acts.CloseTable())  # a seat owes vigorish


@pytest.mark.rule("BAC shoe")
@pytest.mark.rule("BAC payouts")
def test_a_day_of_the_six_deck_text(tmp_path: Path, record: SqliteRecord) -> None:
    query = "seed=4&capacity=batch"
    with simulated_table(
        tmp_path, query, rules="baccarat-six-deck", record=record, method=AUTOMATED
    ) as table:
        table.rounds(2)
        table.until(NeedKind.EXPOSE)
        table.staff.give(acts.ReportWrongNumber())
        next_round(table)
        table.until(NeedKind.BETS)
        fail_machine(table)
        table.rounds(len(table.rows("collect")) + 3)
        assert table.rows("start_shuffle")[-1].row.data["by"] == "hand"
        table.until(NeedKind.BETS)
        return_machine(table, AUTOMATED)
        table.play(lambda table: table.rows("open_bets")[-1].row.data["method"] == "automated-shoe")
        next_round(table)
        table.until(NeedKind.FEED)
        table.staff.give(acts.CloseTable())
    ends = check_rounds(tmp_path / "T1.table.db", mini=True)
    assert ends[RoundEnd.VOID] == 1
    assert ends[RoundEnd.SETTLED] >= 6


@pytest.mark.rule("MD3 13.B")
@pytest.mark.rule("MD3 13.D")
@pytest.mark.rule("MD3 9")
def test_a_day_of_three_card_baccarat_dealt_by_hand(tmp_path: Path, record: SqliteRecord) -> None:
    with simulated_table(tmp_path, "seed=5", record=record) as table:
        next_round(table)
        table.until(NeedKind.EXPOSE)
        next_round(table)
        table.until(NeedKind.BETS)
        table.staff.meet(table.need(NeedKind.BETS))
        fail_machine(table)  # in the round: the shoe failed (13.D)
        assert table.rows("void")[-1].row.clause == "MD3 13.D"
        table.until(NeedKind.DEAL)
        table.staff.give(dealing_acts.ReportDrawnInError())  # not seen: the next card (13.B)
        next_round(table)
        table.until(NeedKind.DEAL)
        table.staff.give(acts.ReportFaceUp())
        next_round(table)
        table.until(NeedKind.DEAL)
        table.staff.give(dealing_acts.ReportDrawnInError("KH"))
        assert table.rows("void")[-1].row.clause == "MD3 13.A"
        next_round(table)
        table.until(NeedKind.BETS)
        return_machine(table, HAND)
        table.play(lambda table: table.rows("open_bets")[-1].row.data["method"] == "hand")
        next_round(table)
        next_round(table)
        table.until(NeedKind.LOAD)
        table.staff.give(acts.CloseTable())
    ends = check_rounds(tmp_path / "T1.table.db", mini=False)
    assert ends[RoundEnd.VOID] == 3
    assert ends[RoundEnd.SETTLED] >= 5
    methods = {each.method for each in rounds_on_record(tmp_path / "T1.table.db")}
    assert methods == {"automated-shoe", "manual-shoe", "hand"}


def restored(session: TableSession, client: Client) -> ThreadedSession:
    """A session at the client of the one before, once the command of that one has its answer."""
    for _ in range(100):
        try:
            return ThreadedSession(session, client, simulators_key=True)
        except SabotError:
            time.sleep(0.05)
    raise AssertionError("the command of the session before has no answer")


@pytest.mark.rule("MDM 8.C")
def test_a_session_that_ends_and_is_restored_in_every_hand_plays_on(
    tmp_path: Path, record: SqliteRecord
) -> None:
    rules, choose = load("md-mini-baccarat"), Random(7)
    with connect(
        "sim://?seed=6&capacity=batch", journal=tmp_path / "journal.db", timeout=TIMEOUT_S
    ) as client:
        files = UserFiles(tmp_path)
        provision_simulator_keys(files, client, TIMEOUT_S)
        staff: SimulatedStaff | None = None
        for _ in range(MOST_RUNS):
            session = TableSession(rules, record, SimulatedRegister(), nonce=fixed_nonce)
            with restored(session, client) as run:
                staff = staff or staff_of(run, rules, files, client, 2, AUTOMATED)
                staff.attend(run)
                table = SimulatedTable(client, run, staff, record)
                before, least = len(table.rows()), choose.randrange(1, 10)
                table.play(lambda table, rows=before + least: len(table.rows()) >= rows)  # type: ignore[misc]
                if len(table.rows("collect")) >= 3:
                    break
    found = [each for each in rounds_on_record(tmp_path / "T1.table.db") if each.complete]
    assert len(found) >= 3
    for each in found:
        assert each.void is None
        assert each.facts.bets is not None
        check_coup(each, each.facts.bets.wagers or ())
