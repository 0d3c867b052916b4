"""A day at a table with the automated shoe: everything that its text has for it, on an emulator."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.session.simulated_table import SimulatedTable

from sabot_session import acts
from sabot_session.needs import NeedKind
from sabot_simulators.simulated_staff import RELIEF
from sabot_table.procedure.vocabulary import DeviceUnit

HOUR_S = 3600
FAULTS = "&".join(
    f"fault={each}"
    for each in (
        "stuck@exit:72",  # a jam in the second round
        "face_up_card@shoe:176",
        "missing_card@tray:430",
        "aligned_double@shoe:425",
        "snag@entry:500",
    )
)
BUSY = frozenset({NeedKind.BETS, NeedKind.RECEIVE_PACK})
CHIPS = {1: {"ante": 2000, "tie": 500, "three-kings": 500, "dragon-bonus": 500}, 2: {"ante": 4000}}


@dataclass
class Clock:
    """The day's clock. It can go ahead of the device's; a pack that is opened then is refused there."""

    ahead_s: int = 0

    def __call__(self) -> int:
        """The time of day."""
        return int(time.time()) + self.ahead_s


class Day:
    """Plays the parts of a day; each leaves the table ready for bets or between rounds."""

    def __init__(self, table: SimulatedTable, clock: Clock, maryland: bool) -> None:
        self.table = table
        self.clock = clock
        self.maryland = maryland

    def give(self, act: acts.Act) -> int:
        """An act without a need; its row."""
        return self.table.staff.give(act).row

    def bet(self, act: acts.NoMoreBets | None = None) -> None:
        """No more bets."""
        need = self.table.until(NeedKind.BETS)
        self.table.staff.give(act or acts.NoMoreBets(CHIPS), need)

    def in_state(self, *states: str) -> Callable[[SimulatedTable], bool]:
        """Whether the table is in one of these states."""
        return lambda table: table.run.read(lambda session: session.procedure.table.state) in states

    def settle(self) -> None:
        """Expose the hands of the round in play, if it has any, until it is over."""
        self.table.play(self.in_state("collecting", "voided", "between"), frozenset({NeedKind.BETS}))

    def round(self, act: acts.NoMoreBets | None = None) -> None:
        """A whole round, settled or void."""
        self.bet(act)
        self.settle()

    def ordinary(self) -> None:
        """Rounds with the faults of the machine: jams, a face-up card, wrong counts."""
        for _ in range(9):
            self.round()

    def chips(self) -> None:
        """Seats whose wagers nobody tells; then wagers one by one, one withdrawn, a player who joins."""
        self.round(acts.NoMoreBets(seats=(1, 2)))
        self.table.until(NeedKind.BETS)
        for act in (
            acts.PlaceWager(3, "ante", 1000),
            acts.PlaceWager(3, "tie", 500),
            acts.WithdrawWager(3, "tie"),
        ):
            self.give(act)
        self.round(acts.NoMoreBets())
        self.give(acts.Leave(3))
        self.table.until(NeedKind.BETS)
        self.give(acts.PlaceWager(1, "ante", 500))
        self.give(acts.ReturnBets())

    def wrong_number(self) -> None:
        """The dealer reports a wrong number of cards, and the floor countersigns."""
        self.bet()
        self.table.until(NeedKind.EXPOSE)
        self.give(acts.ReportWrongNumber("seat 2 has four cards"))
        self.settle()

    def taken(self) -> None:
        """Wagers that are forfeited and abandoned, where the text has it."""
        if not self.maryland:
            return
        self.bet()
        self.table.until(NeedKind.EXPOSE)
        self.give(acts.Forfeit(1))
        self.give(acts.Leave(2))
        self.give(acts.Abandon(2))
        self.settle()

    def doubts(self) -> None:
        """A hold, a dispute, and a correction by dealer and floor."""
        self.bet()
        self.table.until(NeedKind.EXPOSE)
        self.give(acts.Hold("seat 1 doubts a card"))
        expose = self.table.need(NeedKind.EXPOSE)
        self.table.staff.meet(expose)
        leave = frozenset({NeedKind.BETS, NeedKind.RELEASE, NeedKind.DECIDE_DISPUTE})
        self.table.play(self.in_state("collecting"), leave)
        number = self.table.run.read(lambda session: session.procedure.table.round.round_id)
        self.give(acts.OpenDispute("the screen shows another total"))
        more = {**CHIPS, 2: {"ante": 4500}}
        self.give(acts.ProposeCorrection(number, "seat 2 had 45", wagers=more))
        self.table.play(
            lambda table: bool(table.rows("correct", "release")) and not table.need(NeedKind.DECIDE_DISPUTE),
            frozenset({NeedKind.BETS}),
        )

    def people(self) -> None:
        """Another dealer, the floor called, an idle table."""
        self.table.until(NeedKind.BETS)
        self.table.staff.relieve(RELIEF)
        self.round()
        self.give(acts.CallFloor("a player asks for the floor"))
        self.table.until(NeedKind.BETS)
        self.give(acts.Idle())
        self.table.until(NeedKind.PLAYER_ARRIVES)
        self.round()

    def power_cut(self) -> None:
        """The machine's power fails between rounds, with cards inside."""
        self.table.until(NeedKind.BETS)
        self.table.cut_power()
        self.table.play(lambda table: len(table.rows("machine_started")) == 2, frozenset({NeedKind.BETS}))
        self.round()

    def out_of_order(self) -> None:
        """The shoe fails, has its sign, and is repaired (MD3 13.E)."""
        self.table.until(NeedKind.BETS)
        self.give(acts.ReportUnitFailed(DeviceUnit.SHOE, "it makes a noise"))
        leave = frozenset({NeedKind.BETS})
        self.table.play(lambda table: bool(table.rows("mark_out_of_order")), leave)
        self.give(acts.CloseTable())
        self.give(acts.Repaired(DeviceUnit.SHOE))
        self.round()

    def hours(self) -> None:
        """The packs' hours end: two warnings, then both packs leave. Washington sets no hours."""
        self.table.until(NeedKind.BETS)
        if not self.maryland:
            return
        for minutes, warned in ((30, 2), (10, 4)):
            self.clock.ahead_s = 8 * HOUR_S - 60 * minutes
            self._warned(warned)
        self.clock.ahead_s = 8 * HOUR_S
        self.table.play(lambda table: len(table.rows("remove")) >= 4, BUSY)

    def _warned(self, count: int) -> None:
        self.table.play(lambda table: len(table.rows("hours_warned")) >= count, BUSY)

    def closing(self) -> None:
        """The table closes; a dispute is still open."""
        self.give(acts.OpenDispute("for tomorrow"))
        self.give(acts.CloseTable())

    def play(self) -> None:
        """All of it."""
        for part in (
            self.ordinary, self.chips, self.wrong_number, self.taken, self.doubts, self.people,
            self.power_cut, self.out_of_order, self.hours, self.closing,
        ):  # fmt: skip
            part()
