"""``make soak``: rounds with random faults, and a search for false claims of the machine.

Every claim is judged by the oracle, by the identity of the cards it is about. A fault that stops a half is
cleared and play goes on. Half of the faults are aimed at first and last cards, where most defects are. Now
and then the power goes while the last cards of a stub come out, people take what lies in the exit tray while
it is off, somebody opens a door, a table stands over night, or the floor has everything brought out.
"""

import argparse
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from rich.console import Console
from rich.progress import track

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_protocol.errors import Refusal
from sabot_simulators import chips
from sabot_simulators.board_faults import BoardFaults
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import RecoveryFailed
from sabot_simulators.emulated_device import WaitTimeout
from sabot_simulators.lossy_host import LossyHostDevice
from sabot_simulators.mechanism.faults import KINDS, PlannedFault
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine, power_fails
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice
from sabot_simulators.soak_batches import BatchDealer
from sabot_simulators.soak_dealer import OPENED, TAKEN_WHILE_OFF
from sabot_simulators.soak_staff import Interrupted, SoakStaff

ROUNDS_A_TABLE = 4
MAX_FAULTS = 3
LAST_CARD = 52 * (ROUNDS_A_TABLE + 2)
LAST_SECOND = 120
AIMED = 0.5  # how likely a fault is meant for one of these cards of a deck, and not for any
AIMED_AT = (1, 2, 21, 22, 26, 51, 52)
SWITCHED_OFF = 0.2  # how likely the machine is switched off and on after a round: records are read only then
OVER_NIGHT = 0.03  # that the table stands until the decks' hours are over, before a round
NIGHT_S = (8 * 3600 + 120, 11 * 3600)
IN_THE_PATH = 0.4  # that the last card of a deck stays between shoe and exit
PATH_FAULTS = (
    ("stuck", "deal"),
    ("stuck", "deal"),
    ("stuck", "deal"),
    ("slip", "shoe"),
    ("misfeed", "shoe"),
    ("dead_sensor", "exit"),
)
DELIVERED = 0.15  # that the machine delivers whole decks instead of dealing rounds
ONE_MORE = 0.3  # that an unseen hand adds a card to a deck on the shelf, of those that are delivered
OVER_THE_WIRE = 10  # every tenth table has a host that listens over a wire which loses bytes


@dataclass
class SoakReport:
    """The figures of a soak."""

    tables: int = 0
    rounds: int = 0
    claims: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    stops: int = 0
    gave_up: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    """What was wrongly claimed without an excuse, with the faults that had happened."""
    unseen: Counter[str] = field(default_factory=Counter)
    told: int = 0
    """Events that a host heard over the wire and that were compared with what the device reported."""

    def has(self, words: str) -> bool:
        """Whether a claim with these words was wrong."""
        return any(words in what for what in self.wrong)

    def upper_bound(self) -> float:
        """The 95 % upper bound of the rate of wrong claims, if none was seen; else the rate itself."""
        wrong = sum(self.wrong.values())
        if not self.claims:
            return 1.0
        return wrong / self.claims if wrong else 1 - 0.05 ** (1 / self.claims)


