"""Wagers on the rounds that ``sabot play`` deals: read or made up, under a rule set."""

from pathlib import Path

from sabot_table import ruleset, wager_acceptance
from sabot_table.errors import TableError

AUTO = "auto"
USUAL_PLAYERS = 6


class NoSuchSeats(TableError):
    """More players than the table has seats."""


class WagerPlan:
    """The wagers of every round, the same each time, under one rule set."""

    def __init__(self, rules: ruleset.RuleSet, wagers: dict[int, dict[str, int]]) -> None:
        wager_acceptance.check_wagers(rules, wagers)
        self.rules = rules
        self.wagers = {seat: made for seat, made in wagers.items() if made}
        self.seats = [seat for seat in rules.clockwise() if seat in self.wagers]
        """The betting seats in the order they are dealt to."""

    @classmethod
    def read(cls, name_or_path: str, wagers: str, players: int | None) -> "WagerPlan":
        """A rule set by name or file; wagers from a file, or every wager offered at so many seats.

        `NoSuchSeats` if the table has fewer; None takes six, or as many as there are.
        """
        rules = ruleset.load(name_or_path)
        if players is None:
            players = min(USUAL_PLAYERS, rules.seats.count)
        elif players > rules.seats.count:
            raise NoSuchSeats(f"{rules.name} has {rules.seats.count} seats, not {players}")
        if wagers == AUTO:
            every = wager_acceptance.every_wager(rules)
            return cls(rules, {seat: made for seat, made in every.items() if seat <= players})
        return cls(
            rules, wager_acceptance.read_wagers(rules, Path(wagers).read_text(encoding="utf-8"), wagers)
        )
