"""What the controller needs of a board: actuators, sensors that report edges, and a few readings.

A board implements ``Hardware``. It reports everything that happens as an edge: a sensor or switch, its new
level, and the time stamp. Orders return at once, and their completion is an edge again.
"""

from sabot_firmware.machine_constants import DECK_CAPACITY
from sabot_protocol.schema import SENSORS as _TABLE
from sabot_protocol.sensors import *  # noqa: F403 - the sensors and switches, the source of edges: ENTRY = 0, ...

# Rollers
FEED = 0  # tray to insertion
INSERT = 1  # into the chamber
DEAL = 2  # shoe to exit tray

SENSORS = len(_TABLE)

SHUFFLER_HALF = 1
SHOE_HALF = 2

# Which half handles a sensor's edges, a byte each: 1 shuffler, 2 shoe, 3 both, 0 the controller itself
SENSOR_HALVES = bytes([
    (SHUFFLER_HALF if "shuffler" in row[1] else 0) | (SHOE_HALF if "shoe" in row[1] else 0) for row in _TABLE
])  # fmt: skip
# Bit n: sensor n would reveal the slots of a running shuffle
SECRET_SENSORS = sum([1 << sensor for sensor in range(SENSORS) if _TABLE[sensor][4]])


def clear_levels(half: str) -> "tuple[tuple[int, int, str], ...]":
    """The levels that sensors must have before a half counts as empty: (sensor, level, name)."""
    return tuple([
        (sensor, _TABLE[sensor][3], _TABLE[sensor][0])
        for sensor in range(SENSORS)
        if _TABLE[sensor][2] == half
    ])  # fmt: skip


# Directions
BACK = -1
STOP = 0
FORWARD = 1

# What a colour reader sees
NOTHING = 0
RED = 1
BLUE = 2
FACE = 3
COVER = 4

NO_FACE = 255  # no card reader, or no face to read

# What the lamp shows: the sum of its lights red (1), green (2) and blue (4)
DARK = 0
RED_LIGHT = 1
GREEN = 2
AMBER = 3


class Hardware:
    """The actuators and readers of one machine."""

    capacity = DECK_CAPACITY  # cards a zone can hold

    def run(self, roller: int, direction: int) -> None:
        """Turn a roller FORWARD or BACK, or STOP it."""
        raise NotImplementedError

    def travelled_um(self, roller: int) -> int:
        """Distance of a roller's encoder since power-up, forward less back.

        The number has 30 bits and wraps: two of them are compared by ``ticks.diff`` only.
        """
        raise NotImplementedError

    def elevate(self, position_um: int) -> None:
        """Move the platform to a height above its lowest position; ELEVATOR 1 reports arrival."""
        raise NotImplementedError

    def home(self) -> None:
        """Move the platform down to its switch, which is zero; ELEVATOR_HOME 1 reports arrival."""
        raise NotImplementedError

    def grip(self, closed: bool) -> None:
        """Close or open the gripper; GRIPPER reports it."""
        raise NotImplementedError

    def shelve(self, down: bool) -> None:
        """Lower the finished stack onto the store shelf, or raise the carriage; SHELF reports it."""
        raise NotImplementedError

    def push(self, forward: bool) -> None:
        """Push the store's stack into the shoe, or retract the pusher; its switches report it."""
        raise NotImplementedError

    def measure(self) -> None:
        """Measure the height of the stack on the platform; HEIGHT 1 says that ``height_um`` has it."""
        raise NotImplementedError

    def height_um(self) -> int:
        """The last measured height, in steps of the sensor."""
        raise NotImplementedError

    def colour(self, sensor: int) -> int:
        """What the colour reader at ENTRY or EXIT sees now."""
        raise NotImplementedError

    def face(self) -> int:
        """The card whose face the reader at EXIT sees, 0 to 51; NO_FACE without a reader."""
        return NO_FACE

    def level(self, sensor: int) -> int:
        """A sensor's level now."""
        raise NotImplementedError

    def request_pause(self) -> None:
        """The shuffler half pauses between two cards: a board that collects garbage does so now."""

    def pause_requested(self) -> bool:
        """Whether the board needs a pause; a half then stops between two cards."""
        return False

    def noise(self, count: int) -> bytes:
        """So many bytes of the board's raw noise, one sample a bit, unconditioned."""
        raise NotImplementedError

    def show(self, first: str, second: str) -> None:
        """Show two lines of at most 20 characters on the display."""

    def light(self, colour: int) -> None:
        """Set the lamp's colour, DARK included."""
