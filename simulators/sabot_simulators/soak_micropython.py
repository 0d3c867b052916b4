"""``make soak-micropython``: rounds with random faults, the firmware on a real MicroPython in 256 KB.

A sitting is one process that plays on and on, so that a heap that grows is seen: bytes in use after a
collection, taken every few rounds with both decks in the machine. Faults are planned as play goes on, and
every claim is judged by the oracle, as in ``make soak``. A sitting ends with a power cut, which the next
process boots from.
"""

import argparse
import sys
from dataclasses import dataclass, field
from random import Random

from rich.console import Console
from rich.progress import Progress

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware import shoe, shuffler
from sabot_protocol.errors import Refusal
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import Dealer, RecoveryFailed
from sabot_simulators.emulated_device import WaitTimeout
from sabot_simulators.mechanism.faults import BOARD_KINDS, COUNTED_AT, KINDS, PlannedFault
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.micropython_device import HEAP, MicroPythonDevice, NoMicroPython
from sabot_simulators.oracle import Oracle
from sabot_simulators.soak import SoakReport

ROUNDS = 1000
ROUNDS_A_SITTING = 50
ROUNDS_A_PLAN = 4  # faults are planned for so many rounds at once
MOST_FAULTS = 3
CARDS_AHEAD = 52 * ROUNDS_A_PLAN
SECONDS_AHEAD = 120.0
WARM_ROUNDS = 10  # by then everything that is kept for good is there
SAMPLE_ROUNDS = 5
MOST_GROWTH = 2048  # bytes, first to last: what can be revealed of two decks that left the table
MOST_TRIES = 12  # rounds and recoveries in which a power cut comes
TRIES_AFTER = 3
LEFT_OUT = ("power_cut", *BOARD_KINDS)  # ends the process; belong to chip and clock


@dataclass
class Heap:
    """The heap of one process, sampled with both decks in the machine."""

    samples: list[int] = field(default_factory=list)
    """Bytes in use after a collection."""
    most: int = 0
    """The most in use at any command or report, after a collection."""
    size: int = 0

    def growth(self) -> int:
        """How much more is in use at the end than at the beginning, by the middle of three samples each."""
        if len(self.samples) < 6:
            return 0
        return sorted(self.samples[-3:])[1] - sorted(self.samples[:3])[1]


@dataclass
class HeapSoakReport(SoakReport):
    """The figures of a soak on MicroPython."""

    heaps: list[Heap] = field(default_factory=list)

    def grown(self) -> list[Heap]:
        """The processes whose heap has grown."""
        return [heap for heap in self.heaps if heap.growth() > MOST_GROWTH]


