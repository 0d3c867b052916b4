"""``make play``, second part: two decks alternate through a simulated machine, driven over the wire.

Everything runs in one process and virtual time; what is shown of counts and faults is what the device told
its host. The cards are shown by the simulator, which knows them.
"""

import argparse
import sys
import time
from random import Random

from rich.console import Console

from sabot_evidence.core_dumps import forbid_core_dumps
from sabot_firmware import hardware
from sabot_firmware.rounds import CORRECT
from sabot_protocol.codec import enum_name
from sabot_simulators.chips import PowerCut
from sabot_simulators.dealer import BACKS, Dealer, RecoveryFailed
from sabot_simulators.emulated_device import WaitTimeout
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.faults import KINDS, PlannedFault, UnknownFault
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

ROUNDS = 6
FORM = "NAME[@PLACE][:CARD | ~PROBABILITY | +SECONDS]"
HANDS = 7  # six players and the dealer
DECK_NAMES = {hardware.RED: "RED", hardware.BLUE: "BLUE"}


class Show:
    """A table, and what has been shown of it."""

    def __init__(self, console: Console, seed: int, faults: tuple[PlannedFault, ...]) -> None:
        self.console = console
        random = Random(seed)
        self.machine = SimulatedMachine(random, faults)
        self.device = HostedDevice(self.machine, random.randrange)
        self.dealer = Dealer(self.device, HANDS)
        self.shown = 0  # events
        self.rounds = self.void = self.shuffles = self.proved = 0

    def play(self, rounds: int) -> None:
        """Deal so many rounds, void ones included; what stops is cleared, and play goes on."""
        going_on: bool | None = None
        while self.rounds < rounds:
            try:
                if going_on is None:
                    going_on = self.dealer.open_table()
                elif going_on:
                    going_on = self.dealer.play_round()
                else:
                    self.dealer.recover()
                    going_on = True
                    self.console.print("[dim]the cards are taken out and fed again; play goes on[/dim]")
            except PowerCut:
                self.console.print("[red]the power fails[/red], and comes back")
                self.device.reboot()
                self.device.run_until_idle()
                going_on = False
            self._tell()

    def _tell(self) -> None:
        """Show what the device has told its host since."""
        events = self.device.events()
        for name, values in events[self.shown :]:
            if name == "round_ended":
                self._round(*values)
            elif name == "fault_raised":
                fault, place = enum_name("Fault", int(values[0])), enum_name("Place", int(values[1]))
                self.console.print(f"[red]stopped[/red] at {place}: {fault} ({values[3]})", soft_wrap=True)
            elif name == "round_voided":
                self.void += 1
                reason = enum_name("VoidReason", int(values[1]))
                self.console.print(f"[red]round {values[0]} is void[/red]: {reason}")
                if reason != "wrong_number":  # that one has been counted
                    self.rounds += 1
            elif name == "retried":
                self.console.print(f"[dim]tried again at {enum_name('Place', int(values[1]))}[/dim]")
            elif name == "deck_counted":
                self.shuffles += 1
                self.proved += values[2] == values[3]
        self.shown = len(events)

    def _round(self, round_id: int, verdict: int, stub: int, count: int) -> None:
        self.rounds += 1
        hands = self.dealer.hands_dealt
        deck = DECK_NAMES.get(hands[0][0].back if hands and hands[0] else 0, "")
        cards = "  ".join(" ".join(card.name for card in hand) for hand in hands)
        proved = f"{count - stub} + stub {stub} = [bold]{count}[/bold]"
        if verdict != CORRECT:
            proved += f" [red]{enum_name('Verdict', verdict)}[/red]"
        self.console.print(f"round {round_id} {deck:<4}  {cards}  {proved}", soft_wrap=True)


def play(console: Console, seed: int, rounds: int, faults: tuple[PlannedFault, ...]) -> bool:
    """Deal rounds and show each with its counts; False if the dealer could not go on."""
    began = time.perf_counter()
    show = Show(console, seed, faults)
    console.print(f"[bold]SIMULATOR[/bold], seed {seed}: {len(BACKS)} decks are registered and shuffled\n")
    try:
        show.play(rounds)
        going_on = True
    except (RecoveryFailed, WaitTimeout) as error:
        console.print(f"[red]{error}[/red]")
        going_on = False
    took, machine_s = time.perf_counter() - began, show.machine.agenda.now_us / 1e6
    console.print(
        f"\n{show.rounds} rounds, {show.void} void, {show.shuffles} shuffles, {show.proved} of them proved "
        f"to be 52 by entry, insertion and height. {machine_s:.0f} s of machine time in {took:.2f} s.",
        soft_wrap=True,
    )
    return going_on


def main() -> int:
    """Run the demonstration; 1 if play could not go on, 2 for a fault that nobody knows."""
    parser = argparse.ArgumentParser(
        prog="python -m sabot_simulators.machine_demo", description="Two decks through a simulated machine."
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    names = ", ".join(KINDS)
    parser.add_argument("--fault", action="append", default=[], help=f"{FORM}, of {names}")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    try:
        faults = tuple(PlannedFault.parse(text) for text in arguments.fault)
    except UnknownFault as error:
        console.print(f"[red]{error}[/red]", soft_wrap=True)
        return 2
    console.print("\n[bold]Sabot[/bold]: two decks alternate through the simulated machine\n")
    return 0 if play(console, arguments.seed, arguments.rounds, faults) else 1


if __name__ == "__main__":
    forbid_core_dumps()
    sys.exit(main())
