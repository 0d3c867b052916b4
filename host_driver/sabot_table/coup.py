"""A coup of mini baccarat: points, who draws a third card, and what comes of it (MDM 6, 8-10; BAC)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sabot_table.cards import Card
from sabot_table.errors import ImpossibleCards

NATURAL = 8  # points of two cards from which nobody draws
PLAYER_STANDS_FROM = 6
BANKER_STANDS_FROM = 6  # where the Player has no third card

# The Banker with 3-6 points draws if the Player's third card counts one of these (MDM 10.E(3)).
BANKER_DRAWS_AGAINST = {
    3: frozenset({0, 1, 2, 3, 4, 5, 6, 7, 9}),
    4: frozenset({2, 3, 4, 5, 6, 7}),
    5: frozenset({4, 5, 6, 7}),
    6: frozenset({6, 7}),
}


def points(hand: Iterable[Card]) -> int:
    """The right digit of the sum of the cards' values (MDM 6.B-C)."""
    return sum(each.value for each in hand) % 10


def player_draws(player: int, banker: int) -> bool:
    """Whether the Player's Hand draws, from both hands' points after two cards (MDM 10.A-B)."""
    return player < PLAYER_STANDS_FROM and banker < NATURAL


def banker_draws(player: int, banker: int, third: int | None) -> bool:
    """Whether the Banker's Hand draws, from both totals and the Player's third card (MDM 10.A, C-E)."""
    if player >= NATURAL or banker >= NATURAL:
        return False
    if third is None:
        return banker < BANKER_STANDS_FROM
    return banker < min(BANKER_DRAWS_AGAINST) or third in BANKER_DRAWS_AGAINST.get(banker, ())


@dataclass(frozen=True, slots=True)
class Totals:
    """Points and number of cards of both hands: all that most wagers look at."""

    player: int
    player_cards: int
    banker: int
    banker_cards: int

    @property
    def player_natural(self) -> bool:
        """The Player's Hand has eight or nine with two cards."""
        return self.player_cards == 2 and self.player >= NATURAL

    @property
    def banker_natural(self) -> bool:
        """The Banker's Hand has eight or nine with two cards."""
        return self.banker_cards == 2 and self.banker >= NATURAL


@dataclass(frozen=True, slots=True)
class Coup:
    """Both hands in full, in the order of their cards; only what the rules deal can be made."""

    player: tuple[Card, ...]
    banker: tuple[Card, ...]

    def __post_init__(self) -> None:
        if not (2 <= len(self.player) <= 3 and 2 <= len(self.banker) <= 3):
            raise ImpossibleCards(
                f"{len(self.player)} cards for the Player and {len(self.banker)} for the Banker; "
                "each hand has two or three (MDM 9.C)"
            )
        first, other = points(self.player[:2]), points(self.banker[:2])
        third = self.player[2].value if len(self.player) == 3 else None
        if player_draws(first, other) != (third is not None):
            raise ImpossibleCards(_wrong("Player", first, other, "MDM 10.B", third is not None))
        if banker_draws(first, other, third) != (len(self.banker) == 3):
            raise ImpossibleCards(_wrong("Banker", first, other, "MDM 10.C", len(self.banker) == 3))

    @property
    def totals(self) -> Totals:
        """What most wagers look at."""
        return Totals(points(self.player), len(self.player), points(self.banker), len(self.banker))

    @property
    def first_four(self) -> "FirstFour":
        """The cards before any third one."""
        return FirstFour(self.player[:2], self.banker[:2])

    @property
    def cards(self) -> tuple[Card, ...]:
        """All of them."""
        return self.player + self.banker


@dataclass(frozen=True, slots=True)
class FirstFour:
    """Both hands before any third card."""

    player: tuple[Card, ...]
    banker: tuple[Card, ...]

    @property
    def cards(self) -> tuple[Card, ...]:
        """All four."""
        return self.player + self.banker


def deal_coup(drawn: Sequence[Card]) -> Coup:
    """The coup that cards make in the order of the shoe: Player, Banker, Player, Banker, thirds (MDM 8.C)."""
    if len(drawn) < 4:
        raise ImpossibleCards(f"{len(drawn)} cards; the first four open a coup (MDM 8.C)")
    player, banker, rest = [drawn[0], drawn[2]], [drawn[1], drawn[3]], list(drawn[4:])
    first, other, third = points(player), points(banker), None
    if player_draws(first, other):
        player.append(_next(rest))
        third = player[2].value
    if banker_draws(first, other, third):
        banker.append(_next(rest))
    return Coup(tuple(player), tuple(banker))


def _next(rest: list[Card]) -> Card:
    if not rest:
        raise ImpossibleCards("a third card is needed and none is left (MDM 13.E): the round is void")
    return rest.pop(0)


def _wrong(hand: str, player: int, banker: int, clause: str, drew: bool) -> str:
    return (
        f"Player {player}, Banker {banker} after two cards: the {hand} must{' not' if drew else ''} have a "
        f"third card ({clause}); look at the cards again, or report the irregularity"
    )
