"""Jogging one part of a machine in service. A roller turns under a lease that its program must renew.

The device ends a roller's lease 250 ms after the last renewal, whatever became of the program or the cable.
Beginning a lease takes the technician's key, renewing and ending it do not.
"""

from dataclasses import dataclass

from sabot_driver.certified import Authority
from sabot_driver.client import Client
from sabot_driver.device_values import SensorReadings, parse_sensors, parse_status
from sabot_driver.errors import WrongRole
from sabot_protocol.host.messages import Jog, Part, Sensor, Sensors

LEASE_S = 0.25
"""How long a roller turns without a renewal."""
ROLLER_OF = {Part.FEED: 0, Part.INSERT: 1, Part.DEAL: 2}
"""The place of each roller among the encoders."""
MOST_ELEVATOR_UM = 25_000
"""The elevator's travel in the setting deck."""
ARRIVED = {
    Part.ELEVATOR: Sensor.ELEVATOR,
    Part.GRIPPER: Sensor.GRIPPER,
    Part.SHELF: Sensor.SHELF,
    Part.PUSHER: Sensor.PUSHER_END,
}
"""The sensor that shows an axis where it was sent; but for the elevator it is off at home."""
ENCODER_RANGE = 1 << 30


def read_sensors(client: Client, timeout: float) -> SensorReadings:
    """All sensors of a device now, by name."""
    state = parse_status(client.status(timeout)).shuffler
    return parse_sensors(client.ask(Sensors(), timeout), state)


def turned_um(before: int, after: int) -> int:
    """How far a roller turned between two readings of its encoder, which wraps."""
    difference = (after - before) % ENCODER_RANGE
    return difference - ENCODER_RANGE if difference >= ENCODER_RANGE // 2 else difference


def has_arrived(read: SensorReadings, part: Part, amount: int) -> bool:
    """Whether an axis is where it was sent, by its own switches."""
    expected = part is Part.ELEVATOR or bool(amount)
    home = {Part.ELEVATOR: Sensor.ELEVATOR_HOME, Part.PUSHER: Sensor.PUSHER_HOME}.get(part)
    at_home = home is None or read[home].level == (amount == 0)
    return read[ARRIVED[part]].level == expected and at_home


@dataclass(frozen=True, slots=True)
class RollerLease:
    """The lease of one roller in one direction. It never renews itself."""

    client: Client
    part: Part
    direction: int
    """1 forward, -1 back."""
    timeout: float

    def begin(self, credential: Authority) -> None:
        """Start the roller, for one lease; errors as `Client.ask` has them."""
        self.client.ask(Jog(self.part, self.direction), self.timeout, credential)

    def renew(self) -> bool:
        """Let it turn for another lease; False if the lease was over, and the roller stands."""
        try:
            self.client.ask(Jog(self.part, self.direction), self.timeout)
        except WrongRole:
            return False
        return True

    def end(self) -> None:
        """Stop it now."""
        self.client.ask(Jog(self.part, 0), self.timeout)
