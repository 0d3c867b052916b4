"""Slots from a seed: the same seed, nonce and shuffle give the same slots on the device and for an auditor.

A slot below ``bound`` is two bytes of the generator, high byte first, modulo ``bound``. Values from the
greatest multiple of ``bound`` on are rejected, so that all slots are equally likely.
"""

from array import array

from sabot_firmware.rng import RngFailed, wipe
from sabot_firmware.rng.drbg import HmacDrbg

CHUNK = 64  # bytes of the generator at a time
MAX_THROWN_AWAY = 64  # in a row; a sound generator does that once in 2^64


class UniformStream:
    """Uniform numbers below a bound, from a generator's bytes."""

    def __init__(self, drbg: HmacDrbg) -> None:
        self._drbg = drbg
        self._bytes = bytearray(0)
        self._at = 0

    def below(self, bound: int) -> int:
        """The next number from 0 to bound - 1, all equally likely."""
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
        """Overwrite the unused bytes and the generator."""
        wipe(self._bytes)
        self._drbg.wipe()


class Slots:
    """The slots of one shuffle, one a card, all drawn before the first card moves."""

    def __init__(self, cards: int) -> None:
        self._slots = array("H", bytes(2 * cards))
        self.cards = cards

    def fill(self, seed: bytes | bytearray, nonce: bytes, about: bytes) -> None:
        """Draw all slots."""
        drbg = HmacDrbg()
        drbg.instantiate(seed, nonce, about)
        stream = UniformStream(drbg)
        try:
            for card in range(self.cards):
                self._slots[card] = stream.below(card + 1)
        finally:
            stream.wipe()

    def draw(self, bound: int) -> int:
        """The slot of card number ``bound``; repeated calls return the same slot."""
        return self._slots[bound - 1]

    def wipe(self) -> None:
        """Overwrite the slots."""
        for card in range(self.cards):
            self._slots[card] = 0
