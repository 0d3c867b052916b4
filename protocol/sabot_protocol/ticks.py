"""Millisecond ticks of 30 bits that wrap; they are compared only by difference.

A board counts this way (``time.ticks_ms``), so everything that keeps time does too.
Two ticks may be at most 2**29 ms (six days) apart to be compared.
"""

MASK = 0x3FFFFFFF
HALF = 0x20000000


def add(ticks: int, ms: int) -> int:
    """The tick ``ms`` milliseconds after ``ticks``."""
    return (ticks + ms) & MASK


def diff(later: int, earlier: int) -> int:
    """Milliseconds from ``earlier`` to ``later``; negative if it is the other way round."""
    return ((later - earlier + HALF) & MASK) - HALF
