"""Cards: rank, suit, points, and a check that a set of cards can come from so many decks."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from sabot_table.errors import ImpossibleCards, NotACard

RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
SUITS = ("C", "D", "H", "S")
DECK_CARDS = 52
ACE, NINE, TEN, JACK, QUEEN, KING = 1, 9, 10, 11, 12, 13


@dataclass(frozen=True, slots=True, order=True)
class Card:
    """One card: rank 1 (ace) to 13 (king), suit one of C, D, H, S. ``str`` gives "10H", "AS"."""

    rank: int
    suit: str

    def __post_init__(self) -> None:
        if not 1 <= self.rank <= KING or self.suit not in SUITS:
            raise NotACard(f"rank {self.rank!r}, suit {self.suit!r}: give a rank of 1-13 and a suit of CDHS")

    @property
    def value(self) -> int:
        """Its points: ace one, 2-9 their number, ten and faces none (MD3 6.B, MDM 6.A, BAC points)."""
        return self.rank if self.rank <= NINE else 0

    @property
    def burns(self) -> int:
        """How many cards it burns when it is a shoe's first (MDM 5.G): tens and faces ten, an ace one."""
        return min(self.rank, TEN)

    @property
    def is_face(self) -> bool:
        """Jack, queen or king; a ten is no face."""
        return self.rank >= JACK

    def __str__(self) -> str:
        return RANKS[self.rank - 1] + self.suit


@cache
def card(text: str) -> Card:
    """The card a text names: rank then suit, "KH", "10s", "TC"; anything else is `NotACard`."""
    rank, suit = text[:-1].upper(), text[-1:].upper()
    rank = "10" if rank == "T" else rank
    if rank not in RANKS or suit not in SUITS:
        raise NotACard(f"'{text}' is not a card; write rank and suit, such as KH, 10S or AC")
    return Card(RANKS.index(rank) + 1, suit)


def cards(text: str) -> tuple[Card, ...]:
    """The cards a text names, separated by blanks or commas."""
    return tuple(card(each) for each in text.replace(",", " ").split())


def check_possible(shown: Iterable[Card], decks: int) -> None:
    """Raise `ImpossibleCards` if a card was shown more often than so many decks hold it."""
    counts = Counter(shown)
    for each, times in counts.items():
        if times > decks:
            raise ImpossibleCards(
                f"{each} is there {times} times and {decks} deck{'s hold' if decks > 1 else ' holds'} it "
                f"{decks} times; look at the cards again and type them as they lie"
            )


@cache
def full_deck() -> tuple[Card, ...]:
    """The 52 cards, by suit and rank."""
    return tuple(Card(rank, suit) for suit in SUITS for rank in range(ACE, KING + 1))
