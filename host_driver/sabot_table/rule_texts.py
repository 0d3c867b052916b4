"""What each regulator's text fixes, whatever an operator's rule set says, with the clauses."""

from dataclasses import dataclass
from enum import StrEnum


class GameKind(StrEnum):
    """The two games."""

    THREE_CARD = "three-card"
    MINI = "mini"


class DealingMethod(StrEnum):
    """How cards are dealt."""

    AUTOMATED_SHOE = "automated-shoe"
    MANUAL_SHOE = "manual-shoe"
    HAND = "hand"


class CutRule(StrEnum):
    """Which shuffled cards are cut."""

    UNLESS_MACHINE = "unless-machine"
    ALWAYS = "always"
    NEVER = "never"


class SettlementOrder(StrEnum):
    """In which order wagers are settled."""

    CLOCKWISE = "clockwise"  # seat by seat from the dealer's left
    COUNTER = "counter-clockwise"  # seat by seat from the dealer's right
    LOSERS_FIRST = "losers-first"  # all losing wagers, then from the highest seat down


@dataclass(frozen=True, slots=True)
class RuleText:
    """One text: its bounds for rule sets, and the clauses that set them."""

    key: str
    game: GameKind
    variants: tuple[str, ...]
    decks: tuple[int, int]  # in one shoe
    decks_clause: str
    seats: int  # at most
    seats_clause: str
    methods: tuple[DealingMethod, ...]
    methods_clause: str
    hours_shoe: int | None
    hours_hand: int | None
    hours_clause: str
    cut: CutRule
    cut_clause: str
    every_round: bool  # shuffled after each round, or shoe by shoe
    shuffle_clause: str
    order: SettlementOrder
    order_clause: str
    may_mark_vigorish: bool
    vigorish_clause: str
    most_wagers: int | None  # kinds of wager a hand
    most_wagers_clause: str
    closed_clause: str  # no wager after "no more bets"
    irregularity_clause: str


MD3 = RuleText(
    key="MD3",
    game=GameKind.THREE_CARD,
    variants=("standard", "commission-free"),
    decks=(1, 1),
    decks_clause="MD3 3.A",
    seats=6,
    seats_clause="MD3 2.A",
    methods=(DealingMethod.AUTOMATED_SHOE, DealingMethod.MANUAL_SHOE, DealingMethod.HAND),
    methods_clause="MD3 5.C",
    hours_shoe=8,
    hours_hand=4,
    hours_clause="MD3 3.C",
    cut=CutRule.UNLESS_MACHINE,
    cut_clause="MD3 5.D",
    every_round=True,
    shuffle_clause="MD3 5.A",
    order=SettlementOrder.CLOCKWISE,
    order_clause="MD3 11.B",
    may_mark_vigorish=False,
    vigorish_clause="MD3 12.A",
    most_wagers=None,
    most_wagers_clause="MD3 7.E",
    closed_clause="MD3 7.D",
    irregularity_clause="MD3 13.C",
)
WA3 = RuleText(
    key="WA3",
    game=GameKind.THREE_CARD,
    variants=("standard",),
    decks=(1, 1),
    decks_clause="WA3 sets",
    seats=16,
    seats_clause="WA3 sets",
    methods=(DealingMethod.AUTOMATED_SHOE, DealingMethod.MANUAL_SHOE),
    methods_clause="WA3 sets",
    hours_shoe=None,
    hours_hand=None,
    hours_clause="WA3 sets",
    cut=CutRule.UNLESS_MACHINE,
    cut_clause="WA3 sets",
    every_round=True,
    shuffle_clause="WA3 sets",
    order=SettlementOrder.COUNTER,
    order_clause="WA3 order",
    may_mark_vigorish=False,
    vigorish_clause="WA3 ante",
    most_wagers=4,
    most_wagers_clause="WA3 wagers",
    closed_clause="WA3 ante",
    irregularity_clause="WA3 sets",
)
MDM = RuleText(
    key="MDM",
    game=GameKind.MINI,
    variants=("standard", "ez", "fortune-7", "no-commission", "five-treasures"),
    decks=(6, 8),
    decks_clause="MDM 3.A",
    seats=9,
    seats_clause="MDM 2.A",
    methods=(DealingMethod.MANUAL_SHOE, DealingMethod.AUTOMATED_SHOE),
    methods_clause="MDM 8",
    hours_shoe=24,
    hours_hand=None,
    hours_clause="MDM 3.C",
    cut=CutRule.ALWAYS,
    cut_clause="MDM 5.B",
    every_round=False,
    shuffle_clause="MDM 5",
    order=SettlementOrder.LOSERS_FIRST,
    order_clause="MDM 11.B",
    may_mark_vigorish=True,
    vigorish_clause="MDM 12.D",
    most_wagers=None,
    most_wagers_clause="MDM 7.A(1)",
    closed_clause="MDM 7.D",
    irregularity_clause="MDM 13.E",
)
BAC = RuleText(
    key="BAC",
    game=GameKind.MINI,
    variants=("standard",),
    decks=(6, 6),
    decks_clause="BAC shoe",
    seats=14,
    seats_clause="BAC shoe",
    methods=(DealingMethod.MANUAL_SHOE, DealingMethod.AUTOMATED_SHOE),
    methods_clause="BAC shoe",
    hours_shoe=None,
    hours_hand=None,
    hours_clause="BAC shoe",
    cut=CutRule.NEVER,
    cut_clause="BAC shoe",
    every_round=True,
    shuffle_clause="BAC shoe",
    order=SettlementOrder.LOSERS_FIRST,
    order_clause="BAC wagers",
    may_mark_vigorish=False,
    vigorish_clause="BAC payouts",
    most_wagers=None,
    most_wagers_clause="BAC wagers",
    closed_clause="BAC wagers",
    irregularity_clause="BAC shoe",
)
RULE_TEXTS = {each.key: each for each in (MD3, WA3, MDM, BAC)}
