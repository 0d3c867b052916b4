"""A table's program that is killed: it runs the session of one table until so many rounds are collected.

Command line: the device's URL, the folder of keys, journal and record, the rule set, the number of rounds.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.session.simulated_table import SEATS, fixed_nonce, staff_of

from sabot_driver import Keyring, connect
from sabot_driver.user_files import UserFiles
from sabot_session import acts
from sabot_session.needs import Need, NeedKind
from sabot_session.record import SqliteRecord
from sabot_session.session import TableSession
from sabot_session.threaded_session import ThreadedSession
from sabot_simulators.endpoints.control_client import CardsOverSocket
from sabot_simulators.simulated_staff import DEALER, RELIEF, SimulatedRegister, SimulatedStaff
from sabot_table.rule_texts import DealingMethod
from sabot_table.ruleset import load

PATIENCE_S = 800.0
ROWS = {"report_wrong_number": "wrong_number"}  # acts whose row has another name
CUT_FROM_TOP = 150
SHOES: dict[str, int | None] = {"md-mini-baccarat": 380, "baccarat-six-deck": None}
"""Rule sets dealt card by card, and how many cards lie below the cover card: a shoe has about four rounds."""


@dataclass(frozen=True)
class Day:
    """The rule set of a day and its rounds."""

    rules: str
    rounds: int


class Plan:
    """What people do in each round besides the usual. The record tells what they have done already."""

    def __init__(self, table: ThreadedSession, staff: SimulatedStaff, record: SqliteRecord) -> None:
        self.table = table
        self.staff = staff
        self.record = record
        dealer, rules = table.read(lambda session: (session.state.dealer, session.rules))
        self.mini = rules.name in SHOES
        self.forfeits = rules.name.startswith("md-three")
        self.main = rules.main_wagers[0]
        self.seen: set[NeedKind] = set()
        if dealer is not None:
            staff.deal_as(dealer.person)

    def act(self) -> bool:
        """Give the next act of the plan, if it is its turn; whether one was given."""
        needs = {each.kind: each for each in self.table.needs()}
        self.seen = set(needs)
        number = self.table.read(lambda session: session.procedure.table.memory.rounds)
        if NeedKind.BETS in needs:
            return self._bet(number + 1, needs[NeedKind.BETS])
        done = self._done(number)
        if NeedKind.EXPOSE in needs:
            wanted: dict[int, acts.Act] = {
                2: acts.Hold("seat 1 doubts a card"),
                4: acts.ReportWrongNumber("four cards"),
                5: acts.CallFloor("a question"),
            }
            if self.forfeits:
                wanted[1] = acts.Forfeit(1)
            if self.mini:
                wanted = {5: wanted[5]}
            due = wanted.get(number % 6)
            if due is not None and ROWS.get(due.NAME, due.NAME) not in done:
                self.staff.give(due)
                return True
        return False

    @property
    def left_to_it(self) -> frozenset[NeedKind]:
        """What the staff leaves to the plan: bets, and hands that it has not seen waiting when it acted."""
        return frozenset({NeedKind.BETS, NeedKind.EXPOSE} - (self.seen - {NeedKind.BETS}))

    def _done(self, number: int) -> set[str]:
        return {each.row.kind for each in self.record.round_rows(number)} if number else set()

    def _bet(self, number: int, need: Need) -> bool:
        before = number - 1
        done = self._done(before)
        settled = "settle" in done
        if before % 6 == 3 and "open_dispute" not in done:
            self.staff.give(acts.OpenDispute(round_id=before))
            return True
        if before and before % 6 == 0 and settled and "propose_correction" not in done:
            wagers = {seat: {**made, self.main: 4000} for seat, made in self.staff.wagers.items()}
            self.staff.give(acts.ProposeCorrection(before, "more chips", wagers=wagers))
            return True
        dealer = RELIEF if number % 4 == 0 else DEALER
        now = self.table.read(lambda session: session.state.dealer)
        # In mini baccarat a kill decides whether the hand before is collected by then.
        if not self.mini and (now is None or now.person != dealer):
            if now is not None and before and "collect" not in done:
                return False  # who dealt a round collects its cards: the machine takes them soon
            self.staff.relieve(dealer)
            return True
        seats = number % 3 == 2
        act = acts.NoMoreBets(seats=(1, 2)) if seats else acts.NoMoreBets(self.staff.wagers)
        self.staff.give(act, need)
        return True


def run(url: str, folder: Path, day: Day) -> None:
    """Play until so many rounds are on record."""
    rules = load(day.rules)
    cards = CardsOverSocket(folder / "control")
    options = {"keyring": Keyring(folder), "journal": folder / "journal.db", "simulator": True}
    with connect(url, **options) as client, SqliteRecord(folder / "table.db") as record:  # type: ignore[arg-type]
        files = UserFiles(folder)
        session = TableSession(rules, record, SimulatedRegister(), nonce=fixed_nonce)
        with ThreadedSession(session, client, simulators_key=True) as table:
            staff = staff_of(table, rules, files, client, SEATS, DealingMethod.AUTOMATED_SHOE, cards)
            staff.from_top, staff.cover_above = CUT_FROM_TOP, SHOES.get(day.rules)
            plan = Plan(table, staff, record)
            ends = time.monotonic() + PATIENCE_S
            while len(record.rows_of_kind("collect")) < day.rounds:
                newest = table.read(lambda session: session.cursor)
                if not plan.act() and staff.meet_one(plan.left_to_it) is None:
                    table.wait_changed(newest, 0.05)
                if time.monotonic() > ends:
                    words = [each.words for each in table.needs()]
                    raise AssertionError(f"needs {words}, refused {staff.refused[-3:]}")


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), Day(sys.argv[3], int(sys.argv[4])))
