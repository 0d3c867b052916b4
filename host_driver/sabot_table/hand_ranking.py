"""Three Card Baccarat: what a hand is, and how the player's and the dealer's compare (MD3 6, WA3 ranking)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from sabot_table.cards import KING, Card
from sabot_table.errors import ImpossibleCards

HAND_CARDS = 3
FACES_COUNT_AS = 10  # three faces in the tie and the Dragon Bonus, on both sides


class HandCategory(IntEnum):
    """The three kinds of hands, lowest first."""

    POINTS = 0
    THREE_FACES = 1
    THREE_KINGS = 2


@dataclass(frozen=True, slots=True, order=True)
class HandRank:
    """What a hand is; compares as hands rank: kind, then points, then faces."""

    kind: HandCategory
    points: int
    faces: int

    @property
    def bonus_points(self) -> int:
        """Points as the tie and the Dragon Bonus count them: three faces are ten."""
        return self.points if self.kind is HandCategory.POINTS else FACES_COUNT_AS

    def __str__(self) -> str:
        if self.kind is HandCategory.THREE_KINGS:
            return "three kings"
        if self.kind is HandCategory.THREE_FACES:
            return "three faces"
        return f"{self.points} with {self.faces} face{'' if self.faces == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Showdown:
    """All that a wager of this game looks at: both standings, and whether the ranks are the same three."""

    player: HandRank
    dealer: HandRank
    copy: bool


def rank_hand(hand: Sequence[Card]) -> HandRank:
    """What three cards are."""
    if len(hand) != HAND_CARDS:
        raise ImpossibleCards(f"a hand of {len(hand)} cards; without three the round is void (MD3 13.C)")
    faces = sum(each.is_face for each in hand)
    if faces == HAND_CARDS:
        kings = all(each.rank == KING for each in hand)
        return HandRank(HandCategory.THREE_KINGS if kings else HandCategory.THREE_FACES, 0, faces)
    return HandRank(HandCategory.POINTS, sum(each.value for each in hand) % 10, faces)


def showdown(player: Sequence[Card], dealer: Sequence[Card]) -> Showdown:
    """One player's hand against the dealer's."""
    copy = sorted(each.rank for each in player) == sorted(each.rank for each in dealer)
    return Showdown(rank_hand(player), rank_hand(dealer), copy)
