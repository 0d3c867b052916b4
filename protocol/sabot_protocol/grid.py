"""The grid: while cards are put into secret places, bytes pass the cables only at its ticks.

How long the device takes to answer would tell what else it does at that moment: an edge of a sensor or a
collection of garbage marks where the platform stands. So in ``feeding`` and ``storing`` each port takes bytes
only at ticks of the device's own clock. The answer to what tick k brought leaves at tick k + ANSWERED_AFTER,
however early it is ready. How many bytes may come in at that tick is settled with it. So the tick of an
answer follows from what came over the cable, and from nothing else.

This holds as long as a tick's work is done before its answer is due. The budget below bounds that work, and
what it allocates between two collections of garbage: a board that runs short of memory would have to wait
for the next one, and when that is depends on the cards. The board counts every answer that is late
(``sabot_grid.late``), and its tests want none.
"""

from sabot_protocol import ticks

PERIOD_MS = 50
ANSWERED_AFTER = 2  # ticks. One is too few: a collection of garbage beside two flooded cables outlasts it
TAKEN_BYTES = 1024  # what waits in a port to be dealt with; the rest waits in the cable, or is lost
LOOKED_AT = 3  # frames decoded at a tick, bad ones included
PLACES = 1  # frames dealt with at a tick, of anybody
PLACE_EVERY = 3  # ticks from one such frame to the next on the same cable
OWNER_PLACES = 1  # frames of the owner's session dealt with at a tick besides
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
