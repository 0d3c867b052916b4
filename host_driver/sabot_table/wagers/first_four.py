"""Wagers of mini baccarat on the first four cards (MDM 7.A(10), (16), (17))."""

from collections import Counter
from collections.abc import Sequence

from sabot_table.cards import ACE, JACK, KING, NINE, QUEEN, TEN, Card
from sabot_table.coup import FirstFour

ROYAL = (ACE, JACK, QUEEN, KING)


def any_pair_player(four: FirstFour) -> tuple[str, ...]:
    """The Player's first two cards are of one rank."""
    return _pair(four.player)


def any_pair_banker(four: FirstFour) -> tuple[str, ...]:
    """The Banker's first two cards are of one rank."""
    return _pair(four.banker)


def lucky_nines(four: FirstFour) -> tuple[str, ...]:
    """How many nines there are; "of one suit" means all of them."""
    suits = [each.suit for each in four.cards if each.rank == NINE]
    if not suits:
        return ()
    if len(suits) == 1:
        return ("nine of diamonds", "one nine") if suits == ["D"] else ("one nine",)
    if len(suits) == 4:
        return ("four nines",)
    line = "three nines" if len(suits) == 3 else "two nines"
    return (f"{line} of one suit", line) if len(set(suits)) == 1 else (line,)


def jackpot(four: FirstFour) -> tuple[str, ...]:
    """The four cards as a poker hand, every line they meet, best first."""
    cards = four.cards
    ranks = sorted(each.rank for each in cards)
    counts = sorted(Counter(ranks).values(), reverse=True)
    flush = len({each.suit for each in cards}) == 1
    straight = _is_straight(ranks)
    met = (
        ("four card royal", flush and tuple(ranks) == ROYAL),
        ("four of a kind", counts[0] == 4),
        ("straight flush", flush and straight),
        ("three of a kind", counts[0] >= 3),
        ("flush", flush),
        ("straight", straight),
        ("two pair", counts == [2, 2]),
        ("pair of aces", ranks.count(ACE) >= 2),
        ("pair of tens to kings", any(ranks.count(rank) >= 2 for rank in range(TEN, KING + 1))),
    )
    return tuple(line for line, is_met in met if is_met)


def _is_straight(ranks: Sequence[int]) -> bool:
    return tuple(ranks) == ROYAL or list(ranks) == list(range(ranks[0], ranks[0] + len(ranks)))


def _pair(hand: tuple[Card, ...]) -> tuple[str, ...]:
    if hand[0].rank != hand[1].rank:
        return ()
    return ("pair of nines", "pair") if hand[0].rank == NINE else ("pair",)
