"""A device on an emulated Pico, and the people at it."""

from dataclasses import dataclass

from sabot_simulators.dealer import Dealer
from sabot_simulators.rp2040.device import OnPico
from sabot_simulators.rp2040.wiring import PinMachine

SEED = 7
HANDS = 7


@dataclass
class Table:
    """A device and the people at it."""

    device: OnPico
    dealer: Dealer

    def connected(self) -> "Table":
        """With a session: a snapshot has none."""
        self.device.connect()
        return self

    @property
    def machine(self) -> PinMachine:
        """The mechanism."""
        return self.device.machine

    def counts(self) -> dict[str, int]:
        """How many cards really are where."""
        return {zone: len(cards) for zone, cards in self.machine.truth().items() if cards}
