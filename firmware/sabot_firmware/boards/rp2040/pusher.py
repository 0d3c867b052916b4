"""The pusher: steps at a constant pace until one of its switches closes."""

from array import array

from sabot_firmware import machine_constants
from sabot_firmware.boards.rp2040 import pins
from sabot_firmware.boards.rp2040.expander import Expanders, output
from sabot_firmware.boards.rp2040.stepper import Stepper

STEP_US = 980  # a little faster than the constant, so that the move takes no longer
_FORWARD = output(pins.PUSHER_FORWARD_BIT)
_MOST_STEPS = (
    machine_constants.PUSHER_US + 100000
) // STEP_US  # then it stops: the controller's window is over


def _nothing() -> None:
    """Called when a move ends without a switch."""


class Pusher:
    """``position`` counts steps from home."""

    def __init__(self, expanders: Expanders) -> None:
        self._expanders = expanders
        self._stepper = Stepper(pins.PUSHER_STEP, array("I", [STEP_US]), _nothing)
        self._forward = False

    def push(self, forward: bool) -> None:
        """Move forward to the end switch, or back home."""
        self._stepper.stop()
        self._forward = forward
        outputs = self._expanders.outputs & ~_FORWARD
        self._expanders.drive(outputs | (_FORWARD if forward else 0))
        self._stepper.move(_MOST_STEPS if forward else -_MOST_STEPS)

    def at_switch(self, end: bool) -> None:
        """A switch closed: stop if it is the goal of the move."""
        if end == self._forward:
            self._stepper.stop()
            if not end:
                self._stepper.position = 0

    def stop(self) -> None:
        """Stop at once."""
        self._stepper.stop()

    @property
    def position(self) -> int:
        """Steps from home, as far as known."""
        return self._stepper.position
