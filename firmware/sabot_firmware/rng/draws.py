"""Slots out of a seed: the same seed, host's nonce and shuffle give the same slots, here and at an auditor's.

A slot below ``bound`` is two bytes of the generator, the high one first, taken modulo ``bound``; values from
the greatest multiple of ``bound`` on are thrown away, so no slot is likelier than another.
"""

from array import array

from sabot_firmware.rng import RngFailed, wipe
from sabot_firmware.rng.drbg import HmacDrbg

CHUNK = 64  # bytes of the generator at a time
MAX_THROWN_AWAY = 64  # in a row; a sound generator does that once in 2^64


class UniformStream:
    """Numbers below a bound from a generator's bytes."""

    def __init__(self, drbg: HmacDrbg) -> None:
        self._drbg = drbg
        self._bytes = bytearray(0)
        self._at = 0

    def below(self, bound: int) -> int:
        """The next number from 0 to bound - 1, each as likely as any other."""
        limit = 65536 - 65536 % bound
        for _ in range(MAX_THROWN_AWAY):
            if self._at >= len(self._bytes):
                wipe(self._bytes)
                self._bytes = self._drbg.generate(CHUNK)
                self._at = 0
            number = self._bytes[self._at] << 8 | self._bytes[self._at + 1]
            self._at += 2
            if number < limit:
                return number % bound
        raise RngFailed("the generator's numbers are all thrown away")

    def wipe(self) -> None:
        """Overwrite what is left."""
        wipe(self._bytes)
        self._drbg.wipe()


class Slots:
    """The slots of one shuffle, one for each card, drawn before the first card moves."""

    def __init__(self, cards: int) -> None:
        self._slots = array("H", bytes(2 * cards))
        self.cards = cards

    def fill(self, seed: bytes | bytearray, nonce: bytes, about: bytes) -> None:
        """Draw them all."""
        drbg = HmacDrbg()
        drbg.instantiate(seed, nonce, about)
        stream = UniformStream(drbg)
        try:
            for card in range(self.cards):
                self._slots[card] = stream.below(card + 1)
        finally:
            stream.wipe()

    def draw(self, bound: int) -> int:
        """The slot of the card that makes the stack so high; the same however often it is asked for."""
        return self._slots[bound - 1]

    def wipe(self) -> None:
        """Overwrite them."""
        for card in range(self.cards):
            self._slots[card] = 0
