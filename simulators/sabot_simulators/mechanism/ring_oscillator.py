"""The raw noise of a simulated board: bits of a ring oscillator, neither even nor independent."""

from hashlib import sha256
from random import Random

ONES = 0.53  # how likely a 1 is
STAYS = 0.08  # how likely a bit is just the one before, sampled too early
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
        draw, bit, out = self._random.random, self.bit, bytearray(count)
        stays, below_is_one = STAYS, BELOW_IS_ONE
        for at in range(count):
            byte = 0
            for _ in range(8):
                chance = draw()
                if chance >= stays:
                    bit = 1 if chance < below_is_one else 0
                byte = byte << 1 | bit
            out[at] = byte
        self.bit = bit
        return bytes(out)
