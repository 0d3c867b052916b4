"""The stack in the chamber as its measured heights tell it: how thick its cards are, and where its gaps lie.

The mean thickness is that of the cards that lie there, measured anew with every card: a deck that has swollen
or worn is gripped as exactly as a new one. Where cards are warped, gaps do not lie on the line that the mean
gives: every card that adds too much, and every lower packet that is measured, tells by how much. Nothing here
allocates.
"""

from array import array

MARKS = 16  # gaps of which it is known how far off the line they are
NEAR = 16  # a gap within this part of the stack takes the place of another mark
ODD_PERCENT = 25  # of the mean: a card that adds so much more or less is odd; readings alone do that to few
MOST_ODD_PERCENT = 40  # no card may be more so: one more card would add 100
STRAYS_PERCENT = 19  # what readings alone do often
UNEVEN_PERCENT = 40  # all cards together, beyond what readings do: more warped ones are too many
OFF_PERCENT = 40  # how far a packet may be off its place; blades enter the gap that is nearest to them


class Stack:
    """How many cards lie there, how high, and how far its gaps are off the line."""

    def __init__(self) -> None:
        self._below = array("H", bytes(2 * MARKS))  # of each mark: how many cards are below
        self._off_um = array("h", bytes(2 * MARKS))  # and how much higher it lies than the mean would have it
        self.reset(0)

    def reset(self, card_um: int) -> None:
        """Nothing lies there; the first card should be so thick. What was known of the last stack is wiped."""
        self.cards = 0
        self.height_um = 0
        self._card_um = card_um
        self._uneven_um = 0  # how odd its cards are, all together
        self._marks = 0
        for mark in range(MARKS):
            self._below[mark] = self._off_um[mark] = 0

    def mean_um(self) -> int:
        """How thick a card is."""
        return self.height_um // self.cards if self.cards else self._card_um

    def gap_um(self, below: int) -> int:
        """How high the gap above so many cards lies."""
        return self._line_um(below) + self._off_line_um(below)

    def _line_um(self, below: int) -> int:
        return self.height_um * below // self.cards if below else 0

    def _off_line_um(self, below: int) -> int:
        """Between two marks, and the ends of the stack, as far off as they are."""
        low = low_um = high_um = 0
        high = self.cards
        for mark in range(self._marks):
            at = self._below[mark]
            if low <= at <= below:
                low, low_um = at, self._off_um[mark]
            if below <= at <= high:
                high, high_um = at, self._off_um[mark]
        return low_um if high == low else low_um + (high_um - low_um) * (below - low) // (high - low)

    def fits(self, below: int, height_um: int) -> bool:
        """Whether a packet that was measured can be of so many cards, and of no other number.

        The less even the stack is, the less is known of its gaps, and the stricter this is.
        """
        most_um = (self.mean_um() * OFF_PERCENT // 50 - self._uneven_um) // 2
        return abs(height_um - self.gap_um(below)) <= most_um

    def count(self, height_um: int, guess: int) -> int:
        """How many cards a packet of this height has: the nearest gap, looked for from a guess."""
        near_um = abs(self.gap_um(guess) - height_um)
        for step in (-1, 1):
            while 0 <= guess + step <= self.cards:
                next_um = abs(self.gap_um(guess + step) - height_um)
                if next_um >= near_um:
                    break
                guess += step
                near_um = next_um
        return guess

    def learn(self, below: int, height_um: int) -> None:
        """A packet of so many cards was measured: go half the way from what was believed of its height."""
        if 0 < below < self.cards:
            off_um = (self.gap_um(below) + height_um) // 2 - self._line_um(below)
            self._mark(below, off_um, self.cards // NEAR)

    def _mark(self, below: int, off_um: int, near: int) -> None:
        """Make a mark; it takes the place of one that is so near, or of the nearest if there is no room."""
        nearest, distance = -1, self.cards
        for mark in range(self._marks):
            away = abs(self._below[mark] - below)
            if away < distance:
                nearest, distance = mark, away
        if nearest < 0 or (distance > near and self._marks < MARKS):
            nearest = self._marks
            self._marks += 1
        self._below[nearest] = below
        self._off_um[nearest] = off_um

    def grows(self, height_um: int) -> bool:
        """Whether one card more can have made it so high, neither none nor two; too many odd ones cannot."""
        mean_um = self.mean_um()
        odd_um = abs(height_um - self.height_um - mean_um)
        uneven_um = self._uneven_um + max(odd_um - mean_um * STRAYS_PERCENT // 100, 0)
        return odd_um <= mean_um * MOST_ODD_PERCENT // 100 and uneven_um <= mean_um * UNEVEN_PERCENT // 100

    def grown(self, below: int, height_um: int) -> None:
        """A card has come to lie on so many; this is how high the stack is now."""
        mean_um = self.mean_um()
        odd_um = height_um - self.height_um - mean_um
        self._uneven_um += max(abs(odd_um) - mean_um * STRAYS_PERCENT // 100, 0)
        if not self.cards or abs(odd_um) <= mean_um * ODD_PERCENT // 100:
            odd_um = 0
        under_um = self._off_line_um(below)
        self.cards += 1
        self.height_um = height_um
        for mark in range(self._marks):
            at = self._below[mark]
            if at > below:
                at = self._below[mark] = at + 1
                self._off_um[mark] += odd_um * 2 // 3  # the rest may be the readings' fault
            self._off_um[mark] -= odd_um * at // self.cards  # the line itself was lifted
        if odd_um and below + 1 < self.cards:
            self._mark(below + 1, under_um + odd_um * 2 // 3 - odd_um * (below + 1) // self.cards, 0)
