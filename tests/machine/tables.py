"""What the machine's tests share: a table with its machine, decks and a dealer, from a seed."""

from random import Random

import pytest

from sabot_firmware import hardware
from sabot_firmware.event_log import EventLog
from sabot_protocol.codec import enum_name, enum_number
from sabot_protocol.errors import Refusal
from sabot_protocol.record_store import RecordStore
from sabot_simulators.dealer import Dealer
from sabot_simulators.hosted_device import HostedDevice
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.physical_cards import PhysicalCard
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.oracle import Oracle
from sabot_simulators.python_device import PythonDevice

RED, BLUE = hardware.RED, hardware.BLUE


class Table(Dealer):
    """A dealer at a machine, with a note of what was drawn."""

    device: PythonDevice

    def __init__(
        self,
        seed: int,
        *faults: str,
        hands: int = 7,
        capacity: str = "deck",
        memory: RecordStore | None = None,
        log: EventLog | None = None,
        start_us: int = 0,
    ) -> None:
        self.random = Random(seed)
        self.draws: list[int] = []
        planned = tuple(PlannedFault.parse(each) for each in faults)
        self.machine = SimulatedMachine(self.random, planned, capacity=capacity)
        self.machine.agenda.now_us = start_us
        device = PythonDevice(self.machine, self._draw, memory)
        if log is not None:
            device = HostedDevice(self.machine, self._draw, memory, log)
        super().__init__(device, hands)

    def _draw(self, bound: int) -> int:
        self.draws.append(self.random.randrange(bound))
        return self.draws[-1]

    def shuffle(self, cards: list[PhysicalCard] | None = None, back: int = RED) -> int:
        """Register a deck, feed it (or these cards instead), and wait; its number."""
        self.device.run_until_idle()
        deck_id = self.new_deck(back)
        if cards is not None:
            self.decks[deck_id] = cards
        self.feed(deck_id)
        self.shuffled()
        return deck_id

    def named(self, name: str) -> list[tuple[int | str, ...]]:
        """The values of every report of a name."""
        return [values for each, values in self.device.reports if each == name]

    def faults(self) -> list[tuple[str, str]]:
        """Place and cause of every fault that was reported."""
        return [
            (enum_name("Place", int(values[1])), enum_name("Fault", int(values[0])))
            for values in self.named("fault_raised")
        ]

    def refused(self, name: str, *values: int | str | bytes, role: str = "table") -> str:
        """The command is refused; by which error or rule."""
        with pytest.raises(Refusal) as caught:
            self.device.command(name, *values, role=role)
        refusal = caught.value
        if refusal.error == "not_allowed":
            return enum_name("Forbidden", int(refusal.values[0]))
        return refusal.error

    def all_cards(self) -> list[PhysicalCard]:
        """Every card there is, each once."""
        held = [card for cards in self.machine.truth().values() for card in cards]
        held += [card for cards in self.decks.values() for card in cards]
        assert len({id(card) for card in held}) == len(held)
        return held


def fault(name: str) -> int:
    """The number of a fault."""
    return enum_number("Fault", name)


def void_reason(name: str) -> int:
    """The number of a reason."""
    return enum_number("VoidReason", name)


class OwnChance(Table):
    """A table whose device draws by itself."""

    def __init__(self, seed: int, *faults: str) -> None:
        self.random = Random(seed)
        self.machine = SimulatedMachine(self.random, tuple(PlannedFault.parse(each) for each in faults))
        Dealer.__init__(self, PythonDevice(self.machine, None))


class Judged(Table):
    """A table with an oracle, opened: a deck in the shoe, the other on the shelf."""

    def __init__(self, seed: int, *faults: str) -> None:
        super().__init__(seed, *faults)
        self.oracle = Oracle(self.device)
        assert self.open_table()

    def wrong(self) -> list[tuple[str, str | None]]:
        """What was wrongly claimed, each claim once, and what excuses it."""
        return list(dict.fromkeys((each.what, each.unseen) for each in self.oracle.wrong))

    def unexcused(self) -> list[str]:
        """What was wrongly claimed and nothing excuses."""
        return [what for what, unseen in self.wrong() if unseen is None]
