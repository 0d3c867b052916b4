"""Registers of the RP2040 that MicroPython has no function for."""

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
    """One of the eight PWM counters: makes pulses on pin A, or counts those on pin B."""

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
        """Count rising edges on pin B continuously, modulo 65536."""
        mem32[self._csr] = 0
        mem32[self._div] = 1 << 4
        mem32[self.top] = 0xFFFF
        mem32[self._ctr] = 0
        mem32[self._csr] = _ENABLED | _COUNT_RISING

    def counted(self) -> int:
        """The count, modulo 65536."""
        return int(mem32[self._ctr])

    def stop(self) -> None:
        """End the pulses on pin A."""
        mem32[self.compare] = 0
        mem32[self._csr] = 0

    def start(self, divider: int, width: int, period: int, next_period: int) -> None:
        """Make pulses on pin A: the first after ``period``, the others every ``next_period``.

        Ticks are those of the system clock through a divider. A later write to ``top`` takes effect after the
        running period.
        """
        mem32[self._csr] = 0
        mem32[self._div] = divider << 4
        mem32[self.compare] = width
        mem32[self.top] = period - 1
        mem32[self._ctr] = width  # low until the first period is over
        mem32[self._csr] = _ENABLED
        mem32[self.top] = next_period - 1
