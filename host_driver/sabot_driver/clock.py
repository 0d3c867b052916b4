"""The driver's clocks: ticks for the wire, UTC for the journal."""

import math
import time

from sabot_protocol import ticks

LONGEST_S = 72 * 3600  # ticks wrap after 298 hours, and their difference tells half of that
LONGEST_MS = LONGEST_S * 1000


def checked_timeout(seconds: float) -> float:
    """A time-out that can be waited for; ValueError for what is no number and for more than 72 hours."""
    if math.isnan(seconds):
        raise ValueError("a time-out is a number of seconds, not nan")
    if seconds > LONGEST_S:
        raise ValueError(f"a time-out is at most 72 hours ({LONGEST_S:,} s), not {seconds:g} s")
    return seconds


class Deadline:
    """A moment that several waits of one call share, so that together they end within its time-out."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + checked_timeout(seconds)

    def left(self) -> float:
        """Seconds until then; 0 when it has been."""
        return max(self._ends - time.monotonic(), 0.0)


class Clock:
    """Reads time for the shells, so that nothing inside needs to. A rate above 1 shortens every timer."""

    def __init__(self, rate: float = 1.0) -> None:
        self._rate = rate

    def now_ms(self) -> int:
        """Ticks of the wire."""
        return int(time.monotonic() * 1000 * self._rate) & ticks.MASK

    def seconds_until(self, tick: int) -> float:
        """How long a thread must sleep until a tick; 0 if it has been."""
        return max(ticks.diff(tick, self.now_ms()), 0) / 1000 / self._rate

    def to_ms(self, seconds: float) -> int:
        """Real seconds as ticks: at least one, at most LONGEST_MS, because ticks wrap."""
        return max(int(min(seconds * 1000 * self._rate, LONGEST_MS)), 1)

    @staticmethod
    def utc_us() -> int:
        """Microseconds of UTC since 1970."""
        return time.time_ns() // 1000
