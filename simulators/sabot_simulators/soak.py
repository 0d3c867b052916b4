"""``make soak``: rounds with random faults, and whether the machine ever claimed what was not so.

Every claim (a deck counted, a round called correct, a deck proved to be somewhere) is compared with where the
cards really are. A fault that stops a half is cleared and play goes on.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from rich.console import Console
from rich.progress import track

from sabot_protocol.errors import Refusal
from sabot_simulators import chips
from sabot_simulators.board_faults import BoardFaults
from sabot_simulators.dealer import CannotGoOn, Dealer
from sabot_simulators.in_process import InProcess, Stuck
from sabot_simulators.mechanism.faults import KINDS, Fault
from sabot_simulators.mechanism.machine import Machine, PowerCut
from sabot_simulators.watch import Watch

ROUNDS_A_TABLE = 4
MAX_FAULTS = 3
LAST_CARD = 52 * (ROUNDS_A_TABLE + 2)
LAST_SECOND = 120
SWITCHED_OFF = 0.2  # how likely the machine is switched off and on after a round: records are read only then


@dataclass
class Findings:
    """What a soak has seen."""

    tables: int = 0
    rounds: int = 0
    claims: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    stops: int = 0
    gave_up: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)

    def upper_bound(self) -> float:
        """The 95 % upper bound of the rate of wrong claims, if none was seen; else the rate itself."""
        wrong = sum(self.wrong.values())
        if not self.claims:
            return 1.0
        return wrong / self.claims if wrong else 1 - 0.05 ** (1 / self.claims)


class SoakDealer(Dealer):
    """A dealer whose table PC tells the device the time again whenever something is mended."""

    def _mend(self) -> bool:
        self.device.clock_known, self.device.clock_wrong_by_s = True, 0
        return super()._mend()


class SoakTable:
    """One table with its faults, watched at every report."""

    def __init__(self, seed: int, findings: Findings) -> None:
        self.random = Random(seed)
        self.findings = findings
        self.faults = tuple(self._fault() for _ in range(self.random.randrange(MAX_FAULTS + 1)))
        self.machine = Machine(self.random, self.faults)
        self.board = BoardFaults(self.random)
        self.device = InProcess(self.machine, None, chip=self.board.chip)
        self.board.join(self.device)
        self.watch = Watch(self.device)
        self.dealer = SoakDealer(self.device)

    def _fault(self) -> Fault:
        kind = self.random.choice(sorted(KINDS))
        place = self.random.choice(KINDS[kind][1])
        if place == "controller" or kind == "door_opened":
            return Fault.parse(f"{kind}@{place}+{self.random.uniform(1, LAST_SECOND):.3f}")
        return Fault.parse(f"{kind}@{place}:{self.random.randrange(1, LAST_CARD)}")

    def play(self) -> None:
        """Open the table and play, until it is over or this dealer knows no further."""
        played = 0
        going_on: bool | None = None
        while played < ROUNDS_A_TABLE:
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
                    going_on = self.dealer.play_round()
                    if self.random.random() < SWITCHED_OFF:
                        raise PowerCut
            except (PowerCut, chips.PowerCut):
                self._switch_on()
                going_on = False
            except Refusal:
                going_on = False
            except (CannotGoOn, Stuck):
                self.findings.gave_up += 1
                break
        self._account()

    def _switch_on(self) -> None:
        """The power comes back, and the firmware begins anew over the same chip."""
        self.machine.power_off()
        self.board.chip.power.restore()
        self.device.reboot()

    def _account(self) -> None:
        findings = self.findings
        findings.claims += self.watch.claims
        findings.rounds += sum(name == "round_ended" for name, _ in self.device.reports)
        for wrong in self.watch.wrong:
            if wrong.unseen is not None:
                findings.unseen[wrong.unseen] += 1
            else:
                findings.wrong["+".join(sorted(wrong.faults)) or "no fault"] += 1


def soak(tables: int, seed: int, console: Console) -> Findings:
    """Play so many tables."""
    findings = Findings()
    for number in track(range(tables), "soaking", console=console, transient=True):
        table = SoakTable(seed * 1_000_003 + number, findings)
        table.play()
        findings.tables += 1
        findings.faults.update(each.fault.kind for each in table.machine.faults.happened)
    return findings


def main() -> int:
    """Soak and report; 1 if anything was claimed that was not so."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.soak")
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(highlight=False)
    found = soak(arguments.tables, arguments.seed, console)
    console.print(
        f"{found.tables} tables, {found.rounds} rounds, {found.stops} stops, {found.claims} claims; "
        f"at {found.gave_up} tables the dealer could not go on"
    )
    for kind in sorted(KINDS):
        wrong = sum(number for kinds, number in found.wrong.items() if kind in kinds)
        console.print(f"  {kind:<18} happened {found.faults[kind]:>6} times, wrong claims {wrong}")
    for name, number in found.unseen.items():
        console.print(f"  what no sensor can see: {name}: {number} claims")
    wrong = sum(found.wrong.values())
    console.print(f"wrong claims: {wrong}; 95 % upper bound of their rate {found.upper_bound():.1e}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
