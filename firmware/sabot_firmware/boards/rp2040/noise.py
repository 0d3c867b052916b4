"""Randomness: the raw bits of the ring oscillator, and numbers drawn from them.

One sample is one bit, and by far not a whole bit of entropy. Bytes are made of eight times as many samples
through SHA-256. They are made while nothing moves; a draw only takes them.
"""

from hashlib import sha256

from machine import mem32

from sabot_firmware.boards.rp2040.registers import RING_OSCILLATOR_BIT

SAMPLES_PER_BIT = 8
_DIGEST = 32
_POOL = 8 * _DIGEST  # a shuffle of 52 takes less


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
    """Bytes and numbers that nobody can foretell."""

    def __init__(self) -> None:
        self._pool = bytearray(_POOL)
        self._left = 0

    def bytes(self, length: int) -> bytes:
        """So many bytes."""
        data = b""
        while len(data) < length:
            data += _conditioned()
        return data[:length]

    def refill(self) -> bool:
        """Make a part of what draws will take; whether that was needed."""
        if self._left > _POOL - _DIGEST:
            return False
        self._pool[self._left : self._left + _DIGEST] = _conditioned()
        self._left += _DIGEST
        return True

    def draw(self, bound: int) -> int:
        """A number from 0 to below a bound of at most 65536, each as likely."""
        fair = 65536 - 65536 % bound
        pool = self._pool
        while True:
            if self._left < 2:
                self.refill()
            left = self._left - 2
            number = pool[left] | pool[left + 1] << 8
            pool[left] = pool[left + 1] = 0
            self._left = left
            if number < fair:
                return number % bound


def _conditioned() -> bytes:
    return sha256(raw_noise(_DIGEST * SAMPLES_PER_BIT)).digest()
