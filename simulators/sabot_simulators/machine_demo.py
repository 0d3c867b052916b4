"""``make play``, second part: two decks alternate through a simulated machine, driven over the wire.

Everything runs in one process and virtual time; what is shown of counts and faults is what the device told
its host. The cards are shown by the simulator, which knows them.
"""

import argparse
import sys
import time
from random import Random

from rich.console import Console

from sabot_firmware.rounds import CORRECT
from sabot_protocol.codec import enum_name
from sabot_simulators.dealer import BACKS, Dealer
from sabot_simulators.mechanism.faults import KINDS, Fault, UnknownFault
from sabot_simulators.mechanism.machine import Machine
from sabot_simulators.wired import Wired

ROUNDS = 6
HANDS = 7  # six players and the dealer
DECK_NAMES = {1: "RED", 2: "BLUE"}


def play(console: Console, seed: int, rounds: int, faults: tuple[Fault, ...]) -> bool:
    """Deal rounds and show each with its counts; False if the machine stopped for a fault."""
    random = Random(seed)
    machine = Machine(random, faults)
    device = Wired(machine, random.randrange)
    dealer = Dealer(device, HANDS)
    began = time.perf_counter()
    console.print(f"[bold]SIMULATOR[/bold], seed {seed}: {len(BACKS)} decks are registered and shuffled\n")
    going_on = dealer.open_table()
    played = 0
    while going_on and played < rounds:
        deck = DECK_NAMES[device.view().shoe_deck]
        going_on = dealer.play_round()
        ended = [values for name, values in device.events() if name == "round_ended"]
        if len(ended) == played:
            break  # the shoe stopped in the middle
        played += 1
        hands = "  ".join(" ".join(card.name for card in hand) for hand in dealer.hands_dealt)
        _, verdict, stub, count = ended[-1]
        proved = f"{3 * HANDS} + stub {stub} = [bold]{count}[/bold]"
        if verdict != CORRECT:
            proved += f" [red]{enum_name('Verdict', int(verdict))}[/red]"
        console.print(f"round {played} {deck:<4}  {hands}  {proved}", soft_wrap=True)
    for name, values in device.events():
        if name == "fault_raised":
            fault, place = enum_name("Fault", int(values[0])), enum_name("Place", int(values[1]))
            console.print(f"[red]stopped[/red] at {place}: {fault}")
        elif name == "round_voided":
            console.print(f"[red]round {values[0]} is void[/red]: {enum_name('VoidReason', int(values[1]))}")
    counted = [values for name, values in device.events() if name == "deck_counted"]
    right = sum(values[2] == values[3] for values in counted)
    took, machine_s = time.perf_counter() - began, machine.agenda.now_us / 1e6
    console.print(
        f"\n{played} rounds, {len(counted)} shuffles, {right} of them proved to be 52 by entry, insertion "
        f"and height. {machine_s:.0f} s of machine time in {took:.2f} s.",
        soft_wrap=True,
    )
    return going_on


def main() -> int:
    """Run the demonstration; 1 if the machine stopped, 2 for a fault that nobody knows."""
    parser = argparse.ArgumentParser(
        prog="python -m sabot_simulators.machine_demo", description="Two decks through a simulated machine."
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    names = ", ".join(KINDS)
    parser.add_argument("--fault", action="append", default=[], help=f"NAME[@PLACE][:CARD], of {names}")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    try:
        faults = tuple(Fault.parse(text) for text in arguments.fault)
    except UnknownFault as error:
        console.print(f"[red]{error}[/red]", soft_wrap=True)
        return 2
    console.print("\n[bold]Sabot[/bold]: two decks alternate through the simulated machine\n")
    return 0 if play(console, arguments.seed, arguments.rounds, faults) else 1


if __name__ == "__main__":
    sys.exit(main())
