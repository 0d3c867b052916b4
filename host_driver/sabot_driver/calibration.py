"""Calibration: the value now, its date, the value before, and how a technician finds the new one."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sabot_driver.client import Client
from sabot_driver.device_log import LogRow, read_log
from sabot_driver.errors import SabotError
from sabot_protocol.host.messages import Calibrated, Calibration, CalibrationIs, CalibrationQuery

LIMITS_UM = {Calibration.BLADE_UM: (-500, 500), Calibration.CARD_UM: (270, 330)}
"""The values that the device takes."""
NEW_MACHINE_UM = {Calibration.BLADE_UM: 0, Calibration.CARD_UM: 300}
GUIDES = {
    Calibration.CARD_UM: (
        "Press 52 cards of the decks in use together, measure them with a caliper, divide by 52.\n"
        "15.60 mm are 300 um a card."
    ),
    Calibration.BLADE_UM: (
        "With the chamber empty, jog the elevator until the platform touches the gripper's blades.\n"
        "Measure how much higher they stand than the drawing's 22.00 mm; lower is negative."
    ),
}


class NoEarlierValue(SabotError):
    """The device's log does not tell which value was set before."""

    advice = (
        "Give the value yourself: 'sabot service calibrate NAME VALUE'; the sheet of the last service has it."
    )


@dataclass(frozen=True, slots=True)
class CalibrationValue:
    """One value as the device has it."""

    what: Calibration
    value: int
    at: datetime | None
    """When it was set; None for the value of a new machine."""

    @property
    def words(self) -> str:
        """The value for a person, in local time."""
        if self.at is None:
            return f"{self.value} um (never set: a new machine's value)"
        return f"{self.value} um (set {self.at.astimezone().strftime('%Y-%m-%d %H:%M')})"


def read_calibration(client: Client, what: Calibration, timeout: float) -> CalibrationValue:
    """One value and when it was set."""
    told: CalibrationIs = client.ask(CalibrationQuery(what), timeout)
    at = datetime.fromtimestamp(told.set_utc_s, UTC) if told.set_utc_s else None
    return CalibrationValue(what, told.value, at)


def value_before(client: Client, now: CalibrationValue, timeout: float) -> int:
    """The value before the present one, from the device's own log; NoEarlierValue if that does not tell."""
    rows = [row for row in read_log(client, timeout=timeout) if isinstance(row, LogRow)]
    values = [
        row.message.value
        for row in rows
        if isinstance(row.message, Calibrated) and row.message.what == now.what
    ]
    if values and values[-1] == now.value:
        if len(values) > 1:
            return values[-2]
        if rows[0].n == 1:  # the log is complete
            return NEW_MACHINE_UM[now.what]
    raise NoEarlierValue(
        f"the device's log does not tell the value of {now.what.name.lower()} before {now.value}"
    )
