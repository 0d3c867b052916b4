"""Noise: the raw bits of the ring oscillator, and the low bits of the temperature converter.

One sample is one bit with much less than one bit of entropy. ``rng.device_rng`` tests and conditions the
samples.
"""

import micropython
from machine import ADC, mem32

from sabot_firmware.boards.rp2040.registers import RING_OSCILLATOR_BIT
from sabot_firmware.rng.lag_test import BEFORE, ONES

THERMOMETER = 4  # the converter's channel
READINGS = 16
_ONES = bytearray(ONES)
ptr8 = bytearray  # what viper calls bytes at an address; a name only


def raw_noise(length: int) -> bytes:
    """So many bytes of raw samples, eight a byte."""
    samples = bytearray(length)
    at = RING_OSCILLATOR_BIT
    for index in range(length):
        byte = 0
        for _ in range(8):
            byte = byte << 1 | mem32[at] & 1
        samples[index] = byte
    return bytes(samples)


def thermal_noise() -> bytes:
    """The four lowest bits of some temperature readings, credited with no entropy."""
    converter = ADC(THERMOMETER)
    readings = bytearray(READINGS // 2)
    for index in range(READINGS // 2):
        first = converter.read_u16() >> 4 & 0x0F  # twelve bits, moved up by four
        readings[index] = first << 4 | converter.read_u16() >> 4 & 0x0F
    return bytes(readings)


def count_differing(samples: bytearray, end: int, lag: int) -> int:
    """``lag_test.count_differing`` in machine code; not yet measured on a board."""
    return _count(samples, _ONES, BEFORE, end, lag)


@micropython.viper
def _count(samples: ptr8, ones: ptr8, at: int, end: int, lag: int) -> int:
    bytes_back = lag >> 3
    shift = lag & 7
    differing = 0
    while at < end:
        earlier = at - bytes_back
        differing += ones[samples[at] ^ ((samples[earlier - 1] << 8 | samples[earlier]) >> shift & 0xFF)]
        at += 1
    return differing
