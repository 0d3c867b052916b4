"""Every way cards can fall, grouped by what wagers depend on, with the number of ways of each group."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations_with_replacement
from math import comb, perm, prod

from sabot_table.cards import ACE, DECK_CARDS, JACK, KING, NINE, SUITS, Card
from sabot_table.coup import FirstFour, Totals, banker_draws, player_draws
from sabot_table.hand_ranking import HandRank, Showdown, rank_hand

ONE_DECK_SUITS = len(SUITS)
RANKS = range(ACE, KING + 1)


@cache
def showdowns() -> Mapping[Showdown, int]:
    """Pairs of three-card hands of one deck: 22,100 for the player, 18,424 for the dealer each."""
    hands = [(ranks, _standing_of(ranks)) for ranks in combinations_with_replacement(RANKS, 3)]
    found: Counter[Showdown] = Counter()
    for mine, player in hands:
        first = _suits(mine, ())
        by_standing: Counter[HandRank] = Counter()
        for theirs, dealer in hands:
            by_standing[dealer] += _suits(theirs, mine)
        copies = _suits(mine, mine)
        by_standing[player] -= copies
        found[Showdown(player, player, True)] += first * copies
        for dealer, second in by_standing.items():
            found[Showdown(player, dealer, False)] += first * second
    return +found  # without what has no ways


def _standing_of(ranks: tuple[int, ...]) -> HandRank:
    """Suits do not matter to any wager; they are set apart so that no card is there twice."""
    return rank_hand([Card(rank, SUITS[ranks[:place].count(rank)]) for place, rank in enumerate(ranks)])


def _suits(ranks: tuple[int, ...], gone: tuple[int, ...]) -> int:
    """In how many suits three ranks, in ascending order, can come from one deck after others are gone."""
    low, middle, high = ranks
    left = ONE_DECK_SUITS - gone.count(low)
    if low == high:
        return comb(left, 3)
    if low == middle:
        return comb(left, 2) * (ONE_DECK_SUITS - gone.count(high))
    rest = ONE_DECK_SUITS - gone.count(middle)
    if middle == high:
        return left * comb(rest, 2)
    return left * rest * (ONE_DECK_SUITS - gone.count(high))


@cache
def totals(decks: int) -> Mapping[Totals, int]:
    """Ordered draws of six cards from a whole shoe, by the coup that they make."""
    left = [4 * decks * (4 if value == 0 else 1) for value in range(10)]
    size = DECK_CARDS * decks
    found: Counter[Totals] = Counter()
    for player, player_ways in _pairs(left):
        for banker, ways in _pairs(left, player):
            p, b = sum(player) % 10, sum(banker) % 10
            four = player_ways * ways
            if not player_draws(p, b):
                if not banker_draws(p, b, None):
                    found[Totals(p, 2, b, 2)] += four * perm(size - 4, 2)
                    continue
                for third, number in _next(left, (*player, *banker)):
                    found[Totals(p, 2, (b + third) % 10, 3)] += four * number * (size - 5)
                continue
            for drawn, number in _next(left, (*player, *banker)):
                if not banker_draws(p, b, drawn):
                    found[Totals((p + drawn) % 10, 3, b, 2)] += four * number * (size - 5)
                    continue
                for third, last in _next(left, (*player, *banker, drawn)):
                    found[Totals((p + drawn) % 10, 3, (b + third) % 10, 3)] += four * number * last
    return found


@cache
def two_cards(decks: int) -> Mapping[FirstFour, int]:
    """Two cards of one hand, by ranks. Both hands show the same: a wager on one does not see the other."""
    kinds = {Card(rank, "C"): 4 * decks for rank in RANKS}
    return {FirstFour(pair, pair): ways for pair, ways in _draws(kinds, 2)}


@cache
def nines(decks: int) -> Mapping[FirstFour, int]:
    """Four cards, by the nines among them and their suits."""
    kinds = {Card(NINE, suit): decks for suit in SUITS}
    kinds[Card(2, "C")] = (DECK_CARDS - len(SUITS)) * decks  # stands for all that are no nines
    return {FirstFour(four[:2], four[2:]): ways for four, ways in _draws(kinds, 4)}


@cache
def poker_hands(decks: int) -> Mapping[FirstFour, int]:
    """Four cards, by ranks and by whether they are of one suit."""
    found = {}
    for ranks in combinations_with_replacement(RANKS, 4):
        counts = Counter(ranks).values()
        flush = len(SUITS) * prod(comb(decks, number) for number in counts)
        every = prod(comb(4 * decks, number) for number in counts)
        for suits, ways in (("CCCC", flush), ("CDHS", every - flush)):
            four = tuple(Card(rank, suit) for rank, suit in zip(ranks, suits, strict=True))
            found[FirstFour(four[:2], four[2:])] = ways
    return found


@cache
def royals(decks: int) -> Mapping[FirstFour, int]:
    """The two hands' first two cards, by the nines and faces among them and their suits."""
    kinds = {Card(rank, suit): decks for rank in (NINE, *range(JACK, KING + 1)) for suit in SUITS}
    kinds[Card(2, "C")] = DECK_CARDS * decks - sum(kinds.values())  # stands for all others
    found = {}
    for player, ways in _draws(kinds, 2):
        rest = {each: number - player.count(each) for each, number in kinds.items()}
        for banker, more in _draws(rest, 2):
            found[FirstFour(player, banker)] = ways * more
    return found


def _draws(kinds: Mapping[Card, int], number: int) -> Iterator[tuple[tuple[Card, ...], int]]:
    """Every set of so many cards by kind, with its number of ways."""
    for drawn in combinations_with_replacement(kinds, number):
        ways = prod(comb(kinds[each], times) for each, times in Counter(drawn).items())
        if ways:
            yield drawn, ways


def _pairs(left: list[int], gone: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, int], int]]:
    """Every pair of values, with the ordered ways to draw it after some are gone."""
    there = [number - gone.count(value) for value, number in enumerate(left)]
    for low in range(10):
        yield (low, low), there[low] * (there[low] - 1)
        for high in range(low + 1, 10):
            yield (low, high), 2 * there[low] * there[high]


def _next(left: list[int], gone: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Every value of the next card, with its number of ways after some are gone."""
    for value, number in enumerate(left):
        yield value, number - gone.count(value)
