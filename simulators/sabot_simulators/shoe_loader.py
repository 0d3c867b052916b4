"""The person who loads a shoe of several decks: cuts the batch, inserts the cover card, lays it in."""

from sabot_firmware import hardware
from sabot_simulators.mechanism.physical_cards import PhysicalCard, cover_card
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine

COVER_ABOVE = 14  # cards above the bottom, where the dealer puts the cover card


class ShoeLoader:
    """Cuts a batch and lays it into the shoe. The place of cut and cover card can be set before."""

    def __init__(self) -> None:
        self.cut_from_top: int | None = None
        """So many cards go from the top to the bottom; None: half of them."""
        self.cover_above: int | None = COVER_ABOVE
        """The cover card lies so many cards above the bottom; None: there is none."""

    def prepare(self, batch: list[PhysicalCard], machine: SimulatedMachine) -> list[PhysicalCard]:
        """The batch as it is laid in, the first card to be dealt first."""
        at = len(batch) // 2 if self.cut_from_top is None else self.cut_from_top
        cut = batch[at:] + batch[:at]
        if self.cover_above is not None:
            cut.insert(len(cut) - self.cover_above, cover_card(machine.random))
        return cut

    @staticmethod
    def open_shoe(machine: SimulatedMachine) -> None:
        """The shoe's door is opened; the firmware must see it before anything is laid in."""
        machine.open_door(hardware.SHOE_DOOR)

    def lay_in(self, batch: list[PhysicalCard], machine: SimulatedMachine) -> None:
        """The batch goes into the open shoe, and the door is shut."""
        for card in batch:
            card.face_up = False
        machine.load_shoe(self.prepare(batch, machine))
        machine.close_door(hardware.SHOE_DOOR)
