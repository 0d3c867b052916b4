"""``make soak``: rounds with random faults, and whether the machine ever claimed what was not so.

Every claim of 52 (after a shuffle, and of a whole round) is compared with where the cards really are. A fault
that stops a half is cleared by the dealer and play goes on.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from rich.console import Console
from rich.progress import track

from sabot_firmware.rounds import CORRECT
from sabot_protocol.errors import Refusal
from sabot_simulators.dealer import Dealer
from sabot_simulators.in_process import InProcess, Stuck
from sabot_simulators.mechanism.faults import KINDS, Fault
from sabot_simulators.mechanism.machine import Machine

ROUNDS_A_TABLE = 4
MAX_CLEARINGS = 6
LAST_CARD = 52 * (ROUNDS_A_TABLE + 2)


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

    def upper_bound(self) -> float:
        """The 95 % upper bound of the rate of wrong claims, if none was seen; else the rate itself."""
        wrong = sum(self.wrong.values())
        if not self.claims:
            return 1.0
        return wrong / self.claims if wrong else 1 - 0.05 ** (1 / self.claims)


class Table:
    """One table with its faults, watched at every step."""

    def __init__(self, seed: int, findings: Findings) -> None:
        self.random = Random(seed)
        self.findings = findings
        self.faults = tuple(self._fault() for _ in range(self.random.randrange(3)))
        self.machine = Machine(self.random, self.faults)
        self.device = InProcess(self.machine, self.random.randrange)
        self.dealer = Dealer(self.device)
        self.device.each_step = self._compare
        self._read = 0  # how many reports were looked at

    def _fault(self) -> Fault:
        kind = self.random.choice(sorted(KINDS))
        return Fault(kind, self.random.choice(KINDS[kind][1]), self.random.randrange(1, LAST_CARD))

    def play(self) -> None:
        """Open the table and play, until it is over or this dealer knows no further."""
        try:
            self._play()
        except (Refusal, Stuck):
            self.findings.gave_up += 1

    def _play(self) -> None:
        """Clear what stops, a bounded number of times."""
        clearings = 0
        going_on = self.dealer.open_table()
        for _ in range(ROUNDS_A_TABLE):
            if not going_on:
                self.findings.stops += 1
                clearings += 1
                if clearings > MAX_CLEARINGS or not self._both_decks():
                    return
                self.dealer.recover()
                going_on = self.device.core.shoe.jam is None and self.device.core.shuffler.jam is None
                continue
            going_on = self.dealer.play_round()

    def _both_decks(self) -> bool:
        decks = self.device.core.decks
        return decks.find(1) is not None and decks.find(2) is not None

    def _compare(self) -> None:
        findings = self.findings
        reports = self.device.reports
        while self._read < len(reports):
            name, values = reports[self._read]
            self._read += 1
            if name == "deck_counted" and values[2]:
                findings.claims += 1
                if values[2] != len(self.machine.store):
                    self._wrong()
            elif name == "round_ended":
                findings.rounds += 1
                if values[1] == CORRECT:
                    self._compare_round()

    def _compare_round(self) -> None:
        self.findings.claims += 1
        stacks = [len(hand) for hand in self.dealer.hands_dealt]
        if stacks != [3] * self.dealer.hands or len(self.machine.exit_tray) != 52 - sum(stacks):
            self._wrong()

    def _wrong(self) -> None:
        self.findings.wrong["+".join(str(fault.kind) for fault in self.machine.faults.happened)] += 1


def soak(tables: int, seed: int, console: Console) -> Findings:
    """Play so many tables."""
    findings = Findings()
    for number in track(range(tables), "soaking", console=console, transient=True):
        table = Table(seed * 1_000_003 + number, findings)
        table.play()
        findings.tables += 1
        findings.faults.update(fault.kind for fault in table.machine.faults.happened)
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
        wrong = sum(number for kinds, number in found.wrong.items() if kind in kinds.split("+"))
        console.print(f"  {kind:<16} happened {found.faults[kind]:>6} times, wrong claims {wrong}")
    wrong = sum(found.wrong.values())
    console.print(f"wrong claims: {wrong}; 95 % upper bound of their rate {found.upper_bound():.1e}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