class SoakTable:
    """One table with its faults; the oracle judges every event."""

    def __init__(
        self,
        seed: int,
        findings: SoakReport,
        planned: tuple[PlannedFault, ...] | None = None,
        rounds: int = ROUNDS_A_TABLE,
    ) -> None:
        """With the faults that are planned, or with up to three random ones."""
        self.random = Random(seed)
        self._rounds = rounds
        self.findings = findings
        delivers = self.random.random() < DELIVERED
        if planned is None:
            planned = tuple(self._fault() for _ in range(self.random.randrange(MAX_FAULTS + 1)))
            planned += self._in_the_path(delivers)
        self.faults = planned
        self.machine = SimulatedMachine(self.random, self.faults, "batch" if delivers else "deck")
        self.chip = chips.SimFram()
        self.told = LossyHostDevice(self.machine, None, self.chip) if seed % OVER_THE_WIRE == 0 else None
        self.device = self.told or PythonDevice(self.machine, None, chip=self.chip)
        BoardFaults(self.random, self.chip).join(self.machine, self._clock_wrong, self._clock_lost)
        self.oracle = Oracle(self.device)
        self.dealer = (BatchDealer if delivers else SoakStaff)(self.device, self.random)

    def _fault(self) -> PlannedFault:
        kind = self.random.choice(sorted(KINDS))
        place = self.random.choice(KINDS[kind][1])
        timed = place == "controller" or kind == "door_opened"
        if self.random.random() < AIMED:
            card = 52 * self.random.randrange(LAST_CARD // 52) + self.random.choice(AIMED_AT)
            return PlannedFault(kind, place, card=card)
        if timed:
            return PlannedFault(kind, place, seconds=round(self.random.uniform(1, LAST_SECOND), 3))
        return PlannedFault(kind, place, card=self.random.randrange(1, LAST_CARD))

    def _in_the_path(self, delivers: bool) -> tuple[PlannedFault, ...]:
        """The last card of a deck stays in the shoe's path; or one too many, of a delivered deck."""
        if self.random.random() >= IN_THE_PATH:
            return ()
        kind, place = self.random.choice(PATH_FAULTS)
        deck = self.random.choice((0, 0, 1, 2))
        if delivers and self.random.random() < ONE_MORE:
            extra = PlannedFault("extra_card", "store", card=52 * deck + 1)
            return extra, PlannedFault(kind, place, card=52 * (deck + 1) + 1)
        return (PlannedFault(kind, place, card=52 * (deck + 1)),)

    def play(self) -> None:
        """Open the table and play until it is over or the dealer cannot recover."""
        played = 0
        going_on: bool | None = None
        while played < self._rounds:
            try:
                if going_on is None:
                    going_on = self.dealer.open_table()
                elif not going_on:
                    self.findings.stops += 1
                    played += 1
                    self.dealer.recover()
                    going_on = True
                else:
                    played += 1
                    if self.random.random() < OVER_NIGHT:
                        self.dealer.stand(self.random.randrange(*NIGHT_S))
                    if self.random.random() < OPENED:
                        self.dealer.open_a_door()
                    going_on = self.dealer.play_round()
                    if self.random.random() < SWITCHED_OFF:
                        raise PowerCut
            except PowerCut:
                self._switch_on()
                going_on = False
            except (Refusal, Interrupted):
                going_on = False
            except (RecoveryFailed, WaitTimeout):
                self.findings.gave_up += 1
                break
            try:
                self._look()
            except PowerCut:  # while a host was answered
                self._switch_on()
                going_on = False
        self._account()

    def _clock_wrong(self, by_s: int) -> None:
        self.device.clock_wrong_by_s = by_s

    def _clock_lost(self) -> None:
        self.device.clock_known = False

    def _switch_on(self) -> None:
        """The power comes back, and the firmware begins anew over the same chip."""
        machine = self.machine
        machine.power_off()
        machine.on_power_cut = lambda: None  # it is off
        machine.agenda.advance(machine.agenda.now_us + 1_000_000)  # what flies has landed
        machine.on_power_cut = power_fails
        if machine.exit_tray and self.random.random() < TAKEN_WHILE_OFF:
            machine.snatch_exit()
        self.chip.power.restore()
        self.device.reboot()

    def _look(self) -> None:
        """Between rounds: every card is in one place, and a host that asks is told what was reported."""
        held = [card for cards in self.dealer.decks.values() for card in cards]
        self.oracle.every_card_in_one_place(held)
        self.oracle.ask()

    def _hear_the_rest(self) -> None:
        """The host that listens has heard everything, in the end, as it was reported."""
        if self.told is not None:
            with suppress(PowerCut):
                self.told.catch_up()
            for different in self.told.different:
                self.findings.wrong[f"the host was told otherwise: {different}"] += 1
            self.findings.told += self.told.compared

    def _account(self) -> None:
        findings = self.findings
        self._hear_the_rest()
        findings.claims += self.oracle.claims
        findings.rounds += sum(name == "round_ended" for name, _ in self.device.reports)
        for wrong in self.oracle.wrong:
            if wrong.unseen is not None:
                findings.unseen[wrong.unseen] += 1
            else:
                findings.wrong[f"{wrong.what}: " + ("+".join(sorted(wrong.faults)) or "no fault")] += 1


def soak(tables: int, seed: int, console: Console, until: str | None = None) -> SoakReport:
    """Play so many tables, or until a claim with these words was wrong."""
    findings = SoakReport()
    for number in track(range(tables), "soaking", console=console, transient=True):
        table = SoakTable(seed * 1_000_003 + number, findings)
        table.play()
        findings.tables += 1
        findings.faults.update(each.fault.kind for each in table.machine.faults.happened)
        if until is not None and findings.has(until):
            break
    return findings


def tell(found: SoakReport, console: Console) -> None:
    """Print the figures of a soak."""
    console.print(
        f"{found.tables} tables, {found.rounds} rounds, {found.stops} stops, {found.claims} claims; "
        f"at {found.gave_up} tables the dealer could not go on"
    )
    for kind in sorted(KINDS):
        wrong = sum(number for kinds, number in found.wrong.items() if f"{kind}@" in kinds)
        console.print(f"  {kind:<18} happened {found.faults[kind]:>6} times, wrong claims {wrong}")
    for name, number in sorted(found.unseen.items()):
        console.print(f"  what no sensor can see: {name}: {number} claims")
    wrong = sum(found.wrong.values())
    console.print(f"{found.told} events heard over the wire as the device reported them")
    console.print(f"wrong claims: {wrong}; 95 % upper bound of their rate {found.upper_bound():.1e}")
    for what, number in found.wrong.most_common(20):
        console.print(f"  [red]{number} x {what}[/red]")


def main() -> int:
    """Soak and report; 1 if a claim was false."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.soak")
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    found = soak(arguments.tables, arguments.seed, console)
    tell(found, console)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
