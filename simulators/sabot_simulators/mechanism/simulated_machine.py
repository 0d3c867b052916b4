"""The reference machine, moved by orders and reporting edges, in virtual time.

It implements the firmware's ``Hardware`` and knows the truth: ``truth()`` says where every card is, and in
which order. People act on it through the methods of their names: load, take, open a door. Faults are planned
when it is made, or strike when told to.
"""

from collections.abc import Callable
from random import Random

from sabot_firmware import hardware
from sabot_simulators.chips import PowerCut
from sabot_simulators.mechanism.fault_effects import FaultEffects
from sabot_simulators.mechanism.faults import PlannedFault
from sabot_simulators.mechanism.manual_access import ManualAccess
from sabot_simulators.mechanism.moving_parts import SHOE, SHUFFLER
from sabot_simulators.mechanism.physical_cards import PhysicalCard, count_backs


class SimulatedMachine(ManualAccess):
    """One machine from a seed, with the faults it will meet."""

    def __init__(
        self,
        random: Random,
        faults: tuple[PlannedFault, ...] = (),
        capacity: str = "deck",
        reader: bool = True,
    ) -> None:
        super().__init__(random, capacity, reader)
        self.effects = FaultEffects(self)
        self.on_power_cut: Callable[[], None] = power_fails
        """Called when the power has failed: the machine is off by then."""
        self.on_fault: Callable[[PlannedFault], None] = lambda fault: None
        """Called for faults of records and clock, which the machine does not have."""
        for fault in faults:
            self.plan(fault)

    def plan(self, fault: PlannedFault) -> None:
        """Plan one more fault."""
        if fault.seconds is None:
            self.faults.add(fault)
        else:
            self.agenda.at(round(fault.seconds * 1_000_000), self.effects.strike, fault)

    @property
    def on_edge(self) -> Callable[[int, int, int], None]:
        """Who is told of every edge: sensor, level, time in microseconds."""
        return self.sensors.on_edge

    @on_edge.setter
    def on_edge(self, tell: Callable[[int, int, int], None]) -> None:
        self.sensors.on_edge = tell

    # -- the truth ------------------------------------------------------------------------------

    def truth(self) -> dict[str, list[PhysicalCard]]:
        """Where every card really is, in order, top or foremost first; each is in one place."""
        return {
            "tray": list(self.tray),
            "path": self.feed_track.cards() + self.crashed,
            "chamber": self.stack(),
            "store": list(self.store),
            "shoe": self.deal_track.cards() + self.shoe,
            "exit_tray": list(self.exit_tray),
            "handed_out": list(self.handed_out),
            "removed": list(self.removed),
        }

    def count(self, zone: str, back: int | None = None) -> int:
        """How many cards a zone of ``truth()`` holds, of one back or of any."""
        if zone == "path":
            cards = self.feed_track.cards() + self.crashed
        elif zone == "shoe":
            cards = self.deal_track.cards() + self.shoe
        else:
            cards = self.elevator.cards if zone == "chamber" else getattr(self, zone)
        return len(cards) if back is None else count_backs(cards, back)

    def stack(self) -> list[PhysicalCard]:
        """The chamber's stack as one, from the top."""
        return list(self.elevator.cards)

    # -- faults and power -----------------------------------------------------------------------

    def strike(self, fault: PlannedFault | str) -> None:
        """Let a fault happen: at once if it needs no occasion, else at its next one."""
        if isinstance(fault, str):
            fault = PlannedFault.parse(fault)
        if fault.seconds is None:
            self.effects.strike(fault)
        else:
            due_us = max(round(fault.seconds * 1_000_000), self.agenda.now_us)
            self.agenda.at(due_us, self.effects.strike, fault)

    def cut_power(self) -> None:
        """The power fails; ``on_power_cut`` is called."""
        self.power_off()
        self.on_power_cut()

    def power_off(self) -> None:
        """Everything stops where it is; the gripper springs open, and what no roller holds lands yet.

        Sensors go on seeing what is there, as will be read when the power is back; no edge is reported.
        """
        self.powered = self.sensors.powered = False
        self._cut(SHUFFLER)
        self._cut(SHOE)
        self.elevator.spring_open()
        self._measuring += 1
        self.sensors.reset(hardware.HEIGHT)
        self.display, self.lamp = ("", ""), hardware.DARK

    def power_on(self) -> None:
        """The machine can be driven again: encoders at zero, the elevator's place unknown until homed."""
        self.powered = self.sensors.powered = True
        self._supply()
        for roller in self._rollers:
            roller.travelled_um = 0
        self.elevator.forget()


def power_fails() -> None:
    """Raise PowerCut: what happens unless ``on_power_cut`` is set."""
    raise PowerCut
