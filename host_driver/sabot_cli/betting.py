"""Wagers on the rounds that ``sabot play`` deals: read or made up, and settled by a rule set."""

from collections.abc import Sequence
from pathlib import Path

from sabot_table import ruleset, stakes
from sabot_table.cards import card
from sabot_table.settlement import Hands, Settlement, Source, settle, settle_void
from sabot_table.texts import Game

AUTO = "auto"

# By which clause a round is void, by the device's reason
VOID_CLAUSES = {
    "face_up_card": "MD3 13.A",
    "wrong_number": "MD3 10.C",
    "stack_disturbed": "MD3 13.C",
    "floor_order": "MD3 13.C",
}
SHOE_FAILED = "MD3 13.D"


class NotDealtHere(ValueError):
    """A rule set whose game ``sabot play`` does not deal."""


class Book:
    """The wagers of every round, the same each time, under one rule set."""

    def __init__(self, rules: ruleset.RuleSet, wagers: dict[int, dict[str, int]]) -> None:
        if rules.game is not Game.THREE_CARD:
            raise NotDealtHere(
                f"{rules.name} is dealt card by card from a shoe that is cut and laid in by hand; "
                "play deals stacks of three: give a three-card rule set"
            )
        stakes.check_wagers(rules, wagers)
        self.rules = rules
        self.wagers = wagers
        self.seats = [seat for seat in rules.clockwise() if wagers.get(seat)]
        """The betting seats in the order they are dealt to."""

    @classmethod
    def read(cls, name_or_path: str, wagers: str, players: int) -> "Book":
        """A rule set by name or file; wagers from a file, or every wager offered at so many seats."""
        rules = ruleset.load(name_or_path)
        if wagers == AUTO:
            every = stakes.every_wager(rules)
            return cls(rules, {seat: made for seat, made in every.items() if seat <= players})
        return cls(rules, stakes.read_wagers(rules, Path(wagers).read_text(encoding="utf-8"), wagers))

    def settle(self, hands: Sequence[Sequence[str]], from_reader: bool) -> Settlement:
        """Settle a round whose hands lie open, in dealing order, the dealer's last."""
        *players, dealer = [tuple(card(each) for each in hand) for hand in hands]
        source = Source.READER if from_reader else Source.DEALER
        return settle(
            self.rules, self.wagers, Hands(dealer, dict(zip(self.seats, players, strict=True))), source
        )

    def give_back(self, reason: str) -> Settlement:
        """A void round: every wager goes back."""
        clause = VOID_CLAUSES.get(reason, SHOE_FAILED)
        return settle_void(self.rules, self.wagers, clause, reason.replace("_", " "))
