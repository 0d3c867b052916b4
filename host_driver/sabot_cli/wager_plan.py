"""Wagers on the rounds that ``sabot play`` deals: read or made up, under a rule set."""

from pathlib import Path

from sabot_table import ruleset, wager_acceptance

AUTO = "auto"
PLAIN_SEATS = 16
# What is played when nobody asks for a rule set: stacks of three to as many hands as the machine can deal.
PLAIN = {
    "name": "three-card",
    "title": "Three cards a hand",
    "text": "WA3",
    "variant": "standard",
    "cards": {"decks": 1, "alternating": True},
    "dealing": {"methods": ["automated-shoe"]},
    "seats": {"count": PLAIN_SEATS, "seat_one": "dealer-left"},
    "vigorish": {"rounding": "none", "collected": "at-payout"},
    "wagers": {"ante": {}},
}


class WagerPlan:
    """The wagers of every round, the same each time, under one rule set."""

    def __init__(
        self, rules: ruleset.RuleSet, wagers: dict[int, dict[str, int]], settled: bool = True
    ) -> None:
        wager_acceptance.check_wagers(rules, wagers)
        self.rules = rules
        self.wagers = {seat: made for seat, made in wagers.items() if made}
        self.seats = [seat for seat in rules.clockwise() if seat in self.wagers]
        """The betting seats in the order they are dealt to."""
        self.settled = settled
        """Whether anybody asked for wagers; if not, settlements are not shown."""

    @classmethod
    def read(cls, name_or_path: str, wagers: str, players: int) -> "WagerPlan":
        """A rule set by name or file; wagers from a file, or every wager offered at so many seats."""
        rules = ruleset.load(name_or_path)
        if wagers == AUTO:
            every = wager_acceptance.every_wager(rules)
            return cls(rules, {seat: made for seat, made in every.items() if seat <= players})
        return cls(
            rules, wager_acceptance.read_wagers(rules, Path(wagers).read_text(encoding="utf-8"), wagers)
        )

    @classmethod
    def plain(cls, players: int) -> "WagerPlan":
        """No rule set and no wagers that anybody sees: an ante a player, so that there is a round."""
        rules = ruleset.parse(PLAIN)
        return cls(rules, {seat: {"ante": 2_000} for seat in range(1, players + 1)}, settled=False)
