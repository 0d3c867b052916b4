"""Sensors and switches: what is really there, what they read, and the edges they report."""

from collections.abc import Callable
from random import Random

from sabot_firmware import hardware
from sabot_simulators.mechanism.agenda import Agenda
from sabot_simulators.mechanism.faults import EDGE_SENSORS, FaultPlan

BY_NAME = {
    "entry": hardware.ENTRY,
    "insertion": hardware.INSERTION,
    "exit": hardware.EXIT,
    "tray": hardware.TRAY,
    "chamber": hardware.CHAMBER,
    "store": hardware.STORE,
    "shoe": hardware.SHOE,
    "exit_tray": hardware.EXIT_TRAY,
}
NAMES = {sensor: name for name, sensor in BY_NAME.items()}
DIRT_US = 60_000
DIRT_AFTER_US = 2_000  # the card has gone, and it shows
BOUNCE_US = 1_000


class SensorModel:
    """All of them: told what is true, they read it, each with its own faults."""

    def __init__(self, agenda: Agenda, random: Random, faults: FaultPlan) -> None:
        self.on_edge: Callable[[int, int, int], None] = lambda sensor, level, at_us: None
        self.levels = [0] * hardware.SENSORS  # what they read
        self.powered = True  # without power levels change and nobody is told
        self._true = [0] * hardware.SENSORS
        self._upset: set[int] = set()  # those that do not simply read what is true
        self._frozen: dict[int, int] = {}  # the level they read for ever
        self._forced_us: dict[int, int] = {}  # until when they read 1 whatever is true
        self._chattering: set[int] = set()
        self._bounces = [0] * hardware.SENSORS  # how often each has changed while it chattered
        self._agenda = agenda
        self._random = random
        self._faults = faults

    def set(self, sensor: int, level: int) -> None:
        """This is now true of it."""
        if self._true[sensor] == level:
            return
        self._true[sensor] = level
        if self._faults.waiting and sensor in NAMES:
            self._meet_faults(sensor, level)
        if sensor in self._upset:
            self._read(sensor)
        elif self.levels[sensor] != level:
            self.levels[sensor] = level
            if self.powered:
                self._agenda.noticed = True
                self.on_edge(sensor, level, self._agenda.now_us)

    def reset(self, sensor: int) -> None:
        """An order has cleared a flag that its move will set: no board reports that."""
        self._true[sensor] = self.levels[sensor] = 0

    def arrive(self, sensor: int, level: int, place: str) -> None:
        """A move has reached its switch, unless this is the moment from which the switch says nothing."""
        if self._faults.waiting and self._faults.strikes("missed_switch", place, 1):
            self.freeze(sensor, 1 - level)
        self.set(sensor, level)

    # -- what goes wrong ------------------------------------------------------------------------

    def freeze(self, sensor: int, level: int | None = None) -> None:
        """From now on it says the same: what it says now, if no level is given."""
        self._frozen[sensor] = self.levels[sensor] if level is None else level
        self._disturb(sensor)

    def force(self, sensor: int, for_us: int) -> None:
        """It reads 1 for a time, whatever is there."""
        until = self._agenda.now_us + for_us
        self._forced_us[sensor] = max(until, self._forced_us.get(sensor, 0))
        self._agenda.at(until, self._force_over, sensor)
        self._disturb(sensor)

    def chatter(self, sensor: int) -> None:
        """From now on each of its edges bounces."""
        self._chattering.add(sensor)
        self._upset.add(sensor)

    def is_upset(self, sensor: int) -> bool:
        """Whether it does not simply read what is true."""
        return sensor in self._upset

    def is_dead(self, sensor: int) -> bool:
        """Whether it says the same for ever."""
        return sensor in self._frozen

    def mend(self) -> None:
        """All of them read what is true again."""
        upset, self._upset = self._upset, set()
        self._frozen.clear()
        self._forced_us.clear()
        self._chattering.clear()
        for sensor in sorted(upset):
            self._show(sensor, self._true[sensor])

    # -- inside ---------------------------------------------------------------------------------

    def _meet_faults(self, sensor: int, level: int) -> None:
        """A change is the occasion for a sensor's faults: of an edge sensor, a card that comes."""
        faults, name = self._faults, NAMES[sensor]
        if name not in EDGE_SENSORS or level:
            coming = 0 if name in EDGE_SENSORS else level
            if faults.strikes("dead_sensor", name, coming):
                self.freeze(sensor)
            if faults.strikes("chattering_sensor", name, coming):
                self.chatter(sensor)
        elif faults.strikes("dirty_sensor", name):
            self._agenda.after(DIRT_AFTER_US, self._soil, sensor)

    def _soil(self, sensor: int) -> None:
        self.force(sensor, DIRT_US)

    def _disturb(self, sensor: int) -> None:
        self._upset.add(sensor)
        self._read(sensor)

    def _force_over(self, sensor: int) -> None:
        if self._agenda.now_us >= self._forced_us.get(sensor, 0):
            self._forced_us.pop(sensor, None)
            self._read(sensor)

    def _read(self, sensor: int) -> None:
        """What a sensor that may have a fault makes of what is true."""
        level = self._frozen.get(sensor)
        if level is None:
            level = 1 if sensor in self._forced_us else self._true[sensor]
        changed = self._show(sensor, level)
        if sensor in self._chattering:
            self._bounces[sensor] += 1  # what still bounces from before is over
            if changed:
                self._bounce(sensor)

    def _bounce(self, sensor: int) -> None:
        """It goes there and back a few times more, an even number, before the millisecond is over."""
        begun = self._bounces[sensor] * hardware.SENSORS + sensor
        turns = 2 * self._random.randrange(1, 4)
        for wait_us in sorted(self._random.sample(range(20, BOUNCE_US), turns)):
            self._agenda.after(wait_us, self._turn, begun)

    def _turn(self, begun: int) -> None:
        times, sensor = divmod(begun, hardware.SENSORS)
        if self._bounces[sensor] == times and sensor in self._chattering:
            self._show(sensor, 1 - self.levels[sensor])

    def _show(self, sensor: int, level: int) -> bool:
        if self.levels[sensor] == level:
            return False
        self.levels[sensor] = level
        if self.powered:
            self._agenda.noticed = True
            self.on_edge(sensor, level, self._agenda.now_us)
        return True
