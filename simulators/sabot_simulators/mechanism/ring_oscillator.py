"""The raw noise of a simulated board: bits of a ring oscillator, neither even nor independent."""

from hashlib import sha256
from random import Random

ONES = 0.53  # how likely a 1 is
STAYS = 0.08  # how likely a bit is just the one before, sampled too early
_STAYED = 2  # beside the bits 0 and 1
_DIGITS = bytes.maketrans(bytes((0, 1)), b"01")
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
        draw = self._random.random
        bits = bytearray(
            [_STAYED if (chance := draw()) < STAYS else chance < BELOW_IS_ONE for _ in range(8 * count)]
        )
        at = bits.find(_STAYED)
        while at >= 0:
            bits[at] = bits[at - 1] if at else self.bit
            at = bits.find(_STAYED, at + 1)
        self.bit = bits[-1] if count else self.bit
        return int(bits.translate(_DIGITS), 2).to_bytes(count, "big") if count else b""
