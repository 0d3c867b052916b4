"""The raw noise of a simulated board: bits of a ring oscillator, neither even nor independent."""

from hashlib import sha256
from random import Random

ONES = 0.53  # how likely a 1 is
STAYS = 0.08  # how likely a bit is just the one before, sampled too early
_ZERO = ord("0")
BELOW_IS_ONE = STAYS + ONES * (1 - STAYS)


class RingOscillator:
    """One bit after the other, from a seed; stuck, it says the same for ever."""

    def __init__(self, random: Random) -> None:
        # Its own generator, so that asking for noise changes nothing else of a machine.
        self._random = Random(sha256(repr(random.getstate()).encode()).digest())
        self.bit = 0
        """The last one; the one it says when it is stuck."""
        self.stuck = False

    def read(self, count: int) -> bytes:
        """So many bytes of raw bits, the first in the highest bit."""
        if self.stuck:
            return (b"\xff" if self.bit else b"\x00") * count
        draw, bit, digits = self._random.random, self.bit, bytearray()
        for _ in range(8 * count):
            chance = draw()
            if chance >= STAYS:
                bit = 1 if chance < BELOW_IS_ONE else 0
            digits.append(_ZERO + bit)
        self.bit = bit
        return int(digits, 2).to_bytes(count, "big") if count else b""
