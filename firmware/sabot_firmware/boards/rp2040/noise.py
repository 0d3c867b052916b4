"""Randomness: the raw bits of the ring oscillator, and bytes for the wire made of them.

One sample is one bit, and by far not a whole bit of entropy. Shuffles are drawn by ``rng.chance`` from raw
bits, under health tests; the wire's bytes are made of eight times as many samples through SHA-256.
"""

from hashlib import sha256

from machine import mem32

from sabot_firmware.boards.rp2040.registers import RING_OSCILLATOR_BIT

SAMPLES_PER_BIT = 8
_DIGEST = 32


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


class Noise:
    """Bytes that nobody can foretell, for the wire's nonces."""

    def bytes(self, length: int) -> bytes:
        """So many bytes."""
        data = b""
        while len(data) < length:
            data += _conditioned()
        return data[:length]


def _conditioned() -> bytes:
    return sha256(raw_noise(_DIGEST * SAMPLES_PER_BIT)).digest()
