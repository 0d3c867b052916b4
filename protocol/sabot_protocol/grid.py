"""The grid: while cards are put into secret places, bytes pass the cables only at its ticks.

How long the device takes to answer would tell what else it does at that moment: an edge of a sensor or a
collection of garbage marks where the platform stands. So in ``feeding`` and ``storing`` each port takes bytes
only at ticks of the device's own clock. What it took at one tick it has dealt with before the next one, and
sends at that one. The budget below bounds what one tick can ask for, so that this always holds.
"""

from sabot_protocol import ticks

PERIOD_MS = 50
TAKEN_BYTES = 1024  # what waits in a port to be dealt with; the rest waits in the cable, or is lost
LOOKED_AT = 3  # frames decoded at a tick, bad ones included
PLACES = 1  # frames dealt with at a tick, of anybody
OWNER_PLACES = 1  # and of the owner besides
ANSWERS = 1  # messages sent at a tick, repeated ones included
OWNER_ANSWERS = 2


class Grid:
    """The ticks of one device."""

    def __init__(self, now: int) -> None:
        self._at = now  # a tick that has come; with days between this one and ``now`` the ticks would jump

    def advance(self, now: int) -> None:
        """Let time pass."""
        self._at = self.floor(now)

    def floor(self, now: int) -> int:
        """The last tick that has come by a time."""
        return ticks.add(now, -(ticks.diff(now, self._at) % PERIOD_MS))

    def after(self, now: int) -> int:
        """The first tick after a time."""
        return ticks.add(self.floor(now), PERIOD_MS)
