"""``make soak-board``: rounds with faults on the emulated Pico, and whether its heap stays as it is.

After each round the people bring the machine back. What the device says is compared with where the cards are:
a round that ended correctly has all of them, and what is counted is there.
"""

import argparse
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from rich.console import Console
from tests.board.heap import Heap
from tests.board.table import HANDS

from sabot_firmware.rounds import CORRECT
from sabot_image_build.build import build_uf2
from sabot_simulators.dealer import Dealer
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.wiring import PinDrivenMachine, board_wiring

FAULTS = (
    *("stuck@entry:{}", "stuck@insertion:{}", "double_feed@tray:{}", "grip_slip@chamber:{}"),
    *("lost_steps@chamber:{}", "misfeed@tray:{}", "stuck@exit:{}", "double_feed@shoe:{}", "misfeed@shoe:{}"),
)
EVERY = 3  # rounds, one of which has a fault
REST_US = 3_000_000  # in which garbage is collected


def main() -> int:
    """Play; 1 if anything was claimed that was not so."""
    parser = argparse.ArgumentParser(prog="python -m tests.board.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    console, random = Console(), Random(options.seed)
    heap = Heap()
    with TemporaryDirectory() as folder:
        rom = bootrom(Path(folder))
        with Pico(build_uf2().path, board_wiring(), rom) as pico:
            device = HostedPico(pico, PinDrivenMachine(Random(options.seed)))
            device.provision()
            device.run_until_idle()
            dealer = Dealer(device, HANDS)
            assert dealer.open_table()
            rests, wrong, stopped = [], 0, 0
            for number in range(1, options.rounds + 1):
                if number % EVERY == 0:
                    device.machine.strike(random.choice(FAULTS).format(random.randrange(2, 18)))
                ended = len(device.named("round_ended"))
                if not dealer.play_round():
                    stopped += 1
                    dealer.recover()
                for values in device.named("round_ended")[ended:]:
                    wrong += values[1] == CORRECT and values[3] != 52
                truth = device.machine
                wrong += (truth.count("store"), truth.count("shoe")) != (52, 52)
                device.run_for(REST_US)
                used, whole = heap.used(pico)
                rests.append(used)
                console.print(f"round {number}: {used:,} of {whole:,} bytes of heap, {stopped} stopped")
    console.print(f"{options.rounds} rounds, {stopped} stopped by faults, {device.resets} resets")
    console.print(f"heap at rest: {min(rests):,} to {max(rests):,} bytes; {wrong} wrong claims")
    return 1 if wrong or device.resets else 0


if __name__ == "__main__":
    sys.exit(main())
