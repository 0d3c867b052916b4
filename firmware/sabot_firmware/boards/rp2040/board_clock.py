"""The board's clock: ticks of 30 bits that wrap, as everything else here counts them."""

import time

from sabot_protocol import ticks


def now_us() -> int:
    """Microseconds."""
    return time.ticks_us() & ticks.MASK  # type: ignore[attr-defined,no-any-return]


def now_ms() -> int:
    """Milliseconds."""
    return time.ticks_ms() & ticks.MASK  # type: ignore[attr-defined,no-any-return]
