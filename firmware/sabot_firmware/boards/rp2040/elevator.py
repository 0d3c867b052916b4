"""The elevator: a stepped platform whose position is known after homing."""

from machine import Pin

from sabot_firmware import machine_constants
from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.boards.rp2040.stepper import Stepper, ramp_periods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PAST_UM = 1000  # how far a search goes beyond the whole travel


class Elevator:
    """Moves the platform by whole steps. ``on_done`` is called in an interrupt at the end of each move."""

    def __init__(self, on_done: "Callable[[], None]") -> None:
        self._up = Pin(pins.ELEVATOR_UP, Pin.OUT, value=0)
        ramp = ramp_periods(
            machine_constants.ELEVATOR_STEP_UM,
            machine_constants.ELEVATOR_ACCELERATION_UM_S2,
            machine_constants.ELEVATOR_SPEED_UM_S,
        )
        self._stepper = Stepper(pins.ELEVATOR_STEP, ramp, on_done)
        self._known = False  # whether zero was found since power-up
        self._homing = False
        self._searches = 0

    def send(self, position_um: int) -> bool:
        """Move to a position; False if the platform is there already."""
        self._stepper.stop()
        self._homing = False
        goal = (position_um + machine_constants.ELEVATOR_STEP_UM // 2) // machine_constants.ELEVATOR_STEP_UM
        return self._go(goal - self._stepper.position)

    def home(self, at_switch: bool) -> bool:
        """Move down to the switch; False if the platform is there already."""
        self._stepper.stop()
        if at_switch:
            self.arrived_home()
            return False
        self._homing = True
        self._searches = 1
        if self._known and self._stepper.position > 0:
            self._go(-self._stepper.position)
        else:
            self._search()
        return True

    def done(self, at_switch: bool) -> bool:
        """Handle the end of a move; whether it reached its goal. A missed switch is searched for."""
        if not self._homing:
            return True
        if at_switch:
            self.arrived_home()
            return True
        if self._searches:
            self._searches -= 1
            self._search()
        return False

    def at_switch(self) -> bool:
        """The switch closed: during a search this position is zero, and the move ends."""
        if not self._homing or (self._stepper.moving and self._known):
            return False  # the planned way down ends here by itself
        self._stepper.stop()
        self.arrived_home()
        return True

    def arrived_home(self) -> None:
        """Set the present position to zero."""
        self._homing = False
        self._known = True
        self._stepper.position = 0

    def stop(self) -> None:
        """Stop at once; the position is unknown afterwards."""
        self._stepper.stop()
        self._homing = self._known = False

    def _search(self) -> None:
        self._known = False
        self._go(
            -(machine_constants.ELEVATOR_TRAVEL_BATCH_UM + _PAST_UM) // machine_constants.ELEVATOR_STEP_UM
        )

    def _go(self, steps: int) -> bool:
        if not steps:
            return False
        self._up.value(1 if steps > 0 else 0)
        self._stepper.move(steps)
        return True
