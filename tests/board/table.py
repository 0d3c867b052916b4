"""A device on an emulated Pico, and the people at it."""

from dataclasses import dataclass

from sabot_firmware import hardware, shuffler
from sabot_simulators.dealer import Dealer
from sabot_simulators.rp2040.hosted_pico import HostedPico
from sabot_simulators.rp2040.wiring import PinDrivenMachine

SEED = 7
HANDS = 7


@dataclass
class Table:
    """A device and the people at it."""

    device: HostedPico
    dealer: Dealer

    def connected(self) -> "Table":
        """With a session: a snapshot has none."""
        self.device.connect()
        return self

    @property
    def machine(self) -> PinDrivenMachine:
        """The mechanism."""
        return self.device.machine

    def counts(self) -> dict[str, int]:
        """How many cards really are where."""
        return {zone: len(cards) for zone, cards in self.machine.truth().items() if cards}

    def begin_shuffle(self, for_us: int) -> None:
        """Feed a new red deck, and let time pass from when the half tells that it feeds."""
        self.dealer.feed(self.dealer.new_deck(hardware.RED))
        self.device.run_until(lambda: self.device.shuffler_state == shuffler.FEEDING)  # told at a tick
        self.device.run_for(for_us)
