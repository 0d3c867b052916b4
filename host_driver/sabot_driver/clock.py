"""The driver's clocks: ticks for the wire, UTC for the journal."""

import math
import time

from sabot_protocol import ticks

LONGEST_S = 72 * 3600  # ticks wrap after 298 hours, and their difference tells half of that
LONGEST_MS = LONGEST_S * 1000


def checked_timeout(seconds: float) -> float:
    """The time-out itself; TypeError for what is no number, ValueError for nan and more than 72 hours."""
    if not isinstance(seconds, int | float):
        raise TypeError(f"a time-out is a number of seconds, not {seconds!r}")
    if math.isnan(seconds):
        raise ValueError("a time-out is a number of seconds, not nan")
    if seconds > LONGEST_S:
        raise ValueError(f"a time-out is at most 72 hours ({LONGEST_S:,} s), not {seconds:g} s")
    return seconds


class Deadline:
    """The end of a call's time-out, shared by all waits of the call."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + checked_timeout(seconds)

    def left(self) -> float:
        """Seconds that are left; 0 when it has passed."""
        return max(self._ends - time.monotonic(), 0.0)


class Clock:
    """Reads the time for the shells: the loop itself reads no clock. A rate above 1 shortens every timer."""

    def __init__(self, rate: float = 1.0) -> None:
        self._rate = rate

    def now_ms(self) -> int:
        """The present tick, in milliseconds that wrap."""
        return int(time.monotonic() * 1000 * self._rate) & ticks.MASK

    def seconds_until(self, tick: int) -> float:
        """Real seconds until a tick; 0 if it has passed."""
        return max(ticks.diff(tick, self.now_ms()), 0) / 1000 / self._rate

    def to_ms(self, seconds: float) -> int:
        """Real seconds as ticks: at least one, at most LONGEST_MS, because ticks wrap."""
        return max(int(min(seconds * 1000 * self._rate, LONGEST_MS)), 1)

    @staticmethod
    def utc_us() -> int:
        """Microseconds of UTC since 1970."""
        return time.time_ns() // 1000
