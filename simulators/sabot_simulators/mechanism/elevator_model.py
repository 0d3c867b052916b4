"""The chamber: a platform that carries the stack, blades that hold up a part of it, a height sensor.

The blades stand at one height. Where they enter depends on where the platform really is, which is not always
where its steps say.
"""

from functools import cache
from random import Random

from sabot_firmware import hardware, machine_constants
from sabot_simulators.mechanism.agenda import Agenda
from sabot_simulators.mechanism.faults import FaultPlan
from sabot_simulators.mechanism.physical_cards import PhysicalCard, height_um
from sabot_simulators.mechanism.sensors import SensorModel

STEP_UM = machine_constants.ELEVATOR_STEP_UM
NOISE_UM = 8  # of the height sensor
travel_us = cache(machine_constants.travel_us)


class ElevatorModel:
    """Platform, gripper and height, with the stack in two packets while the gripper is closed."""

    def __init__(
        self,
        agenda: Agenda,
        random: Random,
        faults: FaultPlan,
        sensors: SensorModel,
        blade_um: int,
        travel_um: int,
    ) -> None:
        self.cards: list[PhysicalCard] = []  # the stack, the top card first
        self.closed = False  # whether the blades are
        self._above = 0  # how many cards they hold up
        self.platform_um = 0  # where it really is, or was when it began to move
        self.height_um = 0  # as read last
        self._lower_um = 0  # how high the packets are
        self._upper_um = 0
        self._counted_um = 0  # where the steps say it is, or will be
        self._began_us = 0
        self._arrives_us = 0
        self._to_um = 0  # where it will really be, or is
        self._order = 0  # the newest order to the platform
        self._grip_order = 0
        self._blade_um = blade_um
        self._travel_um = travel_um
        self._agenda = agenda
        self._random = random
        self._faults = faults
        self._sensors = sensors

    # -- the stack ------------------------------------------------------------------------------

    def lower(self) -> list[PhysicalCard]:
        """What lies on the platform."""
        return self.cards[self._above :]

    def upper(self) -> list[PhysicalCard]:
        """What the blades hold up."""
        return self.cards[: self._above]

    def is_open(self) -> bool:
        """Whether there is room for a card between the lower packet and the blades."""
        return self._now_um() + self._lower_um <= self._blade_um - machine_constants.OPENING_UM // 2

    def insert(self, cards: list[PhysicalCard]) -> None:
        """Cards come to lie on the lower packet."""
        self.cards[self._above : self._above] = cards
        self._lower_um += height_um(cards)

    def lift_off(self) -> list[PhysicalCard]:
        """What lies on the platform is carried away."""
        taken = self.lower()
        del self.cards[self._above :]
        self._lower_um = 0
        return taken

    def empty(self) -> list[PhysicalCard]:
        """Everything is taken out by hand, the blades opened for it."""
        self.spring_open()
        return self.lift_off()

    # -- the platform ---------------------------------------------------------------------------

    def send(self, position_um: int, driven: bool) -> None:
        """Go to where so many steps from zero are; without its motor it counts them and stays."""
        counted_um = (position_um + STEP_UM // 2) // STEP_UM * STEP_UM
        to_um = self._to_um + counted_um - self._counted_um
        self._counted_um = counted_um
        self._sensors.reset(hardware.ELEVATOR)
        if driven:
            self._move(min(max(to_um, 0), self._travel_um))
            self._agenda.at(self._arrives_us, self._sent, self._order)

    def home(self, driven: bool) -> None:
        """Go down to the switch: there zero is."""
        self._sensors.reset(hardware.ELEVATOR)
        if driven:
            self._move(0)
            self._agenda.at(self._arrives_us, self._homed, self._order)

    def freeze(self) -> None:
        """The motors are cut: the platform stays where it is, whatever its steps say."""
        self.platform_um = self._to_um = self._now_um()
        self._arrives_us = self._agenda.now_us
        self._order += 1
        self._grip_order += 1

    def forget(self) -> None:
        """The controller was off: wherever the platform is, its steps are counted from there."""
        self._counted_um = 0
        self._sensors.reset(hardware.ELEVATOR)

    def _move(self, to_um: int) -> None:
        now = self._agenda.now_us
        at_um = self.platform_um = self._now_um()
        self._to_um, self._began_us = to_um, now
        self._arrives_us = now + travel_us(to_um - at_um)
        self._order += 1
        if to_um:
            self._sensors.set(hardware.ELEVATOR_HOME, 0)

    def _now_um(self) -> int:
        """Where the platform is at this moment."""
        now = self._agenda.now_us
        if self._arrives_us <= now:
            return self.platform_um
        gone_um = (self._to_um - self.platform_um) * (now - self._began_us)
        return self.platform_um + gone_um // (self._arrives_us - self._began_us)

    def _sent(self, order: int) -> None:
        if order == self._order:
            self.platform_um = self._to_um
            if self._faults.waiting and self._faults.strikes("lost_steps", "chamber", 1):
                self.platform_um = self._to_um = max(self._to_um - machine_constants.CARD_THICKNESS_UM, 0)
            self._sensors.set(hardware.ELEVATOR_HOME, 0 if self.platform_um else 1)
            self._sensors.set(hardware.ELEVATOR, 1)

    def _homed(self, order: int) -> None:
        if order == self._order:
            self.platform_um = 0
            self._sensors.arrive(hardware.ELEVATOR_HOME, 1, "elevator")
            if self._sensors.levels[hardware.ELEVATOR_HOME]:
                self._counted_um = 0
                self._sensors.set(hardware.ELEVATOR, 1)

    # -- the gripper ----------------------------------------------------------------------------

    def grip(self, closed: bool) -> None:
        """Close or open the blades."""
        self._grip_order += 1
        action = self._grip_closed if closed else self._grip_opened
        self._agenda.after(machine_constants.GRIP_US, action, self._grip_order)

    def spring_open(self) -> None:
        """The blades open by themselves: the packets fall together."""
        self._grip_order += 1
        self._join()
        self._sensors.set(hardware.GRIPPER, 0)

    def _grip_closed(self, order: int) -> None:
        """The blades enter the gap nearest to them; what lies above is held."""
        if order != self._grip_order or self.closed:
            return
        below, under_um = self._below_blades()
        cards = len(self.cards)
        if self._faults.waiting and cards and self._faults.strikes("grip_slip", "chamber", 1):
            below = self._random.choice([n for n in (below - 1, below + 1) if 0 <= n <= cards])
            under_um = height_um(self.cards[cards - below :])
        self.closed = True
        self._above = cards - below
        self._upper_um, self._lower_um = self._lower_um - under_um, under_um
        self._sensors.arrive(hardware.GRIPPER, 1, "gripper")

    def _grip_opened(self, order: int) -> None:
        if order == self._grip_order:
            self._join()
            self._sensors.arrive(hardware.GRIPPER, 0, "gripper")

    def _join(self) -> None:
        self._lower_um += self._upper_um
        self._upper_um = self._above = 0
        self.closed = False

    def _below_blades(self) -> tuple[int, int]:
        """How many cards are below the gap nearest to the blades, and how high those lie."""
        cards = self.cards
        reach_um = self._blade_um - self._now_um()
        if not cards or reach_um <= 0:
            return 0, 0
        # Begin where cards of mean thickness would be cut, and look from there.
        below = min(reach_um * len(cards) // self._lower_um, len(cards))
        above = len(cards) - below
        under_um = height_um(cards[above:]) if below < above else self._lower_um - height_um(cards[:above])
        while below:
            top_um = cards[-below].thickness_um
            if under_um - top_um + top_um // 2 <= reach_um:
                break
            under_um -= top_um
            below -= 1
        while below < len(cards) and under_um + cards[-below - 1].thickness_um // 2 <= reach_um:
            under_um += cards[-below - 1].thickness_um
            below += 1
        return below, under_um

    # -- the height -----------------------------------------------------------------------------

    def measured(self) -> None:
        """The sensor sees what lies on the platform: while a packet is held up, only the lower one."""
        seen_um = self._lower_um
        if self._upper_um and not self.is_open():
            seen_um += self._upper_um
        step = machine_constants.HEIGHT_STEP_UM
        self.height_um = round((seen_um + self._random.gauss(0, NOISE_UM)) / step) * step
        self._sensors.set(hardware.HEIGHT, 1)
