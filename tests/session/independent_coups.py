"""Mini baccarat settled a second time, from the cards on record alone. It imports nothing of ours.

The paytables are those of `MDM` (standard, tables A). Player, banker and tie are those of the six-deck text
too. A result is (cents won or -stake, vigorish in cents).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
Result = tuple[int, int]


def value(card: str) -> int:
    rank = RANKS.index(card[:-1]) + 1
    return rank if rank < 10 else 0


def points(hand: Sequence[str]) -> int:
    return sum(map(value, hand)) % 10


def paid(stake: int, odds: int | None, vigorish: bool = False) -> Result:
    """``odds`` to 1; 0 gives the stake back, None takes it."""
    if odds is None:
        return -stake, 0
    return stake * odds, stake * odds * 5 // 100 if vigorish else 0


BANKER_DRAWS: Mapping[int, str] = {3: "012345679", 4: "234567", 5: "4567", 6: "67"}


def complete(player: Sequence[str], banker: Sequence[str]) -> bool:
    """Whether both hands have exactly the cards that the third-card rules give."""
    first, other = points(player[:2]), points(banker[:2])
    if first >= 8 or other >= 8:
        return len(player) == len(banker) == 2
    if (len(player) == 3) != (first <= 5):
        return False
    if len(player) == 2 or other <= 2:
        draws = other <= 5 if len(player) == 2 else True
    else:
        draws = other < 7 and str(value(player[2])) in BANKER_DRAWS[other]
    return (len(banker) == 3) == draws


def mini(wager: str, stake: int, player: Sequence[str], banker: Sequence[str]) -> Result:
    """A wager under MDM, standard, tables A; player, banker and tie are those of the six-deck text too."""
    ours, theirs = points(player), points(banker)
    natural = max(points(player[:2]), points(banker[:2])) >= 8
    if wager in ("player", "banker"):
        if ours == theirs:
            return paid(stake, 0)
        won = (ours > theirs) == (wager == "player")
        return paid(stake, 1 if won else None, vigorish=wager == "banker")
    if wager == "tie":
        return paid(stake, 8 if ours == theirs else None)
    if wager.startswith("dragon-bonus"):
        margin = ours - theirs if wager.endswith("player") else theirs - ours
        if natural:
            return paid(stake, 1 if margin > 0 else 0 if margin == 0 else None)
        return paid(stake, {9: 30, 8: 10, 7: 6, 6: 4, 5: 2, 4: 1}.get(margin))
    if wager.startswith("any-pair"):
        one, two = (player if wager.endswith("player") else banker)[:2]
        if one[:-1] != two[:-1]:
            return paid(stake, None)
        return paid(stake, 12 if one[:-1] == "9" else 11)
    if wager == "lucky-6":
        return paid(stake, (12 if len(banker) == 2 else 20) if theirs == 6 and theirs > ours else None)
    first_four = [*player[:2], *banker[:2]]
    if wager == "lucky-nines":
        return paid(stake, nines([card for card in first_four if card[:-1] == "9"]))
    assert wager == "jackpot"
    return paid(stake, poker(first_four))


def nines(found: Sequence[str]) -> int | None:
    suits = {card[-1] for card in found}
    if len(found) == 4:
        return 500
    if len(found) == 3:
        return 250 if len(suits) == 1 else 20
    if len(found) == 2:
        return 8 if len(suits) == 1 else 5
    return (2 if suits == {"D"} else 1) if found else None


def poker(four: Sequence[str]) -> int | None:
    """The four-card hand of the jackpot wager; a pair of tens to kings pushes."""
    places = sorted(RANKS.index(card[:-1]) for card in four)
    counts = sorted(Counter(places).values(), reverse=True)
    flush = len({card[-1] for card in four}) == 1
    royal = places == [0, 10, 11, 12]
    straight = len(set(places)) == 4 and (places[3] - places[0] == 3 or royal)
    if royal and flush:
        return 500
    if counts[0] == 4:
        return 100
    if straight and flush:
        return 50
    if counts[0] == 3:
        return 15
    if flush:
        return 10
    if straight:
        return 5
    if counts[:2] == [2, 2]:
        return 4
    pairs = [place for place, times in Counter(places).items() if times == 2]
    if not pairs:
        return None
    return 2 if pairs[0] == 0 else 0 if pairs[0] >= 9 else None
