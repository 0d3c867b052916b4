"""The outcomes of each wager, the number of ways of each, and the house edge."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabot_table.errors import WrongDecks
from sabot_table.money import net_odds
from sabot_table.odds import enumeration
from sabot_table.paytables import LOSE, LOST, Paytable
from sabot_table.progressive import Meters
from sabot_table.rule_texts import GameKind
from sabot_table.ruleset import ROYAL_9, RuleSet
from sabot_table.settlement import best_award, personal_king_nines
from sabot_table.wagers import evaluators
from sabot_table.wagers.royal_9 import RoyalHands, royal_9

SHOE_DECKS = (6, 8)  # of the mini games
FIRST_FOUR_CENSUS = {
    "any-pair-player": enumeration.two_cards,
    "any-pair-banker": enumeration.two_cards,
    "lucky-nines": enumeration.nines,
    "jackpot": enumeration.poker_hands,
}


@dataclass(frozen=True, slots=True)
class OddsOutcome:
    """One outcome: what it pays net, to 1, after unrounded vigorish, and in how many ways it comes."""

    name: str
    pays: Fraction
    ways: int


@dataclass(frozen=True, slots=True)
class WagerOdds:
    """One wager by one paytable: disjoint outcomes whose ways add up to ``total``."""

    ruleset: str
    ruleset_sha256: str
    decks: int
    wager: str
    paytable: str | None
    outcomes: tuple[OddsOutcome, ...]
    seat: int | None = None  # whose King-9 a Royal 9 wager looks for

    @property
    def total(self) -> int:
        """All ways."""
        return sum(each.ways for each in self.outcomes)

    @property
    def house_edge(self) -> Fraction:
        """What the house keeps of each unit staked, pushes counted; negative when the player has it."""
        return -sum((each.pays * each.ways for each in self.outcomes), Fraction(0)) / self.total

    def to_json(self) -> dict[str, object]:
        """One object of the ``odds`` report."""
        seat = {} if self.seat is None else {"seat": self.seat}
        return {
            "v": 1,
            "event": "odds",
            "ruleset": self.ruleset,
            "ruleset_sha256": self.ruleset_sha256,
            "decks": self.decks,
            "wager": self.wager,
            "paytable": self.paytable,
            **seat,
            "house_edge": float(self.house_edge),
            "outcomes": [
                {"name": each.name, "pays": _number(each.pays), "ways": each.ways} for each in self.outcomes
            ],
            "total": self.total,
        }


def odds(
    rules: RuleSet, decks: int | None = None, wager: str | None = None, seat: int = 1
) -> tuple[WagerOdds, ...]:
    """The exact odds of each wager offered (or of one) by each paytable of the text.

    ``decks`` is what the shoe holds, by default what the rule set says. Royal 9 is counted for a seat, at
    the meters' initial amounts.
    """
    decks = rules.cards.decks if decks is None else decks
    low, high = SHOE_DECKS if rules.game is GameKind.MINI else (1, 1)
    if not low <= decks <= high:
        allowed = f"{low} to {high}" if low < high else "one"
        raise WrongDecks(f"{decks} decks: {rules.name} is played with {allowed}; ask for that")
    wanted = rules.offered if wager is None else (wager,)
    return tuple(_one(rules, decks, table, seat) for each in wanted for table in rules.paytables(each))


def _one(rules: RuleSet, decks: int, paytable: Paytable, seat: int) -> WagerOdds:
    ways: Counter[str] = Counter()
    if paytable.wager == ROYAL_9:
        assert rules.royal_9 is not None
        meters, stake = Meters.initial(rules.royal_9), rules.royal_9.stake_cents
        pays = {
            line: Fraction(meters.amount(award) - stake, stake) for line, award in paytable.awards.items()
        }
        personal = personal_king_nines(rules, seat)
        for four, number in enumeration.royals(decks).items():
            best = best_award(paytable, royal_9(RoyalHands(four, *personal)), meters)
            ways[LOSE if best is None else best[0]] += number
    else:
        pays = {line: net_odds(paytable, line) for line in paytable.pays}
        for met, number in _met(rules, decks, paytable.wager):
            ways[paytable.line(met)] += number
    outcomes = tuple(OddsOutcome(line, amount, ways[line]) for line, amount in {**pays, LOSE: LOST}.items())
    only = seat if paytable.wager == ROYAL_9 else None
    return WagerOdds(rules.name, rules.sha256, decks, paytable.wager, paytable.letter, outcomes, only)


def _met(rules: RuleSet, decks: int, wager: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """The lines that each group of the wager's census meets, with its number of ways."""
    groups: Mapping[Any, int]
    if rules.game is GameKind.THREE_CARD:
        groups = enumeration.showdowns()
    elif wager in evaluators.TOTALS:
        groups = enumeration.totals(decks)
    else:
        groups = FIRST_FOUR_CENSUS[wager](decks)
    judge = evaluators.BY_GAME[rules.game][wager]
    return ((judge(group), number) for group, number in groups.items())


def _number(amount: Fraction) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)
