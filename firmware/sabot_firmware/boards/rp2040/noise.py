"""Randomness: the raw bits of the ring oscillator.

One sample is one bit, and by far not a whole bit of entropy. What is made of them, for shuffles and for the
wire, is ``rng.chance``'s affair, under health tests.
"""

from machine import mem32

from sabot_firmware.boards.rp2040.registers import RING_OSCILLATOR_BIT


def raw_noise(length: int) -> bytes:
    """So many bytes of samples as they come, eight to a byte: for health tests, and to be conditioned."""
    samples = bytearray(length)
    at = RING_OSCILLATOR_BIT
    for index in range(length):
        byte = 0
        for _ in range(8):
            byte = byte << 1 | mem32[at] & 1
        samples[index] = byte
    return bytes(samples)