class Sitting:
    """One process at one machine; the oracle judges every event."""

    def __init__(
        self, seed: int, found: HeapSoakReport, heap: str = HEAP, python: list[str] | None = None
    ) -> None:
        self.random = Random(seed)
        self.found = found
        self.machine = SimulatedMachine(self.random)
        self.device = MicroPythonDevice(self.machine, self.random.randrange, heap=heap, python=python)
        self.oracle = Oracle(self.device)
        self.dealer = Dealer(self.device)
        self.heap = Heap()

    def play(self, rounds: int) -> int:
        """Play so many rounds, or until the dealer cannot recover; how many were finished."""
        self.found.heaps.append(self.heap)
        ended = 0
        tried = 0
        going_on: bool | None = None
        try:
            while ended < rounds and tried < 3 * rounds:
                tried += 1
                if tried % ROUNDS_A_PLAN == 1 and going_on is not None:
                    self._plan()
                going_on = self._go_on(going_on)
                ended += self._account()
                self._sample(ended)
            self._cut_power()
            ended += self._account()
        except (RecoveryFailed, WaitTimeout):
            self.found.gave_up += 1
            ended += self._account()
        finally:
            self.device.close()
        self.found.tables += 1
        self.found.faults.update(each.kind for each in self.machine.faults.happened)
        return ended

    def _go_on(self, going_on: bool | None) -> bool:
        try:
            if going_on is None:
                return self.dealer.open_table()
            if not going_on:
                self.found.stops += 1
                self.dealer.recover()
                return True
            return self.dealer.play_round()
        except Refusal:
            return False

    def _plan(self) -> None:
        """Plan some faults for the next rounds."""
        faults = self.machine.faults
        for _ in range(self.random.randrange(MOST_FAULTS + 1)):
            kind = self.random.choice(sorted(set(KINDS) - set(LEFT_OUT)))
            place = self.random.choice(KINDS[kind][1])
            if place == "controller" or kind == "door_opened":
                now_s = self.machine.agenda.now_us / 1e6
                when = f"+{now_s + self.random.uniform(0, SECONDS_AHEAD):.3f}"
            else:
                gone = sum(faults.cards[each] for each in COUNTED_AT[place])
                when = f":{gone + self.random.randrange(1, CARDS_AHEAD)}"
            self.machine.plan(PlannedFault.parse(f"{kind}@{place}{when}"))

    def _sample(self, ended: int) -> None:
        state = (self.device.shuffler_state, self.device.shoe_state)
        due = WARM_ROUNDS + SAMPLE_ROUNDS * len(self.heap.samples)
        if ended >= due and state == (shuffler.STORED, shoe.READY):
            live, self.heap.most, self.heap.size = self.device.heap()
            self.heap.samples.append(live)

    def _cut_power(self) -> None:
        """The power fails somewhere in a round; the next process boots over the same chip and plays on."""
        self.heap = Heap()
        now_s = self.machine.agenda.now_us / 1e6
        self.machine.plan(
            PlannedFault.parse(f"power_cut@controller+{now_s + self.random.uniform(0, 40):.3f}")
        )
        going_on, left = True, MOST_TRIES
        while left:
            left -= 1
            try:
                going_on = self._go_on(going_on)
            except PowerCut:
                self.device.reboot()
                going_on, left = False, min(left, TRIES_AFTER)

    def _account(self) -> int:
        """Take down what the oracle has found; how many rounds have ended since the last time."""
        found, oracle = self.found, self.oracle
        found.claims, oracle.claims = found.claims + oracle.claims, 0
        for wrong in oracle.wrong:
            if wrong.unseen is not None:
                found.unseen[wrong.unseen] += 1
            else:
                found.wrong[f"{wrong.what}: " + ("+".join(sorted(wrong.faults)) or "no fault")] += 1
        oracle.wrong.clear()
        ended = sum(name == "round_ended" for name, _ in self.device.reports)
        self.device.reports.clear()
        found.rounds += ended
        return ended


def soak(rounds: int, seed: int, console: Console) -> HeapSoakReport:
    """Play so many rounds."""
    found = HeapSoakReport()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("soaking", total=rounds)
        sitting = 0
        while found.rounds < rounds:
            left = rounds - found.rounds
            Sitting(seed * 1_000_003 + sitting, found).play(min(left, ROUNDS_A_SITTING))
            sitting += 1
            progress.update(task, completed=found.rounds)
    return found


def main() -> int:
    """Soak and report; 1 if a claim was false or a heap has grown."""
    parser = argparse.ArgumentParser(prog="python -m sabot_simulators.soak_micropython")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    try:
        found = soak(arguments.rounds, arguments.seed, console)
    except NoMicroPython as missing:
        console.print(f"[red]{missing}[/red]")
        return 1
    console.print(
        f"{found.rounds} rounds in {found.tables} sittings on MicroPython, {found.stops} stops, "
        f"{sum(found.faults.values())} faults of {len(found.faults)} kinds, {found.claims} claims; "
        f"at {found.gave_up} sittings the dealer could not go on"
    )
    for kind, number in sorted(found.faults.items()):
        console.print(f"  {kind:<18} happened {number:>5} times")
    for name, number in found.unseen.items():
        console.print(f"  what no sensor can see: {name}: {number} claims")
    for heap in found.heaps:
        if heap.samples:
            console.print(
                f"  heap: {heap.samples[0]:,} bytes first, {heap.samples[-1]:,} last, {max(heap.samples):,} "
                f"at most between rounds, {heap.most:,} at any report, of {heap.size:,}"
            )
    wrong = sum(found.wrong.values())
    console.print(f"wrong claims: {wrong}; 95 % upper bound of their rate {found.upper_bound():.1e}")
    for kinds, number in found.wrong.items():
        console.print(f"  [red]{kinds}: {number}[/red]")
    grown = found.grown()
    if grown:
        console.print(f"[red]{len(grown)} heaps have grown by more than {MOST_GROWTH} bytes[/red]")
    return 1 if found.wrong or grown else 0


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
