"""The stack in the chamber as its measured heights tell it: how thick its cards are, and where its gaps lie.

The mean thickness is that of the cards that lie there, measured anew with every card: a deck that has swollen
or worn is gripped as exactly as a new one. Where cards are warped, gaps do not lie on the line that the mean
gives: every card that adds too much, and every lower packet that is measured, tells by how much. Nothing here
allocates. All parts are of the mean thickness, in hundredths.
"""

from array import array

MARKS = 16  # gaps of which it is known how far off the line they are
ODD = 25  # a card that adds so much more or less is odd; readings alone do that to few
MOST_ODD = 40  # no card may be more so: one more card would add 100
STRAYS = 19  # what readings alone do often
UNEVEN = 40  # all cards together, beyond what readings do: more warped ones are too many
OFF = 40  # how far a packet may be off its place; blades enter the gap that is nearest to them


class HeightModel:
    """How many cards lie there, how high, and how far its gaps are off the line."""

    def __init__(self) -> None:
        self._at = array("H", bytes(2 * MARKS))  # of each mark: how many cards are below
        self._off = array("h", bytes(2 * MARKS))  # how much higher it lies than the mean would have it, in um
        self.reset(0)

    def reset(self, card_um: int) -> None:
        """Nothing lies there; the first card should be so thick. What was known before is wiped."""
        self.cards = 0
        self.height_um = 0
        self.card_um = card_um  # how thick a card is
        self._uneven = 0  # how odd its cards are, all together, in um
        self._marks = 0
        for mark in range(MARKS):
            self._at[mark] = self._off[mark] = 0

    def gap_um(self, below: int) -> int:
        """How high the gap above so many cards lies."""
        return (self.height_um * below // self.cards if below else 0) + self._off_line(below)

    def _off_line(self, below: int) -> int:
        """Between two marks, or a mark and an end of the stack, as far off the line as they are."""
        low = low_um = high_um = 0
        high, marks, off = self.cards, self._at, self._off
        for mark in range(self._marks):
            at = marks[mark]
            if low <= at <= below:
                low, low_um = at, off[mark]
            if below <= at <= high:
                high, high_um = at, off[mark]
        return low_um if high == low else low_um + (high_um - low_um) * (below - low) // (high - low)

    def fits(self, gap_um: int, height_um: int) -> bool:
        """Whether a packet that was measured can end at a gap (``gap_um``), and at no other one.

        The less even the stack is, the less is known of its gaps, and the stricter this is.
        """
        most = (self.card_um * OFF // 50 - self._uneven) // 2
        return abs(height_um - gap_um) <= most

    def learn(self, below: int, height_um: int) -> None:
        """A packet of so many cards was measured: go half the way from what was believed of its height."""
        if 0 < below < self.cards:
            off = self._off_line(below)
            gap_um = self.height_um * below // self.cards + off
            self._mark(below, off + (height_um - gap_um) // 2, self.cards // MARKS)

    def _mark(self, below: int, off: int, near: int) -> None:
        """Make a mark; it takes the place of one that is so near, or of the nearest if there is no room."""
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
        """How much a card that makes the stack so high adds beyond the mean."""
        return height_um - self.height_um - self.card_um

    def _strays(self, odd: int) -> int:
        """What of that is not the readings' fault."""
        return max(abs(odd) - self.card_um * STRAYS // 100, 0)

    def grows(self, height_um: int) -> bool:
        """Whether one card more can have made it so high, neither none nor two; too many odd ones cannot."""
        odd = self._odd(height_um)
        uneven = self._uneven + self._strays(odd)
        return abs(odd) <= self.card_um * MOST_ODD // 100 and uneven <= self.card_um * UNEVEN // 100

    def grown(self, below: int, height_um: int) -> None:
        """A card has come to lie on so many; this is how high the stack is now."""
        odd = self._odd(height_um)
        self._uneven += self._strays(odd)
        if not self.cards or abs(odd) <= self.card_um * ODD // 100:
            odd = 0
        off = self._off_line(below)
        self.cards += 1
        self.height_um = height_um
        self.card_um = height_um // self.cards
        marks, offs = self._at, self._off
        for mark in range(self._marks):
            at = marks[mark]
            if at > below:
                at = marks[mark] = at + 1
                offs[mark] += odd * 2 // 3  # the rest may be the readings' fault
            if odd:
                offs[mark] -= odd * at // self.cards  # the line itself was lifted
        if odd and below + 1 < self.cards:
            self._mark(below + 1, off + odd * 2 // 3 - odd * (below + 1) // self.cards, 0)
