"""The RP2040's registers that MicroPython has no call for."""

from machine import mem32

PWM = 0x40050000
_PWM_SLICE = 0x14
_CSR = 0x00
_DIV = 0x04
_CTR = 0x08
_CC = 0x0C
_TOP = 0x10
_ENABLED = 0x01
_COUNT_RISING = 0x20
_PWM_DREQ = 24

RING_OSCILLATOR_BIT = 0x4006001C


class PwmSlice:
    """One of the eight counters that make pulses on pin A, or count those on pin B."""

    def __init__(self, pin: int) -> None:
        number = pin >> 1 & 7
        at = PWM + number * _PWM_SLICE
        self.request = _PWM_DREQ + number  # what paces a DMA transfer by this slice's periods
        self._csr = at + _CSR  # kept as objects: numbers this large are made anew in memory otherwise
        self._div = at + _DIV
        self._ctr = at + _CTR
        self.compare = at + _CC
        self.top = at + _TOP

    def count_pulses(self) -> None:
        """Count rising edges on pin B, for ever, modulo 65536."""
        mem32[self._csr] = 0
        mem32[self._div] = 1 << 4
        mem32[self.top] = 0xFFFF
        mem32[self._ctr] = 0
        mem32[self._csr] = _ENABLED | _COUNT_RISING

    def counted(self) -> int:
        """How many, modulo 65536."""
        return int(mem32[self._ctr])

    def stop(self) -> None:
        """No more pulses on pin A."""
        mem32[self.compare] = 0
        mem32[self._csr] = 0

    def start(self, divider: int, width: int, period: int, next_period: int) -> None:
        """Pulses on pin A: the first after a period, the second after the next, and so on as the last.

        Ticks are of the system's clock through a divider. What is written to ``top`` later counts from the
        period after the running one.
        """
        mem32[self._csr] = 0
        mem32[self._div] = divider << 4
        mem32[self.compare] = width
        mem32[self.top] = period - 1
        mem32[self._ctr] = width  # low until the first period is over
        mem32[self._csr] = _ENABLED
        mem32[self.top] = next_period - 1
