"""The driver's clocks: ticks for the wire, UTC for the journal."""

import math
import time

from sabot_protocol import ticks

LONGEST_MS = ticks.MASK // 4  # 74 hours: half of what a difference of ticks can tell


def bounded(seconds: float) -> float:
    """A time-out that can be waited for: at most 74 hours; ValueError for what is no number."""
    if math.isnan(seconds):
        raise ValueError("a time-out is a number of seconds, not nan")
    return min(seconds, LONGEST_MS / 1000)


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
