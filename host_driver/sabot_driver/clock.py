"""The driver's clocks: ticks for the wire, UTC for the journal."""

import time

from sabot_protocol import ticks


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
        """Real seconds as ticks."""
        return max(int(seconds * 1000 * self._rate), 1)

    @staticmethod
    def utc_us() -> int:
        """Microseconds of UTC since 1970."""
        return time.time_ns() // 1000
