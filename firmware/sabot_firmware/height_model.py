"""A model of the stack in the chamber: how thick its cards are, and at which height each gap lies.

The mean thickness is that of the cards in the stack and is updated with every card, so that a swollen or worn
deck is gripped as exactly as a new one. Warped cards move gaps away from the line that the mean gives. Every
card that adds too much height, and every measured lower packet, corrects the model there. Nothing here
allocates. All limits are hundredths of the mean thickness.
"""

from array import array

MARKS = 16  # gaps with a known offset
ODD = 25  # a card whose height differs by more is odd; measurement error alone rarely does that
MOST_ODD = 40  # the largest difference allowed for one card: a second card would add 100
STRAYS = 19  # difference that measurement error often makes
UNEVEN = 40  # most excess of all cards together, beyond measurement error
OFF = 40  # how far a packet's height may be off; the blades enter the nearest gap


class HeightModel:
    """Number of cards, height of the stack, and offsets of gaps from the straight line."""

    def __init__(self) -> None:
        self._at = array("H", bytes(2 * MARKS))  # of each mark: the cards below it
        self._off = array("h", bytes(2 * MARKS))  # its height above the straight line, in um
        self.reset(0)

    def reset(self, card_um: int) -> None:
        """Start with no card, the first of which should be ``card_um`` thick; wipes earlier data."""
        self.cards = 0
        self.height_um = 0
        self.card_um = card_um  # how thick a card is
        self._uneven = 0  # excess of all cards together, in um
        self._marks = 0
        for mark in range(MARKS):
            self._at[mark] = self._off[mark] = 0

    def gap_um(self, below: int) -> int:
        """The height of the gap above ``below`` cards."""
        return (self.height_um * below // self.cards if below else 0) + self._off_line(below)

    def _off_line(self, below: int) -> int:
        """The offset of a gap, interpolated between the nearest marks or the stack's ends."""
        low = low_um = high_um = 0
        high, marks, off = self.cards, self._at, self._off
        for mark in range(self._marks):
            at = marks[mark]
            if at < below:
                if at >= low:
                    low, low_um = at, off[mark]
            elif at > below:
                if at <= high:
                    high, high_um = at, off[mark]
            else:
                return off[mark]
        return low_um if high == low else low_um + (high_um - low_um) * (below - low) // (high - low)

    def fits(self, gap_um: int, height_um: int) -> bool:
        """Whether a measured packet can end at a gap (``gap_um``), and at no other gap.

        The less even the stack is, the less the model knows of its gaps, and the stricter this test is.
        """
        most = (self.card_um * OFF // 50 - self._uneven) // 2
        return abs(height_um - gap_um) <= most

    def learn(self, below: int, gap_um: int, height_um: int) -> None:
        """Take over half of the difference between a measured packet and the model's ``gap_um``."""
        if 0 < below < self.cards:
            off = gap_um - self.height_um * below // self.cards
            self._mark(below, off + (height_um - gap_um) // 2, self.cards // MARKS)

    def _mark(self, below: int, off: int, near: int) -> None:
        """Set a mark. It replaces a mark within ``near`` cards, or the nearest if there is no room."""
        nearest, left = -1, self.cards
        for mark in range(self._marks):
            away = abs(self._at[mark] - below)
            if away < left:
                nearest, left = mark, away
        if nearest < 0 or (left > near and self._marks < MARKS):
            nearest = self._marks
            self._marks += 1
        self._at[nearest] = below
        self._off[nearest] = off

    def _odd(self, height_um: int) -> int:
        """How much more than the mean a card adds that makes the stack this high."""
        return height_um - self.height_um - self.card_um

    def _strays(self, odd: int) -> int:
        """The part of such an excess that measurement error does not explain."""
        return max(abs(odd) - self.card_um * STRAYS // 100, 0)

    def grows(self, height_um: int) -> bool:
        """Whether exactly one more card can explain this height; too many odd cards cannot."""
        odd = self._odd(height_um)
        uneven = self._uneven + self._strays(odd)
        return abs(odd) <= self.card_um * MOST_ODD // 100 and uneven <= self.card_um * UNEVEN // 100

    def grown(self, below: int, height_um: int) -> None:
        """A card was inserted above ``below`` cards, and the stack is now this high."""
        odd = self._odd(height_um)
        self._uneven += self._strays(odd)
        if not self.cards or abs(odd) <= self.card_um * ODD // 100:
            odd = 0
        off = self._off_line(below) if odd else 0
        self.cards += 1
        self.height_um = height_um
        self.card_um = height_um // self.cards
        marks, offs = self._at, self._off
        for mark in range(self._marks):
            at = marks[mark]
            if at > below:
                at = marks[mark] = at + 1
                if odd:
                    offs[mark] += odd * 2 // 3  # the rest may be measurement error
            if odd:
                offs[mark] -= odd * at // self.cards  # the line itself was lifted
        if odd and below + 1 < self.cards:
            self._mark(below + 1, off + odd * 2 // 3 - odd * (below + 1) // self.cards, 0)
