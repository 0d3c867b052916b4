"""A table's program that is killed: it runs the session of one table until so many rounds are collected.

Command line: the device's URL, the folder of keys, journal and record, and the number of rounds.
"""

import sys
import time
from pathlib import Path

from tests.session.simulated_table import SEATS, fixed_nonce, staff_of

from sabot_driver import Keyring, connect
from sabot_driver.user_files import UserFiles
from sabot_session import acts
from sabot_session.needs import Need, NeedKind
from sabot_session.record import SqliteRecord
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.simulated_staff import DEALER, RELIEF, SimulatedRegister, SimulatedStaff
from sabot_table.ruleset import load

PATIENCE_S = 60.0
ROWS = {"report_wrong_number": "wrong_number"}  # acts whose row has another name


class Plan:
    """What people do in each round besides the usual. The record tells what they have done already."""

    def __init__(self, table: ThreadedSession, staff: SimulatedStaff, record: SqliteRecord) -> None:
        self.table = table
        self.staff = staff
        self.record = record
        dealer = table.read(lambda session: session.state.dealer)
        if dealer is not None:
            staff.deal_as(dealer.person)

    def act(self) -> bool:
        """Give the next act of the plan, if it is its turn; whether one was given."""
        needs = {each.kind: each for each in self.table.needs()}
        number = self.table.read(lambda session: session.procedure.table.memory.rounds)
        if NeedKind.BETS in needs:
            return self._bet(number + 1, needs[NeedKind.BETS])
        done = {each.row.kind for each in self.record.round_rows(number)} if number else set()
        if NeedKind.EXPOSE in needs:
            wanted: dict[int, acts.Act] = {
                1: acts.Forfeit(1),
                2: acts.Hold("seat 1 doubts a card"),
                4: acts.ReportWrongNumber("four cards"),
                5: acts.CallFloor("a question"),
            }
            due = wanted.get(number % 6)
            if due is not None and ROWS.get(due.NAME, due.NAME) not in done:
                self.staff.give(due)
                return True
        return False

    def _bet(self, number: int, need: Need) -> bool:
        before = number - 1
        done = {each.row.kind for each in self.record.round_rows(before)} if before else set()
        if before % 6 == 3 and "open_dispute" not in done:
            self.staff.give(acts.OpenDispute(round_id=before))
            return True
        if before % 6 == 0 and before and "propose_correction" not in done:
            wagers = {seat: {**made, "ante": 4000} for seat, made in self.staff.wagers.items()}
            self.staff.give(acts.ProposeCorrection(before, "more chips", wagers=wagers))
            return True
        dealer = RELIEF if number % 4 == 0 else DEALER
        now = self.table.read(lambda session: session.state.dealer)
        if now is None or now.person != dealer:
            self.staff.relieve(dealer)
            return True
        seats = number % 3 == 2
        act = acts.NoMoreBets(seats=(1, 2)) if seats else acts.NoMoreBets(self.staff.wagers)
        self.staff.give(act, need)
        return True


def run(url: str, folder: Path, rounds: int) -> None:
    """Play until so many rounds are on record."""
    rules = load("md-three-card-baccarat")
    options = {"keyring": Keyring(folder), "journal": folder / "journal.db", "simulator": True}
    with connect(url, **options) as client, SqliteRecord(folder / "table.db") as record:  # type: ignore[arg-type]
        files = UserFiles(folder)
        session = TableSession(rules, record, SimulatedRegister(), nonce=fixed_nonce)
        with ThreadedSession(session, client, simulators_key=True) as table:
            staff = staff_of(table, rules, files, client, SEATS)
            sys.stdout.write("up\n")
            sys.stdout.flush()
            plan = Plan(table, staff, record)
            ends = time.monotonic() + PATIENCE_S
            while len(record.rows_of_kind("collect")) < rounds:
                newest = table.read(lambda session: session.cursor)
                if not plan.act() and staff.meet_one(frozenset({NeedKind.BETS})) is None:
                    table.wait_changed(newest, 0.05)
                if time.monotonic() > ends:
                    words = [each.words for each in table.needs()]
                    raise AssertionError(f"needs {words}, refused {staff.refused[-3:]}")


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
