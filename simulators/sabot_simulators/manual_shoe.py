"""A shoe without a machine: a shuffled pack that a simulated dealer deals from by hand."""

from collections.abc import Sequence
from random import Random

from sabot_table.cards import full_deck
from sabot_table.hand_ranking import HAND_CARDS


class ManualShoe:
    """So many decks in a random order; ``seed`` repeats a run."""

    def __init__(self, decks: int, seed: int = 1) -> None:
        self._decks = decks
        self._random = Random(seed)
        self._left: list[str] = []

    def shuffle(self) -> None:
        """All cards are back, in a new order."""
        self._left = [str(each) for each in full_deck()] * self._decks
        self._random.shuffle(self._left)

    def put(self, *cards: str) -> None:
        """The next cards to be dealt are these."""
        self._left += reversed(cards)

    def draw(self) -> str:
        """The next card."""
        return self._left.pop()

    def burn(self, count: int) -> None:
        """So many cards go away face down."""
        del self._left[-count:]

    def hands(self, seats: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Three cards to each, one after the other in turn."""
        dealt: dict[int, list[str]] = {seat: [] for seat in seats}
        for _ in range(HAND_CARDS):
            for hand in dealt.values():
                hand.append(self.draw())
        return {seat: tuple(hand) for seat, hand in dealt.items()}
