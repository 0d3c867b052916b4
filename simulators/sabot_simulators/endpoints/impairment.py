"""Impairment of a cable: loss, damage, delay, cuts. It only decides; the caller carries the bytes."""

from dataclasses import dataclass
from random import Random


@dataclass
class Impairment:
    """The impairment of one cable. Shares are of the pieces carried. Fields can be changed at any time."""

    random: Random
    drop: float = 0.0
    corrupt: float = 0.0
    delay: float = 0.0
    """Share of the pieces that come late."""
    delay_s: float = 0.05
    """How late at most. What follows a late piece waits behind it: a cable never reorders."""
    cut: float = 0.0
    """Share of the pieces at which the cable is cut."""
    half_open: bool = False
    """While set, all bytes are lost and neither side gets an error."""
    dropped: int = 0
    corrupted: int = 0
    delayed: int = 0
    cuts: int = 0

    def carry(self, data: bytes) -> tuple[bytes, float]:
        """What arrives of a piece (nothing, if it is lost), and how many seconds later."""
        random = self.random
        if self.half_open or random.random() < self.drop:
            self.dropped += 1
            return b"", 0.0
        if random.random() < self.corrupt:
            self.corrupted += 1
            damaged = bytearray(data)
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
            data = bytes(damaged)
        if random.random() < self.delay:
            self.delayed += 1
            return data, random.random() * self.delay_s
        return data, 0.0

    def cuts_now(self) -> bool:
        """Whether the cable is cut at this piece."""
        if random_share(self.random, self.cut):
            self.cuts += 1
            return True
        return False


def random_share(random: Random, share: float) -> bool:
    """True for this share of the calls."""
    return share > 0 and random.random() < share
