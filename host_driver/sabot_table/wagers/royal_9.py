"""The Royal 9 progressive wager (MDM 7.A(9), 12.K): a nine and a face in a hand's first two cards.

Each seat has its own King-9, a king and a nine of given suits. "Exact match" (paytable C: personal versus
personal) is the seat's own in both hands; "any two personal" its own in one and another seat's in the
other; "personal and identical" one King-9 in both hands that is another seat's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sabot_table.cards import KING, NINE, Card
from sabot_table.coup import FirstFour


@dataclass(frozen=True, slots=True, order=True)
class KingNine:
    """A king and a nine, by their suits."""

    king: str
    nine: str

    def __str__(self) -> str:
        return f"K{self.king} 9{self.nine}"


@dataclass(frozen=True, slots=True)
class RoyalHands:
    """What the wager of one seat looks at."""

    four: FirstFour
    own: KingNine
    others: frozenset[KingNine]  # of the table's other seats


def king_nine(hand: Sequence[Card]) -> KingNine | None:
    """The King-9 that two cards are, if they are one."""
    high, low = max(hand), min(hand)
    return KingNine(high.suit, low.suit) if (high.rank, low.rank) == (KING, NINE) else None


def royal_9(hands: RoyalHands) -> tuple[str, ...]:
    """Every line met. Which of them pays is decided by the amounts: the highest only."""
    player, banker = king_nine(hands.four.player), king_nine(hands.four.banker)
    royal = [_royal(hands.four.player), _royal(hands.four.banker)]
    suited = [_suited(hands.four.player), _suited(hands.four.banker)]
    own = (player == hands.own, banker == hands.own)
    met = (
        ("exact match", all(own)),
        ("any two personal", any(own) and (player in hands.others or banker in hands.others)),
        ("banker personal", own[1]),
        ("player personal", own[0]),
        ("personal and identical", player == banker and player in hands.others),
        ("suited royal 9 tie", all(suited)),
        ("royal 9 tie", all(royal)),
        ("suited royal 9", any(suited)),
        ("royal 9", any(royal)),
    )
    return tuple(line for line, is_met in met if is_met)


def _royal(hand: Sequence[Card]) -> bool:
    return min(hand).rank == NINE and max(hand).is_face


def _suited(hand: Sequence[Card]) -> bool:
    return _royal(hand) and hand[0].suit == hand[1].suit
